/*
 * Shared by the codecs of records, messages and heartbeats: protobuf-c over arenas and buffers, and tables
 * that map fields of a protobuf message to members of a plain struct. One table serves encoding and decoding.
 */
#ifndef THOLE_CODEC_H
#define THOLE_CODEC_H
#include "arena.h"
#include "buf.h"
#include "range.h"
#include <protobuf-c/protobuf-c.h>

/* Memory that unpacking may take beside the bytes themselves: a bound for hostile messages. */
enum { CODEC_SCRATCH_MAX = 64 * 1024 * 1024 };

/* Memory of one decoding. protobuf-c allocates from an arena with a ceiling, and freeing is one call. */
struct codec_scratch {
    struct arena arena;
    bool exhausted; /* by the ceiling or by malloc */
};
void codec_init(struct codec_scratch *scratch);
void codec_release(struct codec_scratch *scratch);

/* Appends the packed message. */
THOLE_NODISCARD thole_status codec_pack(const ProtobufCMessage *message, struct buf *to);
/* Checks the size, then unpacks into @p scratch. THOLE_CORRUPT, THOLE_LIMIT, THOLE_NOMEM. @p what begins the
 * error text.
 */
THOLE_NODISCARD thole_status codec_unpack(const ProtobufCMessageDescriptor *descriptor, thole_slice bytes,
                                          size_t bytes_max, struct codec_scratch *scratch, const char *what,
                                          ProtobufCMessage **ret, thole_error *reterr);

/* How a member is stored, and what is valid. Decoding anything else gives THOLE_CORRUPT. */
enum codec_form {
    CODEC_END = 0, /* of a list of fields */
    CODEC_U32,
    CODEC_U64,
    CODEC_BOOL,
    CODEC_TRY, /* a u32 from 1: 0 is read as 1, and 1 is not written */
    CODEC_BYTES,
    CODEC_NAME, /* name_check() */
    CODEC_ID,   /* id_check() */
    CODEC_TYPE, /* error_type_check() */
    CODEC_LIST, /* repeated bytes; THOLE_LIMIT when there are too many */
    CODEC_PART, /* a message whose fields are members of the same struct; not written when all are empty */
};
struct codec_field {
    enum codec_form form;
    enum range_field range;  /* U32, U64, TRY: other numbers are refused */
    uint16_t pb, at;         /* offsets in the protobuf message and in the struct */
    uint16_t pb_len, at_len; /* LIST: of the numbers of items */
    uint32_t most;           /* BYTES: bytes, 0 = any number; LIST: items */
    const char *what;        /* in error texts */
    bool payload;            /* BYTES: what users sent, and may have erased (payload_hash.h) */
    const struct codec_message *part;
};
struct codec_message {
    const ProtobufCMessageDescriptor *descriptor;
    const struct codec_field *fields; /* up to CODEC_END */
};

/* The offset of a member, which must be of that type. */
#define CODEC_AT(owner, member, type)                                                                        \
    (offsetof(owner, member) + 0 * sizeof(1 ? &((owner *)0)->member : (type *)0))

/*
 * Rows of a table. Before its first row a file defines CODEC_PLAIN as the struct that its members are in;
 * they are members of members, too.
 */
#define PB_AT_(message, field, type) CODEC_AT(Thole__V1__##message, field, type)
#define PB_ROW_(code, message, field, pb_type, member, type, limit, thing)                                   \
    {                                                                                                        \
        .form = (code), .pb = PB_AT_(message, field, pb_type), .at = CODEC_AT(CODEC_PLAIN, member, type),    \
        .most = (limit), .what = (thing)                                                                     \
    }
#define PB_SLICE_(code, message, field, member, limit, thing)                                                \
    PB_ROW_(code, message, field, ProtobufCBinaryData, member, thole_slice, limit, thing)
/* Of a number: its range must be in the table of range.h. */
#define PB_NUMBER_(code, message, field, member, type)                                                       \
    {                                                                                                        \
        .form = (code), .range = RANGE_OF_##message##_##field, .pb = PB_AT_(message, field, type),           \
        .at = CODEC_AT(CODEC_PLAIN, member, type)                                                            \
    }
