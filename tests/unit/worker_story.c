#include "worker_story.h"
#include "proofs.h"
#include "thole_cunit.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

enum {
    TEXT_BYTES = 4096,
    IDS_MAX = 64,
    ATTEMPTS_MAX = 256,
};

struct world {
    struct worker_machine *w;
    uint64_t now_ms;
    uint64_t claimed_us[ATTEMPTS_MAX], claimed_last_us; /* of each attempt, as last answered */
    bool not_lost_off;
    struct worker_row claim[IDS_MAX], renew[IDS_MAX], begin[IDS_MAX], leave[IDS_MAX], shelve[IDS_MAX];
    size_t claim_len, renew_len, begin_len, leave_len, shelve_len;
    uint64_t completed; /* ends that were said */
    char text[TEXT_BYTES];
};

static void say(struct world *t, const char *fmt, ...) THOLE_PRINTF(2, 3);
static void say(struct world *t, const char *fmt, ...)
{
    size_t const at = strlen(t->text);
    va_list args;
    va_start(args, fmt);
    if (at > 0)
        (void)snprintf(t->text + at, sizeof t->text - at, " | ");
    (void)vsnprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), fmt, args);
    va_end(args);
}

static void say_more(struct world *t, const char *text)
{
    (void)snprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), "%s", text);
}

static void say_ids(struct world *t, const char *what, const uint64_t *ids, size_t n)
{
    char text[256] = "";
    for (size_t i = 0; i < n; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%" PRIu64, i > 0 ? "," : "",
                       ids[i]);
    say(t, "%s %s", what, text);
}

static void take_rows(struct world *t, const char *what, const struct worker_out *out,
                      struct worker_row *rows, size_t *ret_len)
{
    uint64_t ids[IDS_MAX];
    for (size_t i = 0; i < out->rows_len; i++) {
        rows[i] = out->rows[i];
        ids[i] = rows[i].id;
    }
    *ret_len = out->rows_len;
    say_ids(t, what, ids, out->rows_len);
    for (size_t i = 0; i < out->rows_len; i++)
        if (rows[i].isolated || rows[i].settled || rows[i].quick)
            say_more(t, rows[i].isolated ? " isolated" : rows[i].settled ? " settled" : " quick");
}

static void input(struct world *t, struct worker_in in)
{
    CU_ASSERT_EQUAL(worker_input(t->w, &in, t->now_ms), THOLE_OK);
    CU_ASSERT_PTR_NULL(worker_check(t->w));
}

/* Named by the letters of their activities. */
static void take_not_lost(struct world *t, const struct worker_out *out)
{
    char text[IDS_MAX] = "";
    for (size_t i = 0; i < out->rows_len; i++) {
        text[i] = (char)out->rows[i].key.activity_id;
        CU_ASSERT_TRUE(out->rows[i].attempt > 0);
        CU_ASSERT_EQUAL(out->rows[i].claimed_us, t->claimed_us[out->rows[i].attempt % ATTEMPTS_MAX]);
        CU_ASSERT_TRUE(thole_slice_equal(out->rows[i].key.instance, story_key('a').instance));
    }
    say(t, "not lost %s", text);
    input(t, (struct worker_in){.kind = WORKER_IN_NOT_LOST, .unknown = t->not_lost_off});
}

static void take_runs(struct world *t, const struct worker_out *out)
{
    for (size_t i = 0; i < out->rows_len; i++)
        say(t, "run quick %" PRIu64 "#%" PRIu64, out->rows[i].id, out->rows[i].attempt);
}

