/* lake/hoglake/hoglake.h - a hoglake catalog, spoken to over its REST interface.
 *
 * open reads the catalog, and makes it where it is not there and a data path is given. The table
 * that is named is held to its layout: partition spec and sort order of the settings are declared
 * where the live table has none, compared on every reading of it otherwise.
 *
 * MP_BAD_CONFIG says what no retry will mend: no catalog, another layout, a redirect.
 * MP_NOT_FOUND: read_only, and there is no catalog yet.
 */
#ifndef MP_LAKE_HOGLAKE_H
#define MP_LAKE_HOGLAKE_H

#include "lake/lake.h"

/* Texts are borrowed for the call of open, env until close. */
struct mp_hoglake_options {
    struct mp_str url; /* root, without a '/' at its end and without "/v1" */
    struct mp_str catalog, namespace_name;
    struct mp_str data_path;      /* of a catalog that is made; empty: none is */
    struct mp_str table;          /* whose layout the next two are */
    struct mp_str partition_by;   /* HOGLAKE_PARTITION_BY's grammar, see lake/partition_by.h */
    const struct mp_str *sort_by; /* column names, ascending, nulls last */
    uint32_t sort_by_count;
    struct mp_str topic;     /* of keys and messages */
    struct mp_str author;    /* of snapshots: "millpond/{table}/{ordinal}" */
    struct mp_str version;   /* in messages */
    struct mp_str program;   /* User-Agent: "millpond/1.2.3" */
    uint32_t request_ms_max; /* one request, start to end; 0: 45,000 */
    bool read_only;          /* check: creates, declares and changes nothing */
};

enum mp_code mp_hoglake_open(const struct mp_hoglake_options *options, const struct mp_env *env,
                             struct mp_err *err, struct mp_lake **ret);

#endif
