/* proto/golden: each line is read, written again byte for byte, and agrees with its JSON; together they have
 * every message and every field of the contract. */
#include "codec.h"
#include "gateway.pb-c.h"
#include "history.pb-c.h"
#include "jscan.h"
#include "json.h"
#include "messages.pb-c.h"
#include "proto_json.h"
#include "thole_cunit.h"
#include <openssl/evp.h>
#include <stdlib.h>

enum { FILE_BYTES = 1 << 20, BYTES_MAX = 16384, FIELDS_MAX = 64, NAME_BYTES = 64 };

#define M(name) &thole__v1__##name##__descriptor
static const ProtobufCMessageDescriptor *const messages[] = {M(inbox_message),
                                                             M(start),
                                                             M(parent),
                                                             M(activity_result),
                                                             M(release_activity),
                                                             M(retry_instance),
                                                             M(cancel_instance),
                                                             M(raise_event),
                                                             M(child_result),
                                                             M(terminate_instance),
                                                             M(pause_instance),
                                                             M(resume_instance),
                                                             M(prune_instance),
                                                             M(delete_instance),
                                                             M(query),
                                                             M(query_answer),
                                                             M(node_heartbeat),
                                                             M(partition_needs),
                                                             M(sender),
                                                             M(results),
                                                             NULL};
static const ProtobufCMessageDescriptor *const gateway[] = {M(open_session),
                                                            M(session_opened),
                                                            M(next_tasks),
                                                            M(tasks),
                                                            M(task),
                                                            M(renew_tasks),
                                                            M(running_task),
                                                            M(tasks_renewed),
                                                            M(notice),
                                                            M(complete_tasks),
                                                            M(outcome),
                                                            M(task_failure),
                                                            M(tasks_completed),
                                                            M(outcome_result),
                                                            M(close_session),
                                                            M(session_closed),
                                                            M(start_instance),
                                                            M(instance_started),
                                                            M(signal_instance),
                                                            M(end_instance),
                                                            M(accepted),
                                                            M(query_instance),
                                                            M(query_result),
                                                            M(wait_instance),
                                                            M(instance_outcome),
                                                            M(describe_instance),
                                                            M(instance_description),
                                                            M(instance_info),
                                                            M(hindrance),
                                                            M(list_instances),
                                                            M(instance_list),
                                                            M(complete_activity),
                                                            NULL};
static const ProtobufCMessageDescriptor *const history[] = {M(record),
                                                            M(position),
                                                            M(epoch_opened),
                                                            M(position_moved),
                                                            M(folded),
                                                            M(deleted),
                                                            M(turn),
                                                            M(blocked),
                                                            M(event),
                                                            M(started),
                                                            M(origin),
                                                            M(activity_scheduled),
                                                            M(retry),
                                                            M(activity_completed),
                                                            M(activity_failed),
                                                            M(activity_cancelled),
                                                            M(activity_try_failed),
                                                            M(activity_try_started),
                                                            M(activity_quarantined),
                                                            M(timer_created),
                                                            M(timer_fired),
                                                            M(timer_cancelled),
                                                            M(cancel_requested),
                                                            M(completed),
                                                            M(failed),
                                                            M(cancelled),
                                                            M(event_received),
                                                            M(event_awaited),
                                                            M(event_await_cancelled),
                                                            M(child_scheduled),
                                                            M(child_completed),
                                                            M(child_failed),
                                                            M(child_cancelled),
                                                            M(detached_started),
                                                            M(event_sent),
                                                            M(event_emitted),
                                                            M(side_effect_recorded),
                                                            M(custom_status_set),
                                                            M(state_set),
                                                            M(patched),
                                                            M(continued_as_new),
                                                            M(terminate_requested),
                                                            M(terminated),
                                                            M(paused),
                                                            M(resumed),
                                                            M(state_carried),
                                                            M(origins_carried),
                                                            M(version_chosen),
                                                            M(history_pruned),
                                                            M(discarded),
                                                            M(actor),
                                                            M(run),
                                                            M(payload),
                                                            NULL};