static void take_out(struct world *t, const struct worker_out *out)
{
    struct worker_row released[IDS_MAX];
    size_t released_len;
    switch (out->kind) {
    case WORKER_OUT_WANT: say(t, "want %u", out->count); break;
    case WORKER_OUT_CLAIM: take_rows(t, "claim", out, t->claim, &t->claim_len); break;
    case WORKER_OUT_RENEW: take_rows(t, "renew", out, t->renew, &t->renew_len); break;
    case WORKER_OUT_COMPLETE_BEGIN: take_rows(t, "begin", out, t->begin, &t->begin_len); break;
    case WORKER_OUT_RELEASE: take_rows(t, "release", out, released, &released_len); break;
    case WORKER_OUT_NOT_LOST: take_not_lost(t, out); break;
    case WORKER_OUT_LEAVE: take_rows(t, "leave", out, t->leave, &t->leave_len); break;
    case WORKER_OUT_SHELVE: take_rows(t, "shelve", out, t->shelve, &t->shelve_len); break;
    case WORKER_OUT_EXPIRED: say(t, "expired %" PRIu64 "#%" PRIu64, out->id, out->attempt); break;
    case WORKER_OUT_POISONED: say(t, "poisoned %" PRIu64 "#%" PRIu64, out->id, out->attempt); break;
    case WORKER_OUT_RUN: say(t, "run %" PRIu64 "#%" PRIu64, out->id, out->attempt); break;
    case WORKER_OUT_FIRE:
        say(t, "fire %" PRIu64 " %s %.*s%s%.*s", out->id, worker_path_name(out->path),
            THOLE_FMT(out->cancel_kind), out->reason.len > 0 ? ": " : "", THOLE_FMT(out->reason));
        break;
    case WORKER_OUT_HURRY: say(t, "hurry %" PRIu64 " until %" PRIu64, out->id, out->deadline_ms); break;
    case WORKER_OUT_ABANDON: say(t, "abandon %" PRIu64, out->id); break;
    case WORKER_OUT_PROGRESS: say_ids(t, "wpi", out->ids, out->ids_len); break;
    case WORKER_OUT_COMPLETE_RUN: take_runs(t, out); break;
    case WORKER_OUT_COMPLETE_PUBLISH: say_ids(t, "publish", out->ids, out->ids_len); break;
    case WORKER_OUT_COMPLETE_COMMIT: say(t, "commit"); break;
    case WORKER_OUT_COMPLETE_ROLLBACK: say(t, "rollback"); break;
    case WORKER_OUT_ACK:
        t->completed += out->end == WORKER_END_COMPLETED;
        say(t, "ack %" PRIu64 " %s", out->id, worker_end_name(out->end));
        break;
    case WORKER_OUT_NAK:
        say(t, "nak %" PRIu64 " %s", out->id, worker_end_name(out->end));
        if (out->delay_ms > 0)
            say_more(t, " for ");
        if (out->delay_ms > 0)
            (void)snprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), "%" PRIu64,
                           out->delay_ms);
        break;
    case WORKER_OUT_TERM: say(t, "term %" PRIu64 " %s", out->id, worker_end_name(out->end)); break;
    case WORKER_OUT_DROP: say(t, "drop %" PRIu64 " %s", out->id, worker_end_name(out->end)); break;
    case WORKER_OUT_STOPPED: say(t, "stopped"); break;
    }
}

static void answer(struct world *t, enum worker_in_kind kind, struct worker_row *rows, size_t n,
                   const char *states)
{
    static uint64_t const attempts[] = {0, 5};
    if (states[0] == '?') {
        input(t, (struct worker_in){.kind = kind, .unknown = true});
        return;
    }
    CU_ASSERT_EQUAL(strlen(states), n);
    for (size_t i = 0; i < n; i++) {
        rows[i].state = states[i] == 's'                       ? WORKER_ROW_STOLEN
                        : states[i] == 'x'                     ? WORKER_ROW_MISSING
                        : states[i] == 'u'                     ? WORKER_ROW_CANDIDATE
                        : states[i] == 'n'                     ? WORKER_ROW_UNKNOWN
                        : states[i] == 'f'                     ? WORKER_ROW_FORGED
                        : states[i] == 'h' || states[i] == 'H' ? WORKER_ROW_HELD
                                                               : WORKER_ROW_MINE;
        rows[i].expired = states[i] == 'e';
        rows[i].compared = states[i] != 'o';
        rows[i].left_ms = states[i] == 't'   ? STORY_DEADLINE_MS
                          : states[i] == 'h' ? STORY_HELD_MS
                          : states[i] == 'H' ? STORY_HELD_LONG_MS
                                             : 0;
        rows[i].poisoned = states[i] == 'p';
        rows[i].lost = states[i] >= '0' && states[i] <= '9' ? (uint32_t)(states[i] - '0') : 0;
        if (rows[i].quick)
            rows[i].attempt = 1;
        if (kind == WORKER_IN_CLAIMED)
            rows[i].attempt = attempts[1] + rows[i].id;
        rows[i].attempt += states[i] == 'a'; /* of a claim of its own whose answer was lost */
        if (kind != WORKER_IN_CLAIMED && kind != WORKER_IN_RENEWED)
            continue;
        rows[i].claimed_us = ++t->claimed_last_us;
        if (rows[i].state == WORKER_ROW_MINE)
            t->claimed_us[rows[i].attempt % ATTEMPTS_MAX] = rows[i].claimed_us;
    }
    input(t, (struct worker_in){.kind = kind, .rows = rows, .rows_len = n});
}

