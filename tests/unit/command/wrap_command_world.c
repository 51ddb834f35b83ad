/* The client and the system of the command: its requests are printed to stdout, after "<". The namespace
 * selects the answers: "shop" has some of everything, "none" is empty, and the name of a status, such as
 * NOT_FOUND, ends with that status. */
#include "wrap_command_world.h"
#include "bindings.h"
#include "client_holds.h"
#include "client_internal.h"
#include "clock.h"
#include "thole_cunit.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

enum { NOW_MS = 1000000000 };

static struct thole_client some_client;

struct played_command play;

/* ---- the client ---- */

static bool is_ns(const char *name)
{
    return strcmp(play.ns, name) == 0;
}

/* How each call ends. */
thole_status command_world_ends(thole_error *reterr)
{
    for (int status = THOLE_OK + 1; status <= THOLE_LATER; status++)
        if (is_ns(thole_status_name((thole_status)status)))
            return thole_fail(reterr, (thole_status)status, "so it is said");
    return THOLE_OK;
}

static thole_slice owned(const char *text)
{
    thole_slice const copy = {(const uint8_t *)strdup(text), strlen(text)};
    play.owned++;
    return copy;
}

thole_status __wrap_thole_client_open(const thole_client_options *options, thole_client **ret,
                                      thole_error *reterr)
{
    (void)snprintf(play.ns, sizeof play.ns, "%s", options->ns);
    (void)printf("< open %s %s %s %s %llu %zu\n", options->nats_url,
                 options->nats_creds == NULL ? "-" : options->nats_creds,
                 options->postgres == NULL ? "-" : options->postgres, options->ns,
                 (unsigned long long)options->timeout_ms, options->payload_max);
    if (is_ns("later") && play.refusals++ < 7)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "nobody answers");
    if (is_ns("away"))
        return thole_fail(reterr, THOLE_UNAVAILABLE, "nobody answers");
    if (is_ns("new"))
        return thole_fail(reterr, THOLE_NOT_FOUND, "no engine has ever run there");
    memset(&some_client, 0, sizeof some_client);
    some_client.ns = play.ns;
    (void)snprintf(some_client.topology.ns, sizeof some_client.topology.ns, "%s", options->ns);
    some_client.topology.partitions = 16;
    some_client.topology.replicas = 3;
    some_client.topology.payload_max = 200;
    play.tty = is_ns("tty");
    play.owned++;
    *ret = &some_client;
    return THOLE_OK;
}

void __wrap_thole_client_close(thole_client *client)
{
    play.owned -= client != NULL;
}

void __wrap_thole_client_release(thole_slice bytes)
{
    play.owned -= bytes.ptr != NULL;
    free((void *)(uintptr_t)bytes.ptr);
}

void __wrap_thole_outcome_release(thole_outcome *outcome)
{
    __wrap_thole_client_release(outcome->output);
    __wrap_thole_client_release(outcome->error_type);
}

static thole_status asked(const char *what, thole_slice instance, thole_slice more, thole_error *reterr)
{
    (void)printf("< %s %.*s (%.*s)\n", what, THOLE_FMT(instance), THOLE_FMT(more));
    return command_world_ends(reterr);
}

thole_status __wrap_thole_client_cancel(thole_client *client, thole_slice instance, thole_slice reason,
                                        thole_error *reterr)
{
    (void)client;
    return asked("cancel", instance, reason, reterr);
}

thole_status __wrap_thole_client_terminate(thole_client *client, thole_slice instance, thole_slice reason,
                                           thole_error *reterr)
{
    (void)client;
    return asked("terminate", instance, reason, reterr);
}

thole_status __wrap_thole_client_pause(thole_client *client, thole_slice instance, thole_slice reason,
                                       thole_error *reterr)
{
    (void)client;
    return asked("pause", instance, reason, reterr);
}

thole_status __wrap_thole_client_resume(thole_client *client, thole_slice instance, thole_slice reason,
                                        thole_error *reterr)
{
    (void)client;
    return asked("resume", instance, reason, reterr);
}

thole_status __wrap_thole_client_retry(thole_client *client, thole_slice instance, thole_slice reason,
                                       thole_error *reterr)
{
    (void)client;
    return asked("retry", instance, reason, reterr);
}

