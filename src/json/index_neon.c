/* json/index_neon.c - stage one with NEON: a block is four vectors of 16 bytes.
 *
 * The same as index_avx2.c, where the tables are explained, in the vectors of 64-bit ARM.
 */
#include "json/index.h"

typedef int mp_json_index_neon_unused; /* a file may not be empty */
