/* server/tx/fingerprint.c - what makes two commit requests the same.
 *
 * Everything in the request counts. The order of append groups, of the files in a group and of the
 * statistics in a file does not: each is hashed by itself and the hashes are sorted before they are
 * hashed together. Every text goes in with its length in front, every absent value as a mark of its
 * own, so no two requests share one form.
 */
#include "server/tx/commit.h"

#include <openssl/evp.h>
#include <stdlib.h>

enum { HASH_BYTES = 32, VERSION = 1 };

struct hash {
    unsigned char bytes[HASH_BYTES];
};

static void add_int(struct mp_buf *buf, int64_t number)
{
    mp_buf_add(buf, &number, sizeof(number));
}

static void add_optional(struct mp_buf *buf, bool has, int64_t number)
{
    mp_buf_add_byte(buf, has);
    if (has)
        add_int(buf, number);
}

static void add_text(struct mp_buf *buf, struct mp_str text)
{
    mp_buf_add_byte(buf, text.data != NULL);
    add_int(buf, (int64_t)text.size);
    if (text.size)
        mp_buf_add_str(buf, text);
}

static struct hash hash_of(struct mp_buf *buf)
{
    struct hash hash;
    unsigned size = 0;

    EVP_Digest(buf->data ? buf->data : "", buf->size, hash.bytes, &size, EVP_sha256(), NULL);
    mp_buf_clear(buf);
    return hash;
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, HASH_BYTES);
}

static struct hash hash_stats(struct mp_buf *buf, const struct mp_wire_stats *stats)
{
    add_int(buf, stats->field_id);
    add_int(buf, stats->value_count);
    add_int(buf, stats->null_count);
    add_optional(buf, stats->has_nan_count, stats->nan_count);
    add_optional(buf, stats->has_size, stats->size_bytes);
    add_text(buf, stats->lower);
    add_text(buf, stats->upper);
    return hash_of(buf);
}

static struct hash hash_file(struct mp_buf *buf, const struct mp_wire_file *file)
{
    struct hash *stats = malloc((file->stats_count + 1) * sizeof(*stats));
    struct hash hash;

    for (uint32_t i = 0; i < file->stats_count; i++)
        stats[i] = hash_stats(buf, &file->stats[i]);
    qsort(stats, file->stats_count, sizeof(*stats), by_bytes);
    add_text(buf, file->path);
    add_text(buf, file->format);
    add_int(buf, file->record_count);
    add_int(buf, file->file_size_bytes);
    add_optional(buf, file->has_footer_size, file->footer_size);
    add_optional(buf, file->has_stats, file->stats_count);
    mp_buf_add(buf, stats, file->stats_count * sizeof(*stats));
    add_optional(buf, file->has_partition, file->partition_count);
    for (uint32_t i = 0; i < file->partition_count; i++)
        add_text(buf, file->partition_values[i]);
    add_optional(buf, file->has_splits, file->split_count);
    for (uint32_t i = 0; i < file->split_count; i++)
        add_int(buf, file->split_offsets[i]);
    hash = hash_of(buf);
    free(stats);
    return hash;
}

static struct hash hash_append(struct mp_buf *buf, const struct mp_wire_append *append)
{
    struct hash *files = malloc((append->file_count + 1) * sizeof(*files));
    struct hash hash;

    for (uint32_t i = 0; i < append->file_count; i++)
        files[i] = hash_file(buf, &append->files[i]);
    qsort(files, append->file_count, sizeof(*files), by_bytes);
    add_text(buf, append->namespace_name);
    add_text(buf, append->table);
    add_text(buf, append->expected_uuid);
    mp_buf_add(buf, files, append->file_count * sizeof(*files));
    hash = hash_of(buf);
    free(files);
    return hash;
}

static void add_delete(struct mp_buf *buf, const struct mp_wire_delete *group)
{
    add_text(buf, group->namespace_name);
    add_text(buf, group->table);
    add_text(buf, group->expected_uuid);
    add_int(buf, group->file_count);
    for (uint32_t i = 0; i < group->file_count; i++) {
        add_int(buf, group->files[i].data_file_id);
        add_text(buf, group->files[i].path);
        add_int(buf, group->files[i].delete_count);
        add_int(buf, group->files[i].file_size_bytes);
        add_text(buf, group->files[i].data_file_path);
    }
}

void mp_fingerprint(const struct mp_wire_commit *request, const struct mp_commit_rules *rules,
                    unsigned char ret[MP_FINGERPRINT_BYTES])
{
    struct mp_buf buf = MP_BUF_INIT(SIZE_MAX / 4);
    struct hash *appends = malloc((request->append_count + 1) * sizeof(*appends));
    struct hash hash;

    for (uint32_t i = 0; i < request->append_count; i++)
        appends[i] = hash_append(&buf, &request->appends[i]);
    qsort(appends, request->append_count, sizeof(*appends), by_bytes);
    mp_buf_add_byte(&buf, rules->unchanged_targets);
    mp_buf_add_byte(&buf, rules->data_file_paths);
    add_text(&buf, request->key);
    add_text(&buf, request->author);
    add_text(&buf, request->message);
    add_optional(&buf, request->has_read_snapshot, request->read_snapshot);
    add_int(&buf, request->append_count);
    mp_buf_add(&buf, appends, request->append_count * sizeof(*appends));
    add_int(&buf, request->delete_count);
    for (uint32_t i = 0; i < request->delete_count; i++)
        add_delete(&buf, &request->deletes[i]);
    hash = hash_of(&buf);
    ret[0] = VERSION;
    memcpy(ret + 1, hash.bytes, HASH_BYTES);
    free(appends);
    mp_buf_fini(&buf);
}
