/* server/background/compact_make.c - the new file of a group, in a temporary file that has no name.
 * See compact_priv.h.
 *
 * A join reads its inputs where they lie. A merge would read every column of every input by itself,
 * so its inputs are copied into a temporary file first, in few large reads, and looked at there;
 * that takes as much room as the new file and no memory of the process's own.
 */
#include "server/background/compact_priv.h"

#include "base/mem.h"

#include <assert.h>
#include <sys/mman.h>

enum { READ_BYTES = 8 << 20 };

static enum mp_codec codec_of(struct mp_str name)
{
    static const struct {
        const char *name;
        enum mp_codec codec;
    } codecs[] = {{"zstd", MP_CODEC_ZSTD},
                  {"snappy", MP_CODEC_SNAPPY},
                  {"gzip", MP_CODEC_GZIP},
                  {"lz4_raw", MP_CODEC_LZ4_RAW},
                  {"uncompressed", MP_CODEC_NONE}};

    for (size_t i = 0; i < sizeof(codecs) / sizeof(*codecs); i++)
        if (mp_str_eq(name, mp_str_c(codecs[i].name)))
            return codecs[i].codec;
    assert(!"settings.c lets no other through");
    return MP_CODEC_ZSTD;
}

struct mp_parquet_join_options mp_compact_join_options(const struct mp_server *server)
{
    return (struct mp_parquet_join_options){
        .created_by = MP_STR("hoglaked"),
        .row_ids = true,
        .row_id_name = MP_ROW_ID_NAME,
        .row_id_field_id = MP_ROW_ID_FIELD_ID,
        .codec = codec_of(server->settings->HOGLAKE_COMPACTION_CODEC),
        .level = (int)server->settings->HOGLAKE_COMPACTION_ZSTD_LEVEL,
    };
}

struct mp_parquet_join_input mp_compact_join_input(const struct mp_compact_file *file)
{
    return (struct mp_parquet_join_input){
        .footer = file->footer,
        .row_id_start = file->row_id_start,
        .deleted_rows = (uint64_t)file->vector_rows,
    };
}

struct mp_parquet_merge_input mp_compact_merge_input(const struct mp_compact_file *file)
{
    return (struct mp_parquet_merge_input){
        .footer = file->footer,
        .leaves = file->leaves,
        .deleted = file->deleted,
        .row_id_leaf = file->row_id_leaf,
        .row_id_start = file->row_id_start,
    };
}

static enum mp_code write_spool(void *context, struct mp_str bytes, struct mp_err *err)
{
    if (fwrite(bytes.data, 1, bytes.size, context) != bytes.size)
        return mp_err_set(err, MP_IO, "the temporary file: write failed");
    return MP_OK;
}

/* --- join --- */

struct source {
    struct mp_objects *objects;
    struct mp_str path;
};

static enum mp_code read_source(void *context, uint64_t offset, size_t size, char *ret,
                                struct mp_err *err)
{
    struct source *source = context;

    return mp_object_read(source->objects, source->path, offset, size, ret, err);
}

static enum mp_code join(struct mp_compact_group *group, const struct mp_parquet_output *output,
                         struct mp_err *err, struct mp_compact_made *ret)
{
    struct mp_parquet_join_options options = mp_compact_join_options(group->call->server);
    struct mp_parquet_join_input *inputs =
        mp_arena_take(group->arena, group->count * sizeof(*inputs));
    struct source *sources = mp_arena_take(group->arena, group->count * sizeof(*sources));
    struct mp_parquet_joined joined;
    enum mp_code code;

    for (uint32_t i = 0; i < group->count; i++) {
        sources[i] = (struct source){mp_background_objects(group->call->server),
                                     group->files[i]->request.path};
        inputs[i] = mp_compact_join_input(group->files[i]);
        inputs[i].read = read_source;
        inputs[i].context = &sources[i];
        if (group->files[i]->file_id > group->files[options.names_from]->file_id)
            options.names_from = i; /* the newest has the newest names */
    }
    code = mp_parquet_join(group->arena, inputs, group->count, &options, output, err, &joined);
    if (!code)
        *ret = (struct mp_compact_made){.footer = joined.footer, .bytes = joined.bytes};
    return code;
}

/* --- merge --- */

static enum mp_code copy_object(struct mp_objects *objects, const struct mp_compact_file *file,
                                char *window, FILE *to, struct mp_err *err)
{
    uint64_t left = (uint64_t)file->request.file_size_bytes, at = 0;
    enum mp_code code = MP_OK;

    while (left && !code) {
        size_t some = left < READ_BYTES ? (size_t)left : READ_BYTES;

        code = mp_object_read(objects, file->request.path, at, some, window, err);
        if (!code)
            code = write_spool(to, mp_str_n(window, some), err);
        at += some;
        left -= some;
    }
    return code;
}

/* Those of a group that have rows. */
struct inputs {
    struct mp_compact_file **files;
    uint32_t *numbers; /* of each in the group */
    uint32_t count;
    size_t bytes;
};

static struct inputs inputs_of(const struct mp_compact_group *group)
{
    struct inputs inputs = {
        .files = mp_arena_take(group->arena, group->count * sizeof(*inputs.files)),
        .numbers = mp_arena_take(group->arena, group->count * sizeof(*inputs.numbers)),
    };

