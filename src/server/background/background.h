/* server/background/background.h - what runs by the clock: maintenance, samples and the health
 * probe.
 *
 * A task works on one catalog and says what it did as a JSON object, which is the answer of the
 * manual trigger, and the result in the run ledger. One thread runs the tasks that are due, catalog
 * by catalog; another probes the database on a connection of its own; a third asks it for what
 * /metrics shows and no request counts; a fourth looks at the files of the certificate.
 *
 * Threads  tasks may run at the same time as their manual triggers and in other servers: what they
 *          take is taken under the catalog's lock or with SKIP LOCKED.
 */
#ifndef MP_SERVER_BACKGROUND_BACKGROUND_H
#define MP_SERVER_BACKGROUND_BACKGROUND_H

#include "server/priv.h"
#include "store/store.h"

struct mp_background;

/* batch 0: the setting's. result: a buffer for the JSON object. */
typedef enum mp_code mp_task_run(struct mp_call *call, struct mp_str catalog, int64_t batch,
                                 struct mp_buf *result);

enum mp_task {
    MP_TASK_HYDRATOR,
    MP_TASK_EXPIRY,
    MP_TASK_CLEANUP,
    MP_TASK_COMPACTION,
    MP_TASK_RETIREMENT,
    MP_TASKS
};

extern const char *const mp_task_names[MP_TASKS];

enum mp_code mp_background_open(struct mp_server *server, struct mp_err *err,
                                struct mp_background **ret);
/* Ends what runs as soon as it can. No-op on NULL. */
void mp_background_close(struct mp_background *background);
/* Milliseconds between two runs of the loop; 0: off. */
int64_t mp_background_interval_ms(const struct mp_server *server, enum mp_task task);
/* Runs a task for a request or the loop, and writes the ledger. The result lands in ret. */
enum mp_code mp_background_run(struct mp_call *call, enum mp_task task, struct mp_str catalog,
                               int64_t batch, bool manual, struct mp_buf *ret);

mp_task_run mp_task_hydrator, mp_task_expiry, mp_task_cleanup, mp_task_compaction,
    mp_task_retirement;

/* Has tables that have grown counted anew, so that statements are planned for what is there
 * (planner.c). */
void mp_planner_refresh(struct mp_server *server);

/* Sets the gauges that the database knows (sample.c). */
void mp_sample(struct mp_server *server);

/* --- objects by their whole path, "s3://bucket/key" (objects.c) --- */

struct mp_objects;
struct mp_objects *mp_objects_new(struct mp_server *server);
void mp_objects_free(struct mp_objects *objects);
/* The store of the path's bucket, and the key in it. The store is lent until free. */
enum mp_code mp_objects_find(struct mp_objects *objects, struct mp_str path, struct mp_err *err,
                             struct mp_store **ret_store, struct mp_str *ret_key);
struct mp_objects *mp_background_objects(struct mp_server *server);

#endif
