/* lake/ducklake/offsets.c - the side table: how far every source partition is in the lake.
 *
 * One row per (group, topic, partition): the next offset, and the epoch of the process that owns
 * it. A claim raises the epoch by compare-and-swap, so an epoch was won by exactly one process. An
 * append moves next_offset by compare-and-swap on (next, epoch) as this process last wrote them,
 * in the transaction of the files. So of two processes that believe they own a partition one
 * can commit, and what is in the lake is always exactly the offsets below next.
 *
 * O1  expected values come from this process's memory and are never read again before a retry
 * O2  a swap that found fewer rows than ranges is either our own earlier attempt, whose answer
 *     was lost (every row has our epoch and the range's end), or somebody else's. Had ours landed
 *     before the other one came, its files tell (append.c)
 */
#include "lake/ducklake/priv.h"
#include "lake/ducklake/time.h"

#include "base/mem.h"

#include <assert.h>

static struct mp_dl_claim *claim_of(struct mp_ducklake *lake, int32_t partition)
{
    uint32_t low = 0, high = lake->claim_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (lake->claims[middle].partition < partition)
            low = middle + 1;
        else
            high = middle;
    }
    return low < lake->claim_count && lake->claims[low].partition == partition ? &lake->claims[low]
                                                                               : NULL;
}

static void remember(struct mp_ducklake *lake, struct mp_dl_claim claim)
{
    struct mp_dl_claim *old = claim_of(lake, claim.partition);
    uint32_t at = lake->claim_count;

    if (old) {
        *old = claim;
        return;
    }
    if (lake->claim_count == lake->claim_room) {
        lake->claim_room = lake->claim_room ? lake->claim_room * 2 : 16;
        lake->claims = mp_realloc(lake->claims, lake->claim_room * sizeof(*lake->claims));
    }
    for (; at > 0 && lake->claims[at - 1].partition > claim.partition; at--)
        lake->claims[at] = lake->claims[at - 1];
    lake->claims[at] = claim;
    lake->claim_count++;
}

static struct mp_db_value now_value(struct mp_ducklake *lake)
{
    char *text = mp_arena_take(&lake->scratch, MP_DL_TIME_TEXT);

    mp_dl_time_text(mp_now_wall_us(lake->env), text);
    return (struct mp_db_value){.kind = MP_DB_TIME, .text = mp_str_c(text)};
}

/* --- positions --- */

static enum mp_code read_positions(struct mp_ducklake *lake, struct mp_lake_position *positions,
                                   uint32_t count, struct mp_err *err)
{
    const struct mp_db_result *answer;
    uint32_t number;
    enum mp_code code = mp_db_ready(lake->db, err);

    for (uint32_t i = 0; i < count; i++)
        positions[i] = (struct mp_lake_position){.partition = positions[i].partition, .next = -1};
    if (code || !lake->side)
        return code;
    number = MP_DB_SEND(lake->db,
                        "SELECT partition, next_offset, epoch, table_uuid FROM millpond_offsets"
                        " WHERE group_id = $1 AND topic = $2",
                        mp_db_text(lake->group), mp_db_text(lake->topic));
    code = mp_db_sync(lake->db, err);
    if (code)
        return code;
    answer = mp_db_result(lake->db, number);
    mp_arena_reset(&lake->lent);
    for (uint32_t i = 0; i < count; i++) {
        struct mp_lake_position *position = &positions[i];

        for (uint32_t row = 0; row < answer->rows; row++) {
            if (mp_db_number(answer, row, 0, -1) != position->partition)
                continue;
            position->next = mp_db_number(answer, row, 1, -1);
            position->epoch = mp_db_number(answer, row, 2, 0);
            if (!mp_db_is_null(answer, row, 3))
                position->table_uuid = mp_arena_str(&lake->lent, mp_db_cell(answer, row, 3));
        }
    }
    return MP_OK;
}

enum mp_code mp_dl_positions(struct mp_lake *self, struct mp_lake_position *positions,
                             uint32_t count, struct mp_err *err)
{
    struct mp_ducklake *lake = (struct mp_ducklake *)self;
    enum mp_code code = read_positions(lake, positions, count, err);

    if (code && mp_db_class(lake->db) == MP_DB_LOST)
        code = read_positions(lake, positions, count, err);
    if (code)
        mp_err_add(err, "read offsets of topic \"%.*s\"", MP_STR_ARG(lake->topic));
    return code;
}

