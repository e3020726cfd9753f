/* tests/json/json_dump.c - says what the scanner makes of records, for judges in other languages.
 *
 *     json-dump [N]
 *
 * N: the scanner, 0 (the fastest here) when not said; exit code 3: there are not so many. In:
 * records, each behind its length (4 bytes, little-endian). Out: a line of JSON for each:
 * {"fault": name, "at": byte} or {"fields": [[key, kind, text, value], ...]}. text is a string:
 * the decoded string, the number's spelling, the compact nested text; value is the integer as a
 * string, or the bits of the double in hexadecimal. Every record is scanned in memory of exactly
 * its size, so that a sanitizer sees the least step outside.
 */
#include "base/buf.h"
#include "base/mem.h"
#include "json/json.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const kind_names[] = {
    [MP_JSON_NULL] = "null",     [MP_JSON_FALSE] = "false",   [MP_JSON_TRUE] = "true",
    [MP_JSON_INT] = "int",       [MP_JSON_BIGINT] = "bigint", [MP_JSON_DOUBLE] = "double",
    [MP_JSON_STRING] = "string", [MP_JSON_NESTED] = "nested",
};

static void add_field(struct mp_buf *out, const struct mp_json *json,
                      const struct mp_json_field *field)
{
    uint64_t bits;

    mp_buf_add_c(out, "[");
    mp_buf_add_json(out, mp_json_key_name(json, field->key));
    mp_buf_printf(out, ",\"%s\",", kind_names[field->kind]);
    mp_buf_add_json(out, field->text);
    if (field->kind == MP_JSON_INT) {
        mp_buf_printf(out, ",\"%lld\"]", (long long)field->i64);
    } else if (field->kind == MP_JSON_DOUBLE) {
        memcpy(&bits, &field->f64, sizeof(bits));
        mp_buf_printf(out, ",\"%016llx\"]", (unsigned long long)bits);
    } else if (field->kind == MP_JSON_NESTED) {
        mp_buf_printf(out, ",%s]", field->nested_object ? "\"object\"" : "\"array\"");
    } else {
        mp_buf_add_c(out, ",null]");
    }
}

static void dump(struct mp_buf *out, struct mp_json *json, struct mp_str bytes)
{
    struct mp_json_record record;
    size_t at;
    enum mp_json_fault fault = mp_json_scan(json, bytes, &record, &at);

    mp_buf_clear(out);
    if (fault) {
        mp_buf_printf(out, "{\"fault\":\"%s\",\"at\":%zu}\n", mp_json_fault_name(fault), at);
        return;
    }
    mp_buf_add_c(out, "{\"fields\":[");
    for (uint32_t k = 0; k < record.count; k++) {
        if (k)
            mp_buf_add_c(out, ",");
        add_field(out, json, &record.fields[k]);
    }
    mp_buf_add_c(out, "]}\n");
}

enum { NO_SCANNER = 3 };

int main(int argc, char **argv)
{
    struct mp_json *json = mp_json_new_nth(argc > 1 ? (unsigned)atoi(argv[1]) : 0);
    struct mp_buf out = MP_BUF_INIT((size_t)1 << 30);
    unsigned char head[4];

    if (!json)
        return NO_SCANNER;
    while (fread(head, 1, 4, stdin) == 4) {
        size_t size =
            head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
        char *bytes = mp_alloc(size);

        if (fread(bytes, 1, size, stdin) != size)
            return 1;
        dump(&out, json, mp_str_n(bytes, size));
        fwrite(out.data, 1, out.size, stdout);
        mp_free(bytes);
        if (mp_json_key_bytes(json) > 64u << 20)
            mp_json_keys_reset(json);
    }
    mp_buf_fini(&out);
    mp_json_free(json);
    return ferror(stdout) ? 1 : 0;
}
