#include "client_log.h"
#include "client_restored.h"
#include "memory.h"
#include "values.h"
#include <stdlib.h>
#include <string.h>

enum {
    PASSES_MAX = 4, /* the last ones are short */
    TOKEN_KIND = 2,
    TOKEN_INSTANCE = 4, /* of hist; of ctl: what */
    TOKEN_EXECUTION = 5,
    TOKENS = 6,
    RECORD_ARENA_MAX = 64 * 1024 * 1024,
    RESTORED_BYTES_MAX = 1024 * 1024 * 1024, /* of one instance */
};

struct restored_record {
    uint64_t sequence;
    thole_slice bytes; /* allocated */
};

struct log_read {
    client_log_fn *each;
    void *arg;
    struct buf instance;   /* of the record */
    struct log_rule owner; /* of one instance's records; opened 0: all are given */
    const char *ns; /* of a whole log, and its partition: what was not published to it is left out, as its
                       owner removes it; NULL: a filter chooses */
    uint32_t partition;
    uint64_t last;                    /* sequence of the last record that was read */
    struct restored_record *restored; /* of one instance: they belong between those of the log */
    size_t restored_len, restored_cap, restored_given, restored_bytes;
    thole_error *reterr;
};

/* ---- one record ---- */

static bool token_is(thole_slice token, const char *text)
{
    return thole_slice_equal(token, thole_slice_from(text));
}

static bool execution_parse(thole_slice token, uint64_t *ret)
{
    char text[24];
    if (token.len >= sizeof text)
        return false;
    memcpy(text, token.ptr, token.len);
    text[token.len] = '\0';
    return number_parse(text, ret, NULL) == THOLE_OK;
}

/* The facts in the subject; UNKNOWN: no subject of a log. */
static struct audit_record record_of(struct log_read *read, uint64_t sequence, thole_slice subject,
                                     thole_slice body)
{
    struct audit_record record = {.sequence = sequence, .kind = RECORD_UNKNOWN, .bytes = body};
    thole_slice tokens[TOKENS];
    (void)subject_split(subject, tokens, TOKENS);
    thole_slice const name = tokens[TOKEN_INSTANCE], last = tokens[TOKEN_EXECUTION];
    if (token_is(tokens[TOKEN_KIND], "ctl")) {
        record.kind = token_is(name, "epoch") ? RECORD_EPOCH_OPENED : RECORD_POSITION;
        return record;
    }
    if (subject_token_decode(name, &read->instance, NULL) != THOLE_OK)
        return record;
    record.instance = buf_bytes(&read->instance);
    if (token_is(last, SUBJECT_DELETED))
        record.kind = RECORD_DELETED;
    else if (execution_parse(last, &record.execution))
        record.kind = RECORD_TURN;
    return record;
}

/* Another owner has opened the log since it was written: such records are removed. */
static bool is_void(const struct log_read *read, uint64_t sequence, thole_slice body)
{
    struct record record;
    struct arena arena;
    if (read->owner.opened == 0 || sequence <= read->owner.opened)
        return false;
    arena_init(&arena, RECORD_ARENA_MAX);
    bool const is = record_decode(body, &arena, &record, NULL) == THOLE_OK &&
                    log_rule_surely_void(&read->owner, &record, sequence);
    arena_release(&arena);
    return is;
}

/* Restored records in front of that sequence. Their subjects say nothing of their place. */
static thole_status give_restored(struct log_read *read, uint64_t before)
{
    for (; read->restored_given < read->restored_len; read->restored_given++) {
        const struct restored_record *const at = &read->restored[read->restored_given];
        struct audit_record const record = {
            .sequence = at->sequence, .kind = RECORD_UNKNOWN, .bytes = at->bytes};
        if (at->sequence >= before)
            break;
        THOLE_TRY(read->each(read->arg, &record));
    }
    return THOLE_OK;
}

static thole_status client_log_take(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct log_read *read = arg;
    read->last = sequence;
    THOLE_TRY(give_restored(read, sequence));
    if (is_void(read, sequence, body) ||
        (read->ns != NULL && !subject_is_of_log(subject, read->ns, read->partition)))
        return THOLE_OK;
    struct audit_record const record = record_of(read, sequence, subject, body);
    return read->each(read->arg, &record);
}

static thole_status take_delivery(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    return client_log_take(arg, sequence, delivery->subject, delivery->body);
}

/* ---- reading ---- */

/*
 * A deletion may remove records during the read, and its own record may follow the end that was known at
 * first: so records that were stored meanwhile are read, too. @p filter NULL: all, by a consumer.
 */
