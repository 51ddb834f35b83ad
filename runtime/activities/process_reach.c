#include "process_reach.h"
#include "forkserver.h"
#include <sys/socket.h>
#include <unistd.h>

void process_reach_fire(const struct process_reach *reach, const struct activity_cancel *cancel)
{
    uint64_t const one = 1;
    char const wish = LIFE_TERMINATE;
    token_fire(reach->token, cancel);
    ssize_t n = write(reach->wake, &one, sizeof one);
    if (reach->terminate)
        n = send(reach->life, &wish, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)n; /* a failure means that it has ended */
}

void process_reach_hurry(const struct process_reach *reach, uint64_t grace_end_ms)
{
    atomic_store(&reach->token->grace_end_ms, grace_end_ms);
}

void process_reach_kill(const struct process_reach *reach)
{
    (void)shutdown(reach->life, SHUT_WR);
}
