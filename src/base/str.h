/* base/str.h - a borrowed run of bytes. Not NUL-terminated; may hold NUL. Never owns. */
#ifndef MP_BASE_STR_H
#define MP_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct mp_str {
    const char *data;
    size_t size;
};

/* A string literal, without its NUL. */
#define MP_STR(literal) ((struct mp_str){"" literal, sizeof(literal) - 1})
/* The same where C wants a constant: in an initializer. */
#define MP_STR_INIT(literal)                                                                       \
    {                                                                                              \
        "" literal, sizeof(literal) - 1                                                            \
    }
/* For "%.*s". The text is cut at INT_MAX bytes, far above any name. */
#define MP_STR_ARG(s) (int)(s).size, (s).data

static inline struct mp_str mp_str_c(const char *text)
{
    return (struct mp_str){text, text ? strlen(text) : 0};
}

static inline struct mp_str mp_str_n(const void *data, size_t size)
{
    return (struct mp_str){(const char *)data, size};
}

static inline bool mp_str_eq(struct mp_str a, struct mp_str b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Bytewise order, the shorter first when one begins the other. */
static inline int mp_str_cmp(struct mp_str a, struct mp_str b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size ? memcmp(a.data, b.data, size) : 0;

    return order ? order : (a.size > b.size) - (a.size < b.size);
}

#define MP_STR_HASH 2166136261u

/* FNV-1a, going on from a hash or from MP_STR_HASH: for tables in memory whose keys nobody chooses
 * to collide. (Fowler, Noll, Vo; draft-eastlake-fnv, section 2) */
static inline uint32_t mp_str_hash(uint32_t hash, struct mp_str text)
{
    for (size_t i = 0; i < text.size; i++)
        hash = (hash ^ (unsigned char)text.data[i]) * 16777619u;
    return hash;
}

static inline unsigned char mp_ascii_lower(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c;
}

/* Equal when only ASCII letters differ in case; other bytes must be equal. */
static inline bool mp_str_eq_fold(struct mp_str a, struct mp_str b)
{
    if (a.size != b.size)
        return false;
    for (size_t i = 0; i < a.size; i++)
        if (mp_ascii_lower((unsigned char)a.data[i]) != mp_ascii_lower((unsigned char)b.data[i]))
            return false;
    return true;
}

static inline bool mp_str_starts(struct mp_str s, struct mp_str prefix)
{
    return s.size >= prefix.size && memcmp(s.data, prefix.data, prefix.size) == 0;
}

#endif