struct worker_key story_key(char letter)
{
    return (struct worker_key){THOLE_STR("order-1"), 1, (uint64_t)letter, 1};
}

static const char *option(const char *text, const char *name)
{
    const char *const at = strstr(text, name);
    return at != NULL ? at + strlen(name) : NULL;
}

static void deliver(struct world *t, uint64_t id, char letter, const char *text)
{
    const char *const n = option(text, "n="), *const ago = option(text, "ago=");
    const char *const try_number = option(text, "try="), *const says = option(text, "says=");
    struct worker_in in = {.kind = WORKER_IN_DELIVERED,
                           .id = id,
                           .key = story_key(letter),
                           .nonce = THOLE_STR("nonce"),
                           .known = strstr(text, "unknown") == NULL && strstr(text, "unserved") == NULL,
                           .unserved = strstr(text, "unserved") != NULL,
                           .quick = strstr(text, "quick") != NULL,
                           .deliveries = n != NULL ? strtoull(n, NULL, 10) : 1,
                           .arrived_ms = t->now_ms - (ago != NULL ? strtoull(ago, NULL, 10) : 0)};
    if (says != NULL)
        in.digest.bytes[0] = (uint8_t)strtoul(says, NULL, 10);
    if (try_number != NULL)
        in.key.try_number = (uint32_t)strtoul(try_number, NULL, 10);
    uint64_t const adopted = worker_counters(t->w).adopted;
    thole_status const status = worker_input(t->w, &in, t->now_ms);
    CU_ASSERT_EQUAL(worker_counters(t->w).adopted, adopted + (status == THOLE_CONFLICT));
    if (status == THOLE_LIMIT)
        say(t, "no room");
    else if (status == THOLE_CONFLICT)
        say(t, "same as %" PRIu64, worker_holds(t->w, &in.key, &in.digest));
}

static void push(struct world *t, const char *letters, const char *text)
{
    const char *const try_number = option(text, "try="), *const other = option(text, "kind=");
    char kind[16] = "requested";
    struct worker_key key = story_key(' ');
    uint64_t ids[IDS_MAX];
    size_t n = 0;
    for (; letters[n] > ' '; n++)
        ids[n] = (uint64_t)letters[n];
    key.try_number = try_number != NULL ? (uint32_t)strtoul(try_number, NULL, 10) : 0;
    if (other != NULL)
        (void)sscanf(other, "%15[a-z_]", kind);
    uint64_t proofs[IDS_MAX];
    struct worker_in const in = {.kind = WORKER_IN_PUSHED,
                                 .key = key,
                                 .activity_ids = ids,
                                 .activity_ids_len = n,
                                 .early = strstr(text, "early") != NULL,
                                 .cancel_kind = thole_slice_from(kind),
                                 .reason = THOLE_STR("too late")};
    bool const forged = strstr(text, "forged") != NULL; /* with the nonce of another activity */
    input(t, test_with_proofs(in, forged ? THOLE_STR("another") : THOLE_STR("nonce"), proofs));
}

