/* lake/hoglake/written.c - what the table and the newest commits say of offsets that were lost.
 *
 * Rows are there when a file is. Each commit's message names the ranges it was made of (key.c), so
 * the newest messages tell how far each partition had come: for people, not to go on from.
 *
 * After  the millpond sheet, 11.8 (the message); the hoglake sheet, 12.5 and 12.6.
 */
#include "lake/hoglake/priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SNAPSHOTS_MAX = 1000, PARTITIONS_MAX = 4096 };

static const struct mp_str none = {NULL, 0};

struct told {
    int32_t partitions[PARTITIONS_MAX];
    uint32_t count;
    void (*visit)(void *self, int32_t partition, int64_t last);
    void *self;
};

static void tell(struct told *told, int32_t partition, int64_t last)
{
    for (uint32_t i = 0; i < told->count; i++)
        if (told->partitions[i] == partition)
            return; /* a newer commit has named it */
    if (told->count == PARTITIONS_MAX)
        return;
    told->partitions[told->count++] = partition;
    told->visit(told->self, partition, last);
}

/* "p3:0-41 p7:5-9 (2)": what stands behind the topic in its line. */
static void read_ranges(const char *text, struct told *told)
{
    int32_t partition;
    int64_t first, last;
    int size;

    while (sscanf(text, " p%" SCNd32 ":%" SCNd64 "-%" SCNd64 "%n", &partition, &first, &last,
                  &size) == 3) {
        tell(told, partition, last);
        text += size;
    }
}

static void read_message(struct mp_hoglake *lake, const char *message, struct told *told)
{
    const char *line = mp_arena_printf(&lake->scratch, "\noffsets %.*s", MP_STR_ARG(lake->topic));
    const char *at = strstr(message, line);

    if (at && at[strlen(line)] == ' ')
        read_ranges(at + strlen(line), told);
}

static enum mp_code get(struct mp_hoglake *lake, struct mp_err *err)
{
    enum mp_code code = mp_hog_ask(lake, "GET", none, err);

    return !code && !mp_hog_fine(&lake->answer) ? mp_hog_refusal(lake, err) : code;
}

/* The array called name in the last answer, or that itself; else *ret_code is set. */
static const json_t *array_of(struct mp_hoglake *lake, const char *name, struct mp_err *err,
                              enum mp_code *ret_code)
{
    struct mp_wire_reader reader = {.arena = &lake->scratch, .answer = true};
    const json_t *array = name ? json_object_get(lake->answer.json, name) : lake->answer.json;

    if (json_is_array(array))
        return array;
    mp_wire_fault(&reader, "%s must be an array", name ? name : "a listing");
    *ret_code = mp_hog_malformed(lake, &reader, err);
    return NULL;
}

static enum mp_code newest_snapshots(struct mp_hoglake *lake, struct mp_err *err)
{
    struct mp_wire_reader reader = {.arena = &lake->scratch, .answer = true};
    char path[100];
    int64_t head = 0;
    enum mp_code code;

    mp_hog_url(lake, MP_HOG_CATALOG, none, "");
    code = get(lake, err);
    if (code)
        return code;
    mp_wire_int(&reader, lake->answer.json, "head_snapshot_id", true, &head, NULL);
    if (reader.failed)
        return mp_hog_malformed(lake, &reader, err);
    snprintf(path, sizeof(path), "/snapshots?before=%lld&limit=%d",
             (long long)(head < INT64_MAX ? head + 1 : head), SNAPSHOTS_MAX);
    mp_hog_url(lake, MP_HOG_CATALOG, none, path);
    return get(lake, err);
}

enum mp_code mp_hog_written(struct mp_lake *self, struct mp_str name,
                            void (*visit)(void *self, int32_t partition, int64_t last),
                            void *visit_self, struct mp_err *err, bool *ret_rows)
{
    struct mp_hoglake *lake = (struct mp_hoglake *)self;
    struct told *told;
    const json_t *list, *snapshot;
    size_t i;
    enum mp_code code;

    mp_arena_reset(&lake->scratch);
    mp_hog_url(lake, MP_HOG_TABLE, name, "/files?limit=1");
    code = mp_hog_ask(lake, "GET", none, err);
    if (!code && mp_hog_says_absent(&lake->answer))
        return mp_hog_absent(lake, err);
    if (!code && !mp_hog_fine(&lake->answer))
        code = mp_hog_refusal(lake, err);
    list = code ? NULL : array_of(lake, NULL, err, &code);
    if (code)
        return code;
    *ret_rows = json_array_size(list) > 0;
    if (!*ret_rows)
        return MP_OK;
    code = newest_snapshots(lake, err);
    list = code ? NULL : array_of(lake, "snapshots", err, &code);
    if (code)
        return code;
    told = mp_arena_take(&lake->scratch, sizeof(*told));
    told->visit = visit;
    told->self = visit_self;
    json_array_foreach(list, i, snapshot)
    {
        const char *message = json_string_value(json_object_get(snapshot, "message"));

        if (message)
            read_message(lake, message, told);
    }
    return MP_OK;
}
