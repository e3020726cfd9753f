/* parquet/dict.c - the distinct values of a chunk, and for every value its index there.
 *
 * A dictionary costs a hash and a look-up a value and saves the codec most of the bytes, where
 * values repeat; where they do not, it is pure cost. So a chunk is judged early and again whenever
 * twice as many values were seen: the entries of the first and of the second half of what was seen
 * tell how fast news dry up, and the entries of the whole chunk are predicted from that as a
 * geometric series. Unique ids are given up after a thousand values, 2,000 teams are kept though
 * 80 % of the first thousand values are new.
 *
 * Floats are distinct by their bits, so NaNs and zeros come back as they were.
 *
 * After  Parquet "Encodings": "Dictionary Encoding". Hash: XXH3 for texts; the finalizer of
 *        MurmurHash3 (two multiplications) for fixed values. Slots: open addressing, linear.
 */
#include "parquet/parquet_priv.h"

#include "base/mem.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    SLOTS_MIN = 256,
    PROBES_MAX = 128, /* more means values made to collide: no dictionary then */
    CHECK_MIN = 64,   /* values before the first judgement */
    CHECK_MAX = 1024,
    OVERHEAD = 64, /* bytes of a dictionary page's header and footer entry, about */
};

#define NO_ENTRY UINT32_MAX

void mp_dict_fini(struct mp_dict *dict)
{
    mp_free(dict->slots);
    mp_free(dict->bytes);
    mp_free(dict->starts);
    mp_free(dict->seen);
    mp_free(dict->indices);
}

static void clear_slots(struct mp_dict *dict, uint32_t slot_count)
{
    dict->slots =
        mp_scratch_grow(dict->slots, &dict->slots_capacity, slot_count, sizeof(*dict->slots));
    memset(dict->slots, 0, slot_count * sizeof(*dict->slots));
    dict->slot_count = slot_count;
}

