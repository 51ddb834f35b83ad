/*
 * The bytes are an orchestration (byte_program) and what happens to it. It is run turn by turn, by engines
 * that change and sometimes lack the code. Then
 *   - a replay with code accepts what was recorded, and so does one without;
 *   - all three know the same, would accept the same, and carry over the same;
 *   - it can be terminated without code, and the code accepts that;
 *   - a history that was tampered with is refused or not, but does no harm.
 */
#include "byte_program.h"
#include "coro.h"
#include "instance.h"
#include "samples.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    TURNS_MAX = 24,
    RECEIVED_MAX = 5,
    EVENTS_MAX = 400, /* of an execution */
    ARENA_MAX = 64 * 1024 * 1024,
    TEXT_MAX = 1024 * 1024,
    MEMORY_MAX = 512 * 1024,
    PAYLOAD_MAX = 4096,
    QUARANTINE_MS = 2000,
};

struct story {
    const uint8_t *data;
    size_t size;
    struct stack_pool *stacks;
    struct arena arena;
    uint32_t version;
    size_t memory_max;
    uint64_t time_ms;
    thole_slice program;
    struct turn turns[TURNS_MAX + 1];
    size_t turns_len;
    uint64_t events;
};

static uint8_t next(struct story *s)
{
    if (s->size == 0)
        return 0;
    s->size--;
    return *s->data++;
}

static struct instance *begin(struct story *s, bool code)
{
    struct instance_options const options = {.code = code ? byte_program : NULL,
                                             .id = THOLE_STR("i"),
                                             .execution = 1,
                                             .version = code ? s->version : 0,
                                             .memory_max = code ? s->memory_max : MEMORY_MAX,
                                             .payload_max = PAYLOAD_MAX,
                                             .quarantine_ms = QUARANTINE_MS,
                                             .stacks = s->stacks};
    return instance_create(&options);
}

/* Memory may be too little: live and replay do not need the same. */
static bool replay(struct story *s, struct instance *instance)
{
    thole_error err = {.text = ""};
    for (size_t i = 0; i < s->turns_len; i++) {
        thole_status const status = instance_replay(instance, &s->turns[i], &err);
        bool const too_little = status == THOLE_LIMIT && s->memory_max < MEMORY_MAX;
        if (status != THOLE_OK && !too_little)
            fprintf(stderr, "turn %zu: %s\n", i + 1, err.text);
        assert(status == THOLE_OK || too_little);
        if (status != THOLE_OK)
            return false;
    }
    return true;
}

/* ---- received events ---- */

static thole_slice some_name(struct story *s)
{
    static const char *const names[] = {"e0", "e1", "a", "b"};
    return thole_slice_from(names[next(s) % 4]);
}

static thole_slice some_bytes(struct story *s)
{
    size_t const len = next(s) % 4;
    thole_slice const bytes = {s->data, len < s->size ? len : s->size};
    s->data += bytes.len;
    s->size -= bytes.len;
    return bytes;
}

static struct event some_result(struct story *s, enum event_kind kind)
{
    static const char *const types[] = {"", "f0", "final", "x.y"};
    uint8_t const how = next(s);
    struct event event = {
        .kind = kind, .ref = next(s) % (s->events + 2), .try_number = how & 3, .data = some_bytes(s)};
    if (kind == EVENT_ACTIVITY_FAILED || kind == EVENT_CHILD_FAILED) {
        event.code = how & 4 ? THOLE_TIMEOUT : how & 8 ? THOLE_CANCELLED : THOLE_APP;
        event.error_type = thole_slice_from(types[how >> 4 & 3]);
        event.final = (how & 64) != 0;
        event.details = how & 128 ? THOLE_STR("half") : THOLE_STR("");
    }
    return event;
}

static struct event some_request(struct story *s, enum event_kind kind)
{
    static const char *const ids[] = {"", "r-1", "r-2", "r-3"};
    return (struct event){
        .kind = kind, .request_id = thole_slice_from(ids[next(s) % 4]), .data = some_bytes(s)};
}

/* An activity that was lost with its workers once too often; or a decision about one in quarantine. */
static struct event some_poison(struct story *s)
{
    uint8_t const how = next(s);
    bool const again = how % 3 == 1, lost = how % 3 == 2;
    struct event event = {.kind = again ? EVENT_ACTIVITY_TRY_STARTED : EVENT_ACTIVITY_FAILED,
                          .ref = next(s) % (s->events + 2),
                          .try_number = how >> 6,
                          .quarantined = !lost};
    if (!lost)
        return event;
    event.code = THOLE_APP;
    event.error_type = THOLE_STR("poison");
    event.final = true;
    event.lost = 1 + (how >> 4 & 3);
    event.worker = THOLE_STR("w");
    event.queue = THOLE_STR("q"); /* as message_decode() asks */
    event.input = some_bytes(s);
    return event;
}

