#include "client_standing.h"
#include "remedy.h"
#include "standstill.h"
#include <stdio.h>
#include <string.h>

void standing_note(struct standing *standing, thole_slice instance, const struct turn *turn)
{
    enum { WHY_MAX = 200, STANDING_REMEDY_BYTES = 2 * THOLE_ID_BYTES_MAX + 200 };
    standing->known = true;
    standing->blocked = turn->ran ? BLOCKED_NOT : turn->blocked;
    struct standstill const stop = standstill_of(standing->blocked);
    const char *const before = stop.remedy == NULL ? "" : ": ";
    char remedy[STANDING_REMEDY_BYTES];
    remedy_fill(stop.remedy == NULL ? "" : stop.remedy, instance, remedy, sizeof remedy);
    (void)snprintf(standing->why, sizeof standing->why, "%.*s",
                   THOLE_FMT(turn->ran ? THOLE_STR("") : turn->blocked_text));
    thole_slice const whole = standing->blocked == BLOCKED_NOT ? (thole_slice){0} : turn->blocked_text;
    thole_slice const why = text_cut(whole, WHY_MAX);
    if (why.len == 0)
        (void)snprintf(standing->text, sizeof standing->text, "%s%s%s", stop.state, before, remedy);
    else
        (void)snprintf(standing->text, sizeof standing->text, "%s (%.*s%s)%s%s", stop.state, THOLE_FMT(why),
                       why.len < whole.len ? "..." : "", before, remedy);
}

bool standing_is_against(const struct standing *standing, enum message_kind kind)
{
    bool const paused = standing->blocked == BLOCKED_PAUSED;
    if (!standing->known)
        return false;
    switch (kind) {
    case MESSAGE_RETRY:
        return paused || standing->blocked == BLOCKED_NOT || standing->blocked == BLOCKED_NO_CODE ||
               standing->blocked == BLOCKED_NOT_STARTED;
    case MESSAGE_RESUME: return !paused;
    case MESSAGE_PAUSE: return paused;
    default: return false;
    }
}

thole_status standing_conflict(const struct standing *standing, enum message_kind kind, thole_slice instance,
                               thole_error *reterr)
{
    const char *const what = kind == MESSAGE_RETRY    ? "is not Stuck, so there is nothing to try again; it"
                             : kind == MESSAGE_RESUME ? "is not paused, so there is nothing to resume; it"
                                                      : "is paused already: nothing was changed. It";
    return thole_fail(reterr, THOLE_CONFLICT, "instance \"%.*s\" %s %s", THOLE_FMT(instance), what,
                      standing->text);
}

void standing_of_idle(struct thole_client *client, thole_slice instance, struct standing *ret)
{
    struct place place = {.stream = {.ptr = NULL}};
    struct stored_message last = {0};
    struct record record = {.kind = RECORD_UNKNOWN};
    struct arena arena;
    struct buf body;
    arena_init(&arena, CLIENT_ARENA_MAX);
    buf_init(&body, RECORD_BYTES_MAX);
    *ret = (struct standing){.known = false};
    thole_status status = place_history(client, instance, &place, NULL);
    if (status == THOLE_OK)
        status = place_find(client, &place, 0, &last, &body, NULL);
    if (status == THOLE_OK && last.sequence > 0 &&
        history_decode(buf_bytes(&body), instance, &arena, &record, NULL) == THOLE_OK &&
        record.kind == RECORD_TURN && record.turn.execution > 0 && !record.turn.ran &&
        turn_end(&record.turn) == NULL)
        standing_note(ret, instance, &record.turn);
    buf_release(&body);
    arena_release(&arena);
    place_release(&place);
}
