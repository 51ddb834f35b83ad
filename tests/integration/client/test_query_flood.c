/*
 * Queries in masses, from clients that do not read the answers: NATS closes the connection that they come to
 * when the engine does not read them as fast. It is not the one of turns: no partition closes, and turns go
 * on.
 */
#include "connection.h"
#include "stack.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    FLOODERS = 4,
    QUERY_BYTES = 900 * 1000,
    PARTITIONS = 8,
    FLOOD_MS = 15000,
    ORDERS = 20,
    PACE_MS = 1,
    CUTS_MAX = 12
};

static struct stack stack;
static thole_client *client;
static struct stack_program *engine;
static atomic_bool flooding;
static atomic_uint_least64_t sent;

/* ---- clients that never read ---- */

static int flooder_connect(void)
{
    static const char hello[] = "CONNECT {\"verbose\":false,\"pedantic\":false}\r\n";
    const char *const colon = strrchr(stack.nats.url, ':');
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10))};
    struct timeval const patience = {.tv_sec = 1};
    int const s = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(s, (const struct sockaddr *)&to, sizeof to) == 0 && write(s, hello, sizeof hello - 1) > 0)
        return s;
    (void)close(s);
    return -1;
}

static bool flooder_write(int s, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t const n = send(s, at, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* A server that closes it, since it reads no answers, is connected to again. */
static void *flooder_main(void *arg)
{
    static char body[QUERY_BYTES + 2];
    char head[256];
    int s = -1;
    (void)arg;
    for (unsigned p = 0; atomic_load(&flooding); p++) {
        int const n =
            snprintf(head, sizeof head, "PUB thole.default.query.%u.state.nobody _INBOX.unread %d\r\n",
                     p % PARTITIONS, (int)QUERY_BYTES);
        memcpy(body + QUERY_BYTES, "\r\n", 2);
        if (s < 0 && (s = flooder_connect()) < 0)
            break;
        if (flooder_write(s, head, (size_t)n) && flooder_write(s, body, sizeof body)) {
            atomic_fetch_add(&sent, 1);
        } else {
            (void)close(s);
            s = -1;
        }
    }
    if (s >= 0)
        (void)close(s);
    return NULL;
}

/* ---- turns meanwhile ---- */

static uint64_t order_us(const char *round, unsigned i)
{
    char id[48];
    thole_instance_status status;
    uint64_t const begin = now_us();
    (void)snprintf(id, sizeof id, "%s-%u", round, i);
    CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("order"), THOLE_STR("x"), NULL,
                                &stack.err),
             &stack.err);
    CHECK_STR(id, stack_outcome(client, id, 30000, &status), "x,reserve,charge,ship");
    return now_us() - begin;
}

static int compare_us(const void *a, const void *b)
{
    uint64_t const x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t median_us(const char *round, uint64_t at_least_ms)
{
    enum { MOST = 4000 };
    static uint64_t took[MOST];
    size_t n = 0;
    uint64_t const end = now_us() + at_least_ms * 1000;
    while (n < ORDERS || (now_us() < end && n < MOST)) {
        took[n] = order_us(round, (unsigned)n);
        n++;
    }
    qsort(took, n, sizeof took[0], compare_us);
    fprintf(stderr, "  %s: %zu orders, one after the other: median %.1f ms, worst %.1f ms\n", round, n,
            (double)took[n / 2] / 1000, (double)took[n - 1] / 1000);
    return took[n / 2];
}

static void test_turns_go_on(void)
{
    pthread_t threads[FLOODERS];
    uint64_t const quiet_us = median_us("quiet", 2000);
    atomic_store(&flooding, true);
    for (int i = 0; i < FLOODERS; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, flooder_main, NULL), 0);
    uint64_t const flooded_us = median_us("flooded", FLOOD_MS);
    atomic_store(&flooding, false);
    for (int i = 0; i < FLOODERS; i++)
        (void)pthread_join(threads[i], NULL);
    size_t const lost = stack_count(engine->log, "NATS connection lost"),
                 cut = stack_count(engine->log, "NATS connection for queries lost");
    fprintf(stderr, "  %llu queries of %d bytes in %d s; connections lost: of turns %zu, of queries %zu\n",
            (unsigned long long)atomic_load(&sent), (int)QUERY_BYTES, (int)FLOOD_MS / 1000, lost, cut);
    fprintf(stderr, "  turns took %.1f times as long\n", (double)flooded_us / (double)quiet_us);
    CU_ASSERT_EQUAL(lost, 0);
    CU_ASSERT(cut > 0 && cut <= CUTS_MAX); /* each costs the part of a message that was received */
    CU_ASSERT(stack_count(engine->log, "the connection for queries was lost, and no other") > 0);
    CU_ASSERT_EQUAL(stack_count(engine->log, "msg=\"closed: "), 0);
}

static const struct thole_test tests[] = {
    {"turns_go_on", test_turns_go_on},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    engine = stack_program(&stack, "run", "run", NULL);
    client = stack_client(&stack);
    int const failed = thole_run_suite("query_flood", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
