/* The result of thole_client_rejected() for the contents of the stream, which is played. */
#include "client_internal.h"
#include "heap.h"
#include "rejected.h"
#include "said.h"
#include "thole_cunit.h"
#include <inttypes.h>

static struct {
    thole_status read_status, each_status;
    uint64_t behind, most;
    struct said said;
} play;

thole_status __wrap_rejected_read(struct connection *connection, const char *ns, struct rejected_list *list,
                                  thole_error *reterr)
{
    (void)connection;
    CHECK_STR("namespace", ns, "shop");
    play.behind = list->behind;
    play.most = list->most;
    list->items = arena_array(&list->arena, 2, sizeof *list->items);
    CU_ASSERT_PTR_NOT_NULL_FATAL(list->items);
    list->len = 2;
    for (uint64_t i = 0; i < list->len; i++)
        list->items[i] = (struct rejected_item){.partition = (uint32_t)(10 + i),
                                                .sequence = 20 + i,
                                                .stored_ns = (30 + i) * 1000000 + 999999,
                                                .code = i == 0 ? THOLE_STR("big") : THOLE_STR("late"),
                                                .reason = THOLE_STR("why"),
                                                .subject = THOLE_STR("thole.shop.in"),
                                                .payload = THOLE_STR("first"),
                                                .bytes = 40 + i,
                                                .number = 50 + i};
    return play.read_status == THOLE_OK ? THOLE_OK : thole_fail(reterr, play.read_status, "not read");
}

static thole_status each(void *arg, const thole_rejected_info *info)
{
    CU_ASSERT_PTR_EQUAL(arg, &play);
    said_add(&play.said,
             "%" PRIu64 ": %.*s (%.*s) on %.*s, %.*s of %" PRIu64 ", at %" PRIu64 ", p=%u %" PRIu64 "\n",
             info->number, THOLE_FMT(info->code), THOLE_FMT(info->reason), THOLE_FMT(info->subject),
             THOLE_FMT(info->payload), info->bytes, info->stored_ms, (unsigned)info->partition,
             info->sequence);
    return play.each_status;
}

static thole_status read_behind(uint64_t behind, uint64_t limit, thole_error *err)
{
    struct thole_client client = {.topology = {.ns = "shop"}};
    *err = (thole_error){.status = THOLE_OK};
    return thole_client_rejected(&client, behind, limit, each, &play, err);
}

#define NEWEST "51: late (why) on thole.shop.in, first of 41, at 31, p=11 21\n"

static void test_rejected(void)
{
    thole_error err;
    memset(&play, 0, sizeof play);
    CU_ASSERT_EQUAL(read_behind(0, 0, &err), THOLE_OK);
    said_check(&play.said, "the newest first",
               NEWEST "50: big (why) on thole.shop.in, first of 40, at 30, p=10 20\n");
    CU_ASSERT_EQUAL(play.behind, 0);
    CU_ASSERT_EQUAL(play.most, 100);
    CU_ASSERT_EQUAL(read_behind(7, 3, &err), THOLE_OK);
    CU_ASSERT_EQUAL(play.behind, 7);
    CU_ASSERT_EQUAL(play.most, 3);
    said_clear(&play.said);
    play.each_status = THOLE_CANCELLED;
    CU_ASSERT_EQUAL(read_behind(0, 0, &err), THOLE_CANCELLED);
    said_check(&play.said, "the first one ended it", NEWEST);
}

static void test_what_fails(void)
{
    static const struct {
        thole_status status;
        const char *text;
    } rows[] = {{THOLE_UNAVAILABLE, "not read"},
                {THOLE_NOT_FOUND, "stream THOLE_shop_REJECTED is not there: engines of this version make it "
                                  "when they start"}};
    memset(&play, 0, sizeof play);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        thole_error err;
        play.read_status = rows[i].status;
        CU_ASSERT_EQUAL(read_behind(0, 0, &err), rows[i].status);
        CHECK_STR("why", err.text, rows[i].text);
        said_check(&play.said, rows[i].text, "");
    }
}

static void test_nothing_is_left(void)
{
    enum { ROUNDS = 100, HEAP_NOISE = 1024 };
    size_t used = 0;
    for (int round = 0; round < ROUNDS; round++) {
        test_rejected();
        test_what_fails();
        if (round == ROUNDS / 2)
            used = heap_used();
    }
    CU_ASSERT(heap_used() < used + HEAP_NOISE);
}

static const struct thole_test tests[] = {
    {"rejected", test_rejected}, {"what fails", test_what_fails}, {"nothing is left", test_nothing_is_left}};
THOLE_TEST_MAIN("client_rejected", tests)
