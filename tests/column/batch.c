/* Every row of the table "From JSON to columns", new columns and live ones. */
#include "lines.h"

#include <stdio.h>

static struct lines lines;

#define VALUES(name, want) CHECK_STR(lines_values(&lines, name), MP_STR(want))
#define TYPES(want)        CHECK_STR(lines_types(&lines), MP_STR(want))

static void new_columns_take_their_kind(void)
{
    lines_open(&lines);
    lines_add(
        &lines,
        "{\"b\":true,\"i\":1,\"d\":1.5,\"s\":\"x\",\"o\":{\"k\":[1, 2]},\"a\":[],\"n\":null}");
    lines_add(&lines,
              "{\"b\":false,\"i\":-9223372036854775808,\"d\":1e3,\"s\":\"\",\"o\":{},\"a\":[{}],"
              "\"n\":null}");
    lines_add(&lines, "{}");
    lines_seal(&lines, true);
    TYPES("b:boolean i:int64 d:float64 s:varchar o:varchar a:varchar _inserted_at:timestamptz");
    VALUES("b", "true|false|~");
    VALUES("i", "1|-9223372036854775808|~");
    VALUES("d", "1.5|1000.0|~");
    VALUES("s", "x||~");
    VALUES("o", "{\"k\":[1,2]}|{}|~");
    VALUES("a", "[]|[{}]|~");
    VALUES("_inserted_at", "2023-11-14 22:13:20+00|2023-11-14 22:13:20+00|2023-11-14 22:13:20+00");
    lines_close(&lines);
}