thole_status __wrap_thole_client_prune(thole_client *client, thole_slice instance, uint64_t before,
                                       thole_slice reason, thole_error *reterr)
{
    (void)client;
    (void)printf("< before %llu: ", (unsigned long long)before);
    return asked("prune", instance, reason, reterr);
}

thole_status __wrap_client_prune_check(thole_client *client, thole_slice instance, thole_slice reason,
                                       thole_error *reterr)
{
    (void)client;
    return asked("prune?", instance, reason, reterr);
}

thole_status __wrap_client_check_hold(thole_client *client, thole_slice instance, thole_error *reterr)
{
    (void)client;
    return thole_slice_equal(instance, THOLE_STR("held")) ? thole_fail(reterr, THOLE_CONFLICT, "it is held")
                                                          : THOLE_OK;
}

thole_status __wrap_thole_client_delete(thole_client *client, thole_slice instance,
                                        const thole_delete_options *options, bool *ret_accepted,
                                        thole_error *reterr)
{
    (void)client;
    *ret_accepted = thole_slice_equal(instance, THOLE_STR("order"));
    return asked(options->force ? "force" : "delete", instance, options->reason, reterr);
}

thole_status __wrap_thole_client_signal_with(thole_client *client, thole_slice instance, thole_slice name,
                                             thole_slice data, const thole_signal_options *options,
                                             bool *ret_kept, thole_error *reterr)
{
    (void)client;
    *ret_kept = !thole_slice_equal(instance, THOLE_STR("order"));
    (void)printf("< as %.*s %.*s%s: ", THOLE_FMT(options->request_id), THOLE_FMT(name),
                 options->confirm ? ", confirmed" : "");
    return asked("signal", instance, data, reterr);
}

thole_status __wrap_thole_client_complete(thole_client *client, thole_slice token, thole_slice output,
                                          thole_error *reterr)
{
    (void)client;
    return asked("complete", token, output, reterr);
}

thole_status __wrap_thole_client_fail(thole_client *client, thole_slice token, thole_slice type,
                                      thole_slice message, thole_error *reterr)
{
    (void)client;
    (void)printf("< type %.*s: ", THOLE_FMT(type));
    return asked("fail", token, message, reterr);
}

thole_status __wrap_thole_client_query(thole_client *client, thole_slice instance, thole_slice name,
                                       thole_slice input, thole_slice *ret_output, thole_error *reterr)
{
    (void)client;
    (void)printf("< %.*s: ", THOLE_FMT(name));
    thole_status const status = asked("query", instance, input, reterr);
    if (status == THOLE_OK)
        *ret_output = owned("half\tway");
    return status;
}

/* ---- starts ---- */

thole_status __wrap_thole_client_start_with(thole_client *client, thole_slice instance,
                                            thole_slice orchestration, thole_slice input,
                                            const thole_start_options *options, bool *ret_accepted,
                                            thole_error *reterr)
{
    (void)client;
    if (ret_accepted != NULL)
        *ret_accepted = !is_ns("queues");
    if (options->traceparent.len > 0)
        (void)printf("< trace %.*s (%.*s)\n", THOLE_FMT(options->traceparent),
                     THOLE_FMT(options->tracestate));
    (void)printf("< %.*s version %u event %.*s (%.*s): ", THOLE_FMT(orchestration),
                 (unsigned)options->version, THOLE_FMT(options->event), THOLE_FMT(options->event_data));
    return asked("start", instance, input, reterr);
}

/* The id says how the instance ended. */
static thole_status outcome(thole_slice instance, thole_outcome *ret, thole_error *reterr)
{
    static const struct {
        const char *id;
        thole_instance_status status;
        const char *output, *type;
    } rows[] = {{"failed", THOLE_INSTANCE_FAILED, "no\x1b money", "card"},
                {"ill", THOLE_INSTANCE_FAILED, "", ""},
                {"cancelled", THOLE_INSTANCE_CANCELLED, "too late", ""},
                {"terminated", THOLE_INSTANCE_TERMINATED, "", ""},
                {"lines", THOLE_INSTANCE_COMPLETED, "a\nb\x1b[1m\n", ""},
                {"bytes", THOLE_INSTANCE_COMPLETED, "\xff", ""},
                {"", THOLE_INSTANCE_COMPLETED, "paid", ""}};
    thole_status const status = command_world_ends(reterr);
    if (status != THOLE_OK)
        return status;
    size_t i = 0;
    while (rows[i].id[0] != '\0' && !thole_slice_equal(instance, thole_slice_from(rows[i].id)))
        i++;
    *ret = (thole_outcome){.status = rows[i].status,
                           .output = owned(rows[i].output),
                           .error_type = owned(rows[i].type),
                           .execution = 3};
    return THOLE_OK;
}

