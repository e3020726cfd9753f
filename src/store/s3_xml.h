/* store/s3_xml.h - as much XML as S3 and STS answer with.
 *
 * Elements, text, the five named entities and numeric ones, CDATA; attributes, comments and
 * processing instructions are stepped over; a document type is refused, and with it everything
 * that makes XML dangerous. Bounded in depth, in names and in text, whatever the bytes are
 * (tests/fuzz/s3_xml_fuzz.c).
 */
#ifndef MP_STORE_S3_XML_H
#define MP_STORE_S3_XML_H

#include "base/err.h"
#include "base/str.h"

#define MP_XML_PATH_MAX 512         /* all names on the way to an element, with '/' between */
#define MP_XML_TEXT_MAX (64 * 1024) /* decoded text of one element */

/* Calls visit for each element as it ends, inner ones first. path: local names from the root,
 * "ListBucketResult/Contents/Key". text: the decoded text since the last tag, all there is where
 * the element holds text only. Both are lent for the call. A visit that gives false ends the walk
 * with MP_OK. MP_BAD_DATA, with the byte it is at, where it is not XML; what was visited until
 * then was visited. */
enum mp_code mp_xml_walk(struct mp_str xml,
                         bool (*visit)(void *self, struct mp_str path, struct mp_str text),
                         void *self, struct mp_err *err);
/* The text of the first element at that path, cut at ret_size - 1 bytes, with a NUL. False: there
 * is none before the bytes end or go wrong. */
bool mp_xml_text(struct mp_str xml, struct mp_str path, char *ret, size_t ret_size);
/* The local name of the root element, lent from xml; empty where there is none. */
struct mp_str mp_xml_root(struct mp_str xml);

#endif
