/* lake/ducklake/ducklake.h - a DuckLake catalog in PostgreSQL or SQLite, without DuckDB.
 *
 * Opens the catalog, or makes an empty lake where there is none (DuckLake 1.0, its 28 tables and
 * first rows), and the side table of offsets. Refuses a catalog whose version is not "1.0".
 *
 * MP_BAD_CONFIG says what no retry will mend: a version (err->sys is EPROTONOSUPPORT), an encrypted
 * lake, another data path, a login (EACCES), a database (ENOENT). MP_NOT_FOUND: read_only, and
 * there is no lake yet.
 */
#ifndef MP_LAKE_DUCKLAKE_H
#define MP_LAKE_DUCKLAKE_H

#include "lake/lake.h"

/* Texts are borrowed for the call of open, env until close. */
struct mp_ducklake_options {
    struct mp_str catalog;      /* "sqlite:PATH" or "postgres:CONNINFO" (libpq keywords or URI) */
    struct mp_str data_path;    /* made absolute and closed with '/'; must equal a stored one */
    struct mp_str schema;       /* "main" or another; created when it is not there */
    struct mp_str group, topic; /* of the side table's key */
    struct mp_str author;       /* for snapshots: "millpond/{table}/{ordinal}" */
    struct mp_str version;      /* of this program, for metadata's created_by */
    uint32_t statement_ms_max;  /* one statement on the server; 0: 30,000 */
    uint32_t connect_ms_max;    /* 0: 10,000 */
    uint32_t race_retries_max;  /* lost commit races before the error goes up; 0: 100 */
    bool read_only;             /* check: creates and changes nothing */
};

enum mp_code mp_ducklake_open(const struct mp_ducklake_options *options, const struct mp_env *env,
                              struct mp_err *err, struct mp_lake **ret);
/* Asks the catalog's server what time it is, microseconds since 1970; there need be no lake.
 * MP_NOT_FOUND: the catalog is a file and has no clock. */
enum mp_code mp_ducklake_clock(const struct mp_ducklake_options *options, const struct mp_env *env,
                               struct mp_err *err, int64_t *ret_wall_us);

#endif
