/* server/database_url.c - see database_url.h. */
#include "server/database_url.h"

#include "base/buf.h"
#include "net/pg.h"

#include <string.h>

#define NAME "HOGLAKE_JDBC_URL"

struct parts {
    bool jdbc;
    struct mp_str hosts, database, query;          /* as they stand in the URL */
    struct mp_str user, password, options, schema; /* decoded; data NULL: not there */
    struct mp_buf more;                            /* "&name=value" for libpq */
    bool ssl, has_sslmode;
};

/* Parameters of the JDBC driver that libpq knows by another name. */
static const struct {
    const char *jdbc, *libpq;
} renamed[] = {{"ApplicationName", "application_name"},
               {"channelBinding", "channel_binding"},
               {"gssEncMode", "gssencmode"},
               {"kerberosServerName", "krbsrvname"},
               {"requireAuth", "require_auth"}};

/* Values that the two say differently. */
static const struct {
    const char *jdbc, *value, *libpq;
} translated[] = {
    {"tcpKeepAlive", "true", "keepalives=1"},
    {"tcpKeepAlive", "false", "keepalives=0"},
    {"targetServerType", "any", "target_session_attrs=any"},
    {"targetServerType", "primary", "target_session_attrs=primary"},
    {"targetServerType", "master", "target_session_attrs=primary"},
    {"targetServerType", "secondary", "target_session_attrs=standby"},
    {"targetServerType", "slave", "target_session_attrs=standby"},
    {"targetServerType", "preferSecondary", "target_session_attrs=prefer-standby"},
    {"targetServerType", "preferSlave", "target_session_attrs=prefer-standby"},
};

/* What only the driver has: its waits, caches, buffers and logs. */
static const char *const without_effect[] = {"adaptiveFetch",
                                             "adaptiveFetchMaximum",
                                             "adaptiveFetchMinimum",
                                             "allowEncodingChanges",
                                             "assumeMinServerVersion",
                                             "autosave",
                                             "binaryTransfer",
                                             "binaryTransferDisable",
                                             "binaryTransferEnable",
                                             "cancelSignalTimeout",
                                             "cleanupSavepoints",
                                             "connectTimeout",
                                             "databaseMetadataCacheFields",
                                             "databaseMetadataCacheFieldsMiB",
                                             "defaultRowFetchSize",
                                             "disableColumnSanitiser",
                                             "escapeSyntaxCallMode",
                                             "groupStartupParameters",
                                             "hideUnprivilegedObjects",
                                             "hostRecheckSeconds",
                                             "loadBalanceHosts",
                                             "logServerErrorDetail",
                                             "logUnclosedConnections",
                                             "loggerFile",
                                             "loggerLevel",
                                             "loginTimeout",
                                             "maxResultBuffer",
                                             "maxSendBufferSize",
                                             "preferQueryMode",
                                             "prepareThreshold",
                                             "preparedStatementCacheQueries",
                                             "preparedStatementCacheSizeMiB",
                                             "protocolVersion",
                                             "quoteReturningIdentifiers",
                                             "reWriteBatchedInserts",
                                             "receiveBufferSize",
                                             "sendBufferSize",
                                             "socketTimeout",
                                             "sslResponseTimeout",
                                             "stringtype",
                                             "tcpNoDelay",
                                             "unknownLength"};

static const char *const sslmodes[] = {"disable", "allow",     "prefer",
                                       "require", "verify-ca", "verify-full"};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static bool unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._~", c));
}

/* Adds text as a part of a URI. (RFC 3986, section 2.1) */
static void add_encoded(struct mp_buf *buf, struct mp_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];

        if (unreserved(c))
            mp_buf_add_byte(buf, (char)c);
        else
            mp_buf_printf(buf, "%%%02X", c);
    }
}

static void add_parameter(struct mp_buf *buf, const char *name, struct mp_str value)
{
    mp_buf_printf(buf, "&%s=", name);
    add_encoded(buf, value);
}

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* plus: '+' is a blank, as the JDBC driver has it. */
static enum mp_code decode(struct mp_arena *arena, struct mp_str text, bool plus, const char *what,
                           struct mp_err *err, struct mp_str *ret)
{
    char *made = mp_arena_take(arena, text.size + 1);
    size_t size = 0;

