/* Two engines share the partitions; when one dies or leaves, the other owns all of them. */
#include "connection.h"
#include "sanitized.h"
#include "stack.h"
#include <pthread.h>
#include <stdatomic.h>

static struct stack stack;
static thole_client *client;

enum { PARTITIONS = 8, WITHIN_MS = 15000 };

/* Partitions that the program holds open now, by its log. */
static int open_now(const struct stack_program *program)
{
    return (int)stack_count(program->log, "open, epoch ") - (int)stack_count(program->log, "\"closed: ");
}

static bool becomes(const struct stack_program *program, int low, int high, uint64_t wait_ms,
                    const char *what)
{
    uint64_t const begin = clock_monotonic_ms();
    while (clock_monotonic_ms() < begin + wait_ms) {
        int const n = open_now(program);
        if (n >= low && n <= high) {
            fprintf(stderr, "  %s: %d partitions after %llu ms\n", what, n,
                    (unsigned long long)(clock_monotonic_ms() - begin));
            return true;
        }
        pause_ms(5);
    }
    fprintf(stderr, "  %s: still %d partitions\n", what, open_now(program));
    return false;
}

/* Two own all of them in the end, without orders in each to wait for. */
static bool together(const struct stack_program *one, const struct stack_program *other)
{
    uint64_t const begin = clock_monotonic_ms();
    while (open_now(one) + open_now(other) != PARTITIONS) {
        if (clock_monotonic_ms() >= begin + WITHIN_MS)
            return false;
        pause_ms(5);
    }
    return true;
}

static void start_orders(const char *round, int n)
{
    for (int i = 0; i < n; i++) {
        char id[64];
        snprintf(id, sizeof id, "%s-%03d", round, i);
        CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("order"), THOLE_STR("x"), NULL,
                                    &stack.err),
                 &stack.err);
    }
}

static void check_orders(const char *round, int n)
{
    int good = 0;
    for (int i = 0; i < n; i++) {
        char id[64];
        thole_instance_status status;
        snprintf(id, sizeof id, "%s-%03d", round, i);
        good += strcmp(stack_outcome(client, id, 30000, &status), "x,reserve,charge,ship") == 0;
    }
    CU_ASSERT_EQUAL(good, n);
}

static void test_share_kill_leave(void)
{
    struct stack_program *a = stack_program(&stack, "a", "engine", "--node-ttl=3s", NULL);
    client = stack_client(&stack);
    CU_ASSERT_TRUE(becomes(a, PARTITIONS, PARTITIONS, WITHIN_MS, "first engine alone"));
    (void)stack_program(&stack, "w", "worker", "--lease=3s", NULL);

    struct stack_program *b = stack_program(&stack, "b", "engine", "--node-ttl=3s", NULL);
    CU_ASSERT_TRUE(becomes(b, 1, PARTITIONS - 1, WITHIN_MS, "second engine has a share"));
    start_orders("shared", 50);
    check_orders("shared", 50);
    CU_ASSERT_TRUE(together(a, b));

    start_orders("killed", 50);
    stack_kill9(b);
    CU_ASSERT_TRUE(becomes(a, PARTITIONS, PARTITIONS, WITHIN_MS, "kill -9: the other owns all"));
    check_orders("killed", 50);

    struct stack_program *c = stack_program(&stack, "c", "engine", "--node-ttl=3s", NULL);
    CU_ASSERT_TRUE(becomes(c, 1, PARTITIONS - 1, WITHIN_MS, "third engine has a share"));
    start_orders("left", 50);
    CU_ASSERT_EQUAL(stack_terminate(a, 5000), 0);
    CU_ASSERT_TRUE(becomes(c, PARTITIONS, PARTITIONS, 1000, "graceful stop: the other owns all"));
    check_orders("left", 50);
    CU_ASSERT_EQUAL(stack_terminate(c, 5000), 0);
}

/* The heartbeat of a dead engine lies in the bucket when another starts: that one does not wait for it. */
static void test_newcomer_and_the_dead(void)
{
    enum { DEAD_MS = 2000, NODE_TTL_MS = 3000 };
    struct stack_program *f = stack_program(&stack, "f", "engine", "--node-ttl=3s", NULL);
    CU_ASSERT_TRUE(becomes(f, PARTITIONS, PARTITIONS, WITHIN_MS, "one alone"));
    struct stack_program *d = stack_program(&stack, "d", "engine", "--node-ttl=3s", NULL);
    CU_ASSERT_TRUE(becomes(d, 1, PARTITIONS - 1, WITHIN_MS, "the one to die has a share"));
    stack_kill9(d);
    pause_ms(DEAD_MS);
    struct stack_program *e = stack_program(&stack, "e", "engine", "--node-ttl=3s", NULL);
    CU_ASSERT_TRUE(
        stack_logged(e, "node e-", 3, WITHIN_MS)); /* starts, serves, joined: it has read the bucket */
    uint64_t const joined_ms = clock_monotonic_ms();
    CU_ASSERT_TRUE(becomes(e, 1, PARTITIONS - 1, WITHIN_MS, "the newcomer has a share"));
    CU_ASSERT_TRUE(clock_monotonic_ms() - joined_ms < NODE_TTL_MS);
    CU_ASSERT_EQUAL(stack_count(e->log, "node d-"), 0);
    start_orders("new", 50);
    check_orders("new", 50);
    CU_ASSERT_TRUE(together(f, e));
    CU_ASSERT_EQUAL(stack_terminate(e, 5000), 0);
    CU_ASSERT_EQUAL(stack_terminate(f, 5000), 0);
}

/* ---- heartbeats that no engine has stored ---- */

enum { GHOSTS = 300 };

