/*
 * The states of an entry: each transition of the table is walked by what comes from outside, and no other
 * one; what the table does not have aborts, and so does whatever must not be of an entry.
 */
#include "instances_stand.h"
#include "lanes.h"
#include "memory.h"

#define STATES ((unsigned)ENTRY_ENDED + 1)

static const char *const state_names[STATES] = {
    [ENTRY_LOADING] = "loading", [ENTRY_TO_LOAD] = "to load",       [ENTRY_RECALLED] = "recalled",
    [ENTRY_ABSENT] = "absent",   [ENTRY_EARLY] = "early",           [ENTRY_LIVE] = "live",
    [ENTRY_BLOCKED] = "blocked", [ENTRY_UNREADABLE] = "unreadable", [ENTRY_CONTINUED] = "continued",
    [ENTRY_ENDED] = "ended",
};

/* ---- the states that an entry goes through ---- */

static bool seen[STATES][STATES];
static char path[256];
static enum entry_state last;

void __real_entry_become(struct entries *all, struct entry *entry, enum entry_state state);
void __wrap_entry_become(struct entries *all, struct entry *entry, enum entry_state state)
{
    size_t const at = strlen(path);
    if (path[0] == '\0' || entry->state != last) /* a new one */
        (void)snprintf(path + at, sizeof path - at, "%s%s", at > 0 ? " | " : "", state_names[entry->state]);
    (void)snprintf(path + strlen(path), sizeof path - strlen(path), " > %s", state_names[state]);
    seen[entry->state][state] = true;
    last = state;
    __real_entry_become(all, entry, state);
}

/* ---- inputs for an entry, in words ---- */

static struct entry *the_entry(struct stand *s)
{
    return entries_find(&s->instances->entries, THOLE_STR("i"));
}

static void say_start(struct stand *s)
{
    start(s, "i", "plain");
}

static void say_unknown(struct stand *s)
{
    start(s, "i", "unknown");
}

static void say_again(struct stand *s)
{
    start(s, "i", "again");
}

static void say_greedy(struct stand *s)
{
    start(s, "i", "greedy");
}

static void say_event(struct stand *s)
{
    give(s, &(struct message){.kind = MESSAGE_EVENT, .event_name = THOLE_STR("e")}, "i");
}

static void say_result(struct stand *s)
{
    uint64_t const execution = the_entry(s)->execution;
    give(s,
         &(struct message){
             .kind = MESSAGE_ACTIVITY_RESULT, .execution = execution, .task = 2, .source.place.attempt = 1},
         "i");
}

static void say_terminate(struct stand *s)
{
    give(s, &(struct message){.kind = MESSAGE_TERMINATE}, "i");
}

static void say_retry(struct stand *s)
{
    give(s, &(struct message){.kind = MESSAGE_RETRY}, "i");
}

static void say_delete(struct stand *s)
{
    give(s, &(struct message){.kind = MESSAGE_DELETE}, "i");
}

static void ask(struct stand *s)
{
    struct in_query const in = {.instance = THOLE_STR("i"), .query = THOLE_STR("q")};
    instances_query(s->instances, 7, &in, true);
}

static void give_up(struct stand *s)
{
    s->env.now_ms += 10 * 1000;
    instances_timer(s->instances, THOLE_STR("i"), 0, EARLY_TIMER);
}

static void run_one(struct stand *s)
{
    struct instances_record made;
    (void)run(s, &made);
    append(s, &made);
}

static void commit_all(struct stand *s)
{
    while (s->committed < s->records_len)
        commit(s, the_entry(s));
}

static void forget(struct stand *s)
{
    instances_reset(s->instances);
}

static void no_code(struct stand *s)
{
    s->env.options.orchestrations_len = 0;
}

static void keep_only(struct stand *s)
{
    entry_block(the_entry(s), ENTRY_KEEPS, BLOCKED_DAMAGED, THOLE_STR("nobody knows"));
}

static void read_none(struct stand *s)
{
    s->history_max = 0;
}

static void read_one(struct stand *s)
{
    s->history_max = 1;
}

static void read_two(struct stand *s)
{
    s->history_max = 2;
}

static void damage(struct stand *s)
{
    s->damaged = true;
}

