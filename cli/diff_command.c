/* diff: where two histories differ first, or a history and what a program decides. */
#include "cells.h"
#include "client_internal.h"
#include "hash.h"
#include "history_input.h"
#include "jscan.h"
#include "json_check.h"
#include "line_read.h"
#include "memory.h"
#include "terminal.h"
#include "timeline.h"
#include "values.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SIDE_BYTES_MAX = 256 * 1024 * 1024,
    TEXT_BYTES_MAX = 8192,
    SHOWN_BYTES = 256, /* kept of each event */
    COLUMNS = 60,      /* of a side */
    COLUMNS_MIN = 10,
    LINE_REST = 16,   /* columns beside the two sides */
    LINES_BEFORE = 5, /* of what is the same */
    LINES_BEHIND = 5,
    REPORT_BYTES_MAX = 1024 * 1024,
    EXIT_DIFFERENT = 1, /* as of diff(1) */
    EXIT_TROUBLE = 2,
};

struct line { /* an event */
    uint64_t execution, id;
    uint64_t hash; /* of all that is compared */
    thole_slice text;
};

struct side {
    const char *word; /* of the command line */
    thole_slice instance;
    struct arena arena;
    struct buf lines; /* struct line */
    size_t histories;
    thole_error *reterr;
};

static size_t side_len(const struct side *side)
{
    return side->lines.len / sizeof(struct line);
}

static const struct line *side_at(const struct side *side, size_t i)
{
    return i < side_len(side) ? &((const struct line *)(const void *)side->lines.ptr)[i] : NULL;
}

static void side_init(struct side *side, const char *word)
{
    *side = (struct side){.word = word};
    arena_init(&side->arena, SIDE_BYTES_MAX);
    buf_init(&side->lines, SIDE_BYTES_MAX);
}

static void side_release(struct side *side)
{
    arena_release(&side->arena);
    buf_release(&side->lines);
}

static thole_status side_add(struct side *side, const struct line *from)
{
    struct line line = *from;
    if (line.text.len > SHOWN_BYTES)
        line.text.len = SHOWN_BYTES;
    if (arena_dup(&side->arena, line.text, &line.text) != THOLE_OK)
        return thole_fail(side->reterr, THOLE_LIMIT, "a history of more than %d MiB", SIDE_BYTES_MAX >> 20);
    buf_append(&side->lines, &line, sizeof line);
    return buf_status(&side->lines) == THOLE_OK
               ? THOLE_OK
               : thole_fail(side->reterr, THOLE_LIMIT, "a history of more than %d MiB", SIDE_BYTES_MAX >> 20);
}

/* ---- the two sides ---- */

/* An id that begins with the instance's own, as its children's do, is the same in another instance. */
static uint64_t hash_other(uint64_t seed, thole_slice own, thole_slice other)
{
    if (own.len > 0 && other.len >= own.len && memcmp(other.ptr, own.ptr, own.len) == 0)
        other = (thole_slice){other.ptr + own.len, other.len - own.len};
    return hash_bytes(seed, other);
}

/* Not: times, but for how long a timer is; request ids; sequences. */
static uint64_t diff_command_hash_of(thole_slice own, const thole_history_event *event)
{
    uint64_t hash = hash_bytes(1, thole_slice_from(event->kind));
    hash = hash_number(hash, event->ref);
    hash = hash_bytes(hash, event->name);
    hash = hash_bytes(hash, event->data);
    hash = hash_number(hash, event->try_number);
    hash = hash_number(hash, event->version);
    hash = hash_number(hash, (uint64_t)event->status);
    hash = hash_bytes(hash, thole_slice_from(event->cause));
    hash = hash_bytes(hash, event->error_type);
    hash = hash_bytes(hash, event->queue);
    hash = hash_number(hash, event->pruned_before);
    hash = hash_number(hash, event->due_ms > event->time_ms ? event->due_ms - event->time_ms : 0);
    return hash_other(hash, own, event->instance);
}

