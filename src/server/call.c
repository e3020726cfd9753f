/* server/call.c - see call.h. */
#include "server/call.h"

#include "base/utf8.h"
#include "config/text.h"
#include "server/names.h"
#include "server/priv.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

enum { OUT_BYTES_MAX = 1024 * 1024 * 1024 };

void mp_call_init(struct mp_call *call, struct mp_server *server)
{
    *call = (struct mp_call){.server = server, .status = 200, .content_type = "application/json"};
    mp_arena_init(&call->arena, 0);
    call->out = MP_BUF_INIT(OUT_BYTES_MAX);
}

void mp_call_fini(struct mp_call *call)
{
    mp_sql_give(call->server->pool, &call->sql);
    json_decref(call->body);
    mp_buf_fini(&call->out);
    mp_arena_fini(&call->arena);
}

enum mp_code mp_call_sql(struct mp_call *call)
{
    if (call->sql && !mp_sql_alive(call->sql))
        mp_sql_give(call->server->pool, &call->sql);
    return call->sql ? MP_OK : mp_sql_take(call->server->pool, &call->err, &call->sql);
}

enum mp_code mp_refuse(struct mp_call *call, unsigned status, const char *error, const char *format,
                       ...)
{
    char text[2048];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    mp_utf8_repair(text); /* names are shown cut to a number of bytes */
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20)
            *c = ' ';
    call->refusal = (struct mp_refusal){
        .status = status,
        .wire = {.error = mp_str_c(error), .detail = mp_arena_str(&call->arena, mp_str_c(text))},
    };
    return MP_REFUSED;
}

enum mp_code mp_refuse_recreated(struct mp_call *call, struct mp_str namespace_name,
                                 struct mp_str table)
{
    struct mp_str *name = mp_arena_take(&call->arena, sizeof(*name));

    *name = mp_str_c(
        mp_arena_printf(&call->arena, "%.*s.%.*s", MP_STR_ARG(namespace_name), MP_STR_ARG(table)));
    mp_refuse(call, 409, "table_recreated",
              "table %.*s is not the incarnation that was expected; read it again",
              MP_STR_ARG(*name));
    call->refusal.wire.tables = name;
    call->refusal.wire.table_count = 1;
    call->refusal.wire.re_prepare = true;
    return MP_REFUSED;
}

struct mp_str mp_call_query(const struct mp_call *call, const char *name)
{
    for (uint32_t i = 0; i < call->query_count; i++)
        if (mp_str_eq(call->query[i].name, mp_str_c(name)))
            return call->query[i].value;
    return (struct mp_str){NULL, 0};
}

bool mp_call_int(struct mp_str text, int64_t *ret)
{
    bool fits;

    return text.size && mp_text_integer(text, ret, &fits) && fits &&
           !memchr(text.data, '_', text.size) && mp_text_trim(text).size == text.size;
}

enum mp_code mp_call_query_int(struct mp_call *call, const char *name, int64_t *ret, bool *ret_has)
{
    struct mp_str text = mp_call_query(call, name);

    if (!text.data)
        return MP_OK;
    if (!mp_call_int(text, ret))
        return mp_refuse_bad(call, "the query parameter \"%s\" must be an integer", name);
    if (ret_has)
        *ret_has = true;
    return MP_OK;
}

enum mp_code mp_call_query_bool(struct mp_call *call, const char *name, bool *ret)
{
    struct mp_str text = mp_call_query(call, name);

    if (!text.data)
        return MP_OK;
    if (mp_str_eq(text, MP_STR("true")))
        *ret = true;
    else if (mp_str_eq(text, MP_STR("false")))
        *ret = false;
    else
        return mp_refuse_bad(call, "the query parameter \"%s\" must be true or false", name);
    return MP_OK;
}

enum mp_code mp_call_key_value(struct mp_call *call, const char *name, struct mp_str text,
                               uint32_t arity, uint32_t *ret_key, struct mp_str *ret_value)
{
    const char *colon = text.size ? memchr(text.data, ':', text.size) : NULL;
    size_t digits = colon ? (size_t)(colon - text.data) : 0;
    uint64_t key = 0;

    for (size_t i = 0; i < digits; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || digits > 6)
            return mp_refuse_bad(call, "%s must be key_index:value", name);
        key = key * 10 + (uint64_t)(text.data[i] - '0');
    }
    if (!digits)
        return mp_refuse_bad(call, "%s must be key_index:value", name);
    if (key >= arity)
        return mp_refuse_invalid(call, "%s: there is no key %llu, the table has %u", name,
                                 (unsigned long long)key, arity);
    *ret_key = (uint32_t)key;
    *ret_value = mp_str_n(colon + 1, text.size - digits - 1);
    return MP_OK;
}

static enum mp_code uuid_of(struct mp_call *call, struct mp_str text, const char *what,
                            struct mp_str *ret)
{
    char canonical[37];

    if (!mp_wire_uuid_read(text, canonical))
        return mp_refuse_bad(call, "%s must be a UUID", what);
    *ret = mp_arena_str(&call->arena, mp_str_c(canonical));
    return MP_OK;
}

enum mp_code mp_call_query_uuid(struct mp_call *call, const char *name, struct mp_str *ret)
{
    struct mp_str text = mp_call_query(call, name);

    return text.data ? uuid_of(call, text, name, ret) : MP_OK;
}

enum mp_code mp_call_part_uuid(struct mp_call *call, uint32_t part, struct mp_str *ret)
{
    return uuid_of(call, call->parts[part], "the last part of the path", ret);
}

enum mp_code mp_call_read_end(struct mp_call *call, const struct mp_wire_reader *reader)
{
    if (!reader->failed)
        return MP_OK;
    return reader->nul ? mp_refuse_invalid(call, "%s", reader->fault)
                       : mp_refuse_bad(call, "%s", reader->fault);
}

void mp_call_print_rows(struct mp_call *call, uint32_t number, mp_row_print *print)
{
    mp_buf_add_byte(&call->out, '[');
    for (uint32_t i = 0; i < mp_sql_rows(call->sql, number); i++) {
        if (i)
            mp_buf_add_byte(&call->out, ',');
        print(call, number, i);
    }
    mp_buf_add_byte(&call->out, ']');
}

void mp_call_print_count(struct mp_call *call, const char *name, int64_t count)
{
    mp_buf_add_byte(&call->out, '{');
    mp_wire_member_int(&call->out, name, count);
    mp_buf_add_byte(&call->out, '}');
}

enum mp_code mp_call_attribution(struct mp_call *call, struct mp_attribution *ret)
{
    struct mp_wire_reader reader = {.arena = &call->arena};
    enum mp_code code;

    *ret = (struct mp_attribution){{NULL, 0}, {NULL, 0}};
    if (call->body) {
        mp_wire_text(&reader, call->body, "author", false, &ret->author);
        mp_wire_text(&reader, call->body, "message", false, &ret->message);
    } else if (call->http) {
        ret->author = mp_call_query(call, "author");
        ret->message = mp_call_query(call, "message");
    }
    code = mp_call_read_end(call, &reader);
    if (!code && call->route && call->route->attributed &&
        call->server->settings->HOGLAKE_REQUIRE_ATTRIBUTION &&
        (mp_blank(ret->author) || mp_blank(ret->message)))
        code = mp_refuse_invalid(call, "author and message are required here");
    return code;
}
