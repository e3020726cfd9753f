/* parquet/parquet_priv.h - the inner door: what the files of this room know of each other.
 *
 *     source   the values of a column, out of their segments, in the order of a file
 *     dict     the distinct values of a chunk, and for every value its index there
 *     plain    values side by side in a page buffer
 *     stats    smallest and largest value, and bounds that may stand for them
 *     rle      definition levels and dictionary indices
 *     page     levels + values -> codec -> header and packed body
 *     packed   those of all chunks of a column, in segments of the pool
 *     encode   a column -> chunks: which encoding, where pages end
 *     levels   definition levels of a leaf inside groups
 *     variant  a VARIANT: rows of another column -> the leaves of a group
 *     nested   a leaf inside groups, entry by entry -> its chunks
 *     index    ColumnIndex and OffsetIndex of a chunk
 *     layout   our types -> physical, logical and converted types
 *     thrift   the compact protocol, writing only
 *     writer   chunks + names -> a file
 *
 * Pages end where the rows say so, never where a segment happens to end: a page takes values until
 * page_bytes or MP_PAGE_ROWS_MAX, so the same rows give the same bytes however they were appended
 * and whether they are read in place or gathered.
 */
#ifndef MP_PARQUET_PARQUET_PRIV_H
#define MP_PARQUET_PARQUET_PRIV_H

#include "base/arena.h"
#include "base/buf.h"
#include "parquet/footer.h"
#include "parquet/writer.h"

#include <assert.h>

/* ---- layout ---------------------------------------------------------------------------------- */

/* Parquet's enum Type (parquet.thrift). */
enum mp_physical {
    MP_PHYSICAL_BOOLEAN = 0,
    MP_PHYSICAL_INT32 = 1,
    MP_PHYSICAL_INT64 = 2,
    MP_PHYSICAL_INT96 = 3, /* read, and carried as it is */
    MP_PHYSICAL_FLOAT = 4,
    MP_PHYSICAL_DOUBLE = 5,
    MP_PHYSICAL_BYTE_ARRAY = 6,
    MP_PHYSICAL_FIXED = 7, /* FIXED_LEN_BYTE_ARRAY */
};

/* How values compare (parquet.thrift, ColumnOrder: TypeDefinedOrder). */
enum mp_order {
    MP_ORDER_BOOL,
    MP_ORDER_I32,
    MP_ORDER_U32,
    MP_ORDER_I64,
    MP_ORDER_U64,
    MP_ORDER_F32,
    MP_ORDER_F64,
    MP_ORDER_BYTES16,   /* unsigned, bytewise */
    MP_ORDER_DECIMAL16, /* two's complement, big-endian */
    MP_ORDER_UTF8,      /* text, bytewise; a bound must stay UTF-8 */
    MP_ORDER_BINARY,    /* bytes, bytewise */
    MP_ORDER_F16,
    MP_ORDER_NONE, /* there is none, or none that we know: no bounds */
};

struct mp_layout {
    uint8_t physical; /* enum mp_physical */
    uint8_t order;    /* enum mp_order */
    uint32_t width;   /* bytes of a value in a segment; 0: texts */
};

/* The type must be one that can be written (neither NONE nor OTHER). */
struct mp_layout mp_layout_of(struct mp_type type);

/* What a SchemaElement says. */
struct mp_schema_element {
    struct mp_str name;
    struct mp_type type; /* of a group: VARIANT, or NONE */
    enum mp_parquet_repetition repetition;
    uint32_t children;  /* 0: a leaf */
    int32_t field_id;   /* 0: none, which things inside a VARIANT have not */
    uint8_t annotation; /* of a group: MP_PARQUET_LIST, MP_PARQUET_MAP, or 0 */
    /* a leaf of a merge whose values are carried as they are: what it is there; type is NONE */
    const struct mp_parquet_node *carried;
};

/* How a leaf's values lie and compare, of a type or carried. */
struct mp_layout mp_layout_of_leaf(const struct mp_schema_element *element);

/* A nested column: its elements depth first, the column itself first. */
struct mp_parquet_tree {
    const struct mp_schema_element *elements;
    const uint32_t *parents; /* of each element; of the first: 0 */
    const uint32_t *leaves;  /* leaf -> element */
    uint32_t count, leaf_count;
};

