/*
 * Questions to instances. They change nothing: a parked instance is loaded for them, and answers at once. One
 * that has ended is only remembered: its history is read once more, its code goes through it, all who wait
 * are answered, and it is let go. Its slot is LOADING meanwhile, so that what comes for it waits its turn.
 */
#include "machine.h"
#include <assert.h>
#include <stdlib.h>

static void question_destroy(struct question *question)
{
    arena_release(&question->arena);
    free(question);
}

void queries_release(struct slots *slots, struct slot *slot)
{
    for (struct question *next; slot->questions != NULL; slot->questions = next) {
        next = slot->questions->next;
        question_destroy(slot->questions);
        slots->questions_len--;
    }
}

static void answer(struct partition *p, uint64_t token, thole_status status, thole_slice data)
{
    struct partition_out *out = env_emit(&p->env, PARTITION_OUT_QUERY_ANSWER);
    out->token = token;
    out->status = status;
    out->data = env_copy(&p->env, data);
}

void queries_ask(struct partition *p, const struct partition_in *in)
{
    if (p->phase != PHASE_SERVING) {
        answer(p, in->token, THOLE_UNAVAILABLE, THOLE_STR("the partition is not open"));
        return;
    }
    if (p->slots.questions_len >= QUERIES_PENDING_MAX) {
        answer(p, in->token, THOLE_UNAVAILABLE, THOLE_STR("too many queries are waiting"));
        return;
    }
    struct slot *slot = intake_slot(p, in->instance);
    struct question *question = slot == NULL ? NULL : calloc(1, sizeof *question);
    if (question == NULL) {
        env_no_memory(&p->env);
        return;
    }
    arena_init(&question->arena, MESSAGE_BYTES_MAX);
    question->token = in->token;
    if (arena_dup(&question->arena, in->query, &question->name) != THOLE_OK ||
        arena_dup(&question->arena, in->bytes, &question->input) != THOLE_OK)
        env_no_memory(&p->env);
    struct question **at = &slot->questions;
    while (*at != NULL)
        at = &(*at)->next;
    *at = question;
    p->slots.questions_len++;
    if (slot->state != SLOT_LOADING && slot->state != SLOT_CONTINUED)
        queries_answer(p, slot);
}

void queries_refuse(struct partition *p, struct slot *slot, thole_status status, thole_slice text)
{
    for (const struct question *question = slot->questions; question != NULL; question = question->next)
        answer(p, question->token, status, text);
    queries_release(&p->slots, slot);
}

static void recall(struct partition *p, struct slot *slot)
{
    if (slot->in_flight > 0 || slot->ready) /* when its last record is committed; behind what waits for it */
        return;
    if (p->slots.recalled_len >= RECALLS_MAX) {
        queries_refuse(p, slot, THOLE_UNAVAILABLE, THOLE_STR("too many instances that have ended are asked"));
        return;
    }
    slot->state = SLOT_LOADING;
    slot->recalled = true;
    p->slots.recalled_len++;
    intake_load(p, slot);
}

static void answer_live(struct partition *p, struct slot *slot, const struct question *question)
{
    thole_slice output = {0};
    thole_error err = {0};
    thole_status const status = watched_query(p, slot, question->name, question->input, &output, &err);
    answer(p, question->token, status, status == THOLE_OK ? output : thole_slice_from(err.text));
}

void queries_answer(struct partition *p, struct slot *slot)
{
    if (slot->state == SLOT_ENDED && slot->instance == NULL) {
        recall(p, slot);
        return;
    }
    for (const struct question *question = slot->questions; question != NULL; question = question->next) {
        switch (slot->state) {
        case SLOT_LIVE:
        case SLOT_ENDED: answer_live(p, slot, question); break;
        case SLOT_ABSENT:
        case SLOT_EARLY:
            answer(p, question->token, THOLE_NOT_FOUND, THOLE_STR("there is no such instance"));
            break;
        case SLOT_BLOCKED: answer(p, question->token, THOLE_INVALID, slot->blocked_text); break;
        case SLOT_CONTINUED:
        case SLOT_LOADING: assert(false && "its next state answers"); break;
        }
    }
    queries_release(&p->slots, slot);
}
