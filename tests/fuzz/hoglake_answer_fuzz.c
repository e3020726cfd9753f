/* tests/fuzz/hoglake_answer_fuzz.c - any bytes as what a hoglake server answers.
 *
 * With libFuzzer by `tests/run fuzz`; without it (no -DMP_LIBFUZZER, any compiler) the program runs
 * the files it is given, once each.
 *
 * For every input that is JSON:
 *   Z1  each reader ends with a fault or with what it read; texts hold no NUL byte
 *   Z2  columns come in the order of their ordinals
 *   Z3  a table that was read is printed so that it reads and prints the same again
 */
#include "fuzz/fuzz.h"
#include "lake/hoglake/wire.h"

static void check_text(struct mp_str text)
{
    MUST(!text.size || !memchr(text.data, 0, text.size)); /* Z1 */
}

/* Whether printing keeps all there is of the columns: an id of 0 is how a definition looks. */
static bool check_columns(const struct mp_wire_column *columns, uint32_t count)
{
    bool whole = true;

    for (uint32_t i = 0; i < count; i++) {
        check_text(columns[i].name);
        check_text(columns[i].type);
        MUST(i == 0 || columns[i - 1].ordinal <= columns[i].ordinal); /* Z2 */
        whole &= columns[i].field_id != 0;
        whole &= check_columns(columns[i].children, columns[i].child_count);
    }
    return whole;
}

static void check_table(const struct mp_wire_table *table)
{
    struct mp_buf first = MP_BUF_INIT(SIZE_MAX / 2), second = MP_BUF_INIT(SIZE_MAX / 2);
    struct mp_arena arena;
    struct mp_wire_reader reader = {.arena = &arena, .answer = true};
    struct mp_wire_table again;
    json_t *json;

    check_text(table->uuid);
    if (!check_columns(table->columns, table->column_count))
        return;
    mp_arena_init(&arena, 0);
    mp_wire_table_print(&first, table);
    json = json_loadb(first.data, first.size, 0, NULL);
    MUST(json);
    mp_wire_table_read(&reader, json, &again);
    MUST(!reader.failed);
    mp_wire_table_print(&second, &again);
    MUST(mp_str_eq(mp_buf_str(&first), mp_buf_str(&second))); /* Z3 */
    json_decref(json);
    mp_buf_fini(&first);
    mp_buf_fini(&second);
    mp_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *json = json_loadb((const char *)data, size, 0, NULL);
    struct mp_arena arena;
    struct mp_wire_table table;
    struct mp_wire_catalog catalog;
    struct mp_wire_options options;
    struct mp_wire_creation creation;
    struct mp_wire_commit_result result;
    struct mp_wire_error error;

    if (!json)
        return 0;
    mp_arena_init(&arena, 0);
#define READER                                                                                     \
    &(struct mp_wire_reader)                                                                       \
    {                                                                                              \
        .arena = &arena, .answer = true                                                            \
    }
    struct mp_wire_reader reader = {.arena = &arena, .answer = true};

    mp_wire_table_read(&reader, json, &table);
    if (!reader.failed)
        check_table(&table);
    mp_wire_catalog_read(READER, json, &catalog);
    (void)mp_wire_names_hold(READER, json, MP_STR("n"));
    mp_wire_options_read(READER, json, &options);
    mp_wire_creation_read(READER, json, &creation);
    mp_wire_commit_result_read(READER, json, &result);
    mp_wire_error_read(json, &error);
    json_decref(json);
    mp_arena_fini(&arena);
    return 0;
}

#include "fuzz/replay.h"
