/* server/routes/routes.h - every handler of the table in server/route.c. */
#ifndef MP_SERVER_ROUTES_ROUTES_H
#define MP_SERVER_ROUTES_ROUTES_H

#include "server/priv.h"

#define MP_HANDLER(name) enum mp_code mp_route_##name(struct mp_call *call)

MP_HANDLER(livez);
MP_HANDLER(healthz);
MP_HANDLER(metrics);
MP_HANDLER(openapi);
MP_HANDLER(info);
MP_HANDLER(database_health);
MP_HANDLER(decode_bound);
MP_HANDLER(not_implemented);

MP_HANDLER(catalog_list);
MP_HANDLER(catalog_create);
MP_HANDLER(catalog_get);
MP_HANDLER(catalog_drop);

MP_HANDLER(namespace_list);
MP_HANDLER(namespace_create);
MP_HANDLER(namespace_get);
MP_HANDLER(namespace_drop);

MP_HANDLER(table_list);
MP_HANDLER(table_create);
MP_HANDLER(table_get);
MP_HANDLER(table_drop);
MP_HANDLER(table_truncate);
MP_HANDLER(table_alter);

MP_HANDLER(files);
MP_HANDLER(file_stats);
MP_HANDLER(scan);
MP_HANDLER(changes);
MP_HANDLER(partitions);
MP_HANDLER(partition_values);
MP_HANDLER(partition_stats);

MP_HANDLER(snapshots);
MP_HANDLER(snapshot_resolve);

MP_HANDLER(commit);
MP_HANDLER(commit_prepared);
MP_HANDLER(commit_deletes);
MP_HANDLER(commit_mutations);
MP_HANDLER(commit_uploads);
MP_HANDLER(commit_transaction);
MP_HANDLER(commit_receipt);

MP_HANDLER(options_get);
MP_HANDLER(options_patch);

MP_HANDLER(consumer_list);
MP_HANDLER(consumer_offsets);
MP_HANDLER(consumer_offset_get);
MP_HANDLER(consumer_offset_put);

MP_HANDLER(view_list);
MP_HANDLER(view_create);
MP_HANDLER(view_get);
MP_HANDLER(view_drop);

MP_HANDLER(expire);
MP_HANDLER(cleanup);
MP_HANDLER(compact);
MP_HANDLER(rehydrate);
MP_HANDLER(maintenance_status);
MP_HANDLER(maintenance_runs);
MP_HANDLER(instance_status);
MP_HANDLER(instance_runs);

MP_HANDLER(upload_claim);
MP_HANDLER(upload_renew);
MP_HANDLER(upload_abandon);
MP_HANDLER(upload_schedule_expired);

MP_HANDLER(creation_plain);
MP_HANDLER(creation_partitioned);
MP_HANDLER(creation_sorted);
MP_HANDLER(creation_metadata);
MP_HANDLER(creation_get);
MP_HANDLER(creation_commit);
MP_HANDLER(creation_commit_uploads);
MP_HANDLER(creation_abort);

/* A line in the audit log: who changed what, once the change is in. The format is the detail. */
struct mp_audit {
    const char *action, *outcome;
    struct mp_str object;            /* empty: the catalog itself */
    const struct mp_attribution *by; /* NULL: nobody is named */
};
void mp_audit(struct mp_call *call, struct mp_str catalog, const struct mp_audit *what,
              const char *format, ...) __attribute__((format(printf, 4, 5)));
/* "namespace.name", of the path's second and third part. */
struct mp_str mp_audit_name(struct mp_call *call, struct mp_str name);

#endif
