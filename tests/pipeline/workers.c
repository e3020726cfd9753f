#include "pipeline/workers.h"
#include "harness/test.h"

#include <stdatomic.h>

struct job {
    atomic_uint counts[1000];
    atomic_uint by_worker[4];
};

static void run(void *self, uint32_t worker, uint32_t item)
{
    struct job *job = self;

    atomic_fetch_add(&job->counts[item], 1);
    atomic_fetch_add(&job->by_worker[worker], 1);
}

static void each_item_runs_once(void)
{
    for (uint32_t threads = 1; threads <= 4; threads++) {
        struct mp_workers *workers = mp_workers_new(threads);

        CHECK_INT(mp_workers_count(workers), threads);
        for (uint32_t items = 0; items <= 1000; items += 111) {
            struct job job = {0};
            uint32_t sum = 0;

            mp_workers_each(workers, items, run, &job);
            for (uint32_t i = 0; i < 1000; i++)
                CHECK_INT(atomic_load(&job.counts[i]), i < items);
            for (uint32_t i = 0; i < 4; i++) {
                sum += atomic_load(&job.by_worker[i]);
                CHECK(i < threads || atomic_load(&job.by_worker[i]) == 0);
            }
            CHECK_INT(sum, items);
        }
        mp_workers_free(workers);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(each_item_runs_once)};

    return test_main(argc, argv, tests, 1);
}