#undef M

static const struct contract {
    const char *name;
    const ProtobufCMessageDescriptor *const *types;
    bool json; /* a gateway speaks it, too: proto_json.h */
} files[] = {{"messages", messages, false}, {"gateway", gateway, true}, {"history", history, false}};

static char text[FILE_BYTES]; /* of the file that is read */

static const char *slurp(const char *folder, const char *name, const char *ending)
{
    char path[256];
    (void)snprintf(path, sizeof path, THOLE_SOURCE_DIR "/%s/%s.%s", folder, name, ending);
    FILE *const file = fopen(path, "r");
    size_t const len = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
    if (file != NULL)
        (void)fclose(file);
    text[len] = '\0';
    CU_ASSERT_FATAL(len > 0 && len < sizeof text - 1);
    return text;
}

/* ---- coverage of a message by the lines ---- */

enum { SEEN_SET = 1, SEEN_EDGE = 2 };
struct seen {
    const ProtobufCMessageDescriptor *type;
    bool empty;
    unsigned char fields[FIELDS_MAX];
};
static struct seen seen[128];

static struct seen *seen_of(const ProtobufCMessageDescriptor *type)
{
    for (size_t i = 0; i < ARRAY_LEN(seen); i++) {
        if (seen[i].type == NULL)
            seen[i].type = type;
        if (seen[i].type == type)
            return &seen[i];
    }
    CU_FAIL_FATAL("more messages than there is room for");
    return NULL;
}

static const void *member(const ProtobufCMessage *message, unsigned offset)
{
    return (const char *)message + offset;
}

static bool beyond_ascii(const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (((const uint8_t *)bytes)[i] >= 0x80)
            return true;
    return false;
}

/* Whether a value is not its type's default, and whether it is one that readers stumble over. */
static unsigned value_marks(const ProtobufCFieldDescriptor *field, const void *value)
{
    const ProtobufCBinaryData *const bytes = value;
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL: return *(const protobuf_c_boolean *)value ? SEEN_SET | SEEN_EDGE : 0;
    case PROTOBUF_C_TYPE_UINT32:
        return *(const uint32_t *)value == UINT32_MAX ? SEEN_SET | SEEN_EDGE : *(const uint32_t *)value != 0;
    case PROTOBUF_C_TYPE_UINT64:
        return *(const uint64_t *)value == UINT64_MAX ? SEEN_SET | SEEN_EDGE : *(const uint64_t *)value != 0;
    case PROTOBUF_C_TYPE_STRING: {
        const char *const string = *(char *const *)value;
        return string[0] == '\0' ? 0 : beyond_ascii(string, strlen(string)) ? SEEN_SET | SEEN_EDGE : SEEN_SET;
    }
    case PROTOBUF_C_TYPE_BYTES:
        return bytes->len == 0 ? 0 : beyond_ascii(bytes->data, bytes->len) ? SEEN_SET | SEEN_EDGE : SEEN_SET;
    case PROTOBUF_C_TYPE_MESSAGE: return SEEN_SET | SEEN_EDGE;
    default: break;
    }
    CU_FAIL_FATAL("a kind of field that no message has");
    return 0;
}

static size_t value_size(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_UINT64: return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_UINT32: return sizeof(uint32_t);
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    default: return sizeof(void *); /* texts and messages; there is no list of bools */
    }
}

/* The values of a field, in a list or alone: 0 when it is absent, or its default. */
static size_t values(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field, const char **ret)
{
    *ret = member(message, field->offset);
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        *ret = *(char *const *)member(message, field->offset);
        return *(const size_t *)member(message, field->quantifier_offset);
    }
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0)
        return *(const uint32_t *)member(message, field->quantifier_offset) == field->id;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return *(ProtobufCMessage *const *)(const void *)*ret != NULL;
    return value_marks(field, *ret) != 0;
}

