#include "routes.h"
#include "action_routes.h"
#include "read_routes.h"

#define FILTER "orchestration prefix parent custom_status after before"

static const struct route routes[] = {
    {false, "instances", read_instances, FILTER " status limit next"},
    {false, "counts", read_counts, FILTER},
    {false, "instances/*", read_instance, ""},
    {false, "instances/*/source", read_source, ""},
    {false, "instances/*/history", read_history, "from limit"},
    {false, "instances/*/history/*/data", read_event_data, "id"},
    {false, "queues", read_queues, "queue"},
    {false, "quarantine", read_quarantine, "queue instance limit next"},
    {false, "nodes", read_nodes, ""},
    {false, "partitions", read_partitions, ""},
    {false, "defects", read_defects, ""},
    {false, "mended", read_mended, ""},
    {false, "room", read_room, ""},
    {false, "rejected", read_rejected, "limit next"},
    {false, "orchestrations", read_orchestrations, ""},
    {true, "instances", act_start, ""},
    {true, "instances/*/signal", act_signal, ""},
    {true, "instances/*/query", act_query, ""},
    {true, "instances/*/cancel", act_cancel, ""},
    {true, "instances/*/terminate", act_terminate, ""},
    {true, "instances/*/pause", act_pause, ""},
    {true, "instances/*/resume", act_resume, ""},
    {true, "instances/*/retry", act_retry, ""},
    {true, "quarantine/retry", act_quarantine_retry, ""},
    {true, "quarantine/fail", act_quarantine_fail, ""},
    {true, "batch", act_batch, ""},
};

thole_client *session_client(struct session *session, struct answer *answer)
{
    thole_error error = {.status = THOLE_OK};
    if (session->client != NULL)
        return session->client;
    error.status = thole_client_open(session->options, &session->client, &error);
    if (error.status == THOLE_OK)
        return session->client;
    session->client = NULL;
    if (error.status == THOLE_NOT_FOUND) /* the address is right */
        error.status = THOLE_UNAVAILABLE;
    answer_error(answer, &error);
    return NULL;
}

void session_end(struct session *session)
{
    thole_client_close(session->client);
    session->client = NULL;
}

const struct route *route_find(const struct request *request, bool *ret_other)
{
    *ret_other = false;
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (!request_is(request, routes[i].pattern))
            continue;
        if (routes[i].post == request->post)
            return &routes[i];
        *ret_other = true;
    }
    return NULL;
}

void route_run(const struct route *route, struct session *session, const struct request *request,
               struct answer *answer)
{
    thole_error error = {.status = THOLE_OK};
    error.status = request_check_args(request, route->arguments, &error);
    if (error.status != THOLE_OK) {
        answer_error(answer, &error);
        return;
    }
    if (session_client(session, answer) == NULL)
        return;
    route->run(session, request, answer);
    if (buf_status(&answer->body) != THOLE_OK)
        answer_problem(answer, 413, "LIMIT", "the answer would be too large: use a smaller limit");
}
