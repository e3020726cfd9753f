/* store/memory.h - objects in memory, for tests and simulations, with faults on demand.
 *
 * The objects live in a "disk" that outlives the stores opened on it, so a simulation can crash
 * its program, drop the store, and find on the next start what a real one would find.
 *
 *     struct mp_memory_disk *disk = mp_memory_disk_new();
 *     struct mp_store *store = mp_memory_store_open(disk);
 *     mp_memory_fault_nth(disk, MP_MEMORY_PUT, 3, MP_MEMORY_LOSE_ANSWER);
 *     ... the third object put from now on is there, but put says MP_IO ...
 *     mp_store_close(store);
 *     mp_memory_disk_free(disk);
 *
 * Faults   are asked for one operation at a time; an operation is one object of a put, one get, one
 *          list, one remove. Beside those armed by number, a function may decide each one.
 * Memory   object bytes are copied by put.
 * Threads  any; each operation is done under one lock, the deciding function is called inside it
 *          and must not call back into the store.
 * Always   S1 to S3 of store.h, and one more: putting a key again replaces it, and is counted
 *          (`rewrites`), so that a test can insist that nobody did.
 */
#ifndef MP_STORE_MEMORY_H
#define MP_STORE_MEMORY_H

#include "store/store.h"

enum mp_memory_op { MP_MEMORY_PUT, MP_MEMORY_GET, MP_MEMORY_LIST, MP_MEMORY_REMOVE, MP_MEMORY_OPS };

enum mp_memory_fault {
    MP_MEMORY_NO_FAULT,
    MP_MEMORY_FAIL,        /* nothing is done; MP_IO, retriable */
    MP_MEMORY_TIME_OUT,    /* nothing is done; MP_TIMEOUT, retriable */
    MP_MEMORY_REFUSE,      /* nothing is done; MP_REFUSED */
    MP_MEMORY_LOSE_ANSWER, /* it is done; MP_IO, retriable, and not marked as done */
    MP_MEMORY_CUT,         /* this one and those after it in the same put are not done; MP_IO */
};

struct mp_memory_counts {
    uint64_t ops[MP_MEMORY_OPS]; /* operations asked for, faulted ones too */
    uint64_t faults[MP_MEMORY_OPS];
    uint64_t put_calls; /* calls of put, whatever they held */
    uint64_t rewrites;  /* puts of a key that was there with other bytes */
    uint64_t objects, bytes;
};

struct mp_memory_disk;

struct mp_memory_disk *mp_memory_disk_new(void);
/* No-op on NULL. Every store on it must be closed. */
void mp_memory_disk_free(struct mp_memory_disk *disk);
/* Gives a store; several may be open on one disk. */
struct mp_store *mp_memory_store_open(struct mp_memory_disk *disk);

/* The nth operation of this kind from now on (1: the next) meets the fault, once. Up to 64 may be
 * armed at a time. */
void mp_memory_fault_nth(struct mp_memory_disk *disk, enum mp_memory_op op, uint64_t nth,
                         enum mp_memory_fault fault);
/* decide is asked before every operation that no number was armed for; NULL: nobody is. ordinal
 * counts the operations of that kind from 1. For a list, key is the prefix. */
void mp_memory_fault_decide(struct mp_memory_disk *disk,
                            enum mp_memory_fault (*decide)(void *self, enum mp_memory_op op,
                                                           struct mp_str key, uint64_t ordinal),
                            void *self);
/* Nothing fails any more. */
void mp_memory_fault_none(struct mp_memory_disk *disk);

struct mp_memory_counts mp_memory_counts(struct mp_memory_disk *disk);
/* Lends the bytes of an object, good until it is put again or removed; data NULL: not there. Not
 * an operation: no fault, no count. */
struct mp_str mp_memory_peek(struct mp_memory_disk *disk, struct mp_str key);

#endif