static const struct word {
    const char *text;
    void (*does)(struct stand *);
} words[] = {
    {"start", say_start},   {"unknown", say_unknown},     {"again", say_again},
    {"greedy", say_greedy}, {"event", say_event},         {"result", say_result},
    {"retry", say_retry},   {"terminate", say_terminate}, {"delete", say_delete},
    {"ask", ask},           {"give-up", give_up},         {"run", run_one},
    {"load", listen},       {"commit", commit_all},       {"forget", forget},
    {"no-code", no_code},   {"keep-only", keep_only},     {"read-none", read_none},
    {"read-one", read_one}, {"read-two", read_two},       {"damage", damage},
};

static void play(struct stand *s, const char *script)
{
    while (*script != '\0') {
        size_t const len = strcspn(script, " ");
        size_t i = 0;
        while (i < ARRAY_LEN(words) &&
               (strlen(words[i].text) != len || memcmp(words[i].text, script, len) != 0))
            i++;
        CU_ASSERT_FATAL(i < ARRAY_LEN(words));
        words[i].does(s);
        script += len + (script[len] == ' ');
    }
}

/* ---- the walks ---- */

#define BEGUN(word) word " load run commit"
#define OVER(word) BEGUN(word) " terminate run commit"
#define CONTINUED "again load run commit result run commit"

static const struct walk {
    const char *name, *script, *path;
} walks[] = {
    {"a start", OVER("start"), "loading > absent > live > ended"},
    {"without code", OVER("unknown"), "loading > absent > blocked > ended"},
    {"without code, tried again", BEGUN("unknown") " retry run load",
     "loading > absent > blocked > to load > loading > blocked"},
    {"events before a start", BEGUN("event") " start run", "loading > absent > early > live"},
    {"and its code is not here", BEGUN("event") " unknown run", "loading > absent > early > blocked"},
    {"and nobody starts it", BEGUN("event") " give-up run", "loading > absent > early > absent"},
    {"and they are deleted", BEGUN("event") " delete run", "loading > absent > early > absent"},
    {"a turn that cannot be made", "greedy load run result run commit load run",
     "loading > absent > live > to load > loading > blocked"},
    {"it continues as new", CONTINUED " run commit", "loading > absent > live > continued > live"},
    {"and its code is gone", CONTINUED " no-code run", "loading > absent > live > continued > blocked"},
    {"it is not even recorded without code", "start load keep-only run", "loading > absent > unreadable"},
    {"nor with its events", BEGUN("event") " keep-only start run", "loading > absent > early > unreadable"},
    {"deleted", OVER("start") " delete run", "loading > absent > live > ended > absent"},

    {"loaded: events", BEGUN("event") " forget ask load", "loading > absent > early | loading > early"},
    {"loaded: live", BEGUN("start") " forget ask load", "loading > absent > live | loading > live"},
    {"loaded: no code", BEGUN("unknown") " forget ask load",
     "loading > absent > blocked | loading > blocked"},
    {"loaded: it goes on", CONTINUED " forget ask load run",
     "loading > absent > live > continued | loading > continued > live"},
    {"loaded: it has ended", OVER("start") " forget ask load",
     "loading > absent > live > ended | loading > ended"},
    {"loaded: damaged, and terminated", BEGUN("start") " forget damage ask load terminate run commit",
     "loading > absent > live | loading > unreadable > ended"},
    {"loaded: damaged, and tried again", BEGUN("start") " forget damage ask load retry run load",
     "loading > absent > live | loading > unreadable > to load > loading > unreadable"},

    {"asked when it has ended", OVER("start") " ask load",
     "loading > absent > live > ended > recalled > ended"},
    {"its history has gone", OVER("start") " read-none ask load",
     "loading > absent > live > ended > recalled > absent"},
    {"its history has lost its end", OVER("start") " read-one ask load",
     "loading > absent > live > ended > recalled > live"},
    {"and there is no code", OVER("unknown") " read-one ask load",
     "loading > absent > blocked > ended > recalled > blocked"},
    {"and all but events", BEGUN("event") " start run commit terminate run commit read-one ask load",
     "loading > absent > early > live > ended > recalled > early"},
    {"and its last execution", CONTINUED " run commit terminate run commit read-two ask load",
     "loading > absent > live > continued > live > ended > recalled > continued"},
    {"its history is damaged", OVER("start") " damage ask load",
     "loading > absent > live > ended > recalled > unreadable"},
};

