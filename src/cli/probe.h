/* cli/probe.h - whether the store that a hoglake catalog names can be written to. */
#ifndef MP_CLI_PROBE_H
#define MP_CLI_PROBE_H

#include "config/config.h"
#include "obs/log.h"
#include "store/store.h"

/* Puts the empty object _millpond/probe. A fault says what to look at. */
enum mp_code mp_probe_store(const struct mp_config *config, struct mp_str data_path,
                            struct mp_store *store, struct mp_log *log, struct mp_err *err);

#endif
