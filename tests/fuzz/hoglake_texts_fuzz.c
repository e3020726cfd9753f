/* tests/fuzz/hoglake_texts_fuzz.c - the texts that the hoglake destination reads: the partition
 * setting, and names, types and parameters that a catalog answered.
 *
 * A setting that is taken names a spec that prints as a setting with the same spec. A name that may
 * be a column's is one in the setting too. Both grammars, types and base64 only must not fall over;
 * base64 that is read prints as it was.
 */
#include "fuzz/fuzz.h"
#include "base/base64.h"
#include "lake/hoglake/body.h"
#include "lake/partition_by.h"

static void must(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

/* A table that has the columns which the keys name, each of a type that goes with all transforms
 * but one. */
static struct mp_schema schema_of(struct mp_arena *arena, const struct mp_partition_key *keys,
                                  uint32_t count)
{
    struct mp_live_column *columns = mp_arena_take(arena, (count + 1) * sizeof(*columns));

    for (uint32_t i = 0; i < count; i++)
        columns[i] = (struct mp_live_column){
            .name = keys[i].column, .type = MP_TYPE(TIMESTAMPTZ), .field_id = (int32_t)i + 1};
    return (struct mp_schema){.columns = columns, .column_count = count};
}

static void setting(struct mp_arena *arena, struct mp_str text)
{
    const struct mp_partition_key *keys;
    struct mp_partition_field *fields, *again;
    struct mp_buf printed = MP_BUF_INIT(SIZE_MAX);
    uint32_t count, again_count;
    struct mp_schema schema;

    mp_partition_by_parse(arena, text, MP_PARTITION_BY_DUCKLAKE, NULL, &keys, &count);
    if (mp_partition_by_parse(arena, text, MP_PARTITION_BY_HOGLAKE, NULL, &keys, &count))
        return;
    schema = schema_of(arena, keys, count);
    must(!mp_hog_partition_wanted(arena, text, &schema, NULL, &fields, &count), "not wanted");
    mp_hog_partition_print(&schema, fields, count, &printed);
    if (count) {
        must(!mp_hog_partition_wanted(arena, mp_buf_str(&printed), &schema, NULL, &again,
                                      &again_count),
             "not read again");
        must(again_count == count, "another number of fields");
        for (uint32_t i = 0; i < count; i++)
            must(again[i].field_id == fields[i].field_id &&
                     again[i].transform == fields[i].transform &&
                     again[i].buckets == fields[i].buckets,
                 "another field");
    }
    mp_buf_fini(&printed);
}

static void names(struct mp_arena *arena, struct mp_str text)
{
    const struct mp_partition_key *keys;
    struct mp_buf printed = MP_BUF_INIT(SIZE_MAX);
    struct mp_type type;
    struct mp_str bytes;
    uint32_t count;

    if (mp_hog_name_ok(text))
        must(!mp_partition_by_parse(arena, text, MP_PARTITION_BY_HOGLAKE, NULL, &keys, &count) &&
                 count == 1 && mp_str_eq(keys[0].column, text),
             "no column in the setting");
    if (mp_hog_type_of_name(text, mp_str_n(NULL, 0), &type))
        must(mp_str_eq_fold(text, mp_str_c(mp_hog_type_name(type))), "another type");
    if (mp_hog_type_of_name(MP_STR("decimal"), text, &type))
        must(type.precision >= 1 && type.precision <= 38 && type.scale <= type.precision,
             "a decimal that is none");
    if (mp_base64_read(arena, text, &bytes)) {
        mp_base64_print(&printed, bytes);
        must(printed.size == text.size, "base64 of another size");
    }
    mp_buf_fini(&printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mp_str text = mp_str_n(data, size);
    struct mp_arena arena;

    mp_arena_init(&arena, 0);
    setting(&arena, text);
    names(&arena, text);
    mp_arena_fini(&arena);
    return 0;
}

#include "fuzz/replay.h"