    for (size_t i = 0; i < text.size; i++) {
        int high, low;

        made[size++] = plus && text.data[i] == '+' ? ' ' : text.data[i];
        if (text.data[i] != '%')
            continue;
        high = i + 2 < text.size ? digit(text.data[i + 1]) : -1;
        low = high >= 0 ? digit(text.data[i + 2]) : -1;
        if (low < 0 || (!high && !low))
            return mp_err_set(err, MP_BAD_CONFIG,
                              NAME ": in %s a %% must have two hexadecimal digits behind it (%%25 "
                                   "is the %% itself)",
                              what);
        made[size - 1] = (char)(high << 4 | low);
        i += 2;
    }
    *ret = mp_str_n(made, size);
    return MP_OK;
}

/* --- hosts --- */

static enum mp_code check_host(struct mp_str host, struct mp_err *err)
{
    const char *bracket = host.size && *host.data == '[' ? memchr(host.data, ']', host.size) : NULL;
    const char *end = host.data + host.size;
    const char *colon = bracket ? bracket + 1 : memchr(host.data, ':', host.size);
    long port = 0;

    if (host.size && *host.data == '[' && !bracket)
        return mp_err_set(err, MP_BAD_CONFIG, NAME ": a '[' has no ']'");
    if (!host.size || !colon || colon == end)
        return MP_OK;
    for (const char *c = colon + 1; c < end && port >= 0; c++)
        port = *c >= '0' && *c <= '9' && port < 65536 ? port * 10 + (*c - '0') : -1;
    if (*colon != ':' || port < 1 || port > 65535)
        return mp_err_set(err, MP_BAD_CONFIG,
                          NAME
                          ": what stands behind a host must be a port from 1 to 65535; an IPv6 "
                          "address stands in brackets, and '/', '?', '@' of a user or a "
                          "password are written %%2F, %%3F, %%40");
    return MP_OK;
}

static enum mp_code check_hosts(struct mp_str hosts, struct mp_err *err)
{
    enum mp_code code = MP_OK;

    for (size_t begin = 0, i = 0; i <= hosts.size && !code; i++) {
        if (i < hosts.size && hosts.data[i] != ',')
            continue;
        code = check_host(mp_str_n(hosts.data + begin, i - begin), err);
        begin = i + 1;
    }
    return code;
}

/* --- parameters --- */

static enum mp_code wrong_value(const char *name, struct mp_str value, const char *allowed,
                                struct mp_err *err)
{
    return mp_err_set(err, MP_BAD_CONFIG, NAME ": %s is \"%.*s\": allowed is %s", name,
                      value.size > 60 ? 60 : (int)value.size, value.data, allowed);
}

static bool one_of(struct mp_str text, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (mp_str_eq(text, mp_str_c(names[i])))
            return true;
    return false;
}

static bool is(struct mp_str name, const char *wanted)
{
    return mp_str_eq(name, mp_str_c(wanted));
}

/* What only a JDBC URL holds. *ret_done: it was that. */
static enum mp_code take_jdbc(struct parts *parts, struct mp_str name, struct mp_str value,
                              struct mp_err *err, bool *ret_done)
{
    bool known = false;

    *ret_done = true;
    if (is(name, "ssl")) {
        if (!is(value, "true") && !is(value, "false") && value.size)
            return wrong_value("ssl", value, "true or false", err);
        parts->ssl = !is(value, "false");
        return MP_OK;
    }
    if (is(name, "currentSchema")) {
        parts->schema = value;
        return MP_OK;
    }
    for (size_t i = 0; i < COUNT(renamed); i++)
        if (is(name, renamed[i].jdbc)) {
            add_parameter(&parts->more, renamed[i].libpq, value);
            return MP_OK;
        }
    for (size_t i = 0; i < COUNT(translated); i++) {
        known = known || is(name, translated[i].jdbc);
        if (is(name, translated[i].jdbc) && is(value, translated[i].value)) {
            mp_buf_printf(&parts->more, "&%s", translated[i].libpq);
            return MP_OK;
        }
    }
    if (known)
        return wrong_value(is(name, "tcpKeepAlive") ? "tcpKeepAlive" : "targetServerType", value,
                           is(name, "tcpKeepAlive") ? "true or false"
                                                    : "any, primary, secondary or preferSecondary",
                           err);
    *ret_done = one_of(name, without_effect, COUNT(without_effect));
    return MP_OK;
}