struct mp_thrift;
/* Writes a SchemaElement as one element of a list. */
void mp_layout_schema_element(struct mp_thrift *thrift, const struct mp_schema_element *element);

/* ---- thrift ---------------------------------------------------------------------------------- */

#define MP_THRIFT_DEPTH_MAX 8

enum mp_thrift_type {
    MP_THRIFT_TRUE = 1,
    MP_THRIFT_FALSE = 2,
    MP_THRIFT_BYTE = 3,
    MP_THRIFT_I16 = 4,
    MP_THRIFT_I32 = 5,
    MP_THRIFT_I64 = 6,
    MP_THRIFT_BINARY = 8,
    MP_THRIFT_LIST = 9,
    MP_THRIFT_STRUCT = 12,
};

struct mp_thrift {
    struct mp_buf *out;
    int16_t last[MP_THRIFT_DEPTH_MAX]; /* the last field id, a level of nesting each */
    unsigned depth;
};

/* A struct that is a message or an element of a list; end closes any struct. */
void mp_thrift_begin(struct mp_thrift *thrift);
void mp_thrift_end(struct mp_thrift *thrift);
/* Fields. A list is followed by exactly count elements. */
void mp_thrift_struct(struct mp_thrift *thrift, int16_t id);
void mp_thrift_list(struct mp_thrift *thrift, int16_t id, enum mp_thrift_type type, size_t count);
void mp_thrift_bool(struct mp_thrift *thrift, int16_t id, bool value);
void mp_thrift_byte(struct mp_thrift *thrift, int16_t id, int8_t value);
void mp_thrift_i16(struct mp_thrift *thrift, int16_t id, int16_t value);
void mp_thrift_i32(struct mp_thrift *thrift, int16_t id, int32_t value);
void mp_thrift_i64(struct mp_thrift *thrift, int16_t id, int64_t value);
void mp_thrift_binary(struct mp_thrift *thrift, int16_t id, struct mp_str value);
/* A value of that type as it stands elsewhere. */
void mp_thrift_raw(struct mp_thrift *thrift, int16_t id, enum mp_thrift_type type,
                   struct mp_str raw);
/* Elements of a list. */
void mp_thrift_add_bool(struct mp_thrift *thrift, bool value);
void mp_thrift_add_i32(struct mp_thrift *thrift, int32_t value);
void mp_thrift_add_i64(struct mp_thrift *thrift, int64_t value);
void mp_thrift_add_binary(struct mp_thrift *thrift, struct mp_str value);

/* ---- rle ------------------------------------------------------------------------------------- */

/* Writes `count` levels of one bit each, from bit 0 of bits; bits past count are zero. Gives the
 * bytes written, at most mp_rle_bits_max(count). */
size_t mp_rle_bits(const uint64_t *bits, uint32_t count, uint8_t *ret);
size_t mp_rle_bits_max(uint32_t count);
/* Writes `count` values of `width` bits (1 to 32). */
size_t mp_rle_indices(const uint32_t *values, uint32_t count, unsigned width, uint8_t *ret);
size_t mp_rle_indices_max(uint32_t count, unsigned width);
/* Bits that hold every index below count; at least 1. */
unsigned mp_rle_width(uint32_t count);

/* ---- stats ----------------------------------------------------------------------------------- */

#define MP_BOUND_CHUNK_MAX 256u /* bytes of a text bound in a chunk's Statistics */
#define MP_BOUND_PAGE_MAX  64u  /* and in the page index */

/* The extremes of a page while its values are at hand. Texts often begin alike (JSON, URLs, times),
 * so what decides is kept from behind the bytes that both extremes have in common. */
struct mp_bounds {
    bool has;              /* a value that is not NaN was seen */
    uint32_t alike;        /* bytes that both texts begin with */
    uint64_t nans;         /* NaNs among the values */
    char fixed[2][16];     /* smallest and largest of a fixed type, as PLAIN */
    struct mp_str text[2]; /* of a text type; lent by whoever holds the values */
    uint64_t head[2];      /* 8 bytes of each text behind those alike, big-endian, zeros behind */
};

/* A smallest or largest value that outlives its page: its first bytes and its whole length. */
struct mp_extreme {
    char *data;    /* the first `kept` bytes */
    uint32_t kept; /* at most MP_STATS_TEXT_MAX */
    uint64_t size; /* of the whole value */
};

