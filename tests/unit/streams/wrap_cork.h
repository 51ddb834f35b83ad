/* connection_cork() and connection_uncork() of a loop under test: in turn, and never corked while it sleeps.
 */
#ifndef THOLE_WRAP_CORK_H
#define THOLE_WRAP_CORK_H
#include <stdbool.h>

bool wrap_cork_is_on(void);
#endif