/* A live column of the stamp's name takes it as far as its type can. */
static void the_stamp_takes_the_live_type(void)
{
    static const struct {
        uint8_t type;
        const char *values;
    } rows[] = {
        {MP_TYPE_TIMESTAMPTZ, "2023-11-14 22:13:20.123456+00|2023-11-14 22:13:20.123456+00"},
        {MP_TYPE_TIMESTAMP, "2023-11-14 22:13:20.123456|2023-11-14 22:13:20.123456"},
        {MP_TYPE_TIMESTAMP_NS, "2023-11-14 22:13:20.123456|2023-11-14 22:13:20.123456"},
        {MP_TYPE_TIMESTAMP_MS, "2023-11-14 22:13:20.123|2023-11-14 22:13:20.123"},
        {MP_TYPE_TIMESTAMP_S, "2023-11-14 22:13:20|2023-11-14 22:13:20"},
        {MP_TYPE_TIMESTAMP_S_MS, "2023-11-14 22:13:20|2023-11-14 22:13:20"},
        {MP_TYPE_DATE, "2023-11-14|2023-11-14"},
        {MP_TYPE_VARCHAR, "2023-11-14 22:13:20.123456+00|2023-11-14 22:13:20.123456+00"},
        {MP_TYPE_INT64, "~|~"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        lines_open(&lines);
        lines.stamp_us = INT64_C(1700000000123456);
        lines_live(&lines, "_Inserted_At", (struct mp_type){.id = rows[i].type});
        lines_add(&lines, "{}");
        lines_add(&lines, "{}");
        lines_seal(&lines, true);
        CHECK_STR(lines_values(&lines, "_Inserted_At"), mp_str_c(rows[i].values));
        lines_close(&lines);
    }
}

static void empty_objects_are_rows(void)
{
    lines_open(&lines);
    lines_add(&lines, "{}");
    lines_add(&lines, "{}");
    lines_seal(&lines, true);
    TYPES("_inserted_at:timestamptz");
    CHECK_INT(mp_batch_rows(lines.batch), 2);
    lines_close(&lines);
}

static void new_columns_come_as_their_keys_were_seen(void)
{
    static const struct mp_pin pins[] = {{MP_STR_INIT("unseen"), {.id = MP_TYPE_UUID}},
                                         {MP_STR_INIT("late"), {.id = MP_TYPE_VARCHAR}},
                                         {MP_STR_INIT("null"), {.id = MP_TYPE_BOOL}},
                                         {MP_STR_INIT("last"), {.id = MP_TYPE_DATE}}};
    static const char *const names[] = {"filled", "b",      "null", "a",           "late",
                                        "c",      "unseen", "last", "_inserted_at"};

    lines_open(&lines);
    lines.options.pins = pins;
    lines.options.pin_count = 4;
    lines_add(&lines, "{\"filled\":null,\"never\":null,\"b\":1,\"null\":null,\"a\":2}");
    lines_add(&lines, "{\"late\":\"x\",\"c\":1,\"filled\":true}");
    lines_seal(&lines, true);
    CHECK_INT(lines.sealed.column_count, sizeof(names) / sizeof(*names));
    for (uint32_t i = 0; i < lines.sealed.column_count; i++)
        CHECK_STR(lines.sealed.columns[i].name, mp_str_c(names[i]));
    VALUES("filled", "~|true");
    lines_close(&lines);
}

/* Each pair of kinds, in both orders: the type and the two spellings do not depend on the order. */
static void joins_do_not_depend_on_order(void)
{
    static const struct {
        const char *a, *b, *types, *a_text, *b_text;
    } cases[] = {
        {"true", "1", "x:varchar", "true", "1"},
        {"true", "1.5", "x:varchar", "true", "1.5"},
        {"true", "\"s\"", "x:varchar", "true", "s"},
        {"false", "{\"a\":1}", "x:varchar", "false", "{\"a\":1}"},
        {"true", "9223372036854775808", "x:varchar", "true", "9223372036854775808"},
        {"1", "1.5", "x:float64", "1.0", "1.5"},
        {"1", "\"s\"", "x:varchar", "1", "s"},
        {"5", "[1]", "x:varchar", "5", "[1]"},
        {"-5", "18446744073709551616", "x:varchar", "-5", "18446744073709551616"},
        {"1.0", "\"s\"", "x:varchar", "1.0", "s"},
        {"1e16", "\"s\"", "x:varchar", "1e+16", "s"},
        {"1e-5", "[]", "x:varchar", "1e-05", "[]"},
        {"0.5", "9223372036854775808", "x:varchar", "0.5", "9223372036854775808"},
        {"\"s\"", "{}", "x:varchar", "s", "{}"},
        {"null", "7", "x:int64", "~", "7"},
        {"null", "0.5", "x:float64", "~", "0.5"},
        {"null", "true", "x:boolean", "~", "true"},
        {"-0", "3", "x:int64", "0", "3"},
        {"-0.0", "3", "x:float64", "-0.0", "3.0"},
    };
    char record[128], want[128];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        for (int swap = 0; swap < 2; swap++) {
            const char *first = swap ? cases[i].b : cases[i].a;
            const char *second = swap ? cases[i].a : cases[i].b;

            lines_open(&lines);
            lines.options.inserted_at_name = MP_STR("");
            snprintf(record, sizeof(record), "{\"x\":%s}", first);
            lines_add(&lines, record);
            snprintf(record, sizeof(record), "{\"x\":%s}", second);
            lines_add(&lines, record);
            lines_seal(&lines, true);
            CHECK_STR(lines_types(&lines), mp_str_c(cases[i].types));
            snprintf(want, sizeof(want), "%s|%s", swap ? cases[i].b_text : cases[i].a_text,
                     swap ? cases[i].a_text : cases[i].b_text);
            CHECK_STR(lines_values(&lines, "x"), mp_str_c(want));
            lines_close(&lines);
        }
}

static void three_kinds_keep_their_spelling(void)
{
    lines_open(&lines);
    for (int i = 0; i < 3000; i++)
        lines_add(&lines, i % 2 ? "{\"x\":5}" : "{\"x\":2.50}");
    lines_add(&lines, "{\"x\":\"t\"}");
    lines_seal(&lines, true);
    CHECK(mp_str_starts(lines_values(&lines, "x"), MP_STR("2.5|5|2.5|5|")));
    CHECK_INT(lines_values(&lines, "x").size, 1500 * 6 + 1);
    lines_close(&lines);
}

static void one_key_many_types_in_one_flush(void)
{
    lines_open(&lines);
    lines_add(&lines, "{\"p\":1}");
    lines_add(&lines, "{\"p\":true}");
    lines_add(&lines, "{\"p\":\"x\"}");
    lines_add(&lines, "{\"p\":{\"k\":1}}");
    lines_add(&lines, "{\"p\":0.5}");
    lines_seal(&lines, true);
    TYPES("p:varchar _inserted_at:timestamptz");
    VALUES("p", "1|true|x|{\"k\":1}|0.5");
    lines_close(&lines);
}

/* The same five, one per flush, into the table that the first made. */
static void one_key_many_types_one_per_flush(void)
{
    static const char *const values[] = {"true", "\"x\"", "{\"k\":1}", "0.5"};
    static const char *const stored[] = {"1", "~", "~", "~"};
    static const char *const rescued[] = {"-", "{\"p\":\"x\"}", "{\"p\":{\"k\":1}}", "{\"p\":0.5}"};
    char record[64];

    for (int i = 0; i < 4; i++) {
        lines_open(&lines);
        lines_live(&lines, "p", MP_TYPE(INT64));
        snprintf(record, sizeof(record), "{\"p\":%s}", values[i]);
        lines_add(&lines, record);
        lines_seal(&lines, false);
        CHECK_STR(lines_values(&lines, "p"), mp_str_c(stored[i]));
        CHECK_STR(lines_values(&lines, "_rescued_data"), mp_str_c(rescued[i]));
        lines_close(&lines);
    }
}

static void integers_between_doubles_are_rounded_and_rescued(void)
{
    lines_open(&lines);
    lines_add(&lines, "{\"v\":0.5}");
    lines_add(&lines, "{\"v\":9007199254740993}");
    lines_add(&lines, "{\"v\":9007199254740992}");
    lines_seal(&lines, true);
    TYPES("v:float64 _inserted_at:timestamptz _rescued_data:varchar");
    VALUES("v", "0.5|9007199254740992.0|9007199254740992.0");
    VALUES("_rescued_data", "~|{\"v\":9007199254740993}|~");
    CHECK_INT(mp_batch_rescued(lines.batch, MP_RESCUE_ROUNDED), 1);
    lines_close(&lines);
}

static void integers_in_texts_are_rounded_and_rescued_too(void)
{
    lines_open(&lines);
    lines_live(&lines, "v", MP_TYPE(DOUBLE));
    lines_add(&lines, "{\"v\":\"9007199254740993\"}");
    lines_add(&lines, "{\"v\":\"-9007199254740993\"}");
    lines_add(&lines, "{\"v\":\"+9007199254740993\"}");
    lines_add(&lines, "{\"v\":\"+9007199254740992\"}");
    lines_seal(&lines, true);
    VALUES("v", "9007199254740992.0|-9007199254740992.0|9007199254740992.0|9007199254740992.0");
    VALUES("_rescued_data", "{\"v\":\"9007199254740993\"}|{\"v\":\"-9007199254740993\"}|"
                            "{\"v\":\"+9007199254740993\"}|~");
    CHECK_INT(mp_batch_rescued(lines.batch, MP_RESCUE_ROUNDED), 3);
    lines_close(&lines);
}

static void live_bigint_is_widened_or_rescues_fractions(void)
{
    static const char *const records[] = {"{\"v\":1}",     "{\"v\":2.50}",  "{\"v\":3.0}",
                                          "{\"v\":\"4\"}", "{\"v\":\"x\"}", "{\"v\":false}"};

    for (int widen = 0; widen < 2; widen++) {
        lines_open(&lines);
        lines_live(&lines, "v", MP_TYPE(INT64));
        for (int i = 0; i < 6; i++)
            lines_add(&lines, records[i]);
        lines_seal(&lines, widen);
        if (widen) {
            TYPES("v:float64 _inserted_at:timestamptz _rescued_data:varchar");
            VALUES("v", "1.0|2.5|3.0|4.0|~|0.0");
            VALUES("_rescued_data", "~|~|~|~|{\"v\":\"x\"}|~");
        } else {
            TYPES("v:int64 _inserted_at:timestamptz _rescued_data:varchar");
            VALUES("v", "1|~|3|4|~|0");
            VALUES("_rescued_data", "~|{\"v\":2.50}|~|~|{\"v\":\"x\"}|~");
            CHECK_INT(mp_batch_rescued(lines.batch, MP_RESCUE_TYPE), 2);
        }
        lines_close(&lines);
    }
}

/* A value is rescued under its record's key, also where that is known only at the seal; of two
 * spellings it is not known then, and the column's stands for both. */
static void late_rescues_keep_the_spelling_of_the_record(void)
{
    lines_open(&lines);
    lines_live(&lines, "Amount", MP_TYPE(INT64));
    lines_add(&lines, "{\"AMOUNT\":2.5}");
    lines_add(&lines, "{\"amount\":3.5}");
    lines_seal(&lines, false);
    VALUES("Amount", "~|~");
    VALUES("_rescued_data", "{\"AMOUNT\":2.5}|{\"amount\":3.5}");
    CHECK_INT(mp_batch_rescued(lines.batch, MP_RESCUE_TYPE), 2);
    lines_close(&lines);
    lines_open(&lines);
    lines_live(&lines, "Amount", MP_TYPE(INT64));
    lines_add(&lines, "{\"AMOUNT\":2.5}");
    lines_add(&lines, "{\"AMOUNT\":9007199254740993}");
    lines_seal(&lines, true);
    VALUES("Amount", "2.5|9007199254740992.0");
    VALUES("_rescued_data", "~|{\"AMOUNT\":9007199254740993}");
    lines_close(&lines);
    lines_open(&lines);
    lines_live(&lines, "Amount", MP_TYPE(INT64));
    lines_add(&lines, "{\"AMOUNT\":2.5}");
    lines_add(&lines, "{\"amount\":9007199254740993}");
    lines_seal(&lines, true);
    VALUES("_rescued_data", "~|{\"Amount\":9007199254740993}");
    lines_close(&lines);
}

static void where_nothing_widens_whole_fractions_are_stored(void)
{
    lines_open(&lines);
    lines.options.widen = false;
    lines_live(&lines, "v", MP_TYPE(INT64));
    lines_add(&lines, "{\"v\":3.0}");
    lines_add(&lines, "{\"v\":3.5}");
    lines_add(&lines, "{\"v\":9007199254740993.0}");
    lines_add(&lines, "{\"v\":1e-400}");
    lines_seal(&lines, true);
    VALUES("v", "3|~|9007199254740993|~");
    VALUES("_rescued_data", "~|{\"v\":3.5}|~|{\"v\":1e-400}");
    lines_close(&lines);
}

static void spellings_of_one_column_fold(void)
{
    lines_open(&lines);
    lines_live(&lines, "Key", MP_TYPE(VARCHAR));
    lines_add(&lines, "{\"KEY\":\"a\"}");
    lines_add(&lines, "{\"KEY\":\"b\",\"Key\":\"exact\",\"key\":\"c\"}");
    lines_add(&lines, "{\"KEY\":\"d\",\"key\":\"later\"}");
    lines_add(&lines, "{\"A\":1,\"a\":\"loser\"}");
    lines_seal(&lines, true);
    TYPES("Key:varchar A:int64 _inserted_at:timestamptz _rescued_data:varchar");
    VALUES("Key", "a|exact|later|~");
    VALUES("A", "~|~|~|1");
    VALUES("_rescued_data", "~|{\"KEY\":\"b\",\"key\":\"c\"}|{\"KEY\":\"d\"}|{\"a\":\"loser\"}");
    CHECK_INT(mp_batch_rescued(lines.batch, MP_RESCUE_CASE), 4);
    lines_close(&lines);
    /* where case matters they are two columns */
    lines_open(&lines);
    lines.options.fold_case = false;
    lines_add(&lines, "{\"A\":1,\"a\":\"x\"}");
    lines_seal(&lines, true);
    TYPES("A:int64 a:varchar _inserted_at:timestamptz");
    lines_close(&lines);
}

/* A key that only had nulls finds its column when another spelling has made one. */
static void nulls_find_the_column_that_came_later(void)
{
    lines_open(&lines);
    lines_add(&lines, "{\"Late\":null,\"n\":1}");
    lines_add(&lines, "{\"Late\":null,\"n\":2}");
    lines_add(&lines, "{\"late\":7}");
    lines_add(&lines, "{\"Late\":null,\"n\":3}");
    lines_add(&lines, "{\"late\":8,\"Late\":null}");
    lines_add(&lines, "{\"Late\":9}");
    lines_seal(&lines, true);
    TYPES("n:int64 late:int64 _inserted_at:timestamptz _rescued_data:varchar");
    VALUES("late", "~|~|7|~|8|9");
    VALUES("n", "1|2|~|3|~|~");
    VALUES("_rescued_data", "~|~|~|~|{\"Late\":null}|~");
    lines_close(&lines);
}

static bool no_blanks(struct mp_str name)
{
    return name.size && !memchr(name.data, ' ', name.size);
}

static void names_that_cannot_be_are_rescued(void)
{
    lines_open(&lines);
    lines.options.name_ok = no_blanks;
    lines_add(&lines, "{\"\":1,\"a b\":{\"x\":[1,2]},\"select\":2,\"_inserted_at\":\"x\","
                      "\"_Rescued_Data\":null,\"month\":3}");
    lines_seal(&lines, true);
    TYPES("select:int64 month:int64 _inserted_at:timestamptz _rescued_data:varchar");
    VALUES("_rescued_data",
           "{\"\":1,\"a b\":{\"x\":[1,2]},\"_inserted_at\":\"x\",\"_Rescued_Data\":null}");
    CHECK_INT(mp_batch_rescued(lines.batch, MP_RESCUE_NAME), 2);
    CHECK_INT(mp_batch_rescued(lines.batch, MP_RESCUE_RESERVED), 2);
    lines_close(&lines);
}

/* A destination that turned a column down: its values are kept like those of any name that cannot
 * be, a pinned one's too; a live column of the name is filled. */
static void names_that_were_refused_are_rescued(void)
{
    static const struct mp_str refused[] = {MP_STR_INIT("late"), MP_STR_INIT("pin"),
                                            MP_STR_INIT("here")};
    static const struct mp_pin pins[] = {{MP_STR_INIT("pin"), {.id = MP_TYPE_INT64}}};

    lines_open(&lines);
    lines.options.refused = refused;
    lines.options.refused_count = 3;
    lines.options.pins = pins;
    lines.options.pin_count = 1;
    lines_live(&lines, "here", MP_TYPE(INT64));
    lines_add(&lines, "{\"late\":\"5\",\"pin\":7,\"here\":1}");
    lines_add(&lines, "{\"late\":5,\"new\":null}");
    lines_seal(&lines, true);
    TYPES("here:int64 _inserted_at:timestamptz _rescued_data:varchar");
    VALUES("here", "1|~");
    VALUES("_rescued_data", "{\"late\":\"5\",\"pin\":7}|{\"late\":5}");
    CHECK_INT(mp_batch_rescued(lines.batch, MP_RESCUE_NAME), 3);
    lines_close(&lines);
}

/* A value that a small column cannot hold asks for the larger type; where the table gets it, the
 * records are read again, else the value stays rescued. */
static void small_columns_ask_for_a_larger_type(void)
{
    static const struct {
        uint8_t live, wanted; /* wanted NONE: nothing is asked for */
        const char *record, *rescued;
    } rows[] = {
        {MP_TYPE_INT32, MP_TYPE_NONE, "{\"v\":2147483647}", "-"},
        {MP_TYPE_INT32, MP_TYPE_INT64, "{\"v\":2147483648}", "{\"v\":2147483648}"},
        {MP_TYPE_INT8, MP_TYPE_INT64, "{\"v\":128}", "{\"v\":128}"},
        {MP_TYPE_INT16, MP_TYPE_INT64, "{\"v\":-32769}", "{\"v\":-32769}"},
        {MP_TYPE_FLOAT, MP_TYPE_NONE, "{\"v\":0.1}", "-"}, /* its shortest text is 0.1 */
        {MP_TYPE_FLOAT, MP_TYPE_DOUBLE, "{\"v\":0.1234567890123}", "{\"v\":0.1234567890123}"},
        {MP_TYPE_FLOAT, MP_TYPE_DOUBLE, "{\"v\":1e300}", "{\"v\":1e300}"},
        {MP_TYPE_INT32, MP_TYPE_NONE, "{\"v\":\"x\"}", "{\"v\":\"x\"}"},
        {MP_TYPE_INT32, MP_TYPE_NONE, "{\"v\":1.5}", "{\"v\":1.5}"},
        {MP_TYPE_INT32, MP_TYPE_NONE, "{\"v\":99999999999999999999}",
         "{\"v\":99999999999999999999}"},
        {MP_TYPE_UINT8, MP_TYPE_NONE, "{\"v\":256}", "{\"v\":256}"},
        {MP_TYPE_FLOAT, MP_TYPE_NONE, "{\"v\":\"x\"}", "{\"v\":\"x\"}"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct mp_type live = {.id = rows[i].live};
        struct mp_batch_plan plan;
        struct mp_err err;

        lines_open(&lines);
        lines.options.promote = true;
        lines_live(&lines, "v", live);
        lines_add(&lines, rows[i].record);
        CHECK_OK(mp_batch_plan(lines.batch, &lines.live, &err, &plan), err);
        CHECK_INT(plan.promote_count, rows[i].wanted != MP_TYPE_NONE);
        if (plan.promote_count) {
            CHECK_INT(plan.promote[0].field_id, 1);
            CHECK_INT(plan.promote[0].type.id, rows[i].wanted);
            lines.live_columns[0].type = plan.promote[0].type;
            CHECK_INT(mp_batch_plan(lines.batch, &lines.live, &err, &plan), MP_CHANGED);
            lines.live_columns[0].type = live;
        }
        lines_seal(&lines, true);
        CHECK_STR(lines_values(&lines, "_rescued_data"), mp_str_c(rows[i].rescued));
        lines_close(&lines);
    }
}

static void where_nothing_is_promoted_nothing_is_asked(void)
{
    struct mp_batch_plan plan;
    struct mp_err err;

    lines_open(&lines);
    lines_live(&lines, "v", MP_TYPE(INT32));
    lines_add(&lines, "{\"v\":2147483648}");
    CHECK_OK(mp_batch_plan(lines.batch, &lines.live, &err, &plan), err);
    CHECK_INT(plan.promote_count, 0);
    lines_close(&lines);
}

static void rescue_can_be_off_but_is_counted(void)
{
    lines_open(&lines);
    lines.options.rescued_name = MP_STR("");
    lines_live(&lines, "t", MP_TYPE(TIMESTAMPTZ));
    lines_add(&lines, "{\"t\":\"never\"}");
    lines_seal(&lines, true);
    TYPES("t:timestamptz _inserted_at:timestamptz");
    CHECK_INT(mp_batch_rescued(lines.batch, MP_RESCUE_TYPE), 1);
    lines_close(&lines);
}

static void column_budget_holds(void)
{
    char record[64];

    lines_open(&lines);
    lines.options.columns_max = 10;
    lines_live(&lines, "live", MP_TYPE(INT64));
    for (int i = 0; i < 5000; i++) {
        snprintf(record, sizeof(record), "{\"k_%d\":%d,\"live\":%d}", i, i, i);
        lines_add(&lines, record);
    }
    lines_seal(&lines, true);
    CHECK_INT(lines.sealed.column_count, 10); /* live, seven keys, the stamp, the rescued */
    CHECK_INT(mp_batch_rescued(lines.batch, MP_RESCUE_BUDGET), 5000 - 7);
    CHECK(mp_str_starts(lines_values(&lines, "_rescued_data"),
                        MP_STR("~|~|~|~|~|~|~|{\"k_7\":7}|{\"k_8\":8}")));
    lines_close(&lines);
}

static void pins_hold_before_and_without_values(void)
{
    static const struct mp_pin pins[] = {{MP_STR_INIT("t"), {.id = MP_TYPE_TIMESTAMPTZ}},
                                         {MP_STR_INIT("n"), {.id = MP_TYPE_INT64}},
                                         {MP_STR_INIT("never"), {.id = MP_TYPE_UUID}},
                                         {MP_STR_INIT("b"), {.id = MP_TYPE_BOOL}},
                                         {MP_STR_INIT("v"), {.id = MP_TYPE_VARCHAR}}};

    lines_open(&lines);
    lines.options.pins = pins;
    lines.options.pin_count = 5;
    lines_add(&lines, "{\"t\":\"2026-03-31 03:17:37\",\"n\":\"0x10\",\"b\":7,\"v\":1.0}");
    lines_add(&lines, "{\"t\":1.5,\"n\":2.0,\"b\":0,\"v\":true}");
    lines_add(&lines, "{\"t\":1000000,\"n\":2.5,\"b\":\"TRUE\",\"v\":null}");
    lines_seal(&lines, true);
    TYPES("t:timestamptz n:int64 b:boolean v:varchar _inserted_at:timestamptz "
          "_rescued_data:varchar");
    CHECK_INT(lines.sealed.column_count, 7); /* never is there too, without a value */
    VALUES("t", "2026-03-31 03:17:37+00|~|1970-01-01 00:00:01+00");
    VALUES("n", "16|2|~");
    VALUES("b", "true|false|true");
    VALUES("v", "1.0|true|~");
    VALUES("_rescued_data", "~|{\"t\":1.5}|{\"n\":2.5}");
    lines_close(&lines);
}

static void live_types_take_what_they_hold_exactly(void)
{
    static const struct {
        struct mp_type type;
        const char *value, *stored; /* stored "~": rescued */
    } cases[] = {
        {{.id = MP_TYPE_INT8}, "127", "127"},
        {{.id = MP_TYPE_INT8}, "128", "~"},
        {{.id = MP_TYPE_INT16}, "\"-32768\"", "-32768"},
        {{.id = MP_TYPE_INT32}, "3.0", "3"},
        {{.id = MP_TYPE_INT32}, "2147483648", "~"},
        {{.id = MP_TYPE_INT64}, "9223372036854775808", "~"},
        {{.id = MP_TYPE_INT64}, "\" 2\"", "~"},
        {{.id = MP_TYPE_INT64}, "\"+3\"", "~"},
        {{.id = MP_TYPE_INT64}, "\"1.5\"", "~"},
        {{.id = MP_TYPE_INT64}, "\"\"", "~"},
        {{.id = MP_TYPE_INT64}, "9007199254740993.0", "9007199254740993"},
        {{.id = MP_TYPE_INT64}, "922337203685477580700e-2", "9223372036854775807"},
        {{.id = MP_TYPE_INT64}, "9223372036854775807.5", "~"},
        {{.id = MP_TYPE_INT64}, "0.99999999999999999999", "~"},
        {{.id = MP_TYPE_INT64}, "1e-400", "~"},
        {{.id = MP_TYPE_INT64}, "0e-400", "0"},
        {{.id = MP_TYPE_UINT8}, "-1", "~"},
        {{.id = MP_TYPE_UINT16}, "65535", "65535"},
        {{.id = MP_TYPE_UINT32}, "4294967295", "4294967295"},
        {{.id = MP_TYPE_UINT32_LONG}, "4294967295", "4294967295"},
        {{.id = MP_TYPE_UINT32_LONG}, "\"7\"", "7"},
        {{.id = MP_TYPE_UINT32_LONG}, "4294967296", "~"},
        {{.id = MP_TYPE_UINT32_LONG}, "-1", "~"},
        {{.id = MP_TYPE_UINT64}, "18446744073709551615", "18446744073709551615"},
        {{.id = MP_TYPE_UINT64}, "18446744073709551616", "~"},
        {{.id = MP_TYPE_INT128}, "9223372036854775808", "9223372036854775808"},
        {{.id = MP_TYPE_INT128}, "9007199254740993", "~"},
        {{.id = MP_TYPE_INT128}, "1e22", "10000000000000000000000"},
        {{.id = MP_TYPE_INT128}, "1e23", "~"},
        {{.id = MP_TYPE_FLOAT}, "0.1", "0.1"},
        {{.id = MP_TYPE_FLOAT}, "0.10000000149011612", "0.1"},
        {{.id = MP_TYPE_FLOAT}, "0.123456789012", "~"},
        {{.id = MP_TYPE_FLOAT}, "16777217", "~"},
        {{.id = MP_TYPE_FLOAT}, "1e39", "~"},
        {{.id = MP_TYPE_DOUBLE}, "7", "7.0"},
        {{.id = MP_TYPE_DOUBLE}, "\"1e3\"", "1000.0"},
        {{.id = MP_TYPE_DOUBLE}, "\"nan\"", "nan"},
        {{.id = MP_TYPE_DOUBLE}, "\"-inf\"", "-inf"},
        {{.id = MP_TYPE_DOUBLE}, "\"1e999\"", "~"},
        {{.id = MP_TYPE_DOUBLE}, "\"0x10\"", "~"},
        {{.id = MP_TYPE_DOUBLE}, "\"1 \"", "~"},
        {{.id = MP_TYPE_DOUBLE}, "true", "1.0"},
        {{.id = MP_TYPE_DOUBLE}, "[1]", "~"},
        {{.id = MP_TYPE_DECIMAL, .precision = 9, .scale = 2}, "7", "7.00"},
        {{.id = MP_TYPE_DECIMAL, .precision = 9, .scale = 2}, "-0.05", "-0.05"},
        {{.id = MP_TYPE_DECIMAL, .precision = 9, .scale = 2}, "1.5e2", "150.00"},
        {{.id = MP_TYPE_DECIMAL, .precision = 9, .scale = 2}, "1.005", "~"},
        {{.id = MP_TYPE_DECIMAL, .precision = 9, .scale = 2}, "\"9999999.99\"", "9999999.99"},
        {{.id = MP_TYPE_DECIMAL, .precision = 9, .scale = 2}, "10000000", "~"},
        {{.id = MP_TYPE_DECIMAL, .precision = 18, .scale = 4}, "1.2300000000000", "1.2300"},
        {{.id = MP_TYPE_DECIMAL, .precision = 38, .scale = 0},
         "99999999999999999999999999999999999999",
         "99999999999999999999999999999999999999"},
        {{.id = MP_TYPE_DECIMAL, .precision = 38, .scale = 0},
         "-99999999999999999999999999999999999999.000e0",
         "-99999999999999999999999999999999999999"},
        {{.id = MP_TYPE_DECIMAL, .precision = 38, .scale = 0},
         "100000000000000000000000000000000000000",
         "~"},
        {{.id = MP_TYPE_DECIMAL, .precision = 38, .scale = 0},
         "400000000000000000000000000000000000000",
         "~"},
        {{.id = MP_TYPE_DECIMAL, .precision = 38, .scale = 0},
         "900000000000000000000000000000000000001",
         "~"},
        {{.id = MP_TYPE_DECIMAL, .precision = 38, .scale = 0},
         "\"-999999999999999999999999999999999999999\"",
         "~"},
        {{.id = MP_TYPE_DECIMAL, .precision = 38, .scale = 0}, "95e37", "~"},
        {{.id = MP_TYPE_DECIMAL, .precision = 38, .scale = 1}, "9e37", "~"},
        {{.id = MP_TYPE_DECIMAL, .precision = 38, .scale = 38},
         "1e-38",
         "0.00000000000000000000000000000000000001"},
        {{.id = MP_TYPE_DECIMAL, .precision = 38, .scale = 2},
         "-12345678901234567890.5",
         "-12345678901234567890.50"},
        {{.id = MP_TYPE_BOOL}, "1", "true"},
        {{.id = MP_TYPE_BOOL}, "0", "false"},
        {{.id = MP_TYPE_BOOL}, "2", "~"},
        {{.id = MP_TYPE_BOOL}, "1.0", "true"},
        {{.id = MP_TYPE_BOOL}, "1e-400", "~"},
        {{.id = MP_TYPE_BOOL}, "0.99999999999999999999", "~"},
        {{.id = MP_TYPE_BOOL}, "\"False\"", "false"},
        {{.id = MP_TYPE_BOOL}, "\"yes\"", "~"},
        {{.id = MP_TYPE_DATE}, "\"2024-02-29\"", "2024-02-29"},
        {{.id = MP_TYPE_DATE}, "\"2023-02-29\"", "~"},
        {{.id = MP_TYPE_DATE}, "\"2024-02-29T00:00:00\"", "~"},
        {{.id = MP_TYPE_TIME}, "\"10:11:12.5\"", "10:11:12.5"},
        {{.id = MP_TYPE_TIME}, "\"24:00:00\"", "~"},
        {{.id = MP_TYPE_TIME}, "\"10:11:12.1234567\"", "~"},
        {{.id = MP_TYPE_TIMESTAMP_S}, "\"2024-01-05 10:11:12\"", "2024-01-05 10:11:12"},
        {{.id = MP_TYPE_TIMESTAMP_S}, "\"2024-01-05 10:11:12.5\"", "~"},
        {{.id = MP_TYPE_TIMESTAMP_S_MS}, "\"2024-01-05 10:11:12\"", "2024-01-05 10:11:12"},
        {{.id = MP_TYPE_TIMESTAMP_S_MS}, "\"2024-01-05 10:11:12.001\"", "~"},
        {{.id = MP_TYPE_TIMESTAMP_S_MS}, "\"2024-01-05 10:11:12.0000001\"", "~"},
        {{.id = MP_TYPE_TIMESTAMP_MS}, "\"2024-01-05 10:11:12.120\"", "2024-01-05 10:11:12.12"},
        {{.id = MP_TYPE_TIMESTAMP_MS}, "\"2024-01-05 10:11:12.1201\"", "~"},
        {{.id = MP_TYPE_TIMESTAMP_NS},
         "\"2024-01-05 10:11:12.123456789\"",
         "2024-01-05 10:11:12.123456789"},
        {{.id = MP_TYPE_TIMESTAMP_NS}, "\"2400-01-01\"", "~"},
        {{.id = MP_TYPE_TIMESTAMP_NS},
         "\"2024-01-05 10:11:12.12345678900\"",
         "2024-01-05 10:11:12.123456789"},
        {{.id = MP_TYPE_TIMESTAMP_NS}, "\"2024-01-05 10:11:12.1234567891\"", "~"},
        {{.id = MP_TYPE_TIMESTAMP_S}, "\"2024-01-05 10:11:12.0000000001\"", "~"},
        {{.id = MP_TYPE_TIMESTAMP_MS}, "\"2024-01-05 10:11:12.12000000001\"", "~"},
        {{.id = MP_TYPE_TIMESTAMP},
         "\"2024-01-05 10:11:12.1234567891\"",
         "2024-01-05 10:11:12.123456"},
        {{.id = MP_TYPE_TIME}, "\"10:11:12.1234560001\"", "~"},
        {{.id = MP_TYPE_TIMESTAMP}, "\"2026-03-31T03:17:37+05:30\"", "2026-03-30 21:47:37"},
        {{.id = MP_TYPE_UUID},
         "\"F79C3E09-677C-4BBD-A479-3F349CB785E7\"",
         "f79c3e09-677c-4bbd-a479-3f349cb785e7"},
        {{.id = MP_TYPE_UUID},
         "\"{f79c3e09677c4bbda4793f349cb785e7}\"",
         "f79c3e09-677c-4bbd-a479-3f349cb785e7"},
        {{.id = MP_TYPE_UUID},
         "\"urn:uuid:f79c3e09-677c-4bbd-a479-3f349cb785e7\"",
         "f79c3e09-677c-4bbd-a479-3f349cb785e7"},
        {{.id = MP_TYPE_UUID}, "\"f79c3e09-677c-4bbd-a4793f349cb785e7\"", "~"},
        {{.id = MP_TYPE_JSON}, "\"{\\\"a\\\":1}\"", "{\"a\":1}"},
        {{.id = MP_TYPE_JSON}, "\"1,2\"", "~"},
        {{.id = MP_TYPE_JSON}, "\"abc\"", "~"},
        {{.id = MP_TYPE_JSON}, "{\"a\": 1}", "{\"a\":1}"},
        {{.id = MP_TYPE_JSON}, "true", "true"},
        {{.id = MP_TYPE_JSON}, "1.50", "1.50"},
        {{.id = MP_TYPE_BLOB}, "\"ab\"", "ab"},
        {{.id = MP_TYPE_BLOB}, "1", "~"},
        {{.id = MP_TYPE_VARCHAR}, "1.50", "1.5"},
        {{.id = MP_TYPE_VARCHAR}, "18446744073709551616", "18446744073709551616"},
        {{.id = MP_TYPE_VARCHAR}, "{\"a\" : 1.50}", "{\"a\":1.50}"},
    };
    char record[256], rescued[256];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        lines_open(&lines);
        lines_live(&lines, "x", cases[i].type);
        snprintf(record, sizeof(record), "{\"x\":%s}", cases[i].value);
        lines_add(&lines, record);
        lines_seal(&lines, false);
        if (!mp_str_eq(lines_values(&lines, "x"), mp_str_c(cases[i].stored)))
            test_fail(__FILE__, __LINE__, "case %zu: %s gives %.*s, not %s", i, cases[i].value,
                      MP_STR_ARG(lines_values(&lines, "x")), cases[i].stored);
        snprintf(rescued, sizeof(rescued), "{\"x\":%s}", cases[i].value);
        CHECK_STR(lines_values(&lines, "_rescued_data"),
                  *cases[i].stored == '~' ? mp_str_c(rescued) : MP_STR("-"));
        lines_close(&lines);
    }
}

/* Zone, fraction and range; values by Python's datetime. */
static void timestamps_in_many_spellings(void)
{
    static const char *const cases[][2] = {
        {"2026-03-31T03:17:37.260514+00:00", "2026-03-31 03:17:37.260514+00"},
        {"2026-03-31 03:17:37", "2026-03-31 03:17:37+00"},
        {"2026-03-31T03:17:37Z", "2026-03-31 03:17:37+00"},
        {"2026-03-31T03:17:37.1+0530", "2026-03-30 21:47:37.1+00"},
        {"2026-03-31T03:17:37.123456789Z", "2026-03-31 03:17:37.123456+00"},
        {"2026-03-31", "2026-03-31 00:00:00+00"},
        {"2026-03-31T03", "2026-03-31 03:00:00+00"},
        {"2026-03-31T03:17-07", "2026-03-31 10:17:00+00"},
        {"9999-12-31 23:59:59", "9999-12-31 23:59:59+00"},
        {"1969-12-31 23:59:59.999999", "1969-12-31 23:59:59.999999+00"},
        {"2026-02-30 00:00:00", "~"},
        {"infinity", "~"},
        {"0000-00-00 00:00:00", "~"},
        {"294247-01-10 04:00:54.775808", "~"},
        {"2026-03-31 24:00:00", "~"},
        {"2026-03-31 03:17:60", "~"},
        {" 2026-03-31", "~"},
        {"2026-03-31 ", "~"},
        {"2026-03-31T03:17:37.", "~"},
        {"2026-03-31T03:17:37+5", "~"},
        {"9999-12-31 23:59:59-01", "~"},
        {"1700000000000000", "~"},
        {"", "~"},
    };
    char record[128];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        lines_open(&lines);
        lines_live(&lines, "t", MP_TYPE(TIMESTAMPTZ));
        snprintf(record, sizeof(record), "{\"t\":\"%s\"}", cases[i][0]);
        lines_add(&lines, record);
        lines_seal(&lines, false);
        CHECK_STR(lines_values(&lines, "t"), mp_str_c(cases[i][1]));
        lines_close(&lines);
    }
}

