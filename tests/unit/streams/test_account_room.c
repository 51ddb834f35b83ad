/* The storage limits of an account, by the server's answer: with one limit for all streams, and with
 * tiers. */
#include "overview.h"
#include "thole_cunit.h"

/* As nats-server 2.10.27 answers, cut to what is read and what stands around it. */
#define LIMITS(store)                                                                                        \
    "{\"max_memory\":-1,\"max_storage\":" store ",\"max_streams\":-1,\"max_consumers\":-1,"                  \
    "\"max_ack_pending\":-1,\"memory_max_stream_bytes\":-1,\"storage_max_stream_bytes\":-1,"                 \
    "\"max_bytes_required\":false}"
#define TIER(store, max)                                                                                     \
    "{\"memory\":0,\"storage\":" store ",\"reserved_memory\":0,\"reserved_storage\":0,\"streams\":25,"       \
    "\"consumers\":17,\"limits\":" LIMITS(max) "}"

static const char flat[] = "{\"type\":\"io.nats.jetstream.api.v1.account_info_response\",\"memory\":7,"
                           "\"storage\":300,\"reserved_memory\":0,\"reserved_storage\":0,\"streams\":25,"
                           "\"consumers\":17,\"limits\":" LIMITS("1000") ",\"api\":{\"total\":1}}";
static const char tiered[] =
    "{\"type\":\"io.nats.jetstream.api.v1.account_info_response\",\"memory\":7,"
    "\"storage\":330,\"streams\":26,\"consumers\":17,\"limits\":" LIMITS(
        "0") ",\"api\":{\"total\":1},\"tiers\":{\"R1\":" TIER("30", "200") ",\"R3\":" TIER("300", "100") "}}";

static void check_room(const char *answer, uint64_t replicas, uint64_t bytes, uint64_t bytes_max)
{
    struct overview_room const room = overview_account_room(thole_slice_from(answer), replicas);
    CU_ASSERT_EQUAL(room.file_bytes, bytes);
    CU_ASSERT_EQUAL(room.file_bytes_max, bytes_max);
    CU_ASSERT_EQUAL(room.memory_bytes_max, 0);
}

static void test_one_limit(void)
{
    check_room(flat, 1, 300, 1000);
    check_room(flat, 3, 300, 1000);
    check_room(flat, 0, 300, 1000);
}

/* The bytes of a tier are those of all replicas, its limit is that of one. */
static void test_tiers(void)
{
    check_room(tiered, 1, 30, 200);
    check_room(tiered, 3, 300, 300);
    check_room(tiered, 5, 0, 0);
}

static void test_limit_beyond_numbers(void)
{
    check_room("{\"tiers\":{\"R3\":" TIER("1", "9223372036854775807") "}}", 3, 1, UINT64_MAX);
    check_room("", 3, 0, 0);
}

static const struct thole_test tests[] = {
    {"one limit", test_one_limit},
    {"tiers", test_tiers},
    {"a limit beyond numbers", test_limit_beyond_numbers},
};
THOLE_TEST_MAIN("account room", tests)
