/* range.h: each number of each message has a range; decoders keep to it, at the ends that proto/golden has;
 * what is sent does, too; docs/wire.md has the table. */
#include "codec.h"
#include "event.h"
#include "gateway.pb-c.h"
#include "history.pb-c.h"
#include "jscan.h"
#include "message.h"
#include "messages.pb-c.h"
#include "process.pb-c.h"
#include "proto_json.h"
#include "thole_cunit.h"
#include <stdlib.h>

enum { FILE_BYTES = 1 << 20, TYPES_MAX = 128, NAME_BYTES = 128, BYTES_MAX = 1024 };

/* ---- each number has a range ---- */

#define M(name) &thole__v1__##name##__descriptor
/* With all that are in them. */
static const ProtobufCMessageDescriptor *const roots[] = {
    M(inbox_message),    M(results),           M(query),
    M(query_answer),     M(node_heartbeat),    M(record),
    M(process_run),      M(process_return),    M(open_session),
    M(session_opened),   M(next_tasks),        M(tasks),
    M(renew_tasks),      M(tasks_renewed),     M(notice),
    M(complete_tasks),   M(tasks_completed),   M(close_session),
    M(session_closed),   M(start_instance),    M(instance_started),
    M(signal_instance),  M(end_instance),      M(accepted),
    M(query_instance),   M(query_result),      M(wait_instance),
    M(instance_outcome), M(describe_instance), M(instance_description),
    M(list_instances),   M(instance_list),     M(complete_activity)};
#undef M

struct walk {
    const ProtobufCMessageDescriptor *types[TYPES_MAX];
    size_t types_len;
    bool named[RANGE_FIELDS];
    bool bounded[RANGE_FIELDS]; /* the type has numbers beyond the range */
};

static bool is_number(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_UINT32 || field->type == PROTOBUF_C_TYPE_UINT64;
}

static void name_field(struct walk *walk, const char *message, const ProtobufCFieldDescriptor *field)
{
    enum range_field const row = range_find(message, field->name);
    uint64_t const most = field->type == PROTOBUF_C_TYPE_UINT32 ? UINT32_MAX : UINT64_MAX;
    if (row == RANGE_FIELDS)
        fprintf(stderr, "\n  range.h has no range for %s of %s\n", field->name, message);
    CU_ASSERT_NOT_EQUAL_FATAL(row, RANGE_FIELDS);
    const struct range_row *const range = range_row(range_field_row(row)->range);
    walk->named[row] = true;
    walk->bounded[row] = range->most < most;
}

static void walk_type(struct walk *walk, const ProtobufCMessageDescriptor *type)
{
    for (size_t i = 0; i < walk->types_len; i++)
        if (walk->types[i] == type)
            return;
    CU_ASSERT_FATAL(walk->types_len < TYPES_MAX);
    walk->types[walk->types_len++] = type;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *const field = &type->fields[i];
        CU_ASSERT_NOT_EQUAL(field->type, PROTOBUF_C_TYPE_INT64); /* a kind of number that has no check */
        if (field->type == PROTOBUF_C_TYPE_MESSAGE)
            walk_type(walk, field->descriptor);
        else if (is_number(field))
            name_field(walk, type->short_name, field);
    }
}

static struct walk walk_all(void)
{
    struct walk walk = {.types_len = 0};
    for (size_t i = 0; i < ARRAY_LEN(roots); i++)
        walk_type(&walk, roots[i]);
    return walk;
}

static void test_each_number(void)
{
    struct walk const walk = walk_all();
    for (unsigned i = 0; i < RANGE_FIELDS; i++) {
        const struct range_field_row *const row = range_field_row((enum range_field)i);
        if (!walk.named[i])
            fprintf(stderr, "\n  range.h has a range for %s of %s, which is no number\n", row->field,
                    row->message);
        CU_ASSERT_TRUE(walk.named[i]);
        CU_ASSERT_TRUE(range_row(row->range)->least <= range_row(row->range)->most);
    }
    CU_ASSERT_EQUAL(range_find("Start", "nothing"), RANGE_FIELDS);
}

/* ---- proto/golden/ranges.json ---- */

static char text[FILE_BYTES];

static const char *slurp(const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, THOLE_SOURCE_DIR "/%s", name);
    FILE *const file = fopen(path, "r");
    size_t const len = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
    if (file != NULL)
        (void)fclose(file);
    text[len] = '\0';
    CU_ASSERT_FATAL(len > 0 && len < sizeof text - 1);
    return text;
}

struct line {
    char name[NAME_BYTES], type[NAME_BYTES], refused[NAME_BYTES], hex[2 * BYTES_MAX + 1];
    uint8_t bytes[BYTES_MAX];
    thole_slice message, json;
};

static bool string_of(thole_slice object, const char *key, char *to, size_t cap)
{
    struct buf got;
    thole_slice value;
    buf_init(&got, cap);
    bool const read = json_find(object, key, &value) && json_text(value, &got) && got.len < cap;
    if (read)
        memcpy(to, buf_cstr(&got), got.len + 1);
    buf_release(&got);
    return read;
}

