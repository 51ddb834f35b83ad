/*
 * The true end of every claim, kept beside the database and independent of its contents; which activities
 * kill their workers, and when. From that follows which activities must not be called poisoned, and which
 * must not run beside each other.
 */
#ifndef THOLE_LOSSES_H
#define THOLE_LOSSES_H
#include "store_fake.h"

struct held;
struct losses;
struct losses *losses_create(struct world *w);

/* The database does what a statement says: a claim is made, settles, is given back, is reported as not lost,
 * is completed.
 */
void losses_claimed(struct world *w, const struct sim_claim *claim, thole_slice worker);
/* The row names the claim again, or for the first time: an activity that ran at once had no claim. */
void losses_restored(struct world *w, const struct sim_claim *claim, thole_slice worker);
void losses_heard(struct world *w, const struct sim_claim *claim, thole_slice worker); /* the answer comes */
void losses_settled(struct world *w, const struct sim_claim *claim, thole_slice worker);
void losses_reported(struct world *w, const struct sim_claim *claim, thole_slice worker);
void losses_blamed(struct world *w, const struct sim_claim *claim, thole_slice worker);
void losses_completed(struct world *w, const struct row *row);
/* The worker hears that the row is gone: it has finished with the claim, and does not wait for it to end. The
 * row may come back, with an old copy or because the database forgets its removal. */
void losses_gone(struct world *w, const struct sim_claim *claim, thole_slice worker);
/* The database crashes: it may know nothing of the newest claims. */
void losses_forget(struct world *w);

/* A handler starts: will this run of it kill its worker? */
bool losses_kills(struct world *w, const struct held *h);
void losses_killed(struct world *w, const struct held *killer); /* kills its worker now */
void losses_died(struct world *w, thole_slice worker);          /* for this reason, or for another */
/* A worker says that it is poisoned: it must be. */
void losses_poisoned(struct world *w, const struct held *h);
#endif