static void mark(const ProtobufCMessage *message)
{
    struct seen *const to = seen_of(message->descriptor);
    CU_ASSERT_FATAL(message->descriptor->n_fields <= FIELDS_MAX);
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *const field = &message->descriptor->fields[i];
        const char *value;
        for (size_t n = values(message, field, &value); n > 0; n--, value += value_size(field)) {
            to->fields[i] |= (unsigned char)value_marks(field, value);
            if (field->type == PROTOBUF_C_TYPE_MESSAGE)
                mark(*(ProtobufCMessage *const *)(const void *)value);
        }
    }
}

/* ---- JSON again: written here once more, so that the product's writer has a witness ---- */

static void say(struct json *json, const ProtobufCMessage *message);

static void say_value(struct json *json, const ProtobufCFieldDescriptor *field, const void *value)
{
    const ProtobufCBinaryData *const bytes = value;
    unsigned char base64[BYTES_MAX];
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL: json_bool(json, *(const protobuf_c_boolean *)value); break;
    case PROTOBUF_C_TYPE_UINT32: json_number(json, *(const uint32_t *)value); break;
    case PROTOBUF_C_TYPE_UINT64:
        (void)snprintf((char *)base64, sizeof base64, "%llu", *(const unsigned long long *)value);
        json_string(json, thole_slice_from((const char *)base64));
        break;
    case PROTOBUF_C_TYPE_STRING: json_string(json, thole_slice_from(*(char *const *)value)); break;
    case PROTOBUF_C_TYPE_BYTES:
        CU_ASSERT_FATAL(bytes->len < sizeof base64 / 2);
        (void)EVP_EncodeBlock(base64, bytes->data, (int)bytes->len);
        json_string(json, thole_slice_from((const char *)base64));
        break;
    default: say(json, *(ProtobufCMessage *const *)value);
    }
}

static void say_key(struct json *json, const char *name)
{
    char key[NAME_BYTES];
    size_t len = 0;
    for (; *name != '\0' && len < sizeof key - 1; name++)
        if (*name == '_')
            key[len++] = (char)(*++name - 'a' + 'A');
        else
            key[len++] = *name;
    key[len] = '\0';
    json_key(json, key);
}

static void say(struct json *json, const ProtobufCMessage *message)
{
    json_object(json);
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *const field = &message->descriptor->fields[i];
        bool const list = field->label == PROTOBUF_C_LABEL_REPEATED;
        const char *value;
        size_t n = values(message, field, &value);
        if (n == 0)
            continue;
        say_key(json, field->name);
        if (list)
            json_array(json);
        for (; n > 0; n--, value += value_size(field))
            say_value(json, field, value);
        if (list)
            json_end(json);
    }
    json_end(json);
}

/* ---- a line ---- */

struct line {
    char name[NAME_BYTES * 2], type[NAME_BYTES];
    thole_slice json;
    uint8_t bytes[BYTES_MAX];
    size_t len;
};

static bool string_of(thole_slice object, const char *key, char *to, size_t cap)
{
    struct buf got;
    thole_slice value;
    buf_init(&got, 2 * BYTES_MAX + 1);
    bool const read = json_find(object, key, &value) && json_text(value, &got) && got.len < cap;
    if (read)
        memcpy(to, buf_cstr(&got), got.len + 1);
    buf_release(&got);
    return read;
}

