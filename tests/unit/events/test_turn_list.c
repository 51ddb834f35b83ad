/* From records to turns: parts, repetitions of a newer owner, voids after them. */
#include "thole_cunit.h"
#include "turn_list.h"
#include <string.h>

enum { RECORDS_MAX = 8, ARENA_BYTES = 64 * 1024 };

/* A record with one event whose id is its place in the row, from 1. epoch 0 ends the row. */
struct written {
    uint64_t epoch, n, execution, turn;
    bool more;
};

static const struct row {
    const char *name;
    struct written written[RECORDS_MAX];
    const char *want; /* "turn:ids" for each complete turn; "(…)" for one without its end */
} rows[] = {
    {"plain", {{1, 1, 1, 1, false}, {1, 2, 1, 2, false}}, "1:1 2:2 "},
    {"two parts", {{1, 1, 1, 1, false}, {1, 2, 1, 2, true}, {1, 3, 1, 2, false}}, "1:1 2:23 "},
    {"no end", {{1, 1, 1, 1, false}, {1, 2, 1, 2, true}}, "1:1 (2:2) "},
    {"written again", {{1, 1, 1, 1, false}, {1, 2, 1, 2, true}, {2, 1, 1, 2, false}}, "1:1 2:3 "},
    {"written again whole", {{1, 1, 1, 1, true}, {1, 2, 1, 1, false}, {2, 1, 1, 1, false}}, "1:3 "},
    {"void behind", {{2, 1, 1, 1, false}, {1, 2, 1, 2, false}, {2, 2, 1, 2, false}}, "1:1 2:3 "},
    {"newest execution", {{1, 1, 1, 1, false}, {1, 2, 1, 2, false}, {1, 3, 2, 1, false}}, "1:3 "},
    {"half a newer execution", {{1, 1, 1, 1, false}, {1, 2, 2, 1, true}}, "1:1 "},
    {"in parts",
     {{1, 1, 1, 1, false}, {1, 2, 2, 1, true}, {1, 3, 2, 1, false}, {1, 4, 2, 2, true}},
     "1:23 (2:4) "},
    {"half, then again",
     {{1, 1, 1, 1, false}, {1, 2, 2, 1, true}, {2, 1, 2, 1, true}, {2, 2, 2, 1, false}},
     "1:34 "},
    {"half, then void", {{1, 1, 1, 1, false}, {2, 1, 2, 1, true}, {1, 2, 2, 1, false}}, "1:1 "},
    {"half, then the older one goes on",
     {{1, 1, 0, 1, false}, {1, 2, 1, 1, true}, {2, 1, 0, 2, false}},
     "1:1 2:3 "},
    {"half, then written again, then void",
     {{1, 1, 0, 1, false}, {1, 2, 0, 2, false}, {1, 3, 1, 1, true}, {2, 1, 0, 2, false}, {1, 4, 1, 1, false}},
     "1:1 2:4 "},
    {"older execution", {{1, 1, 2, 1, false}, {1, 2, 1, 9, false}}, "1:1 "},
    {"gap in the parts", {{1, 1, 1, 1, true}, {1, 3, 1, 1, false}}, "(1:1) 1:2 "},
    {"before it begins", {{1, 1, 0, 1, false}, {1, 2, 0, 2, false}, {1, 3, 1, 1, false}}, "1:3 "},
};

static void render(const struct turn *turn, char *to, size_t cap)
{
    size_t len = strlen(to);
    len += (size_t)snprintf(to + len, cap - len, "%s%llu:", turn->more ? "(" : "",
                            (unsigned long long)turn->number);
    for (size_t i = 0; i < turn->events_len; i++)
        len += (size_t)snprintf(to + len, cap - len, "%llu", (unsigned long long)turn->events[i].id);
    (void)snprintf(to + len, cap - len, "%s ", turn->more ? ")" : "");
}

static size_t write_row(const struct row *row, struct event *events, struct turn_list *list)
{
    size_t n = 0;
    for (; n < RECORDS_MAX && row->written[n].epoch > 0; n++) {
        const struct written *w = &row->written[n];
        events[n] = (struct event){.kind = EVENT_TIMER_FIRED, .id = n + 1};
        struct record const record = {.kind = RECORD_TURN,
                                      .epoch = w->epoch,
                                      .n = w->n,
                                      .turn = {.execution = w->execution,
                                               .number = w->turn,
                                               .more = w->more,
                                               .events = &events[n],
                                               .events_len = 1}};
        turn_list_take(list, &record);
    }
    return n;
}

static void test_rows(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct record records[RECORDS_MAX];
        struct event events[RECORDS_MAX];
        struct turn_list list = {.records = records};
        struct arena arena;
        char got[256] = "";
        arena_init(&arena, ARENA_BYTES);
        (void)write_row(&rows[i], events, &list);
        for (size_t first = 0, parts = 1; first < list.len && parts > 0; first += parts) {
            struct turn turn;
            parts = turn_list_join(&list, first, &arena, &turn);
            render(&turn, got, sizeof got);
        }
        CHECK_STR(rows[i].name, got, rows[i].want);
        arena_release(&arena);
    }
}

static void test_no_memory(void)
{
    struct record records[RECORDS_MAX];
    struct event events[RECORDS_MAX];
    struct turn_list list = {.records = records};
    struct arena arena;
    struct turn turn;
    arena_init(&arena, 1);
    (void)write_row(&rows[1], events, &list);
    CU_ASSERT_EQUAL(turn_list_join(&list, 0, &arena, &turn), 1); /* one part is borrowed as it is */
    CU_ASSERT_EQUAL(turn_list_join(&list, 1, &arena, &turn), 0);
    arena_release(&arena);
}

static const struct thole_test tests[] = {{"rows", test_rows}, {"no_memory", test_no_memory}};

int main(void)
{
    return thole_run_suite("turn_list", tests, ARRAY_LEN(tests));
}
