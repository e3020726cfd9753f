/* pipeline/record.c - the fate of one record: a row, skipped, or quarantined. */
#include "pipeline/pipeline_priv.h"

#include <inttypes.h>
#include <stdio.h>

enum { SAMPLE_BYTES = 200 };

static const char logger[] = "millpond.records";

static void log_bad(struct mp_pipeline *p, const struct mp_record *record, const char *reason,
                    size_t at)
{
    char sample[SAMPLE_BYTES * 4 + 1], number[4][24];
    uint64_t dropped;
    struct mp_str text = mp_log_sample(record->value, SAMPLE_BYTES, sample, sizeof(sample));
    struct mp_log_field fields[] = {
        {"topic", false, p->options.topic},
        {"partition", true, mp_str_n(number[0], 0)},
        {"offset", true, mp_str_n(number[1], 0)},
        {"reason", false, mp_str_c(reason)},
        {"at_byte", true, mp_str_n(number[2], 0)},
        {"not_logged", true, mp_str_n(number[3], 0)},
        {"sample", false, text},
    };

    if (!mp_log_limit_pass(&p->bad_records, mp_now_mono_us(p->world.env), &dropped))
        return;
    fields[1].text.size = (size_t)snprintf(number[0], 24, "%" PRId32, record->partition);
    fields[2].text.size = (size_t)snprintf(number[1], 24, "%" PRId64, record->offset);
    fields[4].text.size = (size_t)snprintf(number[2], 24, "%zu", at);
    fields[5].text.size = (size_t)snprintf(number[3], 24, "%" PRIu64, dropped);
    mp_log_with(
        p->world.log, MP_LOG_WARN, logger, fields, sizeof(fields) / sizeof(*fields), "%s: %.*s",
        strcmp(reason, "not_object") ? "Skipping malformed JSON" : "Skipping non-dict JSON value",
        MP_STR_ARG(text));
}

static struct mp_batch *quarantine_new(struct mp_pipeline *p)
{
    struct mp_batch_options options = {.columns_max = UINT32_MAX, .fold_case = true};
    struct mp_batch *batch = mp_batch_new(p->pool, &options);

    for (int i = 0; i < MP_QUARANTINE_COLUMNS; i++)
        mp_batch_declare(batch, mp_quarantine_columns[i].name, mp_quarantine_columns[i].type);
    return batch;
}

static void quarantine(struct mp_pipeline *p, struct mp_part *part, const struct mp_record *record,
                       const char *reason, size_t at)
{
    int64_t us; /* whoever wrote the record says when that was */
    bool timed = record->timestamp_ms >= 0 &&
                 !__builtin_mul_overflow(record->timestamp_ms, INT64_C(1000), &us);

    part->quarantined++;
    mp_metric_add(p->world.metrics, MP_M_RECORDS_QUARANTINED, reason, 1);
    mp_metric_add(p->world.metrics, MP_M_RECORDS_SKIPPED, "json_parse", 1);
    log_bad(p, record, reason, at);
    if (!p->options.quarantine_table.size)
        return;
    if (!p->quarantine)
        p->quarantine = quarantine_new(p);
    mp_batch_set_text(p->quarantine, MP_Q_TOPIC, p->options.topic);
    mp_batch_set(p->quarantine, MP_Q_PARTITION, &record->partition);
    mp_batch_set(p->quarantine, MP_Q_OFFSET, &record->offset);
    if (timed)
        mp_batch_set(p->quarantine, MP_Q_TIMESTAMP, &us);
    mp_batch_set_text(p->quarantine, MP_Q_REASON, mp_str_c(reason));
    if (record->has_key)
        mp_batch_set_text(p->quarantine, MP_Q_KEY, record->key);
    mp_batch_set_text(p->quarantine, MP_Q_PAYLOAD, record->value);
    mp_batch_row_end(p->quarantine);
}

/* NULL: the record is kept; else why it is not. */
static const char *filtered(struct mp_pipeline *p, const struct mp_json_record *record)
{
    uint32_t value;

    if (p->keep) {
        switch (mp_filter_ask(p->keep->filter, p->json, record, &value)) {
        case MP_FILTER_MISSING:
            return "filter_field_missing";
        case MP_FILTER_OTHER:
            return "filter_excluded";
        case MP_FILTER_MATCH:
            p->keep->matches[value]++;
        }
    }
    if (p->drop && mp_filter_ask(p->drop, p->json, record, &value) == MP_FILTER_MATCH)
        return "filter_dropped";
    return NULL;
}

void mp_record_take(struct mp_pipeline *p, struct mp_part *part, const struct mp_record *record)
{
    struct mp_json_record fields;
    enum mp_json_fault fault;
    const char *reason;
    size_t at;

    part->records++;
    part->next = record->next_offset;
    part->timestamp_ms = record->timestamp_ms;
    if (!record->has_value) {
        part->skipped++;
        mp_metric_add(p->world.metrics, MP_M_RECORDS_SKIPPED, "tombstone", 1);
        return;
    }
    if (part->lowest < 0)
        part->lowest = record->offset;
    part->highest = record->offset;
    fault = mp_json_scan(p->json, record->value, &fields, &at);
    if (__builtin_expect(fault != MP_JSON_OK, 0)) {
        quarantine(p, part, record, mp_json_fault_name(fault), at);
        return;
    }
    reason = filtered(p, &fields);
    if (reason) {
        part->skipped++;
        mp_metric_add(p->world.metrics, MP_M_RECORDS_SKIPPED, reason, 1);
        return;
    }
    mp_batch_append(p->batch, p->json, &fields);
    part->rows++;
}