static bool unhex(const char *hex, struct line *to)
{
    for (to->len = 0; hex[0] != '\0'; hex += 2) {
        char const pair[3] = {hex[0], hex[1], '\0'};
        if (strspn(pair, "0123456789abcdef") != 2 || to->len == sizeof to->bytes)
            return false;
        to->bytes[to->len++] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return true;
}

static bool read_line(thole_slice item, struct line *to)
{
    static char hex[2 * BYTES_MAX + 1];
    return string_of(item, "name", to->name, sizeof to->name) &&
           string_of(item, "type", to->type, sizeof to->type) && string_of(item, "hex", hex, sizeof hex) &&
           json_find(item, "json", &to->json) && unhex(hex, to);
}

static const ProtobufCMessageDescriptor *type_of(const struct contract *file, const char *name)
{
    for (size_t i = 0; file->types[i] != NULL; i++)
        if (strcmp(file->types[i]->name, name) == 0)
            return file->types[i];
    return NULL;
}

/* A line whose bytes are wrong is told those that its message has: so a new one is written. */
static void check_bytes(const struct line *line, const ProtobufCMessage *message)
{
    struct buf packed;
    buf_init(&packed, BYTES_MAX);
    CU_ASSERT_EQUAL(codec_pack(message, &packed), THOLE_OK);
    bool const same = thole_slice_equal(buf_bytes(&packed), (thole_slice){line->bytes, line->len});
    CU_ASSERT_TRUE(same);
    if (!same) {
        fprintf(stderr, "\n  [%s] the bytes of this message are ", line->name);
        for (size_t i = 0; i < packed.len; i++)
            fprintf(stderr, "%02x", packed.ptr[i]);
        fprintf(stderr, "\n");
    }
    buf_release(&packed);
}

static void check_said(const struct line *line, struct buf *said)
{
    char want[BYTES_MAX];
    (void)snprintf(want, sizeof want, "%.*s", THOLE_FMT(line->json));
    CHECK_STR(line->name, buf_cstr(said), want);
    buf_release(said);
}

static void check_json(const struct line *line, const ProtobufCMessage *message)
{
    struct json json;
    struct buf said;
    buf_init(&said, BYTES_MAX);
    json_to_buf(&json, &said);
    say(&json, message);
    check_said(line, &said);
}

/* A gateway's own mapping: there, and back. */
static void check_mapping(const struct line *line, const ProtobufCMessage *message)
{
    struct codec_scratch scratch;
    struct buf said;
    thole_error err = {0};
    ProtobufCMessage *back = NULL;
    buf_init(&said, BYTES_MAX);
    CU_ASSERT_EQUAL(proto_json_encode(message, &said), THOLE_OK);
    check_said(line, &said);
    codec_init(&scratch);
    CU_ASSERT_EQUAL(proto_json_decode(message->descriptor, line->json, &scratch, &back, &err), THOLE_OK);
    if (back != NULL)
        check_bytes(line, back);
    else
        fprintf(stderr, "\n  [%s] the JSON is not read: %s\n", line->name, err.text);
    codec_release(&scratch);
}

static void check_line(const struct contract *file, const struct line *line)
{
    const ProtobufCMessageDescriptor *const type = type_of(file, line->type);
    if (type == NULL)
        fprintf(stderr, "\n  [%s] %s.proto has no message %s\n", line->name, file->name, line->type);
    CU_ASSERT_PTR_NOT_NULL(type);
    if (type == NULL)
        return;
    ProtobufCMessage *const message = protobuf_c_message_unpack(type, NULL, line->len, line->bytes);
    if (message == NULL)
        fprintf(stderr, "\n  [%s] the bytes are no %s\n", line->name, line->type);
    CU_ASSERT_PTR_NOT_NULL(message);
    if (message == NULL)
        return;
    mark(message);
    seen_of(type)->empty |= line->len == 0;
    check_bytes(line, message);
    check_json(line, message);
    if (file->json)
        check_mapping(line, message);
    protobuf_c_message_free_unpacked(message, NULL);
}

/* Names are a file's own; each line is one of the file's lines, so that grep finds it. */
static void check_file(const struct contract *file)
{
    static struct line line;
    size_t at = 0, lines = 0;
    thole_slice item;
    char key[sizeof line.name + 16];
    const char *const all = slurp("proto/golden", file->name, "json");
    for (; json_item(thole_slice_from(all), &at, &item); lines++) {
        bool const read = read_line(item, &line);
        if (!read)
            fprintf(stderr, "\n  %s.json, message %zu, is not read\n", file->name, lines + 1);
        CU_ASSERT_TRUE(read);
        if (!read)
            continue;
        (void)snprintf(key, sizeof key, "\n{\"name\":\"%s\",", line.name);
        CU_ASSERT_PTR_EQUAL(strstr(all, key), (const char *)item.ptr - 1);
        check_line(file, &line);
    }
    CU_ASSERT_STRING_EQUAL(all + strlen(all) - strlen("}\n]\n"), "}\n]\n");
    for (const char *next = all; (next = strstr(next, "\n{")) != NULL; next++)
        lines--;
    CU_ASSERT_EQUAL(lines, 0); /* none follows a text that is no JSON */
}

static void test_lines(void)
{
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        check_file(&files[i]);
}

/* ---- together ---- */

static void missing(const struct contract *file, const char *type, const char *what, const char *field)
{
    fprintf(stderr, "\n  proto/golden/%s.json has no %s with %s%s\n", file->name, type, what, field);
    CU_FAIL("a golden message is missing");
}

static void check_covered(const struct contract *file, const ProtobufCMessageDescriptor *type)
{
    const struct seen *const of = seen_of(type);
    if (!of->empty)
        missing(file, type->name, "nothing in it", "");
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *const field = &type->fields[i];
        bool const number = field->type == PROTOBUF_C_TYPE_UINT32 || field->type == PROTOBUF_C_TYPE_UINT64;
        if ((of->fields[i] & SEEN_SET) == 0)
            missing(file, type->name, "a value in ", field->name);
        else if ((of->fields[i] & SEEN_EDGE) == 0)
            missing(file, type->name, number ? "the largest number in " : "a byte above 0x7f in ",
                    field->name);
    }
}

