#include "actor.h"

#include "base/mem.h"

/* Waits while it is frozen. False: it is dead, the call may do nothing. */
static bool pass(struct actor *actor)
{
    bool alive;

    pthread_mutex_lock(&actor->lock);
    while (actor->frozen)
        pthread_cond_wait(&actor->changed, &actor->lock);
    alive = !actor->dead;
    pthread_mutex_unlock(&actor->lock);
    return alive;
}

static void die(struct actor *actor)
{
    actor->dead = true;
    mp_pipeline_stop(actor->pipeline);
    mp_pipeline_stop(actor->pipeline);
}

/* Before a call that counts. *ret_last: it is done, but nobody hears of it. */
static bool gate(struct actor *actor, enum actor_call call, bool *ret_last)
{
    uint64_t number;
    bool due;

    if (!pass(actor))
        return false;
    pthread_mutex_lock(&actor->lock);
    actor->calls++;
    actor->calls_of[call]++;
    number = actor->fate_of_one ? actor->calls_of[call] : actor->calls;
    due = (!actor->fate_of_one || call == actor->fate_call) && number == actor->fate_at;
    *ret_last = due && actor->fate == ACTOR_DIES_AFTER;
    if (due && (actor->fate == ACTOR_DIES || actor->fate == ACTOR_DIES_AFTER))
        die(actor);
    if (due && actor->fate == ACTOR_FREEZES) {
        actor->frozen = true;
        pthread_cond_broadcast(&actor->changed);
    }
    pthread_mutex_unlock(&actor->lock);
    return *ret_last || pass(actor);
}

static enum mp_code gone(struct mp_err *err)
{
    return mp_err_set(err, MP_IO, "the process is dead");
}

/* --- the lake ------------------------------------------------------------------------------- */

/* The fake catalog is for one thread at a time. */
static pthread_mutex_t catalog_lock = PTHREAD_MUTEX_INITIALIZER;

struct gated_lake {
    struct mp_lake lake; /* first */
    struct mp_lake *inner;
    struct actor *actor;
};

static struct gated_lake *lake_of(struct mp_lake *lake)
{
    return (struct gated_lake *)lake;
}

static bool lake_name_ok(struct mp_str name)
{
    return name.size > 0 && name.size <= 255;
}

static struct mp_str lake_data_path(struct mp_lake *lake)
{
    return lake_of(lake)->inner->driver->data_path(lake_of(lake)->inner);
}

static enum mp_code lake_resolve(struct mp_lake *lake, struct mp_str table, struct mp_err *err,
                                 const struct mp_lake_table **ret)
{
    struct mp_lake *inner = lake_of(lake)->inner;
    enum mp_code code;
    bool last;

    if (!gate(lake_of(lake)->actor, ACTOR_RESOLVE, &last))
        return gone(err);
    pthread_mutex_lock(&catalog_lock);
    code = inner->driver->resolve(inner, table, err, ret);
    pthread_mutex_unlock(&catalog_lock);
    return last ? gone(err) : code;
}

static enum mp_code lake_evolve(struct mp_lake *lake, struct mp_str table,
                                const struct mp_lake_evolution *evolution,
                                const struct mp_lake_create *create, struct mp_err *err,
                                const struct mp_lake_table **ret)
{
    struct mp_lake *inner = lake_of(lake)->inner;
    enum mp_code code;
    bool last;

    if (!gate(lake_of(lake)->actor, ACTOR_EVOLVE, &last))
        return gone(err);
    pthread_mutex_lock(&catalog_lock);
    code = inner->driver->evolve(inner, table, evolution, create, err, ret);
    pthread_mutex_unlock(&catalog_lock);
    return last ? gone(err) : code;
}

static void lake_object_key(struct mp_lake *lake, const struct mp_lake_table *table,
                            const struct mp_lake_place *place, struct mp_buf *ret)
{
    struct mp_lake *inner = lake_of(lake)->inner;

    pthread_mutex_lock(&catalog_lock);
    inner->driver->object_key(inner, table, place, ret);
    pthread_mutex_unlock(&catalog_lock);
}

