#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

bool mp_file_read(const char *path, struct mp_buf *buf)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = 1;

    if (fd < 0)
        return false;
    while (got != 0 && buf->size < buf->max) {
        size_t room = buf->max - buf->size < 4096 ? buf->max - buf->size : 4096;

        got = read(fd, mp_buf_reserve(buf, room), room);
        if (got < 0 && errno != EINTR)
            break;
        buf->size += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    return got >= 0;
}
