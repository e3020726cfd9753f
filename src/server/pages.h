/* server/pages.h - lists of any length: ids first, then pages.
 *
 * One statement gives the ids of a list's rows in their order, as one array. It is kept as text,
 * about 8 bytes a row, while the rows are read a page at a time: by their ids, each page in a
 * statement of its own. What does not fit into a piece is left to the stream (net/http_server.h),
 * which asks for it once the client has taken the piece before. So a list costs a page of memory
 * besides its ids, and a client that is slow to read it holds no connection of the pool.
 *
 * P1  a list is of one snapshot. Rows that a retained snapshot sees do not change, and they are
 *     purged only behind the floor: each page looks, after its rows, whether the floor has passed
 *     what the list needs
 * P2  a list is never silently shorter: where the floor has passed, or a row is missing, it is
 *     refused (410) as long as nothing has been sent, and broken from there on
 * P3  a page under way whose connection failed is asked for again on another one
 *
 * Life     ids queued -> begin -> add, a list each -> print -> (print, while call->pages)*
 * Memory   all in the call's arena, which lives until the answer has ended; scratch is emptied
 *          behind each page.
 */
#ifndef MP_SERVER_PAGES_H
#define MP_SERVER_PAGES_H

#include "server/call.h"
#include "server/tables.h"

/* For the statement of a page: the rows of a table by their ids, p.id in the order of p.n. OFFSET 0
 * has each looked up by itself: a planner that thinks the table small would read all of the
 * catalog's rows and compare them with each id. */
#define MP_PAGES_ROWS_OF(table, row, id)                                                           \
    "unnest($2) WITH ORDINALITY AS p(id, n) CROSS JOIN LATERAL (SELECT * FROM " table              \
    " r WHERE r.catalog_id = $1 AND r." id " = p.id OFFSET 0) " row

struct mp_pages_list {
    const char *before; /* NULL: "[" */
    const char *after;  /* NULL: "]" */
    /* A row for each of the ids $2, in their order; $1: catalog, $3: snapshot, $4: flags. */
    const char *page;
    int64_t flags;     /* what else the statement wants to know */
    uint32_t rows_max; /* of a page; 0: MP_PAGES_ROWS */
    void (*print)(struct mp_call *call, const struct mp_pages_list *list, uint32_t number,
                  uint32_t row);
    const void *self; /* for print; in the call's arena */
    /* pages.c */
    struct mp_pages_list *next;
    struct mp_str ids; /* separated by commas; those that are still to come */
    bool opened, begun;
};

enum { MP_PAGES_ROWS = 1000 };

struct mp_pages {
    int64_t catalog_id, snapshot;
    int64_t oldest; /* snapshot that the lists need: P1 */
    struct mp_pages_list *first, *last;
    struct mp_arena scratch; /* for print: emptied behind the page */
    bool under_way;          /* something has been sent */
};

/* Ends the batch in which the ids were asked for. 410: P2. */
enum mp_code mp_pages_begin(struct mp_call *call, const struct mp_at *at, int64_t oldest);
/* Adds the list (copied) whose ids are the one cell of that answer; gives how many there are. */
uint32_t mp_pages_add(struct mp_call *call, uint32_t number, const struct mp_pages_list *list);
/* Prints pages until there is a piece; call->pages is NULL behind the last one. */
enum mp_code mp_pages_print(struct mp_call *call);

#endif