static void lake_commit_key(struct mp_lake *lake, const struct mp_lake_table *table,
                            const struct mp_lake_range *ranges, uint32_t count,
                            char ret[MP_LAKE_KEY_SIZE])
{
    struct mp_lake *inner = lake_of(lake)->inner;

    inner->driver->commit_key(inner, table, ranges, count, ret);
}

static enum mp_code lake_published(struct mp_lake *lake, struct mp_str key, struct mp_err *err,
                                   bool *ret)
{
    struct mp_lake *inner = lake_of(lake)->inner;
    enum mp_code code;
    bool last;

    if (!gate(lake_of(lake)->actor, ACTOR_PUBLISHED, &last))
        return gone(err);
    pthread_mutex_lock(&catalog_lock);
    code = inner->driver->published(inner, key, err, ret);
    pthread_mutex_unlock(&catalog_lock);
    return last ? gone(err) : code;
}

static enum mp_code lake_append(struct mp_lake *lake, const struct mp_lake_commit *commit,
                                struct mp_err *err, struct mp_lake_result *ret)
{
    struct mp_lake *inner = lake_of(lake)->inner;
    enum mp_code code;
    bool last;

    if (!gate(lake_of(lake)->actor, ACTOR_APPEND, &last))
        return gone(err);
    pthread_mutex_lock(&catalog_lock);
    code = inner->driver->append(inner, commit, err, ret);
    pthread_mutex_unlock(&catalog_lock);
    return last ? gone(err) : code;
}

static enum mp_code lake_written(struct mp_lake *lake, struct mp_str table,
                                 void (*visit)(void *self, int32_t partition, int64_t last),
                                 void *self, struct mp_err *err, bool *ret_rows)
{
    struct mp_lake *inner = lake_of(lake)->inner;
    enum mp_code code;

    pthread_mutex_lock(&catalog_lock);
    code = inner->driver->written(inner, table, visit, self, err, ret_rows);
    pthread_mutex_unlock(&catalog_lock);
    return code;
}

static void lake_close(struct mp_lake *lake)
{
    mp_lake_close(lake_of(lake)->inner);
    mp_free(lake);
}

static const struct mp_lake_driver lake_driver = {
    .name = "gated",
    .name_ok = lake_name_ok,
    .data_path = lake_data_path,
    .resolve = lake_resolve,
    .evolve = lake_evolve,
    .object_key = lake_object_key,
    .commit_key = lake_commit_key,
    .published = lake_published,
    .append = lake_append,
    .written = lake_written,
    .close = lake_close,
};

static enum mp_code open_lake(void *self, struct mp_err *err, struct mp_lake **ret)
{
    struct actor *actor = self;
    struct gated_lake *lake = mp_alloc(sizeof(*lake));

    (void)err;
    lake->lake.driver = &lake_driver;
    lake->inner = mp_fake_keyed_lake_open(actor->world->catalog, &actor->world->env);
    lake->actor = actor;
    *ret = &lake->lake;
    return MP_OK;
}

/* --- the store ------------------------------------------------------------------------------ */

struct gated_store {
    struct mp_store store; /* first */
    struct mp_store *inner;
    struct actor *actor;
};

static enum mp_code store_put(struct mp_store *store, const struct mp_store_object *objects,
                              uint32_t count, bool *done, struct mp_err *err)
{
    struct gated_store *gated = (struct gated_store *)store;
    enum mp_code code;
    bool last;

    if (!gate(gated->actor, ACTOR_PUT, &last))
        return gone(err);
    code = gated->inner->driver->put(gated->inner, objects, count, done, err);
    return last ? gone(err) : code;
}

static enum mp_code store_remove(struct mp_store *store, struct mp_str key, struct mp_err *err)
{
    struct gated_store *gated = (struct gated_store *)store;

    return gated->inner->driver->remove(gated->inner, key, err);
}

static void store_close(struct mp_store *store)
{
    mp_store_close(((struct gated_store *)store)->inner);
    mp_free(store);
}

static const struct mp_store_driver store_driver = {
    .name = "gated", .put = store_put, .remove = store_remove, .close = store_close};

