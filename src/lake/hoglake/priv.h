/* lake/hoglake/priv.h - inner door of the hoglake driver.
 *
 *     client   one request, its answer, and what an answered refusal means
 *     table    a table as it is now: read, kept for a while, held to its layout
 *     layout   partition spec and sort order: as wanted, as live, compared, printed
 *     create   catalog, namespace and table, made where they are not there
 *     evolve   columns added, types promoted
 *     append   a commit sent, and sent again
 *     written  what tables and messages say of offsets that were lost
 *     body, key, names, bounds, spec, wire   texts, no I/O
 *
 * Always  G1 nothing is sent to an address that an answer named (no redirects)
 *         G2 a request whose outcome is not known is sent again as it was, byte for byte
 *         G3 after an answered refusal nothing that was read before it is believed
 */
#ifndef MP_LAKE_HOGLAKE_PRIV_H
#define MP_LAKE_HOGLAKE_PRIV_H

#include "base/arena.h"
#include "base/buf.h"
#include "lake/hoglake/body.h"
#include "lake/hoglake/hoglake.h"
#include "lake/hoglake/wire.h"
#include "net/http_client.h"

/* A partition spec and a sort order as the settings want them. */
struct mp_hog_layout {
    struct mp_str partition_by; /* the setting, which can be read */
    const struct mp_str *sort;  /* ascending, nulls last */
    uint32_t sort_count;
};

struct mp_hog_table {
    struct mp_lake_table view; /* first: the front door's pointer is this one's */
    struct mp_arena arena;     /* all texts and arrays */
    struct mp_hog_table *next;
    struct mp_hog_table *fresher; /* read since; lent by the next resolve */
    uint64_t read_us;             /* before it was asked for, monotonic */
    bool stale;                   /* to be read again before use */
};

/* The request whose outcome is not known yet. */
struct mp_hog_held {
    char key[MP_LAKE_KEY_SIZE]; /* "": none is held */
    struct mp_buf body, object; /* object: the key of its first file, which no other request has */
    uint32_t sent;              /* how often */
};

/* One answer; lent until the next request. */
struct mp_hog_answer {
    unsigned status;
    json_t *json; /* NULL: no body, or no JSON */
    struct mp_wire_error error;
    uint32_t wait_ms; /* of Retry-After */
};

struct mp_hoglake {
    struct mp_lake lake; /* first */
    const struct mp_env *env;
    struct mp_arena texts;   /* copies of the options */
    struct mp_arena scratch; /* of one call of the driver */
    struct mp_str base;      /* url and "/v1/catalogs" */
    size_t root_size;        /* of its part that may hold a password and is not shown */
    struct mp_str catalog, namespace_name, topic, author, version, program;
    struct mp_str data_path; /* with a '/' at its end */
    struct mp_str table;     /* whose layout is `layout` */
    struct mp_hog_layout layout;
    bool creates_partitioned, creates_sorted; /* what the catalog can do in one step */
    bool read_only;
    uint32_t request_ms_max;

    struct mp_http_client *http;
    struct mp_http_call call; /* the last one, with its buffers */
    struct mp_buf url;
    struct mp_hog_answer answer;

    struct mp_hog_table *tables; /* the last reading of each name */
    bool ttl_known;
    uint64_t ttl_us; /* UINT64_MAX: a reading is good for ever */
    struct mp_hog_held held;
};

/* --- client.c --- */

/* Where a path ends after the catalog's name, printed with mp_hog_path. */
enum mp_hog_place { MP_HOG_CATALOG, MP_HOG_NAMESPACE, MP_HOG_TABLE };

/* Begins the URL of the next request: ".../v1/catalogs", or behind it the catalog (and so on),
 * each segment escaped; table is looked at for MP_HOG_TABLE only. `rest` comes behind as it is. */
void mp_hog_url_catalogs(struct mp_hoglake *lake);
void mp_hog_url(struct mp_hoglake *lake, enum mp_hog_place place, struct mp_str table,
                const char *rest);
/* Sends the request and waits. MP_OK: lake->answer is there, of whatever status; else nothing is
 * known of what the server did. body: JSON; data NULL: none. */
enum mp_code mp_hog_ask(struct mp_hoglake *lake, const char *method, struct mp_str body,
                        struct mp_err *err);

static inline bool mp_hog_fine(const struct mp_hog_answer *answer)
{
    return answer->status >= 200 && answer->status < 300;
}

/* The same request may bring another answer soon: 408, 429 and all of 5xx. */
bool mp_hog_passing(unsigned status);
/* The last answer, which is not fine, as an error. A 409 is a lost race (retriable). */
enum mp_code mp_hog_refusal(struct mp_hoglake *lake, struct mp_err *err);
/* Whether an answer that is not fine is the catalog's own: {"error":"some_name", ...}.
 * One of a proxy in front of it says nothing of what was asked for. */
bool mp_hog_own_words(const struct mp_hog_answer *answer);
/* A 404 in the catalog's own words. What stands in between (a proxy without a route) answers 404
 * too, which says nothing of what was asked for. */
