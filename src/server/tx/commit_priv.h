/* server/tx/commit_priv.h - inner door between commit.c (the queue and the transaction), plan.c
 * (one member's validation) and deletes.c. */
#ifndef MP_SERVER_TX_COMMIT_PRIV_H
#define MP_SERVER_TX_COMMIT_PRIV_H

#include "server/tx/shapes.h"

#include <pthread.h>

/* One touched table of a member, its groups of the same name merged. */
struct mp_group_table {
    struct mp_str namespace_name, name;
    struct mp_shape *shape; /* got from the cache, put back when the member is reset */
    struct mp_wire_file *files;
    struct mp_wire_delete_file *deletes;
    uint32_t file_count, delete_count;
    bool appends, removes;
};

enum mp_member_state { MP_MEMBER_NEW, MP_MEMBER_REFUSED, MP_MEMBER_REPLAYED, MP_MEMBER_PLANNED };

struct mp_member {
    struct mp_member *next; /* in the queue */
    struct mp_call *call;
    const struct mp_wire_commit *request;
    const struct mp_commit_rules *rules;
    unsigned char fingerprint[MP_FINGERPRINT_BYTES];
    pthread_cond_t wake;
    uint64_t since_us; /* monotonic: since when its request waits */
    bool done;
    /* This try's. */
    enum mp_member_state state;
    bool rests; /* its answer rests on another member's commit */
    bool again; /* the lock did not come, and it may wait longer */
    struct mp_group_table *tables;
    uint32_t table_count;
    /* The answer. */
    enum mp_code code;
    struct mp_wire_commit_result result;
};

/* A path that a removal or an upload claim knows. */
struct mp_path_hit {
    struct mp_str path, owner, state, kind; /* owner data NULL: a removal */
    bool expired;
};

/* One transaction of a group. */
struct mp_group {
    struct mp_commits *commits;
    struct mp_tx *tx;
    struct mp_member **members;
    uint32_t count;
    int64_t head;             /* committed, as of begin */
    struct mp_path_hit *hits; /* by path */
    uint32_t hit_count;
    struct mp_table_gain *gains; /* running sums */
    uint32_t gain_count, gain_room;
    struct mp_file_rows rows;
    struct mp_sql_array receipt_keys, receipt_prints, receipt_snapshots, receipt_versions;
    struct mp_sql_array used_claims; /* paths */
    uint32_t receipt_count, claim_count;
};

/* Merges the member's groups by table. */
void mp_plan_tables(struct mp_member *member);
/* Validates a member against the state in the group and plans its snapshot and rows. The member's
 * shapes are there. Only database failures are returned; a refusal lands in the member. */
enum mp_code mp_plan_member(struct mp_group *group, struct mp_member *member);
/* Deletion vectors of the member, whose snapshot has been made (deletes.c). MP_REFUSED: the whole
 * transaction ends; the member is alone in it. */
enum mp_code mp_plan_deletes_check(struct mp_member *member);
enum mp_code mp_plan_deletes(struct mp_group *group, struct mp_member *member, int64_t first_file);
/* Whether a delete target changed since read_snapshot, beyond DDL. */
enum mp_code mp_plan_unchanged(struct mp_group *group, struct mp_member *member);

#endif