static thole_status diff_command_take_event(void *arg, const thole_history_event *event)
{
    struct side *side = arg;
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    timeline_text(event, &text);
    thole_status const status =
        side_add(side, &(struct line){event->execution, event->id,
                                      diff_command_hash_of(side->instance, event), buf_bytes(&text)});
    buf_release(&text);
    return status;
}

/* ---- reading ---- */

static thole_status diff_command_on_begin(void *arg, thole_slice instance)
{
    struct side *side = arg;
    if (side->histories++ > 0)
        return thole_fail(side->reterr, THOLE_INVALID, "it has several histories: --instance says which one");
    return arena_dup(&side->arena, instance, &side->instance);
}

static thole_status diff_command_on_record(void *arg, uint64_t sequence, const struct record *record,
                                           thole_slice bytes)
{
    (void)bytes;
    for (size_t i = 0; i < record->turn.events_len; i++) {
        thole_history_event const event = history_event_of(sequence, &record->turn, &record->turn.events[i]);
        THOLE_TRY(diff_command_take_event(arg, &event));
    }
    return THOLE_OK;
}

static thole_status diff_command_on_end(void *arg)
{
    (void)arg;
    return THOLE_OK;
}

static bool is_file(const char *word)
{
    return word[0] == '@';
}

/* "@FILE", or an id. */
static thole_status side_read(struct side *side, const struct cli *cli, thole_client *client,
                              thole_error *reterr)
{
    side->reterr = reterr;
    if (is_file(side->word)) {
        struct history_input const input = {.only = thole_slice_from(cli->options.instance),
                                            .begin = diff_command_on_begin,
                                            .record = diff_command_on_record,
                                            .end = diff_command_on_end,
                                            .arg = side};
        THOLE_TRY(history_input_read(side->word + 1, &input, reterr));
        return side->histories > 0
                   ? THOLE_OK
                   : thole_fail(reterr, THOLE_NOT_FOUND, "%.300s has no history", side->word + 1);
    }
    side->instance = thole_slice_from(side->word);
    return thole_client_history(client, side->instance, diff_command_take_event, side, reterr);
}

/* ---- printing ---- */

/* Of one side, on a terminal that may be narrow. */
static unsigned side_columns(void)
{
    unsigned const room = terminal_columns();
    if (room == 0 || room >= LINE_REST + 2 * COLUMNS)
        return COLUMNS;
    return room > LINE_REST + 2 * COLUMNS_MIN ? (room - LINE_REST) / 2 : COLUMNS_MIN;
}

static void diff_command_print_line(const struct line *a, const struct line *b, char mark)
{
    unsigned const columns = side_columns();
    const struct line *either = a != NULL ? a : b;
    (void)printf("%4" PRIu64 "  %4" PRIu64 "  ", either->execution, either->id);
    print_cell(a == NULL ? (thole_slice){NULL, 0} : a->text, columns);
    (void)printf("%c ", mark);
    print_last_cell(b == NULL ? (thole_slice){NULL, 0} : b->text, columns);
}

static bool diff_command_is_same(const struct line *a, const struct line *b)
{
    return a != NULL && b != NULL && a->execution == b->execution && a->id == b->id && a->hash == b->hash;
}

static char mark_of(const struct line *a, const struct line *b)
{
    if (diff_command_is_same(a, b))
        return ' ';
    return a == NULL ? '>' : b == NULL ? '<' : '|';
}

static void diff_command_print_table(const struct side *a, const struct side *b, size_t first, const char *at)
{
    unsigned const columns = side_columns();
    (void)printf("%4s  %4s  ", "EXEC", "ID");
    print_cell(thole_slice_from(a->word), columns);
    (void)printf("  ");
    print_last_cell(thole_slice_from(b->word), columns);
    size_t i = first > LINES_BEFORE ? first - LINES_BEFORE : 0;
    if (i > 0)
        (void)printf("      %zu events are the same\n", i);
    for (; i <= first + LINES_BEHIND; i++) {
        const struct line *x = side_at(a, i), *y = side_at(b, i);
        if (x != NULL || y != NULL)
            diff_command_print_line(x, y, mark_of(x, y));
        if (i == first && at != NULL)
            (void)printf("%*s asked for at %s\n", (int)(LINE_REST + columns), "", at);
    }
}

