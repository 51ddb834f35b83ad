/*
 * A deterministic world around the partition and worker machines; see world.h.
 *
 *   sim SEED                          one seed, with a readable trace and its hash
 *   sim FIRST COUNT                   many, silent unless one fails; every 64th runs twice and must not
 *                                     differ
 *   sim --mutation NAME FIRST COUNT   breaks a rule of the world: succeeds when a seed notices
 *   sim --mutation NAME SEED          the trace of one seed with the rule broken
 *   sim --until-broken FIRST COUNT    the same for machines that are broken themselves: see mutants
 *   sim --told FIRST COUNT            many: the machines' outputs must equal those in tests/told/sim (told.h)
 *   sim --told SEED                   one seed, with all outputs of the machines
 */
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FAILURES_MAX = 3 };

static struct world the_world;
static uint64_t digest; /* of all traces */

static struct told_book book;
static bool tells; /* all that the machines say */

static bool run_seed(uint64_t seed, bool verbose, enum mutation mutation)
{
    world_begin(&the_world, seed, verbose, mutation);
    if (tells && verbose)
        the_world.told.to = stdout;
    world_run(&the_world);
    world_end(&the_world);
    digest = (digest ^ the_world.hash) * 1099511628211u;
    return !is_broken(&the_world);
}

static void add_stats(struct stats *sum)
{
    const uint64_t *from = (const uint64_t *)&the_world.stats;
    uint64_t *to = (uint64_t *)sum;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
}

static void print_stats(const struct stats *s, uint64_t seeds, double seconds)
{
    printf("%" PRIu64 " seeds in %.1f s: %" PRIu64 " steps, %" PRIu64 " instances, %" PRIu64
           " turns, %" PRIu64 " records (%" PRIu64 " void, %" PRIu64 " deleted), %" PRIu64
           " refused appends\n",
           seeds, seconds, s->steps, s->instances, s->turns, s->records, s->void_records, s->deleted,
           s->refused);
    printf("%" PRIu64 " opens, %" PRIu64 " histories loaded, %" PRIu64 " batches, %" PRIu64
           " fenced, %" PRIu64 " rebuilt, %" PRIu64 " handlers (%" PRIu64 " quick), %" PRIu64
           " pushes, %" PRIu64 " swept, %" PRIu64 " shelved, %" PRIu64 " unshelved\n",
           s->opens, s->cold_loads, s->batches, s->fenced, s->resets, s->handlers, s->quick, s->pushes,
           s->swept, s->shelved, s->unshelved);
    printf("%" PRIu64 " turns in parts, %" PRIu64 " given up; %" PRIu64
           " turns without code or room; %" PRIu64 " rivals seen; %" PRIu64 " inboxes begun again\n",
           s->parts, s->parts_dropped, s->blocked, s->rivals_seen, s->begun_again);
    printf("%" PRIu64 " deletions, %" PRIu64 " prunes, %" PRIu64 " records removed, %" PRIu64
           " that were dispensable\n",
           s->deletions, s->prunes, s->removed, s->dispensed);
    printf("%" PRIu64 " workers killed by handlers, %" PRIu64 " isolated handlers, %" PRIu64
           " poisoned (%" PRIu64 " innocent), %" PRIu64 " in quarantine, %" PRIu64 " decisions\n",
           s->kills, s->isolated, s->poisoned, s->innocents, s->quarantined, s->released);
    printf("%" PRIu64 " children, %" PRIu64 " conflicts, %" PRIu64 " continued as new, %" PRIu64
           " events (%" PRIu64 " early, %" PRIu64 " times given up), %" PRIu64 " sent, %" PRIu64
           " emitted, %" PRIu64 " tries failed, %" PRIu64 " expired, %" PRIu64 " paused, %" PRIu64
           " terminated, %" PRIu64 " queries, %" PRIu64 " lines, %" PRIu64 " left to others, %" PRIu64
           " rejected\n",
           s->children, s->conflicts, s->continued, s->events, s->early, s->discarded, s->sends, s->emitted,
           s->tries, s->expired, s->paused, s->terminated, s->queries, s->lines, s->left, s->rejected);
    printf("%" PRIu64 " work messages forged, %" PRIu64 " found to be so; %" PRIu64 " lists of %" PRIu64
           " results\n",
           s->forged, s->forged_removed, s->lists, s->listed);
    printf("%" PRIu64 " references to payloads, %" PRIu64 " payloads written again\n", s->references,
           s->repeated);
    printf("%" PRIu64 " times older rows were put back, %" PRIu64 " batches refused of it, %" PRIu64
           " times it was seen by a look\n",
           s->restored, s->unfollowed, s->looked);
    printf("%" PRIu64 " engines crashed by code, %" PRIu64 " runs tried first, %" PRIu64
           " instances stuck of it\n",
           s->code_crashes, s->code_tried, s->code_stuck);
    for (int f = 0; f < FAULTS_LEN; f++)
        printf("%s%s %" PRIu64, f == 0 ? "" : ", ", fault_name((enum fault)f), s->faults[f]);
    printf("\ndigest of the traces: %016" PRIx64 "\n", digest);
}

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int run_many(uint64_t first, uint64_t count)
{
    struct stats sum = {0};
    double const began = now_s();
    unsigned failures = 0;
    uint64_t seed = first;
    for (; seed < first + count && failures < FAILURES_MAX; seed++) {
        bool ok = run_seed(seed, false, MUTATION_NONE);
        uint64_t const hash = the_world.hash;
        add_stats(&sum);
        if (tells)
            told_book_check(&book, seed, the_world.told.hash);
        if (ok && seed % 64 == 0) {
            ok = run_seed(seed, false, MUTATION_NONE) && the_world.hash == hash;
            if (!ok)
                snprintf(the_world.why, sizeof the_world.why, "the second run differs");
        }
        if (ok)
            continue;
        failures++;
        printf("seed %" PRIu64 ": %s\n  again with: sim %" PRIu64 "\n", seed, the_world.why, seed);
        fflush(stdout);
    }
    print_stats(&sum, seed - first, now_s() - began);
    return failures == 0 ? 0 : 1;
}