static void test_each_transition(void)
{
    for (size_t i = 0; i < ARRAY_LEN(walks); i++) {
        struct stand *s = begin();
        path[0] = '\0';
        play(s, walks[i].script);
        CHECK_STR(walks[i].name, path, walks[i].path);
        end(s);
    }
    for (unsigned from = 0; from < STATES; from++)
        for (unsigned to = 0; to < STATES; to++) {
            if (seen[from][to] != entry_may_follow(from, to))
                printf("    %s to %s: the table and the walks differ\n", state_names[from], state_names[to]);
            CU_ASSERT_EQUAL(seen[from][to], entry_may_follow(from, to));
        }
}

/* ---- forbidden transitions ---- */

static unsigned wanted_from, wanted_to;

static void become(void *arg)
{
    struct stand *const s = arg;
    struct entry *entry = entries_add(&s->instances->entries, THOLE_STR("j"));
    entry->state = wanted_from;
    entry_become(&s->instances->entries, entry, wanted_to);
}

static void test_no_other_transition(void)
{
    struct stand *s = begin();
    size_t refused = 0;
    for (wanted_from = 0; wanted_from < STATES; wanted_from++)
        for (wanted_to = 0; wanted_to < STATES; wanted_to++) {
            bool const may = entry_may_follow(wanted_from, wanted_to);
            CU_ASSERT_EQUAL(room_aborts(become, s), !may);
            refused += !may;
        }
    CU_ASSERT_EQUAL(refused, STATES * STATES - 34);
    end(s);
}

static void nothing(struct stand *s)
{
    (void)s;
}

static void no_instance(struct stand *s)
{
    the_entry(s)->running.instance = NULL;
}

static void no_early(struct stand *s)
{
    the_entry(s)->early = NULL;
}

static void early_for_ever(struct stand *s)
{
    the_entry(s)->early->due_ms = 0;
}

static void an_instance(struct stand *s)
{
    the_entry(s)->running.instance = turns_instance(s->instances, the_entry(s), NULL);
}

static void in_flight(struct stand *s)
{
    the_entry(s)->in_flight++;
}

static void none_in_flight(struct stand *s)
{
    the_entry(s)->in_flight = 0;
}

static void ready_in_no_list(struct stand *s)
{
    the_entry(s)->ready = true;
}

static void in_the_list_and_not_ready(struct stand *s)
{
    the_entry(s)->ready = false;
}

static void made_ready(struct stand *s)
{
    entries_ready(&s->instances->entries, the_entry(s));
}

static void not_ready(struct stand *s)
{
    (void)entries_take_ready(&s->instances->entries, &(struct lane_view){.burst = 0});
}

static void retry_and_not_ready(struct stand *s)
{
    the_entry(s)->running.retry = true;
}

static void limit_records(struct stand *s)
{
    the_entry(s)->limit = ENTRY_RECORDS;
}

static void reason_to_record(struct stand *s)
{
    entry_block(the_entry(s), ENTRY_RECORDS, BLOCKED_LIMIT, THOLE_STR("?"));
}

static void reason_to_keep(struct stand *s)
{
    entry_block(the_entry(s), ENTRY_KEEPS, BLOCKED_LIMIT, THOLE_STR("?"));
}

static void no_reason(struct stand *s)
{
    free(the_entry(s)->reason);
    the_entry(s)->reason = NULL;
}

static void no_kind(struct stand *s)
{
    the_entry(s)->reason->kind = BLOCKED_NOT;
}

static void name_not_counted(struct stand *s)
{
    the_entry(s)->counted.name = false;
}

static void name_counted(struct stand *s)
{
    the_entry(s)->counted.name = true;
}

static void execution_of_before(struct stand *s)
{
    the_entry(s)->tombstone = the_entry(s)->execution;
}

static void execution_one(struct stand *s)
{
    the_entry(s)->execution = 1;
}

static void in_the_other_list(struct stand *s)
{
    struct entries *const all = &s->instances->entries;
    the_entry(s)->list = the_entry(s)->list == &all->over ? &all->lru : &all->over;
}

static void asked(struct stand *s)
{
    entry_ask(&s->instances->entries, the_entry(s), memory_new(sizeof(struct question)));
}

