#include "lake/fake.h"
#include "lake/ducklake/layout.h"
#include "lake/partition_by.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>

#define FAULTS_MAX  64
#define COLUMNS_MAX 2048
#define KEYS_MAX    16

struct fake_table {
    struct fake_table *next;
    struct mp_lake_table view; /* the state now; lent views are copies */
    struct mp_live_column columns[COLUMNS_MAX];
    struct mp_partition_field partition[KEYS_MAX];
    struct mp_sort_field sort[KEYS_MAX];
    int32_t last_id;
    bool dropped;
};

struct fake_offset {
    struct fake_offset *next;
    int32_t partition;
    int64_t next_offset, epoch;
    int64_t snapshot;
    struct mp_str table_uuid;
};

struct fake_fault {
    enum mp_fake_call call;
    uint32_t left; /* 0: done */
    enum mp_code code;
    bool landed;
};

struct mp_fake_catalog {
    struct mp_arena arena;
    struct fake_table *tables;
    struct fake_offset *offsets;
    struct mp_fake_commit **commits;
    uint32_t commit_count, commit_room;
    uint32_t keys_from; /* commits before that one are not found by key */
    struct fake_fault faults[FAULTS_MAX];
    uint32_t calls[MP_FAKE_CALLS];
    int64_t snapshot, next_id;
    uint32_t uuids, keys;
    bool no_widening;
    struct mp_str refused_column; /* empty: none is */
};

struct fake_claim {
    struct fake_claim *next;
    int32_t partition;
    int64_t next_offset, epoch;
};

/* What was lent of a table, until it is lent again: one block, so that a later look is found. */
struct fake_lent {
    struct fake_lent *next;
    size_t bytes;
    struct mp_lake_table view;
    struct mp_partition_field partition[KEYS_MAX];
    struct mp_sort_field sort[KEYS_MAX];
    struct mp_live_column columns[];
};

struct mp_fake_lake {
    struct mp_lake lake; /* first */
    struct fake_lent *lent;
    struct mp_fake_catalog *catalog;
    const struct mp_env *env;
    struct fake_claim *claims;
};

static struct mp_fake_lake *of(struct mp_lake *lake)
{
    return (struct mp_fake_lake *)lake;
}

/* --- the catalog --- */

struct mp_fake_catalog *mp_fake_catalog_new(void)
{
    struct mp_fake_catalog *catalog = mp_alloc(sizeof(*catalog));

    mp_arena_init(&catalog->arena, (size_t)1 << 20);
    catalog->next_id = 1;
    return catalog;
}

void mp_fake_catalog_free(struct mp_fake_catalog *catalog)
{
    if (!catalog)
        return;
    mp_arena_fini(&catalog->arena);
    mp_free(catalog->commits);
    mp_free(catalog);
}

void mp_fake_fail(struct mp_fake_catalog *catalog, enum mp_fake_call call, uint32_t nth,
                  enum mp_code code, bool landed)
{
    assert(nth > 0 && code != MP_OK);
    for (size_t i = 0; i < FAULTS_MAX; i++) {
        if (catalog->faults[i].left)
            continue;
        catalog->faults[i] = (struct fake_fault){call, nth, code, landed};
        return;
    }
    assert(!"room for one more fault");
}

uint32_t mp_fake_calls(const struct mp_fake_catalog *catalog, enum mp_fake_call call)
{
    return catalog->calls[call];
}

uint32_t mp_fake_commit_count(const struct mp_fake_catalog *catalog)
{
    return catalog->commit_count;
}

const struct mp_fake_commit *mp_fake_commit(const struct mp_fake_catalog *catalog, uint32_t i)
{
    assert(i < catalog->commit_count);
    return catalog->commits[i];
}

/* Counts the call; the fault that is due, or NULL. */
static const struct fake_fault *fault_of(struct mp_fake_catalog *catalog, enum mp_fake_call call)
{
    const struct fake_fault *due = NULL;

    catalog->calls[call]++;
    for (size_t i = 0; i < FAULTS_MAX; i++) {
        struct fake_fault *fault = &catalog->faults[i];

        if (fault->call == call && fault->left && --fault->left == 0 && !due)
            due = fault;
    }
    return due;
}