enum mp_code mp_dl_topics(struct mp_lake *self, void (*visit)(void *self, struct mp_str topic),
                          void *visit_self, struct mp_err *err)
{
    struct mp_ducklake *lake = (struct mp_ducklake *)self;
    const struct mp_db_result *answer;
    uint32_t number;
    enum mp_code code = lake->side ? mp_db_ready(lake->db, err) : MP_OK;

    if (code || !lake->side)
        return code;
    number = MP_DB_SEND(lake->db,
                        "SELECT DISTINCT topic FROM millpond_offsets WHERE group_id = $1"
                        " ORDER BY topic",
                        mp_db_text(lake->group));
    code = mp_db_sync(lake->db, err);
    if (code)
        return code;
    answer = mp_db_result(lake->db, number);
    for (uint32_t row = 0; row < answer->rows; row++)
        visit(visit_self, mp_db_cell(answer, row, 0));
    return MP_OK;
}

/* --- claim --- */

struct claim_context {
    const struct mp_lake_claim *claims;
    uint32_t count, inserts;
    bool attempted; /* a run before this one may have landed */
};

/* Adds "(1, 2, 3), ..." of the claims that insert or of those that update; numbers only. */
static uint32_t claim_values(struct mp_buf *sql, const struct claim_context *context, bool insert)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < context->count; i++) {
        const struct mp_lake_claim *claim = &context->claims[i];

        if ((claim->read_next < 0) != insert)
            continue;
        mp_buf_printf(sql, "%s(%d, %lld, %lld, %lld)", count++ ? ", " : "", (int)claim->partition,
                      (long long)claim->read_next, (long long)claim->read_epoch,
                      (long long)claim->next);
    }
    return count;
}

static uint32_t claim_insert_send(struct mp_ducklake *lake, struct mp_buf *sql)
{
    return MP_DB_SEND(lake->db, mp_buf_c(sql), mp_db_text(lake->group), mp_db_text(lake->topic),
                      now_value(lake));
}

static enum mp_code claim_work(struct mp_ducklake *lake, void *context_of_any, struct mp_err *err,
                               bool *ret_keep)
{
    struct claim_context *context = context_of_any;
    struct mp_buf sql = MP_BUF_INIT((size_t)64 << 20);
    uint32_t inserts, updates, insert_number = 0, update_number = 0;
    int64_t changed = 0;
    enum mp_code code;

    (void)ret_keep;
    if (context->attempted)
        return mp_err_set(err, MP_CONFLICT, "the answer to the claim was lost");
    mp_db_begin(lake->db, MP_DB_WRITE);
    mp_buf_add_c(&sql, "WITH v(part, was_next, was_epoch, next) AS (VALUES ");
    inserts = claim_values(&sql, context, true);
    mp_buf_add_c(&sql, ") INSERT INTO millpond_offsets (group_id, topic, partition, next_offset,"
                       " epoch, updated_at) SELECT $1, $2, part, next, was_epoch + 1, $3 FROM v"
                       " WHERE true ON CONFLICT DO NOTHING");
    if (inserts)
        insert_number = claim_insert_send(lake, &sql);
    mp_buf_clear(&sql);
    mp_buf_add_c(&sql, "WITH v(part, was_next, was_epoch, next) AS (VALUES ");
    updates = claim_values(&sql, context, false);
    mp_buf_add_c(&sql, ") UPDATE millpond_offsets SET next_offset = v.next, epoch = epoch + 1,"
                       " updated_at = $3 FROM v WHERE group_id = $1 AND topic = $2"
                       " AND partition = v.part AND next_offset = v.was_next"
                       " AND epoch = v.was_epoch");
    if (updates)
        update_number = claim_insert_send(lake, &sql);
    code = mp_db_sync(lake->db, err);
    if (!code && inserts)
        changed += mp_db_result(lake->db, insert_number)->changed;
    if (!code && updates)
        changed += mp_db_result(lake->db, update_number)->changed;
    if (!code && changed != context->count)
        code = mp_err_set(err, MP_CONFLICT, "%lld of %u partitions are not as they were read",
                          (long long)(context->count - changed), context->count);
    /* From here a commit may land without our knowing it. Its epoch could then be taken for
     * another process's or the other way round, so it is read again by the caller. */
    context->attempted = !code;
    mp_buf_fini(&sql);
    return code;
}

enum mp_code mp_dl_claim(struct mp_lake *self, const struct mp_lake_claim *claims, uint32_t count,
                         struct mp_err *err)
{
    struct mp_ducklake *lake = (struct mp_ducklake *)self;
    struct claim_context context = {.claims = claims, .count = count};
    enum mp_code code;