static void command(struct world *t, const char *text)
{
    char word[16] = "", arg[16] = "", more[16] = "";
    (void)sscanf(text, "%15s %15s %15s", word, arg, more);
    uint64_t const number = strtoull(arg, NULL, 10);
    bool const ok = strcmp(more, "?") != 0 && strcmp(arg, "?") != 0;
    if (word[0] == '+')
        t->now_ms += strtoull(word + 1, NULL, 10);
    else if (strcmp(word, "msg") == 0)
        deliver(t, number, more[0], text);
    else if (strcmp(word, "claimed") == 0)
        answer(t, WORKER_IN_CLAIMED, t->claim, t->claim_len, arg);
    else if (strcmp(word, "renewed") == 0)
        answer(t, WORKER_IN_RENEWED, t->renew, t->renew_len, arg);
    else if (strcmp(word, "begun") == 0)
        answer(t, WORKER_IN_BEGUN, t->begin, t->begin_len, arg);
    else if (strcmp(word, "notlost") == 0)
        t->not_lost_off = strcmp(arg, "off") == 0;
    else if (strcmp(word, "done") == 0)
        input(t, (struct worker_in){.kind = WORKER_IN_FINISHED,
                                    .id = number,
                                    .unknown = strcmp(more, "unrun") == 0,
                                    .status = strcmp(more, "cancelled") == 0 ? THOLE_CANCELLED
                                              : strcmp(more, "failed") == 0  ? THOLE_APP
                                              : strcmp(more, "later") == 0   ? THOLE_LATER
                                                                             : THOLE_OK});
    else if (strcmp(word, "published") == 0)
        input(t, (struct worker_in){.kind = WORKER_IN_PUBLISHED, .id = number, .ok = ok});
    else if (strcmp(word, "committed") == 0)
        input(t, (struct worker_in){.kind = WORKER_IN_COMMITTED, .unknown = !ok});
    else if (strcmp(word, "released") == 0)
        input(t, (struct worker_in){.kind = WORKER_IN_RELEASED});
    else if (strcmp(word, "push") == 0)
        push(t, arg, text);
    else if (strcmp(word, "left") == 0)
        answer(t, WORKER_IN_LEFT, t->leave, t->leave_len, arg);
    else if (strcmp(word, "shelved") == 0)
        answer(t, WORKER_IN_SHELVED, t->shelve, t->shelve_len, arg);
    else if (strcmp(word, "slot") == 0)
        input(t, (struct worker_in){.kind = WORKER_IN_SLOT});
    else if (strcmp(word, "stop") == 0)
        input(t, (struct worker_in){.kind = WORKER_IN_STOP, .limit_ms = number});
    else
        CU_FAIL("no such command");
}

/* Several commands with ';' between them are given before the machine is asked anything. */
static void step(struct world *t, const char *commands)
{
    char text[128];
    struct worker_out out;
    (void)snprintf(text, sizeof text, "%s", commands);
    t->text[0] = '\0';
    for (char *at = text, *end; at != NULL; at = end) {
        end = strchr(at, ';');
        if (end != NULL)
            *end++ = '\0';
        command(t, at);
    }
    worker_advance(t->w, t->now_ms);
    while (worker_poll(t->w, &out)) {
        CU_ASSERT_PTR_NULL(worker_check(t->w));
        take_out(t, &out);
    }
    CU_ASSERT_PTR_NULL(worker_check(t->w));
    CU_ASSERT_TRUE(worker_next_deadline_ms(t->w) > t->now_ms); /* or the host would spin */
}

static void begin_world(struct world *t, const struct story *story)
{
    struct worker_options options;
    *t = (struct world){.now_ms = 1000000};
    worker_options_init(&options);
    options.slots = 2;
    options.completions_max = 2;
    options.renew_ms = story->renew_ms;
    options.silence_ms = story->silence_ms;
    if (story->grace_ms != 0)
        options.grace_ms = story->grace_ms;
    t->w = worker_create(&options);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t->w);
}

static void tell_steps(const struct story *story, struct world *t)
{
    for (size_t s = 0; s < STORY_STEPS_MAX && story->steps[s].does != NULL; s++) {
        char name[256];
        (void)snprintf(name, sizeof name, "%s, step %zu: %s", story->name, s + 1, story->steps[s].does);
        step(t, story->steps[s].does);
        CHECK_STR(name, t->text, story->steps[s].says);
    }
}

void story_tell(const struct story *story)
{
    struct world t;
    begin_world(&t, story);
    step(&t, "+0");
    CHECK_STR(story->name, t.text, "want 2");
    for (size_t times = 0; times == 0 || times < story->times; times++)
        tell_steps(story, &t);
    CU_ASSERT_EQUAL(worker_counters(t.w).completed, t.completed);
    worker_destroy(t.w);
}