bool mp_hog_says_absent(const struct mp_hog_answer *answer);
/* The last answer, which says so, as MP_NOT_FOUND. */
enum mp_code mp_hog_absent(struct mp_hoglake *lake, struct mp_err *err);
/* A fine answer that could not be read. */
enum mp_code mp_hog_malformed(struct mp_hoglake *lake, const struct mp_wire_reader *reader,
                              struct mp_err *err);

/* --- layout.c; no I/O --- */

enum { MP_HOG_DECLARE_PARTITION = 1, MP_HOG_DECLARE_SORT = 2 };

/* What is to be declared of a layout, as fields of the table. */
struct mp_hog_declaration {
    unsigned what; /* of MP_HOG_DECLARE_*; 0: the layout is as wanted */
    struct mp_wire_partition_spec partition;
    struct mp_wire_sort_spec sort;
    struct mp_str missing_sort; /* a wanted sort column that the table has not, so that no order
                                 * is asked of it; data NULL: none */
};

/* Compares a live table with what is wanted. MP_BAD_CONFIG: it is laid out otherwise, or cannot be
 * laid out so. What *ret holds lies in arena. */
enum mp_code mp_hog_layout_compare(struct mp_arena *arena, const struct mp_hog_layout *want,
                                   const struct mp_schema *schema, struct mp_err *err,
                                   struct mp_hog_declaration *ret);
/* Whether files that were made for `made` can be registered in `now`. */
bool mp_hog_layout_fits(const struct mp_lake_table *made, const struct mp_lake_table *now);
/* Reads a live table's specs. False: *ret_wrong says which part is not known here. */
bool mp_hog_layout_read(struct mp_arena *arena, const struct mp_wire_table *wire,
                        struct mp_schema *ret, const char **ret_wrong);

/* --- table.c --- */

enum mp_code mp_hog_resolve(struct mp_lake *lake, struct mp_str table, struct mp_err *err,
                            const struct mp_lake_table **ret);
/* Reads the table, whatever is kept. MP_NOT_FOUND: there is none. Gives an owned table. */
enum mp_code mp_hog_table_get(struct mp_hoglake *lake, struct mp_str name, struct mp_err *err,
                              struct mp_hog_table **ret);
/* The same of the last answer, which is a table. read_us: when it was asked for. */
enum mp_code mp_hog_table_of_answer(struct mp_hoglake *lake, uint64_t read_us, struct mp_err *err,
                                    struct mp_hog_table **ret);
/* Holds the table to its layout: declares what it lacks (*table is the new reading then). */
enum mp_code mp_hog_reconcile(struct mp_hoglake *lake, const struct mp_hog_layout *want,
                              struct mp_hog_table **table, struct mp_err *err);
/* The layout asked of a table that is there; NULL: any will do. */
const struct mp_hog_layout *mp_hog_layout_of(const struct mp_hoglake *lake, struct mp_str table);
/* Lends the table, in place of what was lent for its name before. Takes it. */
const struct mp_lake_table *mp_hog_table_lend(struct mp_hoglake *lake, struct mp_hog_table **table);
/* Keeps a newer reading for the next resolve, while the old one stays lent. Takes it. */
void mp_hog_table_keep_fresher(struct mp_hoglake *lake, struct mp_hog_table **table);
/* The reading kept under that name, the freshest; NULL: none. */
struct mp_hog_table *mp_hog_table_kept(struct mp_hoglake *lake, struct mp_str name);
/* G3: every table is read again before use. What is lent stays lent. */
void mp_hog_distrust(struct mp_hoglake *lake);
/* No-op on NULL. */
void mp_hog_table_free(struct mp_hog_table *table);

/* --- create.c --- */

/* Reads the catalog at open, or makes it. data_path: of one that is made; empty: none is. */
enum mp_code mp_hog_catalog_found(struct mp_hoglake *lake, struct mp_str data_path,
                                  struct mp_err *err);
/* Makes namespace and table where they are missing; gives the table, laid out as wanted. */
enum mp_code mp_hog_create(struct mp_hoglake *lake, struct mp_str table,
                           const struct mp_lake_new_column *columns, uint32_t count,
                           const struct mp_hog_layout *want, struct mp_err *err,
                           struct mp_hog_table **ret);

/* --- evolve.c, append.c, written.c: the driver's functions --- */

/* Sends the alter operations in ops, a JSON array, to the table. MP_OK: answered. */
enum mp_code mp_hog_alter(struct mp_hoglake *lake, struct mp_str table, struct mp_str ops,
                          struct mp_err *err);
enum mp_code mp_hog_evolve(struct mp_lake *lake, struct mp_str table,
                           const struct mp_lake_evolution *evolution,
                           const struct mp_lake_create *create, struct mp_err *err,
                           const struct mp_lake_table **ret);
enum mp_code mp_hog_written(struct mp_lake *lake, struct mp_str table,
                            void (*visit)(void *self, int32_t partition, int64_t last),
                            void *visit_self, struct mp_err *err, bool *ret_rows);
enum mp_code mp_hog_published(struct mp_lake *lake, struct mp_str key, struct mp_err *err,
                              bool *ret);
enum mp_code mp_hog_append(struct mp_lake *lake, const struct mp_lake_commit *commit,
                           struct mp_err *err, struct mp_lake_result *ret);

#endif