static void unwritable_live_types_rescue_everything(void)
{
    lines_open(&lines);
    lines_live(&lines, "l", MP_TYPE(OTHER));
    lines_add(&lines, "{\"l\":[1, 2],\"m\":1}");
    lines_seal(&lines, false);
    TYPES("m:int64 _inserted_at:timestamptz _rescued_data:varchar");
    VALUES("_rescued_data", "{\"l\":[1,2]}");
    lines_close(&lines);
}

static void a_changed_table_is_noticed(void)
{
    struct mp_batch_plan plan;
    struct mp_err err;

    lines_open(&lines);
    lines_live(&lines, "a", MP_TYPE(VARCHAR));
    lines_add(&lines, "{\"a\":\"x\",\"b\":\"y\"}");
    /* somebody adds b with another type */
    lines_live(&lines, "b", MP_TYPE(INT64));
    CHECK_INT(mp_batch_plan(lines.batch, &lines.live, &err, &plan), MP_CHANGED);
    /* or with ours */
    lines.live_columns[1].type = MP_TYPE(VARCHAR);
    CHECK_OK(mp_batch_plan(lines.batch, &lines.live, &err, &plan), err);
    CHECK_INT(plan.add_count, 1); /* the stamp */
    /* a is dropped and made again */
    lines.live_columns[0].field_id = 9;
    CHECK_INT(mp_batch_plan(lines.batch, &lines.live, &err, &plan), MP_CHANGED);
    lines_close(&lines);
}

