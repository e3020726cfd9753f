/* lake/hoglake/create.c - catalog, namespace and table, made where they are not there.
 *
 * At each step somebody else may be first: 409 means that it is there now. A table that is to be
 * partitioned or sorted is made in one step where the catalog offers it (prepared, then published
 * empty); else it is made bare and then altered, so that for a moment it is there without its
 * layout: whoever meets it so declares it.
 *
 * After  the millpond sheet, 11.3; the hoglake 1.4 sheet, 4.3 and 4.8.
 */
#include "lake/hoglake/priv.h"

#include <stdio.h>

#define REQUEST_BYTES_MAX ((size_t)64 << 20)

static const struct mp_str none = {NULL, 0};

/* --- catalog --- */

static bool can(const struct mp_wire_catalog *catalog, const char *capability)
{
    for (uint32_t i = 0; i < catalog->capability_count; i++)
        if (mp_str_eq(catalog->capabilities[i], mp_str_c(capability)))
            return true;
    return false;
}

static enum mp_code take_catalog(struct mp_hoglake *lake, struct mp_err *err)
{
    struct mp_wire_reader reader = {.arena = &lake->scratch, .answer = true};
    struct mp_wire_catalog catalog;
    struct mp_str path;

    mp_wire_catalog_read(&reader, lake->answer.json, &catalog);
    if (reader.failed)
        return mp_hog_malformed(lake, &reader, err);
    path = catalog.data_path;
    while (path.size && path.data[path.size - 1] == '/')
        path.size--;
    lake->data_path = mp_str_c(mp_arena_printf(&lake->texts, "%.*s/", MP_STR_ARG(path)));
    lake->creates_partitioned = can(&catalog, "atomic-partitioned-table-creation-v1");
    lake->creates_sorted = can(&catalog, "atomic-sorted-table-creation-v1");
    return MP_OK;
}

static enum mp_code get_catalog(struct mp_hoglake *lake, struct mp_err *err)
{
    mp_hog_url(lake, MP_HOG_CATALOG, none, "");
    return mp_hog_ask(lake, "GET", none, err);
}

static enum mp_code list_catalogs(struct mp_hoglake *lake, struct mp_err *err)
{
    mp_hog_url_catalogs(lake);
    return mp_hog_ask(lake, "GET", none, err);
}

static enum mp_code make_catalog(struct mp_hoglake *lake, struct mp_str data_path,
                                 struct mp_err *err)
{
    struct mp_buf body = MP_BUF_INIT(REQUEST_BYTES_MAX);
    enum mp_code code;

    mp_buf_add_byte(&body, '{');
    mp_wire_member_text(&body, "name", lake->catalog);
    mp_wire_member_text(&body, "data_path", data_path);
    mp_buf_add_byte(&body, '}');
    mp_hog_url_catalogs(lake);
    code = mp_hog_ask(lake, "POST", mp_buf_str(&body), err);
    mp_buf_fini(&body);
    if (!code && lake->answer.status == 409) /* another process was first */
        code = get_catalog(lake, err);
    return code;
}

enum mp_code mp_hog_catalog_found(struct mp_hoglake *lake, struct mp_str data_path,
                                  struct mp_err *err)
{
    enum mp_code code = get_catalog(lake, err);

    if (!code && mp_hog_says_absent(&lake->answer)) {
        if (!data_path.size)
            return mp_err_set(
                err, MP_BAD_CONFIG,
                "there is no such catalog, and HOGLAKE_DATA_PATH is not set: it would "
                "be made there");
        code = lake->read_only ? list_catalogs(lake, err) : make_catalog(lake, data_path, err);
        if (!code && lake->read_only && lake->answer.status == 404)
            return mp_err_set(
                err, MP_BAD_CONFIG,
                "it answers, but knows no catalogs: HOGLAKE_URL is the server's root");
        if (!code && lake->read_only && mp_hog_fine(&lake->answer))
            return mp_err_set(err, MP_NOT_FOUND, "there is no such catalog yet");
    }
    if (!code && !mp_hog_fine(&lake->answer))
        code = mp_hog_refusal(lake, err);
    return code ? code : take_catalog(lake, err);
}

