#include "pipeline/workers.h"

#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct mp_workers {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t *threads; /* [count - 1] */
    uint32_t count, started;
    bool ending;
    /* the running job; items go out one by one */
    void (*run)(void *self, uint32_t worker, uint32_t item);
    void *self;
    uint32_t items, next, done;
};

/* Takes and runs items until none is left; the lock is held on entry and exit. */
static void work(struct mp_workers *workers, uint32_t worker)
{
    while (workers->next < workers->items) {
        uint32_t item = workers->next++;

        pthread_mutex_unlock(&workers->lock);
        workers->run(workers->self, worker, item);
        pthread_mutex_lock(&workers->lock);
        if (++workers->done == workers->items)
            pthread_cond_broadcast(&workers->changed);
    }
}

static void *worker_main(void *argument)
{
    struct mp_workers *workers = argument;
    uint32_t worker;

    pthread_mutex_lock(&workers->lock);
    worker = ++workers->started; /* 0 is the caller of each */
    while (!workers->ending) {
        work(workers, worker);
        pthread_cond_wait(&workers->changed, &workers->lock);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

struct mp_workers *mp_workers_new(uint32_t count)
{
    struct mp_workers *workers = mp_alloc(sizeof(*workers));

    assert(count > 0);
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->changed, NULL);
    workers->threads = mp_alloc_array(count, sizeof(*workers->threads));
    /* where the system gives fewer threads, those that are there do the work */
    for (workers->count = 1; workers->count < count; workers->count++)
        if (pthread_create(&workers->threads[workers->count - 1], NULL, worker_main, workers))
            break;
    return workers;
}

void mp_workers_free(struct mp_workers *workers)
{
    if (!workers)
        return;
    pthread_mutex_lock(&workers->lock);
    workers->ending = true;
    pthread_cond_broadcast(&workers->changed);
    pthread_mutex_unlock(&workers->lock);
    for (uint32_t i = 0; i + 1 < workers->count; i++)
        pthread_join(workers->threads[i], NULL);
    pthread_cond_destroy(&workers->changed);
    pthread_mutex_destroy(&workers->lock);
    mp_free(workers->threads);
    mp_free(workers);
}

uint32_t mp_workers_count(const struct mp_workers *workers)
{
    return workers->count;
}

void mp_workers_each(struct mp_workers *workers, uint32_t items,
                     void (*run)(void *self, uint32_t worker, uint32_t item), void *self)
{
    pthread_mutex_lock(&workers->lock);
    assert(workers->done == workers->items); /* the job before is over */
    workers->run = run;
    workers->self = self;
    workers->next = workers->done = 0;
    workers->items = items;
    pthread_cond_broadcast(&workers->changed);
    work(workers, 0);
    while (workers->done < workers->items)
        pthread_cond_wait(&workers->changed, &workers->lock);
    workers->items = workers->next = workers->done = 0;
    pthread_mutex_unlock(&workers->lock);
}
