#include "lake/ducklake/transform.h"
#include "lake/partition_by.h"

#include <assert.h>
#include <stdio.h>

static const char *const names[] = {
    [MP_TRANSFORM_IDENTITY] = "identity", [MP_TRANSFORM_YEAR] = "year",
    [MP_TRANSFORM_MONTH] = "month",       [MP_TRANSFORM_DAY] = "day",
    [MP_TRANSFORM_HOUR] = "hour",         [MP_TRANSFORM_BUCKET] = "bucket",
};
#define NAMES (sizeof(names) / sizeof(*names))

static const char *name_of(uint8_t transform)
{
    assert(transform < NAMES && names[transform]);
    return names[transform];
}

void mp_dl_transform_text(uint8_t transform, uint32_t buckets, char ret[MP_DL_TRANSFORM_TEXT])
{
    if (transform == MP_TRANSFORM_BUCKET)
        snprintf(ret, MP_DL_TRANSFORM_TEXT, "bucket(%u)", buckets);
    else
        snprintf(ret, MP_DL_TRANSFORM_TEXT, "%s", name_of(transform));
}

bool mp_dl_transform_parse(struct mp_str text, uint8_t *ret, uint32_t *ret_buckets)
{
    struct mp_str bucket = MP_STR("bucket(");

    *ret_buckets = 0;
    for (uint8_t i = 0; i < NAMES; i++) {
        if (!names[i] || i == MP_TRANSFORM_BUCKET || !mp_str_eq_fold(text, mp_str_c(names[i])))
            continue;
        *ret = i;
        return true;
    }
    if (text.size < bucket.size + 2 || text.data[text.size - 1] != ')' ||
        !mp_str_eq_fold(mp_str_n(text.data, bucket.size), bucket))
        return false;
    *ret = MP_TRANSFORM_BUCKET;
    return mp_partition_buckets(mp_str_n(text.data + bucket.size, text.size - bucket.size - 1),
                                ret_buckets);
}

struct mp_str mp_dl_transform_directory(struct mp_arena *arena, uint8_t transform,
                                        struct mp_str column, const struct mp_str *used,
                                        uint32_t used_count)
{
    struct mp_str name = transform == MP_TRANSFORM_IDENTITY ? column : mp_str_c(name_of(transform));

    for (uint32_t i = 0; i < used_count; i++)
        if (mp_str_eq(used[i], name))
            return mp_str_c(
                mp_arena_printf(arena, "%.*s_%.*s", MP_STR_ARG(name), MP_STR_ARG(column)));
    return mp_arena_str(arena, name);
}
