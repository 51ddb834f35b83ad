/*
 * Memory lent to the machines is taken back: the unit tests, the simulation, the golden tests and those of
 * the examples are linked so that calls of partition_input(), worker_input(), instance_turn() and
 * instance_replay() come to lent.c (the linker's --wrap). It gives them a copy of their input and overwrites
 * the copy when the contract ends the loan. A machine that kept a borrowed slice then has other bytes, and
 * with AddressSanitizer freed ones.
 */
#include "lent.h"
#include "instance.h"
#include "partition.h"
#include "worker.h"
#include <stdlib.h>
#include <string.h>

enum { TAKEN_BACK = 0xA5 };

struct loan { /* one allocation of its own for each thing, so that a sanitizer sees its end */
    struct loan *next;
    size_t len;
    _Alignas(max_align_t) uint8_t bytes[];
};

static _Thread_local bool machine_runs;

bool lent_machine_runs(void)
{
    return machine_runs;
}

static void *lend(struct loan **loans, const void *from, size_t len)
{
    bool const runs = machine_runs;
    machine_runs = false;
    struct loan *loan = malloc(sizeof *loan + len);
    machine_runs = runs;
    if (loan == NULL)
        abort();
    loan->next = *loans;
    loan->len = len;
    *loans = loan;
    if (len > 0)
        memcpy(loan->bytes, from, len);
    return loan->bytes;
}

static void take_back(struct loan **loans)
{
    for (struct loan *loan = *loans, *next; loan != NULL; loan = next) {
        next = loan->next;
        memset(loan->bytes, TAKEN_BACK, loan->len);
        free(loan);
    }
    *loans = NULL;
}

static void lend_slice(struct loan **loans, thole_slice *slice)
{
    if (slice->len > 0)
        slice->ptr = lend(loans, slice->ptr, slice->len);
}

/* A copy of an array, to be changed in place. */
#define LEND_ARRAY(loans, items, len) ((len) == 0 ? NULL : lend((loans), (items), (len) * sizeof *(items)))

/* ---- events ---- */

static const struct retry *lend_retry(struct loan **loans, const struct retry *from)
{
    if (from == NULL)
        return NULL;
    struct retry *retry = lend(loans, from, sizeof *retry);
    thole_slice *types = LEND_ARRAY(loans, from->final_types, from->final_types_len);
    for (size_t i = 0; i < from->final_types_len; i++)
        lend_slice(loans, &types[i]);
    retry->final_types = types;
    return retry;
}

static const struct event *lend_events(struct loan **loans, const struct event *from, size_t n)
{
    struct event *events = LEND_ARRAY(loans, from, n);
    for (size_t i = 0; i < n; i++) {
        struct event *e = &events[i];
        thole_slice *const slices[] = {&e->name,       &e->queue,      &e->input,   &e->worker, &e->data,
                                       &e->request_id, &e->error_type, &e->details, &e->target};
        for (size_t k = 0; k < sizeof slices / sizeof slices[0]; k++)
            lend_slice(loans, slices[k]);
        if (e->kind == EVENT_STARTED)
            lend_slice(loans, &e->parent.instance);
        e->retry = lend_retry(loans, e->retry);
    }
    return events;
}

/* ---- instances ---- */

/* A turn's events may point to what was received: it is the instance's until the next call. */
static _Thread_local struct loan *of_turn;

thole_status __real_instance_turn(struct instance *, const struct turn_in *, struct turn_out *,
                                  thole_error *);
thole_status __wrap_instance_turn(struct instance *instance, const struct turn_in *in, struct turn_out *ret,
                                  thole_error *reterr)
{
    struct turn_in own = *in;
    take_back(&of_turn);
    own.received = lend_events(&of_turn, in->received, in->received_len);
    return __real_instance_turn(instance, &own, ret, reterr);
}

