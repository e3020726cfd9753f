/* tests/parquet/footer_tool.c - what we read in a footer, and files joined, for judge_footer.py.
 *
 *     parquet-footer-tool facts FILE...
 *     parquet-footer-tool join OUT [--ids NAME FIELD_ID] [--sorted] [--window BYTES] FILE[:ID]...
 *
 * facts prints one JSON object a line, texts and bounds in hex; what cannot be read gives an object
 * with "error". join prints the facts of OUT, or the error; its exit code is 0 in both cases.
 */
#include "parquet/footer_stats.h"
#include "parquet/join.h"
#include "parquet/tool_file.h"

enum { INPUTS_MAX = 4096 };

/* ---- JSON ------------------------------------------------------------------------------------ */

static void print_nodes(struct mp_arena *arena, const struct mp_parquet_footer *footer)
{
    printf("\"nodes\":[");
    for (uint32_t i = 0; i < footer->node_count; i++) {
        const struct mp_parquet_node *node = &footer->nodes[i];

        printf("%s{\"path\":", i ? "," : "");
        print_hex(mp_parquet_path(arena, footer, i));
        printf(",\"leaf\":%d,\"physical\":%d,\"logical\":%d,\"unit\":%d,\"bits\":%d,\"signed\":%d,"
               "\"utc\":%d,\"precision\":%d,\"scale\":%d,\"length\":%d,\"repetition\":%d,"
               "\"def\":%d,\"rep\":%d,\"parent\":%u,\"id\":",
               node->leaf, node->physical, node->logical.kind, node->logical.unit,
               node->logical.bits, node->logical.is_signed, node->logical.utc,
               node->logical.precision, node->logical.scale, node->type_length, node->repetition,
               node->definition_max, node->repetition_max, node->parent);
        if (node->has_field_id)
            printf("%d}", node->field_id);
        else
            printf("null}");
    }
    printf("]");
}

static void print_groups(const struct mp_parquet_footer *footer)
{
    printf("\"groups\":[");
    for (uint32_t g = 0; g < footer->group_count; g++) {
        const struct mp_parquet_row_group *group = &footer->groups[g];

        printf("%s{\"rows\":%" PRId64 ",\"raw\":%" PRId64 ",\"start\":%" PRId64 ",\"chunks\":[",
               g ? "," : "", group->rows, group->raw_bytes, group->start);
        for (uint32_t leaf = 0; leaf < footer->leaf_count; leaf++) {
            const struct mp_parquet_column_chunk *chunk = &group->chunks[leaf];

            printf("%s{\"codec\":%d,\"values\":%" PRId64 ",\"bytes\":%" PRId64 ",\"raw\":%" PRId64
                   ",\"data\":%" PRId64 ",\"dictionary\":%" PRId64 ",\"nulls\":",
                   leaf ? "," : "", chunk->codec, chunk->value_count, chunk->bytes,
                   chunk->raw_bytes, chunk->data_page_offset, chunk->dictionary_page_offset);
            if (chunk->statistics.has >> 3 & 1)
                printf("%" PRId64 "}", chunk->statistics.null_count);
            else
                printf("null}");
        }
        printf("]}");
    }
    printf("]");
}

static void print_bound(const char *name, const struct mp_parquet_bound *bound)
{
    printf(",\"%s\":", name);
    if (bound->has)
        print_hex(bound->bytes);
    else
        printf("null");
    printf(",\"%s_exact\":%s", name, bound->exact ? "true" : "false");
}

static void print_stats(struct mp_arena *arena, const struct mp_parquet_footer *footer)
{
    uint32_t count;
    const struct mp_parquet_leaf_stats *stats = mp_parquet_footer_stats(arena, footer, &count);

    printf("\"stats\":[");
    for (uint32_t i = 0; i < count; i++) {
        printf("%s{\"leaf\":%u,\"values\":%" PRIu64 ",\"size\":%" PRIu64 ",\"nulls\":",
               i ? "," : "", stats[i].leaf, stats[i].value_count, stats[i].size_bytes);
        if (stats[i].has_null_count)
            printf("%" PRIu64, stats[i].null_count);
        else
            printf("null");
        print_bound("lower", &stats[i].lower);
        print_bound("upper", &stats[i].upper);
        printf("}");
    }
    printf("]");
}

