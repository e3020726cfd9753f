/* lake/hoglake/append.c - a commit sent, and sent again.
 *
 * The request is printed once and held until its outcome is known. What the server does with its
 * key decides what an answer means:
 *
 *     2xx                              done; the key's receipt answers repeats
 *     none, 408, 429, 5xx              nothing is known: held, and sent again byte for byte
 *     422 that the key was reused      these ranges had been committed before, with other files;
 *                                      true only while the table is the one the key was made for
 *     409 ddl_since_read_snapshot      something altered the table: read it again; where the files
 *     410                              still fit they go into a new request, else their rows are
 *                                      made again
 *     409 otherwise                    the rows are made again
 *     422 otherwise                    permanent
 *     another 3xx or 4xx, or one that  held; permanent, but for 404 and 409, which may pass
 *     is not in the catalog's words
 *
 * An answered refusal wrote nothing and leaves the key free, so a new request may take it.
 *
 * After  the millpond sheet, 11.6 to 11.9; the hoglake sheet, 14 to 16.
 */
#include "lake/hoglake/priv.h"

#include <assert.h>
#include <stdio.h>

#define BODY_BYTES_MAX   ((size_t)1 << 30)
#define OBJECT_BYTES_MAX ((size_t)1 << 20)
#define ROUNDS_MAX       8 /* of a table that is altered again and again */

static const struct mp_str none = {NULL, 0};

/* The object key of the first file; data NULL: there is no file. */
static struct mp_str first_object(const struct mp_lake_commit *commit)
{
    for (uint32_t i = 0; i < commit->append_count; i++)
        if (commit->appends[i].file_count)
            return commit->appends[i].files[0].key;
    return none;
}

static void release(struct mp_hoglake *lake)
{
    lake->held.key[0] = 0;
    lake->held.sent = 0;
    mp_buf_clear(&lake->held.body);
    mp_buf_clear(&lake->held.object);
}

/* Whether the request that is held is this commit's: the same ranges made again are other files. */
static bool holds(const struct mp_hoglake *lake, const struct mp_lake_commit *commit)
{
    return mp_str_eq(mp_str_c(lake->held.key), commit->key) &&
           mp_str_eq(mp_buf_str(&lake->held.object), first_object(commit));
}

/* The snapshot at which the files are known to fit their table. */
static int64_t fits_at(struct mp_hoglake *lake, const struct mp_lake_table *made)
{
    const struct mp_hog_table *kept = mp_hog_table_kept(lake, made->name);

    return kept && kept->view.snapshot > made->snapshot && mp_hog_layout_fits(made, &kept->view)
               ? kept->view.snapshot
               : made->snapshot;
}

static void hold(struct mp_hoglake *lake, const struct mp_lake_commit *commit)
{
    struct mp_buf message = MP_BUF_INIT(1 << 20);
    struct mp_hog_body body = {
        .commit = commit,
        .namespace_name = lake->namespace_name,
        .data_path = lake->data_path,
        .author = lake->author,
        .read_snapshot = INT64_MAX,
    };

    for (uint32_t i = 0; i < commit->append_count; i++) {
        int64_t snapshot = fits_at(lake, commit->appends[i].table);

        if (commit->appends[i].file_count && snapshot < body.read_snapshot)
            body.read_snapshot = snapshot; /* one for all tables: the oldest covers them */
    }
    mp_hog_message(commit, lake->topic, lake->version, commit->appends[0].table->uuid, &message);
    body.message = mp_buf_str(&message);
    release(lake);
    lake->held.body.max = BODY_BYTES_MAX;
    lake->held.object.max = OBJECT_BYTES_MAX;
    mp_buf_add_str(&lake->held.object, first_object(commit));
    mp_hog_body_print(&body, &lake->held.body);
    assert(commit->key.size == MP_LAKE_KEY_SIZE - 1);
    snprintf(lake->held.key, sizeof(lake->held.key), "%.*s", MP_STR_ARG(commit->key));
    mp_buf_fini(&message);
}