static enum mp_code open_store(void *self, struct mp_str path, struct mp_err *err,
                               struct mp_store **ret)
{
    struct actor *actor = self;
    struct gated_store *store = mp_alloc(sizeof(*store));

    (void)path, (void)err;
    store->store.driver = &store_driver;
    store->inner = mp_memory_store_open(actor->world->disk);
    store->actor = actor;
    *ret = &store->store;
    return MP_OK;
}

/* --- the source ----------------------------------------------------------------------------- */

struct gated_source {
    struct mp_source source; /* first */
    struct mp_source *inner;
    struct actor *actor;
};

static struct gated_source *source_of(struct mp_source *source)
{
    return (struct gated_source *)source;
}

static enum mp_code source_partitions(struct mp_source *source, struct mp_err *err,
                                      const int32_t **ret, uint32_t *ret_count)
{
    struct mp_source *inner = source_of(source)->inner;

    if (!pass(source_of(source)->actor))
        return gone(err);
    return inner->driver->partitions(inner, err, ret, ret_count);
}

static enum mp_code source_seek(struct mp_source *source, int32_t partition, int64_t offset,
                                struct mp_err *err)
{
    struct mp_source *inner = source_of(source)->inner;

    if (!pass(source_of(source)->actor))
        return gone(err);
    return inner->driver->seek(inner, partition, offset, err);
}

static enum mp_code source_unseek(struct mp_source *source, int32_t partition, struct mp_err *err)
{
    struct mp_source *inner = source_of(source)->inner;

    return inner->driver->unseek(inner, partition, err);
}

static enum mp_code source_poll(struct mp_source *source, uint32_t records_max, uint32_t wait_ms,
                                struct mp_err *err, struct mp_records *ret)
{
    struct mp_source *inner = source_of(source)->inner;

    if (!pass(source_of(source)->actor))
        return gone(err);
    return inner->driver->poll(inner, records_max, wait_ms, err, ret);
}

static int64_t source_reached(struct mp_source *source, int32_t partition)
{
    struct mp_source *inner = source_of(source)->inner;

    return inner->driver->reached(inner, partition);
}

static enum mp_code source_own(struct mp_source *source, const int32_t *partitions, uint32_t count,
                               struct mp_err *err, bool *ret_fenced)
{
    struct mp_source *inner = source_of(source)->inner;
    enum mp_code code = MP_OK;
    bool last;

    for (uint32_t i = 0; i < count && !code; i++) {
        if (!gate(source_of(source)->actor, ACTOR_OWN, &last))
            return gone(err);
        code = inner->driver->own(inner, &partitions[i], 1, err, ret_fenced);
        if (last)
            return gone(err);
    }
    return code;
}

static void source_disown(struct mp_source *source, const int32_t *partitions, uint32_t count)
{
    struct mp_source *inner = source_of(source)->inner;

    inner->driver->disown(inner, partitions, count);
}

static enum mp_code source_commit(struct mp_source *source, const struct mp_source_offset *offsets,
                                  uint32_t count, struct mp_err *err)
{
    struct mp_source *inner = source_of(source)->inner;
    enum mp_code code = MP_OK;
    bool last;

    for (uint32_t i = 0; i < count && !code; i++) {
        if (!gate(source_of(source)->actor, ACTOR_COMMIT, &last))
            return gone(err);
        code = inner->driver->commit(inner, &offsets[i], 1, err);
        if (last)
            return gone(err);
    }
    return code;
}

static enum mp_code source_committed(struct mp_source *source, struct mp_arena *arena,
                                     struct mp_source_offset *offsets, uint32_t count,
                                     struct mp_err *err)
{
    struct mp_source *inner = source_of(source)->inner;
    bool last;

    if (!gate(source_of(source)->actor, ACTOR_COMMITTED, &last) || last)
        return gone(err);
    return inner->driver->committed(inner, arena, offsets, count, err);
}

static enum mp_code source_watermarks(struct mp_source *source,
                                      struct mp_source_watermark *watermarks, uint32_t count,
                                      struct mp_err *err)
{
    struct mp_source *inner = source_of(source)->inner;

    if (!pass(source_of(source)->actor))
        return gone(err);
    return inner->driver->watermarks(inner, watermarks, count, err);
}

