/* pipeline/book.c - the source's stored offsets: the book of record where the lake keeps none, else
 * its mirror.
 *
 * K1  a commit is sent only after every partition of it carries its plan, written by a process that
 *     owns the partition (source.h): a fenced one never gets there
 * K2  offsets move behind a plan only after its key is known to be published; so a plan that is
 *     found was carried out or not, and the lake can tell which
 * K3  pieces of a plan are stored one by one: with one missing it was never sent
 */
#include "base/mem.h"
#include "pipeline/pipeline_priv.h"
#include "pipeline/plan.h"

#include <assert.h>

static const char logger[] = "millpond.publish";

static struct mp_plan plan_of(const struct mp_publish *publish, const int32_t *members)
{
    const struct mp_job *job = publish->job;
    const struct mp_lake_table *table = mp_job_keyed_table(job);
    struct mp_plan plan = {
        .seconds = publish->began_wall_us / 1000000, /* the same in every attempt */
        .members = members,
        .member_count = job->range_count,
    };

    assert(table);
    plan.uuid = table->uuid;
    memcpy(plan.key, job->key, sizeof(plan.key));
    return plan;
}

enum mp_code mp_book_plan(struct mp_publish *publish, struct mp_err *err)
{
    struct mp_pipeline *p = publish->p;
    const struct mp_job *job = publish->job;
    struct mp_source_offset *offsets = mp_alloc_array(job->range_count, sizeof(*offsets));
    struct mp_buf *texts = mp_alloc_array(job->range_count, sizeof(*texts));
    int32_t *members = mp_alloc_array(job->range_count, sizeof(*members));
    struct mp_plan plan;
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < job->range_count; i++)
        members[i] = job->ranges[i].partition;
    plan = plan_of(publish, members);
    for (uint32_t i = 0; i < job->range_count && !code; i++) {
        const struct mp_lake_range *range = &job->ranges[i];

        plan.first = range->first;
        plan.next = range->next;
        plan.lowest = range->lowest;
        plan.highest = range->highest;
        texts[i] = MP_BUF_INIT(MP_PLAN_BYTES_MAX);
        if (!mp_plan_print(&plan, &texts[i]))
            code = mp_err_set(err, MP_REFUSED,
                              "the plan of a commit of %u partitions takes more than the %d bytes "
                              "that Kafka keeps beside an offset: spread the topic over more "
                              "processes (REPLICA_COUNT)",
                              job->range_count, MP_PLAN_BYTES_MAX);
        offsets[i] = (struct mp_source_offset){.partition = range->partition,
                                               .offset = range->first,
                                               .metadata = mp_buf_str(&texts[i])};
    }
    if (!code)
        code = p->source->driver->commit(p->source, offsets, job->range_count, err);
    for (uint32_t i = 0; i < job->range_count; i++)
        mp_buf_fini(&texts[i]);
    mp_free(members);
    mp_free(texts);
    mp_free(offsets);
    return code;
}

enum mp_code mp_book_record(struct mp_publish *publish, struct mp_err *err)
{
    struct mp_pipeline *p = publish->p;

    return p->source->driver->commit(p->source, publish->job->offsets, publish->job->range_count,
                                     err);
}

/* A mirror: a failure is told and left. One that was waited for in vain is not waited for again:
 * records wait behind it. */
void mp_book_mirror(struct mp_publish *publish)
{
    struct mp_pipeline *p = publish->p;
    struct mp_err err;

    for (unsigned attempt = 0; attempt < 3; attempt++) {
        if (!mp_book_record(publish, &err))
            return;
        mp_metric_add(p->world.metrics, MP_M_ERRORS, "offset_commit", 1);
        mp_log(p->world.log, MP_LOG_WARN, logger,
               "Offset commit failed (attempt %u/3): %s; the lake holds the offsets", attempt + 1,
               err.text);
        if (err.code == MP_TIMEOUT || !mp_pipeline_wait(p, 500 << attempt))
            return;
    }
}