/* --- namespace --- */

static enum mp_code ensure_namespace(struct mp_hoglake *lake, struct mp_err *err)
{
    struct mp_wire_reader reader = {.arena = &lake->scratch, .answer = true};
    struct mp_buf body = MP_BUF_INIT(REQUEST_BYTES_MAX);
    enum mp_code code;
    bool there;

    mp_hog_url(lake, MP_HOG_CATALOG, none, "/namespaces");
    code = mp_hog_ask(lake, "GET", none, err);
    if (!code && !mp_hog_fine(&lake->answer))
        code = mp_hog_refusal(lake, err);
    if (code)
        return code;
    there = mp_wire_names_hold(&reader, lake->answer.json, lake->namespace_name);
    if (reader.failed)
        return mp_hog_malformed(lake, &reader, err);
    if (there)
        return MP_OK;
    mp_buf_add_byte(&body, '{');
    mp_wire_member_text(&body, "name", lake->namespace_name);
    mp_buf_add_byte(&body, '}');
    code = mp_hog_ask(lake, "POST", mp_buf_str(&body), err);
    mp_buf_fini(&body);
    if (!code && !mp_hog_fine(&lake->answer) && lake->answer.status != 409)
        code = mp_hog_refusal(lake, err);
    return code;
}

/* --- table --- */

struct creation {
    struct mp_str table;
    const struct mp_wire_column *columns;
    uint32_t count;
    struct mp_wire_partition_spec partition;
    struct mp_wire_sort_spec sort;
};

/* The new table as it will be: ids are given out from 1, depth first; our columns have no depth. */
static enum mp_code plan(struct mp_hoglake *lake, const struct mp_lake_new_column *columns,
                         uint32_t count, const struct mp_hog_layout *want, struct mp_err *err,
                         struct creation *ret)
{
    struct mp_wire_column *wire = mp_arena_take(&lake->scratch, sizeof(*wire) * (count + 1));
    struct mp_live_column *live = mp_arena_take(&lake->scratch, sizeof(*live) * (count + 1));
    struct mp_schema schema = {.columns = live, .column_count = count};
    struct mp_hog_declaration lacks;
    enum mp_code code;

    if (!count)
        return mp_err_set(err, MP_BAD_CONFIG, "a table needs a column");
    for (uint32_t i = 0; i < count; i++) {
        wire[i] = mp_hog_column(&lake->scratch, columns[i].name, columns[i].type);
        live[i] = (struct mp_live_column){
            .name = columns[i].name, .type = columns[i].type, .field_id = (int32_t)i + 1};
    }
    code = mp_hog_layout_compare(&lake->scratch, want, &schema, err, &lacks);
    ret->columns = wire;
    ret->count = count;
    ret->partition = lacks.partition;
    ret->sort = lacks.sort;
    return code;
}

/* The table as a whole, in one step or bare. MP_CONFLICT: another writer was first. */
static enum mp_code make_bare(struct mp_hoglake *lake, const struct creation *creation,
                              struct mp_err *err)
{
    struct mp_buf body = MP_BUF_INIT(REQUEST_BYTES_MAX);
    enum mp_code code;

    mp_buf_add_byte(&body, '{');
    mp_wire_member_text(&body, "name", creation->table);
    mp_wire_member(&body, "columns");
    mp_wire_columns_print(&body, creation->columns, creation->count);
    mp_buf_add_byte(&body, '}');
    mp_hog_url(lake, MP_HOG_NAMESPACE, none, "/tables");
    code = mp_hog_ask(lake, "POST", mp_buf_str(&body), err);
    mp_buf_fini(&body);
    if (!code && !mp_hog_fine(&lake->answer))
        code = mp_hog_refusal(lake, err);
    return code;
}

/* Where an operation stands after its answer: prepared and committed are as it should be. */
static enum mp_code read_creation(struct mp_hoglake *lake, const char *wanted, struct mp_err *err)
{
    struct mp_wire_reader reader = {.arena = &lake->scratch, .answer = true};
    struct mp_wire_creation creation;
    enum mp_code code = MP_CONFLICT;