static bool read_line(thole_slice item, struct line *to)
{
    if (!string_of(item, "name", to->name, sizeof to->name) ||
        !string_of(item, "type", to->type, sizeof to->type) ||
        !string_of(item, "refused", to->refused, sizeof to->refused) ||
        !string_of(item, "hex", to->hex, sizeof to->hex) || !json_find(item, "json", &to->json))
        return false;
    size_t const len = strlen(to->hex) / 2;
    for (size_t i = 0; i < len; i++) {
        char const pair[3] = {to->hex[2 * i], to->hex[2 * i + 1], '\0'};
        to->bytes[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    to->message = (thole_slice){to->bytes, len};
    return true;
}

static const ProtobufCMessageDescriptor *root_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(roots); i++)
        if (strcmp(roots[i]->name, name) == 0)
            return roots[i];
    return NULL;
}

/* As a gateway does. */
static thole_status read_untabled(const ProtobufCMessageDescriptor *type, thole_slice bytes, thole_error *err)
{
    struct codec_scratch scratch;
    ProtobufCMessage *message = NULL;
    if (bytes.len == 0)
        return THOLE_OK;
    codec_init(&scratch);
    thole_status status = codec_unpack(type, bytes, BYTES_MAX, &scratch, "message", &message, err);
    if (status == THOLE_OK)
        status = codec_corrupt(codec_ranges_check(message, err), err);
    codec_release(&scratch);
    return status;
}

static thole_status read_message(const ProtobufCMessageDescriptor *type, thole_slice bytes, thole_error *err)
{
    struct arena arena;
    struct message message;
    struct heartbeat heartbeat;
    arena_init(&arena, 1 << 20);
    thole_status status;
    if (type == &thole__v1__inbox_message__descriptor)
        status = message_decode(bytes, &arena, &message, err);
    else if (type == &thole__v1__node_heartbeat__descriptor)
        status = heartbeat_decode(bytes, &arena, &heartbeat, err);
    else
        status = read_untabled(type, bytes, err);
    arena_release(&arena);
    return status;
}

static void check_line(const struct line *line)
{
    const ProtobufCMessageDescriptor *const type = root_of(line->type);
    struct buf packed;
    thole_error err = {.status = THOLE_OK};
    CU_ASSERT_PTR_NOT_NULL_FATAL(type);
    thole_status const status = read_message(type, line->message, &err);
    CU_ASSERT_EQUAL(status, line->refused[0] == '\0' ? THOLE_OK : THOLE_CORRUPT);
    CHECK_STR(line->name, err.text, line->refused);
    buf_init(&packed, BYTES_MAX);
    CU_ASSERT_EQUAL(proto_json_pack(type, line->json, &packed, NULL), THOLE_OK);
    CU_ASSERT_TRUE(thole_slice_equal(buf_bytes(&packed), line->message));
    buf_release(&packed);
}

/* The end that the line is about: its field, and a bit for least, most or beyond. */
static void mark_line(const char *name, unsigned char marks[RANGE_FIELDS])
{
    static const char *const ends[] = {"least", "most", "beyond"};
    char message[NAME_BYTES], field[NAME_BYTES], end[NAME_BYTES];
    CU_ASSERT_EQUAL_FATAL(sscanf(name, "%127[^.].%127[^,], %127s", message, field, end), 3);
    enum range_field const row = range_find(message, field);
    CU_ASSERT_NOT_EQUAL_FATAL(row, RANGE_FIELDS);
    for (unsigned i = 0; i < ARRAY_LEN(ends); i++)
        if (strcmp(end, ends[i]) == 0)
            marks[row] |= (unsigned char)(1u << i);
}

static bool is_of_process(const char *message)
{
    return strncmp(message, "Process", strlen("Process")) == 0; /* no part of the contract */
}

static void test_golden_ends(void)
{
    static struct line line;
    unsigned char marks[RANGE_FIELDS] = {0};
    struct walk const walk = walk_all();
    thole_slice const all = thole_slice_from(slurp("proto/golden/ranges.json"));
    thole_slice item;
    for (size_t at = 0; json_item(all, &at, &item);) {
        CU_ASSERT_TRUE_FATAL(read_line(item, &line));
        check_line(&line);
        mark_line(line.name, marks);
    }
    for (unsigned i = 0; i < RANGE_FIELDS; i++) {
        const struct range_field_row *const row = range_field_row((enum range_field)i);
        bool const whole = !walk.bounded[i] || is_of_process(row->message) || marks[i] == 7;
        if (!whole)
            fprintf(stderr, "\n  ranges.json lacks an end of %s.%s\n", row->message, row->field);
        CU_ASSERT_TRUE(whole);
    }
}

/* ---- sent messages ---- */

