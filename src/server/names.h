/* server/names.h - what may be called what, and where an object may lie. Pure.
 *
 * MP_BAD_DATA: the text says what is wrong with which name.
 */
#ifndef MP_SERVER_NAMES_H
#define MP_SERVER_NAMES_H

#include "base/err.h"
#include "base/str.h"

enum {
    MP_COMMENT_CHARS_MAX = 16384,
    MP_PROPERTIES_MAX = 100,
    MP_PROPERTY_VALUE_CHARS_MAX = 4096,
    MP_CONSUMER_CHARS_MAX = 128,
    MP_DATA_PATH_CHARS_MAX = 512,
};

enum mp_code mp_name_catalog(struct mp_str name, struct mp_err *err);
/* what: "namespace", "table", "view". */
enum mp_code mp_name_object(const char *what, struct mp_str name, struct mp_err *err);
/* A column's; path is the dotted path for the message. */
enum mp_code mp_name_column(struct mp_str name, const char *path, struct mp_err *err);
enum mp_code mp_data_path(struct mp_str path, struct mp_err *err);
/* Whether one of the two lies in the other. */
bool mp_data_paths_overlap(struct mp_str a, struct mp_str b);
/* The path without the slashes at its end. */
struct mp_str mp_data_path_trim(struct mp_str path);
/* Whether an object may be registered below a catalog's data path. */
bool mp_object_path(struct mp_str data_path, struct mp_str path);
enum mp_code mp_comment(struct mp_str comment, struct mp_err *err);
enum mp_code mp_property(struct mp_str key, struct mp_str value, struct mp_err *err);
/* No character that is not white space: Unicode's, as far as anybody types it. */
bool mp_blank(struct mp_str text);
/* Characters of UTF-8 text. */
size_t mp_chars(struct mp_str text);

#endif
