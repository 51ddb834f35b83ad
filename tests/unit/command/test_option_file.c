/* Options from a YAML file: what wins over what, and a sentence for every mistake in the file. */
#include "host_options.h"
#include "option_file.h"
#include "thole_cunit.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[64];

static void write_file(const char *text, size_t len)
{
    (void)snprintf(path, sizeof path, "/tmp/thole-test-config.XXXXXX");
    int const fd = mkstemp(path);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, text, len), (ssize_t)len);
    (void)close(fd);
}

/* Parses the file as a program that is started with @p more. */
static thole_status parse(const char *more, struct host_command *ret, thole_error *reterr)
{
    static char line[200], *words[16]; /* options borrow from them */
    char *save = NULL;
    int n = 0;
    (void)snprintf(line, sizeof line, "p run --config %s %s", path, more);
    for (char *word = strtok_r(line, " ", &save); word != NULL && n < 15; word = strtok_r(NULL, " ", &save))
        words[n++] = word;
    words[n] = NULL;
    return host_command_parse(n, words, ret, reterr);
}

static void test_values(void)
{
    static const char text[] = "# of the shop\n"
                               "postgres: host=db user='a b'\n"
                               "nats: \"nats://x:4222\"\n"
                               "slots: 3\n"
                               "engine-threads: 5\n"
                               "stop-limit: 2m\n"
                               "payload-max: 64KiB\n"
                               "log-format: json\n"
                               "namespace: file\n";
    struct host_command command;
    thole_error err = {.status = THOLE_OK};
    const struct host_options *const options = &command.options;
    write_file(text, sizeof text - 1);
    setenv("THOLE_NAMESPACE", "env", 1);
    setenv("THOLE_STOP_LIMIT", "", 1); /* as if it were not set */
    CU_ASSERT_EQUAL_FATAL(parse("--slots 7", &command, &err), THOLE_OK);
    CHECK_STR("text", options->postgres, "host=db user='a b'");
    CHECK_STR("quoted", options->nats_url, "nats://x:4222");
    CU_ASSERT_EQUAL(options->slots, 7);
    CHECK_STR("the environment wins", options->ns, "env");
    CU_ASSERT_EQUAL(options->engine_threads, 5);
    CU_ASSERT_EQUAL(options->stop_limit_ms, 120000);
    CU_ASSERT_EQUAL(options->payload_max, 65536);
    CU_ASSERT_EQUAL(options->log_format, LOG_FORMAT_JSON);
    CU_ASSERT_EQUAL(options->parked_max, 2000);
    host_command_free(&command);
    host_command_free(&command);
    unsetenv("THOLE_NAMESPACE");
    unsetenv("THOLE_STOP_LIMIT");
    CU_ASSERT_EQUAL_FATAL(parse("-n flag", &command, &err), THOLE_OK);
    CHECK_STR("a letter wins", options->ns, "flag");
    CU_ASSERT_EQUAL(options->slots, 3);
    host_command_free(&command);
    setenv("THOLE_CONFIG", path, 1);
    char *words[] = {"p", "worker", NULL};
    CU_ASSERT_EQUAL_FATAL(host_command_parse(2, words, &command, &err), THOLE_OK);
    CHECK_STR("named in the environment", options->ns, "file");
    host_command_free(&command);
    unsetenv("THOLE_CONFIG");
    (void)unlink(path);
}