static void not_asked(struct stand *s)
{
    entry_drop_questions(&s->instances->entries, the_entry(s));
}

static void something_waits(struct stand *s)
{
    entry_push(&s->instances->entries, the_entry(s), pending_create());
}

static void one_pending_too_many(struct stand *s)
{
    s->instances->entries.pending_len++;
}

static void one_recalled_too_many(struct stand *s)
{
    s->instances->entries.recalled_len++;
}

static void a_refusal_too_many(struct stand *s)
{
    the_entry(s)->refusals++;
}

static void one_entry_too_many(struct stand *s)
{
    s->instances->entries.lru.len++;
}

static void incorporated_twice(struct stand *s)
{
    static struct sequence_range above[] = {{9, 9}, {9, 9}};
    s->instances->progress.ranges = above;
    s->instances->progress.ranges_len = 2;
}

static const struct breakage {
    const char *script;
    void (*breaks)(struct stand *);
} breakages[] = {
    {"ask", in_flight},
    {"ask", made_ready},
    {"start load", an_instance},
    {"start load", name_counted},
    {BEGUN("event"), no_early},
    {BEGUN("event"), early_for_ever},
    {BEGUN("event"), execution_one},
    {"greedy load run result run", none_in_flight},
    {BEGUN("start"), no_instance},
    {BEGUN("start"), ready_in_no_list},
    {BEGUN("start"), retry_and_not_ready},
    {BEGUN("start"), limit_records},
    {BEGUN("start"), reason_to_record},
    {BEGUN("start"), name_not_counted},
    {BEGUN("start"), execution_of_before},
    {BEGUN("start"), in_the_other_list},
    {BEGUN("start"), asked},
    {BEGUN("start"), something_waits},
    {BEGUN("start"), one_pending_too_many},
    {BEGUN("start"), one_recalled_too_many},
    {BEGUN("start"), a_refusal_too_many},
    {BEGUN("start"), one_entry_too_many},
    {BEGUN("start"), incorporated_twice},
    {BEGUN("unknown"), no_reason},
    {BEGUN("unknown") " retry run", in_flight},
    {BEGUN("unknown"), no_kind},
    {BEGUN("unknown"), reason_to_keep},
    {BEGUN("unknown"), no_instance},
    {"start load keep-only run commit", limit_records},
    {"start load keep-only run commit", no_reason},
    {"start load keep-only run commit", an_instance},
    {CONTINUED, not_ready},
    {CONTINUED, in_the_list_and_not_ready},
    {CONTINUED, no_instance},
    {OVER("start"), an_instance},
    {OVER("start"), asked},
    {OVER("start"), name_counted},
    {OVER("start"), in_the_other_list},
    {OVER("start") " ask", not_asked},
    {OVER("start") " ask", in_flight},
};

static const struct breakage *breakage;

static void break_and_check(void *arg)
{
    struct stand *const s = arg;
    breakage->breaks(s);
    instances_check(s->instances);
}

static void test_what_must_not_be_is_noticed(void)
{
    static const struct breakage none = {.breaks = nothing};
    for (size_t i = 0; i < ARRAY_LEN(breakages); i++) {
        struct stand *s = begin();
        play(s, breakages[i].script);
        breakage = &none;
        CU_ASSERT_FALSE(room_aborts(break_and_check, s));
        breakage = &breakages[i];
        bool const noticed = room_aborts(break_and_check, s);
        if (!noticed)
            printf("    breakage %zu is not noticed\n", i);
        CU_ASSERT_TRUE(noticed);
        end(s);
    }
}

/* ---- why it is blocked ---- */

static unsigned crashes;

static thole_status crash(void *arg, const struct code_run *of, void (*body)(void *), void *body_arg,
                          thole_error *err)
{
    (void)arg, (void)of, (void)body, (void)body_arg;
    return thole_fail(err, THOLE_APP, "signal %u %0400d", ++crashes, 0);
}

static void begins(void *arg, const struct code_run *of)
{
    (void)arg, (void)of;
}

static void ended(void *arg)
{
    (void)arg;
}

