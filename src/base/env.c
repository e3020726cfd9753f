#include "base/env.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static uint64_t clock_us(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static uint64_t real_mono(void *self)
{
    (void)self;
    return clock_us(CLOCK_MONOTONIC);
}

static int64_t real_wall(void *self)
{
    (void)self;
    return (int64_t)clock_us(CLOCK_REALTIME);
}

static uint64_t real_random(void *self)
{
    uint64_t value;

    (void)self;
    while (getrandom(&value, sizeof(value), 0) != sizeof(value))
        ;
    return value;
}

static void real_sleep(void *self, uint64_t us)
{
    struct timespec span = {.tv_sec = (time_t)(us / 1000000),
                            .tv_nsec = (long)(us % 1000000) * 1000};

    (void)self;
    nanosleep(&span, NULL); /* a signal may cut it short: callers loop on their own condition */
}

struct mp_env mp_env_real(void)
{
    return (struct mp_env){real_mono, real_wall, real_random, real_sleep, NULL};
}

static uint64_t fake_mono(void *self)
{
    return ((struct mp_env_fake *)self)->mono_us;
}

static int64_t fake_wall(void *self)
{
    return ((struct mp_env_fake *)self)->wall_us;
}

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014) */
static uint64_t fake_random(void *self)
{
    struct mp_env_fake *fake = self;
    uint64_t z = fake->seed += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void fake_sleep(void *self, uint64_t us)
{
    struct mp_env_fake *fake = self;

    fake->mono_us += us;
    fake->wall_us += (int64_t)us;
}

struct mp_env mp_env_fake(struct mp_env_fake *fake)
{
    return (struct mp_env){fake_mono, fake_wall, fake_random, fake_sleep, fake};
}

static void uuid_text(uint64_t high, uint64_t low, unsigned version, char ret[MP_UUID_TEXT])
{
    high = (high & ~(uint64_t)0xf000) | (uint64_t)version << 12;
    low = (low & 0x3fffffffffffffffu) | 0x8000000000000000u;
    snprintf(ret, MP_UUID_TEXT, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(high >> 32),
             (unsigned)(high >> 16) & 0xffff, (unsigned)high & 0xffff, (unsigned)(low >> 48),
             (unsigned long long)(low & 0xffffffffffffu));
}

void mp_uuid7(const struct mp_env *env, char ret[MP_UUID_TEXT])
{
    uint64_t ms = (uint64_t)(mp_now_wall_us(env) / 1000);

    uuid_text(ms << 16 | (mp_random_u64(env) & 0xfff), mp_random_u64(env), 7, ret);
}

void mp_uuid4(const struct mp_env *env, char ret[MP_UUID_TEXT])
{
    uuid_text(mp_random_u64(env), mp_random_u64(env), 4, ret);
}
