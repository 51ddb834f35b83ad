/* Golden bytes and their texts. */
#include "golden.h"
#include "payload_hash.h"
#include "record_references.h"
#include "result_list.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- files ---- */

const char *golden_path(int version, struct golden golden, const char *ending)
{
    static char path[512];
    (void)snprintf(path, sizeof path, THOLE_SOURCE_DIR "/tests/golden/v%d/%s/%s%s", version, golden.group,
                   golden.name, ending);
    return path;
}

bool golden_read(const char *path, struct buf *to)
{
    FILE *file = fopen(path, "rb");
    uint8_t some[4096];
    buf_clear(to);
    if (file == NULL)
        return false;
    for (size_t n; (n = fread(some, 1, sizeof some, file)) > 0;)
        buf_append(to, some, n);
    bool const good = ferror(file) == 0 && buf_status(to) == THOLE_OK;
    (void)fclose(file);
    return good;
}

void golden_write(const char *path, thole_slice bytes)
{
    FILE *file = fopen(path, "wbx"); /* never over one that exists */
    bool const good = file != NULL && fwrite(bytes.ptr, 1, bytes.len, file) == bytes.len && fclose(file) == 0;
    if (!good) {
        perror(path);
        exit(1);
    }
}

/* ---- samples ---- */

enum { TURN_EVENTS = 36 }; /* of the samples: as many as there were when that turn's bytes were written */

struct sampling {
    golden_fn *each;
    void *arg;
    struct buf bytes, text;
};

static void sample(struct sampling *s, const char *group, const char *name)
{
    struct golden const golden = {group, name};
    buf_clear(&s->text);
    golden_show(golden, buf_bytes(&s->bytes), &s->text);
    s->each(s->arg, golden, buf_bytes(&s->bytes), buf_bytes(&s->text));
}

static void sample_record(struct sampling *s, const char *group, const char *name,
                          const struct record *record)
{
    buf_clear(&s->bytes);
    if (record_encode(record, &s->bytes) != THOLE_OK)
        abort();
    sample(s, group, name);
}

static void sample_every_event(struct sampling *s)
{
    for (size_t i = 0; i < sample_events_len; i++) {
        struct record const record = {.kind = RECORD_TURN,
                                      .epoch = 1,
                                      .n = 1,
                                      .turn = {.instance = THOLE_STR("i"),
                                               .execution = 1,
                                               .number = 1,
                                               .events = &sample_events[i],
                                               .events_len = 1}};
        sample_record(s, "events", event_kind_name(sample_events[i].kind), &record);
    }
}

static void sample_results(struct sampling *s)
{
    struct message results[] = {sample_messages[MESSAGE_ACTIVITY_RESULT - MESSAGE_START],
                                {.kind = MESSAGE_ACTIVITY_RESULT,
                                 .instance = THOLE_STR("order-18"),
                                 .execution = 1,
                                 .task = 2,
                                 .data = THOLE_STR("99")}};
    struct buf list;
    buf_init(&list, GOLDEN_BYTES_MAX);
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        buf_clear(&s->bytes);
        if (message_encode(&results[i], &s->bytes) != THOLE_OK)
            abort();
        result_list_add(&list, buf_bytes(&s->bytes));
    }
    buf_clear(&s->bytes);
    result_list_write(buf_bytes(&list), &s->bytes);
    sample(s, "messages", "results");
    buf_release(&list);
}

static void sample_heartbeat(struct sampling *s, const char *name, const struct heartbeat *heartbeat)
{
    buf_clear(&s->bytes);
    if (heartbeat_encode(heartbeat, &s->bytes) != THOLE_OK)
        abort();
    sample(s, "messages", name);
}

