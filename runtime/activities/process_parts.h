/*
 * Inside the processes that are not the worker: functions shared by the forkserver, its guards and the
 * processes that run activities. thole starts no threads in them.
 */
#ifndef THOLE_PROCESS_PARTS_H
#define THOLE_PROCESS_PARTS_H
#include "forkserver.h"

struct process_spawn {
    const struct forkserver_options *options;
    const thole_activity_entry *entry;
    int fds[PROCESS_FDS];
    int signals; /* the forkserver's signalfd: SIGCHLD, which is blocked */
};

/* ---- process_guard.c ---- */
/* The main function of the forkserver's child; closes descriptors that are not its own. */
_Noreturn void process_guard_main(const struct process_spawn *spawn);
void process_life_send(int life, const struct life_message *message);

/* ---- process_tree.c ---- */
/* Pids of this process's children, or of another's (of its main thread): the first ones, if there are more
 * than
 * @p cap. -1: this system has no /proc/PID/task/TID/children. */
int process_children(pid_t of, pid_t *ret, int cap);

/* ---- process_child.c ---- */
/* The main function of the guard's child: runs activities until its socket is closed. */
_Noreturn void process_child_main(const struct process_spawn *spawn, pid_t guard);
#endif