struct mp_extremes {
    bool has;
    struct mp_extreme of[2]; /* smallest, largest */
};

/* Looks at `count` fixed values side by side. */
void mp_bounds_add_fixed(struct mp_bounds *bounds, enum mp_order order, const char *values,
                         uint32_t count);
void mp_bounds_add_text_slow(struct mp_bounds *bounds, struct mp_str text);

/* The first 8 bytes as a number that orders as they do. */
static inline uint64_t mp_text_head(const char *text, size_t size)
{
    uint64_t head = 0;

    if (size >= 8)
        memcpy(&head, text, 8);
    else if (size)
        memcpy(&head, text, size);
    return __builtin_bswap64(head);
}

/* Most texts begin as the extremes do and differ from both in the next 8 bytes. */
static inline void mp_bounds_add_text(struct mp_bounds *bounds, struct mp_str text)
{
    uint32_t alike = bounds->alike;

    if (text.size >= alike && (!alike || memcmp(text.data, bounds->text[0].data, alike) == 0)) {
        uint64_t head = mp_text_head(text.data + alike, text.size - alike);

        if (bounds->head[0] < head && head < bounds->head[1])
            return;
    }
    mp_bounds_add_text_slow(bounds, text);
}

/* Ends a page: zeros get the sign that makes them a bound. */
void mp_bounds_close(struct mp_bounds *bounds, enum mp_order order);
/* Lends the smallest (which 0) or largest (which 1) value. */
struct mp_str mp_bounds_value(const struct mp_bounds *bounds, struct mp_layout layout, int which);

/* Takes over what is smaller or larger; `of` must have room for MP_STATS_TEXT_MAX bytes each. */
void mp_extremes_add(struct mp_extremes *extremes, struct mp_layout layout,
                     const struct mp_bounds *bounds);
void mp_extremes_merge(struct mp_extremes *extremes, struct mp_layout layout,
                       const struct mp_extremes *other);

struct mp_bound {
    bool has, exact;
    uint32_t size;
    char data[MP_STATS_TEXT_MAX];
};

/* Makes a lower (which 0) or upper (which 1) bound of at most `max` bytes of a value whose first
 * bytes are `head` and whose whole length is `size`. Fixed values are never cut. */
void mp_bound_make(struct mp_layout layout, int which, struct mp_str head, uint64_t size,
                   uint32_t max, struct mp_bound *ret);
/* Negative, 0 or positive; for fixed types and for texts. */
int mp_order_compare(struct mp_layout layout, struct mp_str a, struct mp_str b);

/* ---- source ---------------------------------------------------------------------------------- */

#define MP_PAGE_ROWS_MAX 20480u /* rows of a page; a multiple of 64 */
#define MP_PAGE_WORDS    (MP_PAGE_ROWS_MAX / 64)
#define MP_LEVELS_ROOM   8192u /* in front of a page's values, for its levels */
#define MP_BATCH         256u

struct mp_cursor {
    struct mp_segment *segment;
    uint32_t offset; /* bytes of it that were taken */
};

/* The values of a column in the order of a file. One file whose rows stand as they are is read in
 * place, segment by segment; anything else is gathered through an index by row. */
struct mp_source {
    struct mp_segment_pool *pool;
    struct mp_column *column;
    struct mp_layout layout;
    bool direct;
    /* gathered: by row of the batch */
    char *fixed;
    size_t fixed_capacity;
    const char **texts; /* NULL where the row is null */
    size_t texts_capacity;
    /* the chunk: rows `first` to `first + count - 1` of the file's selection */
    const uint32_t *rows; /* NULL: as they are */
    uint32_t first, count;
    uint32_t next;                  /* row of the chunk that comes next */
    struct mp_cursor cursor, start; /* direct: now, and where the chunk begins */
    char batch[MP_BATCH * 16];
};

/* Bytes of a text, by the length in front of it. */
static inline uint32_t mp_text_bytes(const char *text)
{
    uint32_t size;

    memcpy(&size, text, 4);
    return size;
}

/* The batch's row that is row i of the chunk. */
static inline uint32_t mp_source_row(const struct mp_source *source, uint32_t i)
{
    return source->rows ? source->rows[source->first + i] : source->first + i;
}

void mp_source_open(struct mp_source *source, struct mp_segment_pool *pool,
                    struct mp_column *column, const struct mp_parquet_cut *cut);
