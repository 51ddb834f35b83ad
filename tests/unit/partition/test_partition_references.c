/* A partition stores a payload once in a record that has it twice, while every engine reads references; who
 * opens it next, by whatever version the records were written, goes on from them. */
#include "partition_stage.h"
#include "thole_cunit.h"
#include <string.h>

enum { LARGE = 30000, WORK = 2 };

static thole_status plain(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), ret_output);
}

static const thole_orchestration_entry entries[] = {{"plain", plain, 0}};

static thole_slice large(char letter)
{
    static char bytes[2][LARGE];
    char *const to = bytes[letter == 'i'];
    memset(to, letter, LARGE);
    return (thole_slice){(const uint8_t *)to, LARGE};
}

static size_t last_record_bytes(const struct stage *s)
{
    return s->log[s->log_len - 1].bytes.len;
}

/* How often its record has each of both. */
static void check_times(const char *name, size_t bytes, size_t times)
{
    if (bytes / LARGE != times)
        fprintf(stderr, "\n  [%s] the record has %zu bytes\n", name, bytes);
    CU_ASSERT_EQUAL(bytes / LARGE, times);
}

/* An instance whose turns are written with and without references, by two owners. */
static void check_instance(bool begins, bool ends, char *ret_history, size_t size)
{
    struct stage *const s = stage_begin(entries, ARRAY_LEN(entries));
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    partition_forms_read(s->p, (struct record_forms){.references = begins});
    stage_message(s, &(struct message){.kind = MESSAGE_START,
                                       .instance = THOLE_STR("a"),
                                       .orchestration = THOLE_STR("plain"),
                                       .data = large('i')});
    check_times("the start", last_record_bytes(s), begins ? 1 : 2);
    stage_again(s);
    partition_forms_read(s->p, (struct record_forms){.references = ends});
    stage_complete(s, "a", WORK, large('o'));
    check_times("the end", last_record_bytes(s), ends ? 1 : 2);
    stage_settle(s);
    (void)snprintf(ret_history, size, "%s", stage_history(s, "a"));
    CU_ASSERT_PTR_NOT_NULL(strstr(ret_history, "Completed"));
    stage_end(s);
}

static void test_two_owners(void)
{
    static char first[4096], other[4096];
    check_instance(false, false, first, sizeof first);
    for (int i = 1; i < 4; i++) {
        check_instance(i & 1, i & 2, other, sizeof other);
        CHECK_STR("history", other, first);
    }
}

/* Nobody has said that all engines read them. */
static void test_not_said(void)
{
    struct stage *const s = stage_begin(entries, ARRAY_LEN(entries));
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    stage_message(s, &(struct message){.kind = MESSAGE_START,
                                       .instance = THOLE_STR("a"),
                                       .orchestration = THOLE_STR("plain"),
                                       .data = large('i')});
    check_times("not said", last_record_bytes(s), 2);
    partition_forms_read(s->p, (struct record_forms){.references = true});
    partition_forms_read(s->p, (struct record_forms){.references = false}); /* an older engine has come */
    stage_complete(s, "a", WORK, large('o'));
    check_times("said, and not any more", last_record_bytes(s), 2);
    stage_end(s);
}

static const struct thole_test tests[] = {
    {"two owners", test_two_owners},
    {"not said", test_not_said},
};
THOLE_TEST_MAIN("partition_references", tests)
