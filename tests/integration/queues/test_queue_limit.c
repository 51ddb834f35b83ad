/* How many activities of a queue run at once, over two workers: measured by what their handlers do. */
#include "topology.h"
#include "worker_stage.h"

static struct stage stage;
static atomic_uint running, most, done;

static thole_status busy(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    (void)ret_output;
    unsigned const now = atomic_fetch_add(&running, 1) + 1;
    unsigned seen = atomic_load(&most);
    while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
        ;
    thole_status status = thole_activity_wait(act, 20);
    unsigned const want = input.len; /* so many must meet */
    for (int i = 0; i < 6000 && atomic_load(&most) < want && status == THOLE_OK; i++)
        status = thole_activity_wait(act, 5);
    atomic_fetch_sub(&running, 1);
    atomic_fetch_add(&done, 1);
    return status;
}

static const thole_activity_entry activities[] = {{"busy", busy, NULL}};
static const thole_program program = {
    .size = sizeof program, .name = "limits", .activities = activities, .activities_len = 1};

static void limit(uint64_t n)
{
    CHECK_OK(topology_limit_queue(stage.connection, stage.ns, THOLE_STR("default"), n, &stage.err),
             &stage.err);
}

static void run(uint64_t first, uint64_t n, const char *meet)
{
    unsigned const want = atomic_load(&done) + (unsigned)n;
    for (uint64_t id = first; id < first + n; id++)
        stage_schedule(&stage, "i", id, "busy", meet);
    CU_ASSERT_TRUE(stage_wait(&done, want, 60000));
    CU_ASSERT_TRUE(stage_drained(&stage, 60000)); /* acknowledged: nothing of it counts any more */
}

static void test_never_more_than_the_limit(void)
{
    enum { N = 40 };
    stage_begin(&stage, "limit");
    limit(3); /* before there is a worker */
    struct worker_host *const one = stage_worker(&stage, &program);
    stage.options.node = "node-2";
    struct worker_host *const two = stage_worker(&stage, &program);
    run(1, N, "***");
    CU_ASSERT_EQUAL(atomic_load(&most), 3);
    limit(1); /* lowered while they run */
    atomic_store(&most, 0);
    run(1001, N / 2, "");
    CU_ASSERT_EQUAL(atomic_load(&most), 1);
    limit(0);
    atomic_store(&most, 0);
    run(2001, N, "********");
    CU_ASSERT_EQUAL(atomic_load(&most), 8); /* two workers of four slots */
    worker_host_stop(one);
    worker_host_stop(two);
    stage_end(&stage);
}

static const struct thole_test tests[] = {
    {"never more than the limit", test_never_more_than_the_limit},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stage_open(&stage);
    int const failed = thole_run_suite("queue_limit", tests, ARRAY_LEN(tests));
    stage_close(&stage);
    return failed;
}
