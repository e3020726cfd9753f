#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef __GLIBC__ /* which the headers above tell */
#include <malloc.h>
#endif

_Noreturn void mp_out_of_memory(size_t size)
{
    char line[96];
    int length = snprintf(line, sizeof(line), "out of memory: %zu bytes were refused\n", size);

    if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
        _exit(MP_EXIT_MEMORY);
    _exit(MP_EXIT_MEMORY);
}

void *mp_alloc(size_t size)
{
    void *memory = calloc(1, size ? size : 1);

    if (!memory)
        mp_out_of_memory(size);
    return memory;
}

void *mp_alloc_array(size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        mp_out_of_memory(SIZE_MAX);
    return mp_alloc(count * size);
}

void *mp_realloc(void *memory, size_t size)
{
    void *grown = realloc(memory, size ? size : 1);

    if (!grown)
        mp_out_of_memory(size);
    return grown;
}

void mp_free(void *memory)
{
    free(memory);
}

void mp_mem_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

void mp_mem_pools(int most)
{
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, most);
#else
    (void)most;
#endif
}
