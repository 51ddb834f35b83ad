/* Changes and removals while engines run are seen, and repaired where that is possible. */
#include "marked_store.h"
#include "stream_specs.h"
#include "thole_cunit.h"
#include "topology.h"
#include "wrap_one_attempt.h"
#include "wrap_topology.h"
#include <stdio.h>
#include <string.h>

struct seen_defects {
    size_t len;
    struct defect all[8];
};

static void take_defect(void *arg, const struct defect *defect)
{
    struct seen_defects *const seen = arg;
    CU_ASSERT_TRUE(defect->remedy[0] != '\0');
    if (seen->len < ARRAY_LEN(seen->all))
        seen->all[seen->len] = *defect;
    seen->len++;
}

static struct seen_defects look(const struct topology *topology)
{
    struct seen_defects seen = {.len = 0};
    struct topology_seen about;
    play_check_done(topology_look(NULL, topology, &about, take_defect, &seen, &play_err));
    play_check_done(topology_look_keys(NULL, topology, take_defect, &seen, &play_err));
    play_check_done(topology_look_stores(NULL, topology, &about, take_defect, &seen, &play_err));
    return seen;
}

/* A running engine sees the flaws that a starting one refuses; and it repairs changeable fields, one by one,
 * with all else as it is. */
static void test_seen_while_it_runs(void)
{
    for (size_t i = 0; i < topology_fields_len && topology_fields[i].name[0] != '$'; i++) {
        char before[CONFIG_BYTES];
        struct topology topology;
        play_begin();
        play_check_done(play_ensure_with((struct topology_options){.partitions = 1}, &topology));
        (void)snprintf(before, sizeof before, "%s", play_find(topology_fields[i].name)->text);
        CU_ASSERT_EQUAL(look(&topology).len, 0);
        play_change(topology_fields[i].name, topology_fields[i].from, topology_fields[i].to);
        struct seen_defects const seen = look(&topology);
        if (topology_fields[i].text[0] == '\0' || strstr(topology_fields[i].to, "\"name\":") != NULL)
            continue; /* allowed, or a field occurs twice */
        CHECK_STR(topology_fields[i].to, seen.len == 1 ? "seen" : "not seen once", "seen");
        CHECK_STR("whose", seen.all[0].name + strlen("stream "), topology_fields[i].name);
        if (seen.len != 1 || seen.all[0].cure != CURE_FIX)
            continue;
        play_check_done(topology_mend(NULL, &topology, &seen.all[0], &play_err));
        CU_ASSERT_EQUAL(look(&topology).len, 0);
        CU_ASSERT_TRUE(strlen(play_find(topology_fields[i].name)->text) + 60 > strlen(before));
    }
}

/* A field that no server changes in an existing stream is not tried: people are told what helps. */
static void test_fixed_while_it_runs(void)
{
    static const struct {
        const char *name, *from, *to, *remedy;
    } rows[] = {
        {"KV_THOLE_shop_NODES", "\"deny_purge\":false", "\"deny_purge\":true",
         "nats stream rm KV_THOLE_shop_NODES"},
        {"THOLE_shop_WORK", "\"workqueue\"", "\"limits\"",
         "nats stream rm THOLE_shop_WORK --force; an engine makes"},
        {"THOLE_shop_HIST_0", "\"deny_delete\":false", "\"deny_delete\":true",
         "nats stream backup THOLE_shop_HIST_0"},
        {"THOLE_shop_HIST_0", "{", "{\"sealed\":true,", "where FILE has sealed false"},
        {"THOLE_shop_IN_0", "{", "{\"allow_msg_ttl\":true,", "where FILE has allow_msg_ttl false"},
        {"THOLE_shop_HIST_0", "\"file\"", "\"memory\"", "where FILE has storage file"},
        {"THOLE_shop_HIST_0", "\"num_replicas\":1", "\"num_replicas\":3", "--replicas 1 --force"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct topology topology;
        play_begin();
        play_check_done(play_ensure_with((struct topology_options){.partitions = 1}, &topology));
        play_change(rows[i].name, rows[i].from, rows[i].to);
        struct seen_defects const seen = look(&topology);
        CU_ASSERT_EQUAL(seen.len, 1);
        CHECK_STR(rows[i].to, seen.all[0].cure == CURE_NONE ? "" : "tried", "");
        CHECK_STR(rows[i].to, strstr(seen.all[0].remedy, rows[i].remedy) != NULL ? "" : seen.all[0].remedy,
                  "");
    }
}

/* Each stream is removed in turn: which are made again, and which nobody may make. */
static void test_missing_while_it_runs(void)
{
    static const struct {
        const char *name;
        bool again;
    } rows[] = {{"KV_THOLE_shop_CONFIG", false}, {"KV_THOLE_shop_SECRET", false},
                {"KV_THOLE_shop_NODES", true},   {"KV_THOLE_shop_CRASHES", true},
                {"THOLE_shop_WORK", true},       {"THOLE_shop_REJECTED", true},
                {"THOLE_shop_IN_0", false},      {"THOLE_shop_HIST_0", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct topology topology;
        struct buf text;
        play_begin();
        play_check_done(play_ensure_with((struct topology_options){.partitions = 1}, &topology));
        play_forget(rows[i].name);
        struct seen_defects const seen = look(&topology);
        CU_ASSERT_EQUAL_FATAL(seen.len, 1);
        buf_init(&text, 1000);
        defect_text(&seen.all[0], &text);
        CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&text), rows[i].name));
        CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&text), " is missing"));
        buf_release(&text);
        CU_ASSERT_EQUAL(seen.all[0].cure, rows[i].again ? CURE_ENGINE : CURE_NONE);
        if (rows[i].again)
            play_check_done(topology_mend(NULL, &topology, &seen.all[0], &play_err));
        CU_ASSERT_EQUAL(look(&topology).len, rows[i].again ? 0 : 1);
    }
}

