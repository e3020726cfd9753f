/* server/tx/shapes.c - see shapes.h. */
#include "server/tx/shapes.h"

#include "base/mem.h"
#include "server/tables.h"

#include <assert.h>
#include <pthread.h>

enum { CHAINS = 256, KEPT_MAX = 4096 };

struct mp_shapes {
    pthread_mutex_t lock; /* everything below, and every shape's users */
    struct mp_shape *chains[CHAINS];
    uint32_t kept;
};

struct mp_shapes *mp_shapes_new(void)
{
    struct mp_shapes *shapes = mp_alloc(sizeof(*shapes));

    pthread_mutex_init(&shapes->lock, NULL);
    return shapes;
}

static void release(struct mp_shape *shape)
{
    assert(shape->users);
    if (--shape->users)
        return;
    mp_arena_fini(&shape->arena);
    mp_free(shape);
}

static void forget_all(struct mp_shapes *shapes)
{
    for (int i = 0; i < CHAINS; i++)
        while (shapes->chains[i]) {
            struct mp_shape *next = shapes->chains[i]->next;

            release(shapes->chains[i]);
            shapes->chains[i] = next;
        }
    shapes->kept = 0;
}

void mp_shapes_free(struct mp_shapes *shapes)
{
    if (!shapes)
        return;
    forget_all(shapes);
    pthread_mutex_destroy(&shapes->lock);
    mp_free(shapes);
}

static uint32_t chain_of(int64_t catalog_id, struct mp_str namespace_name, struct mp_str table)
{
    uint32_t hash = mp_str_hash(MP_STR_HASH, mp_str_n(&catalog_id, sizeof(catalog_id)));

    hash = mp_str_hash(mp_str_hash(hash, namespace_name), table);
    return hash % CHAINS;
}

/* The kept one; an old one of that name is dropped. */
static struct mp_shape *look_up(struct mp_shapes *shapes, const struct mp_tx *tx,
                                struct mp_str namespace_name, struct mp_str table)
{
    struct mp_shape **link = &shapes->chains[chain_of(tx->catalog_id, namespace_name, table)];

    for (; *link; link = &(*link)->next) {
        struct mp_shape *shape = *link;

        if (shape->catalog_id != tx->catalog_id || !mp_str_eq(shape->name, table) ||
            !mp_str_eq(shape->namespace_name, namespace_name))
            continue;
        if (shape->schema_version == tx->schema_version) {
            shape->users++;
            return shape;
        }
        *link = shape->next;
        shapes->kept--;
        release(shape);
        return NULL;
    }
    return NULL;
}

static enum mp_code read_absent(struct mp_call *loader, struct mp_tx *tx, struct mp_shape *shape)
{
    uint32_t number = MP_SQL(
        tx->sql,
        "SELECT v.end_snapshot = t.dropped_snapshot, t.dropped_snapshot FROM hog_table_version v"
        " JOIN hog_table t USING (catalog_id, table_id)"
        " JOIN hog_namespace n USING (catalog_id, namespace_id)"
        " WHERE v.catalog_id = $1 AND n.name = $2 AND v.name = $3"
        " ORDER BY v.begin_snapshot DESC LIMIT 1",
        mp_v_int(tx->catalog_id), mp_v_text(shape->namespace_name), mp_v_text(shape->name));
    enum mp_code code = mp_sql_sync(tx->sql, &loader->err);

    if (code)
        return code;
    shape->state = MP_SHAPE_UNKNOWN;
    if (mp_sql_rows(tx->sql, number) && mp_sql_true(tx->sql, number, 0, 0)) {
        shape->state = MP_SHAPE_DROPPED;
        shape->dropped_snapshot = mp_sql_int(tx->sql, number, 0, 1, 0);
    }
    return MP_OK;
}

