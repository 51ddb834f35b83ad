/* Which entries of the bucket of nodes are an engine's, and what of them is passed on. */
#include "nodes.h"
#include "reader.h"
#include "thole_cunit.h"
#include <stdlib.h>

enum { STORED_NS = 77 };

static struct {
    struct ordered_reader_options options; /* as opened */
    char stream[64], filter[64], text[64];
    const char *operation;
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

static const struct thole_test tests[] = {{"entries", test_entries}};
THOLE_TEST_MAIN("nodes", tests)
