#include "partition_stage.h"
#include "nonces.h"
#include "thole_cunit.h"
#include <stdlib.h>

thole_status stage_how(thole_ctx *ctx, void *arg, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)arg, (void)input;
    *ret_output = THOLE_STR("well");
    return THOLE_OK;
}

thole_status stage_calls(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_on_query(ctx, THOLE_STR("how"), stage_how, NULL);
    return thole_await(ctx, thole_call(ctx, THOLE_STR("work"), input), ret_output);
}

void stage_options(struct partition_options *options, const thole_orchestration_entry *entries, size_t n)
{
    partition_options_init(options);
    options->row_age_ms = 0; /* each turn writes the row of its instance */
    options->ns = options->node = THOLE_STR("stage");
    options->nonce_key = test_nonce_key();
    options->salt_key = test_salt_key();
    options->orchestrations = entries;
    options->orchestrations_len = n;
}

static void give(struct stage *s, const struct partition_in *in)
{
    s->inputs_refused += partition_input(s->p, in, s->now_ms) != THOLE_OK;
}

static void create(struct stage *s)
{
    s->options.stacks = s->stacks;
    s->p = partition_create(&s->options);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s->p);
    give(s, &(struct partition_in){.kind = PARTITION_IN_OPEN});
    stage_run(s);
}

