/*
 * The password of Postgres in a file, so that it stands in no command line and no environment: a whole run of
 * engine, worker and client with passfile= and with $PGPASSFILE; a file that others may read is not used.
 */
#include "stack.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_BYTES = 256, WAIT_MS = 30000 };
static struct stack stack;

static void write_passfile(char path[TEXT_BYTES], mode_t mode)
{
    char line[TEXT_BYTES];
    (void)snprintf(path, TEXT_BYTES, "%s/passfile", stack.dir);
    int const len = snprintf(line, sizeof line, "127.0.0.1:%u:postgres:thole:%s\n", stack.postgres.port,
                             stack.postgres.password);
    int const fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    CU_ASSERT_FATAL(fd >= 0 && fchmod(fd, mode) == 0 && write(fd, line, (size_t)len) == len);
    (void)close(fd);
}

/* Without a password. */
static const char *conninfo(const char *more)
{
    static char text[2 * TEXT_BYTES];
    (void)snprintf(text, sizeof text, "host=127.0.0.1 port=%u user=thole dbname=postgres%s%s",
                   stack.postgres.port, more[0] == '\0' ? "" : " passfile=", more);
    return text;
}

static thole_status count_instance(void *arg, const thole_instance_info *info)
{
    (void)info;
    ++*(size_t *)arg;
    return THOLE_OK;
}

static thole_status list(const char *more, size_t *ret_n)
{
    thole_client_options options;
    thole_client *client = NULL;
    thole_client_options_init(&options);
    options.postgres = conninfo(more);
    CHECK_OK(thole_client_open(&options, &client, &stack.err), &stack.err);
    thole_status const status = thole_client_list(client, NULL, count_instance, ret_n, &stack.err);
    thole_client_close(client);
    return status;
}

/* @p more: behind passfile=, or empty. */
static void run_with(const char *name, const char *more)
{
    char option[3 * TEXT_BYTES];
    thole_instance_status status;
    size_t n = 0;
    (void)snprintf(option, sizeof option, "--postgres=%s", conninfo(more));
    struct stack_program *const program = stack_program(&stack, name, "run", option, NULL);
    CU_ASSERT_TRUE(stack_logged(program, "serving", 1, WAIT_MS));
    thole_client *const client = stack_client(&stack);
    CHECK_OK(thole_client_start(client, thole_slice_from(name), THOLE_STR("one"), THOLE_STR("paid"), NULL,
                                &stack.err),
             &stack.err);
    CHECK_STR(name, stack_outcome(client, name, WAIT_MS, &status), "paid");
    thole_client_close(client);
    CHECK_OK(list(more, &n), &stack.err);
    CU_ASSERT(n >= 1);
    CU_ASSERT_EQUAL(stack_terminate(program, WAIT_MS), 0);
}

static void test_passfile_in_the_conninfo(void)
{
    char path[TEXT_BYTES];
    write_passfile(path, 0600);
    run_with("passfile", path);
}

static void test_pgpassfile(void)
{
    char path[TEXT_BYTES];
    write_passfile(path, 0600);
    (void)setenv("PGPASSFILE", path, 1);
    run_with("pgpassfile", "");
    (void)unsetenv("PGPASSFILE");
}

/* libpq leaves it unread. */
static void test_a_file_that_others_may_read(void)
{
    char path[TEXT_BYTES];
    size_t n = 0;
    write_passfile(path, 0644);
    CU_ASSERT_EQUAL(list(path, &n), THOLE_DENIED);
    CU_ASSERT_EQUAL(list("", &n), THOLE_DENIED);
    write_passfile(path, 0600);
    CHECK_OK(list(path, &n), &stack.err);
}

static const struct thole_test tests[] = {
    {"passfile= in the connection string", test_passfile_in_the_conninfo},
    {"$PGPASSFILE", test_pgpassfile},
    {"a file that others may read", test_a_file_that_others_may_read},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    (void)setenv("PGSSLMODE", "disable", 1);
    int const result = thole_run_suite("password files", tests, ARRAY_LEN(tests));
    stack_stop(&stack);
    return result;
}
