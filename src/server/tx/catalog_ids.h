/* server/tx/catalog_ids.h - ids of catalogs by name, kept between transactions.
 *
 * A name means one catalog for as long as that exists, and no id is given twice, so a kept id is
 * good or means nothing any more: who uses one checks id and name together under the lock, and
 * forgets what was wrong.
 *
 * Memory   one slot for each of 1,024 hashes of names; the newer of two in a slot stays
 * Threads  any
 */
#ifndef MP_SERVER_TX_CATALOG_IDS_H
#define MP_SERVER_TX_CATALOG_IDS_H

#include "server/call.h"

struct mp_catalog_ids;

struct mp_catalog_ids *mp_catalog_ids_new(void);
/* No-op on NULL. */
void mp_catalog_ids_free(struct mp_catalog_ids *ids);
/* The id, asked for with the call's connection where it is not kept. 404: there is none. */
enum mp_code mp_catalog_id(struct mp_catalog_ids *ids, struct mp_call *call, struct mp_str name,
                           int64_t *ret);
void mp_catalog_id_forget(struct mp_catalog_ids *ids, struct mp_str name);

#endif
