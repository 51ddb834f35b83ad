/* An engine's figures of stored bytes: by stream, account and database, in its answer and its metrics. */
#include "storage_room.h"
#include "thole_cunit.h"
#include <string.h>

enum { HOUR = 60 * 60 * 1000, DAY = 24 * HOUR };

static struct topology_seen seen_of(uint64_t hist, const char *first, uint64_t bytes, const char *second)
{
    struct topology_seen seen = {.looked = 3, .limits_len = second == NULL ? 1 : 2};
    seen.kinds[DEFECT_HIST] = (struct topology_usage){.streams = 2, .messages = 9, .bytes = hist};
    seen.limits[0] = (struct topology_limit){.bytes = bytes, .bytes_max = 1000};
    (void)snprintf(seen.limits[0].name, sizeof seen.limits[0].name, "%s", first);
    if (second != NULL)
        seen.limits[1] = (struct topology_limit){.bytes = 10, .bytes_max = 1000};
    (void)snprintf(seen.limits[1].name, sizeof seen.limits[1].name, "%s", second == NULL ? "" : second);
    return seen;
}

static void check_json(const struct room *room, const char *needed)
{
    struct buf text;
    struct json json;
    buf_init(&text, 8192);
    json_to_buf(&json, &text);
    room_json(room, &json);
    CHECK_STR(needed, strstr(buf_cstr(&text), needed) != NULL ? "" : buf_cstr(&text), "");
    buf_release(&text);
}

static void test_told(void)
{
    struct room room = {.limits_len = 0};
    struct topology_seen const early = seen_of(100, "A", 20, "B"), late = seen_of(1100, "B", 40, "A"),
                               latest = seen_of(1100, "C", 900, NULL);
    check_json(&room, "[]");
    room_take_streams(&room, &early, 1000);
    room_take_account(&room, 500, 24500, 1000);
    room_take_database(&room, 7, 1000);
    check_json(&room,
               "{\"what\":\"hist\",\"streams\":2,\"messages\":9,\"bytes\":100,\"bytes_max\":0,\"from_bytes\":"
               "100,\"span_ms\":0}");
    room_take_streams(&room, &late, 1000 + HOUR); /* the other one is fuller now */
    room_take_account(&room, 1500, 24500, 1000 + HOUR);
    check_json(&room,
               "{\"what\":\"account\",\"bytes\":1500,\"bytes_max\":24500,\"from_bytes\":500,\"span_ms\":"
               "3600000}");
    check_json(&room, "{\"what\":\"database\",\"bytes\":7,");
    check_json(&room,
               "{\"what\":\"B\",\"bytes\":40,\"bytes_max\":1000,\"from_bytes\":10,\"span_ms\":3600000}");
    check_json(&room,
               "{\"what\":\"A\",\"bytes\":10,\"bytes_max\":1000,\"from_bytes\":20,\"span_ms\":3600000}");
    room_take_streams(&room, &latest, 2000 + HOUR); /* and another one */
    check_json(&room, "{\"what\":\"C\",\"bytes\":900,\"bytes_max\":1000,\"from_bytes\":900,\"span_ms\":0}");
    CU_ASSERT_EQUAL(room.limits_len, 1);
}

/* A gauge of which nobody knows is 0, so what is full is 1. */
static void test_counted(void)
{
    struct metrics *const metrics = metrics_create(&(struct metrics_options){.roles = METRIC_ENGINE});
    struct metric_cells *const cells = metrics_cells(metrics);
    static const struct {
        uint64_t bytes, ms;
    } rows[] = {{20, 0}, {30, 4 * DAY}, {800, 1}, {1000, 1}, {1500, 1}, {10, 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct room room = {.limits_len = 0};
        struct topology_seen const early = seen_of(100, "A", 20, "B"),
                                   late = seen_of(1100, "A", rows[i].bytes, "B");
        room_take_streams(&room, &early, 1000);
        room_take_account(&room, 20, 1000, 1000);
        room_take_streams(&room, &late, 1000 + HOUR);
        room_take_account(&room, rows[i].bytes, 1000, 1000 + HOUR);
        room_count(&room, cells);
        CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_ENGINE_ROOM, 0), rows[i].ms);
        CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_ENGINE_ROOM, 1), rows[i].ms);
        CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_ENGINE_STORED, DEFECT_HIST), 1100);
        CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_ENGINE_MESSAGES, DEFECT_HIST), 9);
        CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_ENGINE_STORED, DEFECT_OBJECTS), rows[i].bytes);
    }
    room_count(&(struct room){.limits_len = 0}, cells);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_ENGINE_ROOM, 1), 0);
    CU_ASSERT_EQUAL(metrics_value(metrics, METRIC_ENGINE_STORED, DEFECT_HIST), 0);
    metrics_return_cells(cells);
    metrics_destroy(metrics);
}

static const struct thole_test tests[] = {{"told", test_told}, {"counted", test_counted}};
THOLE_TEST_MAIN("storage_room", tests)