static void member_event(struct json *json, const char *key, const struct line *line)
{
    json_key(json, key);
    if (line == NULL) {
        json_null(json);
        return;
    }
    json_object(json);
    json_member_number(json, "execution", line->execution);
    json_member_number(json, "id", line->id);
    json_member(json, "text", line->text);
    json_end(json);
}

static int print_result(const struct cli *cli, const struct side *a, const struct side *b, const char *at)
{
    size_t const len = side_len(a) > side_len(b) ? side_len(a) : side_len(b);
    size_t first = 0;
    while (first < len && diff_command_is_same(side_at(a, first), side_at(b, first)))
        first++;
    bool const same = first == len;
    if (cli->options.output != OUTPUT_TABLE) {
        struct json json;
        json_document(&json, stdout, "thole.diff.v1");
        json_member_bool(&json, "same", same);
        json_member_number(&json, "same_events", first);
        member_event(&json, "a", side_at(a, first));
        member_event(&json, "b", side_at(b, first));
        if (at != NULL)
            json_member_text(&json, "asked_for_at", at);
        json_end(&json);
    } else if (same) {
        (void)printf("the same: %zu events\n", len);
    } else {
        diff_command_print_table(a, b, first, at);
    }
    return same ? EXIT_DONE : EXIT_DIFFERENT;
}

static int diff_command_trouble(const struct cli *cli, const char *object, const thole_error *error)
{
    int const code = cli_exit_code(error->status);
    return cli_complain_with(cli, object, error, code == EXIT_GENERIC ? EXIT_TROUBLE : code, NULL);
}

/* ---- a program ---- */

struct verdict { /* of PROGRAM replay */
    int code;
    thole_slice instance; /* whose reports count */
    bool diverged;
    uint64_t execution, event;
    struct buf asked, at;
};

/* "event 4: history has X, the code asked for Y" */
static void take_report(thole_slice report, struct verdict *verdict)
{
    static const char before[] = ", the code asked for ";
    struct buf text;
    thole_slice value;
    if (verdict->diverged || !json_find(report, "kind", &value) || !json_text_is(value, "DIVERGED"))
        return;
    buf_init(&text, REPORT_BYTES_MAX);
    bool const its = json_find(report, "instance", &value) && json_text(value, &text) &&
                     thole_slice_equal(buf_bytes(&text), verdict->instance);
    buf_clear(&text);
    if (its && json_find(report, "text", &value) && json_text(value, &text)) {
        const char *asked = strstr(buf_cstr(&text), before);
        verdict->diverged = true;
        verdict->event = strtoull(buf_cstr(&text) + strcspn(buf_cstr(&text), " "), NULL, 10);
        buf_printf(&verdict->asked, "the code asks for %s",
                   asked == NULL ? buf_cstr(&text) : asked + strlen(before));
    }
    if (its && json_find(report, "execution", &value))
        (void)json_uint(value, &verdict->execution);
    if (its && json_find(report, "asked_for_at", &value))
        (void)json_text(value, &verdict->at);
    buf_release(&text);
}

static void read_reports(int fd, struct verdict *verdict)
{
    struct buf line;
    FILE *from = fdopen(fd, "r");
    buf_init(&line, REPORT_BYTES_MAX);
    while (from != NULL && line_read(from, &line) != LINE_READ_NONE)
        if (buf_status(&line) == THOLE_OK && json_is_valid(buf_bytes(&line)))
            take_report(buf_bytes(&line), verdict);
    if (from != NULL)
        (void)fclose(from);
    buf_release(&line);
}