static enum mp_code send(struct mp_hoglake *lake, struct mp_err *err)
{
    enum mp_code code;

    mp_hog_url(lake, MP_HOG_CATALOG, none, "/commit/prepared");
    code = mp_hog_ask(lake, "POST", mp_buf_str(&lake->held.body), err);
    lake->held.sent += 1 + lake->call.resent;
    return code;
}

static bool has_words(struct mp_str text, struct mp_str part)
{
    for (size_t at = 0; at + part.size <= text.size; at++)
        if (mp_str_eq_fold(mp_str_n(text.data + at, part.size), part))
            return true;
    return false;
}

static bool key_reused(const struct mp_hog_answer *answer)
{
    struct mp_str words = MP_STR("idempotency_key reused");

    return answer->status == 422 &&
           (has_words(answer->error.error, words) || has_words(answer->error.detail, words));
}

static bool answered(const struct mp_hog_answer *answer, const char *error)
{
    return mp_str_eq(answer->error.error, mp_str_c(error));
}

/* No table will name these files; their rows are made again. err says why already. */
static enum mp_code orphan(struct mp_hoglake *lake, const char *reason, struct mp_err *err,
                           struct mp_lake_result *ret)
{
    release(lake);
    ret->orphaned = reason;
    if (err) {
        err->code = MP_CHANGED;
        err->retriable = false;
    }
    return MP_CHANGED;
}

/* Another request had these ranges: true of the table that the key was made for. */
static enum mp_code already(struct mp_hoglake *lake, const struct mp_lake_commit *commit,
                            struct mp_err *err, struct mp_lake_result *ret)
{
    const struct mp_lake_table *made = commit->appends[0].table;
    struct mp_hog_table *now = NULL;
    enum mp_code code = mp_hog_table_get(lake, made->name, err, &now);
    bool same = !code && mp_str_eq(now->view.uuid, made->uuid);

    mp_hog_table_free(now);
    if (code && code != MP_NOT_FOUND)
        return code; /* held: asked again, it answers the same */
    if (!same) {
        mp_err_set(err, MP_CHANGED,
                   "key %s was used for table %.*s before it was made anew: what it committed went "
                   "with the old table",
                   lake->held.key, MP_STR_ARG(made->name));
        return orphan(lake, "table_recreated", err, ret);
    }
    release(lake);
    ret->already_published = true;
    ret->orphaned = "already_published";
    return MP_OK;
}

/* After an alter by somebody else, or when read_snapshot is no longer kept: do the files fit the
 * tables as they are? MP_OK: they do, and go into a new request. */
static enum mp_code refit(struct mp_hoglake *lake, const struct mp_lake_commit *commit,
                          const char *reason, struct mp_err *err, struct mp_lake_result *ret)
{
    release(lake);
    for (uint32_t i = 0; i < commit->append_count; i++) {
        const struct mp_lake_table *made = commit->appends[i].table;
        struct mp_hog_table *now = NULL;
        struct mp_err other;
        enum mp_code code;

        if (!commit->appends[i].file_count)
            continue;
        code = mp_hog_table_get(lake, made->name, &other, &now);
        if (code && code != MP_NOT_FOUND) {
            if (err)
                *err = other;
            return code;
        }
        if (code || !mp_hog_layout_fits(made, &now->view)) {
            mp_hog_table_free(now);
            return orphan(lake, reason, err, ret);
        }
        mp_hog_table_keep_fresher(lake, &now);
    }
    return MP_OK;
}

/* What an answer that is not fine comes to. *ret_again: the files go into a new request. */
static enum mp_code settle(struct mp_hoglake *lake, const struct mp_lake_commit *commit,
                           struct mp_err *err, struct mp_lake_result *ret, bool *ret_again)
{
    const struct mp_hog_answer *answer = &lake->answer;
    unsigned status = answer->status;
    bool ddl = status == 409 && answered(answer, "ddl_since_read_snapshot");
    bool recreated = status == 409 && answered(answer, "table_recreated");
    bool reused = key_reused(answer);
    enum mp_code code = mp_hog_refusal(lake, err);