static enum mp_code injected(const struct fake_fault *fault, struct mp_err *err)
{
    return mp_err_set(err, fault->code, "injected: %s", mp_code_name(fault->code));
}

static struct fake_offset *offset_of(const struct mp_fake_catalog *catalog, int32_t partition)
{
    struct fake_offset *offset = catalog->offsets;

    while (offset && offset->partition != partition)
        offset = offset->next;
    return offset;
}

int64_t mp_fake_next(const struct mp_fake_catalog *catalog, int32_t partition)
{
    const struct fake_offset *offset = offset_of(catalog, partition);

    return offset ? offset->next_offset : -1;
}

void mp_fake_steal(struct mp_fake_catalog *catalog, int32_t partition)
{
    struct fake_offset *offset = offset_of(catalog, partition);

    assert(offset);
    offset->epoch++;
}

static struct fake_table *table_of(const struct mp_fake_catalog *catalog, struct mp_str name)
{
    struct fake_table *table = catalog->tables;

    while (table && (table->dropped || !mp_str_eq_fold(table->view.name, name)))
        table = table->next;
    return table;
}

void mp_fake_drop(struct mp_fake_catalog *catalog, struct mp_str name)
{
    struct fake_table *table = table_of(catalog, name);

    assert(table);
    table->dropped = true;
    catalog->snapshot++;
}

static struct mp_live_column *column_of(struct fake_table *table, struct mp_str name)
{
    for (uint32_t i = 0; i < table->view.schema.column_count; i++)
        if (mp_str_eq_fold(table->columns[i].name, name))
            return &table->columns[i];
    return NULL;
}

static void add_column(struct mp_fake_catalog *catalog, struct fake_table *table,
                       struct mp_str name, struct mp_type type)
{
    if (column_of(table, name))
        return;
    assert(table->view.schema.column_count < COLUMNS_MAX);
    table->columns[table->view.schema.column_count++] = (struct mp_live_column){
        .name = mp_arena_str(&catalog->arena, name), .type = type, .field_id = ++table->last_id};
}

void mp_fake_add_column(struct mp_fake_catalog *catalog, struct mp_str table, struct mp_str name,
                        struct mp_type type)
{
    add_column(catalog, table_of(catalog, table), name, type);
    catalog->snapshot++;
}

void mp_fake_set_not_null(struct mp_fake_catalog *catalog, struct mp_str table, struct mp_str name)
{
    struct mp_live_column *column = column_of(table_of(catalog, table), name);

    assert(column);
    column->required = true;
    catalog->snapshot++;
}

void mp_fake_drop_column(struct mp_fake_catalog *catalog, struct mp_str name, struct mp_str column)
{
    struct fake_table *table = table_of(catalog, name);
    uint32_t at = (uint32_t)(column_of(table, column) - table->columns);

    table->view.schema.column_count--;
    memmove(&table->columns[at], &table->columns[at + 1],
            sizeof(table->columns[0]) * (table->view.schema.column_count - at));
    catalog->snapshot++;
}

void mp_fake_refuse_column(struct mp_fake_catalog *catalog, struct mp_str name)
{
    catalog->refused_column = name;
}

void mp_fake_allow_widening(struct mp_fake_catalog *catalog, bool allowed)
{
    catalog->no_widening = !allowed;
}

/* --- tables --- */

static void take_back(struct mp_fake_lake *fake, struct mp_str name)
{
    struct fake_lent **link = &fake->lent, *old;

    while (*link && !mp_str_eq((*link)->view.name, name))
        link = &(*link)->next;
    old = *link;
    if (!old)
        return;
    *link = old->next;
    memset(old, 0xdb, old->bytes);
    mp_free(old);
}

