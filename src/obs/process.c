/* obs/process.c - what the kernel knows of this process, under the names the Prometheus clients
 * agreed on. After  proc(5), /proc/self/stat; Prometheus documentation, "Writing client
 * libraries", process metrics. */
#include "obs/metric_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static void print_one(struct mp_buf *ret, const char *name, const char *type, const char *help,
                      double value)
{
    mp_buf_printf(ret, "# HELP %s %s\n# TYPE %s %s\n%s ", name, help, name, type, name);
    mp_metric_print_number(ret, value);
    mp_buf_add_byte(ret, '\n');
}

/* Reads the beginning of a small file as text. */
static bool read_text(const char *path, char *ret, size_t ret_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size;

    if (fd < 0)
        return false;
    size = read(fd, ret, ret_size - 1);
    close(fd);
    if (size <= 0)
        return false;
    ret[size] = 0;
    return true;
}

/* Unix time at which the machine came up, 0 where it is not told. */
static double boot_time_s(void)
{
    FILE *file = fopen("/proc/stat", "re");
    char line[256];
    double boot = 0;

    if (!file)
        return 0;
    while (boot == 0 && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "btime ", 6) == 0)
            boot = strtod(line + 6, NULL);
    }
    fclose(file);
    return boot;
}

static void print_stat(struct mp_buf *ret)
{
    char text[1024], *after;
    unsigned long user, system, virtual_bytes;
    unsigned long long started;
    long resident_pages;
    double ticks = (double)sysconf(_SC_CLK_TCK), boot = boot_time_s();

    if (!read_text("/proc/self/stat", text, sizeof(text)))
        return;
    after = strrchr(text, ')'); /* the program's name may hold blanks */
    if (!after || sscanf(after + 1,
                         " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d "
                         "%*d %*d %llu %lu %ld",
                         &user, &system, &started, &virtual_bytes, &resident_pages) != 5)
        return;
    print_one(ret, "process_virtual_memory_bytes", "gauge", "Virtual memory in bytes",
              (double)virtual_bytes);
    print_one(ret, "process_resident_memory_bytes", "gauge", "Resident memory in bytes",
              (double)resident_pages * (double)sysconf(_SC_PAGESIZE));
    if (boot > 0)
        print_one(ret, "process_start_time_seconds", "gauge", "Start of the process, Unix time",
                  boot + (double)started / ticks);
    print_one(ret, "process_cpu_seconds_total", "counter", "User and system CPU time in seconds",
              (double)(user + system) / ticks);
}

static void print_fds(struct mp_buf *ret)
{
    DIR *directory = opendir("/proc/self/fd");
    struct rlimit limit;
    double count = -3; /* ".", ".." and the directory's own descriptor */

    if (directory) {
        while (readdir(directory))
            count++;
        closedir(directory);
        print_one(ret, "process_open_fds", "gauge", "Open file descriptors", count);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        print_one(ret, "process_max_fds", "gauge", "Most file descriptors that may be open",
                  (double)limit.rlim_cur);
}

void mp_metric_print_process(struct mp_buf *ret)
{
    print_stat(ret);
    print_fds(ret);
}