static void test_sent(void)
{
    struct message start = {.kind = MESSAGE_START,
                            .instance = THOLE_STR("i"),
                            .orchestration = THOLE_STR("o"),
                            .version = (uint32_t)RANGE_INT4 + 1};
    struct buf bytes;
    thole_error err = {.status = THOLE_OK};
    buf_init(&bytes, BYTES_MAX);
    CU_ASSERT_EQUAL(message_encode_said(&start, &bytes, &err), THOLE_INVALID);
    CHECK_STR("sent", err.text, "field version of Start: 2147483648 is more than 2147483647");
    message_into_range(&start);
    CU_ASSERT_EQUAL(start.version, RANGE_INT4);
    CU_ASSERT_EQUAL(message_encode_said(&start, &bytes, &err), THOLE_OK);
    buf_clear(&bytes);
    struct message result = {.kind = MESSAGE_ACTIVITY_RESULT,
                             .instance = THOLE_STR("i"),
                             .execution = 1,
                             .task = 1,
                             .status = UINT32_MAX, /* a handler returned -1 */
                             .source.place = {.started_ms = UINT64_MAX, .ended_ms = UINT64_MAX}};
    CU_ASSERT_EQUAL(message_encode(&result, &bytes), THOLE_INVALID);
    message_into_range(&result);
    CU_ASSERT_EQUAL(message_encode(&result, &bytes), THOLE_OK);
    CU_ASSERT_TRUE(result.status == UINT32_MAX && result.source.place.ended_ms == RANGE_EXACT);
    buf_release(&bytes);
    CU_ASSERT_EQUAL(range_sum(UINT64_MAX, 1), UINT64_MAX);
    CU_ASSERT_EQUAL(range_sum(1, UINT64_MAX - 1), UINT64_MAX);
    CU_ASSERT_EQUAL(range_sum(1, 2), 3);
}

/* ---- records ---- */

static void test_records(void)
{
    struct event event = {.kind = EVENT_TIMER_FIRED, .id = RANGE_EXACT, .ref = RANGE_EXACT};
    struct record const most = {.kind = RECORD_TURN,
                                .turn = {.execution = RANGE_EXACT,
                                         .number = RANGE_EXACT,
                                         .time_ms = RANGE_EXACT,
                                         .events = &event,
                                         .events_len = 1}};
    struct record records[] = {most, most, most, {.kind = RECORD_DELETED}, {.kind = RECORD_DELETED}};
    uint64_t *const numbers[] = {&records[0].turn.execution, &records[1].turn.number,
                                 &records[2].turn.time_ms, &records[3].deletion.execution,
                                 &records[4].deletion.time_ms};
    CU_ASSERT_TRUE(record_has_rows(&most));
    for (size_t i = 0; i < ARRAY_LEN(records); i++) {
        *numbers[i] = RANGE_EXACT;
        CU_ASSERT_TRUE(record_has_rows(&records[i]));
        *numbers[i] = RANGE_EXACT + 1;
        CU_ASSERT_FALSE(record_has_rows(&records[i]));
    }
    event.id++;
    CU_ASSERT_FALSE(record_has_rows(&most));
    event.id--;
    event.ref++;
    CU_ASSERT_FALSE(record_has_rows(&most));
}

/* ---- docs/wire.md ---- */

static void put_row(const struct walk *walk, enum range range, struct buf *to)
{
    const struct range_row *const row = range_row(range);
    const char *before = "";
    struct buf fields;
    buf_init(&fields, 4096);
    for (unsigned i = 0; i < RANGE_FIELDS; i++) {
        const struct range_field_row *const field = range_field_row((enum range_field)i);
        if (field->range != range || !walk->bounded[i] || is_of_process(field->message))
            continue;
        buf_printf(&fields, "%s`%s.%s`", before, field->message, field->field);
        before = ", ";
    }
    if (fields.len > 0)
        buf_printf(to, "| %llu to %llu | %s | %s |\n", (unsigned long long)row->least,
                   (unsigned long long)row->most, buf_cstr(&fields), row->reason);
    buf_release(&fields);
}

static void test_page(void)
{
    struct walk const walk = walk_all();
    struct buf table;
    buf_init(&table, 1 << 16);
    buf_printf(&table, "<!-- table: ranges -->\n| numbers | fields | because of |\n|---|---|---|\n");
    for (int range = 0; range <= RANGE_RECORDED; range++)
        put_row(&walk, (enum range)range, &table);
    buf_printf(&table, "\n");
    bool const there = strstr(slurp("docs/wire.md"), buf_cstr(&table)) != NULL;
    if (!there)
        fprintf(stderr, "\n  docs/wire.md should have\n%s", buf_cstr(&table));
    CU_ASSERT_TRUE(there);
    buf_release(&table);
}

static const struct thole_test tests[] = {{"each number", test_each_number},
                                          {"golden ends", test_golden_ends},
                                          {"sent", test_sent},
                                          {"records", test_records},
                                          {"page", test_page}};
THOLE_TEST_MAIN("ranges", tests)
