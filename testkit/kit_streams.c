/* History and inbox, as the streams keep them: they survive everything here. */
#include "kit.h"
#include <assert.h>

/* ---- history ---- */

static void kit_streams_note_turn(thole_test_env *env, const struct out_append *append, size_t index)
{
    struct kit_instance *const instance = kit_instance_at(env, append->instance);
    instance->records = kit_grow(env, instance->records, instance->records_len, &instance->records_cap,
                                 sizeof *instance->records);
    if (instance->records_len == 0 || append->execution > instance->newest) {
        instance->from_before = instance->from_newest;
        instance->from_newest = instance->records_len;
        instance->newest = append->execution;
    }
    instance->records[instance->records_len++] = index;
    kit_history_check(env, instance);
}

/* The history begins with it again. */
static void note_deletion(thole_test_env *env, const struct out_append *append, size_t index)
{
    struct kit_instance *const instance = kit_instance_at(env, append->instance);
    struct arena arena;
    struct record record;
    arena_init(&arena, MESSAGE_BYTES_MAX);
    kit_must(record_decode(append->bytes, &arena, &record, NULL) == THOLE_OK);
    instance->records =
        kit_grow(env, instance->records, 0, &instance->records_cap, sizeof *instance->records);
    instance->records[0] = index;
    instance->records_len = 1;
    instance->from_newest = instance->from_before = 0;
    instance->newest = record.deletion.execution;
    instance->diverged = NULL;
    arena_release(&arena);
}

uint64_t kit_log_append(thole_test_env *env, const struct out_append *append)
{
    assert(append->expected_last == env->records_len); /* one engine at a time */
    env->records = kit_grow(env, env->records, env->records_len, &env->records_cap, sizeof *env->records);
    struct kit_record *const record = &env->records[env->records_len++];
    *record = (struct kit_record){
        .kind = append->kind, .bytes = kit_dup(env, append->bytes), .execution = append->execution};
    if (append->instance.len > 0)
        record->instance = kit_instance_at(env, append->instance)->id;
    if (append->kind == RECORD_TURN)
        kit_streams_note_turn(env, append, env->records_len - 1);
    else if (append->kind == RECORD_DELETED)
        note_deletion(env, append, env->records_len - 1);
    return env->records_len;
}

void kit_log_remove(thole_test_env *env, const struct out_remove_history *remove)
{
    struct executions const executions = remove->executions;
    for (uint64_t s = 1; s < remove->below; s++) {
        struct kit_record *const record = &env->records[s - 1];
        bool const among = executions.upto == 0 ||
                           (record->execution > executions.above && record->execution <= executions.upto);
        record->deleted |= among && thole_slice_equal(record->instance, remove->instance);
    }
}

static void read_into(const thole_test_env *env, uint64_t from, uint64_t to, struct log_record *records,
                      size_t *len)
{
    for (uint64_t s = from; s <= to && s <= env->records_len; s++)
        if (!env->records[s - 1].deleted)
            records[(*len)++] = (struct log_record){.sequence = s, .bytes = env->records[s - 1].bytes};
}

void kit_log_tail(const thole_test_env *env, uint64_t count, struct arena *arena, struct in_tail *ret)
{
    uint64_t opened = env->records_len;
    while (opened > 0 &&
           (env->records[opened - 1].deleted || env->records[opened - 1].kind != RECORD_EPOCH_OPENED))
        opened--;
    uint64_t from = opened + 1;
    if (count > 0 && env->records_len >= count && env->records_len - count + 1 > from)
        from = env->records_len - count + 1;
    struct log_record *const records = arena_array(arena, env->records_len - from + 2, sizeof *records);
    kit_must(records != NULL);
    size_t len = 0;
    read_into(env, opened == 0 ? 1 : opened, opened, records, &len);
    read_into(env, from, env->records_len, records, &len);
    *ret = (struct in_tail){
        .epoch_sequence = opened, .last_sequence = env->records_len, .records = records, .records_len = len};
}