static const struct mp_lake_table *lend(struct mp_fake_lake *fake, struct fake_table *table)
{
    size_t column_bytes = sizeof(table->columns[0]) * table->view.schema.column_count;
    struct fake_lent *lent = mp_alloc(sizeof(*lent) + column_bytes);

    take_back(fake, table->view.name);
    lent->next = fake->lent;
    fake->lent = lent;
    lent->bytes = sizeof(*lent) + column_bytes;
    lent->view = table->view;
    lent->view.snapshot = fake->catalog->snapshot;
    memcpy(lent->columns, table->columns, column_bytes);
    memcpy(lent->partition, table->partition, sizeof(table->partition));
    memcpy(lent->sort, table->sort, sizeof(table->sort));
    lent->view.schema.columns = lent->columns;
    lent->view.schema.partition = lent->partition;
    lent->view.schema.sort = lent->sort;
    return &lent->view;
}

static enum mp_code fake_resolve(struct mp_lake *lake, struct mp_str name, struct mp_err *err,
                                 const struct mp_lake_table **ret)
{
    struct mp_fake_catalog *catalog = of(lake)->catalog;
    const struct fake_fault *fault = fault_of(catalog, MP_FAKE_RESOLVE);
    struct fake_table *table = table_of(catalog, name);

    if (fault)
        return injected(fault, err);
    if (!table)
        return mp_err_set(err, MP_NOT_FOUND, "there is no table \"%.*s\"", MP_STR_ARG(name));
    *ret = lend(of(lake), table);
    return MP_OK;
}

static enum mp_code create(struct mp_fake_catalog *catalog, struct mp_str name,
                           const struct mp_lake_evolution *evolution,
                           const struct mp_lake_create *options, struct mp_err *err)
{
    const struct mp_partition_key *keys;
    struct fake_table *table = mp_arena_take(&catalog->arena, sizeof(*table));
    uint32_t count;
    enum mp_code code;

    code = mp_partition_by_parse(&catalog->arena, options->partition_by, MP_PARTITION_BY_DUCKLAKE,
                                 err, &keys, &count);
    if (code)
        return code;
    assert(count <= KEYS_MAX && options->sort_by_count <= KEYS_MAX);
    table->view.schema_name = MP_STR("main");
    table->view.name = mp_arena_str(&catalog->arena, name);
    table->view.id = catalog->next_id++;
    table->view.uuid = mp_str_c(mp_arena_printf(&catalog->arena, "00000000-0000-7000-8000-%012x",
                                                (unsigned)++catalog->uuids));
    for (uint32_t i = 0; i < evolution->add_count; i++)
        add_column(catalog, table, evolution->add[i].name, evolution->add[i].type);
    for (uint32_t i = 0; i < count; i++) {
        struct mp_live_column *source;

        if (!column_of(table, keys[i].column) && keys[i].transform != MP_TRANSFORM_IDENTITY &&
            keys[i].transform != MP_TRANSFORM_BUCKET)
            return mp_err_set(err, MP_BAD_CONFIG, "partition source \"%.*s\" has no type",
                              MP_STR_ARG(keys[i].column));
        add_column(catalog, table, keys[i].column, MP_TYPE(VARCHAR));
        source = column_of(table, keys[i].column);
        source->partition_source = true;
        table->partition[i] =
            (struct mp_partition_field){source->field_id, keys[i].transform, keys[i].buckets};
    }
    table->view.schema.partition_count = count;
    for (uint32_t i = 0; i < options->sort_by_count; i++) {
        const struct mp_live_column *source = column_of(table, options->sort_by[i]);

        if (source)
            table->sort[table->view.schema.sort_count++].field_id = source->field_id;
    }
    table->next = catalog->tables;
    catalog->tables = table;
    catalog->snapshot++;
    return MP_OK;
}

static struct mp_live_column *column_by_id(struct fake_table *table, int32_t field_id)
{
    for (uint32_t i = 0; i < table->view.schema.column_count; i++)
        if (table->columns[i].field_id == field_id)
            return &table->columns[i];
    return NULL;
}

