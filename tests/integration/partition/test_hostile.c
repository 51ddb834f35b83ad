/*
 * Two engines that both believe that they own every partition, under load, with appends in flight: on one
 * replica and on a cluster of three. What a writer held for committed when it closed an epoch is exactly what
 * an independent reader counts of that epoch; and every order ends, each result once.
 */
#include "connection.h"
#include "event.h"
#include "reader.h"
#include "stack.h"

enum {
    ORDERS = 200,
    PARTITIONS = 8,
    EPOCHS_MAX = 20000,
    FIGHT_MS = 4000,
    FIGHT_MS_MAX = 30000,
    EPOCHS_MIN = 100
};

static struct stack stack;
static thole_client *client;

struct epochs {
    uint64_t counted[EPOCHS_MAX], claimed[EPOCHS_MAX];
    bool opened[EPOCHS_MAX], closed[EPOCHS_MAX];
    uint64_t epoch, n, highest, voids;
};
static struct epochs partitions[PARTITIONS];

/* The log rule, written from the design and not from the engine: a record counts if its epoch is that of the
 * last EpochOpened before it and its n follows the last that counted. */
static thole_status count_record(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct epochs *e = arg;
    struct arena arena;
    struct record record;
    (void)sequence;
    (void)subject;
    arena_init(&arena, 1 << 24);
    if (record_decode(body, &arena, &record, NULL) == THOLE_OK) {
        if (record.kind == RECORD_EPOCH_OPENED) {
            e->epoch = record.epoch;
            e->n = 0;
            e->opened[record.epoch % EPOCHS_MAX] = true;
            e->highest = record.epoch > e->highest ? record.epoch : e->highest;
        } else if (record.epoch == e->epoch && record.n == e->n + 1) {
            e->counted[record.epoch % EPOCHS_MAX] = ++e->n;
        } else {
            e->voids++;
        }
    }
    arena_release(&arena);
    return THOLE_OK;
}

static void read_streams(void)
{
    struct connection *const connection = stack_connect(&stack);
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        char stream[64];
        struct stream_bounds bounds = {0};
        snprintf(stream, sizeof stream, "THOLE_default_HIST_%u", p);
        CHECK_OK(stream_bounds(connection, stream, &bounds, &stack.err), &stack.err);
        CHECK_OK(
            stream_read(connection, stream, NULL, 1, bounds.last, count_record, &partitions[p], &stack.err),
            &stack.err);
    }
    connection_close(connection);
}

/* partition=3 msg="closed: why (epoch 5, 42 records committed)" */
static size_t read_claims(const struct stack_program *program)
{
    char line[2048];
    size_t n = 0;
    FILE *f = fopen(program->log, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        unsigned p;
        unsigned long long epoch, committed;
        const char *at = strstr(line, " partition="), *end = strstr(line, "(epoch ");
        if (at == NULL || end == NULL || strstr(line, "\"closed: ") == NULL ||
            sscanf(at, " partition=%u", &p) != 1 ||
            sscanf(end, "(epoch %llu, %llu records", &epoch, &committed) != 2 || epoch == 0 ||
            p >= PARTITIONS)
            continue;
        partitions[p].claimed[epoch % EPOCHS_MAX] = committed;
        partitions[p].closed[epoch % EPOCHS_MAX] = true;
        n++;
    }
    if (f != NULL)
        fclose(f);
    return n;
}

static uint64_t removed_voids(const struct stack_program *program)
{
    char line[2048];
    uint64_t n = 0;
    FILE *f = fopen(program->log, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *at = strstr(line, "removes void records: ");
        n += at == NULL ? 0 : strtoull(at + strlen("removes void records: "), NULL, 10);
    }
    if (f != NULL)
        fclose(f);
    return n;
}

