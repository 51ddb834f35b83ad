/*
 * The WORK stream on three servers, each killed in turn, while subjects are used again: what was stored and
 * not acknowledged stays. With a limit of one message for each subject it does not (nats-server before 2.14
 * lets each replica judge by what it has, see docs/operations.md).
 */
#include "reader.h"
#include "streams_fixture.h"
#include "work.h"
#include <stdlib.h>
#include <unistd.h>

enum {
    MEMBERS = 3,
    NUMBERS_MAX = 400000,
    WINDOW = 64,
    ROUND_MS = 2500,
    DOWN_MS = 400,
    RECENT = 200,
    PAUSE_US = 1000
};

static struct server members[MEMBERS];
static char dir[SERVER_PATH_BYTES];
static struct connection *connection;
static struct topology topology;

static struct traffic {
    struct requests *requests;
    atomic_bool stop;
    atomic_ulong stored, refused, acknowledged;
    /* by number, which is the input */
    _Atomic uint8_t was_stored[NUMBERS_MAX], was_acknowledged[NUMBERS_MAX], is_there[NUMBERS_MAX];
} traffic;

static void test_start(void)
{
    char urls[TEXT_BYTES];
    thole_error err = {0};
    uint64_t lease_ms = 30000, due = clock_ms() + WAIT_MS;
    thole_status status = THOLE_UNAVAILABLE;
    CHECK_OK(server_dir_create("thole-work", dir, &err), &err);
    CHECK_OK(server_nats_cluster_start(&(struct nats_server_options){.dir = dir}, MEMBERS, members, &err),
             &err);
    put_text(urls, "%s,%s,%s", members[0].url, members[1].url, members[2].url);
    connection = connect_to(urls);
    struct topology_options const options = {.ns = "w3", .partitions = 1, .replicas = 3};
    while (status == THOLE_UNAVAILABLE && clock_ms() < due)
        status = topology_ensure(connection, &options, &topology, &err);
    CHECK_OK(status, &err);
    CHECK_OK(topology_ensure_queue(connection, "w3", THOLE_STR("q"), lease_ms, &lease_ms, NULL, &err), &err);
}

static void test_stop(void)
{
    connection_close(connection);
    for (size_t i = 0; i < MEMBERS; i++)
        server_stop(&members[i]);
    if (getenv("THOLE_TEST_KEEP") == NULL)
        server_dir_remove(dir);
    else
        fprintf(stderr, "  kept: %s\n", dir);
}

static void note_answer(void *arg, const struct request_done *done)
{
    (void)arg;
    if (done->result == REQUEST_STORED) {
        atomic_store(&traffic.was_stored[done->token], 1);
        atomic_fetch_add(&traffic.stored, 1);
    } else {
        atomic_fetch_add(&traffic.refused, 1);
    }
}

/* Three of ten messages use a subject that was used shortly before. */
static void *publish(void *arg)
{
    uint64_t next = 1, draw = 12345;
    thole_error err = {0};
    (void)arg;
    for (uint64_t number = 0; !atomic_load(&traffic.stop) && number < NUMBERS_MAX; number++) {
        char text[24];
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
        draw = draw * 6364136223846793005U + 1442695040888963407U;
        bool const again = next > RECENT && (draw >> 33) % 10 < 3;
        uint64_t const id = again ? next - 1 - (draw >> 40) % RECENT : next;
        struct work_item const item = {.queue = THOLE_STR("q"),
                                       .nonce = THOLE_STR("0123456789abcdef0123456789abcdef"),
                                       .instance = THOLE_STR("i"),
                                       .activity = THOLE_STR("charge"),
                                       .input = thole_slice_from(text),
                                       .execution = 1,
                                       .activity_id = id,
                                       .try_number = 1};
        if (work_publish(traffic.requests, "w3", &item, number, &err) == THOLE_OK)
            next += !again;
        usleep(PAUSE_US);
    }
    return NULL;
}

static uint64_t number_of(thole_slice text)
{
    uint64_t n = 0;
    for (size_t i = 0; i < text.len; i++)
        n = n * 10 + (uint64_t)(text.ptr[i] - '0');
    return n < NUMBERS_MAX ? n : 0;
}

/* One of ten goes on running. */
static void take(void *arg, struct work_message *message)
{
    thole_error err = {0};
    (void)arg;
    if (message->item.activity_id % 10 != 0) {
        if (atomic_exchange(&traffic.was_acknowledged[number_of(message->item.input)], 1) == 0)
            atomic_fetch_add(&traffic.acknowledged, 1);
        thole_status const ignored = work_message_signal(connection, message, WORK_ACK, &err);
        (void)ignored; /* else it comes again */
    }
    work_message_destroy(message);
}