static struct {
    struct connection *connection;
    pthread_t thread;
    atomic_bool stop;
    atomic_uint rounds;
    char victim[THOLE_NAME_BYTES_MAX + 1]; /* a live engine; "" = none */
    pthread_mutex_t lock;
} forger = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Format, node, and a start of a process long ago: fields 1, 2 and 3. It knows no orchestration. */
static void forge(const char *node, bool remove)
{
    char subject[160], body[160];
    struct header const mark = {"KV-Operation", THOLE_STR("DEL")};
    int const n = snprintf(body, sizeof body, "\x08\x01\x12%c%s\x18\x01", (int)strlen(node), node);
    snprintf(subject, sizeof subject, "$KV.THOLE_default_NODES.%s", node);
    (void)!connection_publish(forger.connection, subject, &mark, remove ? 1 : 0,
                              (thole_slice){(const uint8_t *)body, remove ? 0 : (size_t)n}, NULL);
}

static void *forge_for_ever(void *arg)
{
    while (!atomic_load(&forger.stop)) {
        char victim[sizeof forger.victim];
        pthread_mutex_lock(&forger.lock);
        memcpy(victim, forger.victim, sizeof victim);
        pthread_mutex_unlock(&forger.lock);
        for (int i = 0; i < GHOSTS; i++) {
            char name[32];
            snprintf(name, sizeof name, "ghost-%04d", i);
            forge(name, false);
        }
        if (victim[0] != '\0')
            forge(victim, atomic_load(&forger.rounds) % 2 == 0);
        (void)!connection_flush(forger.connection, NULL);
        atomic_fetch_add(&forger.rounds, 1);
        pause_ms(SANITIZED ? 1000 : 200); /* such an engine needs far longer for each */
    }
    return arg;
}

static void begin_forging(void)
{
    struct connection_options const options = {
        .url = stack.nats.url, .name = "forger", .connect_timeout_ms = 2000, .request_timeout_ms = 2000};
    CHECK_OK(connection_open(&options, &forger.connection, &stack.err), &stack.err);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&forger.thread, NULL, forge_for_ever, NULL), 0);
    while (atomic_load(&forger.rounds) < 2)
        pause_ms(5);
}

static void end_forging(void)
{
    atomic_store(&forger.stop, true);
    pthread_join(forger.thread, NULL);
    connection_close(forger.connection);
    fprintf(stderr, "  %u rounds of %d forged heartbeats\n", atomic_load(&forger.rounds), GHOSTS);
}

static void forge_in_the_name_of(const char *node)
{
    pthread_mutex_lock(&forger.lock);
    snprintf(forger.victim, sizeof forger.victim, "%s", node);
    pthread_mutex_unlock(&forger.lock);
}

/* Heartbeats of 300 engines that do not exist are stored, several times a second, and one in the name of a
 * live engine, whose own is removed: no partition is left without an owner, orders complete, real engines
 * come, share, die and leave as ever. */
static void test_forged_heartbeats(void)
{
    enum { EACH = 20 };
    begin_forging();
    struct stack_program *g = stack_program(&stack, "g", "engine", "--node-ttl=3s", "--node=real-g", NULL);
    CU_ASSERT_TRUE(becomes(g, PARTITIONS, PARTITIONS, WITHIN_MS, "one alone beside the forged"));
    size_t const closed = stack_count(g->log, "\"closed: ");
    start_orders("forged-alone", EACH);
    check_orders("forged-alone", EACH);
    forge_in_the_name_of("real-g");
    pause_ms(4000); /* longer than the TTL */
    start_orders("forged-named", EACH);
    check_orders("forged-named", EACH);
    CU_ASSERT_EQUAL(stack_count(g->log, "\"closed: "), closed);
    CU_ASSERT_TRUE(stack_count(g->log, "has a heartbeat and does not answer") > 0);
    CU_ASSERT_TRUE(stack_count(g->log, "heartbeat of node real-g ignored: this engine has not ") > 0);

    struct stack_program *h = stack_program(&stack, "h", "engine", "--node-ttl=3s", "--node=real-h", NULL);
    CU_ASSERT_TRUE(becomes(h, 1, PARTITIONS - 1, WITHIN_MS, "a second one has a share"));
    CU_ASSERT_TRUE(together(g, h));
    size_t const settled = stack_count(g->log, "\"closed: ") + stack_count(h->log, "\"closed: ");
    pause_ms(4000);
    start_orders("forged-shared", EACH);
    check_orders("forged-shared", EACH);
    CU_ASSERT_EQUAL(stack_count(g->log, "\"closed: ") + stack_count(h->log, "\"closed: "), settled);

    forge_in_the_name_of("real-h");
    pause_ms(1000);
    CU_ASSERT_EQUAL(stack_count(g->log, "\"closed: ") + stack_count(h->log, "\"closed: "), settled);
    stack_kill9(h);
    CU_ASSERT_TRUE(becomes(g, PARTITIONS, PARTITIONS, WITHIN_MS, "kill -9: the first owns all"));
    start_orders("forged-killed", EACH);
    check_orders("forged-killed", EACH);
    CU_ASSERT_EQUAL(stack_count(g->log, "has not opened it"), 0);
    CU_ASSERT_TRUE(stack_count(g->log, "node ghost-") < 300); /* of more than ten thousand */
    end_forging();
    CU_ASSERT_EQUAL(stack_terminate(g, 5000), 0);
}

static const struct thole_test tests[] = {{"share_kill_leave", test_share_kill_leave},
                                          {"newcomer_and_the_dead", test_newcomer_and_the_dead},
                                          {"forged_heartbeats", test_forged_heartbeats}};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    int const failed = thole_run_suite("handover", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
