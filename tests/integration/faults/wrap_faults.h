/* Faults between the roles and what speaks to the servers: one call of a site is answered wrongly, once. */
#ifndef THOLE_WRAP_FAULTS_H
#define THOLE_WRAP_FAULTS_H
#include "thole/types.h"

enum fault {
    FAULT_ERROR,   /* the server's answer is an error; nothing was done */
    FAULT_TIMEOUT, /* done, without an answer */
    FAULT_LOST,    /* the connection is lost before anything is sent */
    FAULT_UNFIT,   /* the answer makes no sense (of a publish: busy); nothing was done */
    FAULTS
};
extern const char *const fault_names[FAULTS];

void fault_exempt_me(void); /* calls of this thread never fail: it is the test's */
/* From now on, and forgets what was counted and logged. @p site: as wrap_faults.c names them; NULL: none. */
void fault_arm(const char *site, enum fault fault);
bool fault_was_hit(void);
bool fault_passed_again(void); /* the site was called again after the fault, and went well */
bool fault_logged(const char *text);
void fault_print_log(void);
#endif