static void compare(void)
{
    uint64_t epochs = 0, records = 0, wrong = 0, unaccounted = 0;
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        const struct epochs *e = &partitions[p];
        CU_ASSERT_TRUE(e->highest < EPOCHS_MAX);
        CU_ASSERT_EQUAL(e->voids, 0); /* whoever opened last has removed them */
        for (uint64_t epoch = 1; epoch <= e->highest; epoch++) {
            epochs++;
            records += e->counted[epoch];
            unaccounted +=
                e->counted[epoch] > 0 && !e->closed[epoch]; /* one that was just opened may not know it */
            if (e->closed[epoch] && e->counted[epoch] != e->claimed[epoch]) {
                wrong++;
                fprintf(stderr, "  partition %u epoch %llu: the reader counts %llu, the writer held %llu\n",
                        p, (unsigned long long)epoch, (unsigned long long)e->counted[epoch],
                        (unsigned long long)e->claimed[epoch]);
            }
        }
    }
    fprintf(stderr, "  %llu epochs, %llu records counted, %llu epochs differ\n", (unsigned long long)epochs,
            (unsigned long long)records, (unsigned long long)wrong);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(unaccounted, 0);
    CU_ASSERT_TRUE(epochs > EPOCHS_MIN);
}

static void start_orders(void)
{
    for (int i = 0; i < ORDERS; i++) {
        char id[32];
        thole_status status;
        snprintf(id, sizeof id, "order-%03d", i);
        do /* the servers have better things to do: what is not answered is asked again */
            status = thole_client_start(client, thole_slice_from(id), THOLE_STR("order"), THOLE_STR("x"),
                                        NULL, &stack.err);
        while (status == THOLE_UNAVAILABLE);
        CU_ASSERT_TRUE(status == THOLE_OK || status == THOLE_CONFLICT);
    }
}

static void check_orders(void)
{
    int good = 0;
    for (int i = 0; i < ORDERS; i++) {
        char id[32];
        thole_instance_status status;
        snprintf(id, sizeof id, "order-%03d", i);
        good += strcmp(stack_outcome(client, id, 60000, &status), "x,reserve,charge,ship") == 0;
    }
    CU_ASSERT_EQUAL(good, ORDERS);
}

static void fight(const char *replicas)
{
    char option[32];
    memset(partitions, 0, sizeof partitions);
    snprintf(option, sizeof option, "--replicas=%s", replicas);
    struct stack_program *a =
        stack_program(&stack, "a", "engine", "--test-own-all", option, "--sweep=10s", NULL);
    client = stack_client(&stack);
    struct stack_program *b =
        stack_program(&stack, "b", "engine", "--test-own-all", option, "--sweep=10s", NULL);
    /* Three busy servers lose a delivery now and then: what is lost comes again soon. */
    (void)stack_program(&stack, "w", "worker", "--lease=5s", NULL);
    uint64_t const begin = clock_monotonic_ms();
    start_orders();
    while (clock_monotonic_ms() < begin + FIGHT_MS ||
           (clock_monotonic_ms() < begin + FIGHT_MS_MAX && read_claims(a) + read_claims(b) <= EPOCHS_MIN))
        pause_ms(50); /* a busy machine needs longer */
    CU_ASSERT_EQUAL(stack_terminate(b, 10000), 0);
    check_orders();
    CU_ASSERT_EQUAL(stack_terminate(a, 10000), 0);
    size_t const closes = read_claims(a) + read_claims(b);
    fprintf(stderr, "  %zu times an owner lost its partition; %llu void records removed\n", closes,
            (unsigned long long)(removed_voids(a) + removed_voids(b)));
    read_streams();
    compare();
    thole_client_close(client);
    stack_stop(&stack);
}

static void test_one_replica(void)
{
    stack_start(&stack);
    fight("1");
}

static void test_three_replicas(void)
{
    stack_start_cluster(&stack);
    fight("3");
}

static const struct thole_test tests[] = {{"hostile_one_replica", test_one_replica},
                                          {"hostile_three_replicas", test_three_replicas}};
THOLE_INTEGRATION_MAIN("hostile", tests)
