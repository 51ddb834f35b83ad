/* docs/wire.md is what others build on: each row of its tables is compared with the code. */
#include "calls.h"
#include "emitted_event.h"
#include "gateway_host.h"
#include "header_names.h"
#include "instance.h"
#include "instance_calls.h"
#include "message_route.h"
#include "notice.h"
#include "partition.h"
#include "query_message.h"
#include "session.h"
#include "subject.h"
#include "task_claim.h"
#include "thole/activity.h"
#include "thole/types.h"
#include "thole_cunit.h"
#include "topology.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_MAX = 256 * 1024, CELLS_MAX = 8, CELL_BYTES = 4096, ID_MAX = 256 };

static char page[PAGE_MAX];

struct row {
    char cells[CELLS_MAX][CELL_BYTES];
    size_t n;
};

/* Without the spaces around it and without code marks. */
static void trim(char *cell, const char *from, size_t len)
{
    while (len > 0 && isspace((unsigned char)*from))
        from++, len--;
    while (len > 0 && isspace((unsigned char)from[len - 1]))
        len--;
    CU_ASSERT_TRUE_FATAL(len < CELL_BYTES);
    memcpy(cell, from, len);
    cell[len] = '\0';
}

static void unmark(char *cell)
{
    size_t const len = strlen(cell);
    if (len >= 2 && cell[0] == '`' && cell[len - 1] == '`' && strchr(cell + 1, '`') == cell + len - 1) {
        memmove(cell, cell + 1, len - 2);
        cell[len - 2] = '\0';
    }
}

static const char *split(const char *line, struct row *row)
{
    const char *end = strchr(line, '\n');
    row->n = 0;
    for (const char *at = line + 1, *bar; row->n < CELLS_MAX; at = bar + 1) {
        bar = memchr(at, '|', (size_t)(end - at));
        if (bar == NULL)
            break;
        trim(row->cells[row->n], at, (size_t)(bar - at));
        unmark(row->cells[row->n++]);
    }
    return end + 1;
}

/* Calls @p each for every row of that table; returns how many there were. */
static size_t each_row(const char *table, void (*each)(const struct row *row))
{
    static struct row row;
    char mark[64];
    size_t rows = 0;
    snprintf(mark, sizeof mark, "<!-- table: %s -->\n", table);
    const char *line = strstr(page, mark);
    CU_ASSERT_PTR_NOT_NULL_FATAL(line);
    line += strlen(mark);
    for (int head = 0; head < 2; head++)
        line = split(line, &row);
    for (; *line == '|'; rows++) {
        line = split(line, &row);
        each(&row);
    }
    return rows;
}

/* "616263", or "61*200". */
static thole_slice unhex(const char *text, uint8_t *to, size_t cap)
{
    size_t len = 0;
    unsigned byte = 0;
    for (; isxdigit((unsigned char)text[0]) && sscanf(text, "%2x", &byte) == 1; text += 2) {
        CU_ASSERT_TRUE_FATAL(len < cap);
        to[len++] = (uint8_t)byte;
    }
    size_t const times = *text == '*' ? strtoul(text + 1, NULL, 10) : 1;
    CU_ASSERT_TRUE_FATAL(len * times <= cap);
    for (size_t i = 1; i < times; i++)
        memcpy(to + i * len, to, len);
    return (thole_slice){to, len * times};
}

/* "%C3%A9`, `…", or "`x` 200 times". */
static void expand(const char *cell, char *to, size_t cap)
{
    char one[64];
    unsigned times = 0;
    if (sscanf(cell, "`%63[^`]` %u times", one, &times) != 2) {
        snprintf(to, cap, "%s", cell);
        return;
    }
    to[0] = '\0';
    for (unsigned i = 0; i < times; i++)
        snprintf(to + strlen(to), cap - strlen(to), "%s", one);
}