/* Reads into the loader's arena, which becomes the shape's. */
static enum mp_code read_shape(struct mp_call *loader, struct mp_tx *tx, int64_t head,
                               struct mp_shape *shape)
{
    struct mp_table table = {0};
    int64_t namespace_id = -1;
    struct mp_tx at_head = *tx; /* reads at the head that is committed */
    bool found = false;
    uint32_t number;
    enum mp_code code;

    at_head.call = loader;
    at_head.head = head;
    number = MP_SQL(tx->sql,
                    "SELECT namespace_id FROM hog_namespace WHERE catalog_id = $1 AND name = $2"
                    " AND dropped_snapshot IS NULL",
                    mp_v_int(tx->catalog_id), mp_v_text(shape->namespace_name));
    code = mp_sql_sync(tx->sql, &loader->err);
    if (code)
        return code;
    if (mp_sql_rows(tx->sql, number))
        namespace_id = mp_sql_int(tx->sql, number, 0, 0, 0);
    code = mp_table_live(&at_head, namespace_id, shape->name, &table, &found);
    if (code || !found)
        return code ? code : read_absent(loader, tx, shape);
    number = MP_SQL(tx->sql,
                    "SELECT max(snapshot_id) FROM hog_snapshot_change WHERE catalog_id = $1"
                    " AND object_id = $2 AND kind IN ('table_altered', 'table_dropped')",
                    mp_v_int(tx->catalog_id), mp_v_int(table.table_id));
    code = mp_sql_sync(tx->sql, &loader->err);
    if (code)
        return code;
    shape->last_ddl = mp_sql_int(tx->sql, number, 0, 0, 0);
    shape->state = MP_SHAPE_LIVE;
    shape->table_id = table.table_id;
    shape->uuid = table.uuid;
    shape->target = (struct mp_files_target){
        .columns = table.columns,
        .fields = mp_field_types_new(&loader->arena, table.columns),
        .spec_id = table.partition.field_count ? table.partition.spec_id : 0,
        .partition_count = table.partition.field_count,
    };
    return MP_OK;
}

enum mp_code mp_shapes_get(struct mp_shapes *shapes, struct mp_tx *tx, int64_t head,
                           struct mp_str namespace_name, struct mp_str table, struct mp_shape **ret)
{
    struct mp_shape *shape;
    struct mp_call loader;
    enum mp_code code;

    pthread_mutex_lock(&shapes->lock);
    shape = look_up(shapes, tx, namespace_name, table);
    pthread_mutex_unlock(&shapes->lock);
    if (shape) {
        *ret = shape;
        return MP_OK;
    }
    mp_call_init(&loader, tx->call->server);
    shape = mp_alloc(sizeof(*shape));
    shape->users = 1;
    shape->catalog_id = tx->catalog_id;
    shape->schema_version = tx->schema_version;
    shape->namespace_name = mp_arena_str(&loader.arena, namespace_name);
    shape->name = mp_arena_str(&loader.arena, table);
    code = read_shape(&loader, tx, head, shape);
    shape->arena = loader.arena; /* taken */
    mp_arena_init(&loader.arena, 0);
    if (code)
        tx->call->err = loader.err;
    mp_call_fini(&loader);
    if (code) {
        release(shape);
        return code;
    }
    *ret = shape;
    if (shape->state != MP_SHAPE_LIVE)
        return MP_OK;
    pthread_mutex_lock(&shapes->lock);
    if (shapes->kept == KEPT_MAX)
        forget_all(shapes);
    shape->users++;
    shape->next = shapes->chains[chain_of(tx->catalog_id, namespace_name, table)];
    shapes->chains[chain_of(tx->catalog_id, namespace_name, table)] = shape;
    shapes->kept++;
    pthread_mutex_unlock(&shapes->lock);
    return MP_OK;
}

void mp_shapes_put(struct mp_shapes *shapes, struct mp_shape **shape)
{
    if (!*shape)
        return;
    pthread_mutex_lock(&shapes->lock);
    release(*shape);
    pthread_mutex_unlock(&shapes->lock);
    *shape = NULL;
}
