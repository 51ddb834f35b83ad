/* Remains of deleted ids: with real servers, an engine that keeps deletions for two seconds, and one that
 * keeps them for long. */
#include "jscan.h"
#include "link.h"
#include "reader.h"
#include "stack.h"
#include "subject.h"
#include "thole_cunit.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum {
    WAIT_MS = 30000,
    PARTITIONS = 8,
    IDS = 60,
    ROUNDS = 4,
    OPENINGS = 8,
    /* of a partition at rest: the first EpochOpened, the last, those of the lists, the positions of a round
     */
    CONTROLS_MOST = 24,
};

static struct stack stack;
static struct stack_program *engine;
static thole_client *client;
static struct connection *connection;
static char key_file[256];

static void start_engine(const char *keep)
{
    engine = stack_program_with(&stack, "program_verbs", "run", "run", "--partitions", "8", "--audit-key",
                                key_file, "--audit-every", "200ms", "--test-deletions-keep", keep, NULL);
}

static void stop_engine(void)
{
    CU_ASSERT_EQUAL(stack_terminate(engine, WAIT_MS), 0);
}

static void run_ids(const char *prefix, int n)
{
    stack_run_many(&stack, client, prefix, n, WAIT_MS);
}

static void delete_ids(const char *prefix, int n)
{
    char id[32];
    for (int i = 0; i < n; i++) {
        bool accepted = false;
        (void)snprintf(id, sizeof id, "%s-%d", prefix, i);
        CHECK_OK(thole_client_delete(client, thole_slice_from(id), NULL, &accepted, &stack.err), &stack.err);
        CU_ASSERT_TRUE(accepted);
    }
}

/* ---- remains ---- */

struct left {
    size_t messages, deletions, histories, epochs, lists, positions;
};

static thole_status count(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct left *const left = arg;
    thole_slice const last = subject_nth(subject, 5);
    thole_slice const control = subject_nth(subject, 4);
    bool const history = thole_slice_equal(subject_nth(subject, 2), THOLE_STR("hist"));
    (void)sequence, (void)body;
    left->messages++;
    left->deletions += history && thole_slice_equal(last, THOLE_STR(SUBJECT_DELETED));
    left->histories += history && !thole_slice_equal(last, THOLE_STR(SUBJECT_DELETED));
    left->epochs += !history && thole_slice_equal(control, THOLE_STR("epoch"));
    left->positions += !history && thole_slice_equal(control, THOLE_STR("position"));
    left->lists += !history && thole_slice_equal(control, THOLE_STR("folded"));
    return THOLE_OK;
}

static struct left look(void)
{
    struct left left = {.messages = 0};
    for (int p = 0; p < PARTITIONS; p++) {
        char stream[64];
        (void)snprintf(stream, sizeof stream, "THOLE_default_HIST_%d", p);
        CHECK_OK(stream_read(connection, stream, NULL, 1, UINT64_MAX, count, &left, &stack.err), &stack.err);
    }
    return left;
}

static void say(const char *what, const struct left *left)
{
    (void)fprintf(
        stderr,
        "\n  [%s] %zu messages: %zu of histories, %zu deletions, %zu epochs, %zu positions, %zu lists", what,
        left->messages, left->histories, left->deletions, left->epochs, left->positions, left->lists);
}

static struct left wait_for_none(const char *what)
{
    struct left left = look();
    for (int i = 0; i < WAIT_MS / 100 && left.deletions + left.histories > 0; i++) {
        pause_ms(100);
        left = look();
    }
    say(what, &left);
    CU_ASSERT_EQUAL(left.deletions + left.histories, 0);
    return left;
}