thole_status __wrap_thole_client_wait(thole_client *client, thole_slice instance, uint64_t wait_ms,
                                      thole_outcome *ret, thole_error *reterr)
{
    (void)client;
    (void)printf("< wait %.*s %lld ms\n", THOLE_FMT(instance), (long long)wait_ms);
    if (thole_slice_equal(instance, THOLE_STR("gone")))
        return thole_fail(reterr, THOLE_NOT_FOUND, "it was deleted");
    bool const late = thole_slice_equal(instance, THOLE_STR("late"));
    if ((late || thole_slice_equal(instance, THOLE_STR("slow"))) && wait_ms <= 5000) {
        play.waited_ms += wait_ms;
        return thole_fail(reterr, late ? THOLE_NOT_FOUND : THOLE_TIMEOUT, "not yet");
    }
    return outcome(instance, ret, reterr);
}

thole_status __wrap_thole_client_run(thole_client *client, thole_slice instance, thole_slice orchestration,
                                     thole_slice input, uint64_t wait_ms, thole_outcome *ret,
                                     thole_error *reterr)
{
    (void)client;
    (void)printf("< run %.*s %.*s (%.*s) %lld ms\n", THOLE_FMT(instance), THOLE_FMT(orchestration),
                 THOLE_FMT(input), (long long)wait_ms);
    return outcome(instance, ret, reterr);
}

thole_status __wrap_thole_client_start_many(thole_client *client, thole_start_source_fn *source,
                                            thole_start_answer_fn *answer, void *arg, thole_error *reterr)
{
    thole_status status = THOLE_OK;
    (void)client;
    while (status == THOLE_OK) {
        thole_start_item item = {.size = sizeof item};
        thole_error error = {.status = THOLE_OK};
        status = source(arg, &item, reterr);
        if (status != THOLE_OK)
            break;
        (void)printf("< start %.*s %.*s@%u (%.*s)\n", THOLE_FMT(item.instance), THOLE_FMT(item.orchestration),
                     (unsigned)item.version, THOLE_FMT(item.input));
        if (thole_slice_equal(item.orchestration, THOLE_STR("big")))
            (void)thole_fail(&error, THOLE_LIMIT, "too large");
        status = answer(arg, item.token, item.instance, &error);
    }
    return status == THOLE_NOT_FOUND ? command_world_ends(reterr) : status;
}

/* ---- lists ---- */

thole_status __wrap_thole_client_engines(thole_client *client, thole_engine_fn *each, void *arg,
                                         thole_error *reterr)
{
    static const thole_slice some[] = {{(const uint8_t *)"checkout", 8}, {(const uint8_t *)"checkout@3", 10}},
                             other[] = {{(const uint8_t *)"report@2", 8}};
    (void)client;
    (void)printf("< engines\n");
    if (!is_ns("none")) {
        THOLE_TRY(each(arg, &(thole_engine_info){
                                .node = THOLE_STR("a"), .orchestrations = some, .orchestrations_len = 2}));
        THOLE_TRY(each(arg, &(thole_engine_info){
                                .node = THOLE_STR("b"), .orchestrations = other, .orchestrations_len = 1}));
    }
    return command_world_ends(reterr);
}