static void arrow_bytes_follow_the_formula(void)
{
    lines_open(&lines);
    for (int i = 0; i < 1000; i++)
        lines_add(&lines, i % 2 ? "{\"i\":1,\"s\":\"abcd\",\"b\":true}" : "{\"i\":1,\"b\":false}");
    /* 8 for i; 4 and a validity bit for s, 500 x 4 bytes of text; a bit for b */
    CHECK_INT(mp_batch_arrow_bytes(lines.batch), 1000 * 12 + 125 + 125 + 2000);
    CHECK(mp_batch_bytes(lines.batch) >= 1000 * 8 + 500 * 8 + 1000);
    lines_seal(&lines, true);
    lines_close(&lines);
}

/* What a sealed batch held is asked for when its row groups are made, and by the metrics. */
static void bytes_are_those_of_the_segments_also_of_a_sealed_batch(void)
{
    char record[300];
    size_t before;

    lines_open(&lines);
    for (int i = 0; i < 5000; i++) {
        /* v is a number until a text comes, and then spelled out */
        snprintf(record, sizeof(record),
                 i == 3000 ? "{\"v\":\"x\"}" : "{\"v\":%d,\"t\":\"%0200d\"}", i, i);
        lines_add(&lines, record);
    }
    before = mp_batch_bytes(lines.batch) - mp_batch_own_bytes(lines.batch);
    CHECK_INT(before, mp_segment_pool_bytes(lines.pool));
    CHECK(before > 4999 * 204);
    lines_seal(&lines, true);
    CHECK_INT(mp_batch_bytes(lines.batch) - mp_batch_own_bytes(lines.batch),
              mp_segment_pool_bytes(lines.pool));
    CHECK(mp_segment_pool_bytes(lines.pool) >= before + 5000 * 8); /* the stamp's */
    lines_close(&lines);
}