static void check_id(const struct row *row)
{
    uint8_t bytes[ID_MAX];
    char token[CELL_BYTES];
    struct buf made, back;
    thole_slice const id = unhex(row->cells[1], bytes, sizeof bytes);
    buf_init(&made, SUBJECT_BYTES_MAX);
    buf_init(&back, THOLE_ID_BYTES_MAX);
    expand(row->cells[2], token, sizeof token);
    CU_ASSERT_EQUAL(subject_token(&made, id, NULL), THOLE_OK);
    CHECK_STR(row->cells[0], buf_cstr(&made), token);
    CU_ASSERT_EQUAL(subject_token_decode(thole_slice_from(token), &back, NULL), THOLE_OK);
    CU_ASSERT_TRUE(thole_slice_equal(buf_bytes(&back), id));
    uint64_t const crc = strtoull(row->cells[3], NULL, 16);
    CU_ASSERT_EQUAL(subject_partition(id, 4096), crc % 4096);
    CU_ASSERT_EQUAL(subject_partition(id, UINT32_MAX), crc % UINT32_MAX);
    CU_ASSERT_EQUAL(subject_partition(id, 8), strtoul(row->cells[4], NULL, 10));
    CU_ASSERT_EQUAL(subject_partition(id, 64), strtoul(row->cells[5], NULL, 10));
    buf_release(&made);
    buf_release(&back);
}

static void test_ids(void)
{
    CU_ASSERT_TRUE(each_row("ids", check_id) >= 20);
}

static void check_bad_id(const struct row *row)
{
    uint8_t bytes[ID_MAX];
    struct buf made;
    buf_init(&made, SUBJECT_BYTES_MAX);
    thole_slice const id = unhex(row->cells[1], bytes, sizeof bytes);
    CU_ASSERT_EQUAL(subject_token(&made, id, NULL), THOLE_INVALID);
    CU_ASSERT_EQUAL(id_check(id, NULL), THOLE_INVALID);
    buf_release(&made);
}

static void test_ids_that_are_none(void)
{
    CU_ASSERT_TRUE(each_row("bad ids", check_bad_id) >= 8);
}

/* ---- messages ---- */

#define S(literal)                                                                                           \
    {                                                                                                        \
        (const uint8_t *)("" literal), sizeof(literal) - 1                                                   \
    }
