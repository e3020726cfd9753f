/* tests/parquet/parquet_random.c - random columns, as Parquet files and as what a reader must find.
 *
 *     parquet-random DIRECTORY SEED [COUNT]
 *
 * For each seed from SEED on, makes columns of random types and values, cuts them into files in a
 * random way, and writes every file as SEED-FILE.parquet with its expectation SEED-FILE.expect. The
 * expectation is written from the generated values and never passes through the writer:
 *
 *     codec zstd
 *     groups 100 100 57              rows of each row group
 *     footer 1234                    bytes
 *     stats 257 3 0 870 1 1 1 MIN MAX   what the catalog is told of the next column: rows, nulls,
 *                                    NaNs, compressed bytes, has_bounds, min_exact, max_exact
 *     column int64 12 6e616d65       type, field id, name in hex; then a line a row:
 *     0500000000000000               the value as PLAIN lays it out (texts without their length)
 *     -                              a null
 *     .                              an empty text
 *
 * Judges of other families read both: judge_pyarrow_duckdb.py, java/.
 */
#include "base/arena.h"
#include "base/mem.h"
#include "parquet/writer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

__extension__ typedef __int128 wide_int;
__extension__ typedef unsigned __int128 wide_uint;

enum { COLUMNS_MAX = 14, FILES_MAX = 40 };

/* ---- chance ---------------------------------------------------------------------------------- */

static uint64_t state;

static uint64_t chance(void) /* splitmix64 */
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint32_t below(uint32_t limit)
{
    return (uint32_t)(chance() % limit);
}

