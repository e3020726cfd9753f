#include "column/schema.h"

static void *copy(struct mp_arena *arena, const void *items, size_t bytes)
{
    return bytes ? memcpy(mp_arena_take(arena, bytes), items, bytes) : NULL;
}

void mp_schema_copy(struct mp_arena *arena, const struct mp_schema *schema, struct mp_schema *ret)
{
    struct mp_live_column *columns =
        copy(arena, schema->columns, schema->column_count * sizeof(*columns));

    for (uint32_t i = 0; i < schema->column_count; i++)
        columns[i].name = mp_arena_str(arena, columns[i].name);
    *ret = *schema;
    ret->columns = columns;
    ret->partition =
        copy(arena, schema->partition, schema->partition_count * sizeof(*schema->partition));
    ret->sort = copy(arena, schema->sort, schema->sort_count * sizeof(*schema->sort));
}
