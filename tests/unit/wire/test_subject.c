/* The subject gate: one id, one token, and nothing that means anything to NATS. */
#include "message.h"
#include "subject.h"
#include "thole_cunit.h"
#include <stdlib.h>

static thole_slice slice(const char *text)
{
    return thole_slice_from(text);
}

static void test_partition_is_frozen(void)
{
    /* CRC-32 of "123456789" is 0xcbf43926, of "" 0, of "a" 0xe8b7be43: check values of the standard. */
    CU_ASSERT_EQUAL(subject_partition(THOLE_STR("123456789"), UINT32_MAX), 0xcbf43926u);
    CU_ASSERT_EQUAL(subject_partition(THOLE_STR("a"), UINT32_MAX), 0xe8b7be43u);
    CU_ASSERT_EQUAL(subject_partition((thole_slice){NULL, 0}, 8), 0);
    CU_ASSERT_EQUAL(subject_partition(THOLE_STR("order-42"), 1), 0);
    uint8_t all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    CU_ASSERT_EQUAL(subject_partition((thole_slice){all, 256}, UINT32_MAX), 0x29058c73u);
    CU_ASSERT_EQUAL(subject_partition(THOLE_STR("order-42"), 8), 6);
    CU_ASSERT_EQUAL(subject_partition(THOLE_STR("order-43"), 8), 0);
}

static void test_partition_spreads(void)
{
    unsigned count[8] = {0};
    for (int i = 0; i < 8000; i++) {
        char id[32];
        snprintf(id, sizeof id, "order-%d", i);
        count[subject_partition(slice(id), 8)]++;
    }
    for (int p = 0; p < 8; p++)
        CU_ASSERT(count[p] > 800 && count[p] < 1200);
}

static const struct {
    const char *row, *id, *token;
} tokens[] = {
    {"plain", "order-42_A~z", "order-42_A~z"},
    {"dot", "a.b", "a%2Eb"},
    {"space makes a reply subject", "a b", "a%20b"},
    {"CR LF begins a command", "a\r\nPUB x 0\r\n\r\n", "a%0D%0APUB%20x%200%0D%0A%0D%0A"},
    {"wildcards", "*.>", "%2A%2E%3E"},
    {"percent", "100%", "100%25"},
    {"looks escaped", "%2E", "%252E"},
    {"tab and DEL", "\t\x7f", "%09%7F"},
    {"of several results", "+", "%2B"},
    {"UTF-8", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "%C3%A4%E2%82%AC%F0%9F%98%80"},
    {"dollar", "$JS.API", "%24JS%2EAPI"},
    {"slash colon at", "a/b:c@d", "a%2Fb%3Ac%40d"},
};

static void test_tokens(void)
{
    struct buf to, back;
    thole_error err = {0};
    buf_init(&to, SUBJECT_BYTES_MAX);
    buf_init(&back, SUBJECT_BYTES_MAX);
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
        CU_ASSERT_EQUAL(subject_token(&to, slice(tokens[i].id), &err), THOLE_OK);
        CHECK_STR(tokens[i].row, buf_cstr(&to), tokens[i].token);
        CU_ASSERT_EQUAL(subject_token_decode(buf_bytes(&to), &back, &err), THOLE_OK);
        CHECK_STR(tokens[i].row, buf_cstr(&back), tokens[i].id);
    }
    buf_release(&to);
    buf_release(&back);
}

static const char *const bad_tokens[] = {"+",   "+a",  "a+",    "",    "a.b",    "a b",  "%",        "%2",
                                         "a%2", "%2e", "%zz",   "%41", "%00",    "a%7E", "\xc3\xa4", "%C3",
                                         "a*",  ">",   "a\r\n", "%5F", "%C0%80", "%FF",  "%ED%A0%80"};

static void test_bad_tokens_are_refused(void)
{
    struct buf back;
    buf_init(&back, SUBJECT_BYTES_MAX);
    for (size_t i = 0; i < ARRAY_LEN(bad_tokens); i++) {
        thole_error err = {0};
        CU_ASSERT_EQUAL(subject_token_decode(slice(bad_tokens[i]), &back, &err), THOLE_INVALID);
        CU_ASSERT(err.text[0] != 0);
    }
    buf_release(&back);
}

