/* pipeline/plan.h - the text of a plan: what one commit is about to publish, written down beside
 * the offsets of every partition it takes part in, before the commit is sent. Pure.
 *
 *     mpplan1 KEY UUID FIRST NEXT LOWEST HIGHEST SECONDS MEMBERS
 *
 * The key and the table's uuid are the commit's; the four offsets are those of this partition
 * (struct mp_lake_range); the time is the wall clock's, in seconds since 1970. The members are the
 * commit's partitions, this one among them, in ascending order as "a", "a-b" or "a-b/step",
 * separated by commas. Words are separated by one blank each. Whoever finds a plan can settle it
 * with the plans of its members, see settle.c.
 *
 * What another program stores there, or we ourselves for a lake that keeps the offsets
 * ("mp1 epoch next"), is no plan. A text that begins like one and is not understood was written by
 * a later version, or is damaged: that must not be taken for none.
 */
#ifndef MP_PIPELINE_PLAN_H
#define MP_PIPELINE_PLAN_H

#include "base/arena.h"
#include "base/buf.h"
#include "lake/lake.h"

#define MP_PLAN_BYTES_MAX   4096 /* Kafka's default for offset.metadata.max.bytes */
#define MP_PLAN_MEMBERS_MAX 100000

struct mp_plan {
    char key[MP_LAKE_KEY_SIZE];
    struct mp_str uuid;                   /* of the table; visible ASCII, at most 64 bytes */
    int64_t first, next, lowest, highest; /* of this partition, as in struct mp_lake_range */
    int64_t seconds;                      /* when it was made */
    const int32_t *members;               /* ascending */
    uint32_t member_count;
};

/* Appends the text to ret. False: it would be longer than MP_PLAN_BYTES_MAX; ret is as it was. */
bool mp_plan_print(const struct mp_plan *plan, struct mp_buf *ret);

enum mp_plan_kind { MP_PLAN_NONE, MP_PLAN_FOUND, MP_PLAN_UNREADABLE };

/* Reads what stands beside the offset of a partition. Texts and members lie in arena. */
enum mp_plan_kind mp_plan_read(struct mp_arena *arena, int32_t partition, struct mp_str text,
                               struct mp_plan *ret);

#endif
