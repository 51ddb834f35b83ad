/* The limits of the ledger: what one activity may cost at 64 in flight. */
#include "ledger.h"

enum { MESSAGES, TRANSACTIONS, WAITS, LIMITS };

/* Measured: 4.05 to 4.2 messages; 0.1 to 0.14 transactions, 0.6 to 1.8 waits: fewer on a busy machine, whose
 * batches are larger. */
static const struct {
    const char *figure;
    double most;
} limits[LIMITS] = {[MESSAGES] = {"messages into NATS", 4.7},
                    [TRANSACTIONS] = {"transactions that write", 0.3},
                    [WAITS] = {"waits of the engine and the worker", 6}};

int ledger_gate(const struct measurement *chain, FILE *out)
{
    const struct process_cost *const roles = chain->cost.roles;
    double const values[LIMITS] = {[MESSAGES] = per(chain->cost.nats.in_messages, chain),
                                   [TRANSACTIONS] = per(chain->cost.postgres.writing, chain),
                                   [WAITS] = per(roles[ROLE_ENGINE].waits + roles[ROLE_WORKER].waits, chain)};
    int code = 0;
    for (size_t i = 0; i < LIMITS; i++) {
        if (values[i] <= limits[i].most)
            continue;
        code = LEDGER_OVER_LIMIT;
        (void)fprintf(out,
                      "ledger: %s per activity: %.3f, and %.3f is the limit: run `scripts/bench ledger` with "
                      "and without your change to see whose they are; mend it, or raise the limit in "
                      "bench/ledger/ledger_gate.c and say there what was measured\n",
                      limits[i].figure, values[i], limits[i].most);
    }
    return code;
}
