/* pipeline/encode.c - a sealed batch into files: cut, one job a column on all workers, footers. */
#include "base/mem.h"
#include "pipeline/pipeline_priv.h"

#include <assert.h>

#define GROUP_RAW_BYTES (UINT64_C(128) << 20) /* raw bytes of a row group, at most */

struct encode {
    struct mp_pipeline *p;
    const struct mp_parquet_cut *cut;
    struct mp_column *columns;
    struct mp_parquet_chunk **chunks; /* [column][groups of all files] */
    uint32_t groups;
    const uint32_t *order; /* item -> column */
    pthread_mutex_t lock;  /* guards the rest */
    struct mp_parquet_variant_counts variant;
    enum mp_code code;
    struct mp_err err; /* of the first column that failed */
};

static void encode_failed(struct encode *encode, const struct mp_column *column, enum mp_code code,
                          struct mp_err *err)
{
    mp_err_add(err, "column \"%.*s\"", MP_STR_ARG(column->name));
    pthread_mutex_lock(&encode->lock);
    if (!encode->code) {
        encode->code = code;
        encode->err = *err;
    }
    pthread_mutex_unlock(&encode->lock);
}

static struct mp_parquet_chunk **chunks_of(const struct encode *encode,
                                           const struct mp_column *column)
{
    return encode->chunks + (size_t)(column - encode->columns) * encode->groups;
}

static void count_bytes(struct encode *encode, const struct mp_column *column)
{
    struct mp_parquet_chunk **chunks = chunks_of(encode, column);
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < encode->groups; i++)
        bytes += mp_parquet_chunk_bytes(chunks[i]);
    atomic_fetch_add(&encode->p->compressed_bytes, bytes);
}

/* The VARIANT that is made of the column's values, which stay for the column itself. */
static enum mp_code encode_companion(struct encode *encode, uint32_t worker,
                                     const struct mp_column *column, struct mp_err *err)
{
    struct mp_parquet_variant_counts counts = {0};
    enum mp_code code = mp_parquet_encode_variant(
        encode->p->encoders[worker], encode->p->pool, column, encode->cut,
        &encode->p->options.variant, err, chunks_of(encode, column->companion), &counts);

    if (code)
        return code;
    count_bytes(encode, column->companion);
    pthread_mutex_lock(&encode->lock);
    encode->variant.unfit += counts.unfit;
    encode->variant.rounded += counts.rounded;
    pthread_mutex_unlock(&encode->lock);
    return MP_OK;
}

static void encode_column(void *self, uint32_t worker, uint32_t item)
{
    struct encode *encode = self;
    struct mp_column *column = &encode->columns[encode->order[item]];
    enum mp_code code = MP_OK;
    struct mp_err err;

    if (column->companion)
        code = encode_companion(encode, worker, column, &err);
    if (!code)
        code = mp_parquet_encode(encode->p->encoders[worker], encode->p->pool, column, encode->cut,
                                 &err, chunks_of(encode, column));
    if (code)
        encode_failed(encode, column, code, &err);
    else
        count_bytes(encode, column);
}

/* The columns in the order in which they begin: those with companions take longest. A VARIANT is
 * its source's work. Gives their number. */
static uint32_t begin_order(const struct mp_column *columns, uint32_t count, uint32_t *ret)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < count; i++)
        if (columns[i].companion)
            ret[n++] = i;
    for (uint32_t i = 0; i < count; i++)
        if (!columns[i].companion && columns[i].type.id != MP_TYPE_VARIANT)
            ret[n++] = i;
    return n;
}

static uint32_t rows_per_group(const struct mp_batch *batch)
{
    uint64_t rows = mp_batch_rows(batch), raw = mp_batch_bytes(batch);
    uint64_t groups = raw / GROUP_RAW_BYTES + 1;

    return (uint32_t)((rows + groups - 1) / groups);
}

