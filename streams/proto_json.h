/*
 * Protobuf messages as JSON: the canonical mapping of protobuf 3
 * (https://protobuf.dev/programming-guides/json) for the kinds of fields that thole's have:
 * string, bytes, bool, uint32, uint64, messages, lists of these, and oneofs of messages. Pure.
 */
#ifndef THOLE_PROTO_JSON_H
#define THOLE_PROTO_JSON_H
#include "buf.h"
#include "codec.h"

/* Appends the message. Fields that are empty or 0 are left out. */
THOLE_NODISCARD thole_status proto_json_encode(const ProtobufCMessage *message, struct buf *to);
/* In memory of @p scratch. Names in lowerCamelCase or as in the file; unknown ones are ignored; null is the
 * default; bytes in either alphabet of base64, padded or not. THOLE_CORRUPT: no JSON, a field of another
 * type, a number that does not fit, text that is not UTF-8 or has a NUL. THOLE_LIMIT, THOLE_NOMEM. */
THOLE_NODISCARD thole_status proto_json_decode(const ProtobufCMessageDescriptor *descriptor, thole_slice json,
                                               struct codec_scratch *scratch, ProtobufCMessage **ret,
                                               thole_error *reterr);
/* How a message is read in which one bad item must not fail the others: every text is made valid (? instead
 * of a NUL, half of a surrogate pair, and each byte that is not UTF-8), and of the list of @p items one that
 * cannot be read has no more than what was read of it by then. */
struct proto_json_tolerance {
    const ProtobufCMessageDescriptor *items;
    const char **errors; /* out, in the scratch: of each item what is wrong, or NULL; NULL: of none */
};
/* As proto_json_decode(); @p tolerance NULL: the same. */
THOLE_NODISCARD thole_status proto_json_decode_tolerant(const ProtobufCMessageDescriptor *descriptor,
                                                        thole_slice json, struct codec_scratch *scratch,
                                                        struct proto_json_tolerance *tolerance,
                                                        ProtobufCMessage **ret, thole_error *reterr);
/* Where a member stands that a message has not. */
struct proto_json_unknown {
    const ProtobufCMessageDescriptor *message; /* NULL: there is none */
    thole_slice member;                        /* of the JSON, as it is written between its quotes */
};
/* As proto_json_decode(), but a member that is not known is THOLE_CORRUPT, too, and says where it is. */
THOLE_NODISCARD thole_status proto_json_decode_known(const ProtobufCMessageDescriptor *descriptor,
                                                     thole_slice json, struct codec_scratch *scratch,
                                                     struct proto_json_unknown *ret_unknown,
                                                     ProtobufCMessage **ret, thole_error *reterr);
/* The name of a field in JSON, in memory of @p scratch; "" when there is none. */
const char *proto_json_name(const ProtobufCFieldDescriptor *field, struct codec_scratch *scratch);
/* Whether these are JSON, of a message that may be either: no message in protobuf of thole's begins with this
 * byte, which would be a group. */
bool proto_json_is(thole_slice bytes);
/* Appends the same message in protobuf to @p to. Errors as in decoding. */
THOLE_NODISCARD thole_status proto_json_pack(const ProtobufCMessageDescriptor *descriptor, thole_slice json,
                                             struct buf *to, thole_error *reterr);
/* The body of a message to an instance in protobuf, in @p converted if it is JSON; released by the caller in
 * any case. A body that is no message in JSON stays as it is: it is none in protobuf either, and is rejected
 * as it was sent. */
thole_slice proto_json_inbox_body(thole_slice body, struct buf *converted);
/* Checks what protobuf-c does not check in an unpacked message: texts are UTF-8. (They have no NUL: they are
 * C strings, cut there.) THOLE_CORRUPT names the field. */
THOLE_NODISCARD thole_status proto_texts_check(const ProtobufCMessage *message, thole_error *reterr);
/* Instead: puts ? for each byte that is not UTF-8, in place. */
void proto_texts_mend(ProtobufCMessage *message);
#endif
