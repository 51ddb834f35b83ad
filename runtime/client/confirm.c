#include "confirm.h"
#include "repetition.h"
#include <inttypes.h>

enum { FIRST_PAUSE_MS = 20 }; /* before the history is read; doubled each time */

thole_status confirm_begin(struct watch *watch, const struct message *event, bool own, struct confirming *ret,
                           bool *ret_taken, thole_error *reterr)
{
    enum repetition found = REPETITION_NONE;
    struct place place = {.stream = {.ptr = NULL}};
    struct stored_message last = {0};
    if (own)
        THOLE_TRY(history_repetition(watch->client, event, &found, reterr));
    *ret_taken = found == REPETITION_SAME;
    if (found == REPETITION_OTHER)
        return repetition_refuse(event, reterr);
    thole_status status = place_history(watch->client, watch->instance, &place, reterr);
    if (status == THOLE_OK)
        status = place_find(watch->client, &place, 0, &last, NULL, reterr);
    place_release(&place);
    ret->sequence = last.sequence;
    return status;
}

static thole_status confirm_look(struct watch *watch, const struct message *event,
                                 struct confirming *confirming, bool *ret_taken, thole_error *reterr)
{
    enum repetition found = REPETITION_NONE;
    thole_status const status =
        history_repetition_after(watch->client, event, &confirming->sequence, &found, reterr);
    *ret_taken = found == REPETITION_SAME;
    return found == REPETITION_OTHER ? repetition_refuse(event, reterr) : status;
}

/* A notice may be lost: then only the time tells that it was rejected. */
thole_status confirm_await(struct watch *watch, const struct message *event, struct confirming *confirming,
                           uint64_t until_ms, thole_error *reterr)
{
    bool taken = false;
    for (uint64_t pause_ms = FIRST_PAUSE_MS; client_now_ms() < until_ms; pause_ms *= 2) {
        uint64_t const pause = client_now_ms() + pause_ms;
        bool const decided = watch_sleep(watch, watch_is_decided, pause < until_ms ? pause : until_ms);
        thole_status const status = confirm_look(watch, event, confirming, &taken, reterr);
        if (taken)
            return THOLE_OK;
        if (status != THOLE_OK && status != THOLE_UNAVAILABLE)
            return status;
        if (!decided)
            continue;
        THOLE_TRY(watch_refusal(watch, reterr));
        return thole_fail(reterr, THOLE_CONFLICT, "instance \"%.*s\" has ended; the event was dropped",
                          THOLE_FMT(watch->instance));
    }
    return thole_fail(reterr, THOLE_TIMEOUT,
                      "the event for instance \"%.*s\" is stored, and no engine has taken it within %" PRIu64
                      " ms",
                      THOLE_FMT(watch->instance), watch->client->timeout_ms);
}