    for (uint32_t i = 0; i < group->count; i++) {
        if (mp_compact_is_empty(group->files[i]))
            continue;
        inputs.files[inputs.count] = group->files[i];
        inputs.numbers[inputs.count++] = i;
        inputs.bytes += (size_t)group->files[i]->request.file_size_bytes;
    }
    return inputs;
}

/* Copies every input behind the one before it. *ret_fault: the one that could not be read. */
static enum mp_code copy_objects(struct mp_objects *objects, const struct inputs *inputs, FILE *to,
                                 struct mp_err *err, uint32_t *ret_fault)
{
    char *window = mp_alloc(READ_BYTES);
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < inputs->count && !code; i++) {
        code = copy_object(objects, inputs->files[i], window, to, err);
        if (code)
            *ret_fault = i;
    }
    mp_free(window);
    if (!code && fflush(to))
        code = mp_err_set(err, MP_IO, "the temporary file: write failed");
    return code;
}

static enum mp_code merge_mapped(struct mp_compact_group *group, const struct inputs *of,
                                 const char *bytes, const struct mp_parquet_output *output,
                                 struct mp_err *err, uint32_t *ret_fault,
                                 struct mp_compact_made *ret)
{
    const struct mp_server_settings *settings = group->call->server->settings;
    struct mp_parquet_merge_options options = group->options;
    struct mp_parquet_merge_input *inputs =
        mp_arena_take(group->arena, of->count * sizeof(*inputs));
    struct mp_parquet_merged merged;
    enum mp_code code;

    options.created_by = MP_STR("hoglaked");
    options.row_id_name = MP_ROW_ID_NAME;
    options.row_id_field_id = MP_ROW_ID_FIELD_ID;
    options.codec = codec_of(settings->HOGLAKE_COMPACTION_CODEC);
    options.level = (int)settings->HOGLAKE_COMPACTION_ZSTD_LEVEL;
    options.bytes_max = (uint64_t)settings->HOGLAKE_COMPACTION_SORTED_HEAP_BYTES;
    for (uint32_t i = 0; i < of->count; i++) {
        size_t size = (size_t)of->files[i]->request.file_size_bytes;

        inputs[i] = mp_compact_merge_input(of->files[i]);
        inputs[i].bytes = mp_str_n(bytes, size);
        bytes += size;
    }
    code = mp_parquet_merge(group->arena, inputs, of->count, &options, output, err, ret_fault,
                            &merged);
    if (!code)
        *ret =
            (struct mp_compact_made){merged.footer, merged.stats, merged.stats_count, merged.bytes};
    return code;
}

static enum mp_code merge(struct mp_compact_group *group, const struct mp_parquet_output *output,
                          struct mp_err *err, uint32_t *ret_fault, struct mp_compact_made *ret)
{
    struct inputs inputs = inputs_of(group);
    uint32_t fault = UINT32_MAX;
    void *memory = MAP_FAILED;
    FILE *copies;
    enum mp_code code;

    *ret = (struct mp_compact_made){0};
    if (!inputs.count)
        return MP_OK;
    copies = tmpfile();
    if (!copies)
        return mp_err_set(err, MP_IO, "no temporary file could be made");
    code = copy_objects(mp_background_objects(group->call->server), &inputs, copies, err, &fault);
    if (code)
        goto out;
    memory = mmap(NULL, inputs.bytes, PROT_READ, MAP_PRIVATE, fileno(copies), 0);
    if (memory == MAP_FAILED) {
        code = mp_err_set(err, MP_IO, "the temporary file: %zu bytes could not be mapped",
                          inputs.bytes);
        goto out;
    }
    code = merge_mapped(group, &inputs, memory, output, err, &fault, ret);
out:
    *ret_fault = fault < inputs.count ? inputs.numbers[fault] : UINT32_MAX;
    if (memory != MAP_FAILED)
        munmap(memory, inputs.bytes);
    fclose(copies);
    mp_mem_trim();
    return code;
}

/* --- the new file --- */

enum mp_code mp_compact_make(struct mp_compact_group *group, FILE *spool, struct mp_err *err,
                             uint32_t *ret_fault, struct mp_compact_made *ret)
{
    struct mp_parquet_output output = {write_spool, spool};
    enum mp_code code;

    *ret_fault = UINT32_MAX;
    code =
        group->merge ? merge(group, &output, err, ret_fault, ret) : join(group, &output, err, ret);
    if (!code && fflush(spool))
        code = mp_err_set(err, MP_IO, "the temporary file: write failed");
    return code;
}

/* --- statistics --- */

/* A footer counts no NaNs and shows no bounds beside one; the encoder knows both. The bounds of
 * floats are the same bytes here and there. */
static void tell_floats(const struct mp_column_stats *known, struct mp_wire_stats *ret)
{
    ret->has_nan_count = true;
    ret->nan_count = (int64_t)known->nans;
    if (!known->has_bounds)
        return;
    ret->lower = known->min;
    ret->upper = known->max;
}

void mp_compact_tell(const struct mp_compact_group *group, const struct mp_compact_made *made,
                     struct mp_footer *ret)
{
    mp_footer_tell(group->arena, made->footer, group->columns, ret);
    for (uint32_t i = 0; i < made->stats_count; i++)
        for (uint32_t k = 0; mp_type_is_float(made->stats[i].type) && k < ret->stats_count; k++)
            if (ret->stats[k].field_id == made->stats[i].field_id)
                tell_floats(&made->stats[i], &ret->stats[k]);
}