static void sample_of_parent(struct sampling *s, const char *name, enum message_kind kind)
{
    struct message const message = {.kind = kind,
                                    .instance = THOLE_STR("shop:1:18"),
                                    .data = THOLE_STR("ended"),
                                    .request_id = THOLE_STR("<1.20.shop"),
                                    .parent = {THOLE_STR("shop"), 1, 18}};
    buf_clear(&s->bytes);
    if (message_encode(&message, &s->bytes) != THOLE_OK)
        abort();
    sample(s, "messages", name);
}

static void sample_every_message(struct sampling *s)
{
    for (size_t i = 0; i < sample_messages_len; i++) {
        buf_clear(&s->bytes);
        if (message_encode(&sample_messages[i], &s->bytes) != THOLE_OK)
            abort();
        sample(s, "messages", message_kind_text(sample_messages[i].kind));
    }
    sample_of_parent(s, "cancel_of_a_parent", MESSAGE_CANCEL);
    sample_of_parent(s, "terminate_of_a_parent", MESSAGE_TERMINATE);
    thole_slice const names[] = {THOLE_STR("checkout"), THOLE_STR("refund@2")};
    struct partition_needs const needs[] = {{0, names, 1}, {63, names, 2}, {7, NULL, 0}};
    struct heartbeat heartbeat = {.node = THOLE_STR("n-1"),
                                  .started_ms = 1700000000000,
                                  .orchestrations = names,
                                  .orchestrations_len = 2,
                                  .needs = needs,
                                  .needs_len = 3};
    sample_heartbeat(s, "heartbeat", &heartbeat);
    heartbeat.takes_results = true;
    sample_heartbeat(s, "heartbeat_results", &heartbeat);
    heartbeat.reads_ranges = true;
    sample_heartbeat(s, "heartbeat_ranges", &heartbeat);
    heartbeat.reads_references = true;
    sample_heartbeat(s, "heartbeat_references", &heartbeat);
    heartbeat.reads_lists = true;
    sample_heartbeat(s, "heartbeat_lists", &heartbeat);
    sample_results(s);
}