void mp_dict_begin(struct mp_dict *dict, uint32_t values, size_t bytes_max)
{
    uint32_t check = CHECK_MIN;

    while (check < CHECK_MAX && check < values / 8)
        check *= 2;
    clear_slots(dict, SLOTS_MIN);
    dict->indices =
        mp_scratch_grow(dict->indices, &dict->indices_capacity, values, sizeof(*dict->indices));
    dict->size = 0;
    dict->bytes_max = bytes_max;
    dict->count = 0;
    dict->total = values;
    dict->value_count = 0;
    dict->value_bytes = 0;
    dict->half_count = 0;
    dict->half_at = check / 2;
    dict->check_at = check;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Twice as many slots; hashes are kept in them, so no value is looked at again. */
static void widen(struct mp_dict *dict)
{
    uint32_t old_count = dict->slot_count;
    struct mp_dict_slot *old = dict->slots;
    uint32_t mask = old_count * 2 - 1;

    dict->slots = NULL;
    dict->slots_capacity = 0;
    clear_slots(dict, old_count * 2);
    for (uint32_t i = 0; i < old_count; i++) {
        uint32_t at = old[i].hash & mask;

        if (!old[i].entry)
            continue;
        while (dict->slots[at].entry)
            at = (at + 1) & mask;
        dict->slots[at] = old[i];
    }
    mp_free(old);
}

/* Adds the value, which slot `at` is free for. NO_ENTRY: the dictionary would be too large. */
static uint32_t insert(struct mp_dict *dict, uint32_t at, uint32_t hash, const char *value,
                       size_t size)
{
    uint32_t entry = dict->count;

    if (size > dict->bytes_max - dict->size)
        return NO_ENTRY;
    dict->bytes = mp_scratch_grow(dict->bytes, &dict->bytes_capacity, dict->size + size, 1);
    dict->starts =
        mp_scratch_grow(dict->starts, &dict->starts_capacity, entry + 1, sizeof(*dict->starts));
    dict->seen = mp_scratch_grow(dict->seen, &dict->seen_capacity, entry + 1, 1);
    memcpy(dict->bytes + dict->size, value, size);
    dict->starts[entry] = (uint32_t)dict->size;
    dict->size += size;
    dict->slots[at] = (struct mp_dict_slot){hash, ++dict->count};
    if (dict->count > dict->slot_count / 2)
        widen(dict);
    return entry;
}

static inline bool text_is(const struct mp_dict *dict, uint32_t entry, const char *text,
                           size_t size)
{
    const char *ours = dict->bytes + dict->starts[entry];

    return memcmp(ours, text, 4) == 0 && memcmp(ours + 4, text + 4, size - 4) == 0;
}

static uint32_t find_text(struct mp_dict *dict, const char *text, size_t size)
{
    uint32_t mask = dict->slot_count - 1;
    uint32_t hash, at;

    if (size > dict->bytes_max)
        return NO_ENTRY;
    hash = (uint32_t)XXH3_64bits(text + 4, size - 4);
    at = hash & mask;
    for (uint32_t probes = 0; probes < PROBES_MAX; probes++, at = (at + 1) & mask) {
        struct mp_dict_slot slot = dict->slots[at];

        if (!slot.entry)
            return insert(dict, at, hash, text, size);
        if (slot.hash == hash && text_is(dict, slot.entry - 1, text, size))
            return slot.entry - 1;
    }
    return NO_ENTRY;
}

static inline uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

static inline uint32_t hash_fixed(const char *value, uint32_t width)
{
    uint64_t first = 0, second = 0;

    if (width == 4) {
        memcpy(&first, value, 4);
    } else {
        memcpy(&first, value, 8);
        if (width == 16)
            memcpy(&second, value + 8, 8);
    }
    return (uint32_t)mix(width == 16 ? mix(first) + second : first);
}

/* Inlined for each width, so that comparing is one instruction or two. */
static inline __attribute__((always_inline)) uint32_t find_fixed(struct mp_dict *dict,
                                                                 const char *value, uint32_t width)
{
    uint32_t mask = dict->slot_count - 1;
    uint32_t hash = hash_fixed(value, width);
    uint32_t at = hash & mask;

    for (uint32_t probes = 0; probes < PROBES_MAX; probes++, at = (at + 1) & mask) {
        struct mp_dict_slot slot = dict->slots[at];

        if (!slot.entry)
            return insert(dict, at, hash, value, width);
        if (slot.hash == hash &&
            memcmp(dict->bytes + (size_t)(slot.entry - 1) * width, value, width) == 0)
            return slot.entry - 1;
    }
    return NO_ENTRY;
}

static inline __attribute__((always_inline)) bool
index_fixed(struct mp_dict *dict, const char *values, uint32_t count, uint32_t width)
{
    uint32_t *indices = dict->indices + dict->value_count;

    for (uint32_t i = 0; i < count; i++) {
        indices[i] = find_fixed(dict, values + (size_t)i * width, width);
        if (indices[i] == NO_ENTRY)
            return false;
    }
    return true;
}

/* ---- does it pay? ---------------------------------------------------------------------------- */

static double power(double base, uint32_t exponent)
{
    double result = 1;

    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

/* Entries of the whole chunk. Between half and now, `late` entries were new where `early` had been
 * before; the halves to come are taken to go on by that ratio. */
static double predicted_entries(const struct mp_dict *dict)
{
    uint32_t half = dict->value_count / 2;
    double early = dict->half_count;
    double late = dict->count - dict->half_count;
    uint32_t halves = (dict->total - dict->value_count) / (half ? half : 1);
    double ratio;

    if (dict->value_count == dict->total)
        return dict->count;
    if (late >= early)
        return dict->count + late * halves;
    ratio = late / early;
    return dict->count + late * ratio * (1 - power(ratio, halves)) / (1 - ratio);
}

static bool pays(const struct mp_dict *dict)
{
    double entries = predicted_entries(dict);
    double dictionary = entries * (double)dict->size / dict->count;
    double plain = (double)dict->value_bytes / dict->value_count * dict->total;
    unsigned width = mp_rle_width(entries < UINT32_MAX ? (uint32_t)entries : UINT32_MAX);
    double indices = (double)dict->total * width / 8;

    return dictionary <= (double)dict->bytes_max &&
           dictionary + indices + OVERHEAD <= plain * 3 / 4;
}

/* Called whenever values were added. */
static bool go_on(struct mp_dict *dict)
{
    if (dict->value_count == dict->half_at)
        dict->half_count = dict->count;
    if (dict->value_count == dict->total)
        return pays(dict);
    if (dict->value_count < dict->check_at)
        return true;
    if (!pays(dict))
        return false;
    dict->half_at = dict->check_at;
    dict->half_count = dict->count;
    dict->check_at = dict->check_at <= UINT32_MAX / 2 ? dict->check_at * 2 : UINT32_MAX;
    return true;
}

/* Values that may be added before go_on wants to be asked. */
static uint32_t until_asked(const struct mp_dict *dict)
{
    uint32_t stop = dict->value_count < dict->half_at ? dict->half_at : dict->check_at;

    return stop - dict->value_count;
}

/* ---- a page's values ------------------------------------------------------------------------- */

static bool add_texts(struct mp_dict *dict, struct mp_source *source, uint32_t count)
{
    const char *texts[MP_BATCH];

    assert(count <= MP_BATCH);
    mp_source_texts(source, count, texts);
    for (uint32_t i = 0; i < count; i++) {
        size_t size = 4 + (size_t)mp_text_bytes(texts[i]);
        uint32_t entry = find_text(dict, texts[i], size);

        if (entry == NO_ENTRY)
            return false;
        dict->value_bytes += size;
        dict->indices[dict->value_count + i] = entry;
        dict->seen[entry] = 1;
    }
    dict->value_count += count;
    return true;
}

static bool add_fixed(struct mp_dict *dict, struct mp_source *source, uint32_t count,
                      struct mp_bounds *bounds)
{
    uint32_t width = source->layout.width;

    while (count) {
        const char *values;
        uint32_t lent = mp_source_fixed(source, count, &values);
        bool fits = width == 4   ? index_fixed(dict, values, lent, 4)
                    : width == 8 ? index_fixed(dict, values, lent, 8)
                                 : index_fixed(dict, values, lent, 16);

        if (!fits)
            return false;
        mp_bounds_add_fixed(bounds, source->layout.order, values, lent);
        dict->value_bytes += (uint64_t)lent * width;
        dict->value_count += lent;
        count -= lent;
    }
    return true;
}

/* The extremes of the entries on the page are those of its values. */
static void bounds_of_seen(const struct mp_dict *dict, struct mp_bounds *bounds)
{
    for (uint32_t entry = 0; entry < dict->count; entry++) {
        const char *text = dict->bytes + dict->starts[entry];

        if (dict->seen[entry])
            mp_bounds_add_text(bounds, mp_str_n(text + 4, mp_text_bytes(text)));
    }
}

bool mp_dict_add(struct mp_dict *dict, struct mp_source *source, uint32_t count,
                 struct mp_bounds *bounds)
{
    bool text = source->layout.width == 0;

    assert(count <= dict->total - dict->value_count);
    *bounds = (struct mp_bounds){0};
    if (text && dict->count)
        memset(dict->seen, 0, dict->count);
    for (uint32_t step; count; count -= step) {
        uint32_t asked = until_asked(dict);

        step = count < asked ? count : asked;
        if (text && step > MP_BATCH)
            step = MP_BATCH;
        if (text ? !add_texts(dict, source, step) : !add_fixed(dict, source, step, bounds))
            return false;
        if (!go_on(dict))
            return false;
    }
    if (text)
        bounds_of_seen(dict, bounds);
    mp_bounds_close(bounds, source->layout.order);
    return true;
}
