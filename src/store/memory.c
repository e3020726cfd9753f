/* store/memory.c - a sorted array of objects under one lock. */
#include "store/memory.h"

#include "store/store_driver.h"

#include "base/mem.h"

#include <assert.h>
#include <pthread.h>

#define ARMED_MAX 64

struct object {
    struct mp_str key, bytes; /* owned */
};

struct armed {
    enum mp_memory_op op;
    uint64_t ordinal; /* 0: a free place */
    enum mp_memory_fault fault;
};

struct mp_memory_disk {
    pthread_mutex_t lock;
    struct object *objects; /* sorted by key, each key once */
    size_t count, capacity;
    struct armed armed[ARMED_MAX];
    enum mp_memory_fault (*decide)(void *self, enum mp_memory_op op, struct mp_str key,
                                   uint64_t ordinal);
    void *decide_self;
    struct mp_memory_counts counts;
};

struct memory {
    struct mp_store store;
    struct mp_memory_disk *disk;
};

static struct mp_memory_disk *disk_of(struct mp_store *store)
{
    return ((struct memory *)store)->disk;
}

static struct mp_str own(struct mp_str text)
{
    char *copy = mp_alloc(text.size);

    if (text.size)
        memcpy(copy, text.data, text.size);
    return (struct mp_str){copy, text.size};
}

static void disown(struct mp_str text)
{
    mp_free((char *)(uintptr_t)text.data);
}

