/* config/config_priv.h - the inner door of the config room. */
#ifndef MP_CONFIG_CONFIG_PRIV_H
#define MP_CONFIG_CONFIG_PRIV_H

#include "config/config.h"
#include "config/text.h"

enum mp_setting_id {
#define MP_SETTING(name, kind, value, where, flags, section, meaning) MP_SET_##name,
#include "config/settings.def"
#undef MP_SETTING
    MP_SET_COUNT
};

enum mp_setting_kind {
    MP_KIND_TEXT,
    MP_KIND_IDENT,
    MP_KIND_INT,
    MP_KIND_REAL,
    MP_KIND_CHOICE,
    MP_KIND_BOOL,
    MP_KIND_LIST,
    MP_KIND_DURATION
};

enum mp_setting_where { MP_WHERE_BOTH, MP_WHERE_DUCKLAKE, MP_WHERE_HOGLAKE };

enum mp_setting_flag {
    MP_FLAG_REQUIRED = 1,
    MP_FLAG_SECRET = 2,
    MP_FLAG_BLANK = 4,
    MP_FLAG_IGNORED = 8
};

enum mp_setting_section {
    MP_SECTION_CORE,
    MP_SECTION_DUCKLAKE,
    MP_SECTION_HOGLAKE,
    MP_SECTION_RECORDS,
    MP_SECTION_INCLUDE,
    MP_SECTION_TELEMETRY,
    MP_SECTION_COUNT
};

struct mp_setting {
    const char *name;
    enum mp_setting_kind kind;
    int64_t low, high;   /* INT */
    const char *choices; /* CHOICE: "a|b|c" */
    const char *value;   /* the default; NULL: none */
    enum mp_setting_where where;
    unsigned flags;
    enum mp_setting_section section;
    const char *meaning;
};

extern const struct mp_setting mp_settings[MP_SET_COUNT];

static inline const char *mp_setting_name(enum mp_setting_id id)
{
    return mp_settings[id].name;
}

/* --- reading one setting (read.c) ---------------------------------------------------------- */

struct mp_reader {
    struct mp_arena *arena;
    char *const *environment;
    struct mp_err *err;
    const struct mp_config_options *options;
    struct mp_config *config;
};

/* The value for people: secrets hidden, control bytes escaped, long ones cut. */
const char *mp_setting_shown(struct mp_arena *arena, enum mp_setting_id id, struct mp_str value);
/* What the table allows, such as "an integer from 1 to 22". */
const char *mp_setting_allowed(struct mp_arena *arena, enum mp_setting_id id);
/* Fills err: the name, the value unless secret, and what is allowed. Gives MP_BAD_CONFIG. */
enum mp_code mp_setting_fault(struct mp_reader *r, enum mp_setting_id id, struct mp_str value,
                              const char *allowed);
/* The same for the value that stands in the environment. */
enum mp_code mp_read_fault(struct mp_reader *r, enum mp_setting_id id, const char *allowed);
/* One of two settings that go together is set, the other is missing. */
enum mp_code mp_read_alone(struct mp_reader *r, enum mp_setting_id given,
                           enum mp_setting_id missing);
void mp_config_warn(struct mp_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Set, and not empty. */
bool mp_read_given(struct mp_reader *r, enum mp_setting_id id);
/* TEXT, IDENT, LIST: the default where not set or empty; an empty text where there is none. */
enum mp_code mp_read_text(struct mp_reader *r, enum mp_setting_id id, struct mp_str *ret);
/* INT: Python's grammar, within the table's range. Without default and value: 0. */
enum mp_code mp_read_int(struct mp_reader *r, enum mp_setting_id id, int64_t *ret);
/* REAL: a positive number of seconds, as milliseconds (at least 1). */
enum mp_code mp_read_seconds(struct mp_reader *r, enum mp_setting_id id, double *ret_s,
                             uint32_t *ret_ms);
/* CHOICE: which of them, 0 first; blanks around it and case do not matter. */
enum mp_code mp_read_choice(struct mp_reader *r, enum mp_setting_id id, unsigned *ret);
enum mp_code mp_read_bool(struct mp_reader *r, enum mp_setting_id id, bool *ret);
/* DURATION: a number of seconds, or one with s, m, h or d behind it. */
enum mp_code mp_read_duration(struct mp_reader *r, enum mp_setting_id id, uint64_t *ret_s);

/* --- steps of load, each with the rules between its settings --------------------------------- */

enum mp_code mp_read_ducklake(struct mp_reader *r);
enum mp_code mp_read_hoglake(struct mp_reader *r);
enum mp_code mp_read_filters(struct mp_reader *r);
enum mp_code mp_read_sort(struct mp_reader *r);
enum mp_code mp_read_pins(struct mp_reader *r);
enum mp_code mp_read_uuid_filters(struct mp_reader *r); /* behind the pins */
enum mp_code mp_read_rescue(struct mp_reader *r);
enum mp_code mp_read_variants(struct mp_reader *r); /* behind the rescued column */
enum mp_code mp_read_quarantine(struct mp_reader *r);
enum mp_code mp_read_include(struct mp_reader *r); /* behind the filters */
/* Whether these can stand in an HTTP header (include.c). An empty name: only value is looked at. */
bool mp_header_ok(struct mp_str name, struct mp_str value);

/* --- partition keys (partition.c): pure ----------------------------------------------------- */

/* Checks a list of partition keys. ducklake: c, year(c) .., bucket(N, c); else the hoglake form
 * c, identity(c), .., bucket(c, N). On a fault writes what is wrong into ret. */
bool mp_partition_check(struct mp_arena *arena, struct mp_str text, bool ducklake,
                        const char **ret);

/* Warnings about names that look like a setting and are none (slips.c). */
void mp_config_slips(struct mp_reader *r);

#endif