static uint32_t one_of(const uint32_t *values, size_t count)
{
    return values[below((uint32_t)count)];
}
#define ONE_OF(...)                                                                                \
    one_of((const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

/* ---- values ---------------------------------------------------------------------------------- */

struct cell {
    const char *data; /* NULL: null */
    size_t size;
};

struct model {
    struct mp_type type;
    struct mp_str name;
    int32_t field_id;
    struct cell *cells; /* by row */
};

static size_t put_code_point(char *at, uint32_t point)
{
    if (point < 0x80) {
        at[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        at[0] = (char)(0xc0 | point >> 6);
        at[1] = (char)(0x80 | (point & 63));
        return 2;
    }
    if (point < 0x10000) {
        at[0] = (char)(0xe0 | point >> 12);
        at[1] = (char)(0x80 | (point >> 6 & 63));
        at[2] = (char)(0x80 | (point & 63));
        return 3;
    }
    at[0] = (char)(0xf0 | point >> 18);
    at[1] = (char)(0x80 | (point >> 12 & 63));
    at[2] = (char)(0x80 | (point >> 6 & 63));
    at[3] = (char)(0x80 | (point & 63));
    return 4;
}

static uint32_t code_point(uint32_t flavour)
{
    static const uint32_t edges[] = {0,      1,      0x7f,   0x80,    0x7ff,    0x800,
                                     0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff, 'a'};

    switch (flavour) {
    case 0:
        return 'a' + below(26);
    case 1:
        return one_of(edges, sizeof(edges) / sizeof(*edges));
    case 2:
        return 0x10ffff;
    case 3:
        return 0x7f;
    case 4:
        return 0xd7ff;
    case 5:
        return 0x400 + below(0x3000);
    default:
        return ' ' + below(95);
    }
}

static uint32_t text_length(void)
{
    switch (below(8)) {
    case 0:
        return 0;
    case 1:
        return 60 + below(10);
    case 2:
        return 250 + below(12);
    case 3:
        return below(40) == 0 ? 4000 + below(1500) : below(300);
    default:
        return 1 + below(30);
    }
}

static struct cell text_cell(struct mp_arena *arena, struct mp_type type, uint32_t flavour)
{
    uint32_t length = text_length();
    char *data = mp_arena_take(arena, (size_t)length * 4 + 32);
    size_t size = 0;

    if (type.id == MP_TYPE_JSON) {
        size = (size_t)sprintf(data, "{\"n\":%u,\"t\":\"", below(1000));
        for (uint32_t i = 0; i < length; i++)
            size += put_code_point(data + size, 'a' + below(26));
        memcpy(data + size, "\"}", 2);
        return (struct cell){data, size + 2};
    }
    if (below(4) == 0) {
        memcpy(data, "https://www.", 12);
        size = 12;
    }
    for (uint32_t i = 0; i < length; i++) {
        if (type.id == MP_TYPE_BLOB)
            data[size++] = flavour == 2 ? (char)0xff : (char)chance();
        else
            size += put_code_point(data + size, code_point(flavour == 7 ? below(7) : flavour));
    }
    return (struct cell){data, size};
}

static double special_double(void)
{
    static const double specials[] = {0.0,     -0.0,  1.0,    -1.5, 5e-324,
                                      -5e-324, 1e308, -1e308, 3.25, 2e-308};
    uint64_t bits;
    double value;

    switch (below(5)) {
    case 0:
        bits = UINT64_C(0x7ff8000000000000) | below(3) | (uint64_t)below(2) << 63;
        break;
    case 1:
        bits = UINT64_C(0x7ff0000000000000) | (uint64_t)below(2) << 63;
        break;
    case 2:
        bits = chance();
        break;
    default:
        return specials[below(10)];
    }
    memcpy(&value, &bits, 8);
    return value;
}

static int64_t between(int64_t low, int64_t high)
{
    uint64_t span = (uint64_t)high - (uint64_t)low;

    if (below(12) == 0)
        return below(2) ? low : high;
    return (int64_t)((uint64_t)low + (span == UINT64_MAX ? chance() : chance() % (span + 1)));
}

/* A decimal of at most `digits` digits; the widest ones have 16 bytes, big-endian. */
static wide_int decimal(unsigned digits)
{
    wide_int limit = 1;
    wide_uint any = (wide_uint)chance() << 64 | chance();
    wide_int value;

    for (unsigned i = 0; i < digits; i++)
        limit *= 10;
    value = (wide_int)(any % (wide_uint)limit);
    if (below(20) == 0)
        value = limit - 1;
    if (below(20) == 0)
        value = below(3);
    return below(2) ? value : -value;
}

static struct cell fixed_cell(struct mp_arena *arena, struct mp_type type, bool special)
{
    char *data = mp_arena_take(arena, 16);
    uint32_t width = mp_type_width(type);
    int64_t i = 0;
    double d;
    float f;
    wide_int wide;

    switch (type.id) {
    case MP_TYPE_BOOL:
        data[0] = (char)below(2);
        return (struct cell){data, 1};
    case MP_TYPE_INT8:
        i = between(INT8_MIN, INT8_MAX);
        break;
    case MP_TYPE_INT16:
        i = between(INT16_MIN, INT16_MAX);
        break;
    case MP_TYPE_UINT8:
        i = between(0, UINT8_MAX);
        break;
    case MP_TYPE_UINT16:
        i = between(0, UINT16_MAX);
        break;
    case MP_TYPE_DATE:
        i = between(-719162, 2932896);
        break;
    case MP_TYPE_TIME:
        i = between(0, INT64_C(86399999999));
        break;
    case MP_TYPE_TIMESTAMP_MS:
        i = between(-INT64_C(62135596800000), INT64_C(253402300799999));
        break;
    case MP_TYPE_TIMESTAMP_NS:
        i = between(-INT64_C(9223286400000000000), INT64_C(9223372036000000000));
        break;
    case MP_TYPE_TIMESTAMP_S:
        i = between(-INT64_C(62135596800), INT64_C(253402300799)) * 1000000;
        break;
    case MP_TYPE_TIMESTAMP:
    case MP_TYPE_TIMESTAMPTZ:
        i = between(-INT64_C(62135596800000000), INT64_C(253402300799999999));
        break;
    case MP_TYPE_FLOAT:
        f = special ? (float)special_double() : (float)(int32_t)below(100000) / 8;
        memcpy(data, &f, 4);
        return (struct cell){data, 4};
    case MP_TYPE_DOUBLE:
    case MP_TYPE_INT128:
        d = special ? special_double() : (double)(int64_t)below(1000000) / 16;
        memcpy(data, &d, 8);
        return (struct cell){data, 8};
    case MP_TYPE_DECIMAL:
        wide = decimal(type.precision);
        for (unsigned b = 0; b < 16 && width == 16; b++)
            data[b] = (char)(wide >> (8 * (15 - b)));
        i = (int64_t)wide;
        if (width == 16)
            return (struct cell){data, 16};
        break;
    case MP_TYPE_UUID:
        for (unsigned b = 0; b < 16; b++)
            data[b] = (char)chance();
        return (struct cell){data, 16};
    default:
        i = between(INT64_MIN, INT64_MAX);
    }
    memcpy(data, &i, width); /* little-endian: the low bytes */
    return (struct cell){data, width};
}

static const struct mp_type *sorted_type; /* of the cells that qsort compares */

static int by_value(const void *a, const void *b)
{
    const struct cell *x = a, *y = b;
    int64_t i = 0, k = 0;

    if (mp_type_is_text(*sorted_type) || x->size == 16)
        return mp_str_cmp((struct mp_str){x->data, x->size}, (struct mp_str){y->data, y->size});
    memcpy(&i, x->data, x->size);
    memcpy(&k, y->data, y->size);
    return (i > k) - (i < k);
}

static void make_cells(struct mp_arena *arena, struct model *model, uint32_t rows)
{
    uint32_t pool_count = ONE_OF(1, 2, 7, 40, 300, 300, 3000, 0, 0, 0);
    uint32_t flavour = below(8), nulls = ONE_OF(0, 0, 0, 1, 50, 99, 100, 1000);
    bool special = below(3) != 0, runs = below(4) == 0;
    bool text = mp_type_is_text(model->type);
    struct cell *pool;

    if (pool_count == 0 || pool_count > rows)
        pool_count = rows;
    pool = mp_arena_take(arena, pool_count * sizeof(*pool));
    for (uint32_t i = 0; i < pool_count; i++)
        pool[i] =
            text ? text_cell(arena, model->type, flavour) : fixed_cell(arena, model->type, special);
    sorted_type = &model->type;
    if (below(3) == 0)
        qsort(pool, pool_count, sizeof(*pool), by_value);
    model->cells = mp_arena_take(arena, rows * sizeof(*model->cells));
    for (uint32_t row = 0; row < rows; row++) {
        bool null = nulls == 1000 ? row / 300 % 2 : below(100) < nulls;

        if (!null && pool_count == rows)
            model->cells[row] = pool[row];
        else if (!null)
            model->cells[row] = pool[runs ? row / 40 % pool_count : below(pool_count)];
    }
}

static struct mp_type any_type(void)
{
    struct mp_type type;

    do /* hoglake's two, which lie as others do, are judged by judge_hoglake_values.py */
        type = (struct mp_type){
            .id = (uint8_t)(MP_TYPE_BOOL + below(MP_TYPE_UUID - MP_TYPE_BOOL + 1))};
    while (type.id == MP_TYPE_UINT32_LONG || type.id == MP_TYPE_TIMESTAMP_S_MS);
    if (type.id == MP_TYPE_DECIMAL) {
        type.precision = (uint8_t)(1 + below(38));
        type.scale = (uint8_t)below(type.precision + 1u);
    }
    return type;
}

/* ---- columns, cuts, files -------------------------------------------------------------------- */

static void fill_column(struct mp_segment_pool *pool, struct mp_arena *arena,
                        const struct model *model, uint32_t rows, struct mp_column *ret)
{
    uint64_t *validity = mp_arena_take(arena, ((size_t)rows + 63) / 64 * 8);
    bool text = mp_type_is_text(model->type);

    *ret = (struct mp_column){
        .name = model->name, .type = model->type, .field_id = model->field_id, .rows = rows};
    for (uint32_t row = 0; row < rows; row++) {
        const struct cell *cell = &model->cells[row];
        uint32_t size = (uint32_t)cell->size;
        char *place;

        if (!cell->data)
            continue;
        place = mp_segment_append(pool, &ret->segments, cell->size + (text ? 4 : 0));
        if (text) {
            memcpy(place, &size, 4);
            place += 4;
        }
        memcpy(place, cell->data, cell->size);
        validity[row / 64] |= UINT64_C(1) << (row & 63);
        ret->values++;
    }
    if (ret->values < rows || below(2))
        ret->validity = validity;
}

/* One file as it is, or the rows dealt out to several, in order or not, a few to none. */
static void make_cut(struct mp_arena *arena, uint32_t rows, struct mp_parquet_cut *ret)
{
    uint32_t count = ONE_OF(1, 1, 2, 3, 11, FILES_MAX);
    struct mp_parquet_rows *files = mp_arena_take(arena, count * sizeof(*files));
    uint32_t *order = mp_arena_take(arena, rows * sizeof(*order));
    uint32_t *owner = mp_arena_take(arena, rows * sizeof(*owner));
    bool shuffle = below(2), drop = below(4) == 0;

    ret->files = files;
    ret->file_count = count;
    ret->group_rows_max = ONE_OF(rows, rows, rows / 3 + 1, 1000000, rows / 50 + 1);
    if (count == 1 && below(3)) {
        files[0].count = rows;
        return;
    }
    for (uint32_t i = 0; i < rows; i++) {
        order[i] = i;
        owner[i] = drop && below(10) == 0 ? UINT32_MAX : below(count);
    }
    for (uint32_t i = rows; shuffle && i > 1; i--) {
        uint32_t k = below(i), other = order[i - 1];

        order[i - 1] = order[k];
        order[k] = other;
    }
    for (uint32_t file = 0; file < count; file++) {
        uint32_t *mine = mp_arena_take(arena, ((size_t)rows + 1) * sizeof(*mine));

        for (uint32_t i = 0; i < rows; i++)
            if (owner[order[i]] == file)
                mine[files[file].count++] = order[i];
        files[file].rows = mine;
    }
}

static FILE *open_out(const char *directory, uint64_t seed, uint32_t file, const char *end)
{
    char path[4096];
    FILE *out;

    snprintf(path, sizeof(path), "%s/%06" PRIu64 "-%02u.%s", directory, seed, file, end);
    out = fopen(path, "wb");
    if (!out) {
        perror(path);
        exit(2);
    }
    return out;
}

static void write_hex(FILE *out, const char *data, size_t size)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < size; i++) {
        putc(digits[(unsigned char)data[i] >> 4], out);
        putc(digits[(unsigned char)data[i] & 15], out);
    }
}

static void write_cell(FILE *out, const char *data, size_t size)
{
    if (!data)
        putc('-', out);
    else if (!size)
        putc('.', out);
    else
        write_hex(out, data, size);
}

static void write_stats(FILE *out, const struct mp_column_stats *stats)
{
    fprintf(out, "stats %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %d %d %d ", stats->rows,
            stats->nulls, stats->nans, stats->compressed_bytes, stats->has_bounds, stats->min_exact,
            stats->max_exact);
    write_cell(out, stats->has_bounds ? stats->min.data : NULL, stats->min.size);
    putc(' ', out);
    write_cell(out, stats->has_bounds ? stats->max.data : NULL, stats->max.size);
    putc('\n', out);
}

static void write_expectation(FILE *out, const struct model *models, uint32_t count,
                              const struct mp_parquet_cut *cut, uint32_t f, enum mp_codec codec,
                              const struct mp_parquet_file *file)
{
    static const char *const codecs[] = {"none", "snappy", "zstd", "lz4_raw", "gzip"};
    const struct mp_parquet_rows *rows = &cut->files[f];

    fprintf(out, "codec %s\ngroups", codecs[codec]);
    for (uint32_t first = 0; first < rows->count; first += cut->group_rows_max)
        fprintf(out, " %u",
                rows->count - first < cut->group_rows_max ? rows->count - first
                                                          : cut->group_rows_max);
    fprintf(out, "\nfooter %u\n", file->footer_bytes);
    for (uint32_t column = 0; column < count; column++) {
        char name[24];

        write_stats(out, &file->stats[column]);
        mp_type_ducklake_name(models[column].type, name);
        fprintf(out, "column %s %d ", name, models[column].field_id);
        write_hex(out, models[column].name.data, models[column].name.size);
        putc('\n', out);
        for (uint32_t i = 0; i < rows->count; i++) {
            const struct cell *cell = &models[column].cells[rows->rows ? rows->rows[i] : i];

            write_cell(out, cell->data, cell->size);
            putc('\n', out);
        }
    }
}

static void write_files(const char *directory, uint64_t seed, const struct model *models,
                        struct mp_parquet_chunk **const *chunks, uint32_t count,
                        const struct mp_parquet_cut *cut, enum mp_codec codec)
{
    struct mp_parquet_field fields[COLUMNS_MAX];
    uint32_t first = 0;

    for (uint32_t f = 0; f < cut->file_count; f++) {
        uint32_t groups = mp_parquet_groups(cut, f);
        FILE *out = open_out(directory, seed, f, "parquet");
        FILE *expect = open_out(directory, seed, f, "expect");
        struct mp_parquet_file *file;

        for (uint32_t column = 0; column < count; column++)
            fields[column] =
                (struct mp_parquet_field){models[column].name, models[column].type,
                                          models[column].field_id, chunks[column] + first};
        file = mp_parquet_file_new(fields, count, groups, MP_STR("parquet_random version 1.0.0"));
        for (uint32_t i = 0; i < file->piece_count; i++)
            fwrite(file->pieces[i].data, 1, file->pieces[i].size, out);
        assert((uint64_t)ftell(out) == file->bytes);
        write_expectation(expect, models, count, cut, f, codec, file);
        mp_parquet_file_free(file);
        if (fclose(out) || fclose(expect)) {
            perror(directory);
            exit(2);
        }
        first += groups;
    }
}

static void run(const char *directory, uint64_t seed)
{
    uint32_t rows, count, total = 0;
    struct mp_parquet_options options = {0};
    struct model models[COLUMNS_MAX] = {0};
    struct mp_parquet_chunk **chunks[COLUMNS_MAX];
    struct mp_segment_pool *pool = mp_segment_pool_new(1 << 20);
    struct mp_parquet_encoder *encoder;
    struct mp_parquet_cut cut;
    struct mp_arena arena;

    state = seed * UINT64_C(0x2545f4914f6cdd1d);
    mp_arena_init(&arena, 1 << 20);
    rows = ONE_OF(1, 2, 63, 64, 65, 130, 1000, 1000, 3000, 3000, 9000, 21000, 45000);
    count = 1 + below(rows > 10000 ? 4 : COLUMNS_MAX);
    options.codec = below(5);
    options.page_bytes = ONE_OF(0, 0, 0, 100, 2000, 20000);
    options.dictionary_bytes_max = ONE_OF(0, 0, 0, 64, 4000);
    options.no_dictionary = below(6) == 0;
    make_cut(&arena, rows, &cut);
    for (uint32_t file = 0; file < cut.file_count; file++)
        total += mp_parquet_groups(&cut, file);
    encoder = mp_parquet_encoder_new(&options);
    for (uint32_t i = 0; i < count; i++) {
        struct mp_column column;
        struct mp_err err = {0};

        models[i].type = any_type();
        models[i].field_id = (int32_t)below(2000) + 2000 * (int32_t)i;
        models[i].name = mp_str_c(mp_arena_printf(&arena, "%s%u", i % 2 ? "näme " : "$c", i));
        make_cells(&arena, &models[i], rows);
        chunks[i] = mp_arena_take(&arena, (total + 1) * sizeof(*chunks[i]));
        fill_column(pool, &arena, &models[i], rows, &column);
        if (mp_parquet_encode(encoder, pool, &column, &cut, &err, chunks[i])) {
            fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, err.text);
            exit(1);
        }
        assert(!column.segments.first);
    }
    write_files(directory, seed, models, chunks, count, &cut, options.codec);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < total; k++)
            mp_parquet_chunk_free(chunks[i][k]);
    mp_parquet_encoder_free(encoder);
    mp_segment_pool_free(pool);
    mp_arena_fini(&arena);
}

int main(int argc, char **argv)
{
    uint64_t seed, count;

    if (argc < 3) {
        fprintf(stderr, "usage: parquet-random DIRECTORY SEED [COUNT]\n");
        return 2;
    }
    seed = strtoull(argv[2], NULL, 10);
    count = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    for (uint64_t i = 0; i < count; i++)
        run(argv[1], seed + i);
    return 0;
}
