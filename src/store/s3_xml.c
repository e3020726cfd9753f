/* store/s3_xml.c - one pass over the bytes, with the path of open elements beside it.
 *
 * Always   X1 at <= end
 *          X2 path holds exactly `depth` names
 */
#include "store/s3_xml.h"

#include "base/buf.h"

#include <assert.h>

#define DEPTH_MAX 32

struct walker {
    const char *begin, *at, *end;
    char path[MP_XML_PATH_MAX];
    size_t path_size, depth;
    struct mp_buf text;
    bool root_seen, ended;
    bool (*visit)(void *self, struct mp_str path, struct mp_str text);
    void *self;
    struct mp_err *err;
};

static enum mp_code bad(struct walker *w, const char *what)
{
    return mp_err_set(w->err, MP_BAD_DATA, "xml: %s at byte %zu", what, (size_t)(w->at - w->begin));
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool looking_at(const struct walker *w, struct mp_str text)
{
    return mp_str_starts((struct mp_str){w->at, (size_t)(w->end - w->at)}, text);
}

/* Steps behind the next `text`; false: there is none. *ret_begin: what it stepped over. */
static bool step_behind(struct walker *w, struct mp_str text, struct mp_str *ret_over)
{
    const char *found = memmem(w->at, (size_t)(w->end - w->at), text.data, text.size);

    if (!found)
        return false;
    *ret_over = (struct mp_str){w->at, (size_t)(found - w->at)};
    w->at = found + text.size;
    return true;
}

/* --- text ----------------------------------------------------------------------------------- */

static bool add_text(struct walker *w, struct mp_str text)
{
    if (text.size > w->text.max - w->text.size)
        return false;
    if (text.size > 0)
        mp_buf_add_str(&w->text, text);
    return true;
}

/* RFC 3629; false where the number is no character of XML. */
static bool add_character(struct walker *w, uint32_t c)
{
    char utf8[4];
    size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return false;
    if (size == 1)
        utf8[0] = (char)c;
    for (size_t i = size; size > 1 && i-- > 1; c >>= 6)
        utf8[i] = (char)(0x80 | (c & 0x3f));
    if (size > 1)
        utf8[0] = (char)((0xf00 >> size) | c);
    return add_text(w, (struct mp_str){utf8, size});
}

/* "#38" and "#x26" without & and ; */
static bool add_numeric(struct walker *w, struct mp_str name)
{
    bool in_hex = name.size > 1 && name.data[1] == 'x';
    uint32_t base = in_hex ? 16 : 10, value = 0;
    size_t i = in_hex ? 2 : 1;

    if (i == name.size)
        return false;
    for (; i < name.size; i++) {
        unsigned char c = mp_ascii_lower((unsigned char)name.data[i]);
        uint32_t digit = c >= 'a' && c <= 'f' ? c - 'a' + 10u : c - (uint32_t)'0';

        if (c > '9' && c < 'a')
            return false;
        if (digit >= base)
            return false;
        value = value * base + digit;
        if (value > 0x10ffff)
            return false;
    }
    return add_character(w, value);
}

static bool add_entity(struct walker *w, struct mp_str name)
{
    static const struct {
        const char *name;
        char c;
    } named[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};

    if (name.size > 0 && name.data[0] == '#')
        return add_numeric(w, name);
    for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++)
        if (mp_str_eq(name, mp_str_c(named[i].name)))
            return add_character(w, (uint32_t)named[i].c);
    return false;
}

/* The run of text up to the next '<' or the end. */
static enum mp_code text_run(struct walker *w)
{
    while (w->at < w->end && *w->at != '<') {
        const char *run = w->at;

        if (w->depth == 0) {
            if (!is_blank(*w->at))
                return bad(w, "text outside of the root element");
            w->at++;
            continue;
        }
        while (w->at < w->end && *w->at != '<' && *w->at != '&')
            w->at++;
        if (!add_text(w, (struct mp_str){run, (size_t)(w->at - run)}))
            return bad(w, "too long a text");
        if (w->at < w->end && *w->at == '&') {
            struct mp_str name;

            w->at++;
            if (!step_behind(w, MP_STR(";"), &name) || !add_entity(w, name))
                return bad(w, "an entity that is none");
        }
    }
    return MP_OK;
}

/* --- tags ----------------------------------------------------------------------------------- */

/* The name at `at`; its local part, since prefixes are the sender's choice. */
static struct mp_str take_name(struct walker *w)
{
    struct mp_str name = {w->at, 0};
    const char *colon;

    while (w->at < w->end && !is_blank(*w->at) && !strchr("<>/=\"'&", *w->at))
        w->at++;
    name.size = (size_t)(w->at - name.data);
    colon = memchr(name.data, ':', name.size);
    if (colon)
        name = (struct mp_str){colon + 1, (size_t)(w->at - colon) - 1};
    return name;
}

static bool push(struct walker *w, struct mp_str name)
{
    size_t slash = w->depth ? 1 : 0;

    if (w->depth == DEPTH_MAX || name.size + slash > sizeof(w->path) - w->path_size)
        return false;
    if (slash)
        w->path[w->path_size++] = '/';
    memcpy(w->path + w->path_size, name.data, name.size);
    w->path_size += name.size;
    w->depth++;
    w->root_seen = true;
    mp_buf_clear(&w->text);
    return true;
}

