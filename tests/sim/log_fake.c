#include "log_fake.h"
#include "checks.h"
#include "engine_node.h"
#include "nonces.h"
#include "orchestrations.h"
#include "result_list.h"
#include <string.h>

struct log_stream *log_stream_create(struct world *w, uint32_t partition)
{
    struct log_stream *log = keep(w, sizeof *log);
    log->partition = partition;
    return log;
}

uint64_t log_append(struct world *w, struct log_stream *log, const struct log_append *append)
{
    if (append->expected_last != log->len && w->mutation != MUTATION_APPEND_ANY) {
        w->stats.refused++;
        return 0;
    }
    if (w->mutation == MUTATION_ACK_LOSES && append->kind == RECORD_TURN && rnd(w, 50) == 0)
        return log->len + 1;
    log->entries = grown(w, log->entries, log->len, &log->cap, sizeof *log->entries);
    struct log_entry *entry = &log->entries[log->len++];
    *entry = (struct log_entry){.sequence = log->len,
                                .kind = append->kind,
                                .instance = append->instance,
                                .execution = append->execution,
                                .bytes = keep_slice(w, append->bytes)};
    w->stats.records++;
    checks_on_append(w, log, entry);
    return entry->sequence;
}

void log_delete(struct world *w, struct log_stream *log, uint64_t sequence)
{
    if (sequence == 0 || sequence > log->len || log->entries[sequence - 1].deleted)
        return;
    checks_on_delete(w, log, &log->entries[sequence - 1]);
    log->entries[sequence - 1].deleted = true;
    w->stats.deleted++;
}

void log_remove(struct world *w, struct log_stream *log, uint64_t sequence, uint64_t by)
{
    struct log_entry *entry = &log->entries[sequence - 1];
    if (entry->deleted)
        return;
    checks_on_remove(w, log, entry, by);
    entry->deleted = true;
    w->stats.removed++;
}

struct log_records log_read(struct world *w, const struct log_stream *log, uint64_t from, uint64_t to,
                            size_t instance)
{
    struct log_records records = {NULL, 0};
    size_t cap = 0;
    for (uint64_t s = from == 0 ? 1 : from; s <= to && s <= log->len; s++) {
        const struct log_entry *entry = &log->entries[s - 1];
        if (entry->deleted || (instance != SIZE_MAX && entry->instance != instance))
            continue;
        records.items = grown(w, records.items, records.len, &cap, sizeof *records.items);
        records.items[records.len++] = (struct log_record){entry->sequence, entry->bytes, entry->execution};
    }
    if (w->mutation == MUTATION_LOAD_STALE && instance != SIZE_MAX && records.len > 1)
        records.len--;
    return records;
}

uint64_t log_last_epoch_opened(const struct log_stream *log)
{
    for (size_t i = log->len; i > 0; i--)
        if (log->entries[i - 1].kind == RECORD_EPOCH_OPENED && !log->entries[i - 1].deleted)
            return log->entries[i - 1].sequence;
    return 0;
}

bool log_damage(struct world *w, struct log_stream *log)
{
    size_t n = 0;
    for (size_t i = 0; i < log->len; i++)
        n += model_may_be_damaged(w, log, &log->entries[i]);
    if (n == 0)
        return false;
    size_t left = (size_t)rnd(w, n) + 1;
    struct log_entry *entry = log->entries;
    while (!model_may_be_damaged(w, log, entry) || --left > 0)
        entry++;
    entry->bytes = THOLE_STR("\xff\xff damaged");
    model_of(w, entry->instance)->damaged = true;
    model_position_lost(&w->model->partitions[log->partition], entry->sequence);
    trace(w, "hist.%u #%" PRIu64 " of %.*s is damaged", log->partition, entry->sequence,
          THOLE_FMT(w->instances[entry->instance]));
    return true;
}

struct inbox_stream *inbox_stream_create(struct world *w, uint32_t partition)
{
    struct inbox_stream *inbox = keep(w, sizeof *inbox);
    inbox->partition = partition;
    inbox->first = 1;
    return inbox;
}

