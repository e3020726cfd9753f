/* column/batch_priv.h - the inner door: a column while it is being filled.
 *
 * A builder holds its values in one lane. The lane says how they lie, the target type what they
 * shall become. Lanes of undecided columns only ever go one way:
 *
 *     NONE -> BOOL -> TEXT,  NONE -> INT -> MIXED -> TEXT,  NONE -> DOUBLE -> MIXED -> TEXT
 *
 * MIXED keeps int64 and double side by side with a bit each, so that 5 can still be spelled "5"
 * when a text arrives later. A live BIGINT that may be widened uses INT and MIXED too.
 */
#ifndef MP_COLUMN_BATCH_PRIV_H
#define MP_COLUMN_BATCH_PRIV_H

#include "base/arena.h"
#include "base/buf.h"
#include "column/batch.h"

enum mp_lane {
    MP_LANE_NONE,   /* no value yet */
    MP_LANE_BOOL,   /* one byte each */
    MP_LANE_INT,    /* int64 */
    MP_LANE_DOUBLE, /* double */
    MP_LANE_MIXED,  /* int64 or double, see integers */
    MP_LANE_TEXT,   /* texts of any value */
    MP_LANE_CAST,   /* fixed values of `type`, cast as they come */
    MP_LANE_JSON,   /* texts that are JSON */
    MP_LANE_BLOB,   /* bytes of strings */
    MP_LANE_REFUSE, /* a type that cannot be written: every value is rescued */
};

struct mp_bits {
    uint64_t *words;
    uint32_t capacity; /* words */
};

struct mp_builder {
    struct mp_str name;
    struct mp_str key;   /* as the records spell it; name: in more than one way, or in none */
    bool keyed;          /* a key was seen */
    struct mp_type type; /* live or pinned; NONE: the values decide */
    int32_t field_id;    /* 0: not known yet */
    uint8_t lane;
    bool live, pinned, seen; /* seen: the key was there, if only with nulls */
    bool too_small;          /* a value was rescued that the promoted type would hold */
    uint32_t sight;          /* its key was the n-th that the batch saw; 0: not seen */
    uint8_t kinds;           /* pinned: a bit for each enum mp_json_kind that came */
    uint32_t refused;        /* values that it could not hold exactly */
    uint32_t values;
    struct mp_bits validity; /* over rows */
    struct mp_bits integers; /* MIXED: over values; set: an int64 */
    struct mp_segment_list list;
    uint64_t text_bytes;
    /* which field of the current record fills it; for names that differ in case */
    uint32_t claim_row, claim_field;
};

/* What the batch knows of a key. */
struct mp_batch_key {
    uint32_t slot;   /* see batch.c */
    uint32_t sight;  /* the n-th that was seen; 0: not yet */
    uint32_t absent; /* had only nulls, and no column when there were so many builders, + 1 */
};

struct mp_rescued {
    uint32_t row;
    uint32_t waits; /* 0, or builder + 1: a fraction in a BIGINT whose widening is not decided */
    uint8_t reason;
    struct mp_str name, text;
};

struct mp_batch {
    struct mp_segment_pool *pool;
    struct mp_batch_options options;
    struct mp_arena arena; /* names, rescued texts, sealed columns */
    struct mp_builder *builders;
    uint32_t builder_count, builder_capacity;
    size_t segment_bytes; /* of all builders' lists; stays as it was at the seal */
    uint32_t rows;
    bool aliases; /* two spellings of one column were seen */
    bool sealed;

    struct mp_batch_key *keys; /* by key of the scanner */
    uint32_t key_capacity, sight_count;
    uint32_t *by_name; /* hash of names -> builder + 1 */
    uint32_t name_capacity;

    struct mp_rescued *rescued;
    uint32_t rescued_count, rescued_capacity;
    size_t rescued_bytes;  /* of their texts: the seal copies them into segments */
    bool rescued_disorder; /* an entry came for an earlier row */
    uint64_t rescued_by[MP_RESCUE_REASONS];
    uint32_t variant_keys;                        /* see mp_batch_variant_keys */
    const struct mp_companion *companion_refused; /* the first of the last plan */
    uint32_t companions_refused;
    struct mp_str names_refused[MP_BATCH_NAMES_KEPT]; /* the first ones, in arena */
    uint32_t names_refused_count;                     /* all */

