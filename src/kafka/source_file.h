/* kafka/source_file.h - an NDJSON file, or standard input, as a source with one partition, 0.
 *
 * A record is a line; its offset is the byte position of its first byte, its next_offset the one
 * behind its line feed. A carriage return before the line feed is not part of the value, nor is a
 * byte order mark (UTF-8) at the very beginning, which Windows tools write; empty lines are no
 * records. What stands behind a file's last line feed is a line too, unless the user
 * says that it is not whole: somebody may still be writing it. Records have neither key nor time.
 *
 * Memory   buffer_bytes, more while a longer line is read; views point into it, no line is copied.
 * Always   FL1 seek lands where a line may begin: at 0, behind a line feed, before a line break or
 *              at the end; elsewhere it is MP_BAD_DATA
 *          FL2 positions given by poll are such places
 * A pipe   seeks forward only, by reading, for as long as that takes; its high watermark is not
 *          known.
 * Offsets  are kept in a state (file_state.h), whose lock keeps other processes away. Without one
 *          commit does nothing, committed answers MP_OFFSET_NONE, and own is NULL: positions are
 *          kept by whom they are told to.
 */
#ifndef MP_KAFKA_SOURCE_FILE_H
#define MP_KAFKA_SOURCE_FILE_H

#include "base/buf.h"
#include "kafka/file_state.h"
#include "kafka/source.h"

struct mp_source_file_options {
    const char *path;            /* "-": standard input */
    size_t buffer_bytes;         /* 0: 256 KiB, which stays in a core's cache */
    size_t line_bytes_max;       /* 0: 256 MiB; a longer line is MP_BAD_DATA */
    struct mp_file_state *state; /* borrowed until close; NULL: none */
    struct mp_str name;          /* of this source in the state; copied */
    /* Asked of a regular file's last bytes where they end without a line feed. False: they are no
     * record yet, and the source ends before them. NULL: they are. */
    bool (*whole)(void *self, struct mp_str line);
    void *self;
};

enum mp_code mp_source_file_open(const struct mp_source_file_options *options, struct mp_err *err,
                                 struct mp_source **ret);

/* Names a file by place and content: its canonical path, '#', the number of leading bytes hashed
 * (at most 64 KiB, all of a smaller file), '-', their hash (XXH3, 128 bits, hex).
 *
 * That number makes the name survive growth: a file that is 500 bytes now and more later has
 * another name then, but mp_source_file_is still tells that it is the one named before. */
enum mp_code mp_source_file_identity(const char *path, struct mp_err *err, struct mp_buf *ret);
/* Is the file at path the one that got this name, grown or not? False: it is shorter, begins with
 * other bytes or lies elsewhere. */
enum mp_code mp_source_file_is(const char *path, struct mp_str identity, struct mp_err *err,
                               bool *ret);

#endif
