#include "chaos_causes.h"
#include "subject.h"
#include <inttypes.h>
#include <nats/nats.h>
#include <time.h>

enum {
    FAILOVER_MS = 10000, /* so long after it was opened a partition may still be redoing */
    KILL_MS = 1000,      /* an end is noted before it is brought about */
};

const char *const chaos_cause_names[CHAOS_CAUSES] = {"its worker ended before the result was stored",
                                                     "its worker had lost its lease or claim",
                                                     "the database was killed, or lost rows",
                                                     "the engine failed over",
                                                     "it was cancelled, and the stores of NATS were away",
                                                     "NOTHING EXPLAINS IT"};

static int compare_runs(const void *a, const void *b)
{
    const struct chaos_run *const x = a, *const y = b;
    int const keys = strcmp(x->key, y->key);
    return keys != 0 ? keys : (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
}

struct chaos_run *chaos_runs(const struct chaos *chaos, const char *prefix, size_t *ret_len)
{
    size_t cap = 1024, n = 0;
    struct chaos_run *runs = calloc(cap, sizeof *runs), run;
    FILE *file = fopen(chaos->runs, "re");
    while (file != NULL &&
           fscanf(file, "%63s %31s %d %" SCNu64, run.key, run.name, &run.pid, &run.at_ms) == 4) {
        if (strncmp(run.key, prefix, strlen(prefix)) != 0)
            continue;
        if (n == cap)
            runs = realloc(runs, (cap *= 2) * sizeof *runs);
        CU_ASSERT_PTR_NOT_NULL_FATAL(runs);
        runs[n++] = run;
    }
    if (file != NULL)
        (void)fclose(file);
    qsort(runs, n, sizeof *runs, compare_runs);
    *ret_len = n;
    return runs;
}

/* An end of @p pid: see chaos_note_end(). */
static bool ended(const struct chaos *chaos, int pid, uint64_t from_ms, uint64_t to_ms)
{
    for (size_t i = 0; i < chaos->ends_len; i++)
        if (chaos->ends[i].pid == pid && chaos->ends[i].at_ms >= from_ms && chaos->ends[i].at_ms <= to_ms)
            return true;
    return false;
}

/* Whether its worker's log says one of the texts of it. KEY is INSTANCE.EXECUTION.ID. */
static bool log_says(const struct chaos *chaos, const struct chaos_run *run, const char *const *texts,
                     size_t len)
{
    char instance[64], line[256];
    unsigned execution = 0, id = 0;
    if (sscanf(run->key, "%63[^.].%u.%u", instance, &execution, &id) != 3)
        return false;
    for (size_t i = 0; i < len; i++) {
        (void)snprintf(line, sizeof line, "instance=%s execution=%u activity=%s activity_id=%u *%s", instance,
                       execution, run->name, id, texts[i]);
        for (size_t k = 0; k < CHAOS_PROGRAMS; k++)
            if (stack_count(chaos->programs[k]->log, line) > 0)
                return true;
    }
    return false;
}

static bool says_lost(const struct chaos *chaos, const struct chaos_run *run)
{
    static const char *const texts[] = {"lease lost, it will run again",
                                        "result refused, it was cancelled or another worker was first",
                                        "result refused, another worker has taken it over"};
    return log_says(chaos, run, texts, ARRAY_LEN(texts));
}

static bool says_cancelled(const struct chaos *chaos, const struct chaos_run *run)
{
    static const char *const texts[] = {"msg=cancelled"};
    return log_says(chaos, run, texts, ARRAY_LEN(texts));
}

static uint64_t stored_ms(natsMsg *message, bool *ret_last)
{
    jsMsgMetaData *meta = NULL;
    uint64_t ms = 0;
    *ret_last = true;
    if (natsMsg_GetMetaData(&meta, message) == NATS_OK) {
        ms = (uint64_t)meta->Timestamp / 1000000;
        *ret_last = meta->NumPending == 0;
    }
    jsMsgMetaData_Destroy(meta);
    return ms;
}

/* By the servers' clock, which is the machine's. */
static bool opened(uint32_t partition, uint64_t from_ms, uint64_t to_ms)
{
    char subject[64], stream[64];
    natsConnection *nats = NULL;
    jsCtx *js = NULL;
    jsSubOptions options;
    natsSubscription *subscription = NULL;
    natsMsg *message = NULL;
    bool found = false, last = false;
    (void)snprintf(subject, sizeof subject, "thole.default.ctl.%u.epoch", partition);
    (void)snprintf(stream, sizeof stream, "THOLE_default_HIST_%u", partition);
    (void)jsSubOptions_Init(&options);
    options.Stream = stream;
    options.Ordered = true;
    if (natsConnection_ConnectTo(&nats, getenv("THOLE_NATS_URL")) == NATS_OK &&
        natsConnection_JetStream(&js, nats, NULL) == NATS_OK &&
        js_SubscribeSync(&subscription, js, subject, NULL, &options, NULL) == NATS_OK)
        while (!last && natsSubscription_NextMsg(&message, subscription, 5000) == NATS_OK) {
            uint64_t const at_ms = stored_ms(message, &last);
            found |= at_ms >= from_ms && at_ms <= to_ms;
            natsMsg_Destroy(message);
        }
    natsSubscription_Destroy(subscription);
    jsCtx_Destroy(js);
    natsConnection_Destroy(nats);
    return found;
}

enum chaos_cause chaos_cause(struct chaos *chaos, const struct chaos_run *first,
                             const struct chaos_run *second)
{
    thole_slice const instance = {(const uint8_t *)first->key, strcspn(first->key, ".")};
    uint32_t const partitions = (uint32_t)strtoul(
        stack_sql(&chaos->stack, "SELECT count(*) FROM thole_default.partitions"), NULL, 10);
    uint64_t const wall_ms = clock_wall_ms() - clock_monotonic_ms();
    if (ended(chaos, first->pid, 0, second->at_ms)) /* ran, so it ended after that */
        return CAUSE_WORKER_ENDED;
    if (says_lost(chaos, first))
        return CAUSE_LEASE_LOST;
    if (ended(chaos, 0, first->at_ms - KILL_MS, second->at_ms))
        return CAUSE_DATABASE_LOST;
    if (opened(subject_partition(instance, partitions), wall_ms + first->at_ms - FAILOVER_MS,
               wall_ms + second->at_ms))
        return CAUSE_FAILOVER;
    if (says_cancelled(chaos, first) &&
        ended(chaos, CHAOS_NATS_STORES, first->at_ms - KILL_MS, second->at_ms))
        return CAUSE_CANCELLED;
    return CAUSE_NONE;
}
