/* worker_check() finds what is broken: a machine with a lease in most states, and one thing changed in each
 * row. */
#include "proofs.h"
#include "thole_cunit.h"
#include "worker_machine.h"
#include <stdlib.h>

enum { SLOTS = 8, IDS = 9 };

static struct worker_machine *machine;

static void feed(struct worker_in in)
{
    CU_ASSERT_EQUAL(worker_input(machine, &in, 1000), THOLE_OK);
}

static void answer(enum worker_in_kind kind, const struct worker_out *out,
                   const enum worker_row_state *states)
{
    struct worker_row rows[IDS + 1] = {{.id = 0}};
    for (size_t i = 0; i < out->rows_len; i++) {
        rows[i] = out->rows[i];
        rows[i].attempt = 1;
        rows[i].state = states != NULL ? states[i] : WORKER_ROW_MINE;
    }
    feed((struct worker_in){.kind = kind, .rows = rows, .rows_len = out->rows_len});
}

static void deliver(uint64_t id, bool known)
{
    feed((struct worker_in){.kind = WORKER_IN_DELIVERED,
                            .id = id,
                            .key = {THOLE_STR("order-1"), 1, id, 1},
                            .known = known,
                            .deliveries = 1});
}

static void push(uint64_t id)
{
    uint64_t proof;
    struct worker_in const in = {.kind = WORKER_IN_PUSHED,
                                 .key = {THOLE_STR("order-1"), 1, 0, 1},
                                 .activity_ids = &id,
                                 .activity_ids_len = 1};
    feed(test_with_proofs(in, THOLE_STR(""), &proof));
}

/* 1 runs; 2 is cancelled; 3 completes; 4 is left; 5 is ready; 6 waits to start, 7 has ended, and 8 is queued;
 * 9 is parked. */
static void begin(void)
{
    enum worker_row_state const second[] = {WORKER_ROW_MINE, WORKER_ROW_MISSING};
    struct worker_options options;
    struct worker_out out;
    worker_options_init(&options);
    options.slots = SLOTS;
    machine = worker_create(&options);
    CU_ASSERT_PTR_NOT_NULL_FATAL(machine);
    for (uint64_t id = 1; id <= 5; id++)
        deliver(id, true);
    while (worker_poll(machine, &out))
        if (out.kind == WORKER_OUT_CLAIM)
            answer(WORKER_IN_CLAIMED, &out, NULL);
    push(2);
    feed((struct worker_in){.kind = WORKER_IN_FINISHED, .id = 3});
    feed((struct worker_in){.kind = WORKER_IN_FINISHED, .id = 4, .status = THOLE_LATER});
    while (worker_poll(machine, &out)) {
    }
    feed((struct worker_in){.kind = WORKER_IN_FINISHED, .id = 5});
    deliver(6, true);
    deliver(7, true);
    deliver(9, false);
    do {
        CU_ASSERT_TRUE(worker_poll(machine, &out));
    } while (out.kind != WORKER_OUT_CLAIM);
    answer(WORKER_IN_CLAIMED, &out, second);
    deliver(8, true);
    CU_ASSERT_PTR_NULL(worker_check(machine));
}

static struct lease *lease(uint64_t id)
{
    return lease_table_find(&machine->table, id);
}

static void state(void)
{
    lease(1)->state = LEASE_STARTING;
}
static void state_of_free(void)
{
    machine->table.lists[LEASE_FREE].first->id = 77;
}
static void count(void)
{
    machine->table.lists[LEASE_QUEUED].len++;
}
static void count_of_all(void)
{
    machine->table.len++;
}
static void order(void)
{
    lease(8)->prev = lease(1);
}
static void end_of_list(void)
{
    machine->table.lists[LEASE_QUEUED].last = NULL;
}
static void not_found(void)
{
    lease(8)->id = 88;
}
static void instance(void)
{
    lease(8)->key.instance = THOLE_STR("order-1");
}
static void twin(void)
{
    lease(8)->key.activity_id = 1;
    lease(1)->key_next = lease(8);
}
static void unclaimed(void)
{
    lease(1)->renewed_ms = UINT64_MAX;
}
static void claimed(void)
{
    lease(8)->renewed_ms = 1;
}
static void renewed_later(void)
{
    lease(1)->renewed_ms = 1001;
}
static void arrives_later(void)
{
    lease(1)->arrived_ms = 1001;
}
static void sleeps(void)
{
    machine->wake_ms = UINT64_MAX;
}
static void push_forgotten(void)
{
    lease(2)->push = PUSH_NONE;
}
static void push_while_running(void)
{
    lease(1)->push = PUSH_HEARD;
}
static void pushes_counted(void)
{
    machine->pushes_wanted++;
}
static void path(void)
{
    lease(2)->cancelling.path = WORKER_PATH_RENEWAL;
}
static void fenced(void)
{
    lease(2)->cancelling.path = WORKER_PATH_LEASE_LOST;
}
static void asked_of_nobody(void)
{
    lease(2)->cancelling.claim = CLAIM_STOLEN;
}
static void batch_idle(void)
{
    machine->step = BATCH_IDLE;
}
static void batch_open(void)
{
    machine->batch_open = 1;
}
static void renewal_empty(void)
{
    machine->renew_len = 0;
}
static void slots(void)
{
    machine->slots_abandoned = SLOTS;
}
static void room(void)
{
    machine->options.slots = 2, machine->options.completions_max = 1;
}
static void never_renewed(void)
{
    machine->renew_in_flight = false, machine->renew_due_ms = UINT64_MAX;
}
static void never_kept(void)
{
    machine->progress_due_ms = UINT64_MAX;
}
static void untold(void)
{
    machine->isolation.untold++;
}
static void told(void)
{
    machine->not_lost_in_flight = true, machine->not_lost_sent = 1;
}
static void isolation_ended(void)
{
    machine->isolation.lease = lease(7);
}
static void isolation_and_queue(void)
{
    machine->isolation.lease = lease(1);
}
static void no_last_output(void)
{
    machine->events_len--;
}
static void no_run(void)
{
    machine->events_at++, machine->events_len--;
}
static void stop_with_queue(void)
{
    machine->stopping = true;
}
static void stop_with_runs(void)
{
    machine->stop_fired = true;
}
static void kill_with_results(void)
{
    machine->killed = true;
}
static void stopped_and_holds(void)
{
    machine->stopped = true;
}