/* Gives back what is left of the column's segments. */
void mp_source_close(struct mp_source *source);
void mp_source_fini(struct mp_source *source);

void mp_source_chunk(struct mp_source *source, const struct mp_parquet_rows *rows, uint32_t first,
                     uint32_t count);
/* Values of the chunk, that is its rows that are not null. */
uint32_t mp_source_count(const struct mp_source *source);
/* Goes back to the first value of the chunk; nothing may have been released since. */
void mp_source_rewind(struct mp_source *source);
/* Gives segments back of which every value was taken. */
void mp_source_release(struct mp_source *source);
/* Gives the place of each row's value in the column's segments, NULL where it is null; to be freed.
 * A value has `width` bytes; 0: a text, its length in front. */
const char **mp_column_places(const struct mp_column *column, uint32_t width);
/* Validity of rows from to from + count - 1 of the chunk, from bit 0; gives the number of ones.
 * Bits past count are zero. */
uint32_t mp_source_bits(const struct mp_source *source, uint32_t from, uint32_t count,
                        uint64_t *ret);
/* In place only: lends the texts from here to their segment's end, at least one. */
struct mp_str mp_source_stretch(struct mp_source *source);
/* Takes so many bytes of it, whole texts. */
void mp_source_skip(struct mp_source *source, size_t bytes);
/* Takes the next `count` texts, which must be there, each with its length in front. */
void mp_source_texts(struct mp_source *source, uint32_t count, const char **ret);
/* Takes up to `count` (at least one) fixed values side by side; lends them until the next call. */
uint32_t mp_source_fixed(struct mp_source *source, uint32_t count, const char **ret);

/* ---- plain ----------------------------------------------------------------------------------- */

struct mp_page {
    char *room;      /* MP_LEVELS_ROOM bytes, then the values */
    size_t capacity; /* of room */
    size_t bytes;    /* of the values */
    uint32_t rows, count;
    uint64_t bits[MP_PAGE_WORDS];
    struct mp_bounds bounds;
};

static inline char *mp_page_values(const struct mp_page *page)
{
    return page->room + MP_LEVELS_ROOM;
}

/* Fills the page with the chunk's next rows: at least one, else up to page_bytes of values or
 * MP_PAGE_ROWS_MAX rows. Looks for the bounds on the way. False: the next value alone, of
 * page->bytes, is larger than any page. */
bool mp_plain_fill(struct mp_page *page, struct mp_source *source, size_t page_bytes);
/* Makes bits of bytes that are 0 or 1, in place; gives the bytes left. */
size_t mp_plain_pack_bools(char *values, uint32_t count);

/* ---- dict ------------------------------------------------------------------------------------ */

struct mp_dict_slot {
    uint32_t hash, entry; /* entry + 1; 0: free */
};

struct mp_dict {
    struct mp_dict_slot *slots;
    uint32_t slot_count; /* in use; a power of two */
    size_t slots_capacity;
    char *bytes; /* the entries as PLAIN */
    size_t size, bytes_capacity, bytes_max;
    uint32_t *starts; /* texts: where each entry begins */
    uint8_t *seen;    /* entries that the current page has */
    size_t starts_capacity, seen_capacity;
    uint32_t count; /* entries */
    uint32_t total; /* values of the chunk */
    uint32_t *indices;
    size_t indices_capacity;
    uint32_t value_count; /* indices */
    uint64_t value_bytes; /* of the values seen, as PLAIN */
    uint32_t half_count;  /* entries when half of the values before check_at were seen */
    uint32_t half_at, check_at;
};

void mp_dict_fini(struct mp_dict *dict);
/* Begins a chunk of `values` values. */
void mp_dict_begin(struct mp_dict *dict, uint32_t values, size_t bytes_max);
/* Takes the next `count` values of the source, all on one page, and gives the page's bounds, which
 * are good until the next call. False: a dictionary does not pay, judged by what was seen so far.
 */
bool mp_dict_add(struct mp_dict *dict, struct mp_source *source, uint32_t count,
                 struct mp_bounds *bounds);

/* ---- page ------------------------------------------------------------------------------------ */

enum mp_page_kind { MP_PAGE_DATA = 0, MP_PAGE_DICTIONARY = 2 };

/* Parquet's enum Encoding. */
enum mp_encoding { MP_ENCODING_PLAIN = 0, MP_ENCODING_RLE = 3, MP_ENCODING_RLE_DICTIONARY = 8 };