static void alter(struct mp_fake_catalog *catalog, struct fake_table *table,
                  const struct mp_lake_evolution *evolution)
{
    for (uint32_t i = 0; i < evolution->add_count; i++)
        if (mp_str_eq(evolution->add[i].name, catalog->refused_column))
            evolution->ret_refused[i] = true;
        else
            add_column(catalog, table, evolution->add[i].name, evolution->add[i].type);
    for (uint32_t i = 0; i < evolution->promote_count; i++) {
        struct mp_live_column *column = column_by_id(table, evolution->promote[i].field_id);

        if (column)
            column->type = evolution->promote[i].type;
    }
    for (uint32_t i = 0; i < evolution->widen_count; i++) {
        struct mp_live_column *column = column_by_id(table, evolution->widen[i]);

        if (column && column->type.id == MP_TYPE_INT64 && !column->partition_source &&
            !catalog->no_widening)
            column->type = MP_TYPE(DOUBLE);
        evolution->ret_widened[i] = column && column->type.id == MP_TYPE_DOUBLE;
    }
    for (uint32_t i = 0; i < evolution->relax_count; i++) {
        struct mp_live_column *column = column_by_id(table, evolution->relax[i]);

        if (column)
            column->required = false;
    }
    catalog->snapshot++;
}

static enum mp_code fake_evolve(struct mp_lake *lake, struct mp_str name,
                                const struct mp_lake_evolution *evolution,
                                const struct mp_lake_create *options, struct mp_err *err,
                                const struct mp_lake_table **ret)
{
    struct mp_fake_catalog *catalog = of(lake)->catalog;
    const struct fake_fault *fault = fault_of(catalog, MP_FAKE_EVOLVE);
    enum mp_code code = MP_OK;

    if (fault && !fault->landed)
        return injected(fault, err);
    if (!table_of(catalog, name) && !options)
        return mp_err_set(err, MP_NOT_FOUND, "there is no table \"%.*s\"", MP_STR_ARG(name));
    if (!table_of(catalog, name))
        code = create(catalog, name, evolution, options, err);
    if (code)
        return code;
    alter(catalog, table_of(catalog, name), evolution);
    if (fault)
        return injected(fault, err);
    *ret = lend(of(lake), table_of(catalog, name));
    return MP_OK;
}

static void fake_object_key(struct mp_lake *lake, const struct mp_lake_table *table,
                            const struct mp_lake_place *place, struct mp_buf *ret)
{
    struct mp_fake_catalog *catalog = of(lake)->catalog;

    mp_buf_printf(ret, "%.*s/%.*s/", MP_STR_ARG(table->schema_name), MP_STR_ARG(table->name));
    for (uint32_t i = 0; i < table->schema.partition_count; i++) {
        const struct mp_live_column *source =
            mp_schema_by_id(&table->schema, table->schema.partition[i].field_id);

        mp_dl_partition_directory(ret, source->name, &place->partition[i]);
    }
    mp_buf_printf(ret, "fake-%08x.parquet", (unsigned)++catalog->keys);
}

/* --- offsets --- */

static enum mp_code fake_positions(struct mp_lake *lake, struct mp_lake_position *positions,
                                   uint32_t count, struct mp_err *err)
{
    struct mp_fake_catalog *catalog = of(lake)->catalog;
    const struct fake_fault *fault = fault_of(catalog, MP_FAKE_POSITIONS);

    if (fault)
        return injected(fault, err);
    for (uint32_t i = 0; i < count; i++) {
        const struct fake_offset *offset = offset_of(catalog, positions[i].partition);

        positions[i] = (struct mp_lake_position){.partition = positions[i].partition, .next = -1};
        if (!offset)
            continue;
        positions[i].next = offset->next_offset;
        positions[i].epoch = offset->epoch;
        positions[i].table_uuid = offset->table_uuid;
    }
    return MP_OK;
}

/* A fake catalog keeps the offsets of one topic, whose name nobody told it. */
static enum mp_code fake_topics(struct mp_lake *lake,
                                void (*visit)(void *self, struct mp_str topic), void *self,
                                struct mp_err *err)
{
    (void)lake, (void)visit, (void)self, (void)err;
    return MP_OK;
}

static struct fake_claim *claim_of(struct mp_fake_lake *fake, int32_t partition)
{
    struct fake_claim *claim = fake->claims;

    while (claim && claim->partition != partition)
        claim = claim->next;
    return claim;
}

