/*
 * The worker machine, step by step. Each step is a command and what the machine says to it.
 *
 * Commands: up E | down | +MS | msg ID KEY [epoch=E] [unknown] [n=DELIVERIES] [ago=MS] | claimed STATES |
 * renewed STATES | begun STATES | wpi on|off | done ID [cancelled|failed] | published ID ok|? | committed
 * ok|? | released | push KEYS | slot | stop MS. STATES has a letter for each row: m(ine), x (missing),
 * s(tolen), or is "?": unknown. KEYS are letters; each is an activity of its own. +WPI is answered at once,
 * as wpi says.
 *
 * Lease 30 s: renewed every 10 s, after an unknown answer every 1 s, fenced 28 s after the last. Grace 10 s,
 * stop grace 2 s, two slots, two completions more.
 */
#include "thole_cunit.h"
#include "worker.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

enum { TEXT_BYTES = 4096, IDS_MAX = 64, STEPS_MAX = 24 };

struct world {
    struct worker_machine *w;
    uint64_t now_ms, epoch;
    bool wpi_off;
    struct worker_row claim[IDS_MAX], renew[IDS_MAX], begin[IDS_MAX];
    size_t claim_len, renew_len, begin_len;
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
}

static void input(struct world *t, struct worker_in in)
{
    CU_ASSERT_EQUAL(worker_input(t->w, &in, t->now_ms), THOLE_OK);
}

static void take_progress(struct world *t, const struct worker_out *out)
{
    uint64_t ids[IDS_MAX];
    size_t const n = out->ids_len;
    memcpy(ids, out->ids, n * sizeof ids[0]);
    say_ids(t, "wpi", ids, n);
    for (size_t i = 0; i < n; i++)
        input(t, (struct worker_in){.kind = WORKER_IN_PROGRESSED, .id = ids[i], .ok = !t->wpi_off});
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
    case WORKER_OUT_RUN: say(t, "run %" PRIu64 "#%" PRIu64, out->id, out->attempt); break;
    case WORKER_OUT_FIRE:
        say(t, "fire %" PRIu64 " %s %.*s%s%.*s", out->id, worker_path_name(out->path),
            THOLE_FMT(out->cancel_kind), out->reason.len > 0 ? ": " : "", THOLE_FMT(out->reason));
        break;
    case WORKER_OUT_ABANDON: say(t, "abandon %" PRIu64, out->id); break;
    case WORKER_OUT_PROGRESS: take_progress(t, out); break;
    case WORKER_OUT_COMPLETE_PUBLISH: say_ids(t, "publish", out->ids, out->ids_len); break;
    case WORKER_OUT_COMPLETE_COMMIT: say(t, "commit"); break;
    case WORKER_OUT_COMPLETE_ROLLBACK: say(t, "rollback"); break;
    case WORKER_OUT_ACK: say(t, "ack %" PRIu64 " %s", out->id, worker_end_name(out->end)); break;
    case WORKER_OUT_NAK: say(t, "nak %" PRIu64 " %s", out->id, worker_end_name(out->end)); break;
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
        rows[i].state = states[i] == 'm'   ? WORKER_ROW_MINE
                        : states[i] == 's' ? WORKER_ROW_STOLEN
                                           : WORKER_ROW_MISSING;
        if (kind == WORKER_IN_CLAIMED)
            rows[i].attempt = attempts[1] + rows[i].id;
    }
    input(t, (struct worker_in){.kind = kind, .rows = rows, .rows_len = n});
}

static struct worker_key key_of(char letter)
{
    return (struct worker_key){THOLE_STR("order-1"), 1, (uint64_t)letter};
}

static const char *option(const char *text, const char *name)
{
    const char *const at = strstr(text, name);
    return at != NULL ? at + strlen(name) : NULL;
}

