#include "client_notes.h"
#include "client_standing.h"
#include "remedy.h"
#include "text.h"

bool client_note_standing(const struct standing *standing, thole_slice instance, const char *what,
                          bool resumes, struct buf *to)
{
    if (!standing->known || standing->blocked == BLOCKED_NOT ||
        (resumes && standing->blocked == BLOCKED_PAUSED))
        return false;
    buf_printf(to, "%s is kept until its code runs again: instance \"", what);
    text_lines(to, instance);
    buf_printf(to, "\" %s", standing->text);
    return true;
}

bool client_note_idle(struct thole_client *client, thole_slice instance, const char *what, bool resumes,
                      struct buf *to)
{
    struct standing standing;
    standing_of_idle(client, instance, &standing);
    return client_note_standing(&standing, instance, what, resumes, to);
}

struct cancel_search {
    thole_slice instance;
    uint64_t time_ms; /* 0: not found */
};

static thole_status cancel_search_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    struct cancel_search *const search = arg;
    struct record record;
    struct arena arena;
    (void)sequence;
    arena_init(&arena, CLIENT_ARENA_MAX);
    bool const decoded = history_decode(bytes, search->instance, &arena, &record, NULL) == THOLE_OK;
    for (size_t i = 0; decoded && search->time_ms == 0 && i < record.turn.events_len; i++)
        if (record.turn.events[i].kind == EVENT_CANCEL_REQUESTED)
            search->time_ms = record.turn.time_ms;
    arena_release(&arena);
    return search->time_ms != 0 ? THOLE_CANCELLED : THOLE_OK;
}

bool client_note_cancelled(struct thole_client *client, thole_slice instance, struct buf *to)
{
    struct cancel_search search = {.instance = instance};
    uint64_t execution = 0;
    bool deleted = false;
    char time[TIME_TEXT_BYTES], remedy[THOLE_ID_BYTES_MAX + 64];
    if (history_latest(client, instance, &execution, &deleted, NULL) != THOLE_OK || execution == 0 || deleted)
        return false;
    (void)!client_execution_records(client, instance, execution, cancel_search_record, &search, NULL);
    if (search.time_ms == 0)
        return false;
    text_time(search.time_ms, time);
    buf_text(to, "the cancellation of \"");
    text_lines(to, instance);
    buf_printf(to, "\" was asked for at %s already: this one changes nothing, and its reason is not kept; ",
               time);
    remedy_fill("thole terminate ID ends it at once", instance, remedy, sizeof remedy);
    buf_text(to, remedy);
    return true;
}