static void test_mistakes(void)
{
    static const struct {
        const char *text, *error; /* after "PATH:" */
    } rows[] = {
        {"postgres: x\nslot: 3\n", "2: there is no option slot; did you mean slots?"},
        {"zzzzzz: 3\n", "1: there is no option zzzzzz"},
        {"config: x\n", "1: there is no option config"},
        {"help: x\n", "1: there is no option help; did you mean http?"},
        {"test-own-all: 1\n", "1: there is no option test-own-all"},
        {"all: 1\n", "1: there is no option all"},
        {"slots: many\n", "1: slots: \"many\" is not a whole number"},
        {"\nslots: 0\n", "2: slots: 0 is not between 1 and 10000"},
        {"slots:\n", "1: slots: \"\" is not a whole number"},
        {"slots: 1\nlease: 5s\nslots: 1\n", "3: slots stands there twice"},
        {"slots: [1]\n", "1: slots: a list, a mapping or an alias is no value"},
        {"slots: {a: 1}\n", "1: slots: a list, a mapping or an alias is no value"},
        {"queue: &a x\nslots: *a\n", "2: slots: a list, a mapping or an alias is no value"},
        {"[slots]: 1\n", "1: the name of an option is expected"},
        {"queue: \"a\\0b\"\n", "1: queue: the value has a zero byte"},
        {"- slots\n", "1: NAME: VALUE is expected"},
        {"slots\n", "1: NAME: VALUE is expected"},
        {"slots: 1\n---\nslots: 2\n", "2: has a second document"},
        {"slots: 1\n\tqueue: x\n", "2: found a tab character that violates indentation"},
        {"queue: \"x\n", "2: found unexpected end of stream"},
        {"queue: \x80\n", "1: invalid leading UTF-8 octet"},
        {"# nothing\n", NULL},
        {"", NULL},
        {"{}\n", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct host_command command;
        thole_error err = {.status = THOLE_OK};
        write_file(rows[i].text, strlen(rows[i].text));
        thole_status const status = parse("--postgres x", &command, &err);
        CU_ASSERT_EQUAL(status, rows[i].error == NULL ? THOLE_OK : THOLE_INVALID);
        size_t const len = strlen(path);
        bool const named = strncmp(err.text, path, len) == 0 && err.text[len] == ':';
        CU_ASSERT_EQUAL(named, rows[i].error != NULL);
        CHECK_STR(rows[i].text, named ? err.text + len + 1 : err.text,
                  rows[i].error == NULL ? "" : rows[i].error);
        host_command_free(&command);
        (void)unlink(path);
    }
}

static void test_files(void)
{
    struct host_command command;
    thole_error err = {.status = THOLE_OK};
    static char large[OPTION_FILE_BYTES_MAX + 1];
    (void)snprintf(path, sizeof path, "/nonexistent/config");
    CU_ASSERT_EQUAL(parse("", &command, &err), THOLE_NOT_FOUND);
    CHECK_STR("none", err.text, "cannot read /nonexistent/config: No such file or directory");
    host_command_free(&command);
    (void)snprintf(path, sizeof path, "/tmp");
    CU_ASSERT_EQUAL(parse("", &command, &err), THOLE_NOT_FOUND);
    CHECK_STR("a folder", err.text, "cannot read /tmp: Is a directory");
    host_command_free(&command);
    memset(large, '#', sizeof large);
    for (int more = 0; more < 2; more++) {
        write_file(large, OPTION_FILE_BYTES_MAX + (size_t)more);
        CU_ASSERT_EQUAL(parse("--postgres x", &command, &err), more == 0 ? THOLE_OK : THOLE_INVALID);
        CU_ASSERT_EQUAL(strstr(err.text, "has more than 65536 bytes") != NULL, more == 1);
        host_command_free(&command);
        (void)unlink(path);
    }
}

/* A password in it, and who may read it. */
static void test_secrets(void)
{
    static const struct {
        const char *text;
        mode_t mode;
        bool open;
    } rows[] = {
        {"postgres: postgres://u:secret@h/db\n", 0600, false},
        {"postgres: postgres://u:secret@h/db\n", 0640, false},
        {"postgres: postgres://u:secret@h/db\n", 0604, true},
        {"postgres: host=h password=secret\n", 0644, true},
        {"postgres: host=h passfile=/etc/pg\n", 0644, false},
        {"nats: nats://token@h\npostgres: host=h\n", 0644, true},
        {"nats: nats://h:4222\npostgres: host=h\n", 0644, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct host_command command;
        thole_error err = {.status = THOLE_OK};
        write_file(rows[i].text, strlen(rows[i].text));
        CU_ASSERT_EQUAL(chmod(path, rows[i].mode), 0);
        CU_ASSERT_EQUAL(parse("", &command, &err), THOLE_OK);
        CU_ASSERT_EQUAL(command.config.open_secret, rows[i].open);
        CU_ASSERT_EQUAL(command.exposed.status, THOLE_OK);
        host_command_free(&command);
        (void)unlink(path);
    }
}

/* As many rows as there may be: each is itself, in the file, in the command line and for its readers. */
static void test_many_rows(void)
{
    enum { COUNT = OPTION_ROWS_MAX, GIVEN = OPTION_ROWS_MAX - 20, READER = 1, OTHER = 2 };
    static struct option_row rows[COUNT];
    static char names[COUNT][8], text[COUNT * 16], flag[16];
    static uint64_t values[COUNT];
    size_t len = 0;
    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(names[i], sizeof names[i], "o%zu", i);
        rows[i] = (struct option_row){.flag = names[i],
                                      .env = "THOLE_NOT_SET",
                                      .kind = OPTION_NUMBER,
                                      .readers = i == GIVEN ? READER : OTHER,
                                      .offset = i * sizeof values[0],
                                      .width = sizeof values[0]};
        len += (size_t)snprintf(text + len, sizeof text - len, "o%zu: %zu\n", i, i + 1);
    }
    struct option_set const set = {.rows = rows, .len = COUNT, .target = values};
    struct option_given given;
    struct option_file file = {.len = 0};
    thole_error err = {.status = THOLE_OK};
    unsigned readers = 0;
    int first;
    (void)snprintf(flag, sizeof flag, "--o%d", GIVEN);
    char *words[] = {"p", flag, "7", NULL};
    write_file(text, len);
    CU_ASSERT_EQUAL(options_read(&set, 1, false, 3, words, &first, &given, &err), THOLE_OK);
    CU_ASSERT_EQUAL(option_file_read(&set, 1, path, &given, &file, &err), THOLE_OK);
    for (size_t i = 0; i < COUNT; i++)
        CU_ASSERT_EQUAL(values[i], i == GIVEN ? 7 : i + 1);
    CU_ASSERT_PTR_NULL(options_unread(&set, 1, &given, READER, &readers));
    CU_ASSERT_PTR_EQUAL(options_unread(&set, 1, &given, OTHER, &readers), &rows[GIVEN]);
    option_file_free(&file);
    (void)unlink(path);
}

static const struct thole_test tests[] = {{"values", test_values},
                                          {"secrets", test_secrets},
                                          {"mistakes", test_mistakes},
                                          {"files", test_files},
                                          {"many rows", test_many_rows}};
THOLE_TEST_MAIN("option_file", tests)