static void deliver(struct world *t, uint64_t id, char letter, const char *text)
{
    const char *const epoch = option(text, "epoch="), *const n = option(text, "n=");
    const char *const ago = option(text, "ago=");
    struct worker_in const in = {.kind = WORKER_IN_DELIVERED,
                                 .id = id,
                                 .key = key_of(letter),
                                 .known = strstr(text, "unknown") == NULL,
                                 .epoch = epoch != NULL ? strtoull(epoch, NULL, 10) : t->epoch,
                                 .deliveries = n != NULL ? strtoull(n, NULL, 10) : 1,
                                 .arrived_ms = t->now_ms - (ago != NULL ? strtoull(ago, NULL, 10) : 0)};
    if (worker_input(t->w, &in, t->now_ms) == THOLE_LIMIT)
        say(t, "no room");
}

static void push(struct world *t, const char *letters)
{
    uint64_t ids[IDS_MAX];
    size_t n = 0;
    for (; letters[n] > ' '; n++)
        ids[n] = (uint64_t)letters[n];
    input(t, (struct worker_in){.kind = WORKER_IN_PUSHED,
                                .key = key_of(' '),
                                .activity_ids = ids,
                                .activity_ids_len = n,
                                .cancel_kind = THOLE_STR("requested"),
                                .reason = THOLE_STR("too late")});
}

static void command(struct world *t, const char *text)
{
    char word[16] = "", arg[16] = "", more[16] = "";
    (void)sscanf(text, "%15s %15s %15s", word, arg, more);
    uint64_t const number = strtoull(arg, NULL, 10);
    bool const ok = strcmp(more, "?") != 0 && strcmp(arg, "?") != 0;
    if (word[0] == '+')
        t->now_ms += strtoull(word + 1, NULL, 10);
    else if (strcmp(word, "up") == 0)
        input(t, (struct worker_in){.kind = WORKER_IN_CONNECTION, .up = true, .epoch = t->epoch = number});
    else if (strcmp(word, "down") == 0)
        input(t, (struct worker_in){.kind = WORKER_IN_CONNECTION});
    else if (strcmp(word, "msg") == 0)
        deliver(t, number, more[0], text);
    else if (strcmp(word, "claimed") == 0)
        answer(t, WORKER_IN_CLAIMED, t->claim, t->claim_len, arg);
    else if (strcmp(word, "renewed") == 0)
        answer(t, WORKER_IN_RENEWED, t->renew, t->renew_len, arg);
    else if (strcmp(word, "begun") == 0)
        answer(t, WORKER_IN_BEGUN, t->begin, t->begin_len, arg);
    else if (strcmp(word, "wpi") == 0)
        t->wpi_off = strcmp(arg, "off") == 0;
    else if (strcmp(word, "done") == 0)
        input(t, (struct worker_in){.kind = WORKER_IN_FINISHED,
                                    .id = number,
                                    .status = strcmp(more, "cancelled") == 0 ? THOLE_CANCELLED
                                              : strcmp(more, "failed") == 0  ? THOLE_APP
                                                                             : THOLE_OK});
    else if (strcmp(word, "published") == 0)
        input(t, (struct worker_in){.kind = WORKER_IN_PUBLISHED, .id = number, .ok = ok});
    else if (strcmp(word, "committed") == 0)
        input(t, (struct worker_in){.kind = WORKER_IN_COMMITTED, .unknown = !ok});
    else if (strcmp(word, "released") == 0)
        input(t, (struct worker_in){.kind = WORKER_IN_RELEASED});
    else if (strcmp(word, "push") == 0)
        push(t, arg);
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
    while (worker_poll(t->w, &out))
        take_out(t, &out);
    CU_ASSERT_TRUE(worker_next_deadline_ms(t->w) > t->now_ms); /* or the host would spin */
}

static void begin_world(struct world *t)
{
    struct worker_options options;
    *t = (struct world){.now_ms = 1000000};
    worker_options_init(&options);
    options.slots = 2;
    options.completions_max = 2;
    t->w = worker_create(&options);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t->w);
}

struct story {
    const char *name;
    struct {
        const char *does, *says;
    } steps[STEPS_MAX];
};

