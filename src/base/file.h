/* base/file.h - a whole small file. */
#ifndef MP_BASE_FILE_H
#define MP_BASE_FILE_H

#include "base/buf.h"

/* Adds a whole file, at most up to buf->max bytes of it; false: it cannot be read (errno). */
bool mp_file_read(const char *path, struct mp_buf *buf);

#endif