static void take_bad(void *arg, struct work_message *message, const char *text)
{
    (void)arg;
    CU_ASSERT_PTR_NULL(text);
    work_message_destroy(message);
}

/* One by one: a stream of this kind lets no second consumer read it. */
static void note_what_is_there(void)
{
    struct buf answer, body;
    uint64_t sequence = 0;
    thole_status status;
    buf_init(&answer, 1 << 16);
    buf_init(&body, 1 << 16);
    do {
        char json[96];
        (void)snprintf(json, sizeof json, "{\"seq\":%llu,\"next_by_subj\":\"thole.w3.work.>\"}",
                       (unsigned long long)sequence + 1);
        status = connection_request(connection, "$JS.API.STREAM.MSG.GET.THOLE_w3_WORK",
                                    thole_slice_from(json), &answer, NULL);
        uint64_t found = 0;
        if (status == THOLE_OK)
            status = stream_get_answer(buf_bytes(&answer), &found, &body, NULL);
        if (status == THOLE_OK && found != 0)
            traffic.is_there[number_of(buf_bytes(&body))] = 1;
        if (status == THOLE_OK)
            sequence = found;
        else
            nap_ms(50);
    } while (status == THOLE_UNAVAILABLE || sequence != 0);
    CU_ASSERT_EQUAL(status, THOLE_OK);
    buf_release(&answer);
    buf_release(&body);
}

static void kill_in_turn(unsigned rounds)
{
    thole_error err = {0};
    for (unsigned i = 0; i < rounds; i++) {
        nap_ms(ROUND_MS);
        server_kill9(&members[i % MEMBERS]);
        nap_ms(DOWN_MS);
        CHECK_OK(server_restart(&members[i % MEMBERS], &err), &err);
    }
    nap_ms(ROUND_MS);
}

static size_t logged(const char *text)
{
    size_t n = 0;
    for (size_t i = 0; i < MEMBERS; i++) {
        char command[SERVER_PATH_BYTES + 128];
        unsigned count = 0;
        snprintf(command, sizeof command, "cat %s/n%zu/*.log | grep -c '%s'", dir, i + 1, text);
        FILE *pipe = popen(command, "r");
        if (pipe != NULL && fscanf(pipe, "%u", &count) == 1)
            n += count;
        if (pipe != NULL)
            pclose(pipe);
    }
    return n;
}

static void test_what_is_not_acknowledged_stays(void)
{
    struct puller *puller = NULL;
    thole_error err = {0};
    pthread_t publisher;
    unsigned long missing = 0;
    const char *rounds = getenv("THOLE_TEST_ROUNDS");
    CHECK_OK(requests_open(connection, WINDOW, 3000, note_answer, NULL, &traffic.requests, &err), &err);
    CHECK_OK(puller_open(connection, "w3", THOLE_STR("q"), take, take_bad, NULL, NULL, &puller, &err), &err);
    puller_want(puller, UINT32_MAX / 2);
    pthread_create(&publisher, NULL, publish, NULL);
    kill_in_turn(rounds == NULL ? 3 : (unsigned)strtoul(rounds, NULL, 10));
    atomic_store(&traffic.stop, true);
    pthread_join(publisher, NULL);
    nap_ms(3500);
    requests_close(traffic.requests);
    puller_close(puller);
    struct stream_bounds bounds = {0};
    while (stream_bounds(connection, "THOLE_w3_WORK", &bounds, &err) == THOLE_UNAVAILABLE)
        nap_ms(50);
    note_what_is_there();
    for (size_t i = 0; i < NUMBERS_MAX; i++)
        missing += traffic.was_stored[i] && !traffic.was_acknowledged[i] && !traffic.is_there[i];
    fprintf(stderr,
            "  %lu stored, %lu not, %lu acknowledged, %lu there, %lu missing; said: %zu limit in catch-up, "
            "%zu resets, %zu "
            "restored none\n",
            traffic.stored, traffic.refused, traffic.acknowledged, bounds.messages, missing,
            logged("errored, will retry: maximum messages"), logged("Resetting stream cluster state"),
            logged("Restored 0 messages"));
    CU_ASSERT(traffic.stored > 1000 && traffic.acknowledged > 1000);
    CU_ASSERT_EQUAL(missing, 0);
}

static const struct thole_test tests[] = {
    {"start", test_start},
    {"what is not acknowledged stays", test_what_is_not_acknowledged_stays},
    {"stop", test_stop},
};

int main(void)
{
    skip_without_nats();
    return thole_run_suite("work_cluster", tests, ARRAY_LEN(tests));
}