/* Gives the innermost open element to visit and closes it. */
static void pop(struct walker *w)
{
    assert(w->depth > 0);
    w->ended = !w->visit(w->self, (struct mp_str){w->path, w->path_size}, mp_buf_str(&w->text));
    mp_buf_clear(&w->text);
    w->depth--;
    while (w->path_size > 0 && w->path[w->path_size - 1] != '/')
        w->path_size--;
    if (w->path_size > 0)
        w->path_size--;
    assert(w->depth > 0 || w->path_size == 0); /* X2 */
}

static struct mp_str innermost(const struct walker *w)
{
    const char *slash = memrchr(w->path, '/', w->path_size);
    const char *name = slash ? slash + 1 : w->path;

    return (struct mp_str){name, (size_t)(w->path + w->path_size - name)};
}

static enum mp_code close_tag(struct walker *w)
{
    struct mp_str name;

    w->at += 2; /* "</" */
    name = take_name(w);
    while (w->at < w->end && is_blank(*w->at))
        w->at++;
    if (w->at == w->end || *w->at != '>')
        return bad(w, "an end tag that does not end");
    if (w->depth == 0 || !mp_str_eq(name, innermost(w)))
        return bad(w, "the end of an element that is not open");
    w->at++;
    pop(w);
    return MP_OK;
}

/* Steps behind the '>' of a start tag, over attributes, whose quotes may hold '>'. */
static bool step_over_attributes(struct walker *w, bool *ret_empty)
{
    char quote = 0, before = 0;

    for (; w->at < w->end; before = *w->at++) {
        if (quote) {
            quote = *w->at == quote ? 0 : quote;
        } else if (*w->at == '"' || *w->at == '\'') {
            quote = *w->at;
        } else if (*w->at == '<') {
            return false;
        } else if (*w->at == '>') {
            w->at++;
            *ret_empty = before == '/';
            return true;
        }
    }
    return false;
}

static enum mp_code open_tag(struct walker *w)
{
    bool is_empty = false;
    struct mp_str name;

    if (w->depth == 0 && w->root_seen)
        return bad(w, "a second root element");
    w->at++;
    name = take_name(w);
    if (name.size == 0)
        return bad(w, "an element without a name");
    if (!push(w, name))
        return bad(w, "too deep or too long a path");
    if (!step_over_attributes(w, &is_empty))
        return bad(w, "a start tag that does not end");
    if (is_empty)
        pop(w);
    return MP_OK;
}

static enum mp_code tag(struct walker *w)
{
    struct mp_str over;

    assert(*w->at == '<');
    if (looking_at(w, MP_STR("</")))
        return close_tag(w);
    if (looking_at(w, MP_STR("<?")))
        return step_behind(w, MP_STR("?>"), &over) ? MP_OK : bad(w, "an instruction without end");
    if (looking_at(w, MP_STR("<!--")))
        return step_behind(w, MP_STR("-->"), &over) ? MP_OK : bad(w, "a comment without end");
    if (looking_at(w, MP_STR("<![CDATA[")) && w->depth > 0) {
        w->at += 9;
        if (!step_behind(w, MP_STR("]]>"), &over))
            return bad(w, "a cdata section without end");
        return add_text(w, over) ? MP_OK : bad(w, "too long a text");
    }
    if (looking_at(w, MP_STR("<!")))
        return bad(w, "a declaration");
    return open_tag(w);
}

enum mp_code mp_xml_walk(struct mp_str xml,
                         bool (*visit)(void *self, struct mp_str path, struct mp_str text),
                         void *self, struct mp_err *err)
{
    struct mp_str mark = MP_STR("\xef\xbb\xbf"); /* a byte order mark, as UTF-8 */
    const char *begin = xml.data ? xml.data : "";
    struct walker w = {
        .begin = begin,
        .at = begin,
        .end = begin + xml.size,
        .text = MP_BUF_INIT(MP_XML_TEXT_MAX),
        .visit = visit,
        .self = self,
        .err = err,
    };
    enum mp_code code = MP_OK;

    if (looking_at(&w, mark))
        w.at += mark.size;
    while (!code && !w.ended && w.at < w.end) {
        code = *w.at == '<' ? tag(&w) : text_run(&w);
        assert(w.at <= w.end); /* X1 */
    }
    if (!code && !w.ended && (w.depth > 0 || !w.root_seen))
        code = bad(&w, "the end inside of an element");
    mp_buf_fini(&w.text);
    return code;
}

struct search {
    struct mp_str path;
    char *ret;
    size_t ret_size;
    bool found;
};

static bool find(void *self, struct mp_str path, struct mp_str text)
{
    struct search *search = self;
    size_t size = text.size < search->ret_size ? text.size : search->ret_size - 1;

    if (!mp_str_eq(path, search->path))
        return true;
    if (size)
        memcpy(search->ret, text.data, size);
    search->ret[size] = 0;
    search->found = true;
    return false;
}

bool mp_xml_text(struct mp_str xml, struct mp_str path, char *ret, size_t ret_size)
{
    struct search search = {.path = path, .ret = ret, .ret_size = ret_size};

    assert(ret_size > 0);
    mp_xml_walk(xml, find, &search, NULL);
    return search.found;
}

struct mp_str mp_xml_root(struct mp_str xml)
{
    const char *begin = xml.data ? xml.data : "";
    struct walker w = {.begin = begin, .at = begin, .end = begin + xml.size};
    struct mp_str over;

    while (w.at < w.end) {
        if (looking_at(&w, MP_STR("<?")) && step_behind(&w, MP_STR("?>"), &over))
            continue;
        if (looking_at(&w, MP_STR("<!--")) && step_behind(&w, MP_STR("-->"), &over))
            continue;
        if (*w.at++ == '<')
            return take_name(&w);
    }
    return (struct mp_str){NULL, 0};
}
