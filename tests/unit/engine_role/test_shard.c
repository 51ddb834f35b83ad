/* A shard's loop: when its partitions open, close and step down, and when its thread may end. The waits of
 * the thread are the steps of the test; what the machines do is played. */
#include "deadlines.h"
#include "engine.h"
#include "partition.h"
#include "shard_parts.h"
#include "store.h"
#include "thole_cunit.h"
#include "wrap_cork.h"
#include "wrap_mutexes.h"
#include "wrap_shard_waits.h"
#include <sched.h>

enum { STEPS_MAX = 12, INPUTS_MAX = 8, NOW_MS = 5000, CLOSE_LIMIT_MS = 1000 };

static struct {
    struct engine_host engine;
    struct crash_page *page;
    struct shard shard;
    atomic_uint_least64_t now_ms;
    enum partition_state state;
    size_t pending;            /* of the machine */
    size_t windows, no_window; /* asked for; which of them is refused, 0: none */
    unsigned stores;           /* started */
    uint64_t asked_ms;         /* until when the thread wants to wait */
    void (*steps[STEPS_MAX])(void);
    atomic_size_t step;
    struct {
        enum partition_in_kind kind;
        char text[64];
    } inputs[INPUTS_MAX];
    size_t inputs_len;
    unsigned left; /* the connection reads itself again */
} play;

/* ---- the world ---- */

uint64_t __wrap_clock_monotonic_ms(void)
{
    return atomic_load(&play.now_ms);
}

uint64_t __wrap_connection_epoch(const struct connection *connection)
{
    (void)connection;
    return 1;
}

size_t __wrap_connection_max_payload(const struct connection *connection)
{
    (void)connection;
    return 1 << 20;
}

thole_status __wrap_requests_open(struct connection *connection, size_t window, uint64_t timeout_ms,
                                  request_done_fn *done, void *arg, struct requests **ret,
                                  thole_error *reterr)
{
    (void)connection, (void)window, (void)timeout_ms, (void)done, (void)arg;
    *ret = NULL;
    return ++play.windows == play.no_window ? thole_fail(reterr, THOLE_UNAVAILABLE, "no window") : THOLE_OK;
}

thole_status __wrap_store_start(struct shard *shard, struct store **ret, thole_error *reterr)
{
    (void)shard, (void)reterr;
    play.stores++;
    *ret = NULL;
    return THOLE_OK;
}

bool __wrap_store_is_calling(const struct store *store)
{
    (void)store;
    return false;
}

size_t __wrap_partition_pending(const struct partition *p)
{
    (void)p;
    return play.pending;
}

size_t __wrap_partition_pending_bytes(const struct partition *p)
{
    (void)p;
    return 100 * play.pending;
}

enum partition_state __wrap_partition_state(const struct partition *p)
{
    (void)p;
    return play.state;
}

/* Further steps are not recorded: there may be any number, as the thread goes on until it is stopped. */
static void note(enum partition_in_kind kind, const char *text)
{
    if (play.inputs_len == INPUTS_MAX)
        return;
    play.inputs[play.inputs_len].kind = kind;
    (void)snprintf(play.inputs[play.inputs_len++].text, sizeof play.inputs[0].text, "%s", text);
}

void __wrap_shard_input(struct owned *owned, const struct partition_in *in)
{
    CU_ASSERT_PTR_EQUAL(owned, play.shard.owned);
    note(in->kind, "");
}

void __wrap_shard_step_down(struct owned *owned, const char *text)
{
    CU_ASSERT_PTR_EQUAL(owned, play.shard.owned);
    note(PARTITION_IN_STEP_DOWN, text);
}

/* The next step of the test; after the last one all is closed, and a stop ends the thread. */
void __wrap_connection_read(struct connection *connection, struct pollfd *also, size_t n,
                            uint64_t deadline_ms, connection_awake_fn *awake, void *arg)
{
    CU_ASSERT_FALSE(wrap_cork_is_on()); /* nothing is held back while it sleeps */
    CU_ASSERT_PTR_EQUAL(connection, play.shard.connection);
    wrap_shard_waits(&play.shard, also, n);
    awake(arg);
    play.asked_ms = deadline_ms;
    size_t const step = atomic_load(&play.step);
    if (step < STEPS_MAX && play.steps[step] != NULL) {
        play.steps[step]();
        atomic_store(&play.step, step + 1);
    } else {
        play.state = PARTITION_CLOSED;
        (void)sched_yield();
    }
}

void __wrap_connection_leave(struct connection *connection)
{
    CU_ASSERT_PTR_EQUAL(connection, play.shard.connection);
    play.left++;
}

void __wrap_connection_close(struct connection *connection)
{
    CU_ASSERT_PTR_EQUAL(connection, play.shard.connection);
}