/* Waits until it says so. */
static void says(const char *line, int code, const char *text)
{
    char want[32];
    bool good = false;
    (void)snprintf(want, sizeof want, "%d: ", code);
    for (int i = 0; i < WAIT_MS / 200 && !good; i++) {
        const char *const got = stack_shell(line);
        good = strncmp(got, want, strlen(want)) == 0 && strstr(got, text) != NULL;
        if (!good)
            pause_ms(200);
    }
    CU_ASSERT(good);
    if (!good)
        fprintf(stderr, "\n  [%s]\n    got  %s\n    want %d: …%s\n", line, stack_shell(line), code, text);
}

/* ---- tests ---- */

/* 60 ids, deleted: nothing is left of them; and the next 60 find no more than these did. */
static void nothing_is_left_of_an_id(void)
{
    struct left before = {.messages = 0}, left = {.messages = 0};
    for (int i = 0; i < ROUNDS; i++) {
        char prefix[24];
        (void)snprintf(prefix, sizeof prefix, "gone-%d", i);
        run_ids(prefix, IDS);
        delete_ids(prefix, IDS);
        left = wait_for_none(prefix);
        before = i == 0 ? left : before;
        CU_ASSERT(left.messages <= (size_t)PARTITIONS * CONTROLS_MOST);
    }
    CU_ASSERT(left.epochs <= (size_t)2 * PARTITIONS);
    CHECK_STR("rows", stack_sql(&stack, "SELECT count(*) FROM thole_default.instances"), "0");
}

/* An id of which nothing is left is a new one. */
static void the_id_is_new(void)
{
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    run_ids("gone-0", 1);
    CHECK_OK(thole_client_wait(client, THOLE_STR("gone-0-0"), 0, &outcome, &stack.err), &stack.err);
    CU_ASSERT_EQUAL(outcome.execution, 1);
    thole_outcome_release(&outcome);
    delete_ids("gone-0", 1);
    (void)wait_for_none("again");
}

/* Each opening is a record; of those that have no others nothing is left. */
static void epochs_go(void)
{
    for (int i = 0; i < OPENINGS; i++) {
        if (i % 2 == 0)
            stop_engine();
        else
            stack_kill9(engine);
        start_engine("2s");
        run_ids(i % 2 == 0 ? "even" : "odd", 4);
        delete_ids(i % 2 == 0 ? "even" : "odd", 4);
    }
    struct left left = wait_for_none("opened");
    for (int i = 0; i < WAIT_MS / 100 && left.epochs > 4 * PARTITIONS; i++) {
        run_ids("more", 8);
        delete_ids("more", 8);
        pause_ms(500);
        left = wait_for_none("more");
    }
    CU_ASSERT(left.epochs <= (size_t)4 * PARTITIONS);
}

/* Auditors accept what was listed, also when the lists are gone. */
static void auditors_accept_it(void)
{
    says("$T audit verify --all", 0, "");
    says("$T audit verify --all --key $D/pub", 0, "");
}

static void rows_become(const char *want)
{
    const char *got = "";
    for (int i = 0; i < WAIT_MS / 100 && strcmp(got, want) != 0; i++) {
        got = stack_sql(&stack, "SELECT count(*) FROM thole_default.instances");
        if (strcmp(got, want) != 0)
            pause_ms(100);
    }
    CHECK_STR("rows", got, want);
}

/* From a backup that is older than any deletion that is kept: it has rows of ids of which nothing is left. */
static void older_rows_are_put_back(void)
{
    run_ids("back", IDS);
    rows_become("60");
    (void)stack_sql(&stack, "CREATE TABLE kept_rows AS SELECT * FROM thole_default.instances");
    (void)stack_sql(&stack, "CREATE TABLE kept_partitions AS SELECT * FROM thole_default.partitions");
    delete_ids("back", IDS);
    (void)wait_for_none("back");
    rows_become("0");
    stop_engine();
    (void)stack_sql(&stack, "INSERT INTO thole_default.instances SELECT * FROM kept_rows");
    (void)stack_sql(&stack, "DELETE FROM thole_default.partitions");
    (void)stack_sql(&stack, "INSERT INTO thole_default.partitions SELECT * FROM kept_partitions");
    CHECK_STR("put back", stack_sql(&stack, "SELECT count(*) FROM thole_default.instances"), "60");
    start_engine("2s");
    rows_become("0");
    CU_ASSERT_TRUE(stack_logged(engine, "they are removed, and made again from the histories", 1, WAIT_MS));
}

