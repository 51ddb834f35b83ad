/* Which entries leave memory: those at rest that were used least recently; and how many others are looked at.
 */
#include "instances_stand.h"

enum { ENTRIES = ENDED_MAX + 500, IN_USE = 400, LOOKS = 16 };

static struct entries all;

static struct entry *add(enum entry_state state, size_t i)
{
    char id[32];
    (void)snprintf(id, sizeof id, "%zu", i);
    struct entry *const entry = entries_add(&all, thole_slice_from(id));
    entry_become(&all, entry, state);
    return entry;
}

/* The first ones, which were used least recently, are in use. */
static void begin_with(enum entry_state state, size_t len, size_t in_use)
{
    memset(&all, 0, sizeof all);
    for (size_t i = 0; i < len; i++)
        add(state, i)->in_flight = i < in_use;
}

static void evict_down_to(size_t keep)
{
    entries_evict(&all, &(struct entries_kept){.keep = keep, .bytes = SIZE_MAX, .early_bytes = SIZE_MAX});
}

static size_t number(const struct entry *entry)
{
    size_t n = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(entry);
    for (size_t i = 0; i < entry->id.len; i++)
        n = n * 10 + entry->id.ptr[i] - '0';
    return n;
}

static void all_at_rest(const struct entry_list *list)
{
    for (struct entry *entry = list->first; entry != NULL; entry = entry->lru_next)
        entry->in_flight = 0;
}

static void test_the_oldest_go(void)
{
    begin_with(ENTRY_UNREADABLE, 10, 0);
    evict_down_to(4);
    CU_ASSERT_EQUAL(all.lru.len, 4);
    CU_ASSERT_EQUAL(number(all.lru.last), 6);
    CU_ASSERT_EQUAL(number(all.lru.first), 9);
    CU_ASSERT_PTR_NULL(entries_find(&all, THOLE_STR("5")));
    entries_release(&all);
}

/* They stay, and later ones go. */
static void test_what_is_in_use_stays(void)
{
    begin_with(ENTRY_ENDED, ENTRIES, IN_USE);
    evict_down_to(0);
    CU_ASSERT_EQUAL(all.over.len, ENDED_MAX);
    CU_ASSERT_PTR_NOT_NULL(entries_find(&all, THOLE_STR("0")));
    CU_ASSERT_PTR_NULL(entries_find(&all, THOLE_STR("400")));
    CU_ASSERT_EQUAL(number(all.over.last), ENTRIES - ENDED_MAX + IN_USE);
    CU_ASSERT_EQUAL(number(all.over.first), IN_USE - 1);
    entries_release(&all);
}

/* An eviction that finds nothing takes as long with thousands in use as with few; the next one goes on. */
static void test_few_in_use_are_looked_at(void)
{
    begin_with(ENTRY_ENDED, ENTRIES, ENTRIES);
    evict_down_to(0); /* may look at the new ones, and finds nothing */
    CU_ASSERT_EQUAL(all.over.len, ENTRIES);
    CU_ASSERT_EQUAL(number(all.over.last), LOOKS);
    evict_down_to(0);
    CU_ASSERT_EQUAL(number(all.over.last), LOOKS + LOOKS);
    all_at_rest(&all.over);
    evict_down_to(0);
    CU_ASSERT_EQUAL(all.over.len, ENDED_MAX);
    entries_release(&all);
}

static void test_half_of_them(void)
{
    begin_with(ENTRY_UNREADABLE, ENTRIES, IN_USE);
    evict_down_to(ENTRIES);
    entries_evict_half(&all);
    CU_ASSERT_EQUAL(all.lru.len, ENTRIES / 2);
    CU_ASSERT_PTR_NOT_NULL(entries_find(&all, THOLE_STR("0")));
    entries_release(&all);
    begin_with(ENTRY_UNREADABLE, ENTRIES, ENTRIES);
    entries_evict_half(&all);
    CU_ASSERT_EQUAL(all.lru.len, ENTRIES);
    entries_release(&all);
}

static const struct thole_test tests[] = {
    {"eviction: the oldest go", test_the_oldest_go},
    {"eviction: what is in use stays", test_what_is_in_use_stays},
    {"eviction: few in use are looked at", test_few_in_use_are_looked_at},
    {"eviction: half of them", test_half_of_them},
};
THOLE_TEST_MAIN("eviction", tests)
