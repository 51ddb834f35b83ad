/*
 * Queries. They change nothing: the instance is loaded if it is not in memory, and answers at once. Of an
 * ended instance only the outcome is in memory: its history is read again, its code is replayed, all waiting
 * queries are answered, and it is released. Meanwhile its entry is RECALLED, and other input waits.
 */
#include "instances_state.h"
#include "memory.h"
#include "query_message.h"
#include <assert.h>

static void queries_emit_answer(struct instances *p, uint64_t token, thole_status status, thole_slice data)
{
    struct partition_out *out = env_emit(p->env, PARTITION_OUT_QUERY_ANSWER);
    out->token = token;
    out->query_answer = (struct out_query_answer){status, env_copy(p->env, data), NULL};
}

/* Where the code waits: no code runs. */
static void answer_source(struct instances *p, uint64_t token, const struct instance *instance)
{
    const void *const site = instance_ended(instance) ? NULL : instance_call_site(instance);
    if (site == NULL) {
        queries_emit_answer(p, token, THOLE_INVALID,
                            instance_ended(instance) ? THOLE_STR("it has ended: its code waits for nothing")
                                                     : THOLE_STR("its code has not run here"));
        return;
    }
    struct partition_out *out = env_emit(p->env, PARTITION_OUT_QUERY_ANSWER);
    out->token = token;
    out->query_answer = (struct out_query_answer){.status = THOLE_OK, .site = site};
}

void instances_query(struct instances *p, uint64_t token, const struct in_query *in, bool serving)
{
    if (!serving) {
        queries_emit_answer(p, token, THOLE_UNAVAILABLE, THOLE_STR("the partition is not open"));
        return;
    }
    if (p->entries.questions_len >= QUERIES_PENDING_MAX) {
        queries_emit_answer(p, token, THOLE_UNAVAILABLE, THOLE_STR("too many queries are waiting"));
        return;
    }
    struct entry *entry = intake_entry(p, in->instance);
    struct question *question = memory_new(sizeof *question);
    arena_init(&question->arena, MESSAGE_BYTES_MAX);
    question->token = token;
    if (arena_dup(&question->arena, in->query, &question->name) != THOLE_OK ||
        arena_dup(&question->arena, in->input, &question->input) != THOLE_OK)
        env_no_memory(p->env);
    entry_ask(&p->entries, entry, question);
    if (!entry_waits_for_history(entry->state) && entry->state != ENTRY_CONTINUED)
        queries_answer(p, entry);
}

void queries_refuse(struct instances *p, struct entry *entry, thole_status status, thole_slice text)
{
    for (const struct question *question = entry->questions; question != NULL; question = question->next)
        queries_emit_answer(p, question->token, status, text);
    entry_drop_questions(&p->entries, entry);
}

static void queries_recall(struct instances *p, struct entry *entry)
{
    if (entry->in_flight > 0 ||
        entry->ready) /* answered when its last record is committed, after the messages that wait for it */
        return;
    if (p->entries.recalled_len >= RECALLS_MAX) {
        queries_refuse(p, entry, THOLE_UNAVAILABLE,
                       THOLE_STR("too many instances that have ended are asked"));
        return;
    }
    entry_become(&p->entries, entry, ENTRY_RECALLED);
    intake_load(p, entry);
}

static void answer_by(struct instances *p, struct entry *entry, struct instance *instance,
                      const struct question *question)
{
    thole_slice output = {0};
    thole_error err = {0};
    if (thole_slice_equal(question->name, THOLE_STR(QUERY_SOURCE))) {
        answer_source(p, question->token, instance);
        return;
    }
    thole_status const status =
        watched_query(p, entry, instance, question->name, question->input, &output, &err);
    queries_emit_answer(p, question->token, status, status == THOLE_OK ? output : thole_slice_from(err.text));
}

void queries_answer_by(struct instances *p, struct entry *entry, struct instance *instance)
{
    for (const struct question *question = entry->questions; question != NULL; question = question->next)
        answer_by(p, entry, instance, question);
    entry_drop_questions(&p->entries, entry);
}

void queries_answer(struct instances *p, struct entry *entry)
{
    switch (entry->state) {
    case ENTRY_LIVE: queries_answer_by(p, entry, entry->running.instance); break;
    case ENTRY_ENDED: queries_recall(p, entry); break;
    case ENTRY_ABSENT:
    case ENTRY_EARLY:
        queries_refuse(p, entry, THOLE_NOT_FOUND, THOLE_STR("there is no such instance"));
        break;
    case ENTRY_BLOCKED:
    case ENTRY_UNREADABLE: queries_refuse(p, entry, THOLE_INVALID, entry_blocked_text(entry)); break;
    case ENTRY_CONTINUED:
    case ENTRY_LOADING:
    case ENTRY_TO_LOAD:
    case ENTRY_RECALLED: assert(false && "its next state answers"); break;
    }
}