/* Said again, apart from what the machine does. */
static enum reject_code why_not(const struct world *w, const struct inbox_entry *entry, thole_status decoded)
{
    const struct message *m = &entry->message;
    bool const sized = m->kind == MESSAGE_START || m->kind == MESSAGE_EVENT;
    bool const asked = m->request_id.len > 0 && m->request_id.ptr[0] != '<';
    if (entry->refused != REJECT_NONE)
        return entry->refused;
    if (decoded != THOLE_OK)
        return decoded == THOLE_UNSUPPORTED ? REJECT_UNSUPPORTED
               : decoded == THOLE_LIMIT     ? REJECT_TOO_LARGE
                                            : REJECT_MALFORMED;
    if (!thole_slice_equal(m->instance, w->instances[entry->instance]))
        return REJECT_INSTANCE;
    if (message_route_check(m, entry->route, NULL) != THOLE_OK)
        return REJECT_ROUTE;
    if (nonce_check(test_nonce_key(), m, message_route_sender(entry->route), NULL) != THOLE_OK)
        return REJECT_NONCE;
    if (asked && id_check(m->request_id, NULL) != THOLE_OK)
        return REJECT_REQUEST_ID;
    return sized && (m->data.len > SIM_PAYLOAD_MAX || m->event_data.len > SIM_PAYLOAD_MAX) ? REJECT_TOO_LARGE
                                                                                           : REJECT_NONE;
}

static struct inbox_entry *next_entry(struct world *w, struct inbox_stream *inbox)
{
    inbox->entries = grown(w, inbox->entries, inbox->len, &inbox->cap, sizeof *inbox->entries);
    struct inbox_entry *entry = &inbox->entries[inbox->len++];
    *entry = (struct inbox_entry){.sequence = inbox->len, .stored_ns = ++inbox->stored_ns};
    return entry;
}

static void judge(struct world *w, const struct inbox_stream *inbox, struct inbox_entry *entry)
{
    thole_error err = {0};
    thole_status const decoded = message_decode(entry->bytes, &w->memory, &entry->message, &err);
    entry->why = why_not(w, entry, decoded);
    entry->valid = entry->why == REJECT_NONE;
    trace(w, "in.%u #%" PRIu64 " for %.*s: kind %d #%" PRIu64, inbox->partition, entry->sequence,
          THOLE_FMT(w->instances[entry->instance]), entry->valid ? (int)entry->message.kind : 0,
          entry->message.task);
}

uint64_t inbox_publish(struct world *w, size_t instance, thole_slice bytes, enum message_sender sender)
{
    struct message_route route = {.text = "none.none"};
    struct message message;
    struct arena arena;
    arena_init(&arena, 2 * MESSAGE_BYTES_MAX);
    if (message_decode(bytes, &arena, &message, NULL) == THOLE_OK)
        route = message_route(&message, sender);
    arena_release(&arena);
    return inbox_publish_as(w, instance, bytes, thole_slice_from(route.text), REJECT_NONE);
}

uint64_t inbox_publish_as(struct world *w, size_t instance, thole_slice bytes, thole_slice route,
                          enum reject_code refused)
{
    struct inbox_stream *inbox = w->inboxes[instance_partition(w, instance)];
    struct inbox_entry *entry = next_entry(w, inbox);
    entry->instance = instance;
    entry->refused = refused;
    entry->route = keep_slice(w, route);
    entry->bytes = keep_slice(w, bytes);
    judge(w, inbox, entry);
    engines_inbox_stirs(w, inbox->partition);
    return entry->sequence;
}

static void take_part(struct world *w, const struct inbox_stream *inbox, struct inbox_entry *part,
                      const struct result_item *item)
{
    part->instance = instance_index(w, item->instance);
    if (part->instance == SIZE_MAX) {
        broken(w, "a list has a result of %.*s, which nobody ever named", THOLE_FMT(item->instance));
        return;
    }
    part->refused =
        instance_partition(w, part->instance) == inbox->partition ? REJECT_NONE : REJECT_PARTITION;
    part->route = THOLE_STR("result.worker");
    part->bytes = item->bytes;
    judge(w, inbox, part);
}

uint64_t inbox_publish_list(struct world *w, uint32_t partition, thole_slice bytes)
{
    struct inbox_stream *inbox = w->inboxes[partition];
    struct inbox_entry *entry = next_entry(w, inbox);
    struct inbox_entry *part = entry;
    struct result_list list;
    struct result_item item;
    size_t len = 0;
    if (result_list_read(keep_slice(w, bytes), &list, &len, NULL) != THOLE_OK)
        broken(w, "a list of results cannot be read");
    entry->parts = (uint32_t)len;
    for (size_t i = 0; i < len && result_list_next(&list, &item); i++) {
        if (i > 0) {
            part->more = keep(w, sizeof *part);
            *part->more = (struct inbox_entry){.sequence = entry->sequence,
                                               .stored_ns = entry->stored_ns,
                                               .part = (uint32_t)i,
                                               .parts = entry->parts};
            part = part->more;
        }
        take_part(w, inbox, part, &item);
    }
    w->stats.lists++;
    w->stats.listed += len;
    engines_inbox_stirs(w, partition);
    return entry->sequence;
}

