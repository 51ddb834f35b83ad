/* What the codecs of records, messages and heartbeats share: protobuf-c over our arenas and buffers. */
#ifndef THOLE_CODEC_H
#define THOLE_CODEC_H
#include "arena.h"
#include "buf.h"
#include <protobuf-c/protobuf-c.h>

/* What unpacking may take beside the bytes themselves: a hostile message of 8 MiB cannot ask for more. */
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

/* A protobuf field that borrows the slice. */
ProtobufCBinaryData codec_bytes(thole_slice slice);
/* The same the other way. */
thole_slice codec_slice(ProtobufCBinaryData bytes);
/* Copies a field into @p arena; empty stays empty. THOLE_LIMIT, THOLE_NOMEM. */
THOLE_NODISCARD thole_status codec_dup(struct arena *arena, ProtobufCBinaryData bytes, thole_slice *ret,
                                       thole_error *reterr);
/* The status and the text of an allocation from @p arena that gave NULL. */
THOLE_NODISCARD thole_status codec_full(const struct arena *arena, thole_error *reterr);
/* Turns what id_check() and name_check() say about stored bytes into THOLE_CORRUPT, text kept. */
THOLE_NODISCARD thole_status codec_corrupt(thole_status status, thole_error *reterr);
#endif
