/* cli/load.c - `millpond load`: files of JSON lines through the same pipeline, each line once.
 *
 * A file's place in the book of record is named by its canonical path and the hash of its first
 * bytes (kafka/source_file.h); its offsets are byte positions. So a second run goes on where the
 * first ended, and a file that is not the one it was is noticed.
 *
 * A hoglake catalog keeps no offsets: there the book of record is a state file
 * (kafka/file_state.h), which only one load uses at a time. A file that is loaded once more gets
 * another name in it, since the same lines under the same name are published once.
 *
 * A file that is still being written may end within a line: that is left for the next run.
 */
#include "cli/cli.h"

#include "base/utf8.h"
#include "cli/engine.h"
#include "cli/load_look.h"
#include "json/json.h"
#include "kafka/source_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_BYTES_MAX = 1024 };

struct load {
    const struct mp_config *config;
    const char *path;
    struct mp_str name; /* of standard input; empty: none */
    const char *state_path;
    struct mp_file_state *state; /* NULL: the lake keeps the offsets */
    struct mp_str topic;         /* name of what is being loaded */
    bool again;
    struct mp_env env;
    uint64_t began_us, size_bytes; /* size 0: not known */
    size_t left_bytes;             /* of a last line that is not whole */
    bool terminal;
};

/* A line without an end is one where it is a record: what is cut short is none. */
static bool is_whole(void *self, struct mp_str line)
{
    struct load *load = self;
    struct mp_json *json = mp_json_new();
    struct mp_json_record record;
    size_t at;
    bool whole = mp_json_scan(json, line, &record, &at) == MP_JSON_OK;

    mp_json_free(json);
    load->left_bytes = whole ? 0 : line.size;
    return whole;
}

static enum mp_code open_source(void *self, struct mp_engine *engine, struct mp_err *err,
                                struct mp_source **ret)
{
    struct load *load = self;
    struct mp_source_file_options options = {
        .path = load->path, .state = load->state, .name = load->topic, .self = load};

    (void)engine;
    if (strcmp(load->path, "-") != 0 || load->name.size)
        options.whole = is_whole; /* the rest can be read by another run */
    return mp_source_file_open(&options, err, ret);
}

static void progress(void *self, const struct mp_pipeline_counts *counts)
{
    struct load *load = self;
    double seconds = (double)(mp_now_mono_us(&load->env) - load->began_us) / 1e6 + 1e-6;
    double done = (double)counts->json_bytes;

    if (!load->terminal)
        return;
    fprintf(stderr, "\r%s: %" PRIu64 " rows, %.1f MB/s", load->path, counts->records,
            done / 1e6 / seconds);
    if (load->size_bytes && done > 0)
        fprintf(stderr, ", %.0f %%, %.0f s left ", 100 * done / (double)load->size_bytes,
                seconds * ((double)load->size_bytes - done) / done);
    fflush(stderr);
}

struct known {
    struct load *load;
    struct mp_str prefix; /* canonical path and '#' */
    struct mp_buf *ret;
    bool found, other;
};

/* Is a recorded name that of the file as it is now? */
static void visit_topic(void *self, struct mp_str topic)
{
    struct known *known = self;
    struct mp_str identity = topic;
    const char *more;
    struct mp_err err;
    bool same = false;

    if (!mp_str_starts(topic, known->prefix))
        return;
    more = memchr(topic.data + known->prefix.size, '+', topic.size - known->prefix.size);
    if (more)
        identity.size = (size_t)(more - topic.data);
    if (!mp_source_file_is(known->load->path, identity, &err, &same) && same) {
        if (known->found && mp_str_cmp(topic, mp_buf_str(known->ret)) < 0)
            return; /* it was loaded once more since */
        known->found = true;
        mp_buf_clear(known->ret);
        mp_buf_add_str(known->ret, topic);
    } else {
        known->other = true;
    }
}

/* The newest name of a standard input. */
static void visit_input(void *self, struct mp_str topic)
{
    struct known *known = self;
    size_t size = known->prefix.size;

    if (mp_str_starts(topic, known->prefix) && (topic.size == size || topic.data[size] == '+') &&
        mp_str_cmp(topic, mp_buf_str(known->ret)) > 0) {
        mp_buf_clear(known->ret);
        mp_buf_add_str(known->ret, topic);
    }
}