static enum mp_code take_parameter(struct parts *parts, struct mp_str name, struct mp_str value,
                                   struct mp_err *err)
{
    bool done = false;
    enum mp_code code = MP_OK;

    if (parts->jdbc)
        code = take_jdbc(parts, name, value, err, &done);
    if (code || done)
        return code;
    if (is(name, "ssl") && is(value, "true")) { /* libpq's own word for it */
        parts->has_sslmode = true;
        mp_buf_add_c(&parts->more, "&sslmode=require");
    } else if (is(name, "user")) {
        parts->user = value;
    } else if (is(name, "password")) {
        parts->password = value;
    } else if (is(name, "options")) {
        parts->options = value;
    } else if (!mp_pg_knows(name)) {
        return mp_err_set(err, MP_BAD_CONFIG, NAME ": there is no parameter \"%.*s\"",
                          name.size > 60 ? 60 : (int)name.size, name.data);
    } else {
        if (is(name, "sslmode") && !one_of(value, sslmodes, COUNT(sslmodes)))
            return wrong_value("sslmode", value,
                               "disable, allow, prefer, require, verify-ca or verify-full", err);
        parts->has_sslmode = parts->has_sslmode || is(name, "sslmode");
        mp_buf_printf(&parts->more, "&%.*s=", MP_STR_ARG(name));
        add_encoded(&parts->more, value);
    }
    return MP_OK;
}

static enum mp_code take_parameters(struct mp_arena *arena, struct parts *parts, struct mp_err *err)
{
    struct mp_str rest = parts->query;
    enum mp_code code = MP_OK;

    while (rest.size && !code) {
        const char *end = memchr(rest.data, '&', rest.size);
        struct mp_str one = mp_str_n(rest.data, end ? (size_t)(end - rest.data) : rest.size), name;
        struct mp_str value = {"", 0};
        const char *equals = memchr(one.data, '=', one.size);

        rest = mp_str_n(rest.data + one.size + !!end, rest.size - one.size - !!end);
        if (!one.size)
            continue;
        if (equals) {
            value = mp_str_n(equals + 1, one.size - (size_t)(equals - one.data) - 1);
            one.size = (size_t)(equals - one.data);
        }
        code = decode(arena, one, parts->jdbc, "a parameter", err, &name);
        if (!code)
            code = decode(arena, value, parts->jdbc, "a parameter", err, &value);
        if (!code)
            code = take_parameter(parts, name, value, err);
    }
    return code;
}

/* search_path as an option of the session; libpq takes blanks and backslashes with a backslash. */
static void add_options(struct parts *parts)
{
    struct mp_buf buf = MP_BUF_INIT(64 * 1024);

    if (parts->options.size)
        mp_buf_add_str(&buf, parts->options);
    if (parts->schema.size)
        mp_buf_add_c(&buf, buf.size ? " -csearch_path=" : "-csearch_path=");
    for (size_t i = 0; i < parts->schema.size; i++) {
        if (strchr(" \\", parts->schema.data[i]))
            mp_buf_add_byte(&buf, '\\');
        mp_buf_add_byte(&buf, parts->schema.data[i]);
    }
    if (buf.size)
        add_parameter(&parts->more, "options", mp_buf_str(&buf));
    mp_buf_fini(&buf);
}

/* --- the URL --- */

static struct mp_str behind(struct mp_str text, size_t size)
{
    return mp_str_n(text.data + size, text.size - size);
}

