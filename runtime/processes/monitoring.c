#include "monitoring.h"
#include "listen_address.h"
#include "log.h"
#include "memory.h"
#include "metrics.h"
#include "monitor.h"
#include <stdlib.h>

enum { INFO_LEN = 4 };

struct monitoring {
    struct metrics *metrics;
    struct metric_cells *cells;
    struct monitor *monitor;       /* NULL: without --http */
    struct service_notify *notify; /* NULL: there is no service manager */
    const char **activities;
    struct metrics_pair info[INFO_LEN];
};

static unsigned roles_of(const thole_program *program, enum host_role role)
{
    unsigned roles = 0;
    if ((role & HOST_ENGINE) != 0)
        roles |= METRIC_ENGINE;
    if ((role & HOST_WORKER) != 0 && program->activities_len > 0)
        roles |= METRIC_WORKER;
    if ((role & HOST_BINDER) != 0)
        roles |= METRIC_BINDER;
    if ((role & HOST_GATEWAY) != 0)
        roles |= METRIC_GATEWAY;
    return roles;
}

static void create_metrics(struct monitoring *monitoring, const thole_program *program,
                           const struct host_command *command)
{
    const struct host_options *const options = &command->options;
    unsigned const roles = roles_of(program, command->role);
    struct metrics_pair const info[INFO_LEN] = {
        {"version", THOLE_VERSION},
        {"program", program->name},
        {"namespace", options->ns},
        {"queue", (roles & METRIC_WORKER) != 0 ? options->queue : ""},
    };
    for (size_t i = 0; i < INFO_LEN; i++)
        monitoring->info[i] = info[i];
    monitoring->activities = memory_array(program->activities_len, sizeof *monitoring->activities);
    for (size_t i = 0; i < program->activities_len; i++)
        monitoring->activities[i] = program->activities[i].name;
    monitoring->metrics =
        metrics_create(&(struct metrics_options){.roles = roles,
                                                 .info = monitoring->info,
                                                 .info_len = INFO_LEN,
                                                 .activities = monitoring->activities,
                                                 .activities_len = program->activities_len});
    monitoring->cells = metrics_cells(monitoring->metrics);
}

static thole_status start_monitor(struct monitoring *monitoring, const struct host_command *command,
                                  thole_error *reterr)
{
    struct sockaddr_storage address;
    THOLE_TRY(listen_address_parse(command->options.http, &address, reterr));
    THOLE_TRY(monitor_start(&address, monitoring->metrics, &monitoring->monitor, reterr));
    log_line(LOG_LEVEL_INFO, host_role_name(command->role), "answers http://%s/metrics, /healthz and /readyz",
             monitor_address(monitoring->monitor));
    return THOLE_OK;
}

thole_status monitoring_start(const thole_program *program, struct host_command *command,
                              const struct service_wish *wish, struct monitoring **ret, thole_error *reterr)
{
    bool const http = command->options.http != NULL && command->options.http[0] != '\0';
    thole_status status = THOLE_OK;
    *ret = NULL;
    if (!http && wish->address[0] == '\0')
        return THOLE_OK;
    struct monitoring *const monitoring = memory_new(sizeof *monitoring);
    create_metrics(monitoring, program, command);
    if (http)
        status = start_monitor(monitoring, command, reterr);
    if (status == THOLE_OK)
        status = service_notify_start(wish, monitoring->metrics, &monitoring->notify, reterr);
    if (status != THOLE_OK) {
        monitoring_stop(monitoring);
        return status;
    }
    service_notify_say(monitoring->notify, "STATUS=starting: waits for NATS, Postgres and its partitions");
    command->options.metrics = monitoring->metrics;
    *ret = monitoring;
    return THOLE_OK;
}

void monitoring_serving(struct monitoring *monitoring, enum host_role role, bool serving)
{
    if (monitoring == NULL)
        return;
    if ((role & HOST_ENGINE) != 0)
        metric_set(monitoring->cells, METRIC_SERVING, SERVING_ENGINE, serving);
    if ((role & HOST_WORKER) != 0)
        metric_set(monitoring->cells, METRIC_SERVING, SERVING_WORKER, serving);
    if ((role & HOST_BINDER) != 0)
        metric_set(monitoring->cells, METRIC_SERVING, SERVING_BINDER, serving);
    if ((role & HOST_GATEWAY) != 0)
        metric_set(monitoring->cells, METRIC_SERVING, SERVING_GATEWAY, serving);
    service_notify_say(monitoring->notify, serving
                                               ? "READY=1\nSTATUS=serving"
                                               : "STOPPING=1\nSTATUS=stopping: running activities may end");
}

void monitoring_stop(struct monitoring *monitoring)
{
    if (monitoring == NULL)
        return;
    service_notify_stop(monitoring->notify);
    monitor_stop(monitoring->monitor);
    metrics_destroy(monitoring->metrics);
    free(monitoring->activities);
    free(monitoring);
}
