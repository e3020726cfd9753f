/* tests/kafka/c11_threads.c - C11 threads as POSIX threads, for the thread sanitizer.
 *
 * librdkafka makes its threads with thrd_create. The sanitizer knows only pthread_create: a thread
 * it has not seen made crashes it at its first allocation, and locks it has not seen taken make it
 * report every hand-over between the client's threads and ours. Symbols of the program come before
 * libc's, so these take their place. glibc's own types are the same ones under another name.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

_Static_assert(sizeof(mtx_t) >= sizeof(pthread_mutex_t), "mtx_t holds a POSIX mutex");
_Static_assert(sizeof(cnd_t) >= sizeof(pthread_cond_t), "cnd_t holds a POSIX condition");
_Static_assert(sizeof(thrd_t) == sizeof(pthread_t), "thrd_t is a POSIX thread");

struct start {
    thrd_start_t run;
    void *self;
};

static void *run_thread(void *self)
{
    struct start start = *(struct start *)self;

    free(self);
    return (void *)(intptr_t)start.run(start.self);
}

int thrd_create(thrd_t *thread, thrd_start_t run, void *self)
{
    struct start *start = malloc(sizeof(*start));

    *start = (struct start){run, self};
    return pthread_create(thread, NULL, run_thread, start) ? thrd_error : thrd_success;
}

int thrd_join(thrd_t thread, int *ret)
{
    void *result;

    if (pthread_join(thread, &result))
        return thrd_error;
    if (ret)
        *ret = (int)(intptr_t)result;
    return thrd_success;
}

int thrd_detach(thrd_t thread)
{
    return pthread_detach(thread) ? thrd_error : thrd_success;
}

int mtx_init(mtx_t *lock, int type)
{
    pthread_mutexattr_t attributes;
    int fault;

    pthread_mutexattr_init(&attributes);
    if (type & mtx_recursive)
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    fault = pthread_mutex_init((pthread_mutex_t *)lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return fault ? thrd_error : thrd_success;
}

void mtx_destroy(mtx_t *lock)
{
    pthread_mutex_destroy((pthread_mutex_t *)lock);
}

int mtx_lock(mtx_t *lock)
{
    return pthread_mutex_lock((pthread_mutex_t *)lock) ? thrd_error : thrd_success;
}

int mtx_unlock(mtx_t *lock)
{
    return pthread_mutex_unlock((pthread_mutex_t *)lock) ? thrd_error : thrd_success;
}

int mtx_trylock(mtx_t *lock)
{
    int fault = pthread_mutex_trylock((pthread_mutex_t *)lock);

    return fault == 0 ? thrd_success : fault == EBUSY ? thrd_busy : thrd_error;
}

int cnd_init(cnd_t *condition)
{
    return pthread_cond_init((pthread_cond_t *)condition, NULL) ? thrd_error : thrd_success;
}

void cnd_destroy(cnd_t *condition)
{
    pthread_cond_destroy((pthread_cond_t *)condition);
}

int cnd_signal(cnd_t *condition)
{
    return pthread_cond_signal((pthread_cond_t *)condition) ? thrd_error : thrd_success;
}

int cnd_broadcast(cnd_t *condition)
{
    return pthread_cond_broadcast((pthread_cond_t *)condition) ? thrd_error : thrd_success;
}

int cnd_wait(cnd_t *condition, mtx_t *lock)
{
    return pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)lock) ? thrd_error
                                                                                   : thrd_success;
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict lock,
                  const struct timespec *restrict until)
{
    int fault = pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)lock, until);

    return fault == 0 ? thrd_success : fault == ETIMEDOUT ? thrd_timedout : thrd_error;
}
