/* base/mem.h - memory that is there or ends the process.
 *
 * Running out of memory is not handled case by case: a process that is told so prints the size it
 * asked for and exits with MP_EXIT_MEMORY. Nothing is lost by it, since the lake holds every
 * published offset and the next process reads on from there. So no function above this file has
 * an out-of-memory branch that no test can reach.
 */
#ifndef MP_BASE_MEM_H
#define MP_BASE_MEM_H

#include <stddef.h>

#define MP_EXIT_MEMORY 71 /* EX_OSERR of sysexits.h */

/* Gives `size` bytes, zeroed; never NULL. size 0 gives a pointer that may be freed. */
void *mp_alloc(size_t size) __attribute__((malloc));
/* The same for an array; count * size may not overflow (asserted by ending the process). */
void *mp_alloc_array(size_t count, size_t size) __attribute__((malloc));
/* Grows or shrinks; new bytes are not zeroed. */
void *mp_realloc(void *memory, size_t size);
/* What the above do when there is none: for memory that comes another way. */
_Noreturn void mp_out_of_memory(size_t size);
/* No-op on NULL. */
void mp_free(void *memory);
/* Gives what was freed back to the system where the C library keeps it: for a long-running process
 * after work that needed much more than the rest does. */
void mp_mem_trim(void);
/* Bounds the pools that the C library gives threads of their own, each of which keeps what its
 * largest piece of work left. Call it before there are threads. */
void mp_mem_pools(int most);

#endif
