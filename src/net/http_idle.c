/* net/http_idle.c - see http_idle.h. */
#include "net/http_idle.h"

#include "base/mem.h"

#include <sys/socket.h>

struct mp_http_place {
    struct mp_http_place *before, *after;
    int fd;
    bool waits;
};

void mp_http_idle_init(struct mp_http_idle *idle, uint32_t most)
{
    *idle = (struct mp_http_idle){.most = most};
    pthread_mutex_init(&idle->lock, NULL);
}

void mp_http_idle_fini(struct mp_http_idle *idle)
{
    pthread_mutex_destroy(&idle->lock);
}

static void join(struct mp_http_idle *idle, struct mp_http_place *place)
{
    place->waits = true;
    place->after = NULL;
    place->before = idle->last;
    if (idle->last)
        idle->last->after = place;
    else
        idle->first = place;
    idle->last = place;
}

static void leave(struct mp_http_idle *idle, struct mp_http_place *place)
{
    if (!place->waits)
        return;
    place->waits = false;
    if (place->before)
        place->before->after = place->after;
    else
        idle->first = place->after;
    if (place->after)
        place->after->before = place->before;
    else
        idle->last = place->before;
}

struct mp_http_place *mp_http_idle_open(struct mp_http_idle *idle, int fd)
{
    struct mp_http_place *place = mp_alloc(sizeof(*place)), *longest;

    place->fd = fd;
    pthread_mutex_lock(&idle->lock);
    longest = idle->first;
    if (++idle->open > idle->most && longest) {
        shutdown(longest->fd, SHUT_RDWR); /* I1: it has not been closed, which takes the lock */
        leave(idle, longest);
    }
    join(idle, place);
    pthread_mutex_unlock(&idle->lock);
    return place;
}

void mp_http_idle_busy(struct mp_http_idle *idle, struct mp_http_place *place)
{
    pthread_mutex_lock(&idle->lock);
    leave(idle, place);
    pthread_mutex_unlock(&idle->lock);
}

void mp_http_idle_rest(struct mp_http_idle *idle, struct mp_http_place *place)
{
    pthread_mutex_lock(&idle->lock);
    if (!place->waits)
        join(idle, place);
    pthread_mutex_unlock(&idle->lock);
}

void mp_http_idle_close(struct mp_http_idle *idle, struct mp_http_place *place)
{
    pthread_mutex_lock(&idle->lock);
    idle->open--;
    leave(idle, place);
    pthread_mutex_unlock(&idle->lock);
    mp_free(place);
}
