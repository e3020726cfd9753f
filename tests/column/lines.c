#include "lines.h"

#include "base/buf.h"

void lines_open(struct lines *lines)
{
    memset(lines, 0, sizeof(*lines));
    lines->pool = mp_segment_pool_new(0);
    lines->json = mp_json_new();
    mp_arena_init(&lines->arena, 0);
    lines->options = (struct mp_batch_options){
        .rescued_name = MP_STR("_rescued_data"),
        .inserted_at_name = MP_STR("_inserted_at"),
        .columns_max = 1000,
        .fold_case = true,
        .widen = true,
    };
    lines->stamp_us = 1700000000000000;
}

void lines_close(struct lines *lines)
{
    if (lines->batch)
        mp_batch_check(lines->batch);
    mp_batch_free(lines->batch);
    mp_json_free(lines->json);
    CHECK_INT(mp_segment_pool_bytes(lines->pool), 0);
    mp_segment_pool_free(lines->pool);
    mp_arena_fini(&lines->arena);
}

void lines_live(struct lines *lines, const char *name, struct mp_type type)
{
    uint32_t at = lines->live.column_count++;

    lines->live_columns[at] =
        (struct mp_live_column){.name = mp_str_c(name), .type = type, .field_id = (int32_t)at + 1};
    lines->live.columns = lines->live_columns;
}

void lines_add(struct lines *lines, const char *record)
{
    struct mp_json_record fields;
    size_t at;
    enum mp_json_fault fault;

    if (!lines->batch) {
        lines->options.live = lines->live.column_count ? &lines->live : NULL;
        lines->batch = mp_batch_new(lines->pool, &lines->options);
    }
    fault = mp_json_scan(lines->json, mp_str_c(record), &fields, &at);
    if (fault)
        test_fail(__FILE__, __LINE__, "%s: %s at %zu", record, mp_json_fault_name(fault), at);
    mp_batch_append(lines->batch, lines->json, &fields);
    mp_batch_check(lines->batch);
}

void lines_seal(struct lines *lines, bool widen)
{
    struct mp_batch_plan plan;
    struct mp_err err;
    uint32_t count = lines->live.column_count;

    memcpy(lines->sealed_columns, lines->live_columns, sizeof(lines->live_columns));
    lines->sealed = lines->live;
    lines->sealed.columns = lines->sealed_columns;
    for (int round = 0;; round++) {
        CHECK(round < 4);
        CHECK_OK(mp_batch_plan(lines->batch, count ? &lines->sealed : NULL, &err, &plan), err);
        if (!plan.add_count && !plan.widen_count)
            break;
        for (uint32_t i = 0; i < plan.widen_count; i++)
            for (uint32_t c = 0; c < count; c++) {
                if (lines->sealed_columns[c].field_id != plan.widen[i])
                    continue;
                if (widen)
                    lines->sealed_columns[c].type = MP_TYPE(DOUBLE);
                else
                    mp_batch_keep_bigint(lines->batch, plan.widen[i]);
            }
        for (uint32_t i = 0; i < plan.add_count; i++, count++)
            lines->sealed_columns[count] = (struct mp_live_column){
                .name = plan.add[i].name, .type = plan.add[i].type, .field_id = (int32_t)count + 1};
        lines->sealed.column_count = count;
    }
    mp_batch_seal(lines->batch, &lines->sealed, lines->stamp_us);
    mp_batch_check(lines->batch);
}

struct mp_str lines_types(struct lines *lines)
{
    struct mp_buf text = MP_BUF_INIT(1 << 20);
    struct mp_column *columns;
    struct mp_str ret;
    uint32_t count;

    columns = mp_batch_columns(lines->batch, &count);
    for (uint32_t i = 0; i < count; i++) {
        char name[24];

        mp_type_ducklake_name(columns[i].type, name);
        mp_buf_printf(&text, "%s%.*s:%s", i ? " " : "", MP_STR_ARG(columns[i].name), name);
    }
    ret = mp_arena_str(&lines->arena, mp_buf_str(&text));
    mp_buf_fini(&text);
    return ret;
}

struct mp_str lines_values(struct lines *lines, const char *name)
{
    struct mp_buf text = MP_BUF_INIT(1 << 24);
    const struct mp_column *column = NULL;
    const struct mp_segment *segment;
    struct mp_column *columns;
    struct mp_str ret;
    uint32_t count, at = 0;

    columns = mp_batch_columns(lines->batch, &count);
    for (uint32_t i = 0; i < count; i++)
        if (mp_str_eq(columns[i].name, mp_str_c(name)))
            column = &columns[i];
    if (!column)
        return MP_STR("-");
    segment = column->segments.first;
    for (uint32_t row = 0; row < column->rows; row++) {
        uint32_t width = mp_type_width(column->type);
        struct mp_str value;

        if (row)
            mp_buf_add_byte(&text, '|');
        if (!mp_column_valid(column, row)) {
            mp_buf_add_byte(&text, '~');
            continue;
        }
        while (at == segment->used)
            segment = segment->next, at = 0;
        value = mp_str_n(segment->data + at, width);
        if (mp_type_is_text(column->type)) {
            memcpy(&width, segment->data + at, 4);
            value = mp_str_n(segment->data + at + 4, width);
            width += 4;
        } else if (column->type.id == MP_TYPE_BOOL) {
            value.size = width = 1;
        }
        at += width;
        mp_buf_add_str(&text, mp_value_text(&lines->arena, column->type, value));
    }
    ret = mp_arena_str(&lines->arena, mp_buf_str(&text));
    mp_buf_fini(&text);
    return ret;
}