static enum mp_code take_user(struct mp_arena *arena, struct parts *parts, struct mp_str text,
                              struct mp_err *err)
{
    const char *colon = memchr(text.data, ':', text.size);
    struct mp_str name = mp_str_n(text.data, colon ? (size_t)(colon - text.data) : text.size);
    enum mp_code code = MP_OK;

    if (name.size)
        code = decode(arena, name, false, "the user", err, &parts->user);
    if (!code && colon)
        code = decode(arena, behind(text, name.size + 1), false, "the password", err,
                      &parts->password);
    return code;
}

static enum mp_code split(struct mp_arena *arena, struct mp_str url, struct parts *parts,
                          struct mp_err *err)
{
    size_t end = 0, at = 0;
    bool has_user = false;
    const char *question;

    parts->jdbc = mp_str_starts(url, MP_STR("jdbc:"));
    if (parts->jdbc)
        url = behind(url, strlen("jdbc:"));
    if (mp_str_starts(url, MP_STR("postgresql://"))) {
        url = behind(url, strlen("postgresql://"));
    } else if (!parts->jdbc && mp_str_starts(url, MP_STR("postgres://"))) {
        url = behind(url, strlen("postgres://"));
    } else if (parts->jdbc && mp_str_starts(url, MP_STR("postgresql:"))) {
        url = behind(url, strlen("postgresql:"));
        if (url.size && *url.data == '/')
            url = behind(url, 1);
        url = mp_str_c(mp_arena_printf(arena, "/%.*s", MP_STR_ARG(url)));
    } else {
        return mp_err_set(err, MP_BAD_CONFIG,
                          NAME ": allowed is a URL that begins with jdbc:postgresql:// or "
                               "postgresql://");
    }
    for (; end < url.size && url.data[end] != '/' && url.data[end] != '?'; end++)
        if (url.data[end] == '@') {
            at = end;
            has_user = true;
        }
    parts->hosts = mp_str_n(url.data + (has_user ? at + 1 : 0), end - (has_user ? at + 1 : 0));
    end += end < url.size && url.data[end] == '/';
    question = end < url.size ? memchr(url.data + end, '?', url.size - end) : NULL;
    parts->database =
        mp_str_n(url.data + end, question ? (size_t)(question - url.data) - end : url.size - end);
    if (question)
        parts->query = behind(url, (size_t)(question - url.data) + 1);
    return has_user ? take_user(arena, parts, mp_str_n(url.data, at), err) : MP_OK;
}

enum mp_code mp_database_url(struct mp_arena *arena, struct mp_str url, struct mp_str user,
                             struct mp_str password, struct mp_err *err, struct mp_str *ret)
{
    struct parts parts = {.more = MP_BUF_INIT(1024 * 1024)};
    struct mp_buf buf = MP_BUF_INIT(1024 * 1024);
    struct mp_str database;
    enum mp_code code = split(arena, url, &parts, err);

    if (!code)
        code = check_hosts(parts.hosts, err);
    if (!code)
        code = decode(arena, parts.database, parts.jdbc, "the database", err, &database);
    if (!code)
        code = take_parameters(arena, &parts, err);
    if (code)
        goto out;
    if (parts.ssl && !parts.has_sslmode)
        mp_buf_add_c(&parts.more, "&sslmode=verify-full"); /* what the JDBC driver means by it */
    add_options(&parts);
    mp_buf_add_c(&buf, "postgresql://");
    if (!parts.hosts.size && parts.jdbc)
        parts.hosts = MP_STR("localhost");
    mp_buf_add_str(&buf, parts.hosts);
    mp_buf_add_byte(&buf, '/');
    add_encoded(&buf, database);
    mp_buf_add_c(&buf, "?user=");
    add_encoded(&buf, parts.user.data ? parts.user : user);
    if (parts.password.data || password.size)
        add_parameter(&buf, "password", parts.password.data ? parts.password : password);
    mp_buf_add_str(&buf, mp_buf_str(&parts.more));
    *ret = mp_arena_str(arena, mp_buf_str(&buf));
out:
    mp_buf_fini(&parts.more);
    mp_buf_fini(&buf);
    return code;
}