/* Puts each file's footer around its chunks, and gives it a key. */
static void make_files(struct mp_pipeline *p, const char *key, struct mp_job_table *table,
                       const struct mp_parquet_cut *cut, const struct mp_column *columns,
                       uint32_t column_count, uint32_t groups)
{
    struct mp_parquet_field *fields = mp_alloc_array(column_count, sizeof(*fields));
    struct mp_lake_place place = {.key = mp_str_c(key)};
    uint32_t first = 0;

    table->files = mp_alloc_array(table->cut.count, sizeof(*table->files));
    table->keys = mp_alloc_array(table->cut.count, sizeof(*table->keys));
    for (uint32_t file = 0; file < table->cut.count; file++) {
        uint32_t file_groups = mp_parquet_groups(cut, file);

        for (uint32_t i = 0; i < column_count; i++)
            fields[i] = (struct mp_parquet_field){
                .name = columns[i].name,
                .type = columns[i].type,
                .field_id = columns[i].field_id,
                .chunks = table->chunks + (size_t)i * groups + first,
            };
        table->files[file] =
            mp_parquet_file_new(fields, column_count, file_groups, p->options.created_by);
        assert(table->files[file]->rows == table->cut.files[file].count);
        table->keys[file] = MP_BUF_INIT(65536);
        place.partition = table->cut.files[file].values;
        place.index = file;
        p->lake->driver->object_key(p->lake, table->table, &place, &table->keys[file]);
        first += file_groups;
    }
    mp_free(fields);
}

/* What the catalog is told of each file: the columns in it, and those of the table that no record
 * of the batch named, which read as null. Without a row of its own such a column would not prune,
 * and a BIGINT not be known to fit a DOUBLE. */
static void list_stats(struct mp_job_table *table, const struct mp_column *columns,
                       uint32_t column_count)
{
    const struct mp_schema *schema = &table->table->schema;
    struct mp_column_stats *absent = mp_alloc_array(schema->column_count, sizeof(*absent));
    uint32_t absent_count = 0;

    for (uint32_t i = 0; i < schema->column_count; i++) {
        const struct mp_live_column *live = &schema->columns[i];
        bool present = live->type.id == MP_TYPE_OTHER ||
                       (live->type.id == MP_TYPE_VARIANT && live->default_not_null);

        for (uint32_t c = 0; c < column_count && !present; c++)
            present = columns[c].field_id == live->field_id;
        if (!present)
            absent[absent_count++] =
                (struct mp_column_stats){.field_id = live->field_id, .type = live->type};
    }
    table->stats_count = column_count + absent_count;
    table->stats =
        mp_alloc_array((size_t)table->cut.count * table->stats_count, sizeof(*table->stats));
    for (uint32_t i = 0; i < table->cut.count; i++) {
        struct mp_column_stats *stats = table->stats + (size_t)i * table->stats_count;

        assert(table->files[i]->stats_count == column_count);
        memcpy(stats, table->files[i]->stats, column_count * sizeof(*stats));
        for (uint32_t a = 0; a < absent_count; a++) {
            stats[column_count + a] = absent[a];
            stats[column_count + a].rows = stats[column_count + a].nulls = table->files[i]->rows;
        }
    }
    mp_free(absent);
}

static const struct mp_column *column_named(const struct mp_pipeline *p,
                                            const struct mp_column *columns, uint32_t count,
                                            struct mp_str name)
{
    for (uint32_t i = 0; i < count; i++)
        if (p->lake->driver->fold_case ? mp_str_eq_fold(columns[i].name, name)
                                       : mp_str_eq(columns[i].name, name))
            return &columns[i];
    return NULL;
}

/* The order of the rows: what the settings say, nulls last, else the table's own. A flush that
 * lacks one of the columns stays as it came. Gives the table's schema with that order; fields has
 * room for the settings' columns. */
static struct mp_schema sorted_schema(struct mp_pipeline *p, const struct mp_job_table *table,
                                      const struct mp_column *columns, uint32_t column_count,
                                      struct mp_sort_field *fields)
{
    const struct mp_lake_create *wanted = table->create;
    struct mp_schema schema = table->table->schema;

