/*
 * The inbox position in a record. What is incorporated above the floor is written as ranges, each as two
 * differences, so that it takes as many bytes as there are messages that wait, not as there are messages that
 * do not; or as a list of sequences, for engines that do not read ranges.
 */
#include "record_position.h"
#include "codec.h"
#include <assert.h>

static size_t varint_bytes(uint64_t number)
{
    size_t bytes = 1;
    while ((number >>= 7) > 0)
        bytes++;
    return bytes;
}

bool position_has(const struct position *position, uint64_t sequence)
{
    bool has = sequence <= position->floor;
    for (size_t i = 0; i < position->ranges_len && !has; i++)
        has = position->ranges[i].first <= sequence && sequence <= position->ranges[i].last;
    return has;
}

uint64_t position_open(const struct position *position, uint64_t last)
{
    uint64_t open = last > position->floor ? last - position->floor : 0;
    for (size_t i = 0; i < position->ranges_len && position->ranges[i].first <= last; i++) {
        struct sequence_range const range = position->ranges[i];
        open -= (range.last < last ? range.last : last) - range.first + 1;
    }
    return open;
}

uint64_t position_sequences(const struct position *position)
{
    uint64_t n = 0;
    for (size_t i = 0; i < position->ranges_len; i++)
        n += position->ranges[i].last - position->ranges[i].first + 1;
    return n;
}

size_t position_bytes_max(const struct position *position)
{
    size_t bytes = 0;
    uint64_t last = position->floor;
    for (size_t i = 0; i < position->ranges_len; i++) {
        struct sequence_range const range = position->ranges[i];
        uint64_t const len = range.last - range.first + 1;
        if (position->listed)
            bytes += (size_t)len * varint_bytes(range.last);
        else
            bytes += varint_bytes(range.first - last - 1) + varint_bytes(len);
        last = range.last;
    }
    return bytes == 0 ? 0 : bytes + 1 + varint_bytes(bytes);
}

/* --- writing ------------------------------------------------------------------------------------- */

static thole_status record_position_list_to_pb(const struct position *from, struct arena *arena,
                                               Thole__V1__Position *ret)
{
    uint64_t const sequences = position_sequences(from);
    if (sequences > POSITION_ABOVE_MAX)
        return THOLE_LIMIT;
    ret->above = arena_array(arena, (size_t)sequences, sizeof *ret->above);
    if (ret->above == NULL)
        return arena_status(arena);
    for (size_t i = 0; i < from->ranges_len; i++)
        for (uint64_t s = from->ranges[i].first; s <= from->ranges[i].last && ret->n_above < sequences; s++)
            ret->above[ret->n_above++] = s;
    return THOLE_OK;
}

static thole_status ranges_to_pb(const struct position *from, struct arena *arena, Thole__V1__Position *ret)
{
    uint64_t last = from->floor;
    if (from->ranges_len > POSITION_ABOVE_MAX)
        return THOLE_LIMIT;
    ret->ranges = arena_array(arena, 2 * from->ranges_len, sizeof *ret->ranges);
    if (ret->ranges == NULL)
        return arena_status(arena);
    for (size_t i = 0; i < from->ranges_len; i++) {
        struct sequence_range const range = from->ranges[i];
        assert(range.first > last + 1 && range.last >= range.first);
        ret->ranges[ret->n_ranges++] = range.first - last - 1;
        ret->ranges[ret->n_ranges++] = range.last - range.first + 1;
        last = range.last;
    }
    return THOLE_OK;
}

thole_status position_to_pb(const struct position *from, struct arena *arena, Thole__V1__Position *ret)
{
    thole__v1__position__init(ret);
    ret->floor = from->floor;
    ret->seen = from->seen;
    ret->seen_ns = from->seen_ns;
    if (from->ranges_len == 0)
        return THOLE_OK;
    return from->listed ? record_position_list_to_pb(from, arena, ret) : ranges_to_pb(from, arena, ret);
}

/* --- reading ------------------------------------------------------------------------------------- */

static thole_status record_position_list_from_pb(const Thole__V1__Position *pb, struct sequence_range *ranges,
                                                 struct position *ret, thole_error *reterr)
{
    uint64_t last = pb->floor == UINT64_MAX ? UINT64_MAX : pb->floor + 1;
    for (size_t i = 0; i < pb->n_above; i++) {
        uint64_t const sequence = pb->above[i];
        if (sequence <= last)
            return thole_fail(reterr, THOLE_CORRUPT, "position lists %llu after %llu",
                              (unsigned long long)sequence, (unsigned long long)last);
        if (i > 0 && sequence == last + 1)
            ranges[ret->ranges_len - 1].last = sequence;
        else
            ranges[ret->ranges_len++] = (struct sequence_range){sequence, sequence};
        last = sequence;
    }
    return THOLE_OK;
}

static thole_status ranges_from_pb(const Thole__V1__Position *pb, struct sequence_range *ranges,
                                   struct position *ret, thole_error *reterr)
{
    uint64_t last = pb->floor;
    if (pb->n_ranges % 2 != 0)
        return thole_fail(reterr, THOLE_CORRUPT, "position has half a range");
    for (size_t i = 0; i < pb->n_ranges; i += 2) {
        uint64_t const open = pb->ranges[i], done = pb->ranges[i + 1];
        if (open == 0 || done == 0 || open > UINT64_MAX - last || done > UINT64_MAX - last - open)
            return thole_fail(reterr, THOLE_CORRUPT, "position has a range of %llu behind %llu after %llu",
                              (unsigned long long)done, (unsigned long long)open, (unsigned long long)last);
        ranges[ret->ranges_len++] = (struct sequence_range){last + open + 1, last + open + done};
        last += open + done;
    }
    return THOLE_OK;
}

thole_status position_from_pb(const Thole__V1__Position *pb, struct arena *arena, struct position *ret,
                              thole_error *reterr)
{
    if (pb == NULL)
        return THOLE_OK;
    bool const listed = pb->n_ranges == 0;
    size_t const n = listed ? pb->n_above : pb->n_ranges / 2;
    if (n > POSITION_ABOVE_MAX)
        return thole_fail(reterr, THOLE_LIMIT, "position lists %zu sequences, at most %d are allowed", n,
                          POSITION_ABOVE_MAX);
    struct sequence_range *const ranges = arena_array(arena, n, sizeof *ranges);
    if (ranges == NULL)
        return codec_full(arena, reterr);
    struct position position = {.floor = pb->floor,
                                .ranges = ranges,
                                .seen = pb->seen,
                                .seen_ns = pb->seen_ns,
                                .listed = listed && n > 0};
    THOLE_TRY(listed ? record_position_list_from_pb(pb, ranges, &position, reterr)
                     : ranges_from_pb(pb, ranges, &position, reterr));
    *ret = position;
    return THOLE_OK;
}