#define PB_U32(message, field, member) PB_NUMBER_(CODEC_U32, message, field, member, uint32_t)
#define PB_U64(message, field, member) PB_NUMBER_(CODEC_U64, message, field, member, uint64_t)
#define PB_BOOL(message, field, member)                                                                      \
    PB_ROW_(CODEC_BOOL, message, field, protobuf_c_boolean, member, bool, 0, NULL)
#define PB_TRY(message, field, member) PB_NUMBER_(CODEC_TRY, message, field, member, uint32_t)
#define PB_BYTES(message, field, member) PB_SLICE_(CODEC_BYTES, message, field, member, 0, NULL)
#define PB_PAYLOAD(message, field, member)                                                                   \
    {                                                                                                        \
        .form = CODEC_BYTES, .pb = PB_AT_(message, field, ProtobufCBinaryData),                              \
        .at = CODEC_AT(CODEC_PLAIN, member, thole_slice), .payload = true                                    \
    }
#define PB_UPTO(message, field, member, limit, thing)                                                        \
    PB_SLICE_(CODEC_BYTES, message, field, member, limit, thing)
#define PB_NAME(message, field, member, thing) PB_SLICE_(CODEC_NAME, message, field, member, 0, thing)
#define PB_ID(message, field, member) PB_SLICE_(CODEC_ID, message, field, member, 0, NULL)
#define PB_TYPE(message, field, member) PB_SLICE_(CODEC_TYPE, message, field, member, 0, NULL)
#define PB_LIST(message, field, member, limit, thing)                                                        \
    {                                                                                                        \
        .form = CODEC_LIST, .pb = PB_AT_(message, field, ProtobufCBinaryData *),                             \
        .at = CODEC_AT(CODEC_PLAIN, member, const thole_slice *),                                            \
        .pb_len = PB_AT_(message, n_##field, size_t), .at_len = CODEC_AT(CODEC_PLAIN, member##_len, size_t), \
        .most = (limit), .what = (thing)                                                                     \
    }
#define PB_PART(message, field, type, table)                                                                 \
    {                                                                                                        \
        .form = CODEC_PART, .pb = PB_AT_(message, field, Thole__V1__##type *), .part = &(table)              \
    }
#define PB_END                                                                                               \
    {                                                                                                        \
        .form = CODEC_END                                                                                    \
    }
#define PB_FIELDS(...) ((const struct codec_field[]){__VA_ARGS__, PB_END})

/* Makes a protobuf message that borrows from @p plain, in memory of @p arena. THOLE_NOMEM, THOLE_LIMIT; with
 * a text THOLE_INVALID: a number is not in its range. */
THOLE_NODISCARD thole_status codec_to_pb(const struct codec_message *table, const void *plain,
                                         struct arena *arena, ProtobufCMessage **ret, thole_error *reterr);
/* Fills the members that the table lists; the others are left alone. Slices are copied into @p arena.
 * THOLE_CORRUPT, THOLE_LIMIT, THOLE_NOMEM. */
THOLE_NODISCARD thole_status codec_from_pb(const struct codec_message *table, const ProtobufCMessage *pb,
                                           struct arena *arena, void *plain, thole_error *reterr);

/* Each number beyond its range, as older histories have some, becomes the nearest one of the range. */
void codec_into_range(const struct codec_message *table, void *plain);
/* Checks each number of an unpacked message and of those in it: for messages that have no table of fields.
 * THOLE_INVALID.
 */
THOLE_NODISCARD thole_status codec_ranges_check(const ProtobufCMessage *pb, thole_error *reterr);

/* The number of the field in its message. */
uint32_t codec_field_number(const struct codec_message *table, const struct codec_field *field);

/* A protobuf field that borrows the slice. */
ProtobufCBinaryData codec_bytes(thole_slice slice);
/* The inverse of codec_bytes(). */
thole_slice codec_slice(ProtobufCBinaryData bytes);
/* Copies a field into @p arena; empty stays empty. THOLE_LIMIT, THOLE_NOMEM. */
THOLE_NODISCARD thole_status codec_dup(struct arena *arena, ProtobufCBinaryData bytes, thole_slice *ret,
                                       thole_error *reterr);
/* The status and the text of an allocation from @p arena that gave NULL. */
THOLE_NODISCARD thole_status codec_full(const struct arena *arena, thole_error *reterr);
/* Turns what id_check() and name_check() say about stored bytes into THOLE_CORRUPT, text kept. */
THOLE_NODISCARD thole_status codec_corrupt(thole_status status, thole_error *reterr);
#endif