static void source_watermarks_seen(struct mp_source *source, struct mp_source_watermark *watermarks,
                                   uint32_t count)
{
    struct mp_source *inner = source_of(source)->inner;

    inner->driver->watermarks_seen(inner, watermarks, count);
}

static void source_close(struct mp_source *source)
{
    mp_source_close(source_of(source)->inner);
    mp_free(source);
}

static const struct mp_source_driver source_driver = {
    .name = "gated",
    .partitions = source_partitions,
    .seek = source_seek,
    .unseek = source_unseek,
    .poll = source_poll,
    .reached = source_reached,
    .own = source_own,
    .disown = source_disown,
    .commit = source_commit,
    .committed = source_committed,
    .watermarks = source_watermarks,
    .watermarks_seen = source_watermarks_seen,
    .close = source_close,
};

static struct mp_source *gated_source(struct actor *actor, uint32_t ordinal, uint32_t replica_count)
{
    struct gated_source *source = mp_alloc(sizeof(*source));

    source->source.driver = &source_driver;
    source->inner = mp_source_fake_open(actor->world->log, ordinal, replica_count);
    source->actor = actor;
    return &source->source;
}

static enum mp_code open_source(void *self, struct mp_err *err, struct mp_source **ret)
{
    struct actor *actor = self;

    (void)err;
    *ret = gated_source(actor, actor->ordinal, actor->replica_count);
    return MP_OK;
}

static enum mp_code open_whole_source(void *self, struct mp_err *err, struct mp_source **ret)
{
    (void)err;
    *ret = gated_source(self, 0, 1);
    return MP_OK;
}

/* --- its life ------------------------------------------------------------------------------- */

static void *actor_main(void *self)
{
    struct actor *actor = self;
    struct mp_err err = {0};
    enum mp_code code = mp_pipeline_run(actor->pipeline, &err);

    pthread_mutex_lock(&actor->lock);
    actor->code = code;
    actor->err = err;
    pthread_mutex_unlock(&actor->lock);
    mp_pipeline_free(actor->pipeline); /* waits for its other thread */
    pthread_mutex_lock(&actor->lock);
    actor->ended = true;
    pthread_cond_broadcast(&actor->changed);
    pthread_mutex_unlock(&actor->lock);
    return NULL;
}

void actor_start(struct actor *actor)
{
    struct mp_pipeline_doors doors = {actor, open_lake, open_store, open_source, open_whole_source};
    struct mp_pipeline_world outside = {&actor->world->env, NULL, actor->world->metrics, NULL};

    pthread_mutex_init(&actor->lock, NULL);
    pthread_cond_init(&actor->changed, NULL);
    if (!actor->replica_count)
        actor->replica_count = 1;
    actor->calls = 0;
    memset(actor->calls_of, 0, sizeof(actor->calls_of));
    actor->dead = actor->frozen = actor->ended = false;
    actor->pipeline = mp_pipeline_new(&actor->options, &doors, &outside);
    CHECK(pthread_create(&actor->thread, NULL, actor_main, actor) == 0);
}

bool actor_wait(struct actor *actor)
{
    bool frozen;

    pthread_mutex_lock(&actor->lock);
    while (!actor->ended && !actor->frozen)
        pthread_cond_wait(&actor->changed, &actor->lock);
    frozen = actor->frozen;
    pthread_mutex_unlock(&actor->lock);
    return frozen;
}

void actor_thaw(struct actor *actor)
{
    pthread_mutex_lock(&actor->lock);
    actor->frozen = false;
    pthread_cond_broadcast(&actor->changed);
    pthread_mutex_unlock(&actor->lock);
}

enum mp_code actor_join(struct actor *actor)
{
    CHECK(pthread_join(actor->thread, NULL) == 0);
    pthread_cond_destroy(&actor->changed);
    pthread_mutex_destroy(&actor->lock);
    return actor->code;
}

enum mp_code actor_run(struct actor *actor, struct mp_err *err)
{
    enum mp_code code;

    actor_start(actor);
    code = actor_join(actor);
    *err = actor->err;
    return code;
}