static void begin(void)
{
    static const thole_program program = {.name = "none"};
    memset(&play, 0, sizeof play);
    atomic_store(&play.now_ms, NOW_MS);
    play.state = PARTITION_CLOSED;
    play.page = crash_page_create();
    play.engine.program = &program;
    play.engine.options.node = "a";
    play.engine.options.crash_page = play.page;
    play.engine.options.sweep_ms = 60000;
    play.engine.options.crash_limit = 2;
    play.engine.topology.partitions = 1;
    (void)snprintf(play.engine.topology.ns, sizeof play.engine.topology.ns, "default");
    play.engine.shards = &play.shard;
    play.engine.shards_len = 1;
    play.engine.lines = log_limits_create(engine_lines, ENGINE_LINES, 1);
    shard_init(&play.engine, 0, &play.shard);
    play.shard.connection = (struct connection *)&play;
    play.shard.shared_link_up = true;
}

static void end(void)
{
    bool const runs = play.shard.running;
    shard_stop(&play.shard);
    CU_ASSERT_EQUAL(play.left, runs);
    shard_release(&play.shard);
    log_limits_destroy(play.engine.lines);
    crash_page_destroy(play.page);
}

static void run(void (*const *steps)(void), size_t steps_len)
{
    begin();
    memcpy(play.steps, steps, steps_len * sizeof *steps);
    CU_ASSERT_EQUAL_FATAL(shard_start(&play.shard, NULL), THOLE_OK);
    while (atomic_load(&play.step) < steps_len)
        (void)sched_yield();
    end();
}

static struct shard_mail *mail_of(enum shard_mail_kind kind)
{
    return shard_mail_create(kind, 0, sizeof(struct shard_mail));
}

static void send_link(enum shard_mail_kind kind, bool up)
{
    struct shard_mail *const mail = mail_of(kind);
    mail->up = up;
    shard_send(&play.shard, mail);
}

static void send_own(uint64_t since_ms)
{
    struct shard_mail *const mail = mail_of(SHARD_OWN);
    mail->since_ms = since_ms;
    shard_send(&play.shard, mail);
}

/* Checks that the machine was given exactly this since the last look. */
static void was_given(enum partition_in_kind kind, const char *text)
{
    CU_ASSERT_EQUAL(play.inputs_len, 1);
    CU_ASSERT_EQUAL(play.inputs[0].kind, kind);
    CHECK_STR("step down", play.inputs[0].text, text);
    play.inputs_len = 0;
}

static void was_given_nothing(void)
{
    CU_ASSERT_EQUAL(play.inputs_len, 0);
    play.inputs_len = 0;
}

static void set_open(void)
{
    was_given(PARTITION_IN_OPEN, "");
    play.state = PARTITION_OPEN;
}

/* ---- the shard's start ---- */

