#include "json/keys.h"

#include "base/mem.h"

#include <assert.h>
#include <sys/auxv.h>

#define KEYS_FIRST 64u
/* Keys in a row that may be left out before the table is asked: asking costs as much as some five
 * comparisons. */
#define LEFT_OUT_MAX 4

static uint64_t rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

/* SipHash-1-3, folded to 32 bits. */
static uint32_t hash(const uint64_t seed[2], struct mp_str name)
{
    uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du,
                     seed[0] ^ 0x6c7967656e657261u, seed[1] ^ 0x7465646279746573u};
    uint64_t last = (uint64_t)name.size << 56, word = 0;
    size_t at;

    for (at = 0; at + 8 <= name.size; at += 8) {
        memcpy(&word, name.data + at, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    for (unsigned k = 0; at + k < name.size; k++)
        last |= (uint64_t)(unsigned char)name.data[at + k] << (8 * k);
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    sip_round(v);
    sip_round(v);
    sip_round(v);
    last = v[0] ^ v[1] ^ v[2] ^ v[3];
    return (uint32_t)(last ^ last >> 32);
}

void mp_json_keys_init(struct mp_json_keys *keys)
{
    const void *random = (const void *)getauxval(AT_RANDOM); /* 16 bytes, from the kernel */

    *keys = (struct mp_json_keys){.first = MP_JSON_KEY_NONE, .capacity = KEYS_FIRST};
    if (random)
        memcpy(keys->seed, random, sizeof(keys->seed));
    keys->keys = mp_alloc_array(keys->capacity, sizeof(*keys->keys));
    keys->slot_count = 2 * KEYS_FIRST;
    keys->slots = mp_alloc_array(keys->slot_count, sizeof(*keys->slots));
    mp_arena_init(&keys->names, 0);
}

void mp_json_keys_fini(struct mp_json_keys *keys)
{
    mp_free(keys->keys);
    mp_free(keys->slots);
    mp_arena_fini(&keys->names);
}

size_t mp_json_keys_bytes(const struct mp_json_keys *keys)
{
    return keys->names.bytes + keys->capacity * sizeof(*keys->keys) +
           keys->slot_count * sizeof(*keys->slots);
}

uint32_t mp_json_keys_find(const struct mp_json_keys *keys, struct mp_str name)
{
    uint32_t wanted = hash(keys->seed, name), mask = keys->slot_count - 1;

    for (uint32_t at = wanted & mask; keys->slots[at].key; at = (at + 1) & mask) {
        uint32_t key = keys->slots[at].key - 1;

        if (keys->slots[at].hash == wanted && mp_json_keys_is(keys, key, name))
            return key;
    }
    return MP_JSON_KEY_NONE;
}

static void put_slot(struct mp_json_keys *keys, struct mp_json_key_slot slot)
{
    uint32_t mask = keys->slot_count - 1, at = slot.hash & mask;

    while (keys->slots[at].key)
        at = (at + 1) & mask;
    keys->slots[at] = slot;
}

/* Twice the keys and twice the slots: K2. */
static void grow(struct mp_json_keys *keys)
{
    struct mp_json_key_slot *old = keys->slots;
    uint32_t old_count = keys->slot_count;

    assert(keys->capacity < (uint32_t)1 << 30);
    keys->capacity *= 2;
    keys->keys = mp_realloc(keys->keys, keys->capacity * sizeof(*keys->keys));
    keys->slot_count *= 2;
    keys->slots = mp_alloc_array(keys->slot_count, sizeof(*keys->slots));
    for (uint32_t at = 0; at < old_count; at++)
        if (old[at].key)
            put_slot(keys, old[at]);
    mp_free(old);
}

uint32_t mp_json_keys_intern(struct mp_json_keys *keys, struct mp_str name)
{
    uint32_t key = keys->count;

    assert(name.size < UINT32_MAX);
    if (keys->count == keys->capacity)
        grow(keys);
    name = mp_arena_str(&keys->names, name);
    keys->keys[key] = (struct mp_json_key){
        .name = name.data, .size = (uint32_t)name.size, .next = MP_JSON_KEY_NONE};
    keys->count++;
    put_slot(keys, (struct mp_json_key_slot){.hash = hash(keys->seed, name), .key = key + 1});
    return key;
}

uint32_t mp_json_keys_guess_further(const struct mp_json_keys *keys, uint32_t previous,
                                    struct mp_str name)
{
    uint32_t key = mp_json_keys_next(keys, previous);

    for (int left_out = 0; left_out < LEFT_OUT_MAX && key != MP_JSON_KEY_NONE; left_out++) {
        key = keys->keys[key].next;
        if (mp_json_keys_is(keys, key, name))
            return key;
    }
    return MP_JSON_KEY_NONE;
}

void mp_json_keys_follow(struct mp_json_keys *keys, uint32_t previous, uint32_t key)
{
    if (previous == MP_JSON_KEY_NONE)
        keys->first = key;
    else
        keys->keys[previous].next = key;
}

void mp_json_keys_forget_serials(struct mp_json_keys *keys)
{
    for (uint32_t key = 0; key < keys->count; key++)
        keys->keys[key].serial = 0;
}
