#include "crash_report.h"
#include "clock.h"
#include "crash_page.h"
#include "crashes.h"
#include "inbox_prefix.h"
#include "log.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LIFE_S = 15, /* the reporter's process ends after that time in any case */
    CALL_TIMEOUT_MS = 1500,
    TRY_FOR_MS = 8000,
    NAP_MS = 100,
    NANOS_PER_MILLI = 1000000,
};

struct report {
    const struct host_options *options;
    struct crash ended; /* from the kernel, if the engine reported nothing */
    struct crash told;  /* by the engine */
    const struct crash *crash;
    struct connection *connection;
};

static void look_at_status(struct report *report, int status)
{
    report->ended.place = -1;
    report->ended.kind = CRASH_NONE;
    if (WIFSIGNALED(status)) {
        report->ended.kind = CRASH_KILLED;
        report->ended.number = WTERMSIG(status);
    } else if (WIFEXITED(status)) {
        report->ended.kind = CRASH_CODE;
        report->ended.number = WEXITSTATUS(status);
    }
}

static thole_status crash_report_store(struct report *report, const struct crash_place *place,
                                       thole_slice text, uint64_t *ret_count, thole_error *reterr)
{
    char build[BUILD_ID_BYTES];
    char inbox[INBOX_PREFIX_BYTES_MAX + 1];
    struct inbox_owner const owner = {.ns = report->options->ns, .role = "engine"};
    struct connection_options const options = {
        .url = report->options->nats_url,
        .creds = report->options->nats_creds,
        .ca = report->options->nats_ca,
        .cert = report->options->nats_cert,
        .key = report->options->nats_key,
        .server_name = report->options->nats_server_name,
        .inbox = inbox_prefix_or_own(report->options->nats_inbox, &owner, inbox),
        .api_prefix = report->options->nats_api_prefix,
        .name = "thole-reporter",
        .connect_timeout_ms = CALL_TIMEOUT_MS,
        .request_timeout_ms = CALL_TIMEOUT_MS};
    struct crash_entry const entry = {
        .instance = {place->instance, place->instance_len},
        .execution = place->execution,
        .build = thole_slice_from(build_id((const void *)(uintptr_t)place->code, build)),
        .orchestration = thole_slice_from(place->orchestration),
        .version = place->version,
        .text = text,
        .time_ms = clock_wall_ms()};
    if (report->connection == NULL)
        THOLE_TRY(connection_open(&options, &report->connection, reterr));
    return crashes_add(report->connection, report->options->ns, place->partition, &entry,
                       report->crash->place >= 0, ret_count, reterr);
}

static bool crash_report_insist(struct report *report, const struct crash_place *place, thole_slice text,
                                uint64_t *ret_count)
{
    thole_error err = {0};
    uint64_t const until = clock_monotonic_ms() + TRY_FOR_MS;
    while (crash_report_store(report, place, text, ret_count, &err) != THOLE_OK) {
        if (clock_monotonic_ms() >= until) {
            log_line(LOG_LEVEL_ERROR, "supervisor", "the crash could not be stored: %s", err.text);
            return false;
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = NAP_MS * (long)NANOS_PER_MILLI}, NULL);
    }
    return true;
}

static bool report_place(struct report *report, const struct crash_place *place)
{
    struct buf text;
    uint64_t count = 0;
    struct log_fields const fields = {.instance = {place->instance, place->instance_len},
                                      .execution = place->execution};
    buf_init(&text, CRASH_TEXT_BYTES);
    crash_report_text(report->crash, place, &text);
    if (report->crash->place < 0)
        buf_text(&text, ", or in other code of the process");
    thole_slice const shown = buf_status(&text) == THOLE_OK ? buf_bytes(&text) : THOLE_STR("a crash");
    log_line_of(LOG_LEVEL_ERROR, "supervisor", &fields, "the engine crashed: version=%u: %.*s",
                place->version, THOLE_FMT(shown));
    bool const stored = crash_report_insist(report, place, shown, &count);
    buf_release(&text);
    if (stored)
        log_line_of(LOG_LEVEL_WARN, "supervisor", &fields,
                    "crash %llu with this build is stored; it is tried in a forked copy from now on",
                    (unsigned long long)count);
    return stored;
}

/* No orchestration's code ran, or the engine was killed from outside, for which no instance is
 * responsible. */
static void crash_report_report_death(const struct report *report)
{
    struct buf text;
    buf_init(&text, CRASH_TEXT_BYTES);
    crash_text(report->crash, NULL, &text);
    log_line(LOG_LEVEL_ERROR, "supervisor", "the engine died: %s; no orchestration's code is to blame",
             buf_status(&text) == THOLE_OK ? buf_cstr(&text) : "a crash");
    buf_release(&text);
}

int crash_report(const struct host_options *options, struct crash_page *page, int status)
{
    struct report report = {.options = options, .crash = &report.told};
    bool all = true, any = false;
    (void)alarm(LIFE_S);
    look_at_status(&report, status);
    crash_take(page, &report.told);
    if (atomic_load(&report.told.state) == CRASH_UNREPORTED)
        report.crash = &report.ended;
    bool const silent = report.crash == &report.ended;
    bool const blames = !silent || report.ended.kind == CRASH_CODE ||
                        (report.ended.kind == CRASH_KILLED && report.ended.number != SIGKILL);
    for (size_t i = 0; blames && i < page->places_len && i < CRASH_PLACES_MAX; i++) {
        struct crash_place place;
        if ((!silent && (int)i != report.told.place) || !crash_take_place(&page->places[i], &place))
            continue;
        any = true;
        all &= report_place(&report, &place);
    }
    if (!any)
        crash_report_report_death(&report);
    connection_close(report.connection);
    return all ? 0 : 1;
}