#define ORDER .instance = S("order-17")
static const struct {
    const char *name;
    struct message message;
} messages[] = {
    {"start",
     {.kind = MESSAGE_START,
      ORDER,
      .orchestration = S("checkout"),
      .data = S("order=17"),
      .request_id = S("r-1")}},
    {"start version",
     {.kind = MESSAGE_START, ORDER, .orchestration = S("checkout"), .version = 2, .request_id = S("r-2")}},
    {"start with event",
     {.kind = MESSAGE_START,
      ORDER,
      .orchestration = S("cart"),
      .request_id = S("r-3"),
      .event_name = S("add"),
      .event_data = S("lamp")}},
    {"start traced",
     {.kind = MESSAGE_START,
      ORDER,
      .orchestration = S("checkout"),
      .request_id = S("r-13"),
      .trace = {S("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), S("rojo=1")}}},
    {"event",
     {.kind = MESSAGE_EVENT, ORDER, .event_name = S("paid"), .event_data = S("99"), .request_id = S("r-4")}},
    {"cancel", {.kind = MESSAGE_CANCEL, ORDER, .data = S("changed their mind"), .request_id = S("r-5")}},
    {"terminate", {.kind = MESSAGE_TERMINATE, ORDER, .data = S("enough"), .request_id = S("r-6")}},
    {"pause", {.kind = MESSAGE_PAUSE, ORDER, .data = S("looked into"), .request_id = S("r-7")}},
    {"resume", {.kind = MESSAGE_RESUME, ORDER, .request_id = S("r-8")}},
    {"delete", {.kind = MESSAGE_DELETE, ORDER, .request_id = S("r-9"), .execution = 1, .force = true}},
    {"complete",
     {.kind = MESSAGE_ACTIVITY_RESULT, ORDER, .execution = 1, .task = 2, .data = S("ok"), .try_number = 1}},
    {"fail",
     {.kind = MESSAGE_ACTIVITY_RESULT,
      ORDER,
      .execution = 1,
      .task = 2,
      .status = THOLE_APP,
      .data = S("declined"),
      .try_number = 3,
      .error_type = S("card_declined"),
      .final = true}},
    {"retry", {.kind = MESSAGE_RELEASE, ORDER, .execution = 1, .task = 2}},
    {"prune", {.kind = MESSAGE_PRUNE, ORDER, .execution = 10, .request_id = S("r-11")}},
    {"retry instance", {.kind = MESSAGE_RETRY, ORDER, .request_id = S("r-12")}},
    {"fire timer", {.kind = MESSAGE_RELEASE, ORDER, .execution = 1, .task = 2, .timer = true}},
    {"hostile id", {.kind = MESSAGE_CANCEL, .instance = S("a.b/c:\xc3\xa4"), .request_id = S("r-10")}},
};

static thole_status encode_other(const char *name, struct buf *to)
{
    struct query const query = {.instance = S("order-17"), .name = S("progress"), .input = S("now")};
    struct query_answer const half = {.data = S("half")},
                              gone = {.status = THOLE_NOT_FOUND, .data = S("gone")};
    if (strcmp(name, "query") == 0)
        return query_encode(&query, to);
    if (strcmp(name, "answer") == 0)
        return query_answer_encode(&half, to);
    return strcmp(name, "answer not found") == 0 ? query_answer_encode(&gone, to) : THOLE_NOT_FOUND;
}

static thole_status encode(const char *name, struct buf *to)
{
    for (size_t i = 0; i < ARRAY_LEN(messages); i++)
        if (strcmp(messages[i].name, name) == 0)
            return message_encode(&messages[i].message, to);
    return encode_other(name, to);
}

static size_t kinds_seen;

static void check_message(const struct row *row)
{
    uint8_t bytes[CELL_BYTES];
    struct buf made;
    struct arena arena;
    struct message back;
    buf_init(&made, CELL_BYTES);
    arena_init(&arena, 1 << 20);
    thole_slice const wanted = unhex(row->cells[3], bytes, sizeof bytes);
    CU_ASSERT_EQUAL(encode(row->cells[0], &made), THOLE_OK);
    if (!thole_slice_equal(buf_bytes(&made), wanted))
        fprintf(stderr, "  docs/wire.md: message \"%s\" has other bytes\n", row->cells[0]);
    CU_ASSERT_TRUE(thole_slice_equal(buf_bytes(&made), wanted));
    if (message_decode(wanted, &arena, &back, NULL) == THOLE_OK) {
        struct message_route const route = message_route(&back, SENDER_CLIENT);
        kinds_seen |= (size_t)1 << back.kind;
        CHECK_STR(row->cells[0], route.text, row->cells[2]);
    } else {
        CHECK_STR(row->cells[0], "-", row->cells[2]);
    }
    arena_release(&arena);
    buf_release(&made);
}

/* All kinds but the engines' own. */
static void test_golden_bytes(void)
{
    CU_ASSERT_EQUAL(each_row("messages", check_message), ARRAY_LEN(messages) + 3);
    for (unsigned kind = MESSAGE_START; kind <= MESSAGE_LAST; kind++)
        CU_ASSERT_EQUAL((kinds_seen >> kind & 1) != 0, kind != MESSAGE_CHILD_RESULT);
}

/* ---- words and numbers ---- */

static void check_status(const struct row *row)
{
    static long next;
    CU_ASSERT_EQUAL(strtol(row->cells[0], NULL, 10), next++);
    CHECK_STR(row->cells[0], thole_status_name((thole_status)strtol(row->cells[0], NULL, 10)), row->cells[1]);
}

static enum reject_code next_code;

static void check_code(const struct row *row)
{
    const char *name = reject_code_name(++next_code);
    CHECK_STR("code", name, row->cells[0]);
}

static void check_limit(const struct row *row)
{
    static const struct {
        const char *what;
        unsigned long most;
    } limits[] = {{"id, request id", THOLE_ID_BYTES_MAX},
                  {"name", THOLE_NAME_BYTES_MAX},
                  {"reason", REASON_BYTES_MAX},
                  {"error type", ERROR_TYPE_BYTES_MAX},
                  {"message", MESSAGE_BYTES_MAX},
                  {"body kept of a rejected message", REJECTED_PAYLOAD_MAX},
                  {"partitions", PARTITIONS_MAX},
                  {"events that wait in an instance", EVENTS_KEPT_MAX},
                  {"bytes of events that wait in an instance", EVENTS_KEPT_BYTES_MAX},
                  {"request ids of events that an instance knows again", ORIGINS_CARRIED_MAX},
                  {"sessions of a gateway", GATEWAY_SESSIONS_MAX},
                  {"tasks of a session", SESSION_SLOTS_MAX},
                  {"activities of a session", SESSION_ACTIVITIES_MAX},
                  {"claims that a session resumes", SESSION_CLAIMS_MAX},
                  {"claim of a task", TASK_CLAIM_BYTES - 1},
                  {"host of a worker", RUN_HOST_BYTES_MAX},
                  {"requests of clients under way in a gateway", INSTANCE_CALLS_MAX},
                  {"wait of a request to a gateway", INSTANCE_WAIT_MS_MAX},
                  {"requests under way in a binder", CALLS_MAX},
                  {"wait of a request to a binder", CALL_WAIT_MS_MAX}};
    bool found = false;
    for (size_t i = 0; i < ARRAY_LEN(limits); i++)
        if (strcmp(limits[i].what, row->cells[0]) == 0) {
            CU_ASSERT_EQUAL(strtoul(row->cells[1], NULL, 10), limits[i].most);
            found = true;
        }
    CU_ASSERT_TRUE(found);
}

static void test_words_and_numbers(void)
{
    CU_ASSERT_EQUAL(each_row("statuses", check_status), THOLE_LATER); /* which never leaves a process */
    CU_ASSERT_EQUAL(each_row("codes", check_code), REJECT_HOLD_UNKNOWN);
    CU_ASSERT_EQUAL(each_row("limits", check_limit), 20);
}

/* The first number is the format of the namespace. */
static void test_version(void)
{
    unsigned format = 0, addition = 0;
    const char *const said = strstr(page, "This is contract **");
    CU_ASSERT_PTR_NOT_NULL_FATAL(said);
    CU_ASSERT_EQUAL(sscanf(said, "This is contract **%u.%u**", &format, &addition), 2);
    CU_ASSERT_EQUAL(format, CONFIG_FORMAT);
    char row[32];
    (void)snprintf(row, sizeof row, "\n| %u.%u |", format, addition);
    CU_ASSERT_PTR_NOT_NULL(strstr(page, row));
    (void)snprintf(row, sizeof row, "\n| `format` | %u. ", format);
    CU_ASSERT_PTR_NOT_NULL(strstr(page, row));
}

/* ---- live events and headers ---- */

/* The n-th `word` of the text, from 0, with n counted down. */
static bool marked_word(const char *text, const char *end, size_t n, char *to, size_t cap)
{
    for (const char *at = strchr(text, '`'), *close; at != NULL && at < end; at = strchr(close + 1, '`')) {
        close = strchr(at + 1, '`');
        if (close == NULL || close >= end)
            return false;
        if (n-- == 0) {
            snprintf(to, cap, "%.*s", (int)(close - at - 1), at + 1);
            return true;
        }
    }
    return false;
}

static size_t next_kind; /* of what the page lists, in the order of the code */

static void check_kinds(const struct row *row)
{
    char cell[CELL_BYTES + 2], word[64];
    snprintf(cell, sizeof cell, "%s%s%s", strchr(row->cells[0], '`') == NULL ? "`" : "", row->cells[0],
             strchr(row->cells[0], '`') == NULL ? "`" : "");
    for (size_t i = 0; marked_word(cell, cell + strlen(cell), i, word, sizeof word); i++) {
        const char *const kind = event_notice_kind(next_kind++);
        CHECK_STR("kind of live event", kind, word);
    }
}

static void test_live_events(void)
{
    CU_ASSERT_EQUAL(each_row("kinds", check_kinds), 5);
    CU_ASSERT_PTR_NULL(event_notice_kind(next_kind));
}

static const char *const headers[] = {HEADERS_OF_CONTRACT};

static bool is_header(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(headers); i++)
        if (strlen(headers[i]) == len && memcmp(headers[i], name, len) == 0)
            return true;
    return false;
}

/* Each that the page names is one, and the page names each. */
static void test_headers(void)
{
    for (const char *at = strstr(page, "`Thole-"); at != NULL; at = strstr(at + 1, "`Thole-")) {
        size_t const len = strcspn(at + 1, "`:");
        if (!is_header(at + 1, len))
            fprintf(stderr, "  docs/wire.md: there is no header %.*s\n", (int)len, at + 1);
        CU_ASSERT_TRUE(is_header(at + 1, len));
    }
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        char alone[64], with_value[64];
        snprintf(alone, sizeof alone, "`%s`", headers[i]);
        snprintf(with_value, sizeof with_value, "`%s: ", headers[i]);
        if (strstr(page, alone) == NULL && strstr(page, with_value) == NULL)
            fprintf(stderr, "  docs/wire.md: the header %s is missing\n", headers[i]);
        CU_ASSERT_TRUE(strstr(page, alone) != NULL || strstr(page, with_value) != NULL);
    }
}

/* `Thole-Kind` (`requested`, …): in the order of the enum. */
static void test_kinds_of_cancellation(void)
{
    const char *from = strstr(page, "`Thole-Kind`\n("), *end = from == NULL ? NULL : strchr(from, ')');
    char word[64];
    size_t n = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(end);
    while (marked_word(from, end, n + 1, word, sizeof word)) {
        const char *const kind = thole_cancel_kind_name((thole_cancel_kind)++n);
        CHECK_STR("kind of cancellation", kind, word);
    }
    CU_ASSERT_EQUAL(n, THOLE_CANCEL_TERMINATED);
}

static void check_cloud_event(const struct row *row)
{
    uint8_t bytes[ID_MAX];
    struct arena arena;
    struct emitted_event event;
    struct emission const of = {.instance = S("order-17"),
                                .orchestration = S("checkout"),
                                .type = S("com.example.order.shipped"),
                                .data = unhex(row->cells[0], bytes, sizeof bytes),
                                .execution = 2,
                                .event = 7,
                                .time_ms = 1700000000123};
    char body[CELL_BYTES];
    arena_init(&arena, emitted_event_room(EVENTS_MODE_STRUCTURED, &of));
    CU_ASSERT_EQUAL_FATAL(emitted_event_make("shop", EVENTS_MODE_STRUCTURED, &of, &arena, &event, NULL),
                          THOLE_OK);
    (void)snprintf(body, sizeof body, "%.*s", THOLE_FMT(event.body));
    CHECK_STR("structured mode", body, row->cells[1]);
    arena_release(&arena);
}

static void test_cloud_events(void)
{
    CU_ASSERT_EQUAL(each_row("cloudevents", check_cloud_event), 5);
}

static bool read_page(void)
{
    FILE *file = fopen(THOLE_SOURCE_DIR "/docs/wire.md", "r");
    size_t const len = file == NULL ? 0 : fread(page, 1, sizeof page - 1, file);
    if (file != NULL)
        (void)fclose(file);
    return len > 0 && len < sizeof page - 1;
}

static void test_page_is_there(void)
{
    CU_ASSERT_TRUE(read_page());
}

static const struct thole_test tests[] = {
    {"page_is_there", test_page_is_there},
    {"ids", test_ids},
    {"ids_that_are_none", test_ids_that_are_none},
    {"golden_bytes", test_golden_bytes},
    {"words_and_numbers", test_words_and_numbers},
    {"version", test_version},
    {"live_events", test_live_events},
    {"headers", test_headers},
    {"cloud_events", test_cloud_events},
    {"kinds_of_cancellation", test_kinds_of_cancellation},
};
THOLE_TEST_MAIN("wire", tests)
