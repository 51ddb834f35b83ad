/*
 * A worker that starts while the disk of nats-server is full: its queue's consumer cannot be stored. It
 * waits, says so, and serves the queue when there is room. And a start under an engine that runs: it is
 * refused with what is full, and taken when there is room. As root: the disk is a small one of this process.
 */
#include "stack.h"
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

enum { DISK_MIB = 192 /* room that the streams reserve */, WAIT_MS = 30000 };

static struct stack stack;
static thole_client *client;

static bool mount_small_disk(void)
{
    char path[SERVER_PATH_BYTES + 16], size[32];
    (void)snprintf(path, sizeof path, "%s/jetstream", stack.nats.dir);
    (void)snprintf(size, sizeof size, "size=%dm", DISK_MIB);
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", path, "tmpfs", 0, size) == 0;
}

static void put_ballast(char ret[SERVER_PATH_BYTES + 32])
{
    (void)snprintf(ret, SERVER_PATH_BYTES + 32, "%s/jetstream/ballast", stack.nats.dir);
}

static void fill_disk(void)
{
    static const char block[64 * 1024];
    char path[SERVER_PATH_BYTES + 32];
    put_ballast(path);
    FILE *const file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    setbuf(file, NULL);
    while (fwrite(block, 1, sizeof block, file) == sizeof block)
        ;
    (void)fclose(file);
}

static void free_disk(void)
{
    char path[SERVER_PATH_BYTES + 32];
    put_ballast(path);
    CU_ASSERT_EQUAL(unlink(path), 0);
}

static bool completes(const char *id)
{
    thole_instance_status status = THOLE_INSTANCE_RUNNING;
    CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("order"), thole_slice_from(id), NULL,
                                &stack.err),
             &stack.err);
    (void)stack_outcome(client, id, WAIT_MS, &status);
    return status == THOLE_INSTANCE_COMPLETED;
}

static void test_a_new_queue(void)
{
    struct stack_program *const engine = stack_program(&stack, "engine", "engine", "--node-ttl=3s", NULL);
    CU_ASSERT(stack_logged(engine, "msg=serving", engine->lives, WAIT_MS));
    fill_disk();
    struct stack_program *const worker = stack_program(&stack, "worker", "worker", "--queue=default", NULL);
    CU_ASSERT(stack_logged(worker, "waiting: *CONSUMER.CREATE*(10012)", 1, WAIT_MS));
    CU_ASSERT_EQUAL(stack_ended(worker), -1);
    free_disk();
    CU_ASSERT(stack_logged(worker, "serves queue default", 1, WAIT_MS));
    CU_ASSERT(completes("after"));
}

static void test_a_start(void)
{
    static char input[4096];
    memset(input, 'x', sizeof input - 1);
    fill_disk();
    CU_ASSERT_NOT_EQUAL(thole_client_start(client, THOLE_STR("full"), THOLE_STR("order"),
                                           thole_slice_from(input), NULL, &stack.err),
                        THOLE_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, "nats-server cannot store it: its disk is full"));
    free_disk();
    CU_ASSERT(completes("full"));
}

static const struct thole_test tests[] = {{"a worker of a new queue", test_a_new_queue},
                                          {"a start under an engine", test_a_start}};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: only root mounts a small disk\n");
        return EXIT_SKIPPED;
    }
    stack_start(&stack);
    server_stop(&stack.nats);
    if (!mount_small_disk()) {
        perror("skipped: a small disk cannot be mounted");
        stack_stop(&stack);
        return EXIT_SKIPPED;
    }
    if (server_relaunch(&stack.nats, &stack.err) != THOLE_OK ||
        server_wait_ready(&stack.nats, &stack.err) != THOLE_OK) {
        fprintf(stderr, "nats-server: %s\n", stack.err.text);
        stack_stop(&stack);
        return 1;
    }
    struct stack_program *const engine = stack_program(&stack, "engine", "engine", "--node-ttl=3s", NULL);
    client = stack_client(&stack);
    (void)stack_terminate(engine, WAIT_MS); /* would fill the remaining room */
    int const failed = thole_run_suite("full_disk", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