static void values_span_segments(void)
{
    char record[2048];
    size_t length;

    lines_open(&lines);
    for (int i = 0; i < 3000; i++) {
        length = (size_t)snprintf(record, sizeof(record), "{\"n\":%d,\"s\":\"", i);
        memset(record + length, 'a' + i % 26, 1000);
        memcpy(record + length + 1000, "\"}", 3);
        if (i % 3 == 0)
            snprintf(record, sizeof(record), "{\"n\":%d}", i);
        lines_add(&lines, record);
    }
    lines_seal(&lines, true);
    CHECK_INT(lines_values(&lines, "s").size, 2000 * 1000 + 1000 + 2999);
    lines_close(&lines);
}

static void declared_columns_are_set_by_number(void)
{
    uint32_t topic, offset;
    int64_t at = 42;

    lines_open(&lines);
    lines.options.inserted_at_name = MP_STR("");
    lines.batch = mp_batch_new(lines.pool, &lines.options);
    topic = mp_batch_declare(lines.batch, MP_STR("topic"), MP_TYPE(VARCHAR));
    offset = mp_batch_declare(lines.batch, MP_STR("offset"), MP_TYPE(INT64));
    mp_batch_set_text(lines.batch, topic, MP_STR("t"));
    mp_batch_row_end(lines.batch);
    mp_batch_set(lines.batch, offset, &at);
    mp_batch_row_end(lines.batch);
    lines_seal(&lines, true);
    TYPES("topic:varchar offset:int64");
    VALUES("topic", "t|~");
    VALUES("offset", "~|42");
    lines_close(&lines);
}

