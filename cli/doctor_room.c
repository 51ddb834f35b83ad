/* doctor: how much is stored, how fast it grows, and for how many days there is room. */
#include "doctor_checks.h"
#include "forecast.h"
#include <inttypes.h>
#include <stdio.h>

enum { AMOUNT_BYTES = 32, ROOM_TEXT_BYTES = 200 };

/* "1.5 GB" */
static const char *amount_text(uint64_t bytes, char ret[AMOUNT_BYTES])
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double amount = (double)bytes;
    size_t unit = 0;
    for (; amount >= 1000 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        amount /= 1000;
    (void)snprintf(ret, AMOUNT_BYTES, unit == 0 ? "%.0f %s" : "%.1f %s", amount, units[unit]);
    return ret;
}

static void growth_text(const struct forecast *forecast, char ret[ROOM_TEXT_BYTES])
{
    char grown[AMOUNT_BYTES];
    uint64_t const days = forecast_days(forecast), minutes = forecast_span_ms(forecast) / 60000;
    if (!forecast_is_known(forecast))
        (void)snprintf(ret, ROOM_TEXT_BYTES, "too early to say how it grows");
    else if (forecast_per_day(forecast) == 0)
        (void)snprintf(ret, ROOM_TEXT_BYTES, "no more than %" PRIu64 " minutes ago", minutes);
    else if (days == FORECAST_NEVER)
        (void)snprintf(ret, ROOM_TEXT_BYTES, "%s a day more, by the last %" PRIu64 " minutes",
                       amount_text(forecast_per_day(forecast), grown), minutes);
    else
        (void)snprintf(ret, ROOM_TEXT_BYTES,
                       "%s a day more, by the last %" PRIu64 " minutes: full in %" PRIu64 " days",
                       amount_text(forecast_per_day(forecast), grown), minutes, days);
}

/* @p streams 0: it is no kind of streams. */
static void report_room(struct doctor_report *report, thole_slice what, uint64_t streams, uint64_t messages,
                        const struct forecast *forecast)
{
    char has[AMOUNT_BYTES], most[AMOUNT_BYTES], growth[ROOM_TEXT_BYTES], count[80] = "",
                                                                         of[60] = ", without a limit";
    bool const short_of = forecast_days(forecast) < FORECAST_WARN_DAYS;
    growth_text(forecast, growth);
    if (streams > 0)
        (void)snprintf(count, sizeof count, " (%" PRIu64 " stream%s, %" PRIu64 " message%s)", streams,
                       streams == 1 ? "" : "s", messages, messages == 1 ? "" : "s");
    if (forecast->bytes_max > 0)
        (void)snprintf(of, sizeof of, " of at most %s", amount_text(forecast->bytes_max, most));
    report_add(report, "room", short_of ? FINDING_WARN : FINDING_OK,
               short_of ? "raise the limit, or make room: thole prune, thole delete; nats stream report"
                        : NULL,
               "%.*s%s: %s%s, %s", THOLE_FMT(what), count, amount_text(forecast->bytes, has),
               streams > 0 && forecast->bytes_max == 0 ? "" : of, growth);
}

/* ---- without an engine that tells ---- */

static void ignore_defect(void *arg, const struct defect *defect)
{
    (void)arg, (void)defect;
}

/* By what it has become since it was made. */
static struct forecast since_created(uint64_t created_ms, uint64_t now_ms, uint64_t bytes, uint64_t bytes_max)
{
    struct forecast forecast = {.from_ms = 0};
    if (created_ms != 0 && created_ms < now_ms)
        forecast_take(&forecast, created_ms, 0, bytes_max);
    forecast.at_ms = now_ms;
    forecast.bytes = bytes;
    forecast.bytes_max = bytes_max;
    return forecast;
}

static void report_seen(struct doctor_report *report, const struct topology_seen *seen)
{
    for (size_t object = 0; object < DEFECT_OBJECTS; object++) {
        const struct topology_usage *const usage = &seen->kinds[object];
        struct forecast const forecast = since_created(usage->created_ms, seen->now_ms, usage->bytes, 0);
        if (usage->streams > 0)
            report_room(report, thole_slice_from(defect_objects[object]), usage->streams, usage->messages,
                        &forecast);
    }
    for (size_t i = 0; i < seen->limits_len; i++) {
        const struct topology_limit *const limit = &seen->limits[i];
        struct forecast const forecast =
            since_created(limit->created_ms, seen->now_ms, limit->bytes, limit->bytes_max);
        report_room(report, thole_slice_from(limit->name), 0, 0, &forecast);
    }
}

/* The server grows at least as the account does. */
static void report_server(struct doctor_report *report, const struct overview_room *server,
                          const struct cluster *cluster)
{
    const struct cluster_room *account = cluster->room;
    while (account != NULL && !thole_slice_equal(account->what, THOLE_STR("account")))
        account = account->next;
    if (account == NULL || server->file_bytes_max == 0)
        return;
    struct forecast forecast = account->forecast;
    uint64_t const grown = forecast.bytes > forecast.from_bytes ? forecast.bytes - forecast.from_bytes : 0;
    forecast.bytes = server->file_bytes;
    forecast.from_bytes = server->file_bytes > grown ? server->file_bytes - grown : 0;
    forecast.bytes_max = server->file_bytes_max;
    report_room(report, THOLE_STR("server (max_file)"), 0, 0, &forecast);
}

void doctor_room(struct doctor_report *report, struct connection *connection, const struct topology *topology,
                 const struct cluster *cluster, const struct overview_room *server)
{
    struct topology_seen seen;
    struct overview_room account = {.file_bytes = 0};
    thole_error error = {.status = THOLE_OK};
    for (const struct cluster_room *room = cluster->room; room != NULL; room = room->next)
        report_room(report, room->what, room->streams, room->messages, &room->forecast);
    report_server(report, server, cluster);
    if (cluster->room != NULL)
        return;
    error.status = topology_look(connection, topology, &seen, ignore_defect, NULL, &error);
    if (error.status != THOLE_OK || seen.hidden > 0)
        report_add(report, "room", FINDING_SKIP,
                   "thole doctor --nats-permissions auditor says what a user must be allowed to",
                   "no engine tells how much is stored, and this user cannot see the streams");
    else
        report_seen(report, &seen);
    error.status = overview_account(connection, topology->replicas, &account, NULL);
    if (error.status == THOLE_OK) {
        struct forecast const forecast = since_created(0, 0, account.file_bytes, account.file_bytes_max);
        report_room(report, THOLE_STR("account"), 0, 0, &forecast);
    }
}