static void name_input(const struct load *load, struct mp_buf *ret)
{
    struct mp_buf base = MP_BUF_INIT(8192);
    struct known known = {.ret = ret};

    mp_buf_printf(&base, "stdin:%.*s", MP_STR_ARG(load->name));
    mp_buf_add_str(ret, mp_buf_str(&base));
    known.prefix = mp_buf_str(&base);
    if (load->state)
        mp_file_state_visit(load->state, visit_input, &known);
    mp_buf_fini(&base);
}

/* The name under which the file stands in the book of record, or will. */
static enum mp_code name_file(struct load *load, struct mp_str group, struct mp_buf *ret,
                              struct mp_err *err)
{
    struct known known = {.load = load, .ret = ret};
    struct mp_lake *lake = NULL;
    const char *hash;
    enum mp_code code;

    code = mp_source_file_identity(load->path, err, ret);
    if (code)
        return code;
    hash = memrchr(ret->data, '#', ret->size);
    known.prefix = mp_str_n(ret->data, (size_t)(hash - ret->data) + 1);
    if (!load->state)
        code = mp_open_lake(load->config, group, MP_STR(""), true, &load->env, err, &lake);
    if (code)
        return code == MP_NOT_FOUND ? MP_OK : code; /* no lake yet, which knows no file */
    {
        /* visit_topic writes into ret, which the prefix points into */
        char prefix[8192];

        if (known.prefix.size > sizeof(prefix))
            return mp_err_set(err, MP_BAD_CONFIG, "%s: the path is too long", load->path);
        memcpy(prefix, known.prefix.data, known.prefix.size);
        known.prefix.data = prefix;
        if (load->state)
            mp_file_state_visit(load->state, visit_topic, &known);
        else
            code = lake->driver->topics(lake, visit_topic, &known, err);
    }
    mp_lake_close(lake);
    if (!code && !known.found && known.other && !load->again)
        return mp_err_set(err, MP_BAD_CONFIG,
                          "%s is shorter than or differs from the file of that name that was "
                          "loaded before; --again loads it as a new one",
                          load->path);
    return code;
}

/* Behind the name it had: later ones are greater. */
static void name_anew(const struct load *load, struct mp_buf *ret)
{
    const size_t more = MP_UUID_TEXT; /* '+' and a UUID */
    char uuid[MP_UUID_TEXT];

    if (ret->size > more && ret->data[ret->size - more] == '+')
        ret->size -= more;
    mp_uuid7(&load->env, uuid);
    mp_buf_printf(ret, "+%s", uuid);
}

static enum mp_code load_one(struct load *load, struct mp_err *err)
{
    struct mp_engine_options options = {
        .config = load->config,
        .open_source = open_source,
        .self = load,
        .until_end = true,
        .from_start = load->again,
        .quiet = true,
        .progress = progress,
    };
    struct mp_buf group = MP_BUF_INIT(4096), topic = MP_BUF_INIT(8192);
    struct mp_engine *engine = NULL;
    struct mp_pipeline_counts counts;
    struct stat info;
    double seconds;
    enum mp_code code = MP_OK;

    mp_buf_printf(&group, "millpond-load-%.*s", MP_STR_ARG(load->config->table));
    if (strcmp(load->path, "-") != 0) {
        code = name_file(load, mp_buf_str(&group), &topic, err);
        if (!code && stat(load->path, &info) == 0)
            load->size_bytes = (uint64_t)info.st_size;
    } else if (load->name.size) {
        name_input(load, &topic);
    } else {
        char uuid[MP_UUID_TEXT];

        mp_uuid7(&load->env, uuid);
        mp_buf_printf(&topic, "stdin:%s", uuid);
    }
    if (code)
        goto out;
    if (load->again && load->state)
        name_anew(load, &topic);
    load->topic = mp_buf_str(&topic);
    load->left_bytes = 0;
    options.group = mp_buf_str(&group);
    options.topic = load->topic;
    load->began_us = mp_now_mono_us(&load->env);
    code = mp_engine_open(&options, err, &engine);
    if (code)
        goto out;
    code = mp_engine_run(engine, err);
    counts = mp_engine_counts(engine);
    seconds = (double)(mp_now_mono_us(&load->env) - load->began_us) / 1e6;
    if (load->terminal)
        fputc('\r', stderr);
    fprintf(stderr,
            "%s: %" PRIu64 " rows of %" PRIu64 " lines in %.1f s (%.1f MB/s), %" PRIu64
            " files of %.1f MB, %" PRIu64 " quarantined, %" PRIu64 " values rescued\n",
            load->path, counts.rows, counts.records, seconds,
            (double)counts.json_bytes / 1e6 / seconds, counts.files,
            (double)counts.parquet_bytes / 1e6, counts.quarantined, counts.rescued);
    if (load->left_bytes && !code)
        fprintf(stderr,
                "%s: the last line has no end and is no JSON object yet: its %zu bytes are left "
                "for the next run\n",
                load->path, load->left_bytes);
out:
    mp_engine_close(engine);
    mp_buf_fini(&group);
    mp_buf_fini(&topic);
    return code;
}