static const struct mp_companion companions[] = {{MP_STR_INIT("p"), MP_STR_INIT("p_variant")},
                                                 {MP_STR_INIT("q"), MP_STR_INIT("q_variant")}};

static void open_with_companions(void)
{
    lines_open(&lines);
    lines.options.companions = companions;
    lines.options.companion_count = 2;
}

static const struct mp_column *sealed_column(const char *name)
{
    uint32_t count;
    const struct mp_column *columns = mp_batch_columns(lines.batch, &count);

    for (uint32_t i = 0; i < count; i++)
        if (mp_str_eq(columns[i].name, mp_str_c(name)))
            return &columns[i];
    test_fail(__FILE__, __LINE__, "there is no column %s", name);
}

static void companions_come_with_values_of_their_source(void)
{
    uint32_t refused;

    open_with_companions();
    lines_add(&lines, "{\"a\":1,\"q\":null}");
    lines_add(&lines, "{\"P\":{\"x\":1}}"); /* one column with p: names fold */
    lines_add(&lines, "{\"a\":2}");
    lines_seal(&lines, false);
    TYPES("a:int64 P:varchar p_variant:variant _inserted_at:timestamptz");
    CHECK(sealed_column("P")->companion == sealed_column("p_variant"));
    CHECK(!sealed_column("a")->companion);
    CHECK_INT(sealed_column("p_variant")->values, 1);
    CHECK_INT(sealed_column("p_variant")->rows, 3);
    CHECK(!mp_batch_companion_refused(lines.batch, &refused));
    CHECK_INT(mp_batch_variant_keys(lines.batch), 0);
    lines_close(&lines);

    /* where the table has both, and the batch has no value for one */
    open_with_companions();
    lines_live(&lines, "q_VARIANT", MP_TYPE(VARIANT));
    lines_live(&lines, "q", MP_TYPE(VARCHAR));
    lines_live(&lines, "p_variant", MP_TYPE(VARIANT));
    lines_add(&lines, "{\"q\":\"[]\",\"p\":null}");
    lines_seal(&lines, false);
    TYPES("q_VARIANT:variant q:varchar _inserted_at:timestamptz");
    CHECK(sealed_column("q")->companion == sealed_column("q_VARIANT"));
    lines_close(&lines);
}

