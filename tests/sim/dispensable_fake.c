#include "dispensable_fake.h"
#include "checks.h"
#include "churn_fake.h"
#include "dispensable.h"
#include <inttypes.h>
#include <string.h>

static bool is_list(const struct log_entry *entry)
{
    struct arena arena;
    struct record record;
    arena_init(&arena, RECORD_BYTES_MAX * 2);
    bool const is = entry->kind == RECORD_POSITION && !entry->deleted &&
                    record_decode(entry->bytes, &arena, &record, NULL) == THOLE_OK && record.folded.len > 0;
    arena_release(&arena);
    return is;
}

/* The subjects of control records, in the order in which they are looked at. */
enum control { CONTROL_LIST, CONTROL_POSITION, CONTROL_OPENING, CONTROLS };

static bool is_control(const struct log_entry *entry, enum control control)
{
    if (control == CONTROL_OPENING || entry->deleted)
        return !entry->deleted && entry->kind == RECORD_EPOCH_OPENED;
    return entry->kind == RECORD_POSITION && is_list(entry) == (control == CONTROL_LIST);
}

static bool is_between(const struct log_stream *log, uint64_t from, uint64_t until)
{
    for (uint64_t s = from + 1; s < until; s++)
        if (!log->entries[s - 1].deleted && !is_control(&log->entries[s - 1], CONTROL_POSITION))
            return true;
    return false;
}

static bool is_last(const struct log_stream *log, const struct log_entry *deletion)
{
    for (size_t i = (size_t)deletion->sequence; i < log->len; i++)
        if (log->entries[i].instance == deletion->instance && !log->entries[i].deleted)
            return false;
    return true;
}

static void look_at_deletions(struct world *w, const struct log_stream *log, struct dispensable *d,
                              const struct out_find_dispensable *asked)
{
    enum dispensable_verdict verdict = DISPENSABLE_PASSED;
    for (uint64_t s = asked->looked + 1; s <= log->len && verdict >= DISPENSABLE_PASSED; s++) {
        const struct log_entry *const e = &log->entries[s - 1];
        if (e->kind == RECORD_DELETED && !e->deleted)
            verdict =
                dispensable_deletion(d, s, e->bytes, is_last(log, e) && churn_asks_no_more(w, e->instance));
    }
}

struct in_dispensable dispensable_look(struct world *w, const struct log_stream *log,
                                       const struct out_find_dispensable *asked)
{
    struct dispensable *const d = dispensable_create(asked, THOLE_STR("sim"), log->partition);
    uint64_t from, until;
    for (enum control control = 0; control < CONTROLS; control++) {
        bool more = true;
        for (size_t i = 0; i < log->len && more; i++)
            if (is_control(&log->entries[i], control))
                more = dispensable_control(d, i + 1, log->entries[i].bytes);
    }
    while (dispensable_next_epoch(d, &from, &until))
        if (!is_between(log, from, until) || w->mutation == MUTATION_EPOCHS_GO)
            dispensable_epoch(d);
    look_at_deletions(w, log, d, asked);
    struct in_dispensable in = dispensable_list(d);
    uint64_t *const sequences = keep(w, (in.len + 1) * sizeof *sequences);
    if (in.len > 0)
        memcpy(sequences, in.sequences, in.len * sizeof *sequences);
    in.sequences = sequences;
    in.hashes = keep_slice(w, in.hashes);
    dispensable_destroy(d);
    return in;
}

bool dispensable_removal(struct world *w, struct log_stream *log, uint64_t by,
                         const struct out_remove_records *asked)
{
    for (size_t i = 0; i < asked->len; i++) {
        if (strikes(w, FAULT_STATEMENT, 30))
            return false;
        struct log_entry *const entry = &log->entries[asked->sequences[i] - 1];
        if (entry->deleted)
            continue;
        checks_on_dispense(w, log, entry, by);
        entry->deleted = true;
        w->stats.dispensed++;
    }
    return true;
}

struct log_record dispensable_list_last(const struct log_stream *log)
{
    for (size_t i = log->len; i > 0; i--)
        if (is_list(&log->entries[i - 1]))
            return (struct log_record){.sequence = i, .bytes = log->entries[i - 1].bytes};
    return (struct log_record){.sequence = 0};
}
