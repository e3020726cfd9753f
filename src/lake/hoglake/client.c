/* lake/hoglake/client.c - one request to the catalog, and what its answer says.
 *
 *     answer              error                 the same call may succeed later
 *     none                as net says           yes
 *     408, 429, 5xx       MP_IO                 yes, not before Retry-After
 *     404                 MP_IO                 yes: what stands in between says so too
 *     409                 MP_CONFLICT           yes
 *     3xx                 MP_BAD_CONFIG         no: redirects are not followed
 *     410, 422, other     MP_REFUSED            no
 *     2xx, no such JSON   MP_REFUSED            no
 *
 * Callers for whom a status means more look at it first.
 */
#include "lake/hoglake/priv.h"

#include <assert.h>

#define ANSWER_BYTES_MAX ((size_t)256 << 20)
#define SHOWN_MAX        200 /* bytes of a server's text in a message */

static void add_segment(struct mp_hoglake *lake, struct mp_str segment)
{
    mp_buf_add_byte(&lake->url, '/');
    mp_http_escape(&lake->url, segment, false);
}

void mp_hog_url_catalogs(struct mp_hoglake *lake)
{
    mp_buf_clear(&lake->url);
    mp_buf_add_str(&lake->url, lake->base);
}

void mp_hog_url(struct mp_hoglake *lake, enum mp_hog_place place, struct mp_str table,
                const char *rest)
{
    mp_hog_url_catalogs(lake);
    add_segment(lake, lake->catalog);
    if (place != MP_HOG_CATALOG) {
        mp_buf_add_c(&lake->url, "/namespaces");
        add_segment(lake, lake->namespace_name);
    }
    if (place == MP_HOG_TABLE) {
        mp_buf_add_c(&lake->url, "/tables");
        add_segment(lake, table);
    }
    mp_buf_add_c(&lake->url, rest);
}

static void read_answer(struct mp_hoglake *lake)
{
    struct mp_hog_answer *answer = &lake->answer;

    answer->status = lake->call.status;
    answer->wait_ms = mp_http_call_retry_ms(&lake->call, mp_now_wall_us(lake->env));
    if (lake->call.body.size)
        answer->json = json_loadb(lake->call.body.data, lake->call.body.size, 0, NULL);
    if (!mp_hog_fine(answer))
        mp_wire_error_read(answer->json, &answer->error);
}

enum mp_code mp_hog_ask(struct mp_hoglake *lake, const char *method, struct mp_str body,
                        struct mp_err *err)
{
    struct mp_http_header headers[] = {
        {MP_STR("User-Agent"), lake->program},
        {MP_STR("Accept"), MP_STR("*/*")},
        {MP_STR("Content-Type"), MP_STR("application/json")},
    };
    struct mp_http_call *call = &lake->call;
    enum mp_code code;

    json_decref(lake->answer.json);
    lake->answer = (struct mp_hog_answer){0};
    call->method = method;
    call->url = mp_buf_c(&lake->url);
    call->headers = headers;
    call->header_count = body.data ? 3 : 2;
    call->pieces = &body;
    call->piece_count = body.data ? 1 : 0;
    call->total_ms_max = lake->request_ms_max;
    call->body.max = ANSWER_BYTES_MAX;
    mp_http_one(lake->http, call);
    code = mp_http_call_code(call, err);
    if (!code)
        read_answer(lake);
    return code;
}

bool mp_hog_passing(unsigned status)
{
    return status == 408 || status == 429 || (status >= 500 && status < 600);
}

bool mp_hog_own_words(const struct mp_hog_answer *answer)
{
    struct mp_str name = answer->error.error;

    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] != '_' && (name.data[i] < 'a' || name.data[i] > 'z'))
            return false;
    return name.size > 0;
}

bool mp_hog_says_absent(const struct mp_hog_answer *answer)
{
    return answer->status == 404 && mp_str_eq(answer->error.error, MP_STR("not_found"));
}

/* The first bytes of a text that a message has room for. */
static struct mp_str shown(struct mp_str text)
{
    if (text.size > SHOWN_MAX)
        text.size = SHOWN_MAX;
    return text;
}

/* So that a text of the server cannot forge log lines. */
static void make_plain(struct mp_err *err)
{
    for (char *at = err ? err->text : NULL; at && *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
}

enum mp_code mp_hog_refusal(struct mp_hoglake *lake, struct mp_err *err)
{
    const struct mp_hog_answer *answer = &lake->answer;
    struct mp_str name = shown(answer->error.error), detail = shown(answer->error.detail);
    unsigned status = answer->status;
    enum mp_code code = MP_REFUSED;

    assert(!mp_hog_fine(answer));
    if (mp_hog_passing(status) || status == 404)
        code = MP_IO;
    else if (status == 409)
        code = MP_CONFLICT;
    else if (status < 400)
        code = MP_BAD_CONFIG;
    if (!name.data)
        detail = shown(mp_buf_str(&lake->call.body));
    mp_err_set(err, code, "answered %u%s%.*s%s%.*s%s", status, name.size ? " " : "",
               MP_STR_ARG(name), detail.size ? ": " : "", MP_STR_ARG(detail),
               status < 400 ? " (redirects are not followed)" : "");
    make_plain(err);
    mp_err_add(err, "%s %s", lake->call.method, mp_buf_c(&lake->url) + lake->root_size);
    if (err) {
        err->sys = (int)status;
        err->wait_ms = answer->wait_ms;
    }
    return code;
}

enum mp_code mp_hog_absent(struct mp_hoglake *lake, struct mp_err *err)
{
    (void)mp_hog_refusal(lake, err);
    if (err) {
        err->code = MP_NOT_FOUND;
        err->retriable = false;
    }
    return MP_NOT_FOUND;
}

enum mp_code mp_hog_malformed(struct mp_hoglake *lake, const struct mp_wire_reader *reader,
                              struct mp_err *err)
{
    enum mp_code code =
        mp_err_set(err, MP_REFUSED, "answered %u with what is no hoglake answer: %s",
                   lake->answer.status, lake->answer.json ? reader->fault : "the body is no JSON");

    mp_err_add(err, "%s %s", lake->call.method, mp_buf_c(&lake->url) + lake->root_size);
    return code;
}