thole_status __wrap_thole_client_workers(thole_client *client, thole_worker_fn *each, void *arg,
                                         thole_error *reterr)
{
    static const thole_slice mails[] = {{(const uint8_t *)"mail", 4}, {(const uint8_t *)"print", 5}},
                             charges[] = {{(const uint8_t *)"charge", 6}};
    (void)client;
    (void)printf("< workers\n");
    if (is_ns("asleep"))
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no worker answers");
    if (!is_ns("none")) {
        THOLE_TRY(each(arg, &(thole_worker_info){.worker = THOLE_STR("w1"),
                                                 .queue = THOLE_STR("office"),
                                                 .slots = 4,
                                                 .activities = mails,
                                                 .activities_len = 2}));
        THOLE_TRY(each(arg, &(thole_worker_info){.worker = THOLE_STR("w2"),
                                                 .queue = THOLE_STR("office"),
                                                 .slots = 5,
                                                 .activities = mails,
                                                 .activities_len = 1}));
        THOLE_TRY(each(arg, &(thole_worker_info){.worker = THOLE_STR("w3"),
                                                 .queue = THOLE_STR("bank"),
                                                 .slots = 6,
                                                 .activities = charges,
                                                 .activities_len = 1}));
    }
    return THOLE_OK;
}

thole_status __wrap_thole_client_list(thole_client *client, const thole_list_filter *filter,
                                      thole_instance_fn *each, void *arg, thole_error *reterr)
{
    static const thole_instance_info rows[] = {
        {.instance = {(const uint8_t *)"order", 5},
         .orchestration = {(const uint8_t *)"checkout", 8},
         .execution = 2,
         .status = THOLE_INSTANCE_RUNNING,
         .created_ms = 86400000,
         .updated_ms = 86401000,
         .custom_status = {(const uint8_t *)"half way", 8},
         .partition = 3,
         .open_activities = 4,
         .open_timers = 5,
         .version = 6,
         .parent = {(const uint8_t *)"cart", 4},
         .turns = 7},
        {.instance = {(const uint8_t *)"b\x1bl\xc3\xb6", 5},
         .orchestration = {(const uint8_t *)"report", 6},
         .status = THOLE_INSTANCE_STUCK,
         .execution = 1,
         .created_ms = 86300000,
         .updated_ms = 86300001,
         .version = 1,
         .detail = {(const uint8_t *)"diverged\nhere", 13},
         .custom_status = {(const uint8_t *)"\xff", 1}},
        {.instance = {(const uint8_t *)"an-id-that-is-longer-than-the-column-for-it", 43},
         .status = THOLE_INSTANCE_COMPLETED}};
    (void)client;
    (void)printf("< list statuses=%x orchestration=%.*s prefix=%.*s parent=%.*s after=%llu before=%llu "
                 "limit=%llu behind=%.*s,%llu\n",
                 filter->statuses, THOLE_FMT(filter->orchestration), THOLE_FMT(filter->id_prefix),
                 THOLE_FMT(filter->parent), (unsigned long long)filter->created_after_ms,
                 (unsigned long long)filter->created_before_ms, (unsigned long long)filter->limit,
                 THOLE_FMT(filter->behind_instance), (unsigned long long)filter->behind_created_ms);
    for (size_t i = 0; i < ARRAY_LEN(rows) && !is_ns("none"); i++)
        if (filter->parent.len < 2 || thole_slice_equal(filter->parent, rows[i].parent))
            THOLE_TRY(each(arg, &rows[i]));
    return command_world_ends(reterr);
}

thole_status __wrap_thole_client_rejected(thole_client *client, uint64_t behind, uint64_t limit,
                                          thole_rejected_fn *each, void *arg, thole_error *reterr)
{
    static const uint64_t ages_s[] = {5, 119, 120, 7199, 7200, 172799, 172800};
    (void)client;
    (void)printf("< rejected behind=%llu limit=%llu\n", (unsigned long long)behind,
                 (unsigned long long)limit);
    for (size_t i = 0; i < ARRAY_LEN(ages_s) && !is_ns("none"); i++)
        THOLE_TRY(each(arg, &(thole_rejected_info){.code = THOLE_STR("too_large"),
                                                   .reason = THOLE_STR("more than\n1000 bytes"),
                                                   .subject = THOLE_STR("thole.shop.in.3.order"),
                                                   .payload = THOLE_STR("abc"),
                                                   .bytes = 2000 + i,
                                                   .stored_ms = NOW_MS - ages_s[i] * 1000,
                                                   .sequence = 50 - i,
                                                   .number = 9 - i,
                                                   .partition = 3}));
    return command_world_ends(reterr);
}