static void test_keys_while_it_runs(void)
{
    static const struct {
        const char *key, *value, *found; /* value NULL: it is removed */
    } rows[] = {{"$KV.THOLE_shop_CONFIG.partitions", "2", "2"},
                {"$KV.THOLE_shop_CONFIG.partitions", "x", "no number"},
                {"$KV.THOLE_shop_CONFIG.format", NULL, "no value"},
                {"$KV.THOLE_shop_CONFIG.payload_max", "1000", "1000"},
                {"$KV.THOLE_shop_SECRET.nonces", rivals_key, "another value"},
                {"$KV.THOLE_shop_SECRET.nonces", "x", "another value"},
                {"$KV.THOLE_shop_SECRET.nonces", NULL, "no value"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct topology topology;
        play_begin();
        play_check_done(play_ensure_with((struct topology_options){.partitions = 1}, &topology));
        play_forget(rows[i].key);
        if (rows[i].value != NULL)
            play_keep_text(rows[i].key, rows[i].value);
        struct seen_defects const seen = look(&topology);
        CU_ASSERT_EQUAL(seen.len, 1);
        CHECK_STR(rows[i].key, seen.all[0].found, rows[i].found);
        CU_ASSERT_PTR_NULL(strstr(seen.all[0].found, rivals_key)); /* a secret */
    }
}

/* Stores that not every namespace has: made, marked, removed, given up. */
static void test_stores_while_it_runs(void)
{
    static const struct {
        enum namespace_store store;
        const char *name;
        bool counts; /* how far it reaches is kept */
    } rows[] = {{STORE_HOLDS, "KV_THOLE_shop_HOLDS", true},
                {STORE_BINDINGS, "KV_THOLE_shop_BINDINGS", true},
                {STORE_AUDIT, "THOLE_shop_AUDIT", false},
                {STORE_RESTORED, "THOLE_shop_RESTORED", false},
                {STORE_EVENTS, "THOLE_shop_EVENTS", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct topology topology;
        struct marked_store found;
        play_begin();
        play_check_done(play_ensure_with((struct topology_options){.partitions = 1}, &topology));
        CU_ASSERT_EQUAL(look(&topology).len, 0);
        CU_ASSERT_EQUAL(play_find(rows[i].name) != NULL, rows[i].store != STORE_EVENTS); /* engines make it */
        play_check_done(marked_store_check(NULL, "shop", rows[i].store, &play_err));
        play_check_done(marked_store_set_up(NULL, "shop", rows[i].store, 1, &play_err));
        play_check_done(marked_store_require(NULL, "shop", rows[i].store, &play_err));
        CU_ASSERT_EQUAL(look(&topology).len, 0);
        play.last = 7;
        CU_ASSERT_EQUAL(look(&topology).len, 0); /* an engine notes how far it reaches */
        play.last = 6;
        CU_ASSERT_EQUAL(look(&topology).len, 2); /* HOLDS and BINDINGS */
        CU_ASSERT_EQUAL(marked_store_check(NULL, "shop", rows[i].store, &play_err),
                        rows[i].counts ? THOLE_CONFLICT : THOLE_OK);
        play.last = 8;
        CU_ASSERT_EQUAL(look(&topology).len, 0);
        play_forget(rows[i].name);
        struct seen_defects const seen = look(&topology);
        CU_ASSERT_EQUAL_FATAL(seen.len, 1);
        CHECK_STR("whose", seen.all[0].name + strlen("stream "), rows[i].name);
        CU_ASSERT_EQUAL(seen.all[0].cure, CURE_NONE);
        CU_ASSERT_PTR_NOT_NULL(strstr(seen.all[0].remedy, "thole recover -n shop"));
        CU_ASSERT_EQUAL(marked_store_check(NULL, "shop", rows[i].store, &play_err), THOLE_CONFLICT);
        CU_ASSERT_PTR_NOT_NULL(strstr(play_err.text, "was there"));
        CU_ASSERT_EQUAL(marked_store_require(NULL, "shop", rows[i].store, &play_err), THOLE_CONFLICT);
        play_check_done(marked_store_set_up(NULL, "shop", rows[i].store, 1, &play_err));
        CU_ASSERT_PTR_NULL(play_find(rows[i].name)); /* not made silently */
        play_check_done(store_mark_forget(NULL, "shop", rows[i].store, &play_err));
        CU_ASSERT_EQUAL(look(&topology).len, 0);
        CU_ASSERT_EQUAL(marked_store_require(NULL, "shop", rows[i].store, &play_err), THOLE_NOT_FOUND);
        CU_ASSERT_PTR_NOT_NULL(strstr(play_err.text, rows[i].name));
        CU_ASSERT_PTR_NOT_NULL(strstr(play_err.text, "start an engine of this version once"));
        CU_ASSERT_PTR_NULL(play_find(rows[i].name)); /* nobody else makes it */
        play_check_done(marked_store_set_up(NULL, "shop", rows[i].store, 1, &play_err));
        play_check_done(marked_store_require(NULL, "shop", rows[i].store, &play_err));
        play_check_done(marked_store_look(NULL, "shop", rows[i].store, &found, &play_err));
        CU_ASSERT_EQUAL(found.verdict, STORE_FITS);
    }
}

/* One that an earlier version made has no mark: an engine marks it, and who looks alone does not. */
static void test_unmarked_stores(void)
{
    struct topology topology, of_doctor;
    struct marked_store found;
    play_begin();
    play_check_done(play_ensure_with((struct topology_options){.partitions = 1}, &topology));
    play_forget("$KV.THOLE_shop_CONFIG.store_holds");
    of_doctor = topology;
    of_doctor.ensured = false;
    (void)look(&of_doctor);
    play_check_done(marked_store_look(NULL, "shop", STORE_HOLDS, &found, &play_err));
    CU_ASSERT_EQUAL(found.verdict, STORE_UNMARKED);
    (void)look(&topology);
    play_check_done(marked_store_look(NULL, "shop", STORE_HOLDS, &found, &play_err));
    CU_ASSERT_EQUAL(found.verdict, STORE_FITS);
    play_keep_text("$KV.THOLE_shop_CONFIG.store_holds", "rubbish");
    CU_ASSERT_EQUAL(marked_store_check(NULL, "shop", STORE_HOLDS, &play_err), THOLE_CORRUPT);
    play_keep_text("$KV.THOLE_shop_CONFIG.store_holds", "{\"made\":1}");
    CU_ASSERT_EQUAL(marked_store_check(NULL, "shop", STORE_HOLDS, &play_err), THOLE_CORRUPT);
}

static size_t count_peers(const char *info)
{
    struct seen_defects seen = {.len = 0};
    struct stream_spec const spec = stream_spec_history("shop", 0, 3);
    spec_compare_peers(&spec, thole_slice_from(info), take_defect, &seen);
    if (seen.len > 0) {
        CU_ASSERT_EQUAL(seen.all[0].cure, CURE_NONE);
        CU_ASSERT_EQUAL(seen.all[0].weight, DEFECT_WARNS);
    }
    return seen.len;
}

static void test_peers(void)
{
    CU_ASSERT_EQUAL(
        count_peers("{\"config\":{\"num_replicas\":3},\"cluster\":{\"name\":\"c\",\"replicas\":[{\"name\":"
                    "\"a\"},{\"name\":\"b\",\"offline\":true}]}}"),
        0);
    CU_ASSERT_EQUAL(
        count_peers("{\"config\":{\"num_replicas\":3},\"cluster\":{\"name\":\"c\",\"replicas\":[{\"name\":"
                    "\"a\"}]}}"),
        1);
    CU_ASSERT_EQUAL(count_peers("{\"config\":{\"num_replicas\":3},\"cluster\":{\"name\":\"c\"}}"), 1);
    CU_ASSERT_EQUAL(count_peers("{\"config\":{\"num_replicas\":1},\"cluster\":{\"name\":\"c\"}}"), 0);
    CU_ASSERT_EQUAL(count_peers("{\"config\":{\"num_replicas\":3}}"), 0); /* no cluster */
}

static const struct thole_test tests[] = {
    {"what is changed while it runs is seen, and put right", test_seen_while_it_runs},
    {"servers that keep a stream are counted", test_peers},
    {"what nobody can change is said, and not tried", test_fixed_while_it_runs},
    {"what is removed while it runs is seen, and made again", test_missing_while_it_runs},
    {"keys that are changed while it runs are seen", test_keys_while_it_runs},
    {"stores that are removed while it runs are seen, and not made again", test_stores_while_it_runs},
    {"stores of an earlier version are marked", test_unmarked_stores},
};
THOLE_TEST_MAIN("topology_looked", tests)
