#include "store_batches.h"
#include "store_words.h"
#include "thole_cunit.h"
#include <stdlib.h>

enum { ROWS_MAX = 16 };

#define ADD_ROW(kind) &to->kind[to->kind##_len++]

/* a+ t+ q+ a row that is added, a- t- q- one that is removed, i= of an instance, i- of a removed one, d= a
 * deletion */
static void add_row(struct batch *to, const char *word)
{
    struct fields const f = fields_of(word + 2);
    thole_slice const instance = field_text(&f, 0);
    uint64_t const execution = field_number(&f, 1), id = field_number(&f, 2);
    bool const added = word[1] == '+';
    if (word[0] == 'a') {
        struct batch_activity *const row = added ? ADD_ROW(activities_added) : ADD_ROW(activities_removed);
        *row = (struct batch_activity){.instance = instance,
                                       .execution = execution,
                                       .activity_id = id,
                                       .try_number = (uint32_t)field_number(&f, 3),
                                       .queue = field_text(&f, 4),
                                       .activity = field_text(&f, 5),
                                       .try_timeout_ms = field_number(&f, 6),
                                       .details = field_text(&f, 7),
                                       .digest = field_text(&f, 8)};
    } else if (word[0] == 't') {
        struct batch_timer *const row = added ? ADD_ROW(timers_added) : ADD_ROW(timers_removed);
        *row = (struct batch_timer){instance, execution, id, field_number(&f, 3)};
    } else if (word[0] == 'q') {
        struct batch_quarantine *const row = added ? ADD_ROW(quarantine_added) : ADD_ROW(quarantine_removed);
        *row = (struct batch_quarantine){.instance = instance,
                                         .execution = execution,
                                         .activity_id = id,
                                         .queue = field_text(&f, 3),
                                         .activity = field_text(&f, 4),
                                         .try_number = (uint32_t)field_number(&f, 5),
                                         .lost = (uint32_t)field_number(&f, 6),
                                         .worker = field_text(&f, 7),
                                         .reason = field_text(&f, 8),
                                         .since_ms = field_number(&f, 9),
                                         .until_ms = field_number(&f, 10)};
    } else if (word[0] == 'd') {
        *(ADD_ROW(deletions)) =
            (struct batch_deletion){instance, execution, {id, field_number(&f, 3)}, field_number(&f, 4)};
    }
}

/* i=INSTANCE/EXECUTION/STATUS/UPDATED/SEQ/TURNS/ORCHESTRATION/VERSION/CREATED/DETAIL/CUSTOM/PARENT */
static void add_instance(struct batch *to, const char *word)
{
    struct fields const f = fields_of(word + 2);
    *(ADD_ROW(instances)) = (struct batch_instance){.instance = field_text(&f, 0),
                                                    .execution = field_number(&f, 1),
                                                    .status = (uint32_t)field_number(&f, 2),
                                                    .updated_ms = field_number(&f, 3),
                                                    .history_seq = field_number(&f, 4),
                                                    .turns = field_number(&f, 5),
                                                    .orchestration = field_text(&f, 6),
                                                    .version = (uint32_t)field_number(&f, 7),
                                                    .created_ms = field_number(&f, 8),
                                                    .detail = field_text(&f, 9),
                                                    .custom_status_set = f.len[10] > 0,
                                                    .custom_status = field_text(&f, 10),
                                                    .parent = field_text(&f, 11),
                                                    .removed = word[1] == '-'};
}

static struct batch *make_batch(const char *word, size_t rows)
{
    struct fields const f = fields_of(word);
    struct batch *const batch = batch_create((uint32_t)field_number(&f, 0), field_number(&f, 1));
    batch->projected = (struct projected){field_number(&f, 2), field_number(&f, 3)};
    batch->follows = (struct rows_state){{field_number(&f, 4), field_number(&f, 5)}, field_number(&f, 6)};
#define ROOM(kind) batch->kind = arena_array(&batch->arena, rows, sizeof *batch->kind);
    ROOM(activities_added)
    ROOM(activities_removed)
    ROOM(timers_added)
    ROOM(timers_removed)
    ROOM(quarantine_added)
    ROOM(quarantine_removed)
    ROOM(instances)
    ROOM(deletions)
#undef ROOM
    return batch;
}

size_t line_batches(struct batch *ret[LINE_BATCHES_MAX])
{
    size_t const more = line_number_of("rows");
    struct batch *batch = NULL;
    size_t n = 0;
    for (size_t i = 0; i < line.len; i++) {
        const char *const word = line.words[i];
        if (word[0] == 'p')
            ret[n++] = batch = make_batch(word + 1, ROWS_MAX + more);
        else if (strcmp(word, "durable") == 0)
            batch->durable = true;
        else if (word[0] == 'i')
            add_instance(batch, word);
        else if (word[0] != 'r')
            add_row(batch, word);
    }
    for (size_t i = 0; i < more; i++)
        add_row(batch, "t+many/1/1/5");
    return n;
}

void put_timers(const struct batch_timer *timers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        put_key(timers[i].instance, timers[i].execution, timers[i].timer_id);
        put_number("due", timers[i].due_ms);
        put_end();
    }
}

void put_activities(const struct batch_activity *rows, size_t n, size_t stride, const uint64_t *attempt)
{
    for (size_t i = 0; i < n; i++) {
        const struct batch_activity *const row =
            (const struct batch_activity *)(const void *)((const char *)rows + i * stride);
        put_key(row->instance, row->execution, row->activity_id);
        put_text("queue", row->queue);
        put_text("activity", row->activity);
        put_number("try", row->try_number);
        put_number("timeout", row->try_timeout_ms);
        put_text("details", row->details);
        put_text("digest", row->digest);
        if (attempt != NULL)
            put_number("attempt", *(const uint64_t *)(const void *)((const char *)attempt + i * stride));
        put_end();
    }
}
