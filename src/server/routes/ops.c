/* server/routes/ops.c - probes, metrics, information, debugging. */
#include "server/columns.h"

#include "base/base64.h"
#include "server/routes/routes.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const openapi[] = {
#include "openapi.inc"
};

enum mp_code mp_route_livez(struct mp_call *call)
{
    call->content_type = "text/plain";
    mp_buf_add_c(&call->out, "ok");
    return MP_OK;
}

/* What a background probe on a connection of its own last saw: a busy pool does not matter. */
enum mp_code mp_route_healthz(struct mp_call *call)
{
    call->content_type = "text/plain";
    if (atomic_load(&call->server->database_up)) {
        mp_buf_add_c(&call->out, "ok");
    } else {
        call->status = 503;
        mp_buf_add_c(&call->out, "the database does not answer");
    }
    return MP_OK;
}

enum mp_code mp_route_metrics(struct mp_call *call)
{
    struct mp_server *server = call->server;
    struct mp_sql_pool_state pool = mp_sql_pool_state(server->pool);

    mp_server_metrics_set(server->metrics, MP_SM_POOL_ACTIVE, pool.open - pool.idle);
    mp_server_metrics_set(server->metrics, MP_SM_POOL_IDLE, pool.idle);
    mp_server_metrics_set(server->metrics, MP_SM_POOL_PENDING, pool.waiting);
    mp_server_metrics_set(server->metrics, MP_SM_POOL_MAX, pool.size);
    mp_server_metrics_set(server->metrics, MP_SM_QUEUED, mp_http_server_queued(server->http));
    mp_server_metrics_set(server->metrics, MP_SM_ACTIVE, mp_http_server_active(server->http));
    mp_server_metrics_set(server->metrics, MP_SM_THREADS,
                          (double)server->settings->HOGLAKE_REQUEST_THREADS);
    mp_server_metrics_set(server->metrics, MP_SM_BODIES,
                          (double)mp_http_server_bodies_bytes(server->http));
    mp_server_metrics_set(server->metrics, MP_SM_ANSWERS,
                          (double)mp_http_server_answers_bytes(server->http));
    if (server->tls)
        mp_server_metrics_set(server->metrics, MP_SM_TLS_END,
                              (double)mp_http_tls_end_s(server->tls));
    call->content_type = "text/plain; version=0.0.4; charset=utf-8";
    mp_server_metrics_print(server->metrics, &call->out);
    return MP_OK;
}

enum mp_code mp_route_openapi(struct mp_call *call)
{
    call->content_type = "application/yaml";
    for (int i = 0; openapi[i]; i++)
        mp_buf_add_c(&call->out, openapi[i]);
    return MP_OK;
}

enum mp_code mp_route_info(struct mp_call *call)
{
    const struct mp_server_settings *settings = call->server->settings;

    mp_buf_add_byte(&call->out, '{');
    if (settings->HOGLAKE_INSTANCE_NAME.size)
        mp_wire_member_text(&call->out, "name", settings->HOGLAKE_INSTANCE_NAME);
    if (settings->HOGLAKE_UI_THEME.size)
        mp_wire_member_text(&call->out, "ui_theme", settings->HOGLAKE_UI_THEME);
    mp_wire_member_text(&call->out, "version", mp_str_c(MP_VERSION));
    mp_buf_add_byte(&call->out, '}');
    return MP_OK;
}

enum mp_code mp_route_decode_bound(struct mp_call *call)
{
    static const char *const known[] = {"type", "value", "type_params", NULL};
    struct mp_wire_reader reader = {.arena = &call->arena};
    struct mp_wire_column column = {0};
    struct mp_str value = {NULL, 0}, bytes;
    struct mp_err err;
    enum mp_hog_type type;
    size_t at;
    enum mp_code code;

    if (mp_wire_object(&reader, call->body, "the request", known)) {
        mp_wire_text(&reader, call->body, "type", true, &column.type);
        mp_wire_text(&reader, call->body, "value", true, &value);
        mp_wire_json_text(&reader, call->body, "type_params", &column.type_params);
    }
    code = mp_call_read_end(call, &reader);
    if (code)
        return code;
    if (mp_hog_type_read(column.type, &err, &type))
        return mp_refuse_invalid(call, "%s", err.text);
    if (mp_hog_types[type].bound == MP_HOG_BOUND_NONE)
        return mp_refuse_invalid(call, "type %s has no bounds", mp_hog_types[type].name);
    if (mp_column_params_check(&column, type, true, "value", &err))
        return mp_refuse_invalid(call, "%s", err.text);
    if (!mp_base64_read(&call->arena, value, &bytes))
        return mp_refuse_invalid(call, "value is no base64");
    if (bytes.size > 1024)
        return mp_refuse_invalid(call, "value has more than 1024 bytes");
    if (!mp_hog_bound_valid(type, bytes))
        return mp_refuse_invalid(call, "value is no bound of type %s", mp_hog_types[type].name);
    mp_buf_add_byte(&call->out, '{');
    mp_wire_member_text(&call->out, "type", mp_str_c(mp_hog_types[type].name));
    mp_wire_member(&call->out, "value");
    at = call->out.size;
    mp_hog_bound_print(&call->out, type, mp_column_scale(&column), bytes);
    if (mp_str_eq(mp_str_n(call->out.data + at, call->out.size - at), MP_STR("null")))
        return mp_refuse_invalid(call, "value cannot be decoded as a %s", mp_hog_types[type].name);
    mp_buf_add_byte(&call->out, '}');
    return MP_OK;
}

enum mp_code mp_route_not_implemented(struct mp_call *call)
{
    return mp_refuse(call, 501, "not_implemented", "publications and export do not exist");
}

struct mp_str mp_audit_name(struct mp_call *call, struct mp_str name)
{
    return mp_str_c(
        mp_arena_printf(&call->arena, "%.*s.%.*s", MP_STR_ARG(call->parts[1]), MP_STR_ARG(name)));
}

void mp_audit(struct mp_call *call, struct mp_str catalog, const struct mp_audit *what,
              const char *format, ...)
{
    struct mp_str author = what->by ? what->by->author : MP_STR("");
    struct mp_str message = what->by ? what->by->message : MP_STR("");
    char detail[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(detail, sizeof(detail), format, args);
    va_end(args);
    struct mp_log_field fields[] = {
        {"action", false, mp_str_c(what->action)},
        {"catalog", false, catalog},
        {"object", false, what->object.data ? what->object : MP_STR("")},
        {"outcome", false, mp_str_c(what->outcome)},
        {"detail", false, mp_str_c(detail)},
        {"author", false, author.data ? author : MP_STR("")},
        {"message", false, message.data ? message : MP_STR("")},
        {"request_id", false, mp_str_c(call->request_id)},
    };

    mp_log_with(call->server->log, MP_LOG_INFO, "hoglake.audit", fields,
                sizeof(fields) / sizeof(*fields), "%s", what->action);
}
