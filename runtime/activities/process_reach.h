/*
 * Operations of other threads on a process that runs an activity: fire its token, shorten its grace, kill it.
 * Part of struct process_child; the activity points to it while that process runs it.
 */
#ifndef THOLE_PROCESS_REACH_H
#define THOLE_PROCESS_REACH_H
#include "token.h"

struct process_reach {
    struct token *token; /* in the page that is shared with it */
    int wake, life;      /* as in enum process_fd; not owned */
    bool terminate;      /* send SIGTERM when the token fires */
};

/* Fires the token on the other side, and sends SIGTERM to the process if that was wished. */
void process_reach_fire(const struct process_reach *reach, const struct activity_cancel *cancel);
void process_reach_hurry(const struct process_reach *reach, uint64_t grace_end_ms);
/* Lets its guard kill it with all its descendants. Does not wait. */
void process_reach_kill(const struct process_reach *reach);
#endif
