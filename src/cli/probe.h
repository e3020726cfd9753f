/* cli/probe.h - whether the store can be written to, known before a record is read. */
#ifndef MP_CLI_PROBE_H
#define MP_CLI_PROBE_H

#include "config/config.h"
#include "obs/log.h"
#include "store/store.h"

/* Puts the empty object _millpond/probe where a hoglake catalog wants its files. A fault says what
 * to look at. */
enum mp_code mp_probe_store(const struct mp_config *config, struct mp_str data_path,
                            struct mp_store *store, struct mp_log *log, struct mp_err *err);

/* The same where a DuckLake has its files, and takes it away again, since what no catalog names is
 * an orphan there; that it may not is a warning. */
enum mp_code mp_prove_store(struct mp_store *store, struct mp_log *log, struct mp_err *err);

#endif