    if (!mp_hog_fine(&lake->answer))
        return mp_hog_refusal(lake, err);
    mp_wire_creation_read(&reader, lake->answer.json, &creation);
    if (reader.failed)
        return mp_hog_malformed(lake, &reader, err);
    if (mp_str_eq(creation.state, mp_str_c(wanted)) ||
        mp_str_eq(creation.state, MP_STR("committed")))
        return MP_OK;
    if (mp_str_eq(creation.reason, MP_STR("definition_invalid")))
        code = MP_REFUSED;
    return mp_err_set(err, code, "the creation is %.*s%s%.*s", MP_STR_ARG(creation.state),
                      creation.reason.size ? ": " : "", MP_STR_ARG(creation.reason));
}

static enum mp_code make_whole(struct mp_hoglake *lake, const struct creation *creation,
                               struct mp_err *err)
{
    struct mp_buf body = MP_BUF_INIT(REQUEST_BYTES_MAX);
    char operation[MP_UUID_TEXT], path[100];
    enum mp_code code;

    mp_uuid4(lake->env, operation);
    mp_buf_add_byte(&body, '{');
    mp_wire_member_text(&body, "namespace", lake->namespace_name);
    mp_wire_member_text(&body, "name", creation->table);
    mp_wire_member(&body, "columns");
    mp_wire_columns_print(&body, creation->columns, creation->count);
    if (creation->partition.field_count) {
        mp_wire_member(&body, "partition_fields");
        mp_wire_partition_fields_print(&body, creation->partition.fields,
                                       creation->partition.field_count);
    }
    if (creation->sort.field_count) {
        mp_wire_member(&body, "sort_fields");
        mp_wire_sort_fields_print(&body, creation->sort.fields, creation->sort.field_count);
    }
    mp_buf_add_byte(&body, '}');
    snprintf(path, sizeof(path), "/table-creations/%s/%s", operation,
             creation->sort.field_count ? "sorted" : "partitioned");
    mp_hog_url(lake, MP_HOG_CATALOG, none, path);
    code = mp_hog_ask(lake, "PUT", mp_buf_str(&body), err);
    mp_buf_fini(&body);
    if (!code)
        code = read_creation(lake, "prepared", err);
    if (code)
        return code;
    snprintf(path, sizeof(path), "/table-creations/%s/commit", operation);
    mp_hog_url(lake, MP_HOG_CATALOG, none, path);
    code = mp_hog_ask(lake, "POST", MP_STR("{\"files\":[]}"), err);
    return code ? code : read_creation(lake, "committed", err);
}

enum mp_code mp_hog_create(struct mp_hoglake *lake, struct mp_str table,
                           const struct mp_lake_new_column *columns, uint32_t count,
                           const struct mp_hog_layout *want, struct mp_err *err,
                           struct mp_hog_table **ret)
{
    struct creation creation = {.table = table};
    struct mp_hog_table *made = NULL;
    uint64_t read_us = mp_now_mono_us(lake->env);
    bool bare, lost;
    enum mp_code code;

    code = ensure_namespace(lake, err);
    if (!code)
        code = plan(lake, columns, count, want, err, &creation);
    if (code)
        return code;
    bare = (!creation.partition.field_count && !creation.sort.field_count) ||
           (creation.partition.field_count && !lake->creates_partitioned) ||
           (creation.sort.field_count && !lake->creates_sorted);
    code = bare ? make_bare(lake, &creation, err) : make_whole(lake, &creation, err);
    lost = code == MP_CONFLICT;
    if (code && !lost)
        return code;
    if (bare && !lost)
        code = mp_hog_table_of_answer(lake, read_us, err, &made);
    else
        code = mp_hog_table_get(lake, table, err, &made);
    if (code == MP_NOT_FOUND) { /* made and dropped again, or never made */
        err->code = code = MP_CONFLICT;
        err->retriable = true;
    }
    if (!code)
        code = mp_hog_reconcile(lake, want, &made, err);
    if (code)
        mp_hog_table_free(made);
    else
        *ret = made;
    return code;
}
