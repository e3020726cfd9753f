/* json/json.c - the front door of the scanner: see json.h for what it gives, json_priv.h for how
 * the files behind it divide the work. */
#include "json/json_priv.h"

#include "base/mem.h"
#include "json/text.h"

#include <assert.h>

#define FIELDS_FIRST 64u
/* Room for a record of Kafka's default limit stays for good; it is some 10 MiB. */
#define ROOM_KEPT   ((size_t)3 << 19)
#define FIELDS_KEPT ((uint32_t)1 << 17)

static struct mp_json *new_with(mp_json_index_fn *fill_index, const char *isa)
{
    struct mp_json *json = mp_alloc(sizeof(*json));

    json->fill_index = fill_index;
    json->isa = isa;
    json->field_capacity = FIELDS_FIRST;
    json->fields = mp_alloc_array(json->field_capacity, sizeof(*json->fields));
    mp_json_keys_init(&json->keys);
    return json;
}

static bool always(void)
{
    return true;
}

struct mp_json *mp_json_new_nth(unsigned nth)
{
    static const struct {
        mp_json_index_fn *fill_index;
        bool (*runs)(void);
        const char *isa;
    } scanners[] = {
#ifdef __x86_64__
        {mp_json_index_avx512, mp_json_has_avx512, "avx512"},
        {mp_json_index_avx2, mp_json_has_avx2, "avx2"},
#endif
#ifdef __aarch64__
        {mp_json_index_neon, always, "neon"},
#endif
        {mp_json_index_portable, always, "portable"},
    };

    for (size_t i = 0; i < sizeof(scanners) / sizeof(*scanners); i++)
        if (scanners[i].runs() && nth-- == 0)
            return new_with(scanners[i].fill_index, scanners[i].isa);
    return NULL;
}

struct mp_json *mp_json_new(void)
{
    return mp_json_new_nth(0);
}

static void free_room(struct mp_json *json)
{
    mp_free(json->index.closers);
    mp_free(json->index.escapes);
    mp_free(json->cuts);
    mp_free(json->scratch);
}

void mp_json_free(struct mp_json *json)
{
    if (!json)
        return;
    mp_json_keys_fini(&json->keys);
    free_room(json);
    mp_free(json->fields);
    mp_free(json->nodes);
    mp_free(json);
}

void mp_json_make_room(struct mp_json *json, size_t bytes)
{
    bool outsized = json->room_bytes > ROOM_KEPT && bytes <= ROOM_KEPT;
    size_t entries;

    if (bytes <= json->room_bytes && !outsized)
        return;
    if (outsized && json->field_capacity > FIELDS_KEPT) {
        json->field_capacity = FIELDS_FIRST;
        mp_free(json->fields);
        json->fields = mp_alloc_array(json->field_capacity, sizeof(*json->fields));
    }
    if (bytes <= ROOM_KEPT) /* records a bit larger than this one come soon */
        bytes = bytes + bytes / 2 < ROOM_KEPT ? bytes + bytes / 2 : ROOM_KEPT;
    entries = bytes / 2 + MP_JSON_INDEX_SLACK;
    free_room(json);
    json->index.closers = mp_alloc_array(entries, sizeof(*json->index.closers));
    json->index.escapes = mp_alloc_array(entries, sizeof(*json->index.escapes));
    json->cuts = mp_alloc_array(entries, sizeof(*json->cuts));
    json->scratch = mp_alloc(bytes + MP_JSON_TEXT_SLACK);
    json->room_bytes = bytes;
}

/* Tells this record's keys from all before. */
static void next_serial(struct mp_json *json)
{
    json->serial++;
    if (json->serial == 0) {
        mp_json_keys_forget_serials(&json->keys);
        json->serial = 1;
    }
}

enum mp_json_fault mp_json_scan(struct mp_json *json, struct mp_str record,
                                struct mp_json_record *ret, size_t *ret_at)
{
    size_t from = 0, end = record.size;
    enum mp_json_fault fault;

    assert(record.size < UINT32_MAX); /* positions are 32 bits; Kafka's own limit is 31 */
    while (end > 0 && mp_json_is_space(record.data[end - 1]))
        end--;
    while (from < end && mp_json_is_space(record.data[from]))
        from++;

    json->field_count = 0;
    if (end - from >= 2 && record.data[from] == '{' && record.data[end - 1] == '}') {
        mp_json_make_room(json, end);
        next_serial(json);
        if (json->fill_index(&json->index, record.data, end) &&
            mp_json_walk(json, record.data, from, end)) {
            *ret = (struct mp_json_record){json->fields, json->field_count};
            *ret_at = 0;
            return MP_JSON_OK;
        }
    }
    fault = mp_json_diagnose(record, ret_at);
    assert(fault != MP_JSON_OK); /* S2 */
    return fault;
}

const char *mp_json_fault_name(enum mp_json_fault fault)
{
    static const char *const names[MP_JSON_FAULTS] = {
        [MP_JSON_OK] = "ok",
        [MP_JSON_EMPTY] = "empty",
        [MP_JSON_SYNTAX] = "syntax",
        [MP_JSON_UTF8] = "utf8",
        [MP_JSON_CONTROL] = "control",
        [MP_JSON_ESCAPE] = "escape",
        [MP_JSON_SURROGATE] = "surrogate",
        [MP_JSON_NUMBER_RANGE] = "number_range",
        [MP_JSON_DEPTH] = "depth",
        [MP_JSON_NOT_OBJECT] = "not_object",
    };

    assert((unsigned)fault < MP_JSON_FAULTS);
    return names[fault];
}

uint32_t mp_json_key_count(const struct mp_json *json)
{
    return json->keys.count;
}

struct mp_str mp_json_key_name(const struct mp_json *json, uint32_t key)
{
    assert(key < json->keys.count);
    return (struct mp_str){json->keys.keys[key].name, json->keys.keys[key].size};
}

size_t mp_json_key_bytes(const struct mp_json *json)
{
    return mp_json_keys_bytes(&json->keys);
}

void mp_json_keys_reset(struct mp_json *json)
{
    mp_json_keys_fini(&json->keys);
    mp_json_keys_init(&json->keys);
}

const char *mp_json_isa(const struct mp_json *json)
{
    return json->isa;
}