struct mp_page_head {
    enum mp_page_kind kind;
    enum mp_encoding encoding;
    uint32_t count; /* values, nulls included; entries of a dictionary */
};

#define MP_PAGE_HEAD_MAX 64u /* bytes of a page's header */

/* A page as it stands in the file: its header, then its body. */
struct mp_packed_page {
    struct mp_str head, body;
    uint32_t bytes; /* of both */
};

/* Compresses a body and makes its header; lends both until the next call (and the body itself where
 * there is no codec). MP_BAD_DATA: too large for a page. */
enum mp_code mp_page_pack(struct mp_parquet_encoder *encoder, const struct mp_page_head *head,
                          struct mp_str body, struct mp_err *err, struct mp_packed_page *ret);

/* ---- packed ---------------------------------------------------------------------------------- */

/* Held by the encoder while it adds, and by every chunk that lies in it. */
struct mp_packed {
    struct mp_segment_pool *pool;
    struct mp_segment_list list;
    uint32_t holders;
};

/* Gives one to its first holder. */
struct mp_packed *mp_packed_new(struct mp_segment_pool *pool);
/* One holder less; the last one's segments go back. No-op on NULL. */
void mp_packed_drop(struct mp_packed *packed);
/* Copies bytes behind all that was added. */
void mp_packed_add(struct mp_packed *packed, struct mp_str bytes);
/* Where the next bytes will lie, or behind the last ones. */
struct mp_cursor mp_packed_end(const struct mp_packed *packed);
/* Gives the number of parts in which all that was added since `from` lies, and the parts, an
 * allocation of the caller, who has become a holder. */
uint32_t mp_packed_since(struct mp_packed *packed, struct mp_cursor from, struct mp_str **ret);

/* ---- encode ---------------------------------------------------------------------------------- */

/* A data page that was written. */
struct mp_page_record {
    uint32_t bytes; /* in the file, with the header */
    uint32_t rows, nulls, nans;
    uint32_t entries; /* levels: of a flat leaf its rows; nulls are those without a value */
    bool bounds_lost; /* no bound of MP_BOUND_PAGE_MAX bytes can be made */
    uint8_t sizes[2];
    char bounds[2][MP_BOUND_PAGE_MAX];
};

/* The leaves of a VARIANT, in the order of the schema: metadata, value, and of each field that is
 * stored apart its value and its typed value. Or those of any column inside whose tree they are. */
struct mp_parquet_group {
    struct mp_variant_shape shape; /* its fields and their names are the group's own */
    struct mp_arena arena;
    uint32_t count; /* of a VARIANT: 2 + 2 * shape.count */
    struct mp_parquet_chunk **leaves;
};

struct mp_parquet_chunk {
    /* a VARIANT or another nested column: then only type, rows, nulls (of a VARIANT) and bytes are
     * set */
    struct mp_parquet_group *group;
    struct mp_type type;
    struct mp_layout layout;
    uint8_t codec;
    uint32_t rows, nulls;
    uint32_t entries; /* as in struct mp_page_record */
    uint64_t nans;
    struct mp_packed *packed; /* what holds its pages */
    struct mp_str *parts;     /* their bytes: the dictionary's, then those of all data pages */
    uint32_t part_count;
    uint32_t dictionary_bytes; /* 0: none */
    uint32_t *page_bytes;      /* of each data page */
    uint32_t *page_rows;
    uint32_t page_count;
    uint64_t raw_bytes, bytes; /* with page headers, before and after compression */
    struct mp_extremes extremes;
    struct mp_buf column_index; /* size 0: none can be made */
};

/* A row's definition level says how many of the optional things around a value are there. For a
 * leaf at the top that is its validity bit; inside groups it is what `around` says of the row, held
 * to `groups`, and one more for the value. */
struct mp_nest {
    const uint8_t *around; /* per row of the chunk; NULL: a leaf at the top */
    uint32_t groups;       /* optional groups around the leaf */
};

/* Writes the levels of rows from..from + count - 1; bits are their validity. Gives the bytes. */
size_t mp_levels_write(const struct mp_nest *nest, const uint64_t *bits, uint32_t from,
                       uint32_t count, uint32_t *scratch, uint8_t *ret);

