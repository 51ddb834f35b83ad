#include "churn_fake.h"
#include "orchestrations.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_MS_MAX = 900 };

static const char prefix[] = "churn-";

struct life {
    size_t instance;
    uint64_t deleted; /* sequence of the message in the inbox */
};

static uint64_t draw(struct world *w, uint64_t bound)
{
    w->churn_rng ^= w->churn_rng << 13;
    w->churn_rng ^= w->churn_rng >> 7;
    w->churn_rng ^= w->churn_rng << 17;
    return (w->churn_rng >> 11) % bound;
}

static uint64_t ask(struct world *w, size_t instance, const struct message *message)
{
    struct buf bytes;
    buf_init(&bytes, MESSAGE_BYTES_MAX);
    if (message_encode(message, &bytes) != THOLE_OK)
        abort();
    uint64_t const sequence = inbox_publish(w, instance, keep_slice(w, buf_bytes(&bytes)), SENDER_CLIENT);
    buf_release(&bytes);
    return sequence;
}

static void task_delete(struct world *w, void *arg, uint64_t value)
{
    struct life *const life = arg;
    (void)value;
    life->deleted = ask(w, life->instance,
                        &(struct message){.kind = MESSAGE_DELETE,
                                          .instance = w->instances[life->instance],
                                          .data = THOLE_STR("its time is over"),
                                          .request_id = w->instances[life->instance],
                                          .force = true});
}

static void task_start(struct world *w, void *arg, uint64_t value)
{
    char id[32];
    (void)arg, (void)value;
    if (!w->faults || w->lives_len == WORLD_LIVES_MAX ||
        w->instances_len + WORLD_LIVES_MAX > WORLD_INSTANCES_MAX)
        return;
    (void)snprintf(id, sizeof id, "%s%zu", prefix, w->lives_len);
    struct life *const life = keep(w, sizeof *life);
    life->instance = instance_add(w, thole_slice_from(id));
    w->lives[w->lives_len++] = life;
    (void)ask(w, life->instance,
              &(struct message){.kind = MESSAGE_START,
                                .instance = w->instances[life->instance],
                                .orchestration = thole_slice_from(ORCHESTRATIONS[0].name),
                                .data = THOLE_STR("a"),
                                .request_id = w->instances[life->instance]});
    after(w, 1 + draw(w, 2000), task_delete, life, 0);
    after(w, 1 + draw(w, PAUSE_MS_MAX), task_start, NULL, 0);
}

void churn_begin(struct world *w)
{
    w->churn_rng = w->seed * 2654435761u + 88172645463325252u;
    if (w->churns)
        after(w, 1 + draw(w, PAUSE_MS_MAX), task_start, NULL, 0);
}

/* An inbox that goes back gives what it still has again. */
bool churn_asks_no_more(const struct world *w, size_t instance)
{
    const struct inbox_stream *const inbox = w->inboxes[instance_partition(w, instance)];
    for (size_t i = 0; i < w->lives_len; i++)
        if (w->lives[i]->instance == instance)
            return w->lives[i]->deleted > 0 && w->lives[i]->deleted < inbox->first;
    return false;
}