static void claim_one(struct mp_fake_lake *fake, const struct mp_lake_claim *wanted)
{
    struct mp_arena *arena = &fake->catalog->arena;
    struct fake_offset *offset = offset_of(fake->catalog, wanted->partition);
    struct fake_claim *claim = claim_of(fake, wanted->partition);

    if (!offset) {
        offset = mp_arena_take(arena, sizeof(*offset));
        *offset = (struct fake_offset){.next = fake->catalog->offsets, .snapshot = -1};
        offset->partition = wanted->partition;
        fake->catalog->offsets = offset;
    }
    if (!claim) {
        claim = mp_arena_take(arena, sizeof(*claim));
        *claim = (struct fake_claim){.next = fake->claims, .partition = wanted->partition};
        fake->claims = claim;
    }
    offset->next_offset = claim->next_offset = wanted->next;
    offset->epoch = claim->epoch = wanted->read_epoch + 1;
}

static enum mp_code fake_claim(struct mp_lake *lake, const struct mp_lake_claim *claims,
                               uint32_t count, struct mp_err *err)
{
    struct mp_fake_catalog *catalog = of(lake)->catalog;
    const struct fake_fault *fault = fault_of(catalog, MP_FAKE_CLAIM);

    if (fault && !fault->landed)
        return injected(fault, err);
    for (uint32_t i = 0; i < count; i++) {
        const struct fake_offset *offset = offset_of(catalog, claims[i].partition);
        bool same = claims[i].read_next < 0
                        ? !offset
                        : offset && offset->next_offset == claims[i].read_next &&
                              offset->epoch == claims[i].read_epoch;

        if (!same)
            return mp_err_set(err, MP_CONFLICT, "partition %d is not as it was read",
                              (int)claims[i].partition);
    }
    for (uint32_t i = 0; i < count; i++)
        claim_one(of(lake), &claims[i]);
    return fault ? injected(fault, err) : MP_OK;
}

/* --- append --- */

static enum mp_code check_table(struct mp_fake_catalog *catalog,
                                const struct mp_lake_append *append, struct mp_err *err)
{
    const struct fake_table *now = table_of(catalog, append->table->name);

    if (!now || !mp_str_eq(now->view.uuid, append->table->uuid))
        return mp_err_set(err, MP_CHANGED, "table \"%.*s\" is another one",
                          MP_STR_ARG(append->table->name));
    for (uint32_t i = 0; i < append->file_count; i++) {
        for (uint32_t c = 0; c < append->files[i].stats_count; c++) {
            const struct mp_column_stats *stats = &append->files[i].stats[c];
            struct mp_schema schema = now->view.schema;
            const struct mp_live_column *column;

            schema.columns = now->columns;
            column = mp_schema_by_id(&schema, stats->field_id);
            if (!column || !mp_type_eq(column->type, stats->type))
                return mp_err_set(err, MP_CHANGED, "column id %d has changed",
                                  (int)stats->field_id);
        }
    }
    return MP_OK;
}

static const struct mp_lake_file *first_file(const struct mp_lake_append *appends, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (appends[i].file_count)
            return &appends[i].files[0];
    return NULL;
}

/* Whether its files are in the lake, whoever has taken the partitions over since. */
static bool has_landed(const struct mp_fake_catalog *catalog, const struct mp_lake_commit *commit)
{
    const struct mp_lake_file *wanted = first_file(commit->appends, commit->append_count);

    for (uint32_t i = 0; wanted && i < catalog->commit_count; i++) {
        const struct mp_lake_file *file =
            first_file(catalog->commits[i]->appends, catalog->commits[i]->append_count);

        if (file && mp_str_eq(file->key, wanted->key))
            return true;
    }
    return false;
}

/* MP_OK with *ret_landed: every row is where this very commit would have put it, or its files are
 * there. */
static enum mp_code check_ranges(struct mp_fake_lake *fake, const struct mp_lake_commit *commit,
                                 struct mp_err *err, bool *ret_landed)
{
    uint32_t before = 0, landed = 0;

