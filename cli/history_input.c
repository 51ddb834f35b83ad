/* Histories from a file. */
#include "history_input.h"
#include "client_internal.h"
#include "file_fault.h"
#include "history_file.h"
#include <errno.h>
#include <string.h>

struct reading {
    const struct history_input *input;
    struct buf instance;
    bool skipped; /* not wanted */
    bool found;
    thole_error *reterr;
};

static thole_status history_input_on_begin(void *arg, thole_slice instance)
{
    struct reading *reading = arg;
    thole_slice const only = reading->input->only;
    reading->skipped = only.len > 0 && !thole_slice_equal(only, instance);
    if (reading->skipped)
        return THOLE_OK;
    reading->found = true;
    buf_clear(&reading->instance);
    buf_slice(&reading->instance, instance);
    THOLE_TRY(buf_status(&reading->instance));
    return reading->input->begin(reading->input->arg, buf_bytes(&reading->instance));
}

static thole_status history_input_on_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    struct reading *reading = arg;
    struct record record;
    struct arena arena;
    if (reading->skipped)
        return THOLE_OK;
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status status =
        history_decode(bytes, buf_bytes(&reading->instance), &arena, &record, reading->reterr);
    if (status == THOLE_OK && record.kind == RECORD_TURN)
        status = reading->input->record(reading->input->arg, sequence, &record, bytes);
    arena_release(&arena);
    return status;
}

static thole_status history_input_on_end(void *arg)
{
    struct reading *reading = arg;
    return reading->skipped ? THOLE_OK : reading->input->end(reading->input->arg);
}

/* The path in front of what is said. */
static thole_status fail_of(const char *path, thole_status status, thole_error *reterr)
{
    thole_error const said = *reterr;
    return thole_fail(reterr, status, "%.300s: %.600s", path, said.text);
}

thole_status history_input_read(const char *path, const struct history_input *input, thole_error *reterr)
{
    bool const standard = strcmp(path, "-") == 0;
    struct reading reading = {.input = input, .reterr = reterr};
    struct history_file_reader const reader = {.begin = history_input_on_begin,
                                               .record = history_input_on_record,
                                               .end = history_input_on_end,
                                               .arg = &reading};
    FILE *from = standard ? stdin : fopen(path, "re");
    if (from == NULL)
        return file_fault_read(path, errno, reterr);
    buf_init(&reading.instance, THOLE_ID_BYTES_MAX);
    thole_status status = history_file_read(from, &reader, reterr);
    if (status == THOLE_OK && !reading.found && input->only.len > 0)
        status = thole_fail(reterr, THOLE_NOT_FOUND, "%.300s has no history of \"%.*s\"", path,
                            THOLE_FMT(input->only));
    else if (status != THOLE_OK && status != THOLE_CANCELLED)
        status = fail_of(path, status, reterr);
    buf_release(&reading.instance);
    if (!standard)
        (void)fclose(from);
    return status;
}