/* Gives the place of the first key that is not below `key`. */
static size_t lower_bound(const struct mp_memory_disk *disk, struct mp_str key)
{
    size_t low = 0, high = disk->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (mp_str_cmp(disk->objects[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct object *find(struct mp_memory_disk *disk, struct mp_str key)
{
    size_t place = lower_bound(disk, key);
    bool there = place < disk->count && mp_str_eq(disk->objects[place].key, key);

    return there ? &disk->objects[place] : NULL;
}

/* Counts the operation and gives the fault it is to meet. */
static enum mp_memory_fault next_fault(struct mp_memory_disk *disk, enum mp_memory_op op,
                                       struct mp_str key)
{
    uint64_t ordinal = ++disk->counts.ops[op];
    enum mp_memory_fault fault = MP_MEMORY_NO_FAULT;
    struct armed *hit = NULL;

    for (size_t i = 0; i < ARMED_MAX && !hit; i++)
        if (disk->armed[i].ordinal == ordinal && disk->armed[i].op == op)
            hit = &disk->armed[i];
    if (hit) {
        fault = hit->fault;
        hit->ordinal = 0;
    } else if (disk->decide) {
        fault = disk->decide(disk->decide_self, op, key, ordinal);
    }
    disk->counts.faults[op] += fault != MP_MEMORY_NO_FAULT;
    return fault;
}

static enum mp_code fault_error(enum mp_memory_fault fault, struct mp_str key, struct mp_err *err)
{
    static const struct {
        enum mp_code code;
        const char *text;
    } faults[] = {
        [MP_MEMORY_NO_FAULT] = {MP_OK, ""},
        [MP_MEMORY_FAIL] = {MP_IO, "memory store failed as asked"},
        [MP_MEMORY_TIME_OUT] = {MP_TIMEOUT, "memory store timed out as asked"},
        [MP_MEMORY_REFUSE] = {MP_REFUSED, "memory store refused as asked"},
        [MP_MEMORY_LOSE_ANSWER] = {MP_IO, "memory store lost its answer as asked"},
        [MP_MEMORY_CUT] = {MP_IO, "memory store was cut as asked"},
    };

    if (fault == MP_MEMORY_NO_FAULT)
        return MP_OK;
    return mp_err_set(err, faults[fault].code, "%s, key \"%.*s\"", faults[fault].text,
                      MP_STR_ARG(key));
}

static struct mp_str join(const struct mp_store_object *object)
{
    char *bytes = mp_alloc(object->bytes);
    size_t at = 0;

    for (uint32_t i = 0; i < object->piece_count; i++) {
        assert(object->pieces[i].size <= object->bytes - at);
        if (object->pieces[i].size)
            memcpy(bytes + at, object->pieces[i].data, object->pieces[i].size);
        at += object->pieces[i].size;
    }
    assert(at == object->bytes);
    return (struct mp_str){bytes, at};
}

static void keep(struct mp_memory_disk *disk, const struct mp_store_object *object)
{
    struct mp_str bytes = join(object);
    struct object *old = find(disk, object->key);
    size_t place;

    if (old) {
        disk->counts.rewrites += !mp_str_eq(old->bytes, bytes);
        disk->counts.bytes += bytes.size - old->bytes.size;
        disown(old->bytes);
        old->bytes = bytes;
        return;
    }
    if (disk->count == disk->capacity) {
        disk->capacity = disk->capacity ? disk->capacity * 2 : 16;
        disk->objects = mp_realloc(disk->objects, disk->capacity * sizeof(*disk->objects));
    }
    place = lower_bound(disk, object->key);
    memmove(disk->objects + place + 1, disk->objects + place,
            (disk->count - place) * sizeof(*disk->objects));
    disk->objects[place] = (struct object){.key = own(object->key), .bytes = bytes};
    disk->count++;
    disk->counts.objects++;
    disk->counts.bytes += bytes.size;
}

/* One object of a put. *ret_cut: those behind it are not to be tried. */
static enum mp_code put_one(struct mp_memory_disk *disk, const struct mp_store_object *object,
                            bool *ret_cut, struct mp_err *err)
{
    enum mp_code code = mp_store_key_check(object->key, err);
    enum mp_memory_fault fault;

    if (code)
        return code;
    fault = next_fault(disk, MP_MEMORY_PUT, object->key);
    if (fault == MP_MEMORY_NO_FAULT || fault == MP_MEMORY_LOSE_ANSWER)
        keep(disk, object);
    *ret_cut = fault == MP_MEMORY_CUT;
    return fault_error(fault, object->key, err);
}

/* Like S3, goes on with the other objects after one has failed; tells of the first fault. */
static enum mp_code memory_put(struct mp_store *store, const struct mp_store_object *objects,
                               uint32_t count, bool *ret_done, struct mp_err *err)
{
    struct mp_memory_disk *disk = disk_of(store);
    enum mp_code code = MP_OK;
    bool cut = false;

    memset(ret_done, 0, count * sizeof(*ret_done));
    pthread_mutex_lock(&disk->lock);
    disk->counts.put_calls++;
    for (uint32_t i = 0; i < count && !cut; i++) {
        enum mp_code one = put_one(disk, &objects[i], &cut, code ? NULL : err);

        ret_done[i] = !one;
        code = code ? code : one;
    }
    pthread_mutex_unlock(&disk->lock);
    return code;
}

static enum mp_code memory_get(struct mp_store *store, struct mp_str key, int64_t offset,
                               size_t size, void *memory, size_t *ret_size, struct mp_err *err)
{
    struct mp_memory_disk *disk = disk_of(store);
    const struct object *object;
    size_t begin, have;
    enum mp_code code;

    assert(offset >= -1);
    pthread_mutex_lock(&disk->lock);
    code = mp_store_key_check(key, err);
    if (!code)
        code = fault_error(next_fault(disk, MP_MEMORY_GET, key), key, err);
    if (code)
        goto out;
    object = find(disk, key);
    if (!object) {
        code = mp_err_set(err, MP_NOT_FOUND, "key \"%.*s\" is not there", MP_STR_ARG(key));
        goto out;
    }
    have = object->bytes.size;
    if (offset < 0)
        begin = have > size ? have - size : 0;
    else
        begin = (uint64_t)offset < have ? (size_t)offset : have;
    have -= begin;
    have = have < size ? have : size;
    if (have)
        memcpy(memory, object->bytes.data + begin, have);
    *ret_size = have;
out:
    pthread_mutex_unlock(&disk->lock);
    return code;
}

/* Calls visit with the lock let go, so that it may use the store; goes on behind the key it was
 * at, whatever happened meanwhile. */
static enum mp_code memory_list(struct mp_store *store, struct mp_str prefix,
                                bool (*visit)(void *self, const struct mp_store_entry *entry),
                                void *self, struct mp_err *err)
{
    struct mp_memory_disk *disk = disk_of(store);
    struct mp_str last = {NULL, 0};
    bool more = true;
    enum mp_code code = mp_store_prefix_check(prefix, err);

    pthread_mutex_lock(&disk->lock);
    if (!code)
        code = fault_error(next_fault(disk, MP_MEMORY_LIST, prefix), prefix, err);
    while (!code && more) {
        size_t place = lower_bound(disk, last.data ? last : prefix);
        struct mp_store_entry entry;

        if (last.data && place < disk->count && mp_str_eq(disk->objects[place].key, last))
            place++;
        if (place == disk->count || !mp_str_starts(disk->objects[place].key, prefix))
            break;
        disown(last);
        last = own(disk->objects[place].key);
        entry = (struct mp_store_entry){.key = last, .bytes = disk->objects[place].bytes.size};
        pthread_mutex_unlock(&disk->lock);
        more = visit(self, &entry);
        pthread_mutex_lock(&disk->lock);
    }
    pthread_mutex_unlock(&disk->lock);
    disown(last);
    return code;
}

static void forget(struct mp_memory_disk *disk, struct mp_str key)
{
    struct object *object = find(disk, key);
    size_t place;

    if (!object)
        return;
    place = (size_t)(object - disk->objects);
    disk->counts.objects--;
    disk->counts.bytes -= object->bytes.size;
    disown(object->key);
    disown(object->bytes);
    disk->count--;
    memmove(object, object + 1, (disk->count - place) * sizeof(*object));
}

static enum mp_code memory_remove(struct mp_store *store, struct mp_str key, struct mp_err *err)
{
    struct mp_memory_disk *disk = disk_of(store);
    enum mp_memory_fault fault;
    enum mp_code code = mp_store_key_check(key, err);

    if (code)
        return code;
    pthread_mutex_lock(&disk->lock);
    fault = next_fault(disk, MP_MEMORY_REMOVE, key);
    if (fault == MP_MEMORY_NO_FAULT || fault == MP_MEMORY_LOSE_ANSWER)
        forget(disk, key);
    code = fault_error(fault, key, err);
    pthread_mutex_unlock(&disk->lock);
    return code;
}

static void memory_close(struct mp_store *store)
{
    mp_free(store);
}

static const struct mp_store_driver memory_driver = {
    .name = "memory",
    .put = memory_put,
    .get = memory_get,
    .list = memory_list,
    .remove = memory_remove,
    .close = memory_close,
};

struct mp_memory_disk *mp_memory_disk_new(void)
{
    struct mp_memory_disk *disk = mp_alloc(sizeof(*disk));

    pthread_mutex_init(&disk->lock, NULL);
    return disk;
}

void mp_memory_disk_free(struct mp_memory_disk *disk)
{
    if (!disk)
        return;
    for (size_t i = 0; i < disk->count; i++) {
        disown(disk->objects[i].key);
        disown(disk->objects[i].bytes);
    }
    mp_free(disk->objects);
    pthread_mutex_destroy(&disk->lock);
    mp_free(disk);
}

struct mp_store *mp_memory_store_open(struct mp_memory_disk *disk)
{
    struct memory *memory = mp_alloc(sizeof(*memory));

    memory->store.driver = &memory_driver;
    memory->disk = disk;
    return &memory->store;
}

void mp_memory_fault_nth(struct mp_memory_disk *disk, enum mp_memory_op op, uint64_t nth,
                         enum mp_memory_fault fault)
{
    struct armed *place = NULL;

    assert(nth > 0);
    pthread_mutex_lock(&disk->lock);
    for (size_t i = 0; i < ARMED_MAX && !place; i++)
        if (disk->armed[i].ordinal == 0)
            place = &disk->armed[i];
    assert(place);
    *place = (struct armed){.op = op, .ordinal = disk->counts.ops[op] + nth, .fault = fault};
    pthread_mutex_unlock(&disk->lock);
}

void mp_memory_fault_decide(struct mp_memory_disk *disk,
                            enum mp_memory_fault (*decide)(void *self, enum mp_memory_op op,
                                                           struct mp_str key, uint64_t ordinal),
                            void *self)
{
    pthread_mutex_lock(&disk->lock);
    disk->decide = decide;
    disk->decide_self = self;
    pthread_mutex_unlock(&disk->lock);
}

void mp_memory_fault_none(struct mp_memory_disk *disk)
{
    pthread_mutex_lock(&disk->lock);
    memset(disk->armed, 0, sizeof(disk->armed));
    disk->decide = NULL;
    pthread_mutex_unlock(&disk->lock);
}

struct mp_memory_counts mp_memory_counts(struct mp_memory_disk *disk)
{
    struct mp_memory_counts counts;

    pthread_mutex_lock(&disk->lock);
    counts = disk->counts;
    pthread_mutex_unlock(&disk->lock);
    return counts;
}

struct mp_str mp_memory_peek(struct mp_memory_disk *disk, struct mp_str key)
{
    struct mp_str bytes = {NULL, 0};
    const struct object *object;

    pthread_mutex_lock(&disk->lock);
    object = find(disk, key);
    if (object)
        bytes = object->bytes;
    pthread_mutex_unlock(&disk->lock);
    return bytes;
}
