/* column/transform_priv.h - between transform.c and cut.c. */
#ifndef MP_COLUMN_TRANSFORM_PRIV_H
#define MP_COLUMN_TRANSFORM_PRIV_H

#include "column/transform.h"

/* The number that a transform other than identity makes of a value. */
int64_t mp_transform_number(const struct mp_partition_field *field, struct mp_type type,
                            struct mp_str value);

#endif