static const struct row {
    const char *name;
    void (*corrupt)(void);
    const char *expected; /* is in the text */
} rows[] = {
    {"a state that is not the list's", state, "l->state == state"},
    {"a free one with an id", state_of_free, "l->id == 0"},
    {"a list's length", count, "list->len == len"},
    {"the number of all", count_of_all, "table->len =="},
    {"a link back", order, "l->prev == previous"},
    {"a list's end", end_of_list, "list->last == previous"},
    {"one that its id does not find", not_found, "lease_table_find"},
    {"an instance that is not its own", instance, "instance_bytes"},
    {"two of one try", twin, "has_twin"},
    {"one that runs without a claim", unclaimed, "is_claimed"},
    {"one that waits with a claim", claimed, "is_claimed"},
    {"a renewal in the future", renewed_later, "renewed_ms <= w->now_ms"},
    {"an arrival in the future", arrives_later, "arrived_ms <= w->now_ms"},
    {"nothing wakes it", sleeps, "wake_ms <= lease_due_ms"},
    {"a push that is forgotten", push_forgotten, "WORKER_PATH_PUSH"},
    {"a push that fires nothing", push_while_running, "PUSH_NONE"},
    {"how many pushes are to be asked about", pushes_counted, "pushes_wanted == wanted"},
    {"a renewal fired it, and the row is here", path, "CLAIM_GONE"},
    {"the fence fired it, and the row is here", fenced, "lease_is_lost"},
    {"a question about another's row", asked_of_nobody, "PUSH_NONE"},
    {"no batch, and one completes", batch_idle, "BATCH_IDLE"},
    {"a publish without a batch that publishes", batch_open, "BATCH_PUBLISHING"},
    {"a renewal of nothing", renewal_empty, "renew_len > 0"},
    {"more slots than there are", slots, "worker_slots_used"},
    {"more held than there is room for", room, "worker_slots_used"},
    {"nobody is ever renewed", never_renewed, "renew_due_ms"},
    {"no message is ever kept", never_kept, "progress_due_ms"},
    {"a claim that waits to be told, and is not there", untold, "untold"},
    {"more are told than there are", told, "not_lost_sent"},
    {"the one in the isolation slot has ended", isolation_ended, "LEASE_ENDED"},
    {"others wait beside the one in the isolation slot", isolation_and_queue, "LEASE_QUEUED"},
    {"an end without an output", no_last_output, "LEASE_ENDED"},
    {"a start without an output", no_run, "LEASE_STARTING"},
    {"a stop that lets some wait", stop_with_queue, "stopping"},
    {"a stop that lets some run", stop_with_runs, "stop_fired"},
    {"a kill that keeps results", kill_with_results, "killed"},
    {"a stop with something held", stopped_and_holds, "stopped"},
};

static void test_each_is_found(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        begin();
        rows[i].corrupt();
        const char *broken = worker_check(machine);
        CU_ASSERT_PTR_NOT_NULL(broken);
        if (broken == NULL || strstr(broken, rows[i].expected) == NULL)
            CHECK_STR(rows[i].name, broken != NULL ? broken : "nothing", rows[i].expected);
        worker_destroy(machine);
    }
}

static void test_each_state_ends(void)
{
    bool seen[LEASE_STATES] = {[LEASE_NEW] = true};
    for (int round = 0; round < LEASE_STATES; round++)
        for (int from = 0; from < LEASE_STATES; from++)
            for (int to = 0; to < LEASE_STATES; to++)
                seen[to] |= seen[from] && lease_may_follow((enum lease_state)from, (enum lease_state)to);
    for (int s = 0; s < LEASE_STATES; s++) {
        CU_ASSERT_TRUE(seen[s]); /* something leads to it */
        CU_ASSERT_FALSE(lease_may_follow((enum lease_state)s, (enum lease_state)s));
        CU_ASSERT_EQUAL(lease_may_follow((enum lease_state)s, LEASE_FREE), s == LEASE_ENDED);
        CU_ASSERT_EQUAL(lease_may_follow((enum lease_state)s, LEASE_NEW), s == LEASE_FREE);
    }
}

static const struct thole_test tests[] = {
    {"each broken invariant is found", test_each_is_found},
    {"each state is reached and left", test_each_state_ends},
};
THOLE_TEST_MAIN("worker_check", tests)