/* Everything that can be wrong with the arguments, before anything is opened. */
static enum mp_code look_at_all(const struct load *load, char *const *paths, int count,
                                struct mp_err *err)
{
    bool standard = false;
    enum mp_code code = MP_OK;

    for (int i = 0; i < count && !code; i++) {
        standard |= strcmp(paths[i], "-") == 0;
        code = mp_load_look(paths[i], err);
    }
    if (!code && load->name.size && !standard)
        code = mp_err_set(err, MP_BAD_CONFIG, "--name %.*s is for standard input, which is no file",
                          MP_STR_ARG(load->name));
    if (!code && (load->name.size > NAME_BYTES_MAX || !mp_utf8_is(load->name)))
        code = mp_err_set(err, MP_BAD_CONFIG, "--name is UTF-8 text of at most %d bytes",
                          NAME_BYTES_MAX);
    return code;
}

/* Options come before files, "--" ends them. */
static int parse(const struct mp_cli_args *args, struct load *load, int *ret_first)
{
    int at = 0;

    for (; at < args->count && args->values[at][0] == '-' && args->values[at][1]; at++) {
        if (strcmp(args->values[at], "--") == 0) {
            at++;
            break;
        }
        if (strcmp(args->values[at], "--again") == 0)
            load->again = true;
        else if (strcmp(args->values[at], "--name") == 0 && at + 1 < args->count)
            load->name = mp_str_c(args->values[++at]);
        else if (strcmp(args->values[at], "--state") == 0 && at + 1 < args->count)
            load->state_path = args->values[++at];
        else
            return mp_cli_bad_argument("load", args->values[at]);
    }
    *ret_first = at;
    if (at == args->count) {
        fprintf(stderr, "millpond load: which file? see `millpond load --help`\n");
        return MP_EXIT_CONFIG;
    }
    return MP_EXIT_OK;
}

/* The place for offsets that the lake does not keep. */
static enum mp_code open_state(struct load *load, struct mp_err *err)
{
    bool wanted = load->config->destination == MP_DESTINATION_HOGLAKE;

    if (wanted && !load->state_path)
        return mp_err_set(err, MP_BAD_CONFIG,
                          "a hoglake catalog keeps no offsets: --state FILE says where load keeps "
                          "them, so that a second run adds nothing");
    if (!wanted && load->state_path)
        return mp_err_set(err, MP_BAD_CONFIG,
                          "--state %s: the lake keeps the offsets, a state is for hoglake only",
                          load->state_path);
    return wanted ? mp_file_state_open(load->state_path, err, &load->state) : MP_OK;
}

int mp_cli_load(const struct mp_cli_args *args)
{
    struct mp_config_options without_kafka = {.without_kafka = true};
    struct load load = {.env = mp_env_real(), .terminal = isatty(STDERR_FILENO)};
    struct mp_arena arena;
    struct mp_err err = {0};
    int first = 0, status = parse(args, &load, &first);
    enum mp_code code;

    if (status)
        return status;
    mp_arena_init(&arena, 0);
    code = mp_config_load(&arena, args->environment, &without_kafka, &err, &load.config);
    if (!code)
        code = look_at_all(&load, args->values + first, args->count - first, &err);
    if (!code)
        code = open_state(&load, &err);
    for (int i = first; i < args->count && !code; i++) {
        load.path = args->values[i];
        code = load_one(&load, &err);
    }
    if (code)
        status = mp_cli_fault(&err);
    mp_file_state_close(load.state);
    mp_arena_fini(&arena);
    return status;
}
