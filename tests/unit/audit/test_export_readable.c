/* The readable part of a file of JSON lines agrees with its records, or the file is corrupt, and the line
 * named. */
#include "export.h"
#include "export_readable.h"
#include "samples.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>

enum { RECORD_BYTES = 1 << 20 };

static char *written; /* three records: two turns and one that is no turn */
static size_t written_len;

static void write_record(struct history_writer *writer, uint64_t sequence, const struct event *events,
                         size_t n)
{
    struct buf bytes;
    struct record const record = {.kind = RECORD_TURN,
                                  .epoch = 2,
                                  .n = sequence,
                                  .turn = {.instance = THOLE_STR("order 7"),
                                           .execution = 1,
                                           .number = sequence,
                                           .ran = true,
                                           .events = events,
                                           .events_len = n}};
    buf_init(&bytes, RECORD_BYTES);
    CU_ASSERT_EQUAL_FATAL(record_encode(&record, &bytes), THOLE_OK);
    history_writer_record(writer, sequence, buf_bytes(&bytes));
    buf_release(&bytes);
}

static void write_all(bool readable)
{
    struct event const few[] = {{.kind = EVENT_STARTED,
                                 .code = 1,
                                 .version = 1,
                                 .id = 1,
                                 .name = THOLE_STR("checkout"),
                                 .data = THOLE_STR("{\"<customer>\":\"a\\\"b\"}")},
                                {.kind = EVENT_ACTIVITY_SCHEDULED,
                                 .id = 2,
                                 .queue = THOLE_STR("default"),
                                 .name = THOLE_STR("pay"),
                                 .data = THOLE_STR("100 EUR")}};
    struct history_writer writer;
    free(written);
    FILE *const to = open_memstream(&written, &written_len);
    history_writer_init(&writer, to, HISTORY_JSONL, "shop");
    if (readable)
        writer.decorate = export_decorate;
    history_writer_begin(&writer, 3, THOLE_STR("order 7"));
    write_record(&writer, 11, few, ARRAY_LEN(few));
    write_record(&writer, 12, sample_events, sample_events_len);
    history_writer_end(&writer);
    (void)fclose(to);
    history_writer_release(&writer);
}

/* The error of the file with one place replaced; "" when it is good. */
static const char *said(const char *from, const char *to)
{
    static thole_error error;
    struct history_file_reader const reader = {.readable = export_readable};
    struct buf text;
    buf_init(&text, 4 * RECORD_BYTES);
    const char *const at = from[0] == '\0' ? written : strstr(written, from);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    buf_append(&text, written, (size_t)(at - written));
    buf_text(&text, to);
    buf_text(&text, at + strlen(from));
    FILE *const file = fmemopen(text.ptr, text.len, "r");
    thole_status const status = history_file_read(file, &reader, &error);
    (void)fclose(file);
    buf_release(&text);
    CU_ASSERT(status == THOLE_OK || status == THOLE_CORRUPT);
    char *const place = strstr(error.text, ", at byte");
    if (place != NULL)
        *place = '\0';
    return status == THOLE_OK ? "" : error.text;
}

#define LINE "the readable events in line 2 are not those of its record 11: "

static void test_forged(void)
{
    static const struct {
        const char *from, *to, *said;
    } rows[] = {
        {"", "", ""},
        {"\"100 EUR\"", "\"1 EUR\"", LINE "event 2 has another \"data\""},
        {"\"name\":\"pay\"", "\"name\":\"refund\"", LINE "event 2 has another \"name\""},
        {"\"kind\":\"ActivityScheduled\"", "\"kind\":\"ActivityCompleted\"",
         LINE "event 2 has another \"kind\""},
        {"\"id\":2,", "\"id\":22,", LINE "event 2 has another \"id\""},
        {"\"name\":\"pay\",", "", LINE "event 2 has no \"name\""},
        {"\"name\":\"pay\"", "\"name\":\"pay\",\"name\":\"refund\"",
         LINE "event 2 has members that this version does not know"},
        {"\"name\":\"pay\"", "\"name\":\"pay\",\"redacted\":true",
         LINE "event 2 has members that this version does not know"},
        {"\"name\":\"pay\"", "\"name\":\"pay\",\"n\\u0061me\":\"refund\"",
         LINE "event 2 has members that this version does not know"},
        {"\"events\":[{", "\"events\":[{\"id\":0},{", LINE "event 1 has no \"execution\""},
        {"\"100 EUR\"", "\"\\u0031\\u00300 EUR\"", ""}, /* equal text */
        {"\"100 EUR\"", "  \"100 EUR\" ", ""},
        {"\"events\":", "\"ev\":",
         "line 2 is not as thole export writes it: there is no \"ev\"; there are: schema sequence record "
         "events"},
        {"\"events\":", "\"events\":[],\"events\":",
         "line 2 is not as thole export writes it: \"events\" is there twice"},
        {"\"instance\":", "\"instance\":\"other\",\"instance\":",
         "line 1 is not as thole export writes it: \"instance\" is there twice"},
        {"\"instance\":", "\"inst\\u0061nce\":\"other\",\"instance\":",
         "line 1 is not as thole export writes it: a member's name is written with an escape"},
        {"\"records\":", "\"records\":9,\"records\":",
         "line 4 is not as thole export writes it: \"records\" is there twice"},
    };
    write_all(true);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char got[sizeof((thole_error *)0)->text];
        (void)snprintf(got, sizeof got, "%s", said(rows[i].from, rows[i].to));
        CHECK_STR(rows[i].to, got, rows[i].said);
    }
}

/* An event less, an event more, and a line whose events were taken away. */
static void test_counts(void)
{
    char events[8192], got[512];
    write_all(true);
    char *const begin = strstr(written, ",\"events\":["), *const end = strchr(begin, '\n') - 1;
    char *const second = strstr(begin, ",{\"execution\":1,\"id\":2");
    CU_ASSERT_FATAL(end > second && (size_t)(end - begin) < sizeof events);
    (void)snprintf(events, sizeof events, "%.*s", (int)(end - 1 - second), second);
    (void)snprintf(got, sizeof got, "%s", said(events, ""));
    CHECK_STR("one less", got, LINE "event 2 is missing");
    char twice[sizeof events * 2];
    (void)snprintf(twice, sizeof twice, "%s%s", events, events);
    (void)snprintf(got, sizeof got, "%s", said(events, twice));
    CHECK_STR("one more", got, LINE "there are more than 2");
    (void)snprintf(events, sizeof events, "%.*s", (int)(end - begin), begin);
    (void)snprintf(got, sizeof got, "%s", said(events, ""));
    CHECK_STR("none", got,
              "the readable events in line 3 are not those of its record 12: other records have none");
}

static void test_without(void)
{
    write_all(false);
    char got[512];
    (void)snprintf(got, sizeof got, "%s", said("", ""));
    CHECK_STR("none at all", got, "");
}

/* A reader without use for them does not look. */
static void test_unread(void)
{
    struct history_file_reader const reader = {.begin = NULL};
    write_all(true);
    memcpy(strstr(written, "100 EUR"), "999", 3);
    FILE *const file = fmemopen(written, written_len, "r");
    CU_ASSERT_EQUAL(history_file_read(file, &reader, NULL), THOLE_OK);
    (void)fclose(file);
    free(written);
    written = NULL;
}

static const struct thole_test tests[] = {
    {"what is forged", test_forged},
    {"how many there are", test_counts},
    {"a file without", test_without},
    {"another reader", test_unread},
};

THOLE_TEST_MAIN("export_readable", tests)