    struct mp_json *checker; /* for texts that must be JSON; made when first needed */
    struct mp_buf scratch;

    struct mp_pin *add;
    int32_t *widen;
    struct mp_promotion *promote;
    struct mp_column *columns;
    uint32_t column_count;
};

/* builder.c */

/* Why a value is to be rescued, and what that waits for: see mp_rescued. */
struct mp_unfit {
    enum mp_rescue reason;
    uint32_t waits;
};

/* Puts one value (no null) into the current row. False: nothing was stored, or it was rounded, or
 * it waits: the caller rescues it. */
bool mp_builder_put(struct mp_batch *batch, struct mp_builder *builder,
                    const struct mp_json_field *field, struct mp_unfit *ret);
void mp_builder_put_fixed(struct mp_batch *batch, struct mp_builder *builder, const void *value,
                          uint32_t width);
void mp_builder_put_text(struct mp_batch *batch, struct mp_builder *builder, struct mp_str text);
/* The type its values make together; NONE where there is none. */
struct mp_type mp_builder_type(const struct mp_builder *builder);
/* INT or MIXED becomes DOUBLE in place; integers that are rounded are rescued. */
void mp_builder_to_double(struct mp_batch *batch, struct mp_builder *builder);
/* MIXED becomes INT: whole doubles are kept, the others left null; their waiting rescue holds. */
void mp_builder_to_int(struct mp_batch *batch, struct mp_builder *builder);

/* batch.c */

/* Keeps the field's exact text for the rescued column of that row. waits: see struct mp_rescued. */
void mp_batch_rescue(struct mp_batch *batch, uint32_t row, struct mp_str name,
                     enum mp_rescue reason, uint32_t waits, const struct mp_json_field *field);
struct mp_builder *mp_batch_find(const struct mp_batch *batch, struct mp_str name);
struct mp_builder *mp_batch_add(struct mp_batch *batch, struct mp_str name, struct mp_type type);

/* companion.c */

/* The companion of this name; NULL: it is none. */
const struct mp_companion *mp_batch_companion(const struct mp_batch *batch, struct mp_str name);
/* Companions that the table has not yet. */
uint32_t mp_batch_companions_missing(const struct mp_batch *batch);
/* Writes the companions that the table must get to add; gives their number. */
uint32_t mp_batch_companions_plan(struct mp_batch *batch, const struct mp_schema *live,
                                  struct mp_pin *add);
/* Says of each sealed column which other one is its companion. */
void mp_batch_companions_link(struct mp_batch *batch);
/* The companion's source, when this live column is a companion to be made from this batch. */
struct mp_builder *mp_batch_companion_source(const struct mp_batch *batch,
                                             const struct mp_live_column *column);

/* seal.c */

/* The live column of this name; NULL: none. */
const struct mp_live_column *mp_batch_live(const struct mp_batch *batch,
                                           const struct mp_schema *live, struct mp_str name);

/* Whether two names are one column in this destination. */
static inline bool mp_batch_same_name(const struct mp_batch *batch, struct mp_str a,
                                      struct mp_str b)
{
    return batch->options.fold_case ? mp_str_eq_fold(a, b) : mp_str_eq(a, b);
}

static inline bool mp_bit(const struct mp_bits *bits, uint32_t at)
{
    return at / 64 < bits->capacity && (bits->words[at / 64] >> (at & 63) & 1);
}

void mp_bits_grow(struct mp_bits *bits, uint32_t at);

static inline void mp_bit_set(struct mp_bits *bits, uint32_t at)
{
    if (__builtin_expect(at / 64 >= bits->capacity, 0))
        mp_bits_grow(bits, at);
    bits->words[at / 64] |= (uint64_t)1 << (at & 63);
}

#endif