    if (!wanted->sort_by_count)
        return schema;
    schema.sort = fields;
    schema.sort_count = wanted->sort_by_count;
    for (uint32_t i = 0; i < wanted->sort_by_count; i++) {
        const struct mp_column *column = column_named(p, columns, column_count, wanted->sort_by[i]);

        if (!column) {
            schema.sort_count = 0;
            mp_metric_add(p->world.metrics, MP_M_SORT_SKIPPED, "field_missing",
                          mp_batch_rows(table->batch));
            mp_log(p->world.log, MP_LOG_WARN, "millpond.sort",
                   "a flush of %u rows is not sorted: it has no column \"%.*s\"",
                   mp_batch_rows(table->batch), MP_STR_ARG(wanted->sort_by[i]));
            break;
        }
        fields[i] = (struct mp_sort_field){.field_id = column->field_id};
    }
    return schema;
}

enum mp_code mp_encode(struct mp_pipeline *p, struct mp_job *job, struct mp_job_table *table,
                       struct mp_err *err)
{
    struct encode encode = {.p = p, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct mp_parquet_cut cut = {.group_rows_max = rows_per_group(table->batch)};
    struct mp_schema schema;
    uint32_t column_count, *order;
    enum mp_code code;

    encode.columns = mp_batch_columns(table->batch, &column_count);
    schema = sorted_schema(
        p, table, encode.columns, column_count,
        mp_arena_take(&job->arena, table->create->sort_by_count * sizeof(struct mp_sort_field)));
    code = mp_cut_columns(&job->arena, encode.columns, column_count, &schema,
                          mp_batch_rows(table->batch), err, &table->cut);
    if (code)
        return code;
    table->rows = mp_alloc_array(table->cut.count, sizeof(*table->rows));
    for (uint32_t i = 0; i < table->cut.count; i++)
        table->rows[i] =
            (struct mp_parquet_rows){table->cut.files[i].rows, table->cut.files[i].count};
    cut.files = table->rows;
    cut.file_count = table->cut.count;
    for (uint32_t i = 0; i < cut.file_count; i++)
        encode.groups += mp_parquet_groups(&cut, i);
    table->chunk_count = column_count * encode.groups;
    table->chunks = mp_alloc_array(table->chunk_count, sizeof(*table->chunks));
    encode.cut = &cut;
    encode.chunks = table->chunks;
    order = mp_arena_take(&job->arena, column_count * sizeof(*order));
    encode.order = order;
    mp_workers_each(p->workers, begin_order(encode.columns, column_count, order), encode_column,
                    &encode);
    if (encode.code) {
        if (err)
            *err = encode.err;
        return encode.code;
    }
    job->variant.unfit += encode.variant.unfit;
    job->variant.rounded += encode.variant.rounded;
    make_files(p, job->key, table, &cut, encode.columns, column_count, encode.groups);
    list_stats(table, encode.columns, column_count);
    for (uint32_t i = 0; i < table->cut.count; i++)
        job->compressed_bytes += table->files[i]->bytes;
    return MP_OK;
}

void mp_encode_free(struct mp_pipeline *p, struct mp_job_table *table)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; table->files && i < table->cut.count; i++) {
        mp_parquet_file_free(table->files[i]);
        mp_buf_fini(&table->keys[i]);
    }
    for (uint32_t i = 0; i < table->chunk_count; i++) {
        if (table->chunks[i])
            bytes += mp_parquet_chunk_bytes(table->chunks[i]);
        mp_parquet_chunk_free(table->chunks[i]);
    }
    atomic_fetch_sub(&p->compressed_bytes, bytes);
    mp_free(table->stats);
    mp_free(table->files);
    mp_free(table->keys);
    mp_free(table->chunks);
    mp_free(table->rows);
    mp_cut_fini(&table->cut);
    table->stats = NULL;
    table->files = NULL;
    table->keys = NULL;
    table->chunks = NULL;
    table->rows = NULL;
    table->chunk_count = 0;
}