    for (uint32_t i = 0; i < commit->range_count; i++) {
        const struct mp_lake_range *range = &commit->ranges[i];
        const struct fake_claim *claim = claim_of(fake, range->partition);
        const struct fake_offset *offset = offset_of(fake->catalog, range->partition);

        assert(claim && offset);
        assert(range->first == claim->next_offset && range->next >= range->first);
        before += offset->epoch == claim->epoch && offset->next_offset == claim->next_offset;
        landed += offset->epoch == claim->epoch && offset->next_offset == range->next;
    }
    *ret_landed = before != commit->range_count;
    if (before == commit->range_count || landed == commit->range_count ||
        has_landed(fake->catalog, commit))
        return MP_OK;
    return mp_err_set(err, MP_FENCED, "another process owns a partition");
}

static const struct mp_lake_append *copy_appends(struct mp_arena *arena,
                                                 const struct mp_lake_commit *commit)
{
    struct mp_lake_append *copies =
        mp_arena_take(arena, sizeof(*copies) * (commit->append_count + 1));

    for (uint32_t i = 0; i < commit->append_count; i++) {
        const struct mp_lake_append *from = &commit->appends[i];
        struct mp_lake_table *table = mp_arena_take(arena, sizeof(*table));
        struct mp_lake_file *files = mp_arena_take(arena, sizeof(*files) * (from->file_count + 1));

        *table = *from->table;
        table->name = mp_arena_str(arena, from->table->name);
        table->uuid = mp_arena_str(arena, from->table->uuid);
        table->schema_name = mp_arena_str(arena, from->table->schema_name);
        table->schema = (struct mp_schema){0};
        table->warning = MP_STR("");
        for (uint32_t f = 0; f < from->file_count; f++)
            files[f] = (struct mp_lake_file){.key = mp_arena_str(arena, from->files[f].key),
                                             .rows = from->files[f].rows,
                                             .bytes = from->files[f].bytes,
                                             .footer_bytes = from->files[f].footer_bytes};
        copies[i] = (struct mp_lake_append){table, files, from->file_count};
    }
    return copies;
}

static void land(struct mp_fake_lake *fake, const struct mp_lake_commit *commit, bool has_files)
{
    struct mp_fake_catalog *catalog = fake->catalog;
    struct mp_fake_commit *kept = mp_arena_take(&catalog->arena, sizeof(*kept));
    struct mp_lake_range *ranges =
        mp_arena_take(&catalog->arena, sizeof(*ranges) * (commit->range_count + 1));

    if (commit->range_count)
        memcpy(ranges, commit->ranges, sizeof(*ranges) * commit->range_count);
    *kept = (struct mp_fake_commit){
        .snapshot = has_files ? ++catalog->snapshot : -1,
        .appends = copy_appends(&catalog->arena, commit),
        .append_count = commit->append_count,
        .ranges = ranges,
        .range_count = commit->range_count,
        .trigger = mp_arena_str(&catalog->arena, commit->trigger),
        .key = mp_arena_str(&catalog->arena, commit->key),
    };
    for (uint32_t i = 0; i < commit->range_count; i++) {
        struct fake_offset *offset = offset_of(catalog, ranges[i].partition);

        if (!offset)
            continue; /* kept elsewhere */
        offset->next_offset = ranges[i].next;
        if (!has_files)
            continue;
        offset->snapshot = kept->snapshot;
        offset->table_uuid = kept->appends[0].table->uuid;
    }
    if (catalog->commit_count == catalog->commit_room) {
        catalog->commit_room = catalog->commit_room ? catalog->commit_room * 2 : 64;
        catalog->commits =
            mp_realloc(catalog->commits, catalog->commit_room * sizeof(*catalog->commits));
    }
    catalog->commits[catalog->commit_count++] = kept;
}

static enum mp_code fake_append(struct mp_lake *lake, const struct mp_lake_commit *commit,
                                struct mp_err *err, struct mp_lake_result *ret)
{
    struct mp_fake_lake *fake = of(lake);
    const struct fake_fault *fault = fault_of(fake->catalog, MP_FAKE_APPEND);
    bool landed = false, has_files = false;
    enum mp_code code;