thole_status __wrap_thole_client_executions(thole_client *client, thole_slice instance,
                                            thole_execution_fn *each, void *arg, thole_error *reterr)
{
    (void)client;
    (void)printf("< executions %.*s\n", THOLE_FMT(instance));
    for (uint64_t execution = 1; execution <= 6 && !is_ns("none"); execution++) {
        bool const ended = execution < 6;
        THOLE_TRY(each(arg, &(thole_execution_info){.execution = execution,
                                                    .status = ended ? THOLE_INSTANCE_CONTINUED_AS_NEW
                                                                    : THOLE_INSTANCE_RUNNING,
                                                    .started_ms = execution * 1000000,
                                                    .ended_ms = ended ? execution * 1000000 + 500 : 0,
                                                    .turns = 10 + execution}));
    }
    return command_world_ends(reterr);
}

#define TEXT(text)                                                                                           \
    {                                                                                                        \
        (const uint8_t *)(text), sizeof(text) - 1                                                            \
    }
static const thole_history_event events[] = {
    {.sequence = 11,
     .execution = 1,
     .turn = 1,
     .id = 1,
     .time_ms = 86400000,
     .kind = "Started",
     .version = 2,
     .name = TEXT("checkout"),
     .data = TEXT("three\nlines "),
     .instance = TEXT("cart"),
     .request_id = TEXT("r1")},
    {.sequence = 11,
     .execution = 1,
     .turn = 1,
     .id = 2,
     .time_ms = 86400000,
     .kind = "ActivityScheduled",
     .name = TEXT("charge"),
     .queue = TEXT("bank"),
     .version = 1},
    {.sequence = 12,
     .execution = 1,
     .turn = 2,
     .id = 3,
     .ref = 2,
     .time_ms = 86400001,
     .kind = "ActivityFailed",
     .try_number = 2,
     .status = THOLE_APP,
     .error_type = TEXT("card"),
     .data = TEXT("empty")},
    {.sequence = 12,
     .execution = 1,
     .turn = 2,
     .id = 4,
     .ref = 2,
     .time_ms = 86400001,
     .kind = "ActivityCompleted",
     .try_number = 1,
     .data = TEXT("\xff\x01")},
    {.sequence = 13,
     .execution = 1,
     .turn = 3,
     .id = 5,
     .time_ms = 86400002,
     .due_ms = 86405002,
     .kind = "TimerCreated"},
    {.sequence = 13,
     .execution = 1,
     .turn = 3,
     .id = 6,
     .ref = 5,
     .time_ms = 86400002,
     .kind = "TimerCancelled",
     .cause = "select_loser",
     .data = TEXT("the other won")},
    {.sequence = 13,
     .execution = 1,
     .turn = 3,
     .id = 7,
     .ref = 5,
     .time_ms = 86400002,
     .kind = "TimerCancelled",
     .cause = "requested",
     .data = TEXT("requested")},
    {.sequence = 14,
     .execution = 2,
     .turn = 1,
     .id = 1,
     .time_ms = 86400003,
     .kind = "HistoryPruned",
     .pruned_before = 2},
    {.sequence = 15,
     .execution = 2,
     .turn = 2,
     .id = 2,
     .time_ms = 86400004,
     .kind = "EventRaised",
     .name = TEXT("a-name-that-is-longer-than-its-column"),
     .data =
         TEXT("sixty columns are shown of what an event carries, the rest is not: it may be a megabyte")}};

thole_status __wrap_thole_client_history(thole_client *client, thole_slice instance, thole_history_fn *each,
                                         void *arg, thole_error *reterr)
{
    (void)client;
    (void)printf("< history %.*s\n", THOLE_FMT(instance));
    for (size_t i = 0; i < ARRAY_LEN(events) && !is_ns("none"); i++)
        THOLE_TRY(each(arg, &events[i]));
    return is_ns("none") ? thole_fail(reterr, THOLE_NOT_FOUND, "there is none") : command_world_ends(reterr);
}

/* Nothing new once, then the rest. */
thole_status __wrap_thole_client_history_follow(thole_client *client, thole_slice instance,
                                                thole_history_fn *each, void *arg, thole_error *reterr)
{
    (void)client;
    (void)printf("< history_follow %.*s\n", THOLE_FMT(instance));
    for (size_t i = 0; i < 2; i++) {
        THOLE_TRY(each(arg, &events[i]));
        THOLE_TRY(each(arg, NULL));
    }
    return command_world_ends(reterr);
}