static void print_facts(struct mp_arena *arena, const struct mp_parquet_footer *footer)
{
    printf("{\"rows\":%" PRId64 ",\"version\":%d,\"footer_bytes\":%u,\"misses_ids\":%s,"
           "\"created_by\":",
           footer->rows, footer->version, footer->footer_bytes,
           mp_parquet_misses_field_ids(footer) ? "true" : "false");
    print_hex(footer->created_by);
    printf(",\"has_orders\":%s,\"pairs\":[", footer->has_orders ? "true" : "false");
    for (uint32_t i = 0; i < footer->pair_count; i++) {
        printf("%s[", i ? "," : "");
        print_hex(footer->pairs[i].key);
        printf(",");
        print_hex(footer->pairs[i].value);
        printf("]");
    }
    printf("],");
    print_nodes(arena, footer);
    printf(",");
    print_groups(footer);
    printf(",");
    print_stats(arena, footer);
    printf("}\n");
}

/* ---- commands -------------------------------------------------------------------------------- */

static int facts(char **paths, int count)
{
    for (int i = 0; i < count; i++) {
        struct opened file = {.fd = -1};
        struct mp_arena arena;
        struct mp_err err;

        mp_arena_init(&arena, 0);
        if (open_file(&arena, paths[i], &err, &file))
            print_error(&err);
        else
            print_facts(&arena, file.footer);
        close_file(&file);
        mp_arena_fini(&arena);
    }
    return 0;
}

/* Takes an option from the arguments; false: there is none. */
static bool take_option(char ***at, char **end, struct mp_parquet_join_options *options)
{
    char *name = **at;

    if (strcmp(name, "--sorted") == 0) {
        options->sorted = true;
        *at += 1;
    } else if (strcmp(name, "--ids") == 0 && end - *at > 2) {
        options->row_ids = true;
        options->row_id_name = mp_str_c((*at)[1]);
        options->row_id_field_id = atoi((*at)[2]);
        *at += 3;
    } else if (strcmp(name, "--window") == 0 && end - *at > 1) {
        options->read_bytes = strtoul((*at)[1], NULL, 10);
        *at += 2;
    } else {
        return false;
    }
    return true;
}

static int join(char **at, char **end)
{
    static struct opened files[INPUTS_MAX];
    static struct mp_parquet_join_input inputs[INPUTS_MAX];
    struct mp_parquet_join_options options = {.created_by = MP_STR("millpond test"),
                                              .codec = MP_CODEC_ZSTD};
    struct mp_parquet_joined joined;
    struct mp_arena arena;
    struct mp_err err;
    FILE *out = fopen(*at++, "wb");
    uint32_t count = 0;
    enum mp_code code = MP_OK;

    if (!out)
        return 2;
    mp_arena_init(&arena, 0);
    while (at < end && take_option(&at, end, &options))
        ;
    for (; at < end && !code && count < INPUTS_MAX; at++, count++) {
        char *colon = strrchr(*at, ':');

        if (colon)
            *colon = 0;
        files[count].fd = -1;
        code = open_file(&arena, *at, &err, &files[count]);
        inputs[count] = (struct mp_parquet_join_input){
            .footer = files[count].footer,
            .row_id_start = colon ? atoll(colon + 1) : 0,
            .read = read_at,
            .context = &files[count],
        };
    }
    if (!code)
        code = mp_parquet_join(&arena, inputs, count, &options,
                               &(struct mp_parquet_output){write_out, out}, &err, &joined);
    fclose(out);
    if (code)
        print_error(&err);
    else
        print_facts(&arena, joined.footer);
    while (count)
        close_file(&files[--count]);
    mp_arena_fini(&arena);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "facts") == 0)
        return facts(argv + 2, argc - 2);
    if (argc > 3 && strcmp(argv[1], "join") == 0)
        return join(argv + 2, argv + argc);
    fprintf(stderr,
            "usage: parquet-footer-tool facts FILE... | join OUT [OPTION...] FILE[:ID]...\n");
    return 2;
}
