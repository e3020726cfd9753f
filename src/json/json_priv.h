/* json/json_priv.h - the inner door: the scanner, and how its stages hand on.
 *
 *     json.c      front door: trims white space, calls the two stages, names the fault
 *     index.h     stage one: closing quotes, escapes, UTF-8   (avx512, avx2, neon, portable)
 *     walk.c      stage two: the grammar, top-level fields, nested values
 *     tree.c      the other stage two: any value, as a list of nodes (tree.h)
 *     cursor.h    what both share
 *     keys.c      names of keys      number.c  numbers      text.c  escapes and compact text
 *     diagnose.c  says what is wrong and where, byte by byte, once a stage has refused
 *
 * Always   S1 a stage that refuses changes nothing that can be seen: names are interned only from
 *             records that are known to be good (walk.c asks diagnose before it interns)
 *          S2 diagnose refuses exactly what the stages refuse
 */
#ifndef MP_JSON_PRIV_H
#define MP_JSON_PRIV_H

#include "json/index.h"
#include "json/json.h"
#include "json/keys.h"
#include "json/tree.h"

struct mp_json {
    mp_json_index_fn *fill_index;
    const char *isa;
    struct mp_json_index index;
    uint32_t *cuts;    /* as many as half a record: see walk.c */
    char *scratch;     /* as large as a record: see text.h */
    size_t room_bytes; /* the largest record that index, cuts and scratch have room for */
    struct mp_json_field *fields;
    uint32_t field_count, field_capacity;
    uint32_t serial;            /* of the record; tells a key seen in this one */
    struct mp_json_node *nodes; /* of the last tree */
    uint32_t node_count, node_capacity;
    struct mp_json_keys keys;
};

/* Stage two, over an index that is filled. data[from] is '{', data[size - 1] is '}'. Fills the
 * fields; false when the record is wrong somewhere. */
bool mp_json_walk(struct mp_json *json, const char *data, size_t from, size_t size);

/* Makes index, cuts and scratch large enough for a record of so many bytes. What an outsized record
 * needed goes back with the next ordinary one. */
void mp_json_make_room(struct mp_json *json, size_t bytes);

/* Reads any record byte by byte and gives its first fault and where it was seen. */
enum mp_json_fault mp_json_diagnose(struct mp_str record, size_t *ret_at);

static inline bool mp_json_is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

#endif
