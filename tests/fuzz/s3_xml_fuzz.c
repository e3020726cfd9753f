/* tests/fuzz/s3_xml_fuzz.c - any bytes through the XML reader, and all that s3_xml.h promises.
 *
 * With libFuzzer, from the top of the tree:
 *
 *     clang -O1 -g -std=gnu11 -D_GNU_SOURCE -DMP_LIBFUZZER -Isrc \
 *         -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
 *         tests/fuzz/s3_xml_fuzz.c src/store/s3_xml.c src/base/[bem]*.c -o s3-xml-fuzz
 *     ./s3-xml-fuzz -max_len=4096 corpus/
 *
 * Without it (no -DMP_LIBFUZZER, any compiler) the program runs the files it is given, once each.
 *
 * For every input:
 *   Z1  paths have names, none empty, and all begin with that of the root
 *   Z2  the root is visited last, and exactly when the answer is MP_OK; mp_xml_root says its name
 *   Z3  mp_xml_text of the first path is its text
 *   Z4  a walk that is ended early has seen what the whole one saw first
 *   Z5  paths and texts are within their bounds
 */
#include "fuzz/fuzz.h"
#include "base/buf.h"
#include "store/s3_xml.h"

struct seen {
    size_t count, stop_after;
    struct mp_buf first_path, first_text, last_path, root;
};

static struct mp_str first_name(struct mp_str path)
{
    const char *slash = memchr(path.data, '/', path.size);

    return (struct mp_str){path.data, slash ? (size_t)(slash - path.data) : path.size};
}

static void set(struct mp_buf *buf, struct mp_str text)
{
    mp_buf_clear(buf);
    if (text.size > 0)
        mp_buf_add_str(buf, text);
}

static bool see(void *self, struct mp_str path, struct mp_str text)
{
    struct seen *seen = self;

    MUST(path.size > 0 && path.size <= MP_XML_PATH_MAX && text.size <= MP_XML_TEXT_MAX); /* Z5 */
    MUST(path.data[0] != '/' && path.data[path.size - 1] != '/');                        /* Z1 */
    MUST(!memmem(path.data, path.size, "//", 2));
    if (seen->count == 0) {
        set(&seen->first_path, path);
        set(&seen->first_text, text);
        set(&seen->root, first_name(path));
    }
    MUST(mp_str_eq(first_name(path), mp_buf_str(&seen->root))); /* Z1 */
    set(&seen->last_path, path);
    return ++seen->count != seen->stop_after;
}

static struct seen no_seen(size_t stop_after)
{
    return (struct seen){
        .stop_after = stop_after,
        .first_path = MP_BUF_INIT(MP_XML_PATH_MAX),
        .first_text = MP_BUF_INIT(MP_XML_TEXT_MAX),
        .last_path = MP_BUF_INIT(MP_XML_PATH_MAX),
        .root = MP_BUF_INIT(MP_XML_PATH_MAX),
    };
}

static void forget(struct seen *seen)
{
    mp_buf_fini(&seen->first_path);
    mp_buf_fini(&seen->first_text);
    mp_buf_fini(&seen->last_path);
    mp_buf_fini(&seen->root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[MP_XML_TEXT_MAX + 1];
    struct mp_str xml = mp_str_n(data, size);
    struct seen whole = no_seen(0), cut = no_seen(1);
    struct mp_err err;
    enum mp_code code = mp_xml_walk(xml, see, &whole, &err);

    MUST(code == MP_OK || code == MP_BAD_DATA);
    if (whole.count > 0) {
        struct mp_str path = mp_buf_str(&whole.first_path), want = mp_buf_str(&whole.first_text);

        MUST(mp_xml_text(xml, path, text, sizeof(text))); /* Z3 */
        MUST(memcmp(text, want.data ? want.data : "", want.size) == 0 && text[want.size] == 0);
        MUST(mp_xml_walk(xml, see, &cut, NULL) == MP_OK && cut.count == 1); /* Z4 */
        MUST(mp_str_eq(mp_buf_str(&cut.first_path), path));
    }
    if (code == MP_OK) {
        MUST(whole.count > 0); /* Z2 */
        MUST(mp_str_eq(mp_buf_str(&whole.last_path), mp_buf_str(&whole.root)));
        MUST(mp_str_eq(mp_xml_root(xml), mp_buf_str(&whole.root)));
    }
    forget(&whole);
    forget(&cut);
    return 0;
}

#include "fuzz/replay.h"
