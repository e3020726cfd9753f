/* cli/load_look.c - see load_look.h. */
#include "cli/load_look.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "kafka/source_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How files begin that are no lines, and what makes lines of them. */
static const char *unpacker(const char *begin, size_t size)
{
    static const struct {
        const char *begin, *unpacker;
    } table[] = {
        {"\x1f\x8b", "zcat"},
        {"\x28\xb5\x2f\xfd", "zstdcat"},
        {"BZh", "bzcat"},
        {"\xfd"
         "7zXZ",
         "xzcat"},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (size >= strlen(table[i].begin) &&
            memcmp(begin, table[i].begin, strlen(table[i].begin)) == 0)
            return table[i].unpacker;
    return NULL;
}

enum mp_code mp_load_look(const char *path, struct mp_err *err)
{
    struct mp_buf identity = MP_BUF_INIT(8192);
    const char *how = NULL;
    char begin[8];
    struct stat info;
    ssize_t size;
    int fd;
    enum mp_code code = MP_OK;

    if (strcmp(path, "-") == 0)
        return MP_OK;
    if (stat(path, &info) != 0)
        return mp_err_errno(err, MP_BAD_CONFIG, "open", path);
    if (!S_ISREG(info.st_mode))
        return mp_err_set(err, MP_BAD_CONFIG,
                          "%s is no regular file, in which a place could be found again: give a "
                          "pipe as standard input, `millpond load --name NAME - < %s`",
                          path, path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    size = fd < 0 ? -1 : read(fd, begin, sizeof(begin));
    if (size < 0)
        code = mp_err_errno(err, MP_BAD_CONFIG, "read", path);
    else if ((how = unpacker(begin, (size_t)size)))
        code = mp_err_set(err, MP_BAD_CONFIG, "%s is packed: `%s %s | millpond load --name NAME -`",
                          path, how, path);
    if (fd >= 0)
        close(fd);
    if (!code)
        code = mp_source_file_identity(path, err, &identity);
    if (!code && !mp_utf8_is(mp_buf_str(&identity)))
        code = mp_err_set(err, MP_BAD_CONFIG, "%s: a path is UTF-8 text, to be kept in the lake",
                          path);
    mp_buf_fini(&identity);
    return code;
}