/* Each world starts with: up 1 → want 2. */
static const struct story stories[] = {
    {"one activity from delivery to ack",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"done 1", "want 2 | begin 1"},
      {"begun m", "publish 1"},
      {"published 1 ok", "commit"},
      {"committed ok", "ack 1 completed"}}},
    {"never more than free slots are wanted and claimed",
     {{"msg 1 a;msg 2 b", "claim 1,2"},
      {"msg 3 c;msg 4 d", ""}, /* more than was wanted: they wait */
      {"msg 5 e", "no room"},
      {"claimed mm", "run 1#6 | run 2#7"},
      {"done 2", "claim 3 | begin 2"},
      {"begun m;claimed m", "run 3#8 | publish 2"},
      {"published 2 ok", "commit"},
      {"done 1", "claim 4"},
      {"committed ok", "ack 2 completed | begin 1"},
      {"claimed m", "run 4#9"},
      {"done 3", "want 1"}}},
    {"the row is missing: never run", {{"msg 1 a", "claim 1"}, {"claimed x", "ack 1 gone | want 2"}}},
    {"a claim of several: each as it is",
     {{"msg 1 a;msg 2 b", "claim 1,2"}, {"claimed xm", "ack 1 gone | run 2#7 | want 1"}}},
    {"an unknown claim is tried again, and no more is fetched",
     {{"msg 1 a", "claim 1"},
      {"claimed ?", "want 0"},
      {"+49", ""},
      {"+1", "claim 1"},
      {"claimed ?", ""},
      {"+99", ""},
      {"+1", "claim 1"},
      {"claimed m", "run 1#6 | want 1"}}},
    {"an unknown claim keeps the order",
     {{"msg 1 a;msg 2 b", "claim 1,2"}, {"claimed ?", ""}, {"+50", "claim 1,2"}}},
    {"no claim until the lease is nearly over: forgotten, and one is wanted to try with",
     {{"msg 1 a", "claim 1"},
      {"+27000;claimed ?", "want 0"},
      {"+50", "claim 1"},
      {"claimed ?", ""},
      {"+100", "claim 1"},
      {"+850;claimed ?", "drop 1 unclaimed | want 1"}}},
    {"a claim that is answered too late is not used",
     {{"msg 1 a", "claim 1"}, {"+28000;claimed m", "drop 1 unclaimed | want 2"}}},
    {"a message that waited elsewhere has less time",
     {{"msg 1 a ago=27999", "claim 1"},
      {"claimed m", "run 1#6 | wpi 1"},
      {"+9999", ""},
      {"+1", "wpi 1 | renew 1"}}},
    {"one message twice: one statement names a row once",
     {{"msg 1 a;msg 2 a", "claim 1"},
      {"claimed m", "run 1#6 | claim 2"},
      {"claimed m", "run 2#7"},
      {"+10000", "wpi 1,2 | renew 1,2"},
      {"renewed sm", "fire 1 lease_lost lease_lost"},
      {"done 1", "drop 1 stolen | want 1"}}},

    {"renewed every third of the lease, with +WPI, and idle afterwards",
     {{"msg 1 a;msg 2 b", "claim 1,2"},
      {"claimed mm", "run 1#6 | run 2#7"},
      {"+9999", ""},
      {"+1", "wpi 1,2 | renew 1,2"},
      {"renewed mm", ""},
      {"+9999", ""},
      {"+1", "wpi 1,2 | renew 1,2"},
      {"renewed mm", ""},
      {"done 1;done 2", "want 2 | begin 1,2"},
      {"begun mm", "publish 1,2"},
      {"published 1 ok;published 2 ok", "commit"},
      {"committed ok", "ack 1 completed | ack 2 completed"},
      {"+60000", ""}}},
    {"gone: a missing row cancels, and is proof enough for the ack",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"+10000", "wpi 1 | renew 1"},
      {"renewed x", "fire 1 renewal cancelled"},
      {"+5000", ""},
      {"done 1 cancelled", "ack 1 cancelled | want 2"}}},
    {"gone: a result that comes all the same is thrown away",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"+10000", "wpi 1 | renew 1"},
      {"renewed x", "fire 1 renewal cancelled"},
      {"done 1", "ack 1 cancelled | want 2"}}},
    {"stolen: lease lost, nothing is sent",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"+10000", "wpi 1 | renew 1"},
      {"renewed s", "fire 1 lease_lost lease_lost"},
      {"+9999", ""},
      {"done 1", "drop 1 stolen | want 2"}}},
    {"unknown is not gone: nothing fires, asked again soon",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"+10000", "wpi 1 | renew 1"},
      {"renewed ?", ""},
      {"+999", ""},
      {"+1", "renew 1"},
      {"renewed m", ""},
      {"+8999", ""},
      {"+1", "wpi 1"},
      {"+1000", "renew 1"},
      {"renewed m", ""},
      {"done 1", "want 2 | begin 1"}}},
    {"unknown until the end of the lease: fences itself, sends nothing",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"+10000", "wpi 1 | renew 1"},
      {"+10000", "wpi 1"}, /* the statement hangs */
      {"+7999;renewed ?", ""},
      {"+1", "fire 1 lease_lost lease_lost"},
      {"+999", ""},
      {"done 1", "drop 1 lease_lost | want 2"}}},
    {"the broker away: the row is kept, but the message's lease ends",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"down", ""},
      {"+10000", "renew 1"},
      {"renewed m", ""},
      {"+10000", "renew 1"},
      {"renewed m", ""},
      {"+7999", ""},
      {"+1", "fire 1 lease_lost lease_lost"},
      {"done 1", "drop 1 lease_lost | want 2"}}},
    {"+WPI that was not sent does not extend the lease",
     {{"wpi off;msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"+10000", "wpi 1 | renew 1"},
      {"renewed m", ""},
      {"+10000", "wpi 1 | renew 1"},
      {"renewed m", ""},
      {"+8000", "fire 1 lease_lost lease_lost"}}},
    {"reconnected since the delivery: completed under the row's fence, but no ack and no +WPI",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"down", ""},
      {"up 2", ""},
      {"+10000", "renew 1"},
      {"renewed m", ""},
      {"done 1", "want 2 | begin 1"},
      {"begun m", "publish 1"},
      {"published 1 ok", "commit"},
      {"committed ok", "drop 1 completed"}}},
    {"reconnected before the claim: the same",
     {{"msg 1 a;up 2", "claim 1"}, {"claimed x", "drop 1 gone | want 2"}}},
    {"a delivery that overtakes the news of its connection",
     {{"msg 1 a epoch=2", "claim 1"}, {"claimed x", "ack 1 gone | want 2"}, {"up 2", ""}}},

    {"a renewal counts from when it was sent",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"+10000", "wpi 1 | renew 1"},
      {"+5000;renewed m", ""},
      {"+5000", "wpi 1 | renew 1"},
      {"+10000", "wpi 1"},
      {"+7999", ""},
      {"+1", "fire 1 lease_lost lease_lost"}}},
    {"what is lost is neither renewed nor extended",
     {{"msg 1 a;msg 2 b", "claim 1,2"},
      {"claimed mm", "run 1#6 | run 2#7"},
      {"+10000", "wpi 1,2 | renew 1,2"},
      {"renewed sm", "fire 1 lease_lost lease_lost"},
      {"+9999", ""},
      {"+1", "abandon 1 | drop 1 stolen | wpi 2 | renew 2"}}},
    {"lost, with more grace than a third of the lease",
     {{"msg 1 a;msg 2 b", "claim 1,2"},
      {"claimed mm", "run 1#6 | run 2#7"},
      {"+5000;push b", "fire 2 push requested: too late | renew 2"},
      {"renewed s", ""},
      {"+5000", "wpi 1 | renew 1"}}},

    {"push: fires at once, and the row confirms at once",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"push a", "fire 1 push requested: too late | renew 1"},
      {"renewed x", ""},
      {"done 1 cancelled", "ack 1 cancelled | want 2"}}},
    {"push: the handler is faster than the row",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"push a", "fire 1 push requested: too late | renew 1"},
      {"done 1 cancelled", "want 2"},
      {"renewed x", "ack 1 cancelled"}}},
    {"push: while the row cannot be asked the message stays",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"push a", "fire 1 push requested: too late | renew 1"},
      {"done 1 cancelled", "want 2"},
      {"renewed ?", ""},
      {"+1000", "renew 1"},
      {"renewed ?", ""},
      {"+1000", "renew 1"},
      {"renewed x", "ack 1 cancelled"}}},
    {"push: never confirmed, never acknowledged",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"push a", "fire 1 push requested: too late | renew 1"},
      {"done 1 cancelled", "want 2"},
      {"+27999;renewed ?", "wpi 1"},
      {"+1", "drop 1 cancelled"}}},
    {"push: the row is still there, so the message comes back",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"push a", "fire 1 push requested: too late | renew 1"},
      {"renewed m", ""},
      {"done 1", "drop 1 cancelled | want 2"}}},
    {"push: an answer that was asked for before it confirms nothing",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"+10000", "wpi 1 | renew 1"},
      {"push a", "fire 1 push requested: too late"},
      {"renewed m", "renew 1"},
      {"renewed x", ""},
      {"done 1", "ack 1 cancelled | want 2"}}},
    {"push before the claim: not run, the missing row confirms",
     {{"msg 1 a", "claim 1"}, {"push a", ""}, {"claimed x", "ack 1 gone | want 2"}}},
    {"push during the claim, which won: not run, confirmed by a renewal",
     {{"msg 1 a", "claim 1"}, {"push a;claimed m", "want 2 | renew 1"}, {"renewed x", "ack 1 cancelled"}}},
    {"push between claim and start: not run",
     {{"msg 1 a", "claim 1"}, {"claimed m;push a", "want 2 | renew 1"}, {"renewed x", "ack 1 cancelled"}}},
    {"push for several, one of them not here",
     {{"msg 1 a;msg 2 b", "claim 1,2"},
      {"claimed mm", "run 1#6 | run 2#7"},
      {"push xba", "fire 2 push requested: too late | fire 1 push requested: too late | renew 1,2"},
      {"renewed xx", ""},
      {"done 1;done 2", "ack 1 cancelled | ack 2 cancelled | want 2"}}},
    {"push after the handler has returned: its completion is told by the row",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"done 1;push a", "want 2 | begin 1"},
      {"begun x", "ack 1 refused | rollback"}}},
    {"pushed twice, and then the row is missing: fires once",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"push a", "fire 1 push requested: too late | renew 1"},
      {"push a", ""},
      {"renewed x", ""},
      {"push a", ""},
      {"done 1", "ack 1 cancelled | want 2"}}},

    {"grace over: the slot is abandoned and comes back when it is replaced",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"push a", "fire 1 push requested: too late | renew 1"},
      {"renewed x", ""},
      {"+9999", ""},
      {"+1", "abandon 1 | ack 1 cancelled"},
      {"slot", "want 2"},
      {"done 1", ""}}},
    {"grace over without a confirmation: the message stays until there is one",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"push a", "fire 1 push requested: too late | renew 1"},
      {"+10000;renewed ?", "abandon 1 | wpi 1"},
      {"slot", "want 2"},
      {"+1000", "renew 1"},
      {"renewed x", "ack 1 cancelled"}}},
    {"grace over after a lost lease: nothing is sent",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"+10000", "wpi 1 | renew 1"},
      {"renewed s", "fire 1 lease_lost lease_lost"},
      {"+10000", "abandon 1 | drop 1 stolen"},
      {"slot", "want 2"}}},
    {"a cancelled handler keeps its message while it has grace",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"+10000", "wpi 1 | renew 1"},
      {"renewed x", "fire 1 renewal cancelled"},
      {"+9999", ""},
      {"+1", "abandon 1 | ack 1 cancelled"}}},

    {"completed in batches",
     {{"msg 1 a;msg 2 b", "claim 1,2"},
      {"claimed mm", "run 1#6 | run 2#7"},
      {"done 2;done 1", "want 2 | begin 2,1"},
      {"begun mm", "publish 2,1"},
      {"published 1 ok", ""},
      {"published 2 ok", "commit"},
      {"committed ok", "ack 2 completed | ack 1 completed"}}},
    {"only what is mine is published",
     {{"msg 1 a;msg 2 b", "claim 1,2"},
      {"claimed mm", "run 1#6 | run 2#7"},
      {"done 1;done 2", "want 2 | begin 1,2"},
      {"begun sm", "drop 1 stolen | publish 2"},
      {"published 2 ok", "commit"},
      {"committed ok", "ack 2 completed"}}},
    {"nothing of it is mine",
     {{"msg 1 a;msg 2 b", "claim 1,2"},
      {"claimed mm", "run 1#6 | run 2#7"},
      {"done 1;done 2", "want 2 | begin 1,2"},
      {"begun sx", "drop 1 stolen | ack 2 refused | rollback"}}},
    {"an unknown begin is tried again, and renewals go on",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"+9990;done 1", "want 2 | begin 1"},
      {"begun ?", ""},
      {"+10", "wpi 1 | renew 1"},
      {"renewed m", ""},
      {"+40", "begin 1"},
      {"begun m", "publish 1"},
      {"published 1 ok", "commit"},
      {"committed ok", "ack 1 completed"}}},
    {"an unknown publish rolls all back; the others go again at once",
     {{"msg 1 a;msg 2 b", "claim 1,2"},
      {"claimed mm", "run 1#6 | run 2#7"},
      {"done 1;done 2", "want 2 | begin 1,2"},
      {"begun mm", "publish 1,2"},
      {"published 1 ?;published 2 ok", "rollback | begin 2"},
      {"begun m", "publish 2"},
      {"published 2 ok", "commit"},
      {"+50;committed ok", "ack 2 completed | begin 1"},
      {"begun m", "publish 1"}}},
    {"an unknown commit: the missing row was taken by that commit",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"done 1", "want 2 | begin 1"},
      {"begun m", "publish 1"},
      {"published 1 ok", "commit"},
      {"committed ?", ""},
      {"+50", "begin 1"},
      {"begun x", "ack 1 completed | rollback"}}},
    {"an unknown commit that was none: published again",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"done 1", "want 2 | begin 1"},
      {"begun m", "publish 1"},
      {"published 1 ok", "commit"},
      {"committed ?", ""},
      {"+50", "begin 1"},
      {"begun m", "publish 1"},
      {"published 1 ok", "commit"},
      {"committed ok", "ack 1 completed"}}},
    {"a renewal finds the row missing before the retry does",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"+9999;done 1", "want 2 | begin 1"},
      {"begun ?", ""},
      {"+1", "wpi 1 | renew 1"},
      {"renewed x", "ack 1 refused"}}},
    {"the lease ends while a result is retried: it is thrown away",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"down;done 1", "want 2 | begin 1"},
      {"+27900;begun ?", "renew 1"},
      {"renewed m", ""},
      {"+50", "begin 1"},
      {"begun m", "publish 1"},
      {"published 1 ?", "rollback"},
      {"+50", "drop 1 lease_lost"}}},
    {"the lease ends in the middle of a batch: the row's fence still holds, but no ack",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"down;done 1", "want 2 | begin 1"},
      {"begun m", "publish 1"},
      {"+28000;published 1 ok", "commit"},
      {"committed ok", "drop 1 completed"}}},
    {"the lease ends in the middle of a batch that fails: no retry",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"down;done 1", "want 2 | begin 1"},
      {"begun m", "publish 1"},
      {"+28000;published 1 ?", "rollback | drop 1 lease_lost"}}},
    {"the lease has ended when the completion is committed: no ack",
     {{"wpi off;msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"done 1", "want 2 | begin 1"},
      {"begun m", "publish 1"},
      {"published 1 ok", "commit"},
      {"+28000;committed ok", "drop 1 completed"}}},
    {"renewed again when a batch fails that was under way when renewal was due",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"done 1", "want 2 | begin 1"},
      {"+10000", "wpi 1"},
      {"begun ?", "renew 1"}}},
    {"two claims of one activity are completed one after the other",
     {{"msg 1 a", "claim 1"},
      {"claimed m;msg 2 a", "run 1#6 | claim 2"},
      {"claimed m", "run 2#7"},
      {"done 1;done 2", "want 2 | begin 1"},
      {"begun s", "drop 1 stolen | rollback | begin 2"}}},
    {"results that cannot be stored hold fetching back",
     {{"msg 1 a;msg 2 b", "claim 1,2"},
      {"claimed mm", "run 1#6 | run 2#7"},
      {"done 1;done 2", "want 2 | begin 1,2"},
      {"msg 3 c;msg 4 d", "claim 3,4"},
      {"claimed mm", "run 3#8 | run 4#9"},
      {"done 3;done 4", ""}, /* four are held: two slots and two completions */
      {"begun mm", "publish 1,2"},
      {"published 1 ok;published 2 ok", "commit"},
      {"committed ok", "ack 1 completed | ack 2 completed | want 2 | begin 3,4"}}},
    {"a failure is a result like any other",
     {{"msg 1 a", "claim 1"}, {"claimed m", "run 1#6"}, {"done 1 failed", "want 2 | begin 1"}}},

    {"unknown activities are handed back, later each time, without a slot",
     {{"msg 1 a unknown", "want 2"},
      {"+99", ""},
      {"+1", "nak 1 unknown"},
      {"msg 1 a unknown n=3", "want 2"},
      {"+399", ""},
      {"+1", "nak 1 unknown"},
      {"msg 1 a unknown n=60", "want 2"},
      {"+9999", ""},
      {"+1", "nak 1 unknown"}}},

    {"stop: with nothing to do", {{"stop 1000", "want 0 | stopped"}}},
    {"stop: what is not claimed is handed back, what runs may finish",
     {{"msg 1 a;msg 2 b", "claim 1,2"},
      {"claimed mm", "run 1#6 | run 2#7"},
      {"msg 3 c;msg 9 z unknown", ""},
      {"stop 5000", "nak 3 handed_back | nak 9 handed_back"},
      {"msg 4 d", "nak 4 handed_back"},
      {"done 1", "begin 1"},
      {"begun m", "publish 1"},
      {"published 1 ok", "commit"},
      {"committed ok", "ack 1 completed"},
      {"done 2", "begin 2"},
      {"begun m", "publish 2"},
      {"published 2 ok", "commit"},
      {"committed ok", "ack 2 completed | stopped"}}},
    {"stop: in the middle of a claim",
     {{"msg 1 a;msg 2 b", "claim 1,2"},
      {"stop 5000", ""},
      {"claimed xm", "ack 1 gone | release 2"},
      {"released", "nak 2 handed_back | stopped"}}},
    {"stop: an unknown claim is handed back",
     {{"msg 1 a", "claim 1"}, {"stop 5000", "want 0"}, {"claimed ?", "nak 1 handed_back | stopped"}}},
    {"stop: limit over, the handler gives up",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"stop 5000", "want 0"},
      {"+4999", ""},
      {"+1", "fire 1 shutdown shutdown"},
      {"done 1 cancelled", "release 1"},
      {"released", "nak 1 handed_back | stopped"}}},
    {"stop: a failure after the token is no result, a success is",
     {{"msg 1 a;msg 2 b", "claim 1,2"},
      {"claimed mm", "run 1#6 | run 2#7"},
      {"stop 0", "fire 1 shutdown shutdown | fire 2 shutdown shutdown"},
      {"done 1 failed;done 2", "begin 2 | release 1"},
      {"begun m", "publish 2"},
      {"released", "nak 1 handed_back"},
      {"published 2 ok", "commit"},
      {"committed ok", "ack 2 completed | stopped"}}},
    {"stop: a handler that ignores the token is abandoned after a short grace",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"stop 5000", "want 0"},
      {"+5000", "fire 1 shutdown shutdown"},
      {"+1999", ""},
      {"+1", "abandon 1 | release 1"},
      {"released", "nak 1 handed_back | stopped"},
      {"done 1", ""}}},
    {"stop: a result that cannot be stored in time is handed back",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"stop 0;done 1", "want 0 | begin 1"},
      {"+1990;begun ?", ""},
      {"+10", "release 1"},
      {"released", "nak 1 handed_back | stopped"}}},
    {"stop: cancelled before, and ends with its grace cut short",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"push a", "fire 1 push requested: too late | renew 1"},
      {"stop 100", "want 0"},
      {"+2100;renewed x", "abandon 1 | ack 1 cancelled | stopped"}}},
    {"stop: a second one can only be shorter",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"stop 60000", "want 0"},
      {"stop 90000", ""},
      {"stop 100", ""},
      {"+100", "fire 1 shutdown shutdown"}}},
    {"stop: waits for calls in flight",
     {{"msg 1 a", "claim 1"},
      {"claimed m", "run 1#6"},
      {"+10000", "wpi 1 | renew 1"},
      {"stop 0;done 1", "want 0 | begin 1"},
      {"begun x", "ack 1 refused | rollback"},
      {"renewed x", "stopped"}}},
};

