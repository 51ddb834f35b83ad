/*
 * Detects turns that do not end: a thread that checks the code that the shards run (crash_page.h). After a
 * second it logs a warning; after --turn-limit the turn counts as a crash, and the process dies with a report
 * of where the code was. While code runs, and before it sleeps, as no code has run for 2 s, it gives free
 * memory back to the system (malloc_trim(3)) when the process has grown much since it did that last.
 */
#ifndef THOLE_WATCHDOG_H
#define THOLE_WATCHDOG_H
#include "engine.h"

struct watchdog;
THOLE_NODISCARD thole_status watchdog_start(struct engine_host *engine, struct watchdog **ret,
                                            thole_error *reterr);
void watchdog_stop(struct watchdog *watchdog); /* NULL-safe */
/* Code has begun to run in one of the places. Costs a load while the watchdog is awake. Any thread;
 * NULL-safe. */
void watchdog_stir(struct watchdog *watchdog);
#endif
