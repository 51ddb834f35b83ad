/*
 * Loaded into a program before libc (LD_PRELOAD): it is killed in front of its N-th step that others see, of
 * files and of NATS, where $THOLE_TEST_KILL is N. Counted are fsync, rename, unlink, posix_spawnp and each
 * message that is published; with $THOLE_TEST_KILL_WRITES also requests, but for those that only read.
 */
#include <dlfcn.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long steps;

static void step(void)
{
    const char *const text = getenv("THOLE_TEST_KILL");
    long const at = text == NULL ? 0 : strtol(text, NULL, 10);
    if (at > 0 && atomic_fetch_add(&steps, 1) + 1 == at)
        (void)kill(getpid(), SIGKILL);
}

int fsync(int fd)
{
    static int (*real)(int);
    step();
    real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    return real(fd);
}

int rename(const char *from, const char *to)
{
    static int (*real)(const char *, const char *);
    step();
    real = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    return real(from, to);
}

int unlink(const char *path)
{
    static int (*real)(const char *);
    step();
    real = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");
    return real(path);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const words[], char *const environment[])
{
    static int (*real)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                       char *const[], char *const[]);
    step();
    real = (int (*)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                    char *const[], char *const[]))dlsym(RTLD_NEXT, "posix_spawnp");
    return real(pid, file, actions, attributes, words, environment);
}

/* Of nats.c, whose types are not needed here. */
int natsConnection_PublishMsg(void *connection, void *message);
int natsConnection_PublishMsg(void *connection, void *message)
{
    static int (*real)(void *, void *);
    step();
    real = (int (*)(void *, void *))dlsym(RTLD_NEXT, "natsConnection_PublishMsg");
    return real(connection, message);
}

int natsConnection_PublishRequest(void *connection, const char *subject, const char *reply, const void *data,
                                  int len);
int natsConnection_PublishRequest(void *connection, const char *subject, const char *reply, const void *data,
                                  int len)
{
    static int (*real)(void *, const char *, const char *, const void *, int);
    step();
    real = (int (*)(void *, const char *, const char *, const void *, int))dlsym(
        RTLD_NEXT, "natsConnection_PublishRequest");
    return real(connection, subject, reply, data, len);
}

static int reads_only(void *message)
{
    static const char read[][24] = {"$JS.API.STREAM.MSG.GET", "$JS.API.STREAM.INFO", "$JS.API.INFO"};
    const char *(*const subject_of)(void *) = (const char *(*)(void *))dlsym(RTLD_NEXT, "natsMsg_GetSubject");
    const char *const subject = subject_of(message);
    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++)
        if (strncmp(subject, read[i], strlen(read[i])) == 0)
            return 1;
    return 0;
}

int natsConnection_RequestMsg(void **reply, void *connection, void *message, long long timeout_ms);
int natsConnection_RequestMsg(void **reply, void *connection, void *message, long long timeout_ms)
{
    static int (*real)(void **, void *, void *, long long);
    if (getenv("THOLE_TEST_KILL_WRITES") != NULL && !reads_only(message))
        step();
    real = (int (*)(void **, void *, void *, long long))dlsym(RTLD_NEXT, "natsConnection_RequestMsg");
    return real(reply, connection, message, timeout_ms);
}
