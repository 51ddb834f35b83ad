/* A client whose instances live once: each is started, and deleted, by a message that is stored exactly once.
 * Nothing repeats these requests, so the deletions may go after their time. */
#ifndef THOLE_CHURN_FAKE_H
#define THOLE_CHURN_FAKE_H
#include "log_fake.h"

void churn_begin(struct world *w);
/* Whether nothing that was ever asked of the instance can come again. */
bool churn_asks_no_more(const struct world *w, size_t instance);
#endif