static thole_status read_passes(struct thole_client *client, const char *stream, const char *filter,
                                struct log_read *read, uint64_t *read_to, thole_error *reterr)
{
    uint64_t to = *read_to;
    for (int pass = 0; pass < PASSES_MAX; pass++) {
        struct stream_bounds bounds;
        uint64_t const from = to + 1;
        THOLE_TRY(place_status(stream_bounds(client->connection, stream, &bounds, reterr), stream, reterr));
        if (bounds.last <= to)
            break;
        to = bounds.last;
        THOLE_TRY(filter == NULL ? stream_read_deliveries(client->connection, stream, NULL, from, to,
                                                          take_delivery, read, reterr)
                                 : stream_walk(client->connection, stream, filter, from, to, client_log_take,
                                               read, reterr));
        *read_to = to;
    }
    return THOLE_OK;
}

thole_status client_log_read(struct thole_client *client, uint32_t partition, uint64_t *read_to,
                             client_log_fn *each, void *arg, thole_error *reterr)
{
    struct log_read read = {.each = each, .arg = arg, .ns = client->topology.ns, .partition = partition};
    struct buf stream;
    buf_init(&stream, STREAM_NAME_BYTES_MAX);
    buf_init(&read.instance, THOLE_ID_BYTES_MAX);
    thole_status status = stream_name(&stream, client->topology.ns, "HIST", partition, reterr);
    if (status == THOLE_OK)
        status = read_passes(client, buf_cstr(&stream), NULL, &read, read_to, reterr);
    buf_release(&stream);
    buf_release(&read.instance);
    return status;
}

static thole_status keep_restored(void *arg, uint64_t sequence, thole_slice bytes)
{
    struct log_read *read = arg;
    if (bytes.len > RESTORED_BYTES_MAX - read->restored_bytes)
        return thole_fail(read->reterr, THOLE_LIMIT, "what was restored has more than %d bytes",
                          RESTORED_BYTES_MAX);
    read->restored_bytes += bytes.len;
    read->restored =
        memory_reserve(read->restored, &read->restored_cap, read->restored_len + 1, sizeof *read->restored);
    read->restored[read->restored_len++] =
        (struct restored_record){sequence, {memory_copy(bytes.ptr, bytes.len), bytes.len}};
    return THOLE_OK;
}

static void forget_restored(struct log_read *read)
{
    for (size_t i = 0; i < read->restored_len; i++)
        free((void *)(uintptr_t)read->restored[i].bytes.ptr);
    free(read->restored);
}

/* Whether restored records of the id may be read: the instance was deleted, and the log has the deletion, or
 * the deletion has gone and the log has nothing of the id. A record that does not decode counts. */
static thole_status may_be_restored(struct thole_client *client, thole_slice instance, bool *ret,
                                    thole_error *reterr)
{
    struct life life;
    uint64_t execution = 0;
    bool deleted = false;
    thole_error said = {.status = THOLE_OK};
    THOLE_TRY(life_read(client, instance, &life, reterr));
    *ret = life.deleted > 0;
    if (*ret)
        return THOLE_OK;
    THOLE_TRY(deletions_gone(client, instance, ret, reterr));
    if (!*ret)
        return THOLE_OK;
    thole_status const status = history_latest(client, instance, &execution, &deleted, &said);
    *ret = status == THOLE_OK && execution == 0;
    if (status == THOLE_OK || status == THOLE_CORRUPT)
        return THOLE_OK;
    return thole_fail(reterr, status, "%s", said.text);
}

/* Of an id that was deleted. Who may not read them gets none. */
static thole_status client_log_read_restored(struct thole_client *client, thole_slice instance,
                                             struct log_read *read, thole_error *reterr)
{
    bool may = false;
    THOLE_TRY(may_be_restored(client, instance, &may, reterr));
    if (!may)
        return THOLE_OK;
    read->reterr = reterr;
    thole_status const status = client_restored_records(client, instance, keep_restored, read, reterr);
    return status == THOLE_NOT_FOUND || status == THOLE_DENIED ? THOLE_OK : status;
}

thole_status client_log_read_instance(struct thole_client *client, thole_slice instance, client_log_fn *each,
                                      void *arg, thole_error *reterr)
{
    struct log_read read = {.each = each, .arg = arg};
    struct place place = {.stream = {.ptr = NULL}};
    uint64_t read_to = 0;
    buf_init(&read.instance, THOLE_ID_BYTES_MAX);
    thole_status status = owner_read(client, instance, &read.owner, reterr);
    if (status == THOLE_OK)
        status = client_log_read_restored(client, instance, &read, reterr);
    if (status == THOLE_OK)
        status = place_history(client, instance, &place, reterr);
    if (status == THOLE_OK)
        status =
            read_passes(client, buf_cstr(&place.stream), buf_cstr(&place.subject), &read, &read_to, reterr);
    if (status == THOLE_OK)
        status = give_restored(&read, UINT64_MAX);
    if (status == THOLE_OK && read.last == 0 && read.restored_len == 0)
        status = thole_fail(reterr, THOLE_NOT_FOUND, "there is no instance \"%.*s\" in namespace %s",
                            THOLE_FMT(instance), client->topology.ns);
    forget_restored(&read);
    place_release(&place);
    buf_release(&read.instance);
    return status;
}
