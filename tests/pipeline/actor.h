/* tests/pipeline/actor.h - processes that share a made-up world whose lake keeps no offsets.
 *
 * Every call that an actor makes into the world passes a gate. At a call of the test's choice the
 * actor dies there (nothing it does afterwards has any effect), dies with the call done and its
 * answer lost, or is frozen: all its threads stop at their next call, for as long as the test
 * likes, and then go on as if nothing had happened. Commits of several offsets, and taking several
 * partitions over, pass the gate once for each: they are separate transactions.
 */
#ifndef MP_TESTS_PIPELINE_ACTOR_H
#define MP_TESTS_PIPELINE_ACTOR_H

#include "world.h"

#include <pthread.h>

enum actor_fate { ACTOR_LIVES, ACTOR_DIES, ACTOR_DIES_AFTER, ACTOR_FREEZES };

/* What a gate counts. */
enum actor_call {
    ACTOR_OWN,
    ACTOR_COMMITTED,
    ACTOR_COMMIT,
    ACTOR_RESOLVE,
    ACTOR_EVOLVE,
    ACTOR_PUBLISHED,
    ACTOR_APPEND,
    ACTOR_PUT,
    ACTOR_CALLS
};

struct actor {
    struct world *world;
    struct mp_pipeline_options options;
    uint32_t ordinal, replica_count;
    enum actor_fate fate;
    uint64_t fate_at; /* number of the call, from 1 */
    bool fate_of_one; /* only calls of fate_call are counted for that */
    enum actor_call fate_call;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    uint64_t calls, calls_of[ACTOR_CALLS];
    bool dead, frozen, ended;
    struct mp_pipeline *pipeline;
    pthread_t thread;
    enum mp_code code; /* of its run, once ended */
    struct mp_err err;
};

/* Begins to run in a thread of its own. The options are the world's; the fate is the caller's. */
void actor_start(struct actor *actor);
/* Waits until it has ended, or is frozen. True: it is frozen. */
bool actor_wait(struct actor *actor);
/* Lets a frozen one go on. */
void actor_thaw(struct actor *actor);
/* Waits for its end. */
enum mp_code actor_join(struct actor *actor);
/* start, and join: its code, and err where it has one. */
enum mp_code actor_run(struct actor *actor, struct mp_err *err);

#endif
