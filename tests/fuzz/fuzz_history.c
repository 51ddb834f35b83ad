/*
 * Any bytes as the records of an execution (each preceded by its length: 4 bytes, little-endian), replayed
 * with code and without. As the numbers of turns and events are hard to guess, they are also corrected
 * before.
 */
#include "byte_program.h"
#include "coro.h"
#include "instance.h"
#include "samples.h"
#include "turn_list.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    ARENA_MAX = 64 * 1024 * 1024,
    MEMORY_MAX = 256 * 1024,
    RECORDS_MAX = 32,
    LENGTH_BYTES = 4,
    EVENTS_MAX = 1000
};

struct history {
    struct turn turns[RECORDS_MAX];
    size_t len;
};

static size_t read_records(const uint8_t *data, size_t size, struct arena *arena, struct record *ret)
{
    size_t n = 0;
    for (size_t len; size > LENGTH_BYTES && n < RECORDS_MAX; data += len, size -= len) {
        len = (size_t)data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16 | (size_t)data[3] << 24;
        data += LENGTH_BYTES;
        size -= LENGTH_BYTES;
        len = len < size ? len : size;
        n += record_decode((thole_slice){data, len}, arena, &ret[n], NULL) == THOLE_OK &&
             ret[n].kind == RECORD_TURN;
    }
    return n;
}

static void read_history(const uint8_t *data, size_t size, struct arena *arena, struct history *ret)
{
    struct record records[RECORDS_MAX], taken[RECORDS_MAX];
    struct turn_list list = {taken, 0};
    size_t const n = read_records(data, size, arena, records);
    ret->len = 0;
    for (size_t i = 0; i < n; i++)
        turn_list_take(&list, &records[i]);
    for (size_t i = 0, used; i < list.len; i += used) {
        used = turn_list_join(&list, i, arena, &ret->turns[ret->len]);
        if (used == 0)
            break;
        ret->len += ret->turns[ret->len].events_len <= EVENTS_MAX;
    }
}

static void make_right(struct history *history, struct arena *arena)
{
    uint64_t id = 1;
    for (size_t i = 0; i < history->len; i++) {
        struct turn *turn = &history->turns[i];
        struct event *events = arena_array(arena, turn->events_len, sizeof *events);
        for (size_t j = 0; j < turn->events_len && events != NULL; j++) {
            events[j] = turn->events[j];
            events[j].id = id++;
        }
        turn->events = events;
        turn->events_len = events == NULL ? 0 : turn->events_len;
        turn->number = i + 1;
        turn->instance = history->turns[0].instance;
        turn->execution = history->turns[0].execution;
    }
}

/* All that may be asked of an instance, and one more turn. */
static void use(struct instance *instance, uint64_t ids)
{
    struct arena arena;
    struct turn_out out;
    thole_slice output;
    arena_init(&arena, ARENA_MAX);
    for (uint64_t ref = 0; ref <= ids && ref < EVENTS_MAX; ref++) {
        for (int kind = EVENT_STARTED; kind <= EVENT_LAST; kind++) {
            struct event const event = {.kind = (enum event_kind)kind, .ref = ref, .try_number = 1};
            (void)instance_accepts(instance, &event);
        }
    }
    thole_status status = instance_query(instance, THOLE_STR("e0"), THOLE_STR("x"), &output, NULL);
    if (instance_ended(instance) && instance_continued(instance)) {
        struct event *events;
        size_t n;
        status = instance_carry(instance, &arena, &events, &n);
        assert(status == THOLE_OK || status == THOLE_LIMIT);
    }
    struct event const received[] = {
        {.kind = EVENT_EVENT_RECEIVED, .name = THOLE_STR("e0"), .data = THOLE_STR("x")},
        {.kind = EVENT_TERMINATE_REQUESTED, .data = THOLE_STR("why")}};
    struct turn_in const in = {.time_ms = 1, .received = received, .received_len = 2, .run = true};
    status = instance_turn(instance, &in, &out, NULL);
    assert(status != THOLE_OK || out.ended);
    arena_release(&arena);
}

static void replay(const struct history *history, thole_orchestration_fn *code, struct stack_pool *stacks)
{
    struct instance_options const options = {.code = code,
                                             .id = history->turns[0].instance,
                                             .execution = history->turns[0].execution,
                                             .memory_max = MEMORY_MAX,
                                             .payload_max = 4096,
                                             .stacks = stacks};
    uint64_t ids = 0;
    thole_error err = {.text = ""};
    struct instance *const instance = instance_create(&options);
    thole_status status = THOLE_OK;
    for (size_t i = 0; i < history->len && status == THOLE_OK; i++) {
        status = instance_replay(instance, &history->turns[i], &err);
        ids += history->turns[i].events_len;
    }
    assert(status == THOLE_OK || (err.status == status && err.text[0] != '\0'));
    if (status == THOLE_OK)
        use(instance, ids);
    instance_destroy(instance);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stack_pool *stacks = stack_pool_create(2, 4);
    struct history history;
    struct arena arena;
    arena_init(&arena, ARENA_MAX);
    read_history(data, size, &arena, &history);
    for (int right = 0; right < 2 && history.len > 0; right++) {
        replay(&history, NULL, stacks);
        replay(&history, byte_program, stacks);
        make_right(&history, &arena);
    }
    arena_release(&arena);
    stack_pool_destroy(stacks);
    return 0;
}
