/* base/env.h - the one seam to clock, chance and sleep.
 *
 * Nothing else in the program reads a clock or a random source. Tests pass a stepped clock and a
 * seed, so that crashes and retries can be played again. Threads: every function may be called
 * from any thread.
 */
#ifndef MP_BASE_ENV_H
#define MP_BASE_ENV_H

#include <stddef.h>
#include <stdint.h>

struct mp_env {
    uint64_t (*now_mono_us)(void *self); /* microseconds since some fixed instant, never back */
    int64_t (*now_wall_us)(void *self);  /* microseconds since 1970-01-01 UTC */
    uint64_t (*random_u64)(void *self);
    void (*sleep_us)(void *self, uint64_t us);
    void *self;
};

static inline uint64_t mp_now_mono_us(const struct mp_env *env)
{
    return env->now_mono_us(env->self);
}
static inline int64_t mp_now_wall_us(const struct mp_env *env)
{
    return env->now_wall_us(env->self);
}
static inline uint64_t mp_random_u64(const struct mp_env *env)
{
    return env->random_u64(env->self);
}
static inline void mp_sleep_us(const struct mp_env *env, uint64_t us)
{
    env->sleep_us(env->self, us);
}

/* The real clock and the kernel's random source. */
struct mp_env mp_env_real(void);

/* A stepped clock: sleep moves it, nothing else does. random_u64 is splitmix64 of the seed. */
struct mp_env_fake {
    uint64_t mono_us;
    int64_t wall_us;
    uint64_t seed;
};
struct mp_env mp_env_fake(struct mp_env_fake *fake);

#define MP_UUID_TEXT 37 /* 36 characters and a NUL */
/* Writes a version 7 UUID in canonical lower case (RFC 9562, section 5.7). */
void mp_uuid7(const struct mp_env *env, char ret[MP_UUID_TEXT]);
/* A version 4 UUID (RFC 9562, section 5.4). */
void mp_uuid4(const struct mp_env *env, char ret[MP_UUID_TEXT]);

#endif