/* Answers LOADs. Returns the number of the signal that an answer to a question tells of; 0: none does. */
static unsigned listen_for_signal(struct stand *s)
{
    unsigned signal = 0;
    struct partition_out out;
    while (env_poll(&s->env, &out)) {
        if (out.kind == PARTITION_OUT_LOAD)
            give_history(s, out.token, out.load.instance);
        if (out.kind != PARTITION_OUT_QUERY_ANSWER)
            continue;
        char text[256] = {0};
        thole_slice const data = out.query_answer.data;
        memcpy(text, data.ptr, data.len < sizeof text ? data.len : sizeof text - 1);
        const char *at = strstr(text, "signal ");
        signal = at == NULL ? 0 : (unsigned)strtoul(at + strlen("signal "), NULL, 10);
    }
    instances_check(s->instances);
    return signal;
}

/* Until there is nothing to load, to run or to commit. */
static void settle(struct stand *s)
{
    do {
        (void)listen_for_signal(s);
        if (!instances_quiet(s->instances))
            run_one(s);
        commit_all(s);
    } while (!instances_quiet(s->instances) || entry_waits_for_history(the_entry(s)->state));
}

/* However often it is tried again, the reason that is told is the last one. */
static void test_the_reason_is_the_newest(void)
{
    static const struct code_watch watch = {.begins = begins, .ended = ended, .attempt = crash};
    struct partition_crash const known = {.instance = THOLE_STR("i"), .text = THOLE_STR("it crashed")};
    struct in_crashes const in = {.crashes = &known, .crashes_len = 1};
    struct stand *s = begin();
    s->env.options.watch = &watch;
    instances_crashes(s->instances, &in);
    crashes = 0;
    say_start(s);
    settle(s);
    for (unsigned i = 0; i < 30; i++) {
        CU_ASSERT_EQUAL(the_entry(s)->state, ENTRY_BLOCKED);
        ask(s);
        unsigned const told = listen_for_signal(s);
        CU_ASSERT(told > 0 && told == crashes);
        say_retry(s);
        settle(s);
    }
    CU_ASSERT_EQUAL(crashes, 62);
    end(s);
}

/* Rows of activities, by the events of their tries: an activity has one while one of its tries is open, and
 * none while it waits for the next try. */
static void test_tries_that_have_rows(void)
{
    static const struct {
        enum event_kind kind;
        uint64_t ref;
        int more, rows; /* rows: number of rows afterwards */
    } events[] = {
        {EVENT_ACTIVITY_SCHEDULED, 0, 1, 1},
        {EVENT_ACTIVITY_SCHEDULED, 0, 1, 2},
        {EVENT_ACTIVITY_SCHEDULED, 0, 1, 3},
        {EVENT_ACTIVITY_TRY_FAILED, 2, -1, 2},
        {EVENT_ACTIVITY_QUARANTINED, 3, -1, 1},
        {EVENT_TIMER_FIRED, 2, 0, 1},
        {EVENT_ACTIVITY_TRY_STARTED, 3, 1, 2},
        {EVENT_ACTIVITY_CANCELLED, 2, 0, 2},
        {EVENT_ACTIVITY_FAILED, 4, -1, 1},
        {EVENT_ACTIVITY_COMPLETED, 3, -1, 0},
        {EVENT_ACTIVITY_SCHEDULED, 0, 1, 1},
        {EVENT_ACTIVITY_TRY_FAILED, 9, -1, 0},
        {EVENT_STARTED, 0, 0, 0},
        {EVENT_ACTIVITY_SCHEDULED, 0, 1, 1},
        {EVENT_ACTIVITY_COMPLETED, 9, -1, 0}, /* an activity of the execution before this one */
    };
    struct entry entry = {.waiting_len = 0};
    int rows = 0;
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        struct event const event = {.id = i + 1, .kind = events[i].kind, .ref = events[i].ref};
        int const more = entry_note_tries(&entry, &event);
        rows += more;
        CU_ASSERT_EQUAL(more, events[i].more);
        CU_ASSERT_EQUAL(rows, events[i].rows);
    }
    free(entry.waiting);
}

static const struct thole_test tests[] = {
    {"entry: tries that have rows", test_tries_that_have_rows},
    {"entry: each transition", test_each_transition},
    {"entry: no other transition", test_no_other_transition},
    {"entry: what must not be is noticed", test_what_must_not_be_is_noticed},
    {"entry: the reason is the newest", test_the_reason_is_the_newest},
};
THOLE_TEST_MAIN("entry states", tests)