const struct inbox_entry *inbox_result(const struct inbox_entry *entry, size_t instance, uint64_t execution,
                                       uint64_t id, uint32_t try_number)
{
    for (const struct inbox_entry *e = entry; e != NULL; e = e->more) {
        const struct message *m = &e->message;
        if (e->valid && e->instance == instance && m->kind == MESSAGE_ACTIVITY_RESULT &&
            m->execution == execution && m->task == id &&
            (m->try_number == try_number || (m->try_number == 0 && try_number == 1)))
            return e;
    }
    return NULL;
}

static struct inbox_entry *stored_at(struct inbox_entry *entries, size_t len, uint64_t sequence,
                                     uint64_t stored_ns)
{
    for (size_t i = 0; i < len; i++)
        if (entries[i].sequence == sequence && entries[i].stored_ns == stored_ns)
            return &entries[i];
    return NULL;
}

void inbox_reject(struct world *w, struct inbox_stream *inbox, const struct out_reject *out)
{
    struct inbox_entry *entry = stored_at(inbox->entries, inbox->len, out->sequence, out->stored_ns);
    if (entry == NULL)
        entry = stored_at(inbox->lost, inbox->lost_len, out->sequence, out->stored_ns);
    while (entry != NULL && entry->part < out->part)
        entry = entry->more;
    if (entry == NULL) {
        broken(w, "partition %u rejects inbox message %" PRIu64 ", which was never stored", inbox->partition,
               out->sequence);
        return;
    }
    w->stats.rejected += !entry->rejected;
    entry->rejected = true;
    if (entry->why != out->code && !(entry->valid && out->code == REJECT_UNREADABLE))
        broken(w, "inbox message %u/%" PRIu64 " is rejected as %s, it is %s", inbox->partition, out->sequence,
               reject_code_name(out->code), reject_code_name(entry->why));
    if (out->message_bytes < out->bytes.len || out->bytes.len > REJECTED_PAYLOAD_MAX ||
        (!entry->valid && (out->message_bytes != entry->bytes.len ||
                           memcmp(out->bytes.ptr, entry->bytes.ptr, out->bytes.len) != 0)))
        broken(w, "inbox message %u/%" PRIu64 " is rejected with other bytes", inbox->partition,
               out->sequence);
}

void inbox_purge(struct world *w, struct inbox_stream *inbox, uint64_t below)
{
    if (w->mutation == MUTATION_PURGE_ALL)
        below = inbox->len;
    if (below > inbox->len + 1)
        below = inbox->len + 1;
    if (below <= inbox->first)
        return;
    checks_on_purge(w, inbox, below);
    for (uint64_t s = inbox->first; s < below; s++)
        inbox->entries[s - 1].purged = true;
    inbox->first = below;
}

const struct inbox_entry *inbox_next(const struct inbox_stream *inbox, uint64_t from)
{
    uint64_t const sequence = from < inbox->first ? inbox->first : from;
    return sequence <= inbox->len ? &inbox->entries[sequence - 1] : NULL;
}

bool inbox_holds(const struct inbox_stream *inbox, uint64_t sequence, uint64_t stored_ns)
{
    if (sequence == 0)
        return true;
    if (sequence > inbox->len)
        return false;
    const struct inbox_entry *entry = &inbox->entries[sequence - 1];
    return entry->purged || entry->stored_ns == stored_ns;
}

static void go_back(struct world *w, struct inbox_stream *inbox, uint64_t last, bool anew)
{
    trace(w, "in.%u %s after #%" PRIu64 " of %zu", inbox->partition, anew ? "is made anew" : "loses its tail",
          last, inbox->len);
    for (uint64_t s = last + 1; s <= inbox->len; s++) {
        inbox->lost = grown(w, inbox->lost, inbox->lost_len, &inbox->lost_cap, sizeof *inbox->lost);
        inbox->lost[inbox->lost_len++] = inbox->entries[s - 1];
    }
    inbox->len = last;
    inbox->first = anew ? 1 : inbox->first;
    inbox->life++;
    checks_on_back(w, inbox);
    engines_inbox_went_back(w, inbox->partition);
}

bool inbox_loses(struct world *w, struct inbox_stream *inbox)
{
    uint64_t const needed = model_last_needed(w, inbox);
    bool const anew = needed < inbox->first && rnd(w, 2) == 0;
    if (needed == inbox->len)
        return false;
    go_back(w, inbox, anew ? 0 : between(w, needed, inbox->len - 1), anew);
    return true;
}