    if (fault && !fault->landed)
        return injected(fault, err);
    for (uint32_t i = 0; i < commit->append_count; i++)
        has_files = has_files || commit->appends[i].file_count;
    code = check_ranges(fake, commit, err, &landed);
    for (uint32_t i = 0; !code && !landed && i < commit->append_count; i++)
        if (commit->appends[i].file_count)
            code = check_table(fake->catalog, &commit->appends[i], err);
    if (code)
        return code;
    if (!landed)
        land(fake, commit, has_files);
    if (fault)
        return injected(fault, err);
    for (uint32_t i = 0; i < commit->range_count; i++)
        claim_of(fake, commit->ranges[i].partition)->next_offset = commit->ranges[i].next;
    *ret = (struct mp_lake_result){-1, landed};
    if (has_files && commit->range_count)
        ret->snapshot = offset_of(fake->catalog, commit->ranges[0].partition)->snapshot;
    else if (has_files)
        ret->snapshot = fake->catalog->snapshot;
    return MP_OK;
}

/* --- without offsets --- */

void mp_fake_forget_keys(struct mp_fake_catalog *catalog)
{
    catalog->keys_from = catalog->commit_count;
}

static const struct mp_fake_commit *commit_of(const struct mp_fake_catalog *catalog,
                                              struct mp_str key)
{
    for (uint32_t i = catalog->keys_from; i < catalog->commit_count; i++)
        if (mp_str_eq(catalog->commits[i]->key, key))
            return catalog->commits[i];
    return NULL;
}

/* Any text will do that is the same for the same table and ranges: FNV-1a, twice. */
static void fake_commit_key(struct mp_lake *lake, const struct mp_lake_table *table,
                            const struct mp_lake_range *ranges, uint32_t count,
                            char ret[MP_LAKE_KEY_SIZE])
{
    struct mp_buf name = MP_BUF_INIT((size_t)1 << 24);
    uint64_t hash[2] = {14695981039346656037u, 0x6c62272e07bb0142u};

    (void)lake;
    mp_buf_add_str(&name, table->uuid);
    for (uint32_t i = 0; i < count; i++)
        if (ranges[i].lowest >= 0)
            mp_buf_printf(&name, " %d:%lld-%lld", (int)ranges[i].partition,
                          (long long)ranges[i].lowest, (long long)ranges[i].highest);
    for (size_t i = 0; i < name.size; i++)
        for (int h = 0; h < 2; h++)
            hash[h] = (hash[h] ^ (unsigned char)name.data[i]) * 1099511628211u;
    mp_buf_fini(&name);
    snprintf(ret, MP_LAKE_KEY_SIZE, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(hash[0] >> 32),
             (unsigned)(hash[0] >> 16 & 0xffff), (unsigned)(hash[0] & 0xffff),
             (unsigned)(hash[1] >> 48), (unsigned long long)(hash[1] & 0xffffffffffff));
}

static enum mp_code fake_published(struct mp_lake *lake, struct mp_str key, struct mp_err *err,
                                   bool *ret)
{
    struct mp_fake_catalog *catalog = of(lake)->catalog;
    const struct fake_fault *fault = fault_of(catalog, MP_FAKE_PUBLISHED);

    if (fault)
        return injected(fault, err);
    *ret = commit_of(catalog, key) != NULL;
    return MP_OK;
}

/* The very commit again, or another one under its key. */
static bool same_body(const struct mp_fake_commit *kept, const struct mp_lake_commit *commit)
{
    if (kept->append_count != commit->append_count)
        return false;
    for (uint32_t a = 0; a < kept->append_count; a++) {
        if (kept->appends[a].file_count != commit->appends[a].file_count)
            return false;
        for (uint32_t f = 0; f < kept->appends[a].file_count; f++)
            if (!mp_str_eq(kept->appends[a].files[f].key, commit->appends[a].files[f].key))
                return false;
    }
    return true;
}

static enum mp_code keyed_append(struct mp_lake *lake, const struct mp_lake_commit *commit,
                                 struct mp_err *err, struct mp_lake_result *ret)
{
    struct mp_fake_lake *fake = of(lake);
    const struct fake_fault *fault = fault_of(fake->catalog, MP_FAKE_APPEND);
    const struct mp_fake_commit *kept;
    enum mp_code code = MP_OK;