static void test_every_field(void)
{
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        for (size_t k = 0; files[i].types[k] != NULL; k++)
            check_covered(&files[i], files[i].types[k]);
}

/* The lists above have all that the files of the contract declare. */
static void test_every_message(void)
{
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        size_t declared = 0, listed = 0;
        const char *at = slurp("proto", files[i].name, "proto");
        while ((at = strstr(at, "\nmessage ")) != NULL) {
            char name[2 * NAME_BYTES];
            at += strlen("\nmessage ");
            (void)snprintf(name, sizeof name, "thole.v1.%.*s", (int)strcspn(at, " {"), at);
            if (type_of(&files[i], name) == NULL)
                fprintf(stderr, "\n  %s of %s.proto is not in this test's list\n", name, files[i].name);
            CU_ASSERT_PTR_NOT_NULL(type_of(&files[i], name));
            declared++;
        }
        while (files[i].types[listed] != NULL)
            listed++;
        CU_ASSERT_EQUAL(declared, listed);
    }
}

/* The examples of docs/wire.md are in the files under the same name. */
static void test_page(void)
{
    static char page[FILE_BYTES];
    size_t rows = 0;
    (void)snprintf(page, sizeof page, "%s", slurp("docs", "wire", "md"));
    (void)slurp("proto/golden", "messages", "json");
    char *row = strstr(page, "<!-- table: messages -->");
    CU_ASSERT_PTR_NOT_NULL_FATAL(row);
    row = strstr(row, "\n|---");
    for (row = strchr(row + 1, '\n') + 1; *row == '|'; row = strchr(row, '\n') + 1, rows++) {
        char key[NAME_BYTES * 2], hex[1024];
        char *const end = strstr(row, "` |\n");
        char *bytes = end - 1;
        while (*bytes != '`')
            bytes--;
        (void)snprintf(key, sizeof key, "\n{\"name\":\"%.*s\",", (int)(strstr(row, " |") - row - 2), row + 2);
        (void)snprintf(hex, sizeof hex, "\"hex\":\"%.*s\"}", (int)(end - bytes - 1), bytes + 1);
        const char *const line = strstr(text, key);
        bool const found = line != NULL && strncmp(strstr(line, "\"hex\":"), hex, strlen(hex)) == 0;
        if (!found)
            fprintf(stderr, "\n  proto/golden/messages.json has not what docs/wire.md has: %s\n", key + 1);
        CU_ASSERT_TRUE(found);
    }
    CU_ASSERT_TRUE(rows >= 19);
}

static const struct thole_test tests[] = {
    {"every message is listed", test_every_message},
    {"lines", test_lines},
    {"every field", test_every_field},
    {"the page's table", test_page},
};
THOLE_TEST_MAIN("golden_bytes", tests)