void kit_log_read(const thole_test_env *env, const struct out_read_log *asked, struct arena *arena,
                  struct in_log *ret)
{
    struct log_record *const records = arena_array(arena, asked->to - asked->from + 1, sizeof *records);
    kit_must(records != NULL);
    *ret = (struct in_log){.records = records};
    read_into(env, asked->from, asked->to, records, &ret->records_len);
}

/* The newest execution counts, and the one before it when all that is stored of the newest is half a turn. */
static void kit_streams_load_newest(const thole_test_env *env, thole_slice id, struct log_record *records,
                                    size_t *len)
{
    const struct kit_instance *const instance = kit_instance_find(env, id);
    size_t const n = instance == NULL ? 0 : instance->records_len;
    for (size_t i = n == 0 ? 0 : instance->from_before; i < n; i++)
        read_into(env, instance->records[i] + 1, instance->records[i] + 1, records, len);
}

void kit_log_load(thole_test_env *env, const struct out_load *load, struct arena *arena,
                  struct in_history *ret)
{
    struct log_record *const records = arena_array(arena, env->records_len, sizeof *records);
    kit_must(records != NULL);
    *ret = (struct in_history){.instance = load->instance, .records = records};
    if (load->execution == 0)
        kit_streams_load_newest(env, load->instance, records, &ret->records_len);
    for (uint64_t s = 1; load->execution != 0 && s <= env->records_len; s++)
        if (env->records[s - 1].execution == load->execution &&
            thole_slice_equal(env->records[s - 1].instance, load->instance))
            read_into(env, s, s, records, &ret->records_len);
}

/* ---- inbox ---- */

void kit_inbox_add(thole_test_env *env, thole_slice route, thole_slice instance, thole_slice bytes)
{
    env->inbox = kit_grow(env, env->inbox, env->inbox_len, &env->inbox_cap, sizeof *env->inbox);
    env->inbox[env->inbox_len++] = (struct kit_message){
        .route = kit_dup(env, route), .instance = kit_dup(env, instance), .bytes = kit_dup(env, bytes)};
}

/* There is nobody to keep it from. */
const struct nonce_key *kit_nonce_key(void)
{
    static const struct nonce_key key = {.bytes = {0}};
    return &key;
}

void kit_inbox_send(thole_test_env *env, const struct message *given, enum message_sender sender)
{
    struct message_route const route = message_route(given, sender);
    struct message with_nonce = *given;
    struct message *const message = &with_nonce;
    struct nonce const nonce = nonce_make(kit_nonce_key(), given->instance, given->execution, given->task);
    if (given->kind == MESSAGE_ACTIVITY_RESULT)
        message->nonce = thole_slice_from(nonce.text);
    struct buf bytes;
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    kit_must(message_encode(message, &bytes) == THOLE_OK); /* sizes were checked before */
    kit_inbox_add(env, thole_slice_from(route.text), message->instance, buf_bytes(&bytes));
    buf_release(&bytes);
}

const struct kit_message *kit_inbox_next(thole_test_env *env, uint64_t *ret_sequence)
{
    while (env->read_next <= env->inbox_len && env->inbox[env->read_next - 1].purged)
        env->read_next++;
    if (!env->reading || env->read_next > env->inbox_len || partition_room(env->machine) == 0)
        return NULL;
    *ret_sequence = env->read_next++;
    return &env->inbox[*ret_sequence - 1];
}

void kit_inbox_results(const thole_test_env *env, uint64_t from, struct arena *arena, struct in_results *ret)
{
    struct partition_result *const results = arena_array(arena, env->inbox_len + 1, sizeof *results);
    kit_must(results != NULL);
    *ret = (struct in_results){.results = results};
    for (uint64_t s = from; s <= env->inbox_len; s++) {
        const struct kit_message *const at = &env->inbox[s - 1];
        struct message message;
        if (at->purged || message_decode(at->bytes, arena, &message, NULL) != THOLE_OK ||
            message.kind != MESSAGE_ACTIVITY_RESULT)
            continue;
        results[ret->results_len++] = (struct partition_result){.instance = message.instance,
                                                                .execution = message.execution,
                                                                .activity_id = message.task,
                                                                .try_number = message.try_number,
                                                                .sequence = s};
    }
}
