#include "lake/partition_text.h"

struct mp_str mp_lake_partition_text(struct mp_arena *arena, struct mp_str value)
{
    size_t nuls = 0, size = 0;
    char *text;

    for (size_t i = 0; i < value.size; i++)
        nuls += value.data[i] == 0;
    if (nuls == 0)
        return value;
    text = mp_arena_take(arena, value.size + 2 * nuls);
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i]) {
            text[size++] = value.data[i];
        } else {
            memcpy(text + size, "\xe2\x90\x80", 3);
            size += 3;
        }
    }
    return (struct mp_str){text, size};
}
