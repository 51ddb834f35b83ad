#include "archive_facts.h"
#include "json_file.h"
#include "memory.h"
#include "table.h"
#include "text.h"
#include <inttypes.h>
#include <stdlib.h>

void archive_facts_begin(struct archive_facts *facts, uint32_t partition, thole_slice instance)
{
    *facts = (struct archive_facts){.partition = partition,
                                    .instance = {memory_copy(instance.ptr, instance.len), instance.len}};
}

void archive_facts_release(struct archive_facts *facts)
{
    free((void *)(uintptr_t)facts->instance.ptr);
    *facts = (struct archive_facts){.records = 0};
}

static void archive_facts_take_turn(struct archive_facts *facts, const struct turn *turn)
{
    const struct event *const end = turn_end(turn);
    facts->execution = turn->execution;
    bool const goes_on = end == NULL && !turn->more && turn->events_len > 0 &&
                         turn->events[turn->events_len - 1].kind == EVENT_CONTINUED_AS_NEW;
    facts->status = goes_on       ? THOLE_INSTANCE_CONTINUED_AS_NEW
                    : end == NULL ? THOLE_INSTANCE_UNKNOWN
                                  : end_status(end->kind);
    facts->ended_ms = end == NULL && !goes_on ? 0 : turn->time_ms;
    if (facts->first_execution == 0)
        facts->first_execution = turn->execution;
    if (facts->started_ms == 0)
        facts->started_ms = turn->time_ms;
    for (size_t i = 0; i < turn->events_len && facts->orchestration[0] == '\0'; i++)
        if (turn->events[i].kind == EVENT_STARTED)
            (void)snprintf(facts->orchestration, sizeof facts->orchestration, "%.*s",
                           THOLE_FMT(turn->events[i].name));
}

void archive_facts_take(struct archive_facts *facts, uint64_t sequence, thole_slice bytes)
{
    struct record record;
    struct arena arena;
    arena_init(&arena, CLIENT_ARENA_MAX);
    facts->records++;
    facts->bytes += bytes.len;
    facts->last_sequence = sequence;
    if (history_decode(bytes, facts->instance, &arena, &record, NULL) != THOLE_OK)
        facts->damaged = true;
    else if (record.kind == RECORD_TURN)
        archive_facts_take_turn(facts, &record.turn);
    arena_release(&arena);
}

void archive_facts_members(const struct archive_facts *facts, struct json *json)
{
    json_member(json, "instance", facts->instance);
    json_member_number(json, "partition", facts->partition);
    json_member_text(json, "orchestration", facts->orchestration);
    json_member_text(json, "status", thole_instance_status_name(facts->status));
    json_member_number(json, "first_execution", facts->first_execution);
    json_member_number(json, "execution", facts->execution);
    json_member_time(json, "started", facts->started_ms);
    json_member_time(json, "ended", facts->ended_ms);
    json_member_number(json, "records", facts->records);
    json_member_number(json, "bytes", facts->bytes);
}

static const struct table_column fact_columns[] = {
    {"INSTANCE", 36, 12, 0, false}, {"ORCHESTRATION", 24, 8, 1, false}, {"STATUS", 14, 10, 0, false},
    {"ENDED", 24, 24, 2, false},    {"RECORDS", 7, 7, 0, true},         {"BYTES", 20, 8, 0, false},
};

void archive_facts_row(const struct archive_facts *facts, bool first)
{
    char ended[TIME_TEXT_BYTES];
    struct table table;
    table_begin(&table, fact_columns, sizeof fact_columns / sizeof *fact_columns, first);
    text_time(facts->ended_ms, ended);
    table_cell(&table, TONE_PLAIN, facts->instance);
    table_text(&table, facts->orchestration);
    table_text(&table, thole_instance_status_name(facts->status));
    table_text(&table, ended);
    table_number(&table, facts->records);
    table_number(&table, facts->bytes);
    table_release(&table);
}