thole_status __real_instance_replay(struct instance *, const struct turn *, thole_error *);
thole_status __wrap_instance_replay(struct instance *instance, const struct turn *turn, thole_error *reterr)
{
    struct loan *loans = NULL;
    struct turn own = *turn;
    lend_slice(&loans, &own.instance);
    lend_slice(&loans, &own.blocked_text);
    own.events = lend_events(&loans, turn->events, turn->events_len);
    thole_status const status = __real_instance_replay(instance, &own, reterr);
    take_back(&loans);
    return status;
}

/* ---- the partition ---- */

static const struct log_record *lend_records(struct loan **loans, const struct log_record *from, size_t n)
{
    struct log_record *records = LEND_ARRAY(loans, from, n);
    for (size_t i = 0; i < n; i++)
        lend_slice(loans, &records[i].bytes);
    return records;
}

static const struct batch_activity *lend_activities(struct loan **loans, const struct batch_activity *from,
                                                    size_t n)
{
    struct batch_activity *rows = LEND_ARRAY(loans, from, n);
    for (size_t i = 0; i < n; i++) {
        lend_slice(loans, &rows[i].instance);
        lend_slice(loans, &rows[i].queue);
        lend_slice(loans, &rows[i].activity);
        lend_slice(loans, &rows[i].details);
    }
    return rows;
}

static void lend_live(struct loan **loans, struct in_live *live)
{
    struct batch_instance *blocked = LEND_ARRAY(loans, live->blocked, live->blocked_len);
    thole_slice *names = LEND_ARRAY(loans, live->names, live->names_len);
    for (size_t i = 0; i < live->blocked_len; i++)
        lend_slice(loans, &blocked[i].instance);
    for (size_t i = 0; i < live->names_len; i++)
        lend_slice(loans, &names[i]);
    live->blocked = blocked;
    live->names = names;
    live->counts = LEND_ARRAY(loans, live->counts, live->names_len);
}

static void lend_timers(struct loan **loans, struct in_timers *in)
{
    struct batch_timer *timers = LEND_ARRAY(loans, in->timers, in->timers_len);
    for (size_t i = 0; i < in->timers_len; i++)
        lend_slice(loans, &timers[i].instance);
    in->timers = timers;
}

static void lend_crashes(struct loan **loans, struct in_crashes *in)
{
    struct partition_crash *crashes = LEND_ARRAY(loans, in->crashes, in->crashes_len);
    for (size_t i = 0; i < in->crashes_len; i++) {
        lend_slice(loans, &crashes[i].instance);
        lend_slice(loans, &crashes[i].text);
    }
    in->crashes = crashes;
}

static void lend_results(struct loan **loans, struct in_results *in)
{
    struct partition_result *results = LEND_ARRAY(loans, in->results, in->results_len);
    for (size_t i = 0; i < in->results_len; i++)
        lend_slice(loans, &results[i].instance);
    in->results = results;
}

static void lend_ids(struct loan **loans, struct in_ids *in)
{
    in->hashes = LEND_ARRAY(loans, in->hashes, in->hashes_len);
}

static void lend_dispensable(struct loan **loans, struct in_dispensable *in)
{
    in->sequences = LEND_ARRAY(loans, in->sequences, in->len);
    lend_slice(loans, &in->hashes);
}

static void lend_text(struct loan **loans, const char **text)
{
    if (*text != NULL)
        *text = lend(loans, *text, strlen(*text) + 1);
}

static void lend_message(struct loan **loans, struct in_message *message)
{
    lend_slice(loans, &message->instance);
    lend_slice(loans, &message->route);
    lend_slice(loans, &message->subject);
    lend_slice(loans, &message->bytes);
    lend_slice(loans, &message->sender.name);
    lend_slice(loans, &message->sender.client);
    lend_slice(loans, &message->sender.trace.parent);
    lend_slice(loans, &message->sender.trace.list);
}