    if (mp_hog_passing(status))
        return code;
    mp_hog_distrust(lake);         /* G3 */
    if (!mp_hog_own_words(answer)) /* nobody knows what the catalog did: G2 */
        return code;
    if (reused)
        return already(lake, commit, err, ret);
    if (ddl || status == 410) {
        code = refit(lake, commit, ddl ? "ddl_since_read_snapshot" : "read_snapshot_expired", err,
                     ret);
        *ret_again = !code;
        return code;
    }
    if (status == 409)
        return orphan(lake, recreated ? "table_recreated" : "commit_refused", err, ret);
    if (status == 422) {
        release(lake);
        ret->orphaned = "commit_refused";
    }
    return code;
}

static enum mp_code done(struct mp_hoglake *lake, struct mp_err *err, struct mp_lake_result *ret)
{
    struct mp_wire_reader reader = {.arena = &lake->scratch, .answer = true};
    struct mp_wire_commit_result result;

    mp_wire_commit_result_read(&reader, lake->answer.json, &result);
    if (reader.failed)
        return mp_hog_malformed(lake, &reader, err);
    ret->snapshot = result.snapshot_id;
    ret->replayed = lake->held.sent > 1;
    release(lake);
    return MP_OK;
}

enum mp_code mp_hog_append(struct mp_lake *self, const struct mp_lake_commit *commit,
                           struct mp_err *err, struct mp_lake_result *ret)
{
    struct mp_hoglake *lake = (struct mp_hoglake *)self;
    bool again = true;
    enum mp_code code = MP_OK;

    *ret = (struct mp_lake_result){.snapshot = -1};
    if (!first_object(commit).data)
        return MP_OK;
    mp_arena_reset(&lake->scratch);
    for (unsigned round = 0; round < ROUNDS_MAX && again; round++) {
        again = false;
        if (!holds(lake, commit))
            hold(lake, commit); /* another one that was held was never settled, and is given up */
        code = send(lake, err);
        if (code)
            break;
        code = mp_hog_fine(&lake->answer) ? done(lake, err, ret)
                                          : settle(lake, commit, err, ret, &again);
    }
    if (again)
        code = mp_err_set(err, MP_CONFLICT, "the table does not come to rest: others alter it");
    if (code)
        mp_err_add(err, "commit %.*s", MP_STR_ARG(commit->key));
    return code;
}

/* A receipt, and that of the key: whoever asks moves its offsets by it. */
static enum mp_code read_receipt(struct mp_hoglake *lake, struct mp_str key, struct mp_err *err)
{
    struct mp_wire_reader reader = {.arena = &lake->scratch, .answer = true};
    struct mp_str operation = none;

    mp_wire_receipt_read(&reader, lake->answer.json, &operation);
    if (!reader.failed && !mp_str_eq_fold(operation, key))
        mp_wire_fault(&reader, "it is the receipt of another key");
    return reader.failed ? mp_hog_malformed(lake, &reader, err) : MP_OK;
}

enum mp_code mp_hog_published(struct mp_lake *self, struct mp_str key, struct mp_err *err,
                              bool *ret)
{
    struct mp_hoglake *lake = (struct mp_hoglake *)self;
    char path[64 + MP_LAKE_KEY_SIZE];
    enum mp_code code;

    snprintf(path, sizeof(path), "/commit/receipts/%.*s", MP_LAKE_KEY_SIZE - 1, key.data);
    mp_hog_url(lake, MP_HOG_CATALOG, none, path);
    code = mp_hog_ask(lake, "GET", none, err);
    if (!code && mp_hog_fine(&lake->answer))
        code = read_receipt(lake, key, err);
    else if (!code && !mp_hog_says_absent(&lake->answer))
        code = mp_hog_refusal(lake, err);
    if (!code)
        *ret = mp_hog_fine(&lake->answer);
    return code;
}