static void test_every_byte_stays_one_token(void)
{
    struct buf to, back;
    buf_init(&to, SUBJECT_BYTES_MAX);
    buf_init(&back, SUBJECT_BYTES_MAX);
    for (int c = 1; c < 0x80; c++) {
        uint8_t const id[3] = {'x', (uint8_t)c, 'y'};
        CU_ASSERT_EQUAL(subject_token(&to, (thole_slice){id, 3}, NULL), THOLE_OK);
        for (size_t i = 0; i < to.len; i++)
            CU_ASSERT(to.ptr[i] > ' ' && to.ptr[i] < 0x7f && strchr(".*>$\"'\\/", to.ptr[i]) == NULL);
        CU_ASSERT_EQUAL(subject_token_decode(buf_bytes(&to), &back, NULL), THOLE_OK);
        CU_ASSERT(thole_slice_equal(buf_bytes(&back), (thole_slice){id, 3}));
    }
    buf_release(&to);
    buf_release(&back);
}

static void test_ids_that_are_refused(void)
{
    struct buf to;
    char long_id[THOLE_ID_BYTES_MAX + 1];
    memset(long_id, 'x', sizeof long_id);
    struct {
        thole_slice id;
        thole_status want;
    } const rows[] = {
        {{NULL, 0}, THOLE_INVALID},
        {{(const uint8_t *)long_id, THOLE_ID_BYTES_MAX}, THOLE_OK},
        {{(const uint8_t *)long_id, THOLE_ID_BYTES_MAX + 1}, THOLE_INVALID},
        {{(const uint8_t *)"a\0b", 3}, THOLE_INVALID},
        {{(const uint8_t *)"\xff", 1}, THOLE_INVALID},
        {{(const uint8_t *)"\xc0\x80", 2}, THOLE_INVALID},
    };
    buf_init(&to, SUBJECT_BYTES_MAX);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CU_ASSERT_EQUAL(subject_token(&to, rows[i].id, NULL), rows[i].want);
        CU_ASSERT_EQUAL(subject_inbox(&to, "ns", 0, THOLE_STR("event.paid"), rows[i].id, NULL), rows[i].want);
        CU_ASSERT_EQUAL(subject_history(&to, "ns", 0, rows[i].id, 1, NULL), rows[i].want);
        CU_ASSERT_EQUAL(subject_work(&to, "ns", THOLE_STR("q"), rows[i].id, 1, 1, 1, NULL), rows[i].want);
        CU_ASSERT_EQUAL(subject_cancel(&to, "ns", rows[i].id, 1, NULL), rows[i].want);
        if (rows[i].id.len > 0) /* an empty instance is any */
            CU_ASSERT_EQUAL(subject_query(&to, "ns", 0, THOLE_STR("how"), rows[i].id, NULL), rows[i].want);
        CU_ASSERT_EQUAL(subject_event(&to, "ns", THOLE_STR("o"), rows[i].id, "completed", NULL),
                        rows[i].want);
    }
    buf_release(&to);
}

/* Runs one builder, chosen by number, and gives its text or its status' name. */
static const char *build(struct buf *to, int which, const char *ns, const char *name, thole_slice id)
{
    thole_status status = THOLE_INVALID;
    switch (which) {
    case 0: status = subject_inbox(to, ns, 7, THOLE_STR("event.paid"), id, NULL); break;
    case 1: status = subject_history(to, ns, 7, id, 3, NULL); break;
    case 2: status = subject_history(to, ns, 7, id, EXECUTIONS_ALL, NULL); break;
    case 3: status = subject_control(to, ns, 7, name, NULL); break;
    case 4: status = subject_work(to, ns, slice(name), id, 1, 2, 3, NULL); break;
    case 5: status = subject_cancel(to, ns, id, 4, NULL); break;
    case 6: status = subject_event(to, ns, slice(name), id, "failed", NULL); break;
    case 7: status = subject_event(to, ns, slice(""), id, "", NULL); break;
    case 8: status = stream_name(to, ns, name, 7, NULL); break;
    case 9: status = stream_name(to, ns, name, -1, NULL); break;
    case 10: status = subject_query(to, ns, 7, slice(name), id, NULL); break;
    case 11: status = subject_query(to, ns, 7, slice(""), slice(""), NULL); break;
    case 12: status = subject_history(to, ns, 7, id, 0, NULL); break;
    case 13: status = subject_results(to, ns, 7, NULL); break;
    }
    return status == THOLE_OK ? buf_cstr(to) : thole_status_name(status);
}

