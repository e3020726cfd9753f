/* tests/fuzz/deletion_vector_fuzz.c - any bytes as a deletion vector.
 *
 * The first byte says whether the rest is a whole Puffin file or only the bitmap in one, around
 * which a file is made: no fuzzer finds a checksum. The next two are the rows of the data file.
 * What is read has as many bits as it says, and none past the rows.
 *
 * With -DMP_LIBFUZZER clang's fuzzer feeds it; without, it replays the files it is given.
 */
#include "fuzz/fuzz.h"
#include "server/background/deletion_vector.h"
#include "server/puffin_maker.h"

#include <assert.h>

static void check(const struct mp_deletion_vector *vector, uint64_t rows)
{
    uint64_t count = 0;

    for (uint64_t row = 0; row < (rows / 64 + 1) * 64; row++) {
        bool bit = vector->rows[row / 64] >> (row & 63) & 1;

        assert(!bit || row < rows);
        count += bit;
    }
    assert(count == vector->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mp_buf file = MP_BUF_INIT(1 << 22);
    struct mp_deletion_vector vector;
    struct mp_arena arena;
    struct mp_err err;
    uint64_t rows;

    if (size < 3)
        return 0;
    rows = (uint64_t)(data[1] | data[2] << 8) * 4;
    if (data[0] & 1)
        make_puffin(&file, mp_str_n(data + 3, size - 3), "", 0);
    else
        mp_buf_add(&file, data + 3, size - 3);
    mp_arena_init(&arena, 0);
    if (mp_deletion_vector_read(&arena, mp_buf_str(&file), MP_STR("x"), rows, &err, &vector) ==
        MP_OK)
        check(&vector, rows);
    else
        assert((err.code == MP_BAD_DATA || err.code == MP_REFUSED) && err.text[0]);
    mp_arena_fini(&arena);
    mp_buf_fini(&file);
    return 0;
}

#include "fuzz/replay.h"
