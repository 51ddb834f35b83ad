#include "record_folded.h"
#include "codec.h"
#include <assert.h>

thole_status folded_to_pb(const struct folded *from, struct arena *arena, Thole__V1__Folded *ret)
{
    uint64_t last = 0;
    thole__v1__folded__init(ret);
    assert(from->len <= FOLDED_MAX && from->hashes.len == from->len * FOLDED_HASH_BYTES);
    ret->sequences = arena_array(arena, from->len, sizeof *ret->sequences);
    if (ret->sequences == NULL)
        return arena_status(arena);
    for (size_t i = 0; i < from->len; i++) {
        assert(from->sequences[i] > last);
        ret->sequences[ret->n_sequences++] = from->sequences[i] - last;
        last = from->sequences[i];
    }
    ret->hashes = codec_bytes(from->hashes);
    ret->deleted = from->deleted;
    ret->looked = from->looked;
    ret->time_ms = from->time_ms;
    return THOLE_OK;
}

thole_status folded_from_pb(const Thole__V1__Folded *pb, struct arena *arena, struct folded *ret,
                            thole_error *reterr)
{
    uint64_t last = 0;
    *ret = (struct folded){.len = 0};
    if (pb == NULL)
        return THOLE_OK;
    if (pb->n_sequences == 0 || pb->n_sequences > FOLDED_MAX ||
        pb->hashes.len != pb->n_sequences * FOLDED_HASH_BYTES)
        return thole_fail(reterr, THOLE_CORRUPT,
                          "a record lists %zu dispensable ones with %zu bytes of hashes", pb->n_sequences,
                          pb->hashes.len);
    uint64_t *const sequences = arena_array(arena, pb->n_sequences, sizeof *sequences);
    if (sequences == NULL)
        return codec_full(arena, reterr);
    for (size_t i = 0; i < pb->n_sequences; i++) {
        if (pb->sequences[i] == 0 || pb->sequences[i] > UINT64_MAX - last)
            return thole_fail(reterr, THOLE_CORRUPT,
                              "a record lists a dispensable one at #%llu and %llu behind",
                              (unsigned long long)last, (unsigned long long)pb->sequences[i]);
        last += pb->sequences[i];
        sequences[i] = last;
    }
    struct folded folded = {.sequences = sequences,
                            .len = pb->n_sequences,
                            .deleted = pb->deleted,
                            .looked = pb->looked,
                            .time_ms = pb->time_ms};
    THOLE_TRY(codec_dup(arena, pb->hashes, &folded.hashes, reterr));
    *ret = folded;
    return THOLE_OK;
}
