/* Which places of records are believed: of the same instance, in the same ownership of its partition. */
#include "read_places.h"
#include "thole_cunit.h"
#include <string.h>

enum { P = 3, GENERATION = 7, MANY = 5000 };

static const struct log_record records[] = {{.sequence = 4, .execution = 0}, {.sequence = 9, .execution = 1}};
static struct removing_place found[REMOVING_KNOWN];

static void test_what_is_believed(void)
{
    struct read_places *const places = read_places_create();
    thole_slice const order = THOLE_STR("order");
    read_places_note(places, P, GENERATION, order, records, ARRAY_LEN(records));
    CU_ASSERT_EQUAL(read_places_take(places, P, GENERATION + 1, order, found), 0);
    CU_ASSERT_EQUAL(read_places_take(places, P + 1, GENERATION, order, found), 0);
    CU_ASSERT_EQUAL(read_places_take(places, P, GENERATION, order, found), 2);
    CU_ASSERT(found[0].execution == 0 && found[0].sequence == 4);
    CU_ASSERT(found[1].execution == 1 && found[1].sequence == 9);
    CU_ASSERT_EQUAL(read_places_take(places, P, GENERATION, order, found), 0);
    read_places_destroy(places);
    read_places_destroy(NULL);
}

/* Each has a slot that it shares with others: none gets what is another's. */
static void test_many(void)
{
    struct read_places *const places = read_places_create();
    struct log_record record = {.execution = 1};
    char id[32];
    size_t kept = 0;
    for (uint64_t i = 1; i <= MANY; i++) {
        (void)snprintf(id, sizeof id, "order-%llu", (unsigned long long)i);
        record.sequence = i;
        read_places_note(places, P, GENERATION, thole_slice_from(id), &record, 1);
    }
    for (uint64_t i = 1; i <= MANY; i++) {
        (void)snprintf(id, sizeof id, "order-%llu", (unsigned long long)i);
        size_t const n = read_places_take(places, P, GENERATION, thole_slice_from(id), found);
        CU_ASSERT(n == 0 || (n == 1 && found[0].sequence == i));
        kept += n;
    }
    CU_ASSERT(kept > 0 && kept < MANY);
    read_places_destroy(places);
}

static void test_too_long(void)
{
    static struct log_record long_history[REMOVING_KNOWN + 1];
    struct read_places *const places = read_places_create();
    thole_slice const order = THOLE_STR("order");
    read_places_note(places, P, GENERATION, order, records, ARRAY_LEN(records));
    read_places_note(places, P, GENERATION, order, long_history, ARRAY_LEN(long_history));
    CU_ASSERT_EQUAL(read_places_take(places, P, GENERATION, order, found), 0);
    read_places_note(places, P, GENERATION, order, long_history, REMOVING_KNOWN);
    CU_ASSERT_EQUAL(read_places_take(places, P, GENERATION, order, found), REMOVING_KNOWN);
    read_places_destroy(places);
}

static const struct thole_test tests[] = {
    {"what is believed", test_what_is_believed},
    {"many", test_many},
    {"too long", test_too_long},
};
THOLE_TEST_MAIN("read_places", tests)