struct mp_parquet_encoder {
    struct mp_parquet_options options; /* with every default filled in */
    struct mp_source source;
    struct mp_dict dict;
    struct mp_page page;
    char *body; /* what the codec makes */
    size_t body_capacity;
    char head[MP_PAGE_HEAD_MAX];
    void *zstd;            /* ZSTD_CCtx */
    void *gzip;            /* z_stream */
    struct mp_packed *out; /* of the column being encoded */
    uint8_t codec;         /* of the pages to come; the chunk at hand may do without */
    /* the chunk being made */
    struct mp_page_record *records;
    size_t records_capacity;
    uint32_t record_count;
    uint64_t raw_bytes;
    struct mp_extremes extremes;
    char extreme_bytes[2][MP_STATS_TEXT_MAX];
    struct mp_nest nest;
    uint32_t *levels; /* [MP_PAGE_ROWS_MAX], for leaves inside groups; NULL: none came yet */
    struct mp_variant *variant; /* NULL: none was made yet */
};

/* What makes a chunk, for every kind of leaf. Begin it, pack its pages, and take it as it is. */
struct mp_cursor mp_chunk_begin(struct mp_parquet_encoder *encoder);
/* Adds the record of a page. */
struct mp_page_record *mp_chunk_record(struct mp_parquet_encoder *encoder, uint32_t rows,
                                       uint32_t values);
void mp_chunk_record_bounds(struct mp_page_record *record, struct mp_layout layout,
                            const struct mp_bounds *bounds);
/* Packs a page and puts it behind what the column has. judge: a first page; where it is large
 * enough to tell and the codec does not pay, the chunk goes on without one. */
enum mp_code mp_chunk_page(struct mp_parquet_encoder *encoder, const struct mp_page_head *head,
                           struct mp_str body, bool judge, struct mp_err *err, uint32_t *ret_bytes);
/* Makes the chunk of what was written since `from`. */
struct mp_parquet_chunk *mp_chunk_new(struct mp_parquet_encoder *encoder, struct mp_type type,
                                      struct mp_layout layout, struct mp_cursor from,
                                      uint32_t dictionary_bytes);
/* Lets go of buffers that a huge page left. */
void mp_encoder_trim(struct mp_parquet_encoder *encoder);

/* ---- nested ---------------------------------------------------------------------------------- */

/* A leaf inside groups, entry by entry. A row is the entries from a repetition level 0 to the next;
 * there is a value where the definition level is the largest. */
struct mp_entries {
    struct mp_column column;    /* its rows are the entries */
    struct mp_layout layout;    /* of its values */
    const uint8_t *definitions; /* levels of each entry */
    const uint8_t *repetitions;
    const uint32_t *starts; /* of each row its first entry, and the end of the last */
    uint32_t rows;
    uint32_t definition_max, repetition_max;
};

/* Encodes the leaf for the one file of the cut, a chunk each row group. Borrows entries. PLAIN,
 * pages end where rows do. */
enum mp_code mp_nested_encode(struct mp_parquet_encoder *encoder, struct mp_segment_pool *pool,
                              const struct mp_entries *entries, const struct mp_parquet_cut *cut,
                              struct mp_err *err, struct mp_parquet_chunk **ret);
/* Gives a nested column's chunk with room for that many leaves. */
struct mp_parquet_chunk *mp_nested_chunk_new(uint32_t leaf_count);
void mp_nested_chunk_put(struct mp_parquet_chunk *chunk, uint32_t leaf,
                         struct mp_parquet_chunk *of);

/* Parquet's enum CompressionCodec. */
int mp_codec_number(uint8_t codec);

/* No-op on NULL; frees its leaves too. */
void mp_parquet_group_free(struct mp_parquet_group *group);

/* Makes room for `need` elements; what was there is kept. */
void *mp_scratch_grow(void *memory, size_t *capacity, size_t need, size_t element_bytes);

/* ---- index ----------------------------------------------------------------------------------- */

/* Writes the ColumnIndex of a chunk's pages; leaves ret as it is where there can be none. */
void mp_index_columns(struct mp_layout layout, const struct mp_page_record *pages, uint32_t count,
                      struct mp_buf *ret);
/* Writes the OffsetIndex of a chunk whose first data page stands at `offset`. */
void mp_index_offsets(const struct mp_parquet_chunk *chunk, uint64_t offset, struct mp_buf *ret);

#endif
