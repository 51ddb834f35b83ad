#include "archive_facts.h"
#include "cells.h"
#include "json_file.h"
#include "memory.h"
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

static void take_turn(struct archive_facts *facts, const struct turn *turn)
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
        take_turn(facts, &record.turn);
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

void archive_facts_row(const struct archive_facts *facts, bool first)
{
    char ended[TIME_TEXT_BYTES];
    if (first)
        (void)printf("%-36s  %-24s  %-14s  %-24s  %7s  %s\n", "INSTANCE", "ORCHESTRATION", "STATUS", "ENDED",
                     "RECORDS", "BYTES");
    print_cell(facts->instance, 36, THOLE_ID_BYTES_MAX);
    text_time(facts->ended_ms, ended);
    (void)printf("  %-24s  %-14s  %-24s  %7" PRIu64 "  %" PRIu64 "\n", facts->orchestration,
                 thole_instance_status_name(facts->status), ended, facts->records, facts->bytes);
}
