/* Which entries of the bucket of nodes are an engine's, and what of them is passed on. */
#include "link.h"
#include "nodes.h"
#include "reader.h"
#include "thole_cunit.h"
#include <stdlib.h>

enum { STORED_NS = 77 };

static struct {
    struct ordered_reader_options options; /* as opened */
    char stream[64], filter[64], text[64];
    const char *operation, *answer; /* NULL: none */
    char asked[128];
} play;

thole_status __wrap_ordered_reader_open(struct connection *connection,
                                        const struct ordered_reader_options *options,
                                        struct ordered_reader **ret, thole_error *reterr)
{
    (void)connection, (void)reterr;
    play.options = *options;
    (void)snprintf(play.stream, sizeof play.stream, "%s", options->stream);
    (void)snprintf(play.filter, sizeof play.filter, "%s", options->filter);
    *ret = NULL;
    return THOLE_OK;
}

void __wrap_ordered_reader_close(struct ordered_reader *reader)
{
    CU_ASSERT_PTR_NULL(reader);
}

thole_slice __wrap_delivery_header(const struct delivery *delivery, const char *name)
{
    (void)delivery;
    CHECK_STR("header", name, "KV-Operation");
    return thole_slice_from(play.operation);
}

uint64_t __wrap_delivery_stored_ns(const struct delivery *delivery)
{
    (void)delivery;
    return STORED_NS;
}

thole_status __wrap_connection_request_with(struct connection *connection, const char *subject,
                                            const struct header *headers, size_t headers_len,
                                            thole_slice body, struct buf *ret, thole_error *reterr)
{
    (void)connection, (void)reterr;
    (void)snprintf(play.asked, sizeof play.asked, "%s %.*s%s%.*s", subject, THOLE_FMT(body),
                   headers_len > 0 ? headers->key : "", headers_len > 0 ? (int)headers->value.len : 0,
                   headers_len > 0 ? (const char *)headers->value.ptr : "");
    if (play.answer == NULL)
        return thole_fail(reterr, THOLE_DENIED, "no");
    buf_text(ret, play.answer);
    return THOLE_OK;
}

/* The requests written, and the meaning of the answers. */
static void test_writes(void)
{
    static const struct {
        const char *ns, *node, *answer;
        thole_status status;
        const char *put, *deleted;
    } rows[] = {{"shop", "a", "{\"stream\":\"S\",\"seq\":7}", THOLE_OK, "$KV.THOLE_shop_NODES.a beat",
                 "$KV.THOLE_shop_NODES.a KV-OperationDEL"},
                {"shop", "a", "{\"error\":{\"code\":503},\"seq\":7}", THOLE_UNAVAILABLE,
                 "$KV.THOLE_shop_NODES.a beat", "$KV.THOLE_shop_NODES.a KV-OperationDEL"},
                {"shop", "a", NULL, THOLE_DENIED, "$KV.THOLE_shop_NODES.a beat",
                 "$KV.THOLE_shop_NODES.a KV-OperationDEL"},
                {"sh op", "a", "{\"seq\":7}", THOLE_INVALID, "", ""},
                {"shop", "a.b", "{\"seq\":7}", THOLE_INVALID, "", ""}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_error err = {.status = THOLE_OK};
        thole_slice const node = thole_slice_from(rows[i].node);
        memset(&play, 0, sizeof play);
        play.answer = rows[i].answer;
        CU_ASSERT_EQUAL(nodes_put(NULL, rows[i].ns, node, THOLE_STR("beat"), &err), rows[i].status);
        CHECK_STR(rows[i].ns, play.asked, rows[i].put);
        CU_ASSERT_EQUAL(err.text[0] != '\0', rows[i].status != THOLE_OK);
        play.asked[0] = '\0';
        CU_ASSERT_EQUAL(nodes_delete(NULL, rows[i].ns, node, NULL), rows[i].status);
        CHECK_STR(rows[i].ns, play.asked, rows[i].deleted);
    }
    memset(&play, 0, sizeof play);
    play.answer = "no JSON";
    CU_ASSERT_NOT_EQUAL(nodes_put(NULL, "shop", THOLE_STR("a"), THOLE_STR("beat"), NULL), THOLE_OK);
}

static void on_node(void *arg, thole_slice node, thole_slice heartbeat, uint64_t stored_ns)
{
    CU_ASSERT_PTR_EQUAL(arg, &play);
    CU_ASSERT_EQUAL(stored_ns, STORED_NS);
    (void)snprintf(play.text, sizeof play.text, "%.*s: %.*s", THOLE_FMT(node), THOLE_FMT(heartbeat));
}

static void test_entries(void)
{
    static const struct {
        const char *subject, *operation, *want; /* want: nothing is passed on where it is empty */
    } rows[] = {{"$KV.THOLE_shop_NODES.a", "", "a: beat"}, {"$KV.THOLE_shop_NODES.a-1_b", "", "a-1_b: beat"},
                {"$KV.THOLE_shop_NODES.a", "DEL", "a: "},  {"$KV.THOLE_shop_NODES.a", "PURGE", "a: "},
                {"$KV.THOLE_shop_NODES.a.b", "", ""}, /* is not about a */
                {"$KV.THOLE_shop_NODES.a.b", "DEL", ""},   {"$KV.THOLE_shop_NODES.a%b", "", ""},
                {"$KV.THOLE_shop_NODES", "", ""}};
    struct nodes_watch *watch = NULL;
    CU_ASSERT_EQUAL_FATAL(nodes_watch_open(NULL, "shop", on_node, &play, &watch, NULL), THOLE_OK);
    CHECK_STR("stream", play.stream, "KV_THOLE_shop_NODES");
    CHECK_STR("filter", play.filter, "$KV.THOLE_shop_NODES.>");
    CU_ASSERT_TRUE(play.options.last_per_subject);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct delivery const delivery = {.subject = thole_slice_from(rows[i].subject),
                                          .body = THOLE_STR("beat")};
        play.operation = rows[i].operation;
        play.text[0] = '\0';
        play.options.each(play.options.arg, i + 1, &delivery);
        CHECK_STR(rows[i].subject, play.text, rows[i].want);
    }
    nodes_watch_close(watch);
}

static const struct thole_test tests[] = {{"entries", test_entries}, {"writes", test_writes}};
THOLE_TEST_MAIN("nodes", tests)
