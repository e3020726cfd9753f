/* tests/fuzz/replay.h - the last line of a fuzz target: without -DMP_LIBFUZZER, a main that replays
 * the files it is given. */
#ifndef MP_TESTS_FUZZ_REPLAY_H
#define MP_TESTS_FUZZ_REPLAY_H

#include <stdint.h>
#include <stdio.h>

#ifndef MP_LIBFUZZER
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        FILE *in = fopen(argv[i], "rb");
        static uint8_t data[1 << 20];

        if (!in) {
            perror(argv[i]);
            return 2;
        }
        LLVMFuzzerTestOneInput(data, fread(data, 1, sizeof(data), in));
        fclose(in);
    }
    printf("%d passed, 0 failed\n", argc - 1);
    return argc < 2;
}
#endif

#endif
