#include "hostile_fake.h"
#include "checks.h"
#include "work_fake.h"

enum { PAUSE_MS_MAX = 400, LOOKS = 20 };

static uint64_t draw(struct world *w, uint64_t bound)
{
    w->hostile_rng ^= w->hostile_rng << 13;
    w->hostile_rng ^= w->hostile_rng >> 7;
    w->hostile_rng ^= w->hostile_rng << 17;
    return (w->hostile_rng >> 11) % bound;
}

static void forge(struct world *w, const struct row *row)
{
    struct work_item_fake item = {.instance = row->instance,
                                  .execution = row->execution,
                                  .activity_id = row->id,
                                  .try_number = row->try_number + (draw(w, 8) == 0),
                                  .queue = row->queue,
                                  .activity = row->activity,
                                  .input = THOLE_STR("stolen"),
                                  .nonce = THOLE_STR("0123456789abcdef0123456789abcdef"),
                                  .forged = true};
    const struct model_event *const scheduled = model_find(w, row->instance, row->execution, row->id);
    switch (draw(w, 4)) {
    case 0: item.activity = THOLE_STR("fast"); break;
    case 1: item.queue = THOLE_STR("elsewhere"); break;
    case 2: item.input = scheduled != NULL ? scheduled->data : item.input; break; /* all but the nonce */
    default: break;
    }
    w->stats.forged++;
    (void)work_publish_fake(w, &item);
}

void hostile_sees_row(struct world *w, const struct row *row)
{
    for (uint64_t n = w->hostile && w->faults ? draw(w, 4) : 0; n > 1; n--)
        forge(w, row);
}

static void task_forge(struct world *w, void *arg, uint64_t value)
{
    const struct row *row = NULL;
    size_t rows = 0;
    (void)arg, (void)value;
    if (!w->faults)
        return;
    while (store_row(w->store, rows) != NULL)
        rows++;
    for (int i = 0; i < LOOKS && rows > 0; i++) {
        row = store_row(w->store, draw(w, rows));
        if (row->kind == ROW_ACTIVITY && row->present) {
            forge(w, row);
            break;
        }
    }
    after(w, 1 + draw(w, PAUSE_MS_MAX), task_forge, NULL, 0);
}

void hostile_begin(struct world *w)
{
    if (w->hostile)
        after(w, 1 + draw(w, PAUSE_MS_MAX), task_forge, NULL, 0);
}
