/* json/tree.h - any JSON text as the list of its nodes, in the order in which they stand there.
 *
 * For texts that came as a whole and are wanted as a whole; records are read by mp_json_scan. A
 * node is followed by what is inside it, so a walk needs no recursion: `end` steps over a node.
 * The same checks as for records (json.h): RFC 8259, strict UTF-8, numbers within the doubles,
 * depth MP_JSON_DEPTH_MAX with the outermost value as level 1. White space around is allowed.
 *
 * Memory   nodes and decoded strings lie in the scanner and are used again; like its scratch, they
 *          grow to the largest text, and shrink after an outsized one. Names of members are
 * interned in its keys, also those of a text that turns out to be wrong: who feeds it watches
 *          mp_json_key_bytes.
 */
#ifndef MP_JSON_TREE_H
#define MP_JSON_TREE_H

#include "json/json.h"

#define MP_JSON_NO_KEY UINT32_MAX

struct mp_json_node {
    struct mp_json_field value; /* key: NO_KEY but for members; NESTED: without text */
    uint32_t end;               /* the node behind this one and all inside it */
    uint32_t count;             /* NESTED: nodes directly inside it, duplicate keys included */
};

struct mp_json_tree {
    const struct mp_json_node *nodes; /* the outermost value first */
    uint32_t count;
};

/* Reads one value. False: the text is none. *ret is written on success only and is good until the
 * next tree or scan; text must stay as it is that long. */
bool mp_json_tree(struct mp_json *json, struct mp_str text, struct mp_json_tree *ret);

#endif
