#include "pending.h"
#include "forms.h"
#include "json_file.h"
#include "text.h"
#include <inttypes.h>
#include <stdio.h>

enum { ROWS_BYTES_MAX = 64 * 1024 * 1024 };

struct pending_row {
    struct pending_row *next;
    uint64_t execution, id, silent_ms;
    thole_slice worker;
    bool outside;
};

void pending_init(struct pending *pending, bool past)
{
    *pending = (struct pending){.past = past};
    pending->last = &pending->rows;
    arena_init(&pending->arena, ROWS_BYTES_MAX);
}

void pending_release(struct pending *pending)
{
    roster_release(&pending->roster);
    arena_release(&pending->arena);
}

static thole_status keep_row(void *arg, const thole_activity_info *info)
{
    struct pending *pending = arg;
    struct pending_row *row = arena_alloc(&pending->arena, sizeof *row);
    if (row == NULL)
        return THOLE_NOMEM;
    *row = (struct pending_row){.execution = info->execution,
                                .id = info->activity_id,
                                .silent_ms = info->silent_ms,
                                .outside = info->outside};
    *pending->last = row;
    pending->last = &row->next;
    return arena_dup(&pending->arena, info->worker, &row->worker);
}

static const struct pending_row *pending_row_of(const struct pending *pending, uint64_t execution,
                                                uint64_t id)
{
    const struct pending_row *row = pending->rows;
    while (row != NULL && (row->id != id || row->execution != execution))
        row = row->next;
    return row;
}

static void pending_say_note(pending_note_fn *note, void *arg, const char *what, const thole_error *error)
{
    char text[sizeof error->text + 64];
    (void)snprintf(text, sizeof text, "%s: %s", what, error->text);
    note(arg, text);
}

void pending_read(struct pending *pending, thole_client *client, thole_slice instance,
                  const thole_inspection *inspection, pending_note_fn *note, void *arg)
{
    thole_error error = {.status = THOLE_OK};
    bool wanted = false;
    for (size_t i = 0; i < inspection->pending_len; i++)
        wanted |= inspection->pending[i].kind == THOLE_PENDING_ACTIVITY;
    if (!wanted || pending->past)
        return;
    if (thole_client_activities(client, instance, keep_row, pending, &error) == THOLE_OK)
        pending->rows_read = true;
    else
        pending_say_note(note, arg, "which worker has what is not known", &error);
    if (roster_read(&pending->roster, client, &error) != THOLE_OK)
        pending_say_note(note, arg, "what the workers know is not known", &error);
}

static void say_queued(const struct pending *pending, const thole_pending *p, bool has_row,
                       struct pending_said *ret)
{
    if (pending->rows_read && !has_row) {
        ret->state = "between";
        (void)snprintf(ret->text, sizeof ret->text, "on its way to its queue, or completed just now");
    } else if (roster_complaint(&pending->roster, p->queue, p->name, ret->text, sizeof ret->text)) {
        ret->state = roster_workers(&pending->roster, p->queue) == 0 ? "unserved" : "unknown";
        ret->stands = true;
    } else {
        ret->state = "queued";
        (void)snprintf(ret->text, sizeof ret->text, "waits for a worker");
    }
}

void pending_say(const struct pending *pending, uint64_t execution, const thole_pending *p,
                 struct pending_said *ret)
{
    char time[TIME_TEXT_BYTES];
    const struct pending_row *const row = pending_row_of(pending, execution, p->id);
    text_time(p->due_ms, time);
    if (row != NULL && row->worker.len > 0) {
        ret->worker = row->worker;
        ret->silent_ms = row->silent_ms;
    }
    if (pending->past && !p->quarantined && !p->waiting) {
        ret->state = "open";
        (void)snprintf(ret->text, sizeof ret->text, "had not ended then");
    } else if (p->quarantined) {
        ret->state = "quarantined";
        ret->stands = true;
        (void)snprintf(ret->text, sizeof ret->text, "in quarantine%s%s; thole queue poisoned says why",
                       p->due_ms == 0 ? "" : " until ", p->due_ms == 0 ? "" : time);
    } else if (p->waiting) {
        ret->state = "retrying";
        (void)snprintf(ret->text, sizeof ret->text, "failed, its next try is due at %s", time);
    } else if (row != NULL && row->outside) {
        ret->state = "outside";
        (void)snprintf(ret->text, sizeof ret->text, "is completed from outside, with its token");
    } else if (ret->worker.len > 0) {
        ret->state = "running";
        (void)snprintf(ret->text, sizeof ret->text, "worker %.*s has it, heard of %" PRIu64 " s ago",
                       THOLE_FMT(row->worker), row->silent_ms / 1000);
    } else {
        say_queued(pending, p, row != NULL, ret);
    }
}

bool inspection_has_ended(const thole_inspection *inspection)
{
    return inspection->status != THOLE_INSTANCE_RUNNING && inspection->status != THOLE_INSTANCE_PAUSED;
}

static bool pending_json(struct json *json, const struct pending *pending, uint64_t execution,
                         const thole_pending *p)
{
    static const char *const kinds[] = {"", "activity", "timer", "event", "child"};
    struct pending_said said = {.state = NULL};
    json_object(json);
    json_member_text(json, "kind", kinds[p->kind]);
    json_member_number(json, "id", p->id);
    if (p->name.len > 0)
        json_member(json, "name", p->name);
    if (p->kind == THOLE_PENDING_CHILD)
        json_member(json, "child", p->instance);
    json_member_time(json, "asked_for", p->asked_for_ms);
    if (p->kind == THOLE_PENDING_TIMER || p->waiting)
        json_member_time(json, "due", p->due_ms);
    if (p->kind == THOLE_PENDING_ACTIVITY) {
        pending_say(pending, execution, p, &said);
        json_member(json, "queue", p->queue);
        json_member_number(json, "try", p->try_number);
        json_member_text(json, "state", said.state);
        json_member_text(json, "text", said.text);
        if (said.worker.len > 0) {
            json_member(json, "worker", said.worker);
            json_member_number(json, "silent_ms", said.silent_ms);
        }
    }
    json_end(json);
    return said.stands;
}

static bool form_pending(struct json *json, const struct pending *pending, const thole_inspection *inspection)
{
    bool stands = false;
    json_key(json, "pending");
    json_array(json);
    for (size_t i = 0; i < inspection->pending_len; i++)
        stands |= pending_json(json, pending, inspection->execution, &inspection->pending[i]);
    json_end(json);
    return stands;
}

/* Events that nothing has waited for: perhaps their name is mistyped. */
static void kept_json(struct json *json, const thole_inspection *inspection)
{
    if (inspection->kept_len == 0)
        return;
    json_key(json, "events_kept");
    json_array(json);
    for (size_t i = 0; i < inspection->kept_len; i++) {
        json_object(json);
        json_member(json, "name", inspection->kept[i].name);
        json_member_number(json, "count", inspection->kept[i].count);
        json_end(json);
    }
    json_end(json);
}

bool form_inspection(struct json *json, const struct pending *pending, const thole_inspection *inspection,
                     size_t data_max)
{
    form_data(json, "input", inspection->input, data_max);
    if (inspection->input_redacted)
        json_member_bool(json, "input_redacted", true);
    if (inspection_has_ended(inspection)) {
        form_data(json, "output", inspection->output, data_max);
        if (inspection->output_redacted)
            json_member_bool(json, "output_redacted", true);
        if (inspection->error_type.len > 0)
            json_member(json, "error_type", inspection->error_type);
    }
    bool const stands = form_pending(json, pending, inspection);
    kept_json(json, inspection);
    return stands;
}
