/* kafka/file_state.h - offsets of file sources in a file, where nobody else keeps them.
 *
 * One JSON object: for the name of each source its offset and the text beside it, as a topic's
 * group has them. A change is written to a file beside it, made durable, and put in its place, so
 * that a crash leaves the old state or the new.
 *
 *     {"format": "millpond state 1",
 *      "sources": {"/data/events.json#65536-0f..": {"offset": 4711, "metadata": ""}}}
 *
 * Life     open (locks FILE.lock, MP_CONFLICT: another process has it) -> get, put -> close
 * Threads  any, one at a time.
 */
#ifndef MP_KAFKA_FILE_STATE_H
#define MP_KAFKA_FILE_STATE_H

#include "base/err.h"
#include "base/str.h"

struct mp_file_state; /* opaque, see file_state.c */

/* A file that is not there is an empty state. MP_BAD_DATA: it is there and is no state. */
enum mp_code mp_file_state_open(const char *path, struct mp_err *err, struct mp_file_state **ret);
/* No-op on NULL. */
void mp_file_state_close(struct mp_file_state *state);
/* False: the state has no such source. The text is lent until the next put of that source. */
bool mp_file_state_get(const struct mp_file_state *state, struct mp_str source, int64_t *ret_offset,
                       struct mp_str *ret_metadata);
/* Copies. Durable when it returns. */
enum mp_code mp_file_state_put(struct mp_file_state *state, struct mp_str source, int64_t offset,
                               struct mp_str metadata, struct mp_err *err);
/* Calls visit with the name of every source. */
void mp_file_state_visit(const struct mp_file_state *state,
                         void (*visit)(void *self, struct mp_str source), void *self);

#endif