struct stage *stage_begin_with(const struct partition_options *options, size_t stacks_max)
{
    struct stage *const s = calloc(1, sizeof *s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    arena_init(&s->arena, SIZE_MAX / 2);
    buf_init(&s->said, 1 << 20);
    s->now_ms = 1000000;
    s->stacks = stack_pool_create(4, stacks_max);
    s->options = *options;
    create(s);
    return s;
}

struct stage *stage_begin(const thole_orchestration_entry *entries, size_t n)
{
    struct partition_options options;
    stage_options(&options, entries, n);
    return stage_begin_with(&options, 1000);
}

void stage_end(struct stage *s)
{
    partition_destroy(s->p);
    CU_ASSERT_EQUAL(stack_pool_in_use(s->stacks), 0);
    stack_pool_destroy(s->stacks);
    buf_release(&s->said);
    arena_release(&s->arena);
    free(s);
}

void stage_again(struct stage *s)
{
    partition_destroy(s->p);
    s->held_len = 0;
    create(s);
}

/* ---- the world ---- */

static thole_slice own(struct stage *s, thole_slice slice)
{
    thole_slice copy = {0};
    CU_ASSERT_EQUAL(arena_dup(&s->arena, slice, &copy), THOLE_OK);
    return copy;
}

static bool is_of(const struct stage_record *record, thole_slice instance)
{
    return !record->deleted && thole_slice_equal(thole_slice_from(record->instance), instance);
}

/* Those of the log, in order. Returns how many. */
static size_t read_records(struct stage *s, uint64_t from, uint64_t to, const struct log_record **ret)
{
    struct log_record *records = arena_array(&s->arena, s->log_len + 1, sizeof *records);
    size_t len = 0;
    for (uint64_t n = from; n <= to && n <= s->log_len; n++)
        if (!s->log[n - 1].deleted)
            records[len++] = (struct log_record){n, s->log[n - 1].bytes};
    *ret = records;
    return len;
}

/* No more than what LOAD is promised: of the newest record's execution and the one before, or of that one. */
static void load(struct stage *s, const struct out_load *asked, struct in_history *ret)
{
    struct log_record *records = arena_array(&s->arena, s->log_len + 1, sizeof *records);
    uint64_t const execution = asked->execution;
    uint64_t newest = execution, from = 0;
    s->loads++;
    *ret = (struct in_history){.instance = own(s, asked->instance), .records = records};
    for (size_t i = 0; i < s->log_len && execution == 0; i++)
        newest = is_of(&s->log[i], ret->instance) ? s->log[i].execution : newest;
    for (size_t i = 0; i < s->log_len && newest == 0; i++) /* of execution 0 what is newer than a deletion */
        from = s->log[i].kind == RECORD_DELETED && is_of(&s->log[i], ret->instance) ? i : from;
    for (size_t i = from; i < s->log_len; i++)
        if (is_of(&s->log[i], ret->instance) && (newest <= 1 || s->log[i].execution == newest ||
                                                 (execution == 0 && s->log[i].execution + 1 == newest)))
            records[ret->records_len++] = (struct log_record){i + 1, s->log[i].bytes, s->log[i].execution};
}

static void read_tail(struct stage *s, struct in_tail *ret)
{
    ret->last_sequence = s->tail_read_to > 0 ? s->tail_read_to : s->log_len;
    s->tail_read_to = 0;
    for (size_t i = ret->last_sequence; i > 0 && ret->epoch_sequence == 0; i--)
        if (s->log[i - 1].kind == RECORD_EPOCH_OPENED && !s->log[i - 1].deleted)
            ret->epoch_sequence = i;
    uint64_t const from = ret->epoch_sequence == 0 ? 1 : ret->epoch_sequence;
    ret->records_len = read_records(s, from, ret->last_sequence, &ret->records);
}

static void append(struct stage *s, const struct out_append *asked, struct in_appended *ret)
{
    s->appended = asked->bytes;
    CU_ASSERT_EQUAL(asked->expected_last, s->log_len);
    CU_ASSERT_FATAL(s->log_len < STAGE_RECORDS_MAX);
    struct stage_record *record = &s->log[s->log_len++];
    *record = (struct stage_record){
        .kind = asked->kind, .execution = asked->execution, .bytes = own(s, asked->bytes)};
    snprintf(record->instance, sizeof record->instance, "%.*s", THOLE_FMT(asked->instance));
    ret->sequence = s->log_len;
    if (asked->kind == RECORD_DELETED) {
        struct record decoded;
        CU_ASSERT_EQUAL(record_decode(record->bytes, &s->arena, &decoded, NULL), THOLE_OK);
        record->execution = decoded.deletion.execution;
    }
}

static void delete_records(struct stage *s, const struct out_delete_records *asked, struct partition_in *in)
{
    if (asked->expected_last != s->log_len) {
        in->kind = PARTITION_IN_STEP_DOWN;
        in->step_down.text = "the log went on";
        return;
    }
    for (size_t i = 0; i < asked->sequences_len; i++)
        s->log[asked->sequences[i] - 1].deleted = true;
}

static void say_removed(struct stage *s, const struct batch *batch)
{
    for (size_t i = 0; i < batch->activities_removed_len; i++) {
        const struct batch_activity *const row = &batch->activities_removed[i];
        buf_printf(&s->said, i == 0 ? "rows gone: %.*s" : ",%.*s", THOLE_FMT(row->instance));
        buf_printf(&s->said, ".%llu.%llu", (unsigned long long)row->execution,
                   (unsigned long long)row->activity_id);
    }
    if (batch->activities_removed_len > 0)
        buf_text(&s->said, "\n");
}

/* Answers the batch's removals with the rows that the database found. */
static void answer_removed(struct stage *s, const struct batch *batch, struct in_applied *ret)
{
    struct batch_activity *const rows = arena_array(&s->arena, batch->activities_removed_len, sizeof *rows);
    CU_ASSERT_PTR_NOT_NULL_FATAL(rows);
    for (size_t i = 0; i < batch->activities_removed_len; i++) {
        rows[i] = batch->activities_removed[i];
        rows[i].instance = own(s, rows[i].instance);
        rows[i].held = rows[i].activity_id == s->at_work;
    }
    *ret = (struct in_applied){rows, batch->activities_removed_len};
}

static void say_push(struct stage *s, const struct cancel_notice *push)
{
    buf_printf(&s->said, "%s %.*s.%llu %.*s '%.*s'", push->early ? "hint" : "push", THOLE_FMT(push->instance),
               (unsigned long long)push->execution, THOLE_FMT(push->kind), THOLE_FMT(push->reason));
    for (size_t i = 0; i < push->activity_ids_len; i++)
        buf_printf(&s->said, i == 0 ? " %llu" : ",%llu", (unsigned long long)push->activity_ids[i]);
    if (push->try_number > 0)
        buf_printf(&s->said, " try %u", push->try_number);
    buf_text(&s->said, "\n");
}

/* Only when an existing record says that the deletion is committed, or a newer epoch has begun. */
static bool may_remove(struct stage *s, uint64_t sequence)
{
    struct record record, deletion;
    CU_ASSERT_EQUAL(record_decode(s->log[sequence - 1].bytes, &s->arena, &deletion, NULL), THOLE_OK);
    for (uint64_t n = sequence + 1; n <= s->log_len; n++) {
        CU_ASSERT_EQUAL(record_decode(s->log[n - 1].bytes, &s->arena, &record, NULL), THOLE_OK);
        if (!s->log[n - 1].deleted && (record.epoch > deletion.epoch || record.committed >= deletion.n))
            return true;
    }
    return false;
}

static void remove_history(struct stage *s, const struct out_remove_history *asked)
{
    struct executions const some = asked->executions;
    s->removals++;
    CU_ASSERT_EQUAL(s->log[asked->below - 1].kind, some.upto > 0 ? RECORD_TURN : RECORD_DELETED);
    CU_ASSERT_TRUE(may_remove(s, asked->below));
    CU_ASSERT_TRUE(asked->below <= s->durable);
    for (uint64_t n = 1; n < asked->below && !s->hold_removed; n++)
        if (strcmp(s->log[n - 1].instance, s->log[asked->below - 1].instance) == 0 &&
            (some.upto == 0 ||
             (s->log[n - 1].execution > some.above && s->log[n - 1].execution <= some.upto)))
            s->log[n - 1].deleted = true;
}

/* They are done first: what else is in the batch must be of a later life. */
static void check_deletions(const struct batch *batch)
{
    for (size_t i = 0; i < batch->deletions_len; i++)
        for (size_t k = 0; k < batch->instances_len; k++)
            CU_ASSERT_FALSE(thole_slice_equal(batch->deletions[i].instance, batch->instances[k].instance) &&
                            batch->instances[k].history_seq < batch->deletions[i].history_seq);
}

/* Texts for people in the last row of an instance. */
static void keep_texts(struct stage *s, const struct batch *batch)
{
    if (batch->instances_len == 0)
        return;
    const struct batch_instance *const row = &batch->instances[batch->instances_len - 1];
    snprintf(s->detail, sizeof s->detail, "%.*s", THOLE_FMT(row->detail));
    s->blocked = row->blocked;
    snprintf(s->custom_status, sizeof s->custom_status, "%.*s", THOLE_FMT(row->custom_status));
}

/* False: it is never answered. */
static bool apply(struct stage *s, struct batch *batch, struct in_applied *ret)
{
    bool const answered = !batch->durable || !s->hold_durable;
    check_deletions(batch);
    s->batches++;
    s->durables += batch->durable;
    CU_ASSERT_EQUAL(batch->follows.batches, s->rows.batches);
    CU_ASSERT_EQUAL(batch->follows.projected.seq, s->rows.projected.seq);
    CU_ASSERT_EQUAL(batch->follows.projected.mark, s->rows.projected.mark);
    s->rows = (struct rows_state){batch->projected, s->rows.batches + 1};
    s->applied = batch->projected;
    if (batch->durable && s->applied.seq > s->durable && !s->hold_durable)
        s->durable = s->applied.seq;
    s->activities += batch->activities_added_len;
    s->timers += batch->timers_added_len;
    s->deletions += batch->deletions_len;
    if (batch->activities_added_len > s->largest_batch)
        s->largest_batch = batch->activities_added_len;
    answer_removed(s, batch, ret);
    keep_texts(s, batch);
    if (s->see != NULL)
        s->see(s, batch);
    if (s->tells_work)
        say_removed(s, batch);
    if (s->tells_rows && batch->instances_len > 0)
        buf_text(&s->said, "instances\n");
    batch_destroy(batch);
    return answered;
}

static void send(struct stage *s, const struct out_send *asked)
{
    struct message message;
    s->sends++;
    CU_ASSERT_EQUAL(message_decode(asked->bytes, &s->arena, &message, NULL), THOLE_OK);
    buf_printf(&s->said, "send kind %d to %.*s.%llu.%llu: %s %.*s '%.*s'", (int)message.kind,
               THOLE_FMT(message.instance), (unsigned long long)message.execution,
               (unsigned long long)message.task, thole_status_name((thole_status)message.status),
               THOLE_FMT(message.error_type), THOLE_FMT(message.data));
    if (message.child.len > 0)
        buf_printf(&s->said, " of %.*s", THOLE_FMT(message.child));
    if (message.request_id.len > 0)
        buf_printf(&s->said, " by %.*s", THOLE_FMT(message.request_id));
    if (message.kind != MESSAGE_START && message.parent.instance.len > 0)
        buf_printf(&s->said, " to its child %llu#%llu", (unsigned long long)message.parent.execution,
                   (unsigned long long)message.parent.event);
    buf_text(&s->said, "\n");
}

static void open_store(struct stage *s, const struct out_store_open *asked, struct in_store_opened *ret)
{
    s->durable = s->projected.seq;
    s->rows.projected = s->projected;
    *ret = (struct in_store_opened){s->epoch > asked->epoch ? s->epoch : asked->epoch, s->rows, s->other_key};
}

static void reset_store(struct stage *s, struct in_store_reset *ret)
{
    s->resets++;
    s->other_key = false;
    s->rows = (struct rows_state){.batches = s->rows.batches + 1};
    ret->rows = s->rows;
}

static void reject(struct stage *s, const struct out_reject *asked)
{
    buf_printf(&s->said, "rejected %s %.*s%.*s: %s", reject_code_name(asked->code),
               THOLE_FMT(asked->instance), THOLE_FMT(asked->subject), asked->text);
    if (asked->part > 0)
        buf_printf(&s->said, " (part %u)", asked->part);
    buf_text(&s->said, "\n");
}

static void forget_crash(struct stage *s, thole_slice instance)
{
    for (size_t i = 0; i < s->crashes_len; i++)
        if (thole_slice_equal(s->crashes[i].instance, instance))
            s->crashes[i--] = s->crashes[--s->crashes_len];
}

static void keep_crash(struct stage *s, thole_slice instance, uint64_t execution, uint64_t count,
                       thole_slice text)
{
    forget_crash(s, instance);
    CU_ASSERT_FATAL(s->crashes_len < ARRAY_LEN(s->crashes));
    s->crashes[s->crashes_len++] = (struct partition_crash){
        .instance = own(s, instance), .execution = execution, .count = count, .text = own(s, text)};
}

void stage_crashed(struct stage *s, const char *instance, uint64_t execution, uint64_t count,
                   const char *text)
{
    keep_crash(s, thole_slice_from(instance), execution, count, thole_slice_from(text));
}

/* Outputs that ask for no answer. */
static void say(struct stage *s, const struct partition_out *out)
{
    switch (out->kind) {
    case PARTITION_OUT_NOTICE:
        buf_printf(&s->said, "notice %s %.*s", out->notice.kind, THOLE_FMT(out->notice.instance));
        if (out->notice.code.len > 0)
            buf_printf(&s->said, ", %.*s: %.*s", THOLE_FMT(out->notice.code), THOLE_FMT(out->notice.data));
        buf_text(&s->said, "\n");
        (void)snprintf(s->noticed, sizeof s->noticed, "%.*s", THOLE_FMT(out->notice.orchestration));
        break;
    case PARTITION_OUT_LINE:
        buf_printf(&s->said, "line %.*s: %.*s\n", THOLE_FMT(out->line.instance), THOLE_FMT(out->line.text));
        break;
    case PARTITION_OUT_QUERY_ANSWER:
        buf_printf(&s->said, "answer %s: %.*s\n", thole_status_name(out->query_answer.status),
                   THOLE_FMT(out->query_answer.data));
        break;
    case PARTITION_OUT_PUSH_CANCEL:
        if (s->tells_work)
            say_push(s, &out->push_cancel);
        break;
    case PARTITION_OUT_WITHDRAW:
        if (s->tells_work)
            buf_printf(&s->said, "withdraw %llu\n", (unsigned long long)out->withdraw.sequence);
        break;
    case PARTITION_OUT_CLOSED:
        snprintf(s->closed, sizeof s->closed, "%s", out->closed.text);
        s->closed_epoch = out->closed.epoch;
        s->closed_records = out->closed.records;
        s->closed_for_good = !out->closed.reopen;
        break;
    case PARTITION_OUT_LIMITED:
        buf_printf(&s->said, "limit %s of %llu a minute: %.*s of %.*s, execution %llu\n",
                   partition_limit_name(out->limited.limit), (unsigned long long)out->limited.max,
                   THOLE_FMT(out->limited.instance), THOLE_FMT(out->limited.orchestration),
                   (unsigned long long)out->limited.execution);
        break;
    case PARTITION_OUT_STOPPED:
        s->stops++;
        (void)snprintf(s->stopped, sizeof s->stopped, "%s %.*s of %.*s@%u: %.*s",
                       blocked_kind_name(out->stopped.kind), THOLE_FMT(out->stopped.instance),
                       THOLE_FMT(out->stopped.orchestration), out->stopped.version,
                       THOLE_FMT(out->stopped.text));
        break;
    case PARTITION_OUT_CRASHED:
        keep_crash(s, out->crashed.instance, out->crashed.execution, out->crashed.count, out->crashed.text);
        break;
    case PARTITION_OUT_PURGE_INBOX:
        s->purges++;
        s->purged_below = out->purge_inbox.below;
        break;
    case PARTITION_OUT_CRASHES_OVER: forget_crash(s, out->crashes_over.instance); break;
    default: break;
    }
}

/* False: it is not answered. */
static bool do_output(struct stage *s, const struct partition_out *out, struct partition_in *in)
{
    if (!partition_is_answered(out->kind)) {
        say(s, out);
        return false;
    }
    *in = partition_answer(out);
    switch (out->kind) {
    case PARTITION_OUT_READ_TAIL: read_tail(s, &in->tail); break;
    case PARTITION_OUT_APPEND: append(s, &out->append, &in->appended); break;
    case PARTITION_OUT_APPLY: return apply(s, out->apply.batch, &in->applied);
    case PARTITION_OUT_SEND: send(s, &out->send); break;
    case PARTITION_OUT_EMIT:
        buf_printf(&s->said, "emit %.*s %llu.%llu of %.*s by %.*s: %.*s\n", THOLE_FMT(out->emit.type),
                   (unsigned long long)out->emit.execution, (unsigned long long)out->emit.event,
                   THOLE_FMT(out->emit.instance), THOLE_FMT(out->emit.orchestration),
                   THOLE_FMT(out->emit.data));
        break;
    case PARTITION_OUT_READ_LOG:
        in->log.records_len = read_records(s, out->read_log.from, out->read_log.to, &in->log.records);
        break;
    case PARTITION_OUT_LOAD: load(s, &out->load, &in->history); break;
    case PARTITION_OUT_DELETE_RECORDS: delete_records(s, &out->delete_records, in); break;
    case PARTITION_OUT_REMOVE_HISTORY: remove_history(s, &out->remove_history); break;
    case PARTITION_OUT_STORE_OPEN: open_store(s, &out->store_open, &in->store_opened); break;
    case PARTITION_OUT_STORE_RESET:
        s->fault = out->store_reset.fault;
        reset_store(s, &in->store_reset);
        break;
    case PARTITION_OUT_REJECT: reject(s, &out->reject); break;
    case PARTITION_OUT_READ_RESULTS:
        in->results = (struct in_results){s->results, s->results_len};
        s->result_looks++;
        break;
    case PARTITION_OUT_READ_CRASHES: in->crashes = (struct in_crashes){s->crashes, s->crashes_len}; break;
    case PARTITION_OUT_READ_LIVE: s->live_reads++; break;
    case PARTITION_OUT_READ_TIMERS: in->timers = s->timer_rows; break;
    case PARTITION_OUT_PUBLISH_WORK:
        in->published.sequence = ++s->work;
        s->works++;
        break;
    case PARTITION_OUT_READ_INBOX: return false; /* the test gives its messages */
    default: break;
    }
    return true;
}

static bool is_held(const struct stage *s, enum partition_in_kind kind)
{
    return (kind == PARTITION_IN_APPENDED && s->hold_appends) ||
           (kind == PARTITION_IN_APPLIED && s->hold_applied) ||
           ((kind == PARTITION_IN_SENT || kind == PARTITION_IN_EMITTED) && s->hold_sent) ||
           (kind == PARTITION_IN_PUBLISHED && s->hold_works) ||
           (kind == PARTITION_IN_REJECTED && s->hold_rejected) ||
           (kind == PARTITION_IN_HISTORY && s->hold_loads) || (kind == PARTITION_IN_LIVE && s->hold_live) ||
           (kind == PARTITION_IN_REMOVED && s->hold_removed);
}

static void answer(struct stage *s, const struct partition_in *in)
{
    give(s, in);
    if (s->answers_twice && (in->kind == PARTITION_IN_SENT || in->kind == PARTITION_IN_EMITTED ||
                             in->kind == PARTITION_IN_PUBLISHED || in->kind == PARTITION_IN_REJECTED ||
                             in->kind == PARTITION_IN_REMOVED))
        give(s, in);
}

void stage_run(struct stage *s)
{
    struct partition_out out;
    bool more = true;
    while (more) {
        more = false;
        (void)partition_flush(s->p, s->now_ms, true);
        partition_check(s->p);
        while (partition_poll(s->p, &out)) {
            struct partition_in in;
            more = true;
            if (!do_output(s, &out, &in))
                continue;
            if (is_held(s, in.kind) && s->held_len < STAGE_HELD_MAX)
                s->held[s->held_len++] = in;
            else
                answer(s, &in);
            partition_check(s->p);
        }
    }
}

void stage_release(struct stage *s)
{
    size_t const n = s->held_len;
    s->hold_appends = s->hold_applied = s->hold_sent = s->hold_works = s->hold_removed = s->hold_rejected =
        s->hold_loads = s->hold_live = false;
    for (size_t i = 0; i < n; i++)
        give(s, &s->held[i]);
    s->held_len = 0;
    stage_run(s);
}

/* ---- inputs ---- */

void stage_bytes(struct stage *s, thole_slice instance, thole_slice bytes, enum reject_code refused)
{
    stage_bytes_as(s, THOLE_STR("event.any"), instance, bytes, refused);
}

void stage_bytes_as(struct stage *s, thole_slice route, thole_slice instance, thole_slice bytes,
                    enum reject_code refused)
{
    struct partition_in in = {.kind = PARTITION_IN_MESSAGE,
                              .generation = partition_generation(s->p),
                              .message = {.refused = refused, .bytes = bytes}};
    in.message.sequence = ++s->inbox;
    in.message.stored_ns = s->inbox * 1000;
    if (refused == REJECT_NONE)
        in.message.instance = instance, in.message.route = route;
    else
        in.message.subject = THOLE_STR("thole.ns.in.0.event.item.%zz");
    give(s, &in);
    stage_run(s);
}

void stage_message(struct stage *s, const struct message *message)
{
    struct nonce room;
    struct message const with_nonce = test_with_nonce(message, &room);
    struct buf bytes;
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    CU_ASSERT_EQUAL(message_encode(&with_nonce, &bytes), THOLE_OK);
    struct message_route const route = message_route(&with_nonce, SENDER_CLIENT);
    stage_bytes_as(s, thole_slice_from(route.text), message->instance, buf_bytes(&bytes), REJECT_NONE);
    buf_release(&bytes);
}

void stage_results(struct stage *s, const struct message *results, size_t len)
{
    s->inbox++;
    for (size_t i = 0; i < len; i++) {
        struct nonce room;
        struct message const with_nonce = test_with_nonce(&results[i], &room);
        struct buf bytes;
        buf_init(&bytes, MESSAGE_BYTES_MAX);
        CU_ASSERT_EQUAL(message_encode(&with_nonce, &bytes), THOLE_OK);
        struct partition_in in = {.kind = PARTITION_IN_MESSAGE, .generation = partition_generation(s->p)};
        in.message = (struct in_message){.sequence = s->inbox,
                                         .stored_ns = s->inbox * 1000,
                                         .part = (uint32_t)i,
                                         .parts = (uint32_t)len,
                                         .instance = results[i].instance,
                                         .route = THOLE_STR("result.worker"),
                                         .bytes = buf_bytes(&bytes)};
        give(s, &in);
        buf_release(&bytes);
    }
    stage_run(s);
}

void stage_start(struct stage *s, const char *instance, const char *orchestration)
{
    struct message const message = {.kind = MESSAGE_START,
                                    .instance = thole_slice_from(instance),
                                    .orchestration = thole_slice_from(orchestration),
                                    .request_id = THOLE_STR("start")};
    stage_message(s, &message);
}

void stage_tell(struct stage *s, const char *instance, enum message_kind kind, const char *text)
{
    struct message message = {.kind = kind,
                              .instance = thole_slice_from(instance),
                              .data = thole_slice_from(text),
                              .request_id = thole_slice_from(text)};
    if (kind == MESSAGE_EVENT) {
        message.event_name = THOLE_STR("item");
        message.event_data = message.data;
        message.data = (thole_slice){0};
    }
    stage_message(s, &message);
}

void stage_complete(struct stage *s, const char *instance, uint64_t activity, thole_slice output)
{
    struct message const message = {.kind = MESSAGE_ACTIVITY_RESULT,
                                    .instance = thole_slice_from(instance),
                                    .execution = 1,
                                    .task = activity,
                                    .data = output,
                                    .source.place.attempt = 1};
    stage_message(s, &message);
}

void stage_query(struct stage *s, const char *instance, const char *query)
{
    struct partition_in const in = {.kind = PARTITION_IN_QUERY,
                                    .token = 7,
                                    .query = {thole_slice_from(instance), thole_slice_from(query)}};
    give(s, &in);
    stage_run(s);
}

void stage_timer(struct stage *s, uint64_t now_ms)
{
    s->now_ms = now_ms;
    stage_run(s);
}

void stage_settle(struct stage *s)
{
    for (int i = 0; i < 10; i++)
        stage_timer(s, s->now_ms + 2000);
}

void stage_forge(struct stage *s, const struct record *turn)
{
    struct buf bytes;
    buf_init(&bytes, RECORD_BYTES_MAX);
    CU_ASSERT_EQUAL(record_encode(turn, &bytes), THOLE_OK);
    struct stage_record *record = &s->log[s->log_len++];
    *record = (struct stage_record){
        .kind = RECORD_TURN, .execution = turn->turn.execution, .bytes = own(s, buf_bytes(&bytes))};
    snprintf(record->instance, sizeof record->instance, "%.*s", THOLE_FMT(turn->turn.instance));
    buf_release(&bytes);
}

void stage_open(struct stage *s)
{
    give(s, &(struct partition_in){.kind = PARTITION_IN_OPEN});
    stage_run(s);
}

/* ---- the state, as text ---- */

static void render_turn(const struct turn *turn, struct buf *to)
{
    buf_printf(to, "%llu.%llu %s", (unsigned long long)turn->execution, (unsigned long long)turn->number,
               turn->ran ? "ran" : "waits");
    if (!turn->ran)
        buf_printf(to, " %d", (int)turn->blocked);
    for (size_t i = 0; i < turn->events_len; i++) {
        buf_text(to, i == 0 ? ": " : "; ");
        event_render(&turn->events[i], to);
    }
    buf_text(to, "\n");
}

static void render_deletion(const struct deletion *d, struct buf *to)
{
    buf_printf(to, "deleted up to %llu: %.*s\n", (unsigned long long)d->execution, THOLE_FMT(d->reason));
}

const char *stage_history(struct stage *s, const char *instance)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    for (size_t i = 0; i < s->log_len; i++) {
        struct record record;
        if (s->log[i].deleted || strcmp(s->log[i].instance, instance) != 0)
            continue;
        if (record_decode(s->log[i].bytes, &s->arena, &record, NULL) != THOLE_OK)
            buf_text(&text, "garbage\n");
        else if (record.kind == RECORD_DELETED)
            render_deletion(&record.deletion, &text);
        else
            render_turn(&record.turn, &text);
    }
    thole_slice const copy = own(s, buf_bytes(&text));
    buf_release(&text);
    return copy.len == 0 ? "" : (const char *)copy.ptr;
}

const char *stage_said(struct stage *s)
{
    thole_slice const copy = own(s, buf_bytes(&s->said));
    buf_clear(&s->said);
    return copy.len == 0 ? "" : (const char *)copy.ptr;
}

void stage_check_said(struct stage *s, const char *row, const char *want)
{
    const char *const got = stage_said(s);
    CHECK_STR(row, got, want);
}