static void a_name_that_cannot_be_a_companion_is_refused(void)
{
    const struct mp_companion *first;
    uint32_t refused;

    open_with_companions();
    lines_live(&lines, "p_variant", MP_TYPE(VARCHAR));
    lines_add(&lines, "{\"p\":[],\"q\":1}");
    lines_seal(&lines, false);
    TYPES("p:varchar q:int64 q_variant:variant _inserted_at:timestamptz");
    first = mp_batch_companion_refused(lines.batch, &refused);
    CHECK_INT(refused, 1);
    CHECK(first == &companions[0]);
    CHECK(!sealed_column("p")->companion);
    lines_close(&lines);
}

static void fields_named_like_variants_are_rescued(void)
{
    open_with_companions();
    lines_live(&lines, "v", MP_TYPE(VARIANT));
    lines_add(&lines, "{\"P_Variant\":1}");
    lines_add(&lines, "{\"v\":[2],\"p\":3,\"P_Variant\":4,\"q_variant\":null}");
    lines_seal(&lines, false);
    TYPES("p:int64 p_variant:variant _inserted_at:timestamptz _rescued_data:varchar");
    VALUES("_rescued_data", "{\"P_Variant\":1}|{\"v\":[2],\"P_Variant\":4,\"q_variant\":null}");
    CHECK_INT(mp_batch_variant_keys(lines.batch), 3);
    CHECK_INT(mp_batch_rescued(lines.batch, MP_RESCUE_RESERVED), 3);
    CHECK_INT(mp_batch_rescued(lines.batch, MP_RESCUE_TYPE), 1);
    lines_close(&lines);
}

