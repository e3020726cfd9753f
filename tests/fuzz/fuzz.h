/* fuzz/fuzz.h - what every fuzz target begins with. */
#ifndef MP_FUZZ_FUZZ_H
#define MP_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* One input; gives 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Holds for every input, whatever was compiled out. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
