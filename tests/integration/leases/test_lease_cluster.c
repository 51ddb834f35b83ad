/* An activity of five leases while the queue's stream and its consumer change their leaders, again and again,
 * and members of the cluster are killed: it runs once. */
#include "worker_stage.h"

enum { MEMBERS = 3, LEASE_MS = 3000, RUNS_MS = 5 * LEASE_MS, CHANGES = 12, KILL_EVERY = 4 };

static struct stage stage;
static struct server members[MEMBERS];

static void begin(void)
{
    size_t used = 0;
    CHECK_OK(server_dir_create("thole-lease", stage.dir, &stage.err), &stage.err);
    CHECK_OK(server_nats_cluster_start(&(struct nats_server_options){.dir = stage.dir}, MEMBERS, members,
                                       &stage.err),
             &stage.err);
    CHECK_OK(server_postgres_start(&(struct postgres_server_options){.dir = stage.dir, .no_fsync = true},
                                   &stage.postgres, &stage.err),
             &stage.err);
    for (int i = 0; i < MEMBERS; i++)
        used += (size_t)snprintf(stage.nats.url + used, sizeof stage.nats.url - used, "%s%s",
                                 i > 0 ? "," : "", members[i].url);
    stage.replicas = MEMBERS;
    stage_begin(&stage, "cluster");
    stage.options.lease_ms = LEASE_MS;
}

static void end(void)
{
    stage_end(&stage);
    for (int i = 0; i < MEMBERS; i++)
        server_stop(&members[i]);
    server_stop(&stage.postgres);
    server_dir_remove(stage.dir);
}

/* Whether it is done is for the cluster to say; one that is busy with the last change says no. */
static bool step_down(const char *subject)
{
    struct buf answer;
    buf_init(&answer, 65536);
    bool const done =
        connection_request(stage.connection, subject, THOLE_STR(""), &answer, NULL) == THOLE_OK &&
        memmem(answer.ptr, answer.len, "\"success\":true", 14) != NULL;
    buf_release(&answer);
    return done;
}

static void kill_and_restart(struct server *member)
{
    server_kill9(member);
    stage_pause_ms(300);
    CHECK_OK(server_relaunch(member, &stage.err), &stage.err);
}

static void test_leaders_change(void)
{
    char input[16];
    unsigned changed = 0;
    begin();
    struct worker_host *const first = stage_worker(&stage, &stage_program);
    struct worker_host *const second = stage_worker(&stage, &stage_program);
    snprintf(input, sizeof input, "%d", RUNS_MS);
    stage_schedule(&stage, "i", 1, "slow", input);
    CU_ASSERT_TRUE(stage_wait(&stage_notes.started, 1, 20000));
    for (int i = 0; i < CHANGES; i++) {
        if (i % KILL_EVERY == 0) /* whoever leads, and whoever the workers are connected to: each in turn */
            kill_and_restart(&members[i / KILL_EVERY % MEMBERS]);
        changed += step_down("$JS.API.CONSUMER.LEADER.STEPDOWN.THOLE_cluster_WORK.q_default");
        stage_pause_ms(RUNS_MS / CHANGES / 3);
        changed += step_down("$JS.API.STREAM.LEADER.STEPDOWN.THOLE_cluster_WORK");
        stage_pause_ms(RUNS_MS / CHANGES / 3);
    }
    fprintf(stderr, "\n  %u changes of leaders\n", changed);
    CU_ASSERT_TRUE(changed >= CHANGES / 2);
    CU_ASSERT_TRUE(stage_results(&stage, "i", 1, 60000) == 1);
    CU_ASSERT_EQUAL(stage_last.attempt, 1);
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.started), 1);
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.fired), 0);
    CU_ASSERT_TRUE(stage_drained(&stage, 30000));
    CU_ASSERT_EQUAL(atomic_load(&stage_notes.started), 1);
    worker_host_stop(first);
    worker_host_stop(second);
    end();
}

static const struct thole_test tests[] = {{"leaders change", test_leaders_change}};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    return thole_run_suite("lease_cluster", tests, ARRAY_LEN(tests));
}