/* @p words as the verb replay takes them: it finds the program after --. */
static int diff_command_run_replay(struct cli *cli, struct verdict *verdict)
{
    int ends[2];
    if (pipe(ends) != 0)
        return EXIT_TROUBLE;
    (void)fflush(stdout);
    pid_t const pid = fork();
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        cli->reads_replay = true;
        cli->options.file = is_file(cli->words[0]) ? cli->words[0] + 1 : NULL;
        if (cli->options.file != NULL) {
            cli->words++;
            cli->words_len--;
        }
        _exit(command_replay(cli));
    }
    (void)close(ends[1]);
    int status = 0;
    if (pid > 0)
        read_reports(ends[0], verdict);
    else
        (void)close(ends[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    verdict->code = pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_TROUBLE;
    return EXIT_DONE;
}

/* The events of the history, as far as the code repeats them; then those that it asked for instead. */
static thole_status make_other(const struct side *a, const struct verdict *verdict, struct side *b)
{
    for (size_t i = 0; i < side_len(a); i++) {
        const struct line *line = side_at(a, i);
        bool const there = verdict->diverged && line->execution == verdict->execution;
        if (there && line->id >= verdict->event)
            break;
        THOLE_TRY(side_add(b, line));
    }
    if (!verdict->diverged)
        return THOLE_OK;
    return side_add(b, &(struct line){verdict->execution, verdict->event, 0, buf_bytes(&verdict->asked)});
}

static int diff_program(struct cli *cli, struct side *a, struct side *b)
{
    struct verdict verdict = {.instance = a->instance};
    thole_error error = {.text = ""};
    buf_init(&verdict.asked, REPORT_BYTES_MAX);
    buf_init(&verdict.at, REPORT_BYTES_MAX);
    b->word = cli->words[cli->words_len - cli->program_len];
    b->reterr = &error;
    int code = diff_command_run_replay(cli, &verdict);
    if (code == EXIT_DONE && verdict.code != EXIT_DONE && verdict.code != EXIT_DIVERGED)
        code = verdict.code == EXIT_GENERIC ? EXIT_TROUBLE : verdict.code; /* the verb has printed the
                                                                              reason */
    else if (code == EXIT_DONE && (error.status = make_other(a, &verdict, b)) != THOLE_OK)
        code = diff_command_trouble(cli, "", &error);
    else if (code == EXIT_DONE)
        code = print_result(cli, a, b, verdict.at.len > 0 ? buf_cstr(&verdict.at) : NULL);
    buf_release(&verdict.asked);
    buf_release(&verdict.at);
    return code;
}

/* ---- the verb ---- */

static int diff_command_diff(struct cli *cli, thole_client *client, int sides)
{
    struct side side[2];
    thole_error error = {.text = ""};
    int code = EXIT_DONE;
    for (int i = 0; i < 2; i++)
        side_init(&side[i], i < sides ? cli->words[i] : "");
    for (int i = 0; i < sides && code == EXIT_DONE; i++) {
        error.status = side_read(&side[i], cli, client, &error);
        if (error.status != THOLE_OK)
            code = diff_command_trouble(cli, is_file(cli->words[i]) ? "" : cli->words[i], &error);
    }
    if (code == EXIT_DONE)
        code =
            sides == 2 ? print_result(cli, &side[0], &side[1], NULL) : diff_program(cli, &side[0], &side[1]);
    for (int i = 0; i < 2; i++)
        side_release(&side[i]);
    return code;
}

int command_diff(struct cli *cli)
{
    int const sides = cli->words_len - cli->program_len;
    bool client_wanted = false;
    thole_client *client = NULL;
    int code = EXIT_DONE;
    if (sides != (cli->program_len > 0 ? 1 : 2))
        return cli_misused(cli, "what is to be compared? A and B, or A and a PROGRAM behind --");
    for (int i = 0; i < sides; i++)
        client_wanted |= !is_file(cli->words[i]);
    if (client_wanted && (client = cli_connect(cli, &code)) == NULL)
        return code;
    code = diff_command_diff(cli, client, sides);
    thole_client_close(client);
    return code;
}
