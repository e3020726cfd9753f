/* bench/parquet_bench.c - what encoding costs, column by column.
 *
 *     parquet-bench COLUMNS.bin [codec=zstd] [level=1] [page=BYTES] [files=1] [rounds=5] [dict=1]
 *
 * COLUMNS.bin comes from parquet_columns.py. files=N deals the rows out to N files, as a partition
 * does. For each column: CPU time of the whole encode (best of the rounds), the part of it that the
 * codec needs (the same page bodies, compressed once more and timed alone), and bytes. Building the
 * segments is not timed.
 */
#include "base/mem.h"
#include "parquet/parquet_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct input {
    char name[64];
    struct mp_type type;
    uint32_t rows, values;
    size_t bytes; /* of values, without lengths of nulls */
    const char *cells;
};

struct result {
    double all_ms, codec_ms;
    uint64_t bytes;
    bool indexed;
};

static uint32_t read_u32(const char **at)
{
    uint32_t value;

    memcpy(&value, *at, 4);
    *at += 4;
    return value;
}

static char *read_file(const char *path, size_t *size)
{
    FILE *in = fopen(path, "rb");
    char *data;

    if (!in || fseek(in, 0, SEEK_END)) {
        perror(path);
        exit(2);
    }
    *size = (size_t)ftell(in);
    rewind(in);
    data = mp_realloc(NULL, *size);
    if (fread(data, 1, *size, in) != *size) {
        perror(path);
        exit(2);
    }
    fclose(in);
    return data;
}

static const char *read_column(const char *at, struct input *ret)
{
    uint32_t size = read_u32(&at);

    snprintf(ret->name, sizeof(ret->name), "%.*s", (int)size, at);
    at += size;
    size = read_u32(&at);
    ret->type = mp_type_of_ducklake_name(mp_str_n(at, size));
    at += size;
    ret->rows = read_u32(&at);
    ret->cells = at;
    for (uint32_t row = 0; row < ret->rows; row++) {
        size = read_u32(&at);
        if (size == UINT32_MAX)
            continue;
        ret->values++;
        ret->bytes += size;
        at += size;
    }
    return at;
}

static void build(struct mp_segment_pool *pool, const struct input *input, uint64_t *validity,
                  struct mp_column *ret)
{
    bool text = mp_type_is_text(input->type);
    const char *at = input->cells;

    memset(validity, 0, ((size_t)input->rows + 63) / 64 * 8);
    *ret = (struct mp_column){.name = mp_str_c(input->name),
                              .type = input->type,
                              .rows = input->rows,
                              .values = input->values,
                              .validity = input->values < input->rows ? validity : NULL};
    for (uint32_t row = 0; row < input->rows; row++) {
        uint32_t size = read_u32(&at);

        if (size == UINT32_MAX)
            continue;
        if (text)
            memcpy(mp_segment_append(pool, &ret->segments, (size_t)size + 4), at - 4,
                   (size_t)size + 4);
        else
            memcpy(mp_segment_append(pool, &ret->segments, size), at, size);
        at += size;
        validity[row / 64] |= UINT64_C(1) << (row & 63);
    }
}

static double cpu_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Compresses pages that were written with codec none; their headers are a few bytes. */
static double codec_alone(struct mp_parquet_encoder *encoder, const struct mp_parquet_chunk *chunk)
{
    struct mp_page_head head = {MP_PAGE_DATA, MP_ENCODING_PLAIN, 1};
    char *bytes = mp_realloc(NULL, chunk->bytes), *at = bytes;
    double began;

    for (uint32_t i = 0; i < chunk->part_count; at += chunk->parts[i++].size)
        memcpy(at, chunk->parts[i].data, chunk->parts[i].size);
    began = cpu_ms();
    at = bytes + chunk->dictionary_bytes;
    for (uint32_t i = 0; i <= chunk->page_count; i++) {
        struct mp_str page = i < chunk->page_count ? mp_str_n(at, chunk->page_bytes[i])
                                                   : mp_str_n(bytes, chunk->dictionary_bytes);
        struct mp_packed_page packed;

        if (page.size)
            mp_page_pack(encoder, &head, page, NULL, &packed);
        at += i < chunk->page_count ? page.size : 0;
    }
    mp_free(bytes);
    return cpu_ms() - began;
}

static double encode_once(struct mp_segment_pool *pool, struct mp_parquet_encoder *encoder,
                          struct mp_parquet_encoder *codec, const struct input *input,
                          const struct mp_parquet_cut *cut, struct result *ret)
{
    uint64_t *validity = mp_alloc_array((size_t)input->rows / 64 + 1, 8);
    struct mp_parquet_chunk **chunks = mp_alloc_array(cut->file_count, sizeof(*chunks));
    struct mp_column column;
    struct mp_err err = {0};
    double began, took;

    build(pool, input, validity, &column);
    began = cpu_ms();
    if (mp_parquet_encode(encoder, pool, &column, cut, &err, chunks)) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    took = cpu_ms() - began;
    ret->bytes = 0;
    ret->codec_ms = 0;
    ret->indexed = chunks[0]->dictionary_bytes != 0;
    for (uint32_t i = 0; i < cut->file_count; i++) {
        ret->bytes += mp_parquet_chunk_bytes(chunks[i]);
        if (codec)
            ret->codec_ms += codec_alone(codec, chunks[i]);
        mp_parquet_chunk_free(chunks[i]);
    }
    mp_free(chunks);
    mp_free(validity);
    return took;
}