static struct event some_event(struct story *s)
{
    uint8_t const what = next(s) % 16;
    struct event event;
    switch (what) {
    case 0:
    case 1:
    case 2: return some_result(s, EVENT_ACTIVITY_COMPLETED);
    case 3:
    case 4:
    case 5: return some_result(s, EVENT_ACTIVITY_FAILED);
    case 6: return some_result(s, EVENT_CHILD_COMPLETED);
    case 7: return some_result(s, EVENT_CHILD_FAILED);
    case 8: return some_request(s, EVENT_CANCEL_REQUESTED);
    case 9: return some_request(s, EVENT_TERMINATE_REQUESTED);
    case 10: return some_request(s, EVENT_PAUSED);
    case 11: return some_request(s, EVENT_RESUMED);
    case 12:
    case 13:
        event = some_request(s, EVENT_EVENT_RECEIVED);
        event.name = some_name(s);
        return event;
    case 15: return some_poison(s);
    default:
        event = (struct event){.kind = EVENT_TIMER_FIRED, .ref = next(s) % (s->events + 2)};
        event.due_ms = (event.ref & 1) != 0 ? 0 : s->time_ms; /* 0: due whatever it is */
        return event;
    }
}

/* Started, and what an execution that continues another may begin with. */
static size_t first_events(struct story *s, struct event *to)
{
    uint8_t const how = next(s);
    size_t n = 0;
    to[n++] = (struct event){.kind = EVENT_STARTED,
                             .name = THOLE_STR("o"),
                             .data = s->program,
                             .request_id = THOLE_STR("r-0"),
                             .version = how & 1 ? s->version : 0};
    if (how & 2)
        to[0].parent = (struct origin){THOLE_STR("p"), 1, 2};
    if (how & 4)
        to[n++] = (struct event){.kind = EVENT_STATE_CARRIED, .data = THOLE_STR("status")};
    if (how & 8)
        to[n++] = (struct event){.kind = EVENT_STATE_CARRIED, .name = THOLE_STR("k"), .data = THOLE_STR("v")};
    if (how & 16)
        to[n++] = (struct event){.kind = EVENT_ORIGINS_CARRIED, .data = THOLE_STR("01234567abcdefgh")};
    if (how & 32)
        to[n++] = some_event(s);
    assert(n <= RECEIVED_MAX);
    return n;
}

/* Through bytes, as others read it. */
static void record_turn(struct story *s, const struct turn_out *out, bool paused)
{
    struct record record = {.kind = RECORD_TURN,
                            .epoch = 1,
                            .n = 1,
                            .turn = {.instance = THOLE_STR("i"),
                                     .execution = 1,
                                     .number = out->number,
                                     .time_ms = out->time_ms,
                                     .ran = out->ran,
                                     .blocked = out->ran ? BLOCKED_NOT
                                                : paused ? BLOCKED_PAUSED
                                                         : BLOCKED_NO_CODE,
                                     .events = out->events,
                                     .events_len = out->events_len}};
    struct buf bytes;
    thole_error err = {.text = ""};
    buf_init(&bytes, RECORD_BYTES_MAX);
    thole_status status = record_encode(&record, &bytes);
    assert(status == THOLE_OK);
    status = record_decode(buf_bytes(&bytes), &s->arena, &record, &err);
    if (status != THOLE_OK)
        fprintf(stderr, "what was recorded does not decode: %s\n", err.text);
    assert(status == THOLE_OK);
    s->turns[s->turns_len++] = record.turn;
    s->events += record.turn.events_len;
    buf_release(&bytes);
}

/* One turn by the engine that has it, or by another one. False: the story is over. */
static bool turn(struct story *s, struct instance **instance)
{
    struct event received[RECEIVED_MAX];
    uint8_t const how = next(s);
    bool const code = how % 8 != 7;
    if (how % 4 == 3) {
        instance_destroy(*instance);
        *instance = begin(s, code);
        if (!replay(s, *instance))
            return false;
    }
    s->time_ms += next(s) * UINT64_C(40);
    size_t n = s->turns_len == 0 ? first_events(s, received) : 0;
    for (size_t more = how >> 3 & 3; more > 0 && n < RECEIVED_MAX; more--)
        received[n++] = some_event(s);
    struct turn_in const in = {s->time_ms, received, n, code && (how & 128) == 0};
    struct turn_out out;
    thole_error err = {.text = ""};
    thole_status const status = instance_turn(*instance, &in, &out, &err);
    assert(status == THOLE_OK || (err.status == status && err.text[0] != '\0'));
    assert(status == THOLE_OK || status == THOLE_LIMIT || status == THOLE_INVALID);
    if (status != THOLE_OK)
        return false;
    record_turn(s, &out, instance_paused(*instance));
    if (how % 8 == 7) { /* the code is back */
        instance_destroy(*instance);
        *instance = begin(s, true);
        return replay(s, *instance) && !out.ended;
    }
    return !out.ended;
}