thole_status __wrap_client_history_records(struct thole_client *client, thole_slice instance,
                                           client_record_fn *each, void *arg, thole_error *reterr)
{
    (void)client;
    (void)printf("< history_records %.*s\n", THOLE_FMT(instance));
    THOLE_TRY(each(arg, 7, THOLE_STR("one")));
    THOLE_TRY(each(arg, 9, THOLE_STR("three")));
    return command_world_ends(reterr);
}

thole_status __wrap_client_history_ids(struct thole_client *client, client_id_fn *each, void *arg,
                                       thole_error *reterr)
{
    (void)client;
    (void)printf("< history_ids\n");
    each(arg, THOLE_STR("order"));
    each(arg, THOLE_STR("b\x1bl\xc3\xb6"));
    each(arg, THOLE_STR("order"));
    return command_world_ends(reterr);
}

/* ---- queues ---- */

thole_status __wrap_thole_client_poisoned(thole_client *client, const thole_poisoned_filter *filter,
                                          thole_poisoned_fn *each, void *arg, thole_error *reterr)
{
    (void)client;
    (void)printf("< poisoned size=%d queue=%.*s instance=%.*s limit=%llu behind=%.*s,%llu,%llu,%llu\n",
                 filter->size == sizeof *filter, THOLE_FMT(filter->queue), THOLE_FMT(filter->instance),
                 (unsigned long long)filter->limit, THOLE_FMT(filter->behind_instance),
                 (unsigned long long)filter->behind_since_ms, (unsigned long long)filter->behind_execution,
                 (unsigned long long)filter->behind_activity_id);
    for (uint32_t i = 0; i < 3 && !is_ns("none"); i++)
        THOLE_TRY(
            each(arg, &(thole_poisoned_info){.instance = i < 2 ? THOLE_STR("order") : THOLE_STR("b\x1b"),
                                             .activity = THOLE_STR("charge"),
                                             .queue = THOLE_STR("bank"),
                                             .execution = 2,
                                             .activity_id = 7 + i,
                                             .try_number = 3 + i,
                                             .claims = 4 + i,
                                             .worker = THOLE_STR("w3"),
                                             .reason = THOLE_STR("signal\n11"),
                                             .since_ms = 1000000 - i,
                                             .until_ms = i == 1 ? 2000000 : 0}));
    return command_world_ends(reterr);
}

static thole_status decided(const char *what, thole_slice instance, uint64_t execution, uint64_t id,
                            uint32_t try_number, thole_error *reterr)
{
    (void)printf("< %s %.*s %llu.%llu.%u\n", what, THOLE_FMT(instance), (unsigned long long)execution,
                 (unsigned long long)id, (unsigned)try_number);
    return is_ns("half") && id == 8 ? thole_fail(reterr, THOLE_UNAVAILABLE, "the second one breaks off")
                                    : THOLE_OK;
}

thole_status __wrap_thole_client_poisoned_retry(thole_client *client, thole_slice instance,
                                                uint64_t execution, uint64_t id, uint32_t try_number,
                                                thole_error *reterr)
{
    (void)client;
    return decided("retry", instance, execution, id, try_number, reterr);
}

thole_status __wrap_thole_client_poisoned_fail(thole_client *client, thole_slice instance, uint64_t execution,
                                               uint64_t id, uint32_t try_number, thole_error *reterr)
{
    (void)client;
    return decided("fail", instance, execution, id, try_number, reterr);
}

