/* cli/load_look.h - may `millpond load` take this file? Asked of each before anything is opened, so
 * that a slip in the last name leaves the files before it unread.
 *
 * A place in a file can only be kept where it can be found again: in a regular file whose path can
 * stand in a catalog, which is UTF-8. A packed file is no lines, however it is called.
 */
#ifndef MP_CLI_LOAD_LOOK_H
#define MP_CLI_LOAD_LOOK_H

#include "base/err.h"

/* MP_BAD_CONFIG with what to do instead. "-" is fine. */
enum mp_code mp_load_look(const char *path, struct mp_err *err);

#endif
