/* server/pages.c - see pages.h. */
#include "server/pages.h"

#include "server/priv.h"

#include <assert.h>

enum { PIECE_BYTES = 256 * 1024, TRIES = 4, WAIT_US = 100000 };

/* Runs the batch and looks at the floor behind it. */
static enum mp_code sync_above_floor(struct mp_call *call, int64_t catalog_id, int64_t oldest)
{
    uint32_t number =
        MP_SQL(call->sql, "SELECT earliest_snapshot_id FROM hog_catalog WHERE catalog_id = $1",
               mp_v_int(catalog_id));
    enum mp_code code = mp_sql_sync(call->sql, &call->err);

    if (code)
        return code;
    if (!mp_sql_rows(call->sql, number))
        return mp_refuse_missing(call, "the catalog was dropped meanwhile");
    if (mp_sql_int(call->sql, number, 0, 0, 0) > oldest)
        return mp_refuse(call, 410, "expired", "snapshot %lld has expired meanwhile",
                         (long long)oldest);
    return MP_OK;
}

enum mp_code mp_pages_begin(struct mp_call *call, const struct mp_at *at, int64_t oldest)
{
    enum mp_code code = sync_above_floor(call, at->catalog_id, oldest);

    if (code)
        return code;
    call->pages = mp_arena_take(&call->arena, sizeof(*call->pages));
    *call->pages =
        (struct mp_pages){.catalog_id = at->catalog_id, .snapshot = at->snapshot, .oldest = oldest};
    return MP_OK;
}

uint32_t mp_pages_add(struct mp_call *call, uint32_t number, const struct mp_pages_list *list)
{
    struct mp_pages *pages = call->pages;
    struct mp_pages_list *added = mp_arena_take(&call->arena, sizeof(*added));
    struct mp_str array = mp_sql_cell(call->sql, number, 0, 0);
    uint32_t count = 0;

    assert(array.size >= 2 && array.data[0] == '{');
    *added = *list;
    added->ids = mp_arena_str(&call->arena, mp_str_n(array.data + 1, array.size - 2));
    if (!added->rows_max)
        added->rows_max = MP_PAGES_ROWS;
    if (pages->last)
        pages->last->next = added;
    else
        pages->first = added;
    pages->last = added;
    for (size_t i = 0; i < added->ids.size; i++)
        count += added->ids.data[i] == ',';
    return count + (added->ids.size > 0);
}

/* The ids of the next page; *ret_count: how many. */
static struct mp_str next_ids(const struct mp_pages_list *list, uint32_t *ret_count)
{
    struct mp_str ids = list->ids;
    size_t end = 0;

    *ret_count = 0;
    while (end < ids.size) {
        const char *comma = memchr(ids.data + end, ',', ids.size - end);

        end = comma ? (size_t)(comma - ids.data) : ids.size;
        if (++*ret_count == list->rows_max)
            break;
        end += comma != NULL;
    }
    return mp_str_n(ids.data, end);
}

static enum mp_code read_page(struct mp_call *call, const struct mp_pages_list *list,
                              struct mp_str ids, uint32_t count, uint32_t *ret)
{
    const struct mp_pages *pages = call->pages;
    struct mp_buf array = MP_BUF_INIT(SIZE_MAX / 4);
    enum mp_code code = mp_call_sql(call);

    if (code)
        return code;
    mp_buf_printf(&array, "{%.*s}", MP_STR_ARG(ids));
    *ret = MP_SQL(call->sql, list->page, mp_v_int(pages->catalog_id),
                  (struct mp_v){.type = MP_PG_INT8_ARRAY, .text = mp_buf_str(&array)},
                  mp_v_int(pages->snapshot), mp_v_int(list->flags));
    mp_buf_fini(&array);
    code = sync_above_floor(call, pages->catalog_id, pages->oldest); /* P1 */
    if (!code && mp_sql_rows(call->sql, *ret) != count)
        code = mp_refuse(call, 410, "expired", "%u of %u rows are gone",
                         count - mp_sql_rows(call->sql, *ret), count); /* P2 */
    return code;
}

static enum mp_code read_page_again(struct mp_call *call, const struct mp_pages_list *list,
                                    struct mp_str ids, uint32_t count, uint32_t *ret)
{
    enum mp_code code = read_page(call, list, ids, count, ret);

    for (int i = 1; call->pages->under_way && i < TRIES; i++) { /* P3 */
        if ((code != MP_IO && code != MP_TIMEOUT) || atomic_load(&call->server->stopping))
            break;
        mp_sql_give(call->server->pool, &call->sql);
        mp_sleep_us(call->server->env, WAIT_US << i);
        code = read_page(call, list, ids, count, ret);
    }
    return code;
}

static enum mp_code print_page(struct mp_call *call, struct mp_pages_list *list)
{
    struct mp_pages *pages = call->pages;
    uint32_t count, number = 0;
    struct mp_str ids = next_ids(list, &count);
    size_t used = ids.size + (ids.size < list->ids.size); /* with the comma behind it */
    enum mp_code code = read_page_again(call, list, ids, count, &number);

    if (code)
        return code;
    mp_arena_init(&pages->scratch, 0);
    for (uint32_t i = 0; i < count; i++) {
        if (i || list->begun)
            mp_buf_add_byte(&call->out, ',');
        list->print(call, list, number, i);
        list->begun = true;
    }
    mp_arena_fini(&pages->scratch);
    list->ids = mp_str_n(list->ids.data + used, list->ids.size - used);
    return MP_OK;
}

enum mp_code mp_pages_print(struct mp_call *call)
{
    struct mp_pages *pages = call->pages;
    enum mp_code code = MP_OK;

    while (!code && pages->first && call->out.size < PIECE_BYTES) {
        struct mp_pages_list *list = pages->first;

        if (!list->opened)
            mp_buf_add_c(&call->out, list->before ? list->before : "[");
        list->opened = true;
        if (list->ids.size)
            code = print_page(call, list);
        if (!code && !list->ids.size) {
            mp_buf_add_c(&call->out, list->after ? list->after : "]");
            pages->first = list->next;
        }
    }
    pages->under_way = true;
    if (!pages->first)
        call->pages = NULL;
    return code;
}