thole_status __wrap_thole_client_queues(thole_client *client, thole_slice queue, thole_queue_fn *each,
                                        void *arg, thole_error *reterr)
{
    static const thole_queue_worker workers[] = {
        {TEXT("w1"), 3, 5999}, {TEXT("w2"), 4, 6000}, {TEXT("w\x1b"), 5, 90000}};
    static const thole_queue_activity activities[] = {{TEXT("mail"), 8}, {TEXT("prnt"), 9}};
    (void)client;
    (void)printf("< queues %.*s\n", THOLE_FMT(queue));
    if (!is_ns("none")) {
        THOLE_TRY(each(arg, &(thole_queue_info){.queue = THOLE_STR("office"),
                                                .waiting = 1,
                                                .running = 2,
                                                .outside = 3,
                                                .poisoned = 4,
                                                .limit = 5,
                                                .lease_ms = 6000,
                                                .oldest_ms = 200500,
                                                .delivered = 42,
                                                .workers = workers,
                                                .workers_len = 3,
                                                .activities = activities,
                                                .activities_len = 2}));
        THOLE_TRY(each(arg, &(thole_queue_info){.queue = THOLE_STR("gpu"),
                                                .waiting = 7,
                                                .workers = workers + 2,
                                                .workers_len = 1,
                                                .activities = activities,
                                                .activities_len = 1}));
        THOLE_TRY(each(arg, &(thole_queue_info){.queue = THOLE_STR("bank")}));
    }
    if (is_ns("foreign"))
        THOLE_TRY(each(
            arg,
            &(thole_queue_info){
                .queue = THOLE_STR("a.\x1b"), .foreign = true, .waiting = 20, .running = 3, .outside = 400}));
    return command_world_ends(reterr);
}

/* ---- the system ---- */

uint64_t __wrap_clock_monotonic_ms(void)
{
    return 5000 + play.waited_ms;
}

uint64_t __wrap_clock_wall_ms(void)
{
    return NOW_MS;
}

uint64_t __wrap_clock_wall_us(void)
{
    return (uint64_t)NOW_MS * 1000 + play.waited_ms++;
}

int __wrap_nanosleep(const struct timespec *pause, struct timespec *rest)
{
    uint64_t const ms = (uint64_t)pause->tv_sec * 1000 + (uint64_t)pause->tv_nsec / 1000000;
    (void)rest;
    play.waited_ms += ms;
    (void)printf("< a pause of %llu ms\n", (unsigned long long)ms);
    return 0;
}

ssize_t __wrap_getrandom(void *to, size_t len, unsigned flags)
{
    (void)flags;
    memset(to, 0x5a, len);
    return (ssize_t)len;
}

int __wrap_isatty(int fd)
{
    return play.tty && fd == STDOUT_FILENO;
}

/* Instead of another program: what it would be given. */
int __wrap_execvp(const char *file, char *const *argv)
{
    static const char *const settings[] = {"THOLE_NATS_URL",   "THOLE_NATS_CREDS", "THOLE_NATS_CA",
                                           "THOLE_NATS_CERT",  "THOLE_NATS_KEY",   "THOLE_NATS_SERVER_NAME",
                                           "THOLE_NATS_INBOX", "THOLE_NAMESPACE"};
    (void)printf("< %s:", file);
    for (; *argv != NULL; argv++)
        (void)printf(" %s", *argv);
    (void)printf("\n");
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        (void)printf("< %s=%s\n", settings[i], getenv(settings[i]) == NULL ? "" : getenv(settings[i]));
        (void)unsetenv(settings[i]);
    }
    (void)fflush(stdout); /* of a process of its own */
    errno = strcmp(file, "missing") == 0 ? ENOENT : EACCES;
    return -1;
}

/* ---- the rules of thole bind ---- */

static const char *const rules[][2] = {
    {"orders",
     "{\"format\":1,\"subject\":\"orders.>\",\"stream\":\"ORDERS\",\"action\":\"start\","
     "\"orchestration\":\"checkout\",\"instance\":\"o-{json.id}\",\"data\":\"data\",\"from\":\"all\","
     "\"in_flight\":256}"},
    {"broken", "{\"format\":1,\"subject\":\"orders.>\",\"stream\":\"ORDERS\",\"action\":\"start\","
               "\"orchestration\":\"checkout\",\"instance\":\"o-{\",\"data\":\"data\",\"from\":\"all\","
               "\"in_flight\":256}"},
    {"empty", "{}"},
    {"pays", "{\"format\":1,\"subject\":\"pays.*\",\"stream\":\"PAYS\",\"action\":\"signal\","
             "\"instance\":\"o-{subject.2}\",\"event\":\"paid\",\"data\":\"event\",\"from\":\"new\","
             "\"in_flight\":1}"},
};

