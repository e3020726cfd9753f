/* tests/fuzz/batch_fuzz.c - records of odd values into columns of any type, and on into files.
 *
 * With libFuzzer, from the top of the tree: `tests/run fuzz -k batch`. Without it (no
 * -DMP_LIBFUZZER, any compiler) the program runs the files it is given, once each.
 *
 * The input is a list of choices: the live table, then records of names and spellings from tables
 * below, or of bytes of the input where they are JSON. For every input:
 *   B1  the batch holds what batch.h says after each record and when it is sealed
 *   B2  nothing is lost: every value that is no null is in its column or in its row's rescued text
 *   B3  a sealed column has the live table's type
 *   B4  rows cut by a partition and a sort order are all there once, and the files are made
 */
#include "fuzz/fuzz.h"
#include "base/buf.h"
#include "base/mem.h"
#include "column/batch.h"
#include "column/transform.h"
#include "parquet/writer.h"

enum { ROWS_MAX = 300, COLUMNS_MAX = 40, LIVE_MAX = 5, FIELDS_MAX = 6 };

static const char *const names[] = {
    "a", "A", "b", "c", "d", "e", "B", "\\u00e9", "", "_rescued_data", "_inserted_at", "x"};

static const char *const spellings[] = {
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "-1",
    "127",
    "-129",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "99999999999999999999999999999999999999",
    "-400000000000000000000000000000000000000",
    "1.0",
    "-0.0",
    "0.1",
    "1e-400",
    "1e300",
    "9007199254740993.0",
    "0.99999999999999999999",
    "16777217.0",
    "\"\"",
    "\"x\"",
    "\"1\"",
    "\"+9007199254740993\"",
    "\"0x10\"",
    "\"1e999\"",
    "\"nan\"",
    "\"-inf\"",
    "\"true\"",
    "\"2024-02-29\"",
    "\"2024-02-29T23:59:59.1234567891+23:59\"",
    "\"0001-01-01T00:00:00Z\"",
    "\"9999-12-31 23:59:59.999999\"",
    "\"10:11:12.5\"",
    "\"f79c3e09-677c-4bbd-a479-3f349cb785e7\"",
    "\"\\u0000\\ud83d\\ude00/%=\"",
    "\"[1, {\\\"a\\\":2}]\"",
    "\"1],\\\"v\\\":[2\"",
    "{}",
    "[ 1 , \"\\u00e9\" ]",
    "{\"a\": {\"a\": []}}",
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

struct input {
    const uint8_t *at, *end;
};

static unsigned take(struct input *in, unsigned below)
{
    return in->at < in->end ? *in->at++ % below : 0;
}

struct world {
    struct mp_segment_pool *pool;
    struct mp_json *json, *reader;
    struct mp_batch *batch;
    struct mp_live_column columns[COLUMNS_MAX];
    struct mp_schema live;
    struct mp_partition_field partition;
    struct mp_sort_field sort;
    bool fold_case;
    struct mp_buf records[ROWS_MAX];
    uint32_t rows;
};

static struct mp_type take_type(struct input *in)
{
    struct mp_type type = {.id = (uint8_t)(MP_TYPE_BOOL + take(in, MP_TYPE_COUNT - MP_TYPE_BOOL))};

    if (type.id == MP_TYPE_DECIMAL) {
        type.precision = (uint8_t)(1 + take(in, 38));
        type.scale = (uint8_t)take(in, type.precision + 1u);
    }
    return type;
}

static void open_batch(struct input *in, struct world *world)
{
    static const char *const live_names[LIVE_MAX] = {"a", "b", "c", "d", "_rescued_data"};
    static const struct mp_pin pins[] = {{MP_STR_INIT("b"), {.id = MP_TYPE_INT64}},
                                         {MP_STR_INIT("e"), {.id = MP_TYPE_BOOL}}};
    unsigned knobs = take(in, 256);
    struct mp_batch_options options = {
        .rescued_name = MP_STR("_rescued_data"),
        .inserted_at_name = MP_STR("_inserted_at"),
        .columns_max = knobs & 1 ? 5 : 1000,
        .fold_case = knobs & 2,
        .widen = knobs & 4,
        .promote = knobs & 8,
        .pins = pins,
        .pin_count = knobs & 16 ? 2 : 0,
    };

    world->fold_case = options.fold_case;
    world->live.column_count = take(in, LIVE_MAX + 1);
    for (uint32_t i = 0; i < world->live.column_count; i++)
        world->columns[i] =
            (struct mp_live_column){.name = mp_str_c(live_names[i]),
                                    .type = i < LIVE_MAX - 1 ? take_type(in) : MP_TYPE(VARCHAR),
                                    .field_id = (int32_t)i + 1,
                                    .default_not_null = knobs & 32};
    world->live.columns = world->columns;
    options.live = world->live.column_count ? &world->live : NULL;
    world->batch = mp_batch_new(world->pool, &options);
}

/* Makes the next record; false: the input is over. */
static bool make_record(struct input *in, struct mp_buf *ret)
{
    unsigned fields = take(in, FIELDS_MAX + 1);

    if (in->at == in->end)
        return false;
    *ret = MP_BUF_INIT(1 << 16);
    mp_buf_add_byte(ret, '{');
    for (unsigned i = 0; i < fields; i++) {
        unsigned spelling;

        mp_buf_printf(ret, "%s\"%s\":", i ? "," : "", names[take(in, COUNT(names))]);
        spelling = take(in, COUNT(spellings) + 1);
        if (spelling < COUNT(spellings)) {
            mp_buf_add_c(ret, spellings[spelling]);
        } else {
            size_t size = take(in, 64), left = (size_t)(in->end - in->at);

            size = size < left ? size : left;
            mp_buf_add(ret, in->at, size);
            in->at += size;
        }
    }
    mp_buf_add_byte(ret, '}');
    return true;
}

static void fill(struct input *in, struct world *world)
{
    while (world->rows < ROWS_MAX) {
        struct mp_buf *record = &world->records[world->rows];
        struct mp_json_record fields;
        size_t at;

        if (!make_record(in, record))
            return;
        if (mp_json_scan(world->json, mp_buf_str(record), &fields, &at)) {
            mp_buf_fini(record);
            continue;
        }
        mp_batch_append(world->batch, world->json, &fields);
        world->rows++;
        if (world->rows % 16 == 0)
            mp_batch_check(world->batch); /* B1 */
    }
}

/* Gives the table what the batch wants, as a catalog that widens or not; false: it has changed. */
static bool settle(struct world *world, bool widen)
{
    struct mp_batch_plan plan;
    struct mp_err err;

    for (unsigned round = 0;; round++) {
        uint32_t count = world->live.column_count;

        MUST(round < 6);
        if (mp_batch_plan(world->batch, count ? &world->live : NULL, &err, &plan))
            return false;
        if (count && !plan.add_count && !plan.widen_count)
            return true;
        for (uint32_t i = 0; i < plan.widen_count; i++)
            for (uint32_t c = 0; c < count; c++) {
                if (world->columns[c].field_id != plan.widen[i])
                    continue;
                if (widen)
                    world->columns[c].type = MP_TYPE(DOUBLE);
                else
                    mp_batch_keep_bigint(world->batch, plan.widen[i]);
            }
        for (uint32_t i = 0; i < plan.add_count; i++, count++)
            world->columns[count] = (struct mp_live_column){
                .name = plan.add[i].name, .type = plan.add[i].type, .field_id = (int32_t)count + 1};
        world->live.column_count = count;
    }
}

static bool same_name(const struct world *world, struct mp_str a, struct mp_str b)
{
    return world->fold_case ? mp_str_eq_fold(a, b) : mp_str_eq(a, b);
}

static const struct mp_column *column_of(struct world *world, struct mp_str name)
{
    uint32_t count;
    struct mp_column *columns = mp_batch_columns(world->batch, &count);

    for (uint32_t i = 0; i < count; i++)
        if (same_name(world, columns[i].name, name))
            return &columns[i];
    return NULL;
}

/* The text of a row in a text column; empty: null. */
static struct mp_str text_of(const struct mp_column *column, uint32_t row)
{
    const struct mp_segment *segment = column ? column->segments.first : NULL;
    uint32_t at = 0, size;

    for (uint32_t r = 0; column && r <= row; r++) {
        if (!mp_column_valid(column, r))
            continue;
        while (at == segment->used)
            segment = segment->next, at = 0;
        memcpy(&size, segment->data + at, 4);
        if (r == row)
            return mp_str_n(segment->data + at + 4, size);
        at += 4 + size;
    }
    return MP_STR("");
}

/* B2: of the names that are one column here one value is stored at most, the others are rescued. */
static void look_for_values(struct world *world, uint32_t row)
{
    const struct mp_column *rescued = column_of(world, MP_STR("_rescued_data"));
    struct mp_json_record fields, kept = {0};
    struct mp_str text = text_of(rescued, row);
    size_t at;

    MUST(!mp_json_scan(world->json, mp_buf_str(&world->records[row]), &fields, &at));
    if (text.size)
        MUST(!mp_json_scan(world->reader, text, &kept, &at));
    for (uint32_t i = 0; i < fields.count; i++) {
        struct mp_str name = mp_json_key_name(world->json, fields.fields[i].key);
        const struct mp_column *column = column_of(world, name);
        uint32_t wanted = 0, found = 0;
        bool null = fields.fields[i].kind == MP_JSON_NULL;

        if (null)
            continue;
        for (uint32_t k = 0; k < fields.count; k++)
            wanted += fields.fields[k].kind != MP_JSON_NULL &&
                      same_name(world, name, mp_json_key_name(world->json, fields.fields[k].key));
        for (uint32_t k = 0; k < kept.count; k++)
            found += kept.fields[k].kind != MP_JSON_NULL &&
                     same_name(world, name, mp_json_key_name(world->reader, kept.fields[k].key));
        if (column != rescued && column && mp_column_valid(column, row) &&
            !mp_str_eq_fold(name, MP_STR("_inserted_at")))
            found++;
        MUST(found >= wanted);
    }
}

static void check_sealed(struct world *world)
{
    uint32_t count;
    struct mp_column *columns = mp_batch_columns(world->batch, &count);

    mp_batch_check(world->batch);
    for (uint32_t i = 0; i < count; i++) {
        const struct mp_live_column *live = mp_schema_by_id(&world->live, columns[i].field_id);

        MUST(live && mp_type_eq(live->type, columns[i].type)); /* B3 */
        MUST(columns[i].rows == world->rows);
    }
    for (uint32_t row = 0; row < world->rows; row++)
        look_for_values(world, row);
}

/* Makes the chunks of one column and lets go of them. */
static void encode(struct world *world, struct mp_column *column, const struct mp_parquet_cut *cut)
{
    static const struct mp_parquet_options options = {.codec = MP_CODEC_SNAPPY, .page_bytes = 64};
    struct mp_parquet_encoder *encoder = mp_parquet_encoder_new(&options);
    struct mp_parquet_chunk **chunks;
    uint32_t total = 0;

    for (uint32_t i = 0; i < cut->file_count; i++)
        total += mp_parquet_groups(cut, i);
    chunks = mp_alloc_array(total, sizeof(*chunks));
    MUST(!mp_parquet_encode(encoder, world->pool, column, cut, NULL, chunks));
    for (uint32_t i = 0, at = 0; i < cut->file_count; i++) {
        struct mp_parquet_field field = {column->name, column->type, column->field_id, chunks + at};
        struct mp_parquet_file *file =
            mp_parquet_file_new(&field, 1, mp_parquet_groups(cut, i), MP_STR("fuzz"));

        MUST(file->rows == cut->files[i].count);
        mp_parquet_file_free(file);
        at += mp_parquet_groups(cut, i);
    }
    for (uint32_t i = 0; i < total; i++)
        mp_parquet_chunk_free(chunks[i]);
    mp_free(chunks);
    mp_parquet_encoder_free(encoder);
}

static void make_files(struct input *in, struct world *world)
{
    unsigned knobs = take(in, 256);
    struct mp_parquet_cut cut = {.group_rows_max = 1 + take(in, 64)};
    struct mp_parquet_rows *files;
    struct mp_cut rows;
    struct mp_arena arena;
    struct mp_err err;
    struct mp_column *columns;
    uint32_t count, seen = 0;

    columns = mp_batch_columns(world->batch, &count);
    world->partition = (struct mp_partition_field){1, (uint8_t)(knobs & 15), 7};
    world->sort = (struct mp_sort_field){2, knobs & 16, knobs & 32};
    if (world->partition.transform <= MP_TRANSFORM_BUCKET_ICEBERG) {
        world->live.partition = &world->partition;
        world->live.partition_count = 1;
    }
    world->live.sort = &world->sort;
    world->live.sort_count = knobs & 64 ? 1 : 0;
    world->live.spelling = knobs & 128 ? MP_SPELLING_HOGLAKE : MP_SPELLING_DUCKLAKE;
    mp_arena_init(&arena, 0);
    if (!mp_cut_columns(&arena, columns, count, &world->live, world->rows, &err, &rows)) {
        files = mp_alloc_array(rows.count, sizeof(*files));
        for (uint32_t i = 0; i < rows.count; i++) {
            files[i] = (struct mp_parquet_rows){rows.files[i].rows, rows.files[i].count};
            seen += rows.files[i].count;
        }
        MUST(seen == world->rows); /* B4 */
        cut.files = files;
        cut.file_count = rows.count;
        for (uint32_t i = 0; i < count; i++)
            encode(world, &columns[i], &cut);
        mp_free(files);
        mp_cut_fini(&rows);
    }
    mp_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world world;
    struct input in = {data, data + size};
    bool widen;

    world = (struct world){
        .pool = mp_segment_pool_new(0), .json = mp_json_new(), .reader = mp_json_new()};
    open_batch(&in, &world);
    widen = take(&in, 2);
    fill(&in, &world);
    if (settle(&world, widen) && world.rows) {
        mp_batch_seal(world.batch, &world.live, 1700000000000000);
        check_sealed(&world);
        in.at = data; /* the choices are taken once more */
        make_files(&in, &world);
    }
    mp_batch_free(world.batch);
    MUST(mp_segment_pool_bytes(world.pool) == 0);
    mp_segment_pool_free(world.pool);
    mp_json_free(world.json);
    mp_json_free(world.reader);
    for (uint32_t i = 0; i < world.rows; i++)
        mp_buf_fini(&world.records[i]);
    return 0;
}

#include "fuzz/replay.h"