static void test_builders(void)
{
    static const char *const want[] = {
        "thole.shop.in.7.event.paid.a%2Eb",
        "thole.shop.hist.7.a%2Eb.3",
        "thole.shop.hist.7.a%2Eb.*",
        "thole.shop.ctl.7.epoch",
        "thole.shop.work.epoch.a%2Eb.1.2.3",
        "thole.shop.cancel.a%2Eb.4",
        "thole.shop.event.epoch.a%2Eb.failed",
        "thole.shop.event.*.a%2Eb.*",
        "THOLE_shop_epoch_7",
        "THOLE_shop_epoch",
        "thole.shop.query.7.epoch.a%2Eb",
        "thole.shop.query.7.*.*",
        "thole.shop.hist.7.a%2Eb.0",
        "thole.shop.in.7.result.worker.+",
    };
    static const char *const bad[] = {"", "a.b", "a b", "*", ">", "a\r\nb", "\xc3\xa4", "a/b"};
    struct buf to;
    buf_init(&to, SUBJECT_BYTES_MAX);
    for (int i = 0; i < (int)ARRAY_LEN(want); i++) {
        CHECK_STR("builder", build(&to, i, "shop", "epoch", THOLE_STR("a.b")), want[i]);
        for (size_t k = 0; k < ARRAY_LEN(bad); k++) {
            CHECK_STR("namespace", build(&to, i, bad[k], "epoch", THOLE_STR("a.b")), "INVALID");
            if ((i == 3 || i == 4 || i == 6 || i == 8 || i == 9 || i == 10) &&
                !((i == 6 || i == 10) && k == 0)) /* an empty orchestration or query is any */
                CHECK_STR("name", build(&to, i, "shop", bad[k], THOLE_STR("a.b")), "INVALID");
        }
    }
    buf_release(&to);
}

static void test_routes(void)
{
    static const char *const bad[] = {
        "",      "event",   ".",       "event.", ".paid",       "event.paid.x",   "event..paid",
        "a b.c", "event.*", "event.>", "*.paid", "ev\r\nent.x", "event.\xc3\xa4", "event.a%2Eb"};
    struct buf to;
    buf_init(&to, SUBJECT_BYTES_MAX);
    CU_ASSERT_EQUAL(subject_inbox(&to, "shop", 7, THOLE_STR("start_event.A-z_0~9"), THOLE_STR("i"), NULL),
                    THOLE_OK);
    CHECK_STR("good", buf_cstr(&to), "thole.shop.in.7.start_event.A-z_0~9.i");
    CU_ASSERT_TRUE(thole_slice_equal(subject_inbox_route(buf_bytes(&to)), THOLE_STR("start_event.A-z_0~9")));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(subject_inbox(&to, "shop", 7, slice(bad[i]), THOLE_STR("i"), NULL), THOLE_INVALID);
    CU_ASSERT_EQUAL(subject_inbox_route(THOLE_STR("thole.shop.in.7")).len, 0);
    CU_ASSERT_EQUAL(subject_inbox_route(THOLE_STR("thole.shop.in.7.event")).len, 0);
    CU_ASSERT_EQUAL(subject_inbox_route(THOLE_STR("thole.shop.in.7.event.")).len, 0);
    buf_release(&to);
}

static void test_replies(void)
{
    static const char *const good[] = {"_INBOX.x", "_INBOX.thole.abc.1", "_INBOX_me.x.2", "_R_.abc"};
    static const char *const bad[] = {"",
                                      "_INBOX",
                                      "_R_",
                                      "thole.shop.in.7.x",
                                      "thole._INBOX.x",
                                      "$JS.API.STREAM.DELETE.THOLE_shop_HIST_0",
                                      "_INBOX.x y",
                                      "_INBOX.x\r\nPUB a 0",
                                      "_INBOX.*",
                                      "_INBOX.>",
                                      "_INBOX..x",
                                      "_INBOX.x.",
                                      "_INBOX.\xc3\xa4"};
    char longest[SUBJECT_BYTES_MAX + 1] = "_INBOX.";
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CU_ASSERT_TRUE(subject_is_reply(slice(good[i])));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_FALSE(subject_is_reply(slice(bad[i])));
    memset(longest + 7, 'x', sizeof longest - 8);
    CU_ASSERT_FALSE(subject_is_reply(slice(longest)));
}