    assert(commit->key.size == MP_LAKE_KEY_SIZE - 1);
    *ret = (struct mp_lake_result){.snapshot = -1};
    if (fault && !fault->landed) {
        ret->orphaned = fault->code == MP_CHANGED ? "ddl_since_read_snapshot" : NULL;
        return injected(fault, err);
    }
    kept = commit_of(fake->catalog, commit->key);
    for (uint32_t i = 0; !code && !kept && i < commit->append_count; i++)
        if (commit->appends[i].file_count)
            code = check_table(fake->catalog, &commit->appends[i], err);
    if (code) {
        ret->orphaned = "table_recreated";
        return code;
    }
    if (!kept)
        land(fake, commit, true);
    if (fault)
        return injected(fault, err);
    ret->already_published = kept && !same_body(kept, commit);
    ret->orphaned = ret->already_published ? "already_published" : NULL;
    ret->snapshot = kept ? kept->snapshot : fake->catalog->snapshot;
    return MP_OK;
}

static enum mp_code fake_written(struct mp_lake *lake, struct mp_str name,
                                 void (*visit)(void *self, int32_t partition, int64_t last),
                                 void *self, struct mp_err *err, bool *ret_rows)
{
    const struct mp_fake_catalog *catalog = of(lake)->catalog;
    const struct fake_table *table = table_of(catalog, name);

    if (!table)
        return mp_err_set(err, MP_NOT_FOUND, "there is no table \"%.*s\"", MP_STR_ARG(name));
    *ret_rows = false;
    for (uint32_t i = catalog->commit_count; i > 0; i--) {
        const struct mp_fake_commit *commit = catalog->commits[i - 1];

        if (!mp_str_eq(commit->appends[0].table->uuid, table->view.uuid))
            continue;
        *ret_rows = true;
        for (uint32_t r = 0; r < commit->range_count; r++)
            if (commit->ranges[r].highest >= 0)
                visit(self, commit->ranges[r].partition, commit->ranges[r].highest);
    }
    return MP_OK;
}

/* --- the rest --- */

static bool fake_name_ok(struct mp_str name)
{
    return name.size > 0 && name.size <= 255;
}

static struct mp_str fake_data_path(struct mp_lake *lake)
{
    (void)lake;
    return MP_STR("/fake/");
}

static enum mp_code fake_ping(struct mp_lake *lake, struct mp_err *err)
{
    const struct fake_fault *fault = fault_of(of(lake)->catalog, MP_FAKE_PING);

    return fault ? injected(fault, err) : MP_OK;
}

static void fake_close(struct mp_lake *lake)
{
    while (of(lake)->lent)
        take_back(of(lake), of(lake)->lent->view.name);
    mp_free(lake);
}

static const struct mp_lake_driver driver = {
    .name = "fake",
    .offsets_in_lake = true,
    .fold_case = true,
    .name_ok = fake_name_ok,
    .data_path = fake_data_path,
    .ping = fake_ping,
    .resolve = fake_resolve,
    .evolve = fake_evolve,
    .object_key = fake_object_key,
    .append = fake_append,
    .positions = fake_positions,
    .topics = fake_topics,
    .claim = fake_claim,
    .close = fake_close,
};

static const struct mp_lake_driver keyed_driver = {
    .name = "fake",
    .name_ok = fake_name_ok,
    .data_path = fake_data_path,
    .ping = fake_ping,
    .resolve = fake_resolve,
    .evolve = fake_evolve,
    .object_key = fake_object_key,
    .commit_key = fake_commit_key,
    .published = fake_published,
    .append = keyed_append,
    .written = fake_written,
    .close = fake_close,
};

static struct mp_lake *open_with(const struct mp_lake_driver *kind, struct mp_fake_catalog *catalog,
                                 const struct mp_env *env)
{
    struct mp_fake_lake *fake = mp_alloc(sizeof(*fake));

    fake->lake.driver = kind;
    fake->catalog = catalog;
    fake->env = env;
    return &fake->lake;
}

struct mp_lake *mp_fake_lake_open(struct mp_fake_catalog *catalog, const struct mp_env *env)
{
    return open_with(&driver, catalog, env);
}

struct mp_lake *mp_fake_keyed_lake_open(struct mp_fake_catalog *catalog, const struct mp_env *env)
{
    return open_with(&keyed_driver, catalog, env);
}