static void lend_query(struct loan **loans, struct in_query *query)
{
    lend_slice(loans, &query->instance);
    lend_slice(loans, &query->query);
    lend_slice(loans, &query->input);
}

/* All that the input points to. */
static void lend_input(struct loan **loans, struct partition_in *in)
{
    switch (in->kind) {
    case PARTITION_IN_STEP_DOWN: lend_text(loans, &in->step_down.text); break;
    case PARTITION_IN_APPEND_FAILED: lend_text(loans, &in->append_failed.text); break;
    case PARTITION_IN_TAIL:
        in->tail.records = lend_records(loans, in->tail.records, in->tail.records_len);
        lend_slice(loans, &in->tail.folded.bytes);
        break;
    case PARTITION_IN_LOG: in->log.records = lend_records(loans, in->log.records, in->log.records_len); break;
    case PARTITION_IN_HISTORY:
        lend_slice(loans, &in->history.instance);
        in->history.records = lend_records(loans, in->history.records, in->history.records_len);
        break;
    case PARTITION_IN_IDS: lend_ids(loans, &in->ids); break;
    case PARTITION_IN_DISPENSABLE: lend_dispensable(loans, &in->dispensable); break;
    case PARTITION_IN_LIVE: lend_live(loans, &in->live); break;
    case PARTITION_IN_TIMERS: lend_timers(loans, &in->timers); break;
    case PARTITION_IN_APPLIED:
        in->applied.removed = lend_activities(loans, in->applied.removed, in->applied.removed_len);
        break;
    case PARTITION_IN_MESSAGE: lend_message(loans, &in->message); break;
    case PARTITION_IN_RESULTS: lend_results(loans, &in->results); break;
    case PARTITION_IN_CRASHES: lend_crashes(loans, &in->crashes); break;
    case PARTITION_IN_QUERY: lend_query(loans, &in->query); break;
    case PARTITION_IN_OPEN:
    case PARTITION_IN_CLOSE:
    case PARTITION_IN_RIVAL:
    case PARTITION_IN_DELETED:
    case PARTITION_IN_APPENDED:
    case PARTITION_IN_REMOVED:
    case PARTITION_IN_STORE_OPENED:
    case PARTITION_IN_STORE_RESET:
    case PARTITION_IN_PUBLISHED:
    case PARTITION_IN_SENT:
    case PARTITION_IN_EMITTED:
    case PARTITION_IN_INBOX_BACK:
    case PARTITION_IN_REJECTED: break;
    }
}

thole_status __real_partition_input(struct partition *, const struct partition_in *, uint64_t);
thole_status __wrap_partition_input(struct partition *p, const struct partition_in *in, uint64_t now_ms)
{
    struct loan *loans = NULL;
    struct partition_in own = *in;
    lend_input(&loans, &own);
    machine_runs = true;
    thole_status const status = __real_partition_input(p, &own, now_ms);
    machine_runs = false;
    take_back(&loans);
    return status;
}

/* ---- the worker ---- */

thole_status __real_worker_input(struct worker_machine *, const struct worker_in *, uint64_t);
thole_status __wrap_worker_input(struct worker_machine *w, const struct worker_in *in, uint64_t now_ms)
{
    struct loan *loans = NULL;
    struct worker_in own = *in;
    struct worker_row *rows = LEND_ARRAY(&loans, in->rows, in->rows_len);
    for (size_t i = 0; i < in->rows_len; i++)
        lend_slice(&loans, &rows[i].key.instance);
    own.rows = rows;
    own.activity_ids = LEND_ARRAY(&loans, in->activity_ids, in->activity_ids_len);
    lend_slice(&loans, &own.key.instance);
    lend_slice(&loans, &own.cancel_kind);
    lend_slice(&loans, &own.reason);
    machine_runs = true;
    thole_status const status = __real_worker_input(w, &own, now_ms);
    machine_runs = false;
    take_back(&loans);
    return status;
}
