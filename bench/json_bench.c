/* bench/json_bench.c - how fast a scanner goes through an NDJSON file.
 *
 *     json-bench FILE [ROUNDS [avx512|avx2|neon|portable]]
 *
 * Each line is one record; the file is read first, so only the scan is timed, in processor time,
 * which a busy machine stretches less than the clock. Prints the median and the best round of each
 * scanner.
 */
#include "base/mem.h"
#include "json/json.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct file {
    char *data;
    size_t size;
    struct mp_str *lines;
    size_t count, bytes; /* lines, and what is in them */
};

static double cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Reads the file and finds its lines. */
static bool load(const char *path, struct file *ret)
{
    int fd = open(path, O_RDONLY);
    struct stat info;
    size_t used = 0, at = 0, most = 1024;

    if (fd < 0 || fstat(fd, &info) != 0)
        return false;
    ret->size = (size_t)info.st_size;
    ret->data = mp_alloc(ret->size);
    while (used < ret->size) {
        ssize_t got = read(fd, ret->data + used, ret->size - used);

        if (got <= 0)
            return false;
        used += (size_t)got;
    }
    close(fd);
    ret->lines = mp_alloc_array(most, sizeof(*ret->lines));
    while (at < ret->size) {
        const char *end = memchr(ret->data + at, '\n', ret->size - at);
        size_t length = end ? (size_t)(end - ret->data) - at : ret->size - at;

        if (ret->count == most) {
            most *= 2;
            ret->lines = mp_realloc(ret->lines, most * sizeof(*ret->lines));
        }
        ret->lines[ret->count++] = mp_str_n(ret->data + at, length);
        ret->bytes += length;
        at += length + 1;
    }
    return ret->count > 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void run(struct mp_json *json, const struct file *file, unsigned rounds)
{
    double *took = mp_alloc_array(rounds, sizeof(*took));
    size_t fields = 0, refused = 0;

    for (unsigned round = 0; round < rounds; round++) {
        double began = cpu_s();

        for (size_t line = 0; line < file->count; line++) {
            struct mp_json_record record = {0};
            size_t at;

            if (mp_json_scan(json, file->lines[line], &record, &at))
                refused++;
            fields += record.count;
        }
        took[round] = cpu_s() - began;
    }
    qsort(took, rounds, sizeof(*took), compare);
    printf("%-8s  median %.2f GB/s %.0f ns/record  best %.2f GB/s %.0f ns/record  "
           "(%zu records of %.0f bytes, %.1f fields, %zu refused)\n",
           mp_json_isa(json), (double)file->bytes / took[rounds / 2] / 1e9,
           took[rounds / 2] * 1e9 / (double)file->count, (double)file->bytes / took[0] / 1e9,
           took[0] * 1e9 / (double)file->count, file->count,
           (double)file->bytes / (double)file->count, (double)fields / rounds / (double)file->count,
           refused / rounds);
    mp_free(took);
    mp_json_free(json);
}

int main(int argc, char **argv)
{
    struct file file = {0};
    struct mp_json *json;
    unsigned nth = 0;
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 11;

    if (argc < 2 || rounds == 0) {
        fprintf(stderr, "usage: json-bench FILE [ROUNDS [avx512|avx2|neon|portable]]\n");
        return 2;
    }
    if (!load(argv[1], &file)) {
        fprintf(stderr, "%s: cannot be read, or is empty\n", argv[1]);
        return 1;
    }
    while ((json = mp_json_new_nth(nth++)))
        if (argc < 4 || strcmp(argv[3], mp_json_isa(json)) == 0)
            run(json, &file, rounds);
        else
            mp_json_free(json);
    mp_free(file.lines);
    mp_free(file.data);
    return 0;
}