static void deal(uint32_t rows, uint32_t files, struct mp_parquet_cut *ret)
{
    struct mp_parquet_rows *list = mp_alloc_array(files, sizeof(*list));

    *ret = (struct mp_parquet_cut){list, files, rows};
    list[0].count = rows;
    for (uint32_t file = 0; files > 1 && file < files; file++) {
        uint32_t *mine = mp_alloc_array(rows, sizeof(*mine));

        list[file].count = 0;
        for (uint32_t row = file; row < rows; row += files)
            mine[list[file].count++] = row;
        list[file].rows = mine;
    }
}

static uint64_t setting(int argc, char **argv, const char *name, uint64_t fallback)
{
    size_t size = strlen(name);

    for (int i = 2; i < argc; i++)
        if (strncmp(argv[i], name, size) == 0 && argv[i][size] == '=')
            return strtoull(argv[i] + size + 1, NULL, 10);
    return fallback;
}

static enum mp_codec codec_setting(int argc, char **argv)
{
    static const char *const names[] = {"codec=none", "codec=snappy", "codec=zstd",
                                        "codec=lz4_raw"};

    for (int i = 2; i < argc; i++)
        for (unsigned codec = 0; codec < 4; codec++)
            if (strcmp(argv[i], names[codec]) == 0)
                return codec;
    return MP_CODEC_ZSTD;
}

int main(int argc, char **argv)
{
    struct mp_segment_pool *pool = mp_segment_pool_new((size_t)256 << 20);
    struct mp_parquet_options options = {0}, none = {0};
    struct mp_parquet_encoder *encoder, *plain;
    struct result total = {0};
    size_t size, raw = 0;
    const char *data, *at;
    uint64_t rounds = setting(argc, argv, "rounds", 5);
    uint32_t rows = 0;

    if (argc < 2) {
        fprintf(stderr, "usage: parquet-bench COLUMNS.bin [codec=] [level=] [page=] [files=] "
                        "[rounds=] [dict=]\n");
        return 2;
    }
    options.codec = codec_setting(argc, argv);
    options.level = (int)setting(argc, argv, "level", 1);
    options.page_bytes = none.page_bytes = (uint32_t)setting(argc, argv, "page", 0);
    options.no_dictionary = none.no_dictionary = !setting(argc, argv, "dict", 1);
    none.codec = MP_CODEC_NONE;
    encoder = mp_parquet_encoder_new(&options);
    plain = mp_parquet_encoder_new(&none);
    data = read_file(argv[1], &size);
    printf("%-18s %-11s %5s %9s %9s %8s %8s %6s\n", "column", "type", "", "raw KB", "file KB",
           "all ms", "codec ms", "MB/s");
    for (at = data; at < data + size;) {
        struct mp_parquet_cut cut;
        struct input input = {0};
        struct result best = {1e9, 1e9, 0, false}, now;
        char type[24];

        at = read_column(at, &input);
        deal(input.rows, (uint32_t)setting(argc, argv, "files", 1), &cut);
        for (uint64_t round = 0; round < rounds; round++) {
            double all;

            encode_once(pool, plain, encoder, &input, &cut, &now);
            best.codec_ms = now.codec_ms < best.codec_ms ? now.codec_ms : best.codec_ms;
            all = encode_once(pool, encoder, NULL, &input, &cut, &now);
            best.all_ms = all < best.all_ms ? all : best.all_ms;
            best.bytes = now.bytes;
            best.indexed = now.indexed;
        }
        mp_type_ducklake_name(input.type, type);
        printf("%-18s %-11s %5s %9zu %9" PRIu64 " %8.2f %8.2f %6.0f\n", input.name, type,
               best.indexed ? "dict" : "plain", input.bytes / 1000, best.bytes / 1000, best.all_ms,
               best.codec_ms, (double)input.bytes / 1e3 / best.all_ms);
        raw += input.bytes;
        rows = input.rows;
        total.all_ms += best.all_ms;
        total.codec_ms += best.codec_ms;
        total.bytes += best.bytes;
        for (uint32_t file = 0; file < cut.file_count; file++)
            mp_free((void *)(uintptr_t)cut.files[file].rows);
        mp_free((void *)(uintptr_t)cut.files);
    }
    printf("%-18s %-11s %5s %9zu %9" PRIu64 " %8.2f %8.2f %6.0f\n", "all", "", "", raw / 1000,
           total.bytes / 1000, total.all_ms, total.codec_ms, (double)raw / 1e3 / total.all_ms);
    printf("%.3f CPU s per million rows, %.0f %% of it in the codec, %.1f bytes a row\n",
           total.all_ms / rows * 1e3, 100 * total.codec_ms / total.all_ms,
           (double)total.bytes / rows);
    mp_parquet_encoder_free(encoder);
    mp_parquet_encoder_free(plain);
    mp_segment_pool_free(pool);
    mp_free((void *)(uintptr_t)data);
    return 0;
}
