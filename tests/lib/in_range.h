/* Whether what was decoded has only numbers of its ranges, as the reader without tables of fields sees it. */
#ifndef THOLE_IN_RANGE_H
#define THOLE_IN_RANGE_H
#include "codec.h"

static inline bool in_range(const ProtobufCMessageDescriptor *type, thole_slice bytes, size_t bytes_max)
{
    struct codec_scratch scratch;
    ProtobufCMessage *message = NULL;
    codec_init(&scratch);
    thole_status status = codec_unpack(type, bytes, bytes_max, &scratch, "message", &message, NULL);
    if (status == THOLE_OK)
        status = codec_ranges_check(message, NULL);
    codec_release(&scratch);
    return status == THOLE_OK;
}
#endif
