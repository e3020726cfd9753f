#include "cli/http.h"

enum { BODY_BYTES_MAX = 16 << 20 };

/* The page reads /status.json every second and shows it; nothing else is fetched. */
static const char page[] =
    "<!doctype html><html lang=en><meta charset=utf-8><title>millpond</title><style>"
    "body{font:14px/1.5 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 1em}"
    "table{border-collapse:collapse;margin:.5em 0 1.5em}td,th{text-align:left;padding:.2em 1em "
    ".2em "
    "0;"
    "border-bottom:1px solid #ddd}td.n{text-align:right;font-variant-numeric:tabular-nums}</style>"
    "<h1>millpond</h1><div id=s>reading /status.json</div><script>"
    "let before=null;const t=(h,rows)=>'<table><tr>'+h.map(x=>'<th>'+x).join('')+rows.map(r=>"
    "'<tr>'+r.map(x=>'<td class='+(typeof x=='number'?'n':'t')+'>'+String(x).replace(/[<&]/g,"
    "c=>'&#'+c.charCodeAt(0)+';')).join('')).join('')+'</table>';"
    "async function f(){const s=await(await fetch('status.json')).json(),now=Date.now();"
    "const flat=Object.entries(s).filter(([k,v])=>typeof v!='object');"
    "const objects=Object.entries(s).filter(([k,v])=>v&&typeof v=='object'&&!Array.isArray(v));"
    "let rate='';if(before)rate=Math.round((s.records-before.s.records)*1000/(now-before.now))+"
    "' records/s, '+((s.json_bytes-before.s.json_bytes)/1000/(now-before.now)).toFixed(1)+' MB/s';"
    "before={s,now};"
    "document.getElementById('s').innerHTML='<p>'+rate+t(['',''],flat)+objects.map(([k,v])=>"
    "'<h2>'+k+'</h2>'+t(['',''],Object.entries(v).map(([a,b])=>[a,typeof b=='object'?"
    "JSON.stringify(b):b]))).join('')+"
    "'<h2>last flushes</h2>'+t(['at','rows','files','bytes','seconds','trigger'],"
    "s.last_flushes.map(x=>[x.at,x.rows,x.files,x.bytes,x.seconds,x.trigger]))+"
    "'<h2>last errors</h2>'+t(['at',''],s.last_errors.map(x=>[x.at,x.text]))}"
    "f();setInterval(f,1000)</script>";

static void serve_metrics(const struct mp_http_parts *parts, struct mp_http_response *ret)
{
    ret->content_type = "text/plain; version=1.0.0; charset=utf-8";
    mp_metrics_print(parts->metrics, &ret->body);
}

static void serve_alive(const struct mp_http_parts *parts, struct mp_http_response *ret)
{
    ret->status = mp_health_alive(parts->health) ? 200 : 503;
    mp_health_print_alive(parts->health, &ret->body);
}

static void serve_ready(const struct mp_http_parts *parts, struct mp_http_response *ret)
{
    ret->status = mp_health_ready(parts->health) ? 200 : 503;
    mp_health_print_ready(parts->health, &ret->body);
}

static void serve_status(const struct mp_http_parts *parts, struct mp_http_response *ret)
{
    ret->content_type = "application/json";
    mp_pipeline_print_status(parts->pipeline, &ret->body);
}

static void serve_page(const struct mp_http_parts *parts, struct mp_http_response *ret)
{
    (void)parts;
    ret->content_type = "text/html; charset=utf-8";
    mp_buf_add_c(&ret->body, page);
}

static void handle(void *self, const struct mp_http_request *request, struct mp_http_response *ret)
{
    static const struct {
        struct mp_str path;
        void (*serve)(const struct mp_http_parts *parts, struct mp_http_response *ret);
    } routes[] = {
        {MP_STR_INIT("/metrics"), serve_metrics}, {MP_STR_INIT("/healthz"), serve_alive},
        {MP_STR_INIT("/readyz"), serve_ready},    {MP_STR_INIT("/status.json"), serve_status},
        {MP_STR_INIT("/"), serve_page},
    };

    ret->body = MP_BUF_INIT(BODY_BYTES_MAX);
    ret->status = 404;
    if (!mp_str_eq(request->method, MP_STR("GET")) && !mp_str_eq(request->method, MP_STR("HEAD"))) {
        ret->status = 501;
        return;
    }
    for (size_t i = 0; i < sizeof(routes) / sizeof(*routes) && !request->query.size; i++)
        if (mp_str_eq(request->path, routes[i].path)) {
            ret->status = 200;
            routes[i].serve(self, ret);
            return;
        }
}

enum mp_code mp_cli_http_open(uint16_t port, const struct mp_http_parts *parts, struct mp_err *err,
                              struct mp_http_server **ret)
{
    struct mp_http_server_options options = {
        .port = port, .handle = handle, .self = (void *)(uintptr_t)parts /* only read */};

    return mp_http_server_open(&options, err, ret);
}