static int run_told(uint64_t first, uint64_t count)
{
    if (!told_book_open(&book, "sim"))
        return 2;
    int const failed = run_many(first, count);
    return told_book_close(&book) ? failed : 1;
}

static int run_one(uint64_t seed, enum mutation mutation)
{
    bool const ok = run_seed(seed, true, mutation);
    print_stats(&the_world.stats, 1, 0);
    if (!ok)
        printf("sim %" PRIu64 ": %s\n", seed, the_world.why);
    return ok ? 0 : 1;
}

static int run_mutation(enum mutation mutation, uint64_t first, uint64_t count)
{
    for (uint64_t seed = first; seed < first + count; seed++) {
        if (run_seed(seed, false, mutation))
            continue;
        printf("found by seed %" PRIu64 ": %s\n", seed, the_world.why);
        return 0;
    }
    printf("not found by %" PRIu64 " seeds\n", count);
    return 1;
}

static enum mutation mutation_by_name(const char *name)
{
    for (int m = 0; m < MUTATIONS_LEN; m++)
        if (strcmp(name, mutation_name((enum mutation)m)) == 0)
            return (enum mutation)m;
    fprintf(stderr, "no such mutation: %s; there are:", name);
    for (int m = 1; m < MUTATIONS_LEN; m++)
        fprintf(stderr, " %s", mutation_name((enum mutation)m));
    fprintf(stderr, "\n");
    exit(2);
}

int main(int argc, char **argv)
{
    enum mutation mutation = MUTATION_NONE;
    if (argc > 2 && strcmp(argv[1], "--mutation") == 0) {
        mutation = mutation_by_name(argv[2]);
        argv += 2;
        argc -= 2;
    }
    bool const until_broken = argc > 1 && strcmp(argv[1], "--until-broken") == 0;
    argv += until_broken;
    argc -= until_broken;
    tells = argc > 1 && strcmp(argv[1], "--told") == 0;
    argv += tells;
    argc -= tells;
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: sim [--mutation NAME | --until-broken | --told] SEED | FIRST COUNT\n");
        return 2;
    }
    uint64_t const first = strtoull(argv[1], NULL, 10);
    if (argc == 2)
        return run_one(first, mutation);
    uint64_t const count = strtoull(argv[2], NULL, 10);
    if (tells)
        return run_told(first, count);
    return mutation != MUTATION_NONE || until_broken ? run_mutation(mutation, first, count)
                                                     : run_many(first, count);
}
