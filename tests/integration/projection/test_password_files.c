/*
 * The password of Postgres in a file, so that it stands in no command line and no environment: a whole run of
 * engine, worker and client with passfile=, with $PGPASSFILE, and with a service file; a file that others may
 * read is not used.
 */
#include "stack.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_BYTES = 256, WAIT_MS = 30000 };
static struct stack stack;

static void write_file(char path[TEXT_BYTES], const char *name, const char *text, mode_t mode)
{
    (void)snprintf(path, TEXT_BYTES, "%s/%s", stack.dir, name);
    size_t const len = strlen(text);
    int const fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    CU_ASSERT_FATAL(fd >= 0 && fchmod(fd, mode) == 0 && write(fd, text, len) == (ssize_t)len);
    (void)close(fd);
}

static void write_passfile(char path[TEXT_BYTES], mode_t mode)
{
    char line[TEXT_BYTES];
    (void)snprintf(line, sizeof line, "127.0.0.1:%u:postgres:thole:%s\n", stack.postgres.port,
                   stack.postgres.password);
    write_file(path, "passfile", line, mode);
}

/* Without a password. @p more: follows passfile=, or empty; or the service that has it all. */
static const char *conninfo(const char *more)
{
    static char text[2 * TEXT_BYTES];
    if (strncmp(more, "service=", 8) == 0)
        return more;
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

/* @p more: as for conninfo(). */
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

/* Server, user and password stand in one file, which PGSERVICEFILE names. */
static void test_a_service_file(void)
{
    char path[TEXT_BYTES], text[2 * TEXT_BYTES];
    size_t n = 0;
    (void)snprintf(text, sizeof text,
                   "[shop]\nhost=127.0.0.1\nport=%u\nuser=thole\ndbname=postgres\npassword=%s\n",
                   stack.postgres.port, stack.postgres.password);
    write_file(path, "services", text, 0600);
    (void)setenv("PGSERVICEFILE", path, 1);
    run_with("service", "service=shop");
    CU_ASSERT_NOT_EQUAL(list("service=shops", &n), THOLE_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(stack.err.text, "definition of service \"shops\" not found"));
    (void)unsetenv("PGSERVICEFILE");
}

static const struct thole_test tests[] = {
    {"passfile= in the connection string", test_passfile_in_the_conninfo},
    {"$PGPASSFILE", test_pgpassfile},
    {"a service file", test_a_service_file},
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
