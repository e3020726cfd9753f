/* cli/check_priv.h - what the parts of `millpond check` share. */
#ifndef MP_CLI_CHECK_PRIV_H
#define MP_CLI_CHECK_PRIV_H

#include "cli/engine.h"

struct mp_check {
    const struct mp_config *config;
    struct mp_env env;
    struct mp_arena *arena;
    struct mp_source *source; /* NULL: it could not be opened */
    bool kafka_answers;       /* and some partition is ours */
    struct mp_lake *lake;     /* NULL: there is none, or none that fits */
    bool catalog_answers;     /* with a lake or without */
    bool store_knows_time;
    int64_t store_ahead_us; /* its clock before ours */
    enum mp_code first;     /* the first fault's */
};

/* One line each: what is as it should be; what is not, and what to do. */
void mp_check_fine(const char *part, const char *format, ...) __attribute__((format(printf, 2, 3)));
void mp_check_fault(struct mp_check *check, const char *part, const struct mp_err *err,
                    const char *advice);

/* What to do about a fault, by its err->sys: an errno, or the status of an HTTP answer. */
struct mp_check_advice {
    int sys;
    const char *advice;
};
/* Gives the entry's advice, or otherwise. */
const char *mp_check_advice(const struct mp_check_advice *table, size_t count,
                            const struct mp_err *err, const char *otherwise);

/* check_world.c */
void mp_check_store(struct mp_check *check);
void mp_check_clock(struct mp_check *check); /* after store and catalog */
void mp_check_include(struct mp_check *check);
void mp_check_logs(struct mp_check *check);

#endif