static void test_stories(void)
{
    for (size_t i = 0; i < ARRAY_LEN(stories); i++) {
        struct world t;
        begin_world(&t);
        step(&t, "up 1");
        CHECK_STR(stories[i].name, t.text, "want 2");
        for (size_t s = 0; s < STEPS_MAX && stories[i].steps[s].does != NULL; s++) {
            char name[256];
            (void)snprintf(name, sizeof name, "%s, step %zu: %s", stories[i].name, s + 1,
                           stories[i].steps[s].does);
            step(&t, stories[i].steps[s].does);
            CHECK_STR(name, t.text, stories[i].steps[s].says);
        }
        worker_destroy(t.w);
    }
}

/* 2,000 activities, all cancelled by pushes of 256. */
static void test_many_pushes(void)
{
    enum { MANY = 2000 };
    static uint64_t ids[MANY];
    struct worker_options options;
    struct worker_out out;
    size_t fired = 0, asked = 0;
    worker_options_init(&options);
    options.slots = MANY;
    struct worker_machine *const w = worker_create(&options);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    struct worker_in in = {.kind = WORKER_IN_CONNECTION, .up = true, .epoch = 1};
    CU_ASSERT_EQUAL(worker_input(w, &in, 1), THOLE_OK);
    for (uint64_t i = 0; i < MANY; i++) {
        ids[i] = i + 1;
        in = (struct worker_in){
            .kind = WORKER_IN_DELIVERED, .id = i + 1, .key = key_of('a'), .known = true, .epoch = 1};
        in.key.activity_id = i + 1;
        CU_ASSERT_EQUAL(worker_input(w, &in, 1), THOLE_OK);
    }
    while (worker_poll(w, &out)) {
        static struct worker_row rows[WORKER_CLAIM_MAX];
        if (out.kind != WORKER_OUT_CLAIM)
            continue;
        in = (struct worker_in){.kind = WORKER_IN_CLAIMED, .rows = rows, .rows_len = out.rows_len};
        for (size_t i = 0; i < out.rows_len; i++) {
            rows[i] = out.rows[i];
            rows[i].attempt = 1;
            rows[i].state = WORKER_ROW_MINE;
        }
        CU_ASSERT_EQUAL(worker_input(w, &in, 1), THOLE_OK);
    }
    CU_ASSERT_EQUAL(worker_counters(w).claimed, MANY);
    for (size_t at = 0; at < MANY; at += 256) {
        in = (struct worker_in){.kind = WORKER_IN_PUSHED, .key = key_of('a'), .activity_ids = ids + at};
        in.activity_ids_len = MANY - at < 256 ? MANY - at : 256;
        CU_ASSERT_EQUAL(worker_input(w, &in, 2), THOLE_OK);
    }
    while (worker_poll(w, &out)) {
        fired += out.kind == WORKER_OUT_FIRE;
        asked += out.kind == WORKER_OUT_RENEW ? out.rows_len : 0;
    }
    CU_ASSERT_EQUAL(fired, MANY);
    CU_ASSERT_EQUAL(asked, MANY); /* in one statement */
    CU_ASSERT_EQUAL(worker_counters(w).cancelled_by_push, MANY);
    worker_destroy(w);
}

static const struct thole_test tests[] = {
    {"stories", test_stories},
    {"2,000 pushes at once", test_many_pushes},
};
THOLE_TEST_MAIN("worker", tests)