thole_status __wrap_bindings_require(struct connection *connection, const char *ns, thole_error *reterr)
{
    (void)connection, (void)reterr;
    (void)printf("< bucket of %s\n", ns);
    return THOLE_OK;
}

thole_status __wrap_bindings_get(struct connection *connection, const char *ns, thole_slice name,
                                 struct buf *ret, uint64_t *ret_revision, thole_error *reterr)
{
    (void)connection, (void)ns;
    THOLE_TRY(asked("rule", name, THOLE_STR(""), reterr));
    for (uint64_t i = 0; i < sizeof rules / sizeof rules[0] && !is_ns("none"); i++)
        if (thole_slice_equal(name, thole_slice_from(rules[i][0]))) {
            buf_text(ret, rules[i][1]);
            *ret_revision = i + 3;
        }
    return buf_status(ret);
}

thole_status __wrap_bindings_put(struct connection *connection, const char *ns, thole_slice name,
                                 thole_slice value, uint64_t revision, uint64_t *ret_revision,
                                 thole_error *reterr)
{
    (void)connection, (void)ns;
    (void)printf("< %s %d: ", revision == BINDINGS_ANY ? "put over any" : "put over",
                 revision == BINDINGS_ANY ? -1 : (int)revision);
    *ret_revision = 9;
    if (revision != BINDINGS_ANY && revision != 3)
        return thole_fail(reterr, THOLE_CONFLICT, "the rule has revision 3");
    return asked("rule", name, value, reterr);
}

thole_status __wrap_bindings_delete(struct connection *connection, const char *ns, thole_slice name,
                                    thole_error *reterr)
{
    (void)connection, (void)ns;
    return asked("delete rule", name, THOLE_STR(""), reterr);
}

thole_status __wrap_bindings_list(struct connection *connection, const char *ns, bindings_fn *each, void *arg,
                                  thole_error *reterr)
{
    (void)connection;
    THOLE_TRY(asked("rules", thole_slice_from(ns), THOLE_STR(""), reterr));
    for (uint64_t i = 0; i < sizeof rules / sizeof rules[0] && !is_ns("none"); i++)
        THOLE_TRY(each(arg, thole_slice_from(rules[i][0]), thole_slice_from(rules[i][1]), i + 3));
    return THOLE_OK;
}

thole_status __wrap_binding_stream_of(struct connection *connection, thole_slice subject, struct buf *ret,
                                      thole_error *reterr)
{
    (void)connection;
    buf_text(ret, "ORDERS");
    return asked("stream of", subject, THOLE_STR(""), reterr);
}

thole_status __wrap_binding_stream_takes(struct connection *connection, thole_slice stream,
                                         thole_slice subject, thole_error *reterr)
{
    (void)connection;
    if (thole_slice_equal(stream, THOLE_STR("BILLS")))
        return thole_fail(reterr, THOLE_INVALID, "stream BILLS takes nothing of it");
    (void)printf("< does %.*s take %.*s\n", THOLE_FMT(stream), THOLE_FMT(subject));
    return THOLE_OK;
}

/* No binder has made that of pays. */
thole_status __wrap_binding_consumer_state(struct connection *connection, const char *ns, thole_slice rule,
                                           thole_slice stream, struct binding_state *ret, thole_error *reterr)
{
    (void)connection, (void)ns;
    (void)printf("< consumer of %.*s on %.*s\n", THOLE_FMT(rule), THOLE_FMT(stream));
    *ret = (struct binding_state){.pending = 100, .ack_pending = 10, .redelivered = 1, .acked = 5};
    return thole_slice_equal(rule, THOLE_STR("pays")) ? thole_fail(reterr, THOLE_NOT_FOUND, "none")
                                                      : THOLE_OK;
}

thole_status __wrap_binding_consumer_delete(struct connection *connection, const char *ns, thole_slice rule,
                                            thole_slice stream, thole_error *reterr)
{
    (void)connection, (void)ns;
    (void)printf("< delete consumer of %.*s on %.*s\n", THOLE_FMT(rule), THOLE_FMT(stream));
    return is_ns("stuck") ? thole_fail(reterr, THOLE_UNAVAILABLE, "it hangs") : THOLE_OK;
}
