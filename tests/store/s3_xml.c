/* XML as S3 answers with it, and as nobody should. */
#include "harness/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "store/s3_xml.h"

static struct mp_err err;

static bool print(void *self, struct mp_str path, struct mp_str text)
{
    struct mp_buf *out = self;

    mp_buf_add_str(out, path);
    mp_buf_add_byte(out, '=');
    mp_buf_add_str(out, text);
    mp_buf_add_byte(out, '\n');
    return true;
}

static void xml_walks_elements(void)
{
    static const struct {
        const char *xml, *seen;
    } cases[] = {
        {"<a/>", "a=\n"},
        {"<a></a>", "a=\n"},
        {"<a>t</a>", "a=t\n"},
        {"\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- > --><a b='>' c=\"/>\"><b>1</b><c "
         "x='/'/></a>\n",
         "a/b=1\na/c=\na=\n"},
        {"<a>x&amp;&lt;&gt;&quot;&apos;&#65;&#x42;&#xfc;&#x20ac;&#x1f600;y</a>",
         "a=x&<>\"'AB\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80y\n"},
        {"<a>1<![CDATA[<&>]]>2</a>", "a=1<&>2\n"},
        {"<s:a xmlns:s='u'><s:b>1</s:b></s:a>", "a/b=1\na=\n"},
        {"  \n \n<a>  t </a>  ", "a=  t \n"}, /* a slow "complete" is preceded by blanks */
        {"<a><b>1</b><b>2</b><c><b>3</b></c></a>", "a/b=1\na/b=2\na/c/b=3\na/c=\na=\n"},
        {"<a >1</a >", "a=1\n"},
        {"<a>1<!-- no -->2</a>", "a=12\n"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct mp_buf out = MP_BUF_INIT(4096);

        CHECK_OK(mp_xml_walk(mp_str_c(cases[i].xml), print, &out, &err), err);
        CHECK_STR(mp_buf_str(&out), mp_str_c(cases[i].seen));
        mp_buf_fini(&out);
    }
}

static void xml_refuses_what_is_none(void)
{
    static const char *const cases[] = {
        "",
        " ",
        "x",
        "<",
        "<a",
        "<a>",
        "<a></b>",
        "<a><b></a></b>",
        "</a>",
        "<a/><b/>",
        "<a/>x",
        "<a>&x;</a>",
        "<a>&amp</a>",
        "<a>&#0;</a>",
        "<a>&#xd800;</a>",
        "<a>&#x110000;</a>",
        "<a>&#;</a>",
        "<a>&#x;</a>",
        "<a>&#99999999999;</a>",
        "<a>&#xg;</a>",
        "<a>&#:;</a>",
        "<!DOCTYPE a><a/>",
        "<a><!ENTITY x></a>",
        "<a><![CDATA[x</a>",
        "<?xml",
        "<!-- x",
        "<a b='>",
        "<a <b/></a>",
        "< a/>",
        "<>",
        "<x:>",
        "<a></>",
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct mp_buf out = MP_BUF_INIT(4096);

        if (mp_xml_walk(mp_str_c(cases[i]), print, &out, &err) != MP_BAD_DATA)
            test_fail(__FILE__, __LINE__, "taken for XML: %s", cases[i]);
        mp_buf_fini(&out);
    }
}

static void xml_is_bounded(void)
{
    struct mp_buf xml = MP_BUF_INIT(1 << 20), out = MP_BUF_INIT(1 << 20);

    for (unsigned i = 0; i < 33; i++)
        mp_buf_add_c(&xml, "<a>");
    CHECK_INT(mp_xml_walk(mp_buf_str(&xml), print, &out, &err), MP_BAD_DATA);
    CHECK(strstr(err.text, "too deep"));
    mp_buf_clear(&xml);
    mp_buf_add_byte(&xml, '<');
    for (unsigned i = 0; i <= MP_XML_PATH_MAX; i++)
        mp_buf_add_byte(&xml, 'a');
    mp_buf_add_c(&xml, "/>");
    CHECK_INT(mp_xml_walk(mp_buf_str(&xml), print, &out, &err), MP_BAD_DATA);
    mp_buf_clear(&xml);
    mp_buf_add_c(&xml, "<a>");
    for (unsigned i = 0; i <= MP_XML_TEXT_MAX; i++)
        mp_buf_add_byte(&xml, 'x');
    mp_buf_add_c(&xml, "</a>");
    CHECK_INT(mp_xml_walk(mp_buf_str(&xml), print, &out, &err), MP_BAD_DATA);
    CHECK(strstr(err.text, "too long a text"));
    mp_buf_fini(&xml);
    mp_buf_fini(&out);
}

static void xml_finds_texts_and_roots(void)
{
    struct mp_str xml = MP_STR("<?xml?><Error><Code>SlowDown</Code><Message>m</Message>");
    char text[6];

    CHECK(mp_xml_text(xml, MP_STR("Error/Code"), text, sizeof(text)));
    CHECK_STR(mp_str_c(text), MP_STR("SlowD")); /* cut to its room */
    CHECK(mp_xml_text(xml, MP_STR("Error/Message"), text, sizeof(text)));
    CHECK_STR(mp_str_c(text), MP_STR("m"));
    CHECK(!mp_xml_text(xml, MP_STR("Code"), text, sizeof(text)));
    CHECK(!mp_xml_text(MP_STR("<html>503</html>"), MP_STR("Error/Code"), text, sizeof(text)));
    CHECK_STR(mp_xml_root(xml), MP_STR("Error"));
    CHECK_STR(mp_xml_root(MP_STR("  \n<s:Ok a='b'>")), MP_STR("Ok"));
    CHECK_INT(mp_xml_root(MP_STR("plain")).size, 0);
    CHECK_INT(mp_xml_root(MP_STR("")).size, 0);
}

/* Every beginning of an answer, and every answer with one byte changed, in memory of its exact
 * size: under a sanitizer, reading past the end would show. */
static void xml_survives_cuts_and_changes(void)
{
    static const char xml[] = "<?xml v='1'?><R xmlns=\"u\"><C><K>a&amp;b&#x41;</K><S>1</S></C>"
                              "<![CDATA[]]><!-- c --></R>";
    static const char change[] = "<>&/!?;'\"a \x00\xff";
    size_t size = sizeof(xml) - 1;

    for (size_t cut = 0; cut <= size; cut++) {
        char *copy = mp_alloc(cut);
        struct mp_buf out = MP_BUF_INIT(4096);

        memcpy(copy, xml, cut);
        mp_xml_walk(mp_str_n(copy, cut), print, &out, NULL);
        mp_xml_root(mp_str_n(copy, cut));
        for (size_t c = 0; cut && c < sizeof(change); c++) {
            copy[cut - 1] = change[c];
            mp_buf_clear(&out);
            mp_xml_walk(mp_str_n(copy, cut), print, &out, NULL);
            mp_xml_root(mp_str_n(copy, cut));
        }
        mp_buf_fini(&out);
        mp_free(copy);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(xml_walks_elements),        TEST(xml_refuses_what_is_none),      TEST(xml_is_bounded),
        TEST(xml_finds_texts_and_roots), TEST(xml_survives_cuts_and_changes),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