/* ---- checks of the instance ---- */

static void show_facts(const struct instance *instance, uint64_t events, struct buf *to)
{
    struct origin const parent = instance_parent(instance);
    thole_slice const status = instance_custom_status(instance), name = instance_orchestration(instance);
    buf_printf(to, "%d %d %d %d %d %u %.*s %.*s %.*s:%llu#%llu %llu %llu\n", instance_started(instance),
               instance_ended(instance), instance_paused(instance), instance_continued(instance),
               instance_has_undelivered(instance), instance_version(instance), THOLE_FMT(status),
               THOLE_FMT(name), THOLE_FMT(parent.instance), (unsigned long long)parent.execution,
               (unsigned long long)parent.event, (unsigned long long)instance_turns(instance),
               (unsigned long long)instance_time_ms(instance));
    for (uint64_t ref = 0; ref <= events + 1; ref++) {
        for (int kind = EVENT_STARTED; kind < EVENT_STATE_CARRIED; kind++) { /* later kinds are not sent */
            for (uint32_t number = 0; number < 4; number++) {
                struct event const event = {.kind = (enum event_kind)kind,
                                            .ref = ref,
                                            .try_number = number,
                                            .name = THOLE_STR("e0"),
                                            .request_id = number == 1 ? THOLE_STR("r-1") : THOLE_STR("")};
                if (instance_accepts(instance, &event))
                    buf_printf(to, "%d/%llu/%u ", kind, (unsigned long long)ref, number);
            }
        }
    }
}

static void show_carry(const struct instance *instance, struct buf *to)
{
    struct event *events;
    struct arena arena;
    size_t n;
    if (!instance_continued(instance))
        return;
    arena_init(&arena, ARENA_MAX);
    thole_status const status = instance_carry(instance, &arena, &events, &n);
    assert(status == THOLE_OK);
    (void)status;
    for (size_t i = 0; i < n; i++)
        show_event(&events[i], to);
    arena_release(&arena);
}

static void check_same(const struct story *s, const struct instance *a, const struct instance *b)
{
    struct buf left, right;
    buf_init(&left, TEXT_MAX);
    buf_init(&right, TEXT_MAX);
    show_facts(a, s->events, &left);
    show_facts(b, s->events, &right);
    show_carry(a, &left);
    show_carry(b, &right);
    if (!thole_slice_equal(buf_bytes(&left), buf_bytes(&right)))
        fprintf(stderr, "%s\n---\n%s\n", buf_cstr(&left), buf_cstr(&right));
    assert(thole_slice_equal(buf_bytes(&left), buf_bytes(&right)));
    buf_release(&left);
    buf_release(&right);
}

/* A query changes nothing. */
static void ask(struct instance *instance)
{
    static const char *const names[] = {"e0", "e1", "a", "b"};
    static const char *const inputs[] = {"", "x", "s"};
    thole_slice output;
    for (size_t i = 0; i < 12; i++) {
        thole_status const ignored = instance_query(instance, thole_slice_from(names[i % 4]),
                                                    thole_slice_from(inputs[i / 4]), &output, NULL);
        (void)ignored;
    }
}

/* Without code, from any state; the code agrees. */
static void check_terminated(struct story *s)
{
    struct instance *instance = begin(s, false);
    struct event const request = {.kind = EVENT_TERMINATE_REQUESTED, .data = THOLE_STR("why")};
    struct turn_in const in = {s->time_ms, &request, 1, true};
    struct turn_out out;
    bool const good = replay(s, instance);
    assert(good);
    if (good && instance_started(instance) && !instance_ended(instance)) {
        thole_status const status = instance_turn(instance, &in, &out, NULL);
        assert(status == THOLE_OK && out.ended && out.ran);
        (void)status;
        record_turn(s, &out, false);
        instance_destroy(instance);
        instance = begin(s, true);
        assert(!replay(s, instance) || instance_ended(instance));
        s->turns_len--;
    }
    instance_destroy(instance);
}

/* ---- tampering ---- */