    if (count == 0)
        return MP_OK;
    code = mp_dl_transact(lake, claim_work, &context, err);
    if (code) {
        mp_err_add(err, "claim %u partitions of topic \"%.*s\"", count, MP_STR_ARG(lake->topic));
        return code;
    }
    for (uint32_t i = 0; i < count; i++)
        remember(lake, (struct mp_dl_claim){claims[i].partition, claims[i].next,
                                            claims[i].read_epoch + 1});
    return MP_OK;
}

/* --- the swap of append --- */

uint32_t mp_dl_swap_send(struct mp_ducklake *lake, const struct mp_lake_range *ranges,
                         uint32_t count, const struct mp_dl_table *table)
{
    struct mp_buf sql = MP_BUF_INIT((size_t)64 << 20);
    uint32_t number;

    mp_buf_add_c(&sql, "WITH v(part, was_next, was_epoch, next) AS (VALUES ");
    for (uint32_t i = 0; i < count; i++) {
        const struct mp_dl_claim *claim = claim_of(lake, ranges[i].partition);

        assert(claim);                          /* claimed before it was read */
        assert(ranges[i].first == claim->next); /* ranges tile */
        assert(ranges[i].next >= ranges[i].first);
        assert(i == 0 || ranges[i].partition > ranges[i - 1].partition);
        mp_buf_printf(&sql, "%s(%d, %lld, %lld, %lld)", i ? ", " : "", (int)ranges[i].partition,
                      (long long)claim->next, (long long)claim->epoch, (long long)ranges[i].next);
    }
    mp_buf_add_c(&sql, ") UPDATE millpond_offsets SET next_offset = v.next, updated_at = $3");
    if (table)
        mp_buf_add_c(&sql, ", table_id = $4, table_uuid = $5,"
                           " snapshot_id = (SELECT MAX(snapshot_id) FROM ducklake_snapshot)");
    mp_buf_add_c(&sql, " FROM v WHERE group_id = $1 AND topic = $2 AND partition = v.part"
                       " AND next_offset = v.was_next AND epoch = v.was_epoch");
    if (table)
        number =
            MP_DB_SEND(lake->db, mp_buf_c(&sql), mp_db_text(lake->group), mp_db_text(lake->topic),
                       now_value(lake), mp_db_int(table->view.id), mp_db_text(table->view.uuid));
    else
        number = MP_DB_SEND(lake->db, mp_buf_c(&sql), mp_db_text(lake->group),
                            mp_db_text(lake->topic), now_value(lake));
    mp_buf_fini(&sql);
    return number;
}

enum mp_code mp_dl_swap_settle(struct mp_ducklake *lake, const struct mp_lake_range *ranges,
                               uint32_t count, struct mp_err *err, int64_t *ret_snapshot)
{
    const struct mp_db_result *answer;
    uint32_t number;
    int64_t snapshot = -1;
    enum mp_code code;

    number = MP_DB_SEND(lake->db,
                        "SELECT partition, next_offset, epoch, snapshot_id FROM millpond_offsets"
                        " WHERE group_id = $1 AND topic = $2",
                        mp_db_text(lake->group), mp_db_text(lake->topic));
    code = mp_db_sync(lake->db, err);
    if (code)
        return code;
    answer = mp_db_result(lake->db, number);
    for (uint32_t i = 0; i < count; i++) {
        const struct mp_dl_claim *claim = claim_of(lake, ranges[i].partition);
        int64_t next = -1, epoch = 0;

        for (uint32_t row = 0; row < answer->rows; row++) {
            if (mp_db_number(answer, row, 0, -1) != ranges[i].partition)
                continue;
            next = mp_db_number(answer, row, 1, -1);
            epoch = mp_db_number(answer, row, 2, 0);
            snapshot = mp_db_number(answer, row, 3, -1);
        }
        if (next != ranges[i].next || epoch != claim->epoch) /* O2 */
            return mp_err_set(err, MP_FENCED,
                              "partition %d of topic \"%.*s\" is at offset %lld, epoch %lld in the"
                              " lake; ours was offset %lld, epoch %lld",
                              (int)ranges[i].partition, MP_STR_ARG(lake->topic), (long long)next,
                              (long long)epoch, (long long)claim->next, (long long)claim->epoch);
    }
    *ret_snapshot = snapshot;
    return MP_OK;
}

void mp_dl_swap_done(struct mp_ducklake *lake, const struct mp_lake_range *ranges, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        claim_of(lake, ranges[i].partition)->next = ranges[i].next;
}