static void test_longest_fits(void)
{
    struct buf to;
    char name[THOLE_NAME_BYTES_MAX + 1], id[THOLE_ID_BYTES_MAX];
    memset(name, 'n', THOLE_NAME_BYTES_MAX);
    name[THOLE_NAME_BYTES_MAX] = 0;
    memset(id, '.', sizeof id); /* each takes three bytes */
    thole_slice const longest = {(const uint8_t *)id, sizeof id};
    buf_init(&to, SUBJECT_BYTES_MAX);
    CU_ASSERT_EQUAL(subject_work(&to, name, slice(name), longest, UINT64_MAX, UINT64_MAX, UINT64_MAX, NULL),
                    THOLE_OK);
    CU_ASSERT_EQUAL(subject_event(&to, name, slice(name), longest, "cancelled", NULL), THOLE_OK);
    CU_ASSERT_EQUAL(subject_inbox(&to, name, PARTITIONS_MAX, THOLE_STR("event.paid"), longest, NULL),
                    THOLE_INVALID);
    buf_release(&to);
    buf_init(&to, STREAM_NAME_BYTES_MAX - 1);
    CU_ASSERT_EQUAL(stream_name(&to, name, "HIST", PARTITIONS_MAX - 1, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(stream_name(&to, name, "HIST", PARTITIONS_MAX, NULL), THOLE_INVALID);
    buf_release(&to);
    buf_init(&to, 10);
    CU_ASSERT_EQUAL(subject_cancel(&to, "ns", longest, 1, NULL), THOLE_LIMIT);
    buf_release(&to);
}

static void test_nth(void)
{
    static const char *const want[] = {"thole", "", "x", "", ""};
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        CU_ASSERT(thole_slice_equal(subject_nth(THOLE_STR("thole..x"), i), slice(want[i])));
    CU_ASSERT_EQUAL(subject_nth((thole_slice){NULL, 0}, 0).len, 0);
    CU_ASSERT_EQUAL(subject_nth(THOLE_STR("a."), 1).len, 0);
}

static void test_split(void)
{
    static const char *const want[] = {"thole", "", "x", "", ""};
    thole_slice split[5];
    CU_ASSERT_EQUAL(subject_split(THOLE_STR("thole..x"), split, ARRAY_LEN(split)), 3);
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        CU_ASSERT(thole_slice_equal(split[i], slice(want[i])));
    CU_ASSERT_EQUAL(subject_split(THOLE_STR("a.b.c"), split, 2), 2);
    CU_ASSERT(thole_slice_equal(split[1], slice("b")));
    CU_ASSERT_EQUAL(subject_split(THOLE_STR("a."), split, 5), 2); /* an empty token is one */
    CU_ASSERT_EQUAL(subject_split((thole_slice){NULL, 0}, split, 5), 0);
}

/* The actor at the end of a subject. Anything but a whole .by.<actor>, in its one encoding, is no actor. */
static void test_actors(void)
{
    static const struct {
        const char *subject;
        size_t by;
        const char *actor; /* NULL: refused */
    } rows[] = {
        {"thole.s.in.7.event.paid.i", 7, ""},
        {"thole.s.in.7.event.by.i", 7, ""}, /* an event of that name */
        {"thole.s.in.7.event.paid.i.by.alice", 7, "alice"},
        {"thole.s.in.7.event.paid.by.by.by", 7, "by"},
        {"thole.s.in.7.event.paid.i.by.a%2Eb%40example", 7, "a.b@example"},
        {"thole.s.in.7.event.paid.i.by.alice.bob", 7, NULL},
        {"thole.s.in.7.event.paid.i.by.alice.", 7, NULL},
        {"thole.s.in.7.event.paid.i.by.", 7, NULL},
        {"thole.s.in.7.event.paid.i.by", 7, NULL},
        {"thole.s.in.7.event.paid.i.By.alice", 7, NULL},
        {"thole.s.in.7.event.paid.i.x.by.alice", 7, NULL},
        {"thole.s.in.7.event.paid.i.by.%61lice", 7, NULL},
        {"thole.s.in.7.event.paid.i.by.%2e", 7, NULL},
        {"thole.s.in.7.event.paid.i.by.*", 7, NULL},
        {"thole.s.in.7.event.paid.i.by.>", 7, NULL},
        {"thole.s.call.by", 4, ""},
        {"thole.s.call.by.by.alice", 4, "alice"},
        {"thole.s.call.by.alice", 4, NULL},
    };
    static const thole_slice bad[] = {{(const uint8_t *)"a\0b", 3}, {(const uint8_t *)"\xff", 1}};
    struct buf to;
    buf_init(&to, SUBJECT_BYTES_MAX);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_status const status = subject_actor(slice(rows[i].subject), rows[i].by, &to, NULL);
        CHECK_STR(rows[i].subject, status == THOLE_OK ? buf_cstr(&to) : "refused",
                  rows[i].actor == NULL ? "refused" : rows[i].actor);
    }
    CU_ASSERT_EQUAL(subject_inbox(&to, "s", 7, THOLE_STR("event.paid"), THOLE_STR("i"), NULL), THOLE_OK);
    CU_ASSERT_EQUAL(subject_add_actor(&to, slice(""), NULL), THOLE_OK);
    CHECK_STR("nobody", buf_cstr(&to), "thole.s.in.7.event.paid.i");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(subject_add_actor(&to, bad[i], NULL), THOLE_INVALID);
    CU_ASSERT_EQUAL(subject_add_actor(&to, THOLE_STR("a.b"), NULL), THOLE_OK);
    CHECK_STR("somebody", buf_cstr(&to), "thole.s.in.7.event.paid.i.by.a%2Eb");
    buf_release(&to);
}

/* Several results stand where no instance's message can, and no other message stands there. */
static void test_several_results(void)
{
    static const struct {
        const char *subject;
        bool want;
    } rows[] = {
        {"thole.s.in.7.result.worker.+", true},
        {"thole.s.in.0.result.worker.+", true},
        {"thole.s.in.7.result.outside.+", false},
        {"thole.s.in.7.result.child.+", false},
        {"thole.s.in.7.event.paid.+", false},
        {"thole.s.in.7.event.worker.+", false},
        {"thole.s.in.7.result.worker.order", false},
        {"thole.s.in.7.result.worker.%2B", false},
        {"thole.s.in.7.result.worker.++", false},
        {"thole.s.in.7.result.worker.+a", false},
        {"thole.s.in.7.result.worker.", false},
        {"thole.s.in.7.result.worker", false},
        {"thole.s.in.7.result.worker.+.by.alice", false},
        {"thole.s.in.7.result.worker.order.+", false},
        {"thole.s.in.7.result.+.worker", false},
        {"+", false},
        {"", false},
    };
    struct buf to, id;
    buf_init(&to, SUBJECT_BYTES_MAX);
    buf_init(&id, SUBJECT_BYTES_MAX);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool const got = subject_is_results(slice(rows[i].subject));
        CHECK_STR(rows[i].subject, got ? "results" : "none", rows[i].want ? "results" : "none");
    }
    CU_ASSERT_FALSE(subject_is_results((thole_slice){NULL, 0}));
    CU_ASSERT_EQUAL(subject_results(&to, "s", 7, NULL), THOLE_OK);
    CU_ASSERT_TRUE(subject_is_results(buf_bytes(&to)));
    CU_ASSERT_EQUAL(subject_token_decode(subject_nth(buf_bytes(&to), INBOX_TOKEN_INSTANCE), &id, NULL),
                    THOLE_INVALID);
    CU_ASSERT_EQUAL(subject_inbox(&to, "s", 7, THOLE_STR("result.worker"), THOLE_STR("+"), NULL), THOLE_OK);
    CU_ASSERT_FALSE(subject_is_results(buf_bytes(&to))); /* of an instance with that id */
    CU_ASSERT_EQUAL(subject_results(&to, "s", PARTITIONS_MAX - 1, NULL), THOLE_OK);
    CU_ASSERT_EQUAL(subject_results(&to, "s", PARTITIONS_MAX, NULL), THOLE_INVALID);
    buf_release(&to);
    buf_release(&id);
}