static void companions_have_their_place_in_the_budget(void)
{
    open_with_companions();
    lines.options.columns_max = 6; /* two companions, the stamp and the rescued column among them */
    lines_add(&lines, "{\"p\":1,\"a\":2,\"b\":3}");
    lines_seal(&lines, false);
    TYPES("p:int64 a:int64 p_variant:variant _inserted_at:timestamptz _rescued_data:varchar");
    VALUES("_rescued_data", "{\"b\":3}");
    lines_close(&lines);
}

/* "name type pinned refused" of each column that is told of, in the batch's order. */
static struct mp_str misfits(void)
{
    static char text[512];
    struct mp_misfit misfit;
    size_t used = 0;

    *text = 0;
    for (uint32_t at = 0; mp_batch_misfit(lines.batch, &at, &misfit);)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.*s %u %d %u",
                                 used ? "|" : "", MP_STR_ARG(misfit.name), misfit.type.id,
                                 misfit.pinned, misfit.refused);
    return mp_str_c(text);
}

/* Columns whose values came as they are wanted are not told of: a text in VARCHAR, a number in
 * BIGINT, a column that nothing was pinned for. */
static void misfits_are_told(void)
{
    static const struct mp_pin pins[] = {{MP_STR_INIT("same"), {.id = MP_TYPE_INT64}},
                                         {MP_STR_INIT("nested"), {.id = MP_TYPE_VARCHAR}},
                                         {MP_STR_INIT("clean"), {.id = MP_TYPE_DOUBLE}},
                                         {MP_STR_INIT("bad"), {.id = MP_TYPE_DOUBLE}},
                                         {MP_STR_INIT("null"), {.id = MP_TYPE_BOOL}},
                                         {MP_STR_INIT("other"), {.id = MP_TYPE_VARCHAR}}};
    char want[256];

    lines_open(&lines);
    lines.options.pins = pins;
    lines.options.pin_count = 6;
    lines_live(&lines, "fits", MP_TYPE(INT64));
    lines_live(&lines, "word", MP_TYPE(INT64));
    lines_live(&lines, "part", MP_TYPE(INT64));
    lines_live(&lines, "double", MP_TYPE(DOUBLE));
    lines_live(&lines, "other", MP_TYPE(DATE)); /* the pin is not its type: it counts for nothing */
    lines_add(&lines, "{\"same\":1,\"nested\":{},\"clean\":1.5,\"bad\":1,\"null\":null,"
                      "\"fits\":\"7\",\"word\":\"seven\",\"part\":0.5,\"double\":1,\"new\":1,"
                      "\"other\":\"2026-01-01\"}");
    lines_add(&lines, "{\"same\":2,\"nested\":\"x\",\"clean\":7,\"bad\":9007199254740993,"
                      "\"word\":8,\"part\":3.0,\"double\":9007199254740993,\"new\":\"x\","
                      "\"other\":\"?\"}");
    lines_add(&lines, "{\"bad\":[],\"word\":\"nine\"}");
    lines_seal(&lines, false);
    snprintf(want, sizeof(want),
             "word %u 0 2|part %u 0 1|double %u 0 1|other %u 0 1|clean %u 1 0"
             "|bad %u 1 2",
             MP_TYPE_INT64, MP_TYPE_INT64, MP_TYPE_DOUBLE, MP_TYPE_DATE, MP_TYPE_DOUBLE,
             MP_TYPE_DOUBLE);
    CHECK_STR(misfits(), mp_str_c(want));
    lines_close(&lines);
}

static void each_refused_name_counts_once(void)
{
    const struct mp_str *names;
    char record[64];

    lines_open(&lines);
    lines.options.name_ok = no_blanks;
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < 15; i++) {
            snprintf(record, sizeof(record), "{\"a b %d\":%d,\"good\":1}", i, turn);
            lines_add(&lines, record);
        }
    lines_seal(&lines, true);
    CHECK_INT(mp_batch_rescued(lines.batch, MP_RESCUE_NAME), 30);
    CHECK_INT(mp_batch_refused_names(lines.batch, &names), 15);
    CHECK_STR(names[0], MP_STR("a b 0"));
    CHECK_STR(names[MP_BATCH_NAMES_KEPT - 1], MP_STR("a b 9"));
    lines_close(&lines);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(new_columns_take_their_kind),
        TEST(the_stamp_takes_the_live_type),
        TEST(empty_objects_are_rows),
        TEST(new_columns_come_as_their_keys_were_seen),
        TEST(joins_do_not_depend_on_order),
        TEST(three_kinds_keep_their_spelling),
        TEST(one_key_many_types_in_one_flush),
        TEST(one_key_many_types_one_per_flush),
        TEST(integers_between_doubles_are_rounded_and_rescued),
        TEST(integers_in_texts_are_rounded_and_rescued_too),
        TEST(live_bigint_is_widened_or_rescues_fractions),
        TEST(late_rescues_keep_the_spelling_of_the_record),
        TEST(where_nothing_widens_whole_fractions_are_stored),
        TEST(spellings_of_one_column_fold),
        TEST(names_that_cannot_be_are_rescued),
        TEST(names_that_were_refused_are_rescued),
        TEST(small_columns_ask_for_a_larger_type),
        TEST(where_nothing_is_promoted_nothing_is_asked),
        TEST(rescue_can_be_off_but_is_counted),
        TEST(column_budget_holds),
        TEST(pins_hold_before_and_without_values),
        TEST(live_types_take_what_they_hold_exactly),
        TEST(timestamps_in_many_spellings),
        TEST(unwritable_live_types_rescue_everything),
        TEST(a_changed_table_is_noticed),
        TEST(arrow_bytes_follow_the_formula),
        TEST(bytes_are_those_of_the_segments_also_of_a_sealed_batch),
        TEST(nulls_find_the_column_that_came_later),
        TEST(values_span_segments),
        TEST(declared_columns_are_set_by_number),
        TEST(companions_come_with_values_of_their_source),
        TEST(a_name_that_cannot_be_a_companion_is_refused),
        TEST(fields_named_like_variants_are_rescued),
        TEST(companions_have_their_place_in_the_budget),
        TEST(misfits_are_told),
        TEST(each_refused_name_counts_once),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
