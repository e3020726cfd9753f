/* json/keys.h - the names of top-level keys, each with a small number.
 *
 * Events of one topic repeat their keys in the same order. So each key remembers one that came
 * after it, and the reader first compares the bytes of that guess, then of the guesses behind it
 * (some keys are left out of some events); only then it asks the hash table, and mends the guess.
 * So the guesses grow into the order of all keys, and those left out cost a comparison. Names are
 * the sender's to choose, so the hash is keyed with random bits of the process (SipHash-1-3): no
 * list of names is slow for all of us.
 *
 * Life     init -> (next, is | guess_further | find | intern, follow)* -> fini
 * Memory   names in an arena, keys and slots in two arrays that double; all freed by fini.
 * Always   K1 the n-th name ever interned has number n
 *          K2 slots is a power of two and at most half full
 *          K3 a name is there once
 * After    Aumasson, Bernstein: SipHash, a Fast Short-Input PRF. Indocrypt 2012.
 */
#ifndef MP_JSON_KEYS_H
#define MP_JSON_KEYS_H

#include "base/arena.h"
#include "base/str.h"

#define MP_JSON_KEY_NONE UINT32_MAX

struct mp_json_key {
    const char *name;
    uint32_t size;
    uint32_t next;   /* the guess: a key that came after it, or NONE */
    uint32_t serial; /* of the last record that had it */
    uint32_t field;  /* its place there */
};

struct mp_json_key_slot {
    uint32_t hash;
    uint32_t key; /* plus one; 0 is empty */
};

struct mp_json_keys {
    struct mp_json_key *keys;
    struct mp_json_key_slot *slots;
    uint32_t count, capacity; /* keys */
    uint32_t slot_count;      /* K2 */
    uint32_t first;           /* the guess for the first key, or NONE */
    uint64_t seed[2];
    struct mp_arena names;
};

void mp_json_keys_init(struct mp_json_keys *keys);
void mp_json_keys_fini(struct mp_json_keys *keys);
size_t mp_json_keys_bytes(const struct mp_json_keys *keys);
/* Gives the number of a name, or NONE. */
uint32_t mp_json_keys_find(const struct mp_json_keys *keys, struct mp_str name);
/* Copies a name that is not there; gives its number. */
uint32_t mp_json_keys_intern(struct mp_json_keys *keys, struct mp_str name);
/* Gives the number of the name when it is one of the guesses behind the first one after
 * `previous`, else NONE. */
uint32_t mp_json_keys_guess_further(const struct mp_json_keys *keys, uint32_t previous,
                                    struct mp_str name);
/* From now on `key` is the guess after `previous`. */
void mp_json_keys_follow(struct mp_json_keys *keys, uint32_t previous, uint32_t key);
/* No record was seen: when the serial wraps around. */
void mp_json_keys_forget_serials(struct mp_json_keys *keys);

/* Equality for short names: words of 8 or 4 bytes from both ends, no call. */
static inline bool mp_json_bytes_equal(const char *a, const char *b, size_t size)
{
    if (size >= 8) {
        uint64_t x, y;

        for (size_t at = 0; at + 8 < size; at += 8) {
            memcpy(&x, a + at, 8);
            memcpy(&y, b + at, 8);
            if (x != y)
                return false;
        }
        memcpy(&x, a + size - 8, 8);
        memcpy(&y, b + size - 8, 8);
        return x == y;
    }
    if (size >= 4) {
        uint32_t x[2], y[2];

        memcpy(&x[0], a, 4);
        memcpy(&y[0], b, 4);
        memcpy(&x[1], a + size - 4, 4);
        memcpy(&y[1], b + size - 4, 4);
        return x[0] == y[0] && x[1] == y[1];
    }
    for (size_t at = 0; at < size; at++)
        if (a[at] != b[at])
            return false;
    return true;
}

/* Is it the name of `key`, which may be NONE? */
static inline bool mp_json_keys_is(const struct mp_json_keys *keys, uint32_t key,
                                   struct mp_str name)
{
    return key != MP_JSON_KEY_NONE && keys->keys[key].size == name.size &&
           mp_json_bytes_equal(keys->keys[key].name, name.data, name.size);
}

/* Gives the guess for the key after `previous` (NONE: for the first), or NONE. */
static inline uint32_t mp_json_keys_next(const struct mp_json_keys *keys, uint32_t previous)
{
    return previous == MP_JSON_KEY_NONE ? keys->first : keys->keys[previous].next;
}

#endif
