/* server/tx/tx.h - a transaction that writes one catalog.
 *
 * It takes the catalog's advisory lock first and reads afterwards: from then on nobody else can
 * make a snapshot, so READ COMMITTED sees the newest state and ids can be counted up here. The
 * allocators, the snapshots and their typed changes go out together with COMMIT in one round trip.
 *
 * Life     run: begin (lock, state) -> work (reads, queued writes) -> finish (snapshots, COMMIT)
 * Always   X1 a refused transaction writes nothing and uses no snapshot id
 *          X2 snapshot times grow strictly with their ids
 *          X3 after a connection was lost at COMMIT, the token in hog_snapshot tells whether the
 *             transaction is in; only when nobody can be asked in time is the outcome unknown, and
 *             the answer then says so (500)
 *          X4 work may be run more than once, always from a fresh state
 */
#ifndef MP_SERVER_TX_TX_H
#define MP_SERVER_TX_TX_H

#include "server/priv.h"

struct mp_tx {
    struct mp_call *call; /* arena, refusal, error */
    struct mp_sql *sql;
    /* State under the lock. */
    int64_t catalog_id, head, schema_version, floor;
    int64_t next_table, next_file, next_namespace, next_view; /* count them up */
    int64_t time_us;    /* of the next snapshot, which is now or a moment later */
    uint64_t waited_us; /* the request already, which shortens its wait for the lock */
    struct mp_str catalog, data_path; /* in the call's arena */
    /* What finish writes. */
    int64_t token, first_snapshot; /* first_snapshot 0: none was made */
    uint32_t snapshot_count;
    struct mp_sql_array snapshot_ids, snapshot_times, schema_versions, authors, messages;
    struct mp_sql_array change_snapshots, change_kinds, change_objects;
    uint32_t answer; /* of begin */
};

typedef enum mp_code mp_tx_work(struct mp_tx *tx, void *context);

/* Runs work on the catalog. 404 where there is none of that name. */
enum mp_code mp_tx_run(struct mp_call *call, struct mp_str catalog, mp_tx_work *work,
                       void *context);

/* For work: makes the next snapshot and gives its id. */
int64_t mp_tx_snapshot(struct mp_tx *tx, bool schema_step, struct mp_str author,
                       struct mp_str message);
/* A change of the last snapshot. kind: a literal of hog_snapshot_change. */
void mp_tx_change(struct mp_tx *tx, const char *kind, int64_t object);
enum mp_code mp_tx_sync(struct mp_tx *tx);

/* The parts of run, for who has to do more in between (tx/commit.c). */
void mp_tx_init(struct mp_tx *tx, struct mp_call *call, struct mp_str catalog);
void mp_tx_fini(struct mp_tx *tx);
/* Finds the catalog's id (404: there is none) and queues BEGIN, the lock and the state; the caller
 * may queue reads behind them and syncs. */
enum mp_code mp_tx_begin_send(struct mp_tx *tx);
enum mp_code mp_tx_begin_read(struct mp_tx *tx);
/* Queues what is to be written, and COMMIT; syncs. */
enum mp_code mp_tx_finish(struct mp_tx *tx);
void mp_tx_rollback(struct mp_tx *tx);

enum mp_tx_outcome { MP_TX_IN, MP_TX_NOT_IN, MP_TX_UNKNOWN };

/* After the connection was lost at finish: whether the transaction is in. Takes a connection of its
 * own; asks for HOGLAKE_DB_RECOVERY_MS. */
enum mp_tx_outcome mp_tx_follow_up(const struct mp_tx *tx);
/* Whether the failure is one that may be gone at the next try (a lost connection, a deadlock). */
bool mp_tx_transient(const struct mp_tx *tx, enum mp_code code);

#endif