/* Appends have room for all that partitions may ask for: none waits. */
static void test_windows(void)
{
    begin();
    CU_ASSERT_EQUAL(shard_start(&play.shard, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(play.windows, WINDOWS);
    for (size_t i = 0; i < WINDOWS; i++)
        CU_ASSERT_EQUAL(play.shard.windows[i].waits, i != WINDOW_APPENDS);
    end();
}

static void test_without_a_window(void)
{
    for (size_t i = 1; i <= WINDOWS; i++) {
        thole_error err = {0};
        begin();
        play.no_window = i;
        CU_ASSERT_EQUAL(shard_start(&play.shard, &err), THOLE_UNAVAILABLE);
        CHECK_STR("why", err.text, "no window");
        CU_ASSERT_EQUAL(play.windows, i);
        CU_ASSERT_EQUAL(play.stores, 0);
        end();
    }
}

/* ---- room for messages ---- */

static void three_are_held(void)
{
    play.pending = 3;
}

static void three_take_room(void)
{
    CU_ASSERT_EQUAL(play.shard.backlog.held, 3);
    CU_ASSERT_EQUAL(play.shard.backlog.held_bytes, 300);
    play.pending = 0;
}

static void none_takes_room(void)
{
    CU_ASSERT_EQUAL(play.shard.backlog.held, 0);
    CU_ASSERT_EQUAL(play.shard.backlog.held_bytes, 0);
}

/* Bytes in the machines count against those that readers may send. */
static void test_what_the_machines_hold(void)
{
    run((void (*const[])(void)){three_are_held, three_take_room, none_takes_room}, 3);
}

/* ---- a store that waits for Postgres ---- */

static void until_the_stores_time(void)
{
    CU_ASSERT_EQUAL(play.asked_ms, NOW_MS + 7);
}

static void test_the_stores_time(void)
{
    wrap_store_ms = NOW_MS + 7;
    run((void (*const[])(void)){until_the_stores_time}, 1);
    wrap_store_ms = UINT64_MAX;
}

/* ---- opening ---- */

static void all_is_up(void)
{
    CU_ASSERT_EQUAL(play.asked_ms, UINT64_MAX);
    send_link(SHARD_LINK, true);
    send_link(SHARD_STORE_LINK, true);
    send_own(NOW_MS + 250);
}

static void not_yet(void)
{
    was_given_nothing();
    CU_ASSERT_EQUAL(play.asked_ms, NOW_MS + 250);
    atomic_store(&play.now_ms, NOW_MS + 249);
}

static void still_not(void)
{
    was_given_nothing();
    atomic_store(&play.now_ms, NOW_MS + 250);
}

/* The owner before it gets time to end. */
static void test_opens_when_it_may(void)
{
    run((void (*const[])(void)){all_is_up, not_yet, still_not, set_open}, 4);
}

static void owned_alone(void)
{
    send_own(NOW_MS);
}

static void nats_comes(void)
{
    was_given_nothing();
    CU_ASSERT_EQUAL(play.asked_ms, UINT64_MAX);
    send_link(SHARD_LINK, true);
}

static void postgres_comes(void)
{
    was_given_nothing();
    send_link(SHARD_STORE_LINK, true);
}

static void postgres_goes(void)
{
    was_given_nothing(); /* open already */
    send_link(SHARD_STORE_LINK, false);
}

static void stepped_down_for_postgres(void)
{
    was_given(PARTITION_IN_STEP_DOWN, "the connection to Postgres was lost");
    send_link(SHARD_LINK, false);
}

static void stepped_down_for_nats(void)
{
    was_given(PARTITION_IN_STEP_DOWN, "the connection to NATS was lost");
    play.state = PARTITION_CLOSED;
    send_link(SHARD_STORE_LINK, false);
    send_link(SHARD_LINK, false);
}

static void test_needs_both_servers(void)
{
    run((void (*const[])(void)){owned_alone, nats_comes, postgres_comes, set_open, postgres_goes,
                                stepped_down_for_postgres, stepped_down_for_nats, was_given_nothing},
        8);
}

/* ---- closing ---- */

static void becomes_open(void)
{
    send_link(SHARD_LINK, true);
    send_link(SHARD_STORE_LINK, true);
    send_own(NOW_MS);
}

static void disowned(void)
{
    set_open();
    shard_send(&play.shard, mail_of(SHARD_DISOWN));
}

static void closes(void)
{
    was_given(PARTITION_IN_CLOSE, "");
    CU_ASSERT_EQUAL(play.asked_ms, NOW_MS + CLOSE_LIMIT_MS);
    atomic_store(&play.now_ms, NOW_MS + CLOSE_LIMIT_MS - 1);
}

static void still_closes(void)
{
    was_given_nothing();
    atomic_store(&play.now_ms, NOW_MS + CLOSE_LIMIT_MS);
}

static void took_too_long(void)
{
    was_given(PARTITION_IN_STEP_DOWN, "handing over took too long");
    play.state = PARTITION_CLOSED;
}

static void test_handing_over_has_a_limit(void)
{
    run((void (*const[])(void)){becomes_open, disowned, closes, still_closes, took_too_long,
                                was_given_nothing},
        6);
}

static void rows_are_removed(void)
{
    set_open();
    shard_send(&play.shard, mail_of(SHARD_ROWS_REMOVED));
}

static void removed_noticed(void)
{
    was_given(PARTITION_IN_STEP_DOWN, "somebody has removed rows from Postgres");
    play.state = PARTITION_CLOSED;
    shard_send(&play.shard, mail_of(SHARD_DISOWN));
    shard_send(&play.shard, mail_of(SHARD_ROWS_REMOVED));
}

static void test_rows_removed(void)
{
    run((void (*const[])(void)){becomes_open, rows_are_removed, removed_noticed, was_given_nothing}, 4);
}

static void stopped_with_a_reader(void)
{
    static int reader;
    play.shard.owned[0].reader = (struct inbox_reader *)&reader;
    play.shard.owned[0].watch.looking = true; /* nothing is asked of it */
    shard_send(&play.shard, mail_of(SHARD_STOP));
}

static void waits_for_the_reader(void)
{
    play.shard.owned[0].reader = NULL;
}

/* A closed machine is not all: its reader ends first. */
static void test_ends_when_all_is_closed(void)
{
    run((void (*const[])(void)){stopped_with_a_reader, waits_for_the_reader}, 2);
}

static const struct thole_test tests[] = {
    {"the store's time", test_the_stores_time},
    {"windows", test_windows},
    {"without a window", test_without_a_window},
    {"what the machines hold", test_what_the_machines_hold},
    {"opens when it may", test_opens_when_it_may},
    {"needs both servers", test_needs_both_servers},
    {"handing over has a limit", test_handing_over_has_a_limit},
    {"rows removed", test_rows_removed},
    {"ends when all is closed", test_ends_when_all_is_closed},
};
THOLE_TEST_MAIN("shard", tests)