static void sample_deletion(struct sampling *s)
{
    struct event again = sample_events[0];
    again.before = 7;
    struct record const deleted = {.kind = RECORD_DELETED,
                                   .epoch = 4,
                                   .n = 301,
                                   .committed = 300,
                                   .published = 7001,
                                   .position = {.floor = 12},
                                   .deletion = {.instance = THOLE_STR("order 1/\xe2\x82\xac"),
                                                .execution = 7,
                                                .time_ms = 1700000000000,
                                                .orchestration = THOLE_STR("checkout"),
                                                .reason = THOLE_STR("the customer asked for it"),
                                                .request_id = THOLE_STR("r-6"),
                                                .started_by = THOLE_STR("r-1"),
                                                .parent = {THOLE_STR("shop"), 4, 5}}};
    struct record const begun = {.kind = RECORD_TURN,
                                 .epoch = 4,
                                 .n = 302,
                                 .turn = {.instance = THOLE_STR("order 1/\xe2\x82\xac"),
                                          .execution = 8,
                                          .number = 1,
                                          .ran = true,
                                          .events = &again,
                                          .events_len = 1}};
    sample_record(s, "records", "deleted", &deleted);
    sample_record(s, "records", "begun_again", &begun);
    struct record traced = begun;
    again.traceparent = traced.turn.trace.parent =
        THOLE_STR("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    again.tracestate = traced.turn.trace.list = THOLE_STR("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
    sample_record(s, "records", "begun_traced", &traced);
    traced.turn.orchestration = THOLE_STR("checkout");
    sample_record(s, "records", "begun_told", &traced);
    struct record said = begun, asked = deleted;
    said.turn.events = sample_events_said;
    said.turn.events_len = 2;
    asked.deletion.actor = sample_events_said[0].source->actor;
    sample_record(s, "records", "turn_said", &said);
    sample_record(s, "records", "deleted_said", &asked);
}

/* The first two have the payload of Started, the third one that of Completed; the salts are of the last two.
 */
static void sample_references(struct sampling *s)
{
    static uint8_t input[REFERENCE_BYTES_MIN], output[REFERENCE_BYTES_MIN];
    static const struct salt_key key = {.bytes = {1, 2, 3}};
    static const struct salt_source salts = {&key, 3};
    memset(input, 'i', sizeof input);
    memset(output, 'o', sizeof output);
    thole_slice const in = {input, sizeof input}, out = {output, sizeof output};
    struct event const events[] = {
        {.kind = EVENT_STARTED, .id = 1, .code = 1, .name = THOLE_STR("checkout"), .data = in},
        {.kind = EVENT_ACTIVITY_SCHEDULED,
         .id = 2,
         .name = THOLE_STR("a"),
         .queue = THOLE_STR("q"),
         .data = in},
        {.kind = EVENT_CHILD_SCHEDULED,
         .id = 3,
         .name = THOLE_STR("c"),
         .target = THOLE_STR("c-1"),
         .data = in},
        {.kind = EVENT_SIDE_EFFECT_RECORDED, .id = 4, .data = out},
        {.kind = EVENT_COMPLETED, .id = 5, .data = out}};
    struct record const record = {.kind = RECORD_TURN,
                                  .epoch = 4,
                                  .n = 300,
                                  .committed = 299,
                                  .salts = &salts,
                                  .refers = true,
                                  .turn = {.instance = THOLE_STR("order-17"),
                                           .execution = 1,
                                           .number = 1,
                                           .time_ms = 1700000000000,
                                           .ran = true,
                                           .events = events,
                                           .events_len = 5}};
    sample_record(s, "records", "turn_references", &record);
}

/* Dispensable records, and those that make an EpochOpened dispensable. */
static void sample_dispensable(struct sampling *s)
{
    static const uint64_t sequences[] = {7, 8, 300};
    static const uint8_t hashes[3 * FOLDED_HASH_BYTES] = {1, 2, 255};
    struct record const opened = {.kind = RECORD_EPOCH_OPENED,
                                  .epoch = 4,
                                  .node = THOLE_STR("n-1"),
                                  .time_ms = 1700000000000,
                                  .previous_epoch = 3,
                                  .previous_n = 77,
                                  .counted = 1207};
    struct record const lists = {.kind = RECORD_POSITION,
                                 .epoch = 4,
                                 .n = 1,
                                 .committed = 1,
                                 .position = {.floor = 10},
                                 .folded = {sequences, 3, {hashes, sizeof hashes}, 300, 400, 1700000000000}};
    sample_record(s, "records", "epoch_opened_counted", &opened);
    sample_record(s, "records", "position_lists", &lists);
}

static void sample_every_record(struct sampling *s)
{
    static const struct sequence_range above[] = {{12, 12}, {15, 15}, {1000000, 1000000}};
    struct position const position = {.floor = 10, .ranges = above, .ranges_len = 3, .listed = true};
    struct record const opened = {.kind = RECORD_EPOCH_OPENED,
                                  .epoch = 4,
                                  .position = position,
                                  .node = THOLE_STR("n-1"),
                                  .time_ms = 1700000000000,
                                  .previous_epoch = 3,
                                  .previous_n = 77};
    struct record const moved = {
        .kind = RECORD_POSITION, .epoch = 4, .n = 1, .committed = 1, .position = position};
    struct record turn = {.kind = RECORD_TURN,
                          .epoch = 4,
                          .n = 300,
                          .committed = 299,
                          .position = {.floor = UINT64_MAX},
                          .turn = {.instance = THOLE_STR("order 1/\xe2\x82\xac"),
                                   .execution = 2,
                                   .number = 9,
                                   .time_ms = 1700000000000,
                                   .ran = true,
                                   .events = sample_events,
                                   .events_len = TURN_EVENTS}};
    sample_record(s, "records", "epoch_opened", &opened);
    sample_record(s, "records", "position", &moved);
    static const struct sequence_range taken[] = {{12, 12}, {15, 200}, {1000000, 2000000}};
    struct record ranges = moved;
    ranges.position = (struct position){.floor = 10, .ranges = taken, .ranges_len = 3};
    sample_record(s, "records", "position_ranges", &ranges);
    sample_dispensable(s);
    sample_record(s, "records", "turn", &turn);
    turn.published = 7001;
    sample_record(s, "records", "turn_published", &turn);
    turn.published = 0;
    turn.turn.more = true;
    turn.turn.events_len = 0;
    sample_record(s, "records", "part", &turn);
    static const char *const blocked[] = {"no_code", "nondeterminism", "damaged",    "too_new",
                                          "limit",   "paused",         "not_started"};
    turn.turn.more = turn.turn.ran = false;
    turn.turn.blocked_text = THOLE_STR("why");
    for (size_t i = 0; i < sizeof blocked / sizeof blocked[0]; i++) {
        turn.turn.blocked = (enum blocked_kind)(i + 1);
        turn.turn.execution = turn.turn.blocked == BLOCKED_NOT_STARTED ? 0 : 2;
        sample_record(s, "records", blocked[i], &turn);
    }
    sample_deletion(s);
    sample_references(s);
}

void golden_samples(golden_fn *each, void *arg)
{
    struct sampling s = {.each = each, .arg = arg};
    buf_init(&s.bytes, GOLDEN_BYTES_MAX);
    buf_init(&s.text, GOLDEN_BYTES_MAX);
    sample_every_event(&s);
    sample_every_message(&s);
    sample_every_record(&s);
    buf_release(&s.bytes);
    buf_release(&s.text);
}

/* ---- texts ---- */

static thole_status show_results(thole_slice bytes, struct arena *arena, struct buf *to, thole_error *reterr)
{
    struct result_list list;
    struct result_item item;
    struct message message;
    size_t len;
    THOLE_TRY(result_list_read(bytes, &list, &len, reterr));
    while (result_list_next(&list, &item)) {
        THOLE_TRY(message_decode(item.bytes, arena, &message, reterr));
        show_message(&message, to);
    }
    return THOLE_OK;
}

static thole_status show_bytes(struct golden golden, thole_slice bytes, struct arena *arena, struct buf *to,
                               thole_error *reterr)
{
    struct record records[GOLDEN_RECORDS_MAX];
    struct heartbeat heartbeat;
    struct message message;
    if (strcmp(golden.group, "histories") == 0) {
        size_t const n = golden_records(bytes, arena, records, reterr);
        for (size_t i = 0; i < n; i++)
            show_record(&records[i], to);
        return n == 0 ? THOLE_CORRUPT : THOLE_OK;
    }
    if (strcmp(golden.name, "results") == 0)
        return show_results(bytes, arena, to, reterr);
    if (strncmp(golden.name, "heartbeat", strlen("heartbeat")) == 0) {
        THOLE_TRY(heartbeat_decode(bytes, arena, &heartbeat, reterr));
        show_heartbeat(&heartbeat, to);
        return THOLE_OK;
    }
    if (strcmp(golden.group, "messages") == 0) {
        THOLE_TRY(message_decode(bytes, arena, &message, reterr));
        show_message(&message, to);
        return THOLE_OK;
    }
    THOLE_TRY(record_decode(bytes, arena, &records[0], reterr));
    show_record(&records[0], to);
    return THOLE_OK;
}

void golden_show(struct golden golden, thole_slice bytes, struct buf *to)
{
    struct arena arena;
    thole_error err = {.text = ""};
    arena_init(&arena, 64 * 1024 * 1024);
    thole_status const status = show_bytes(golden, bytes, &arena, to, &err);
    if (status != THOLE_OK)
        buf_printf(to, "%s: %s\n", thole_status_name(status), err.text);
    arena_release(&arena);
}
