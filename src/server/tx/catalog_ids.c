/* server/tx/catalog_ids.c - see catalog_ids.h. */
#include "server/tx/catalog_ids.h"

#include "base/mem.h"

#include <pthread.h>

enum { SLOTS = 1024, NAME_MAX_BYTES = 63 };

struct slot {
    int64_t id; /* 0: empty */
    uint8_t size;
    char name[NAME_MAX_BYTES];
};

struct mp_catalog_ids {
    pthread_mutex_t lock;
    struct slot slots[SLOTS];
};

struct mp_catalog_ids *mp_catalog_ids_new(void)
{
    struct mp_catalog_ids *ids = mp_alloc(sizeof(*ids));

    pthread_mutex_init(&ids->lock, NULL);
    return ids;
}

void mp_catalog_ids_free(struct mp_catalog_ids *ids)
{
    if (!ids)
        return;
    pthread_mutex_destroy(&ids->lock);
    mp_free(ids);
}

static struct slot *slot_of(struct mp_catalog_ids *ids, struct mp_str name)
{
    return &ids->slots[mp_str_hash(MP_STR_HASH, name) % SLOTS];
}

static bool holds(const struct slot *slot, struct mp_str name)
{
    return slot->id && mp_str_eq(mp_str_n(slot->name, slot->size), name);
}

/* Keeps the id; 0: forgets what is kept of the name. */
static void keep(struct mp_catalog_ids *ids, struct mp_str name, int64_t id)
{
    struct slot *slot = slot_of(ids, name);

    if (name.size > NAME_MAX_BYTES)
        return;
    pthread_mutex_lock(&ids->lock);
    if (id || holds(slot, name)) {
        slot->id = id;
        slot->size = (uint8_t)name.size;
        memcpy(slot->name, name.data, name.size);
    }
    pthread_mutex_unlock(&ids->lock);
}

enum mp_code mp_catalog_id(struct mp_catalog_ids *ids, struct mp_call *call, struct mp_str name,
                           int64_t *ret)
{
    struct slot *slot = slot_of(ids, name);
    uint32_t number;
    enum mp_code code;
    int64_t id = 0;

    pthread_mutex_lock(&ids->lock);
    if (holds(slot, name))
        id = slot->id;
    pthread_mutex_unlock(&ids->lock);
    if (!id) {
        number = MP_SQL(call->sql, "SELECT catalog_id FROM hog_catalog WHERE name = $1",
                        mp_v_text(name));
        code = mp_sql_sync(call->sql, &call->err);
        if (code)
            return code;
        if (!mp_sql_rows(call->sql, number))
            return mp_refuse_missing(call, "catalog \"%.*s\" does not exist", MP_STR_ARG(name));
        id = mp_sql_int(call->sql, number, 0, 0, 0);
        keep(ids, name, id);
    }
    *ret = id;
    return MP_OK;
}

void mp_catalog_id_forget(struct mp_catalog_ids *ids, struct mp_str name)
{
    keep(ids, name, 0);
}