static void change(struct story *s, struct event *event)
{
    uint8_t const how = next(s), what = next(s);
    switch (how % 14) {
    case 0: event->kind = (enum event_kind)(EVENT_STARTED + what % (EVENT_LAST - EVENT_STARTED + 1)); break;
    case 1: event->ref = what; break;
    case 2: event->id += what; break;
    case 3: event->code = what; break;
    case 4: event->try_number = what; break;
    case 5: event->data = some_bytes(s); break;
    case 6: event->name = some_name(s); break;
    case 7: event->target = THOLE_STR("t"); break;
    case 8: event->retry = NULL; break;
    case 9: event->due_ms = what * UINT64_C(40); break;
    case 10: event->version = what; break;
    case 11: event->flag = !event->flag; break;
    case 12: event->error_type = THOLE_STR("x"); break;
    default: event->kind = EVENT_UNKNOWN; break;
    }
}

/* Events of one turn: changed, left out, repeated; ids made right again. */
static void tamper(struct story *s)
{
    struct turn *turn = &s->turns[next(s) % s->turns_len];
    struct event *events = arena_array(&s->arena, turn->events_len + 1, sizeof *events);
    size_t const n = turn->events_len, at = n == 0 ? 0 : next(s) % n;
    uint8_t const how = next(s) % 8;
    if (events == NULL || n == 0)
        return;
    memcpy(events, turn->events, n * sizeof *events);
    turn->events = events;
    if (how == 0) {
        memmove(&events[at], &events[at + 1], (n - at - 1) * sizeof *events);
        turn->events_len--;
    } else if (how == 1) {
        memmove(&events[at + 1], &events[at], (n - at) * sizeof *events);
        turn->events_len++;
    } else if (how == 2) {
        turn->ran = !turn->ran;
    } else {
        change(s, &events[at]);
    }
    for (size_t i = 0; i < turn->events_len && how < 7; i++)
        events[i].id = turn->events[0].id + i;
}

static void renumber(struct story *s)
{
    uint64_t id = 1;
    for (size_t i = 0; i < s->turns_len; i++) {
        struct turn *turn = &s->turns[i];
        struct event *events = arena_array(&s->arena, turn->events_len, sizeof *events);
        if (events == NULL)
            return;
        for (size_t j = 0; j < turn->events_len; j++) {
            events[j] = turn->events[j];
            events[j].id = id++;
        }
        turn->events = events;
    }
}

static void check_tampered(struct story *s, bool code)
{
    struct instance *instance = begin(s, code);
    struct buf text;
    thole_error err = {.text = ""};
    thole_status status = THOLE_OK;
    for (size_t i = 0; i < s->turns_len && status == THOLE_OK; i++)
        status = instance_replay(instance, &s->turns[i], &err);
    assert(status == THOLE_OK || (err.status == status && err.text[0] != '\0'));
    if (status == THOLE_OK) {
        buf_init(&text, TEXT_MAX);
        show_facts(instance, s->events, &text);
        show_carry(instance, &text);
        ask(instance);
        buf_release(&text);
        struct event const received[] = {some_event(s), some_event(s), some_event(s)};
        struct turn_in const in = {s->time_ms, received, 3, true};
        struct turn_out out;
        status = instance_turn(instance, &in, &out, NULL);
    }
    instance_destroy(instance);
}

/* ---- */

static void check(struct story *s, struct instance *live, bool sound)
{
    struct instance *replayed = begin(s, true), *codeless = begin(s, false);
    bool const good = replay(s, replayed);
    bool const without = replay(s, codeless);
    assert(without);
    if (without && good)
        check_same(s, replayed, codeless);
    if (without && sound)
        check_same(s, live, codeless);
    if (good) {
        ask(replayed);
        check_same(s, replayed, codeless);
    }
    instance_destroy(replayed);
    instance_destroy(codeless);
    check_terminated(s);
    for (size_t i = 1 + next(s) % 3; i > 0 && s->turns_len > 0; i--)
        tamper(s);
    if (next(s) % 2 == 0)
        renumber(s);
    check_tampered(s, true);
    check_tampered(s, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct story s = {.data = data, .size = size, .stacks = stack_pool_create(4, 8)};
    arena_init(&s.arena, ARENA_MAX);
    uint8_t const how = next(&s), len = next(&s);
    s.version = how & 1 ? 3 : 0;
    s.memory_max = how & 2 ? (how >> 2) * (size_t)512 : MEMORY_MAX;
    s.program = (thole_slice){s.data, len % 128 < s.size ? len % 128 : s.size};
    s.data += s.program.len;
    s.size -= s.program.len;
    struct instance *live = begin(&s, true);
    bool sound = true;
    while (s.turns_len < TURNS_MAX && s.events < EVENTS_MAX && (s.size > 0 || s.turns_len == 0))
        if (!(sound = turn(&s, &live)))
            break;
    sound = sound || (s.turns_len > 0 && instance_ended(live));
    if (s.turns_len > 0)
        check(&s, live, sound);
    instance_destroy(live);
    arena_release(&s.arena);
    stack_pool_destroy(s.stacks);
    return 0;
}