/* An archive outlives the deletion: the checkpoints prove it in its place. */
static void an_archive_comes_back(void)
{
    run_ids("arch", 4);
    rows_become("4");
    pause_ms(3000); /* they are in checkpoints by then; once more, for those that are not */
    says("$T archive run --older-than 0s --dir $D/arch --key $D/pub 2>&1", 0, "");
    says("$T archive run --older-than 0s --dir $D/arch --key $D/pub 2>&1", 0, "nothing to archive");
    (void)wait_for_none("archived");
    says("$T history arch-1 2>&1", 3, "there is no instance");
    says("$T archive restore $D/arch arch-1 --reason why 2>&1", 4, "no deletion of that id");
    says("$T archive restore $D/arch arch-1 --key $D/pub --reason why 2>&1", 0, "restored");
    says("$T history arch-1 2>&1", 0, "Completed");
    says("$T audit verify arch-1 --key $D/pub 2>&1", 0, "");
    says("$T delete arch-1 2>&1", 0, "");
    says("$T history arch-1 2>&1", 3, "there is no instance");
}

/* A deletion that no list has is gone. */
static void auditors_accept_nothing_else(void)
{
    uint64_t taken = 0;
    stop_engine();
    start_engine("1h");
    run_ids("young", IDS);
    delete_ids("young", IDS);
    pause_ms(3000);
    struct left const left = look();
    say("young", &left);
    CU_ASSERT_EQUAL(left.deletions, IDS);
    says("$T audit verify --all --key $D/pub", 0, "");
    stop_engine(); /* the last round has signed all */
    says("$T audit verify --all --key $D/pub", 0, "");
    uint32_t const p = subject_partition(THOLE_STR("young-0"), PARTITIONS);
    struct buf subject;
    char stream[64];
    (void)snprintf(stream, sizeof stream, "THOLE_default_HIST_%u", p);
    buf_init(&subject, SUBJECT_BYTES_MAX);
    CHECK_OK(subject_history(&subject, "default", p, THOLE_STR("young-0"), EXECUTIONS_ALL, &stack.err),
             &stack.err);
    CHECK_OK(stream_last_by_subject(connection, stream, buf_cstr(&subject), &taken, NULL, &stack.err),
             &stack.err);
    CU_ASSERT(taken > 0);
    CHECK_OK(stream_delete(connection, stream, taken, &stack.err), &stack.err);
    says("$T audit verify --all --key $D/pub", 5, "missing");
    buf_release(&subject);
    start_engine("2s");
}

int main(void)
{
    static const struct thole_test tests[] = {
        {"nothing is left of an id", nothing_is_left_of_an_id},
        {"the id is new", the_id_is_new},
        {"epochs go", epochs_go},
        {"auditors accept it", auditors_accept_it},
        {"older rows are put back", older_rows_are_put_back},
        {"an archive comes back", an_archive_comes_back},
        {"auditors accept nothing else", auditors_accept_nothing_else},
    };
    char line[1024];
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    (void)setenv("T", THOLE_COMMAND, 1);
    (void)setenv("D", stack.dir, 1);
    (void)snprintf(key_file, sizeof key_file, "%s/key", stack.dir);
    (void)snprintf(line, sizeof line, "$T audit keygen engines.example.com --key %s >$D/pub", key_file);
    (void)stack_shell(line);
    start_engine("2s");
    client = stack_client(&stack);
    connection = stack_connect(&stack);
    int const failed = thole_run_suite("retention", tests, ARRAY_LEN(tests));
    connection_close(connection);
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
