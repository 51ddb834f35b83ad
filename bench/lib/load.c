/* The side that starts the client process. */
#include "load.h"
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS = 9, ARGUMENT_BYTES = 32 };

static void run_client(char **argv, const int to[2], const int from[2])
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpgid(0, 0);
    (void)dup2(to[0], 0);
    (void)dup2(from[1], 1);
    for (int i = 0; i < 2; i++) {
        (void)close(to[i]);
        (void)close(from[i]);
    }
    (void)execv(bench_self(), argv);
    _exit(127);
}

static void list_arguments(const struct load *load, const char *prefix, char ret[ARGUMENTS][ARGUMENT_BYTES])
{
    (void)snprintf(ret[0], ARGUMENT_BYTES, "bench");
    (void)snprintf(ret[1], ARGUMENT_BYTES, "client");
    (void)snprintf(ret[2], ARGUMENT_BYTES, "%s", load->kind);
    (void)snprintf(ret[3], ARGUMENT_BYTES, "%s", prefix);
    (void)snprintf(ret[4], ARGUMENT_BYTES, "%u", load->in_flight);
    (void)snprintf(ret[5], ARGUMENT_BYTES, "%u", load->warm_up);
    (void)snprintf(ret[6], ARGUMENT_BYTES, "%u", load->count);
    (void)snprintf(ret[7], ARGUMENT_BYTES, "%u", load->milliseconds);
    (void)snprintf(ret[8], ARGUMENT_BYTES, "%f", load->rate);
}

bool load_start(struct stand *stand, const struct load *load, struct load_client *ret)
{
    static unsigned serial;
    char text[ARGUMENTS][ARGUMENT_BYTES];
    char *argv[ARGUMENTS + 1] = {NULL};
    int to[2], from[2];
    *ret = (struct load_client){.to = NULL};
    if (load->prefix == NULL)
        (void)snprintf(ret->prefix, sizeof ret->prefix, "%.16s-%u", load->kind, ++serial);
    else
        (void)snprintf(ret->prefix, sizeof ret->prefix, "%s", load->prefix);
    list_arguments(load, ret->prefix, text);
    for (size_t i = 0; i < ARGUMENTS; i++)
        argv[i] = text[i];
    if (!stand_arm(stand, ROLE_CLIENT) || pipe(to) != 0 || pipe(from) != 0)
        return bench_fail("client", "cannot be started");
    stand->client = fork();
    if (stand->client == 0)
        run_client(argv, to, from);
    stand_disarm();
    (void)close(to[0]);
    (void)close(from[1]);
    ret->to = fdopen(to[1], "we");
    ret->from = fdopen(from[0], "re");
    return stand->client > 0 && ret->to != NULL && ret->from != NULL;
}

static bool hear(struct load_client *client, const char *word, char *line, size_t cap)
{
    return fgets(line, (int)cap, client->from) != NULL && strncmp(line, word, strlen(word)) == 0
               ? true
               : bench_fail("client", "it ended before its work was done");
}

bool load_ready(struct load_client *client)
{
    char line[32];
    return hear(client, "ready", line, sizeof line);
}

bool load_go(struct load_client *client)
{
    return fprintf(client->to, "go\n") > 0 && fflush(client->to) == 0;
}

bool load_result(struct load_client *client, struct load_result *ret)
{
    char line[256];
    struct spread *const us = &ret->us;
    if (!hear(client, "done ", line, sizeof line) ||
        sscanf(line, "done %" SCNu64 " %" SCNu64 " %lf %lf %lf %lf %lf", &ret->done, &ret->wall_us, &us->p50,
               &us->p90, &us->p99, &us->p999, &us->max) != 7)
        return false;
    us->n = ret->done;
    return true;
}

bool load_run(struct load_client *client, struct load_result *ret)
{
    return load_go(client) && load_result(client, ret);
}

void load_stop(struct stand *stand, struct load_client *client)
{
    if (client->to != NULL)
        (void)fclose(client->to);
    if (client->from != NULL)
        (void)fclose(client->from);
    *client = (struct load_client){.to = NULL};
    if (stand->client > 0) {
        (void)kill(stand->client, SIGKILL);
        (void)waitpid(stand->client, NULL, 0);
        stand->client = 0;
    }
}
