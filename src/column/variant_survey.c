/* column/variant_survey.c - which members are worth being stored apart. */
#include "base/mem.h"
#include "column/variant.h"
#include "json/tree.h"

#include <stdlib.h>

enum { KEY_BYTES_MAX = 4 << 20 }; /* of names in the sample; then it has seen enough */

/* The types that a member can be stored apart in. */
enum kind { KIND_BOOL, KIND_INT64, KIND_DOUBLE, KIND_VARCHAR, KIND_OTHER, KINDS };

struct member {
    uint32_t key;
    uint32_t objects; /* that have it */
    uint32_t kinds[KINDS];
    bool known, allowed;
};

struct mp_variant_survey {
    struct mp_variant_allow allow;
    struct mp_json *json;
    struct member *members; /* by key */
    uint32_t capacity;
    uint32_t objects;
    struct mp_variant_field *fields;
};

struct mp_variant_survey *mp_variant_survey_new(const struct mp_variant_allow *allow)
{
    struct mp_variant_survey *survey = mp_alloc(sizeof(*survey));

    survey->allow = *allow;
    survey->json = mp_json_new();
    return survey;
}

void mp_variant_survey_free(struct mp_variant_survey *survey)
{
    if (!survey)
        return;
    mp_json_free(survey->json);
    mp_free(survey->members);
    mp_free(survey->fields);
    mp_free(survey);
}

static bool is_allowed(const struct mp_variant_allow *allow, struct mp_str name)
{
    if (allow->prefix.size && mp_str_starts(name, allow->prefix))
        return true;
    for (uint32_t i = 0; i < allow->name_count; i++)
        if (mp_str_eq(allow->names[i], name))
            return true;
    return false;
}

static struct member *member_of(struct mp_variant_survey *survey, uint32_t key)
{
    struct member *member;

    if (key >= survey->capacity) {
        uint32_t old = survey->capacity;

        survey->capacity = mp_json_key_count(survey->json) * 2;
        survey->members = mp_realloc(survey->members, survey->capacity * sizeof(*survey->members));
        memset(survey->members + old, 0, (survey->capacity - old) * sizeof(*survey->members));
    }
    member = &survey->members[key];
    if (!member->known)
        *member = (struct member){
            .key = key,
            .known = true,
            .allowed = is_allowed(&survey->allow, mp_json_key_name(survey->json, key)),
        };
    return member;
}

static enum kind kind_of(const struct mp_json_field *value)
{
    static const unsigned char kinds[] = {
        [MP_JSON_FALSE] = KIND_BOOL,    [MP_JSON_TRUE] = KIND_BOOL,
        [MP_JSON_INT] = KIND_INT64,     [MP_JSON_BIGINT] = KIND_OTHER,
        [MP_JSON_DOUBLE] = KIND_DOUBLE, [MP_JSON_STRING] = KIND_VARCHAR,
        [MP_JSON_NESTED] = KIND_OTHER,
    };

    return (enum kind)kinds[value->kind];
}

void mp_variant_survey_add(struct mp_variant_survey *survey, struct mp_str json)
{
    const struct mp_json_node *nodes;
    struct mp_json_tree tree;

    if (mp_json_key_bytes(survey->json) > KEY_BYTES_MAX || !mp_json_tree(survey->json, json, &tree))
        return;
    nodes = tree.nodes;
    if (nodes[0].value.kind != MP_JSON_NESTED || !nodes[0].value.nested_object)
        return;
    survey->objects++;
    for (uint32_t node = 1; node < tree.count; node = nodes[node].end) {
        struct member *member = member_of(survey, nodes[node].value.key);

        if (!member->allowed || nodes[node].value.kind == MP_JSON_NULL)
            continue;
        member->objects++;
        member->kinds[kind_of(&nodes[node].value)]++;
    }
}

/* The kind nine in ten are of; OTHER: there is none that can be stored apart. */
static enum kind main_kind(const struct member *member)
{
    for (int kind = 0; kind < KIND_OTHER; kind++)
        if ((uint64_t)member->kinds[kind] * 10 >= (uint64_t)member->objects * 9)
            return (enum kind)kind;
    return KIND_OTHER;
}

static int by_frequency(const void *a, const void *b)
{
    const struct member *left = a, *right = b;

    if (left->objects != right->objects)
        return left->objects > right->objects ? -1 : 1;
    return (left->key > right->key) - (left->key < right->key);
}

static int by_name(const void *a, const void *b)
{
    return mp_str_cmp(((const struct mp_variant_field *)a)->name,
                      ((const struct mp_variant_field *)b)->name);
}

struct mp_variant_shape mp_variant_survey_shape(struct mp_variant_survey *survey,
                                                uint32_t fields_max)
{
    static const unsigned char types[] = {
        [KIND_BOOL] = MP_TYPE_BOOL,
        [KIND_INT64] = MP_TYPE_INT64,
        [KIND_DOUBLE] = MP_TYPE_DOUBLE,
        [KIND_VARCHAR] = MP_TYPE_VARCHAR,
    };
    struct mp_variant_shape shape = {0};
    struct member *chosen;
    uint32_t count = 0;

    if (survey->objects < MP_VARIANT_SURVEY_MIN)
        return shape;
    chosen = mp_alloc_array(survey->capacity, sizeof(*chosen));
    for (uint32_t key = 0; key < survey->capacity; key++) {
        const struct member *member = &survey->members[key];

        if (member->objects && (uint64_t)member->objects * 20 >= survey->objects &&
            main_kind(member) != KIND_OTHER)
            chosen[count++] = *member;
    }
    qsort(chosen, count, sizeof(*chosen), by_frequency);
    count = count < fields_max ? count : fields_max;
    mp_free(survey->fields);
    survey->fields = mp_alloc_array(count, sizeof(*survey->fields));
    for (uint32_t i = 0; i < count; i++)
        survey->fields[i] = (struct mp_variant_field){
            .name = mp_json_key_name(survey->json, chosen[i].key),
            .type.id = types[main_kind(&chosen[i])],
        };
    qsort(survey->fields, count, sizeof(*survey->fields), by_name);
    mp_free(chosen);
    shape = (struct mp_variant_shape){survey->fields, count};
    return shape;
}