/* Subjects that the history stream of partition 1 of namespace s may store. */
static void test_of_log(void)
{
    static const struct {
        const char *subject;
        bool is;
    } rows[] = {{"thole.s.hist.1.a.1", true},
                {"thole.s.ctl.1.epoch", true},
                {"thole.s.hist.0.a.1", false},
                {"thole.s.hist.10.a.1", false},
                {"thole.s.hist.01.a.1", false},
                {"thole.t.hist.1.a.1", false},
                {"thole.s.work.q.a.1.2.1", false},
                {"thole.s.in.1.start.a.b", false},
                {"x.s.hist.1.a.1", false},
                {"thole.s.hist", false},
                {"", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool const got = subject_is_of_log(slice(rows[i].subject), "s", 1);
        CU_ASSERT_EQUAL(got, rows[i].is);
        if (got != rows[i].is)
            fprintf(stderr, "%s\n", rows[i].subject);
    }
}

static const struct thole_test tests[] = {
    {"what is published to a log", test_of_log},
    {"the partition of an id is frozen", test_partition_is_frozen},
    {"partitions are used evenly", test_partition_spreads},
    {"ids become tokens and come back", test_tokens},
    {"what subject_token() would not write is refused", test_bad_tokens_are_refused},
    {"no byte gets out of its token", test_every_byte_stays_one_token},
    {"ids that are refused", test_ids_that_are_refused},
    {"subjects and stream names", test_builders},
    {"kind and name of a message", test_routes},
    {"several results", test_several_results},
    {"where replies may go", test_replies},
    {"the longest fit, and what does not fit says so", test_longest_fits},
    {"tokens of a subject", test_nth},
    {"all its tokens", test_split},
    {"who asks, as the subject says", test_actors},
};
THOLE_TEST_MAIN("subject", tests)
