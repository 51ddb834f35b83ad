/* Claims that are numbers, from 1 in each session, so that a test can name them: "1" is the first task of it.
 */
#ifndef THOLE_WRAP_CLAIMS_H
#define THOLE_WRAP_CLAIMS_H
/* Counts from 0 again where the worker has no name. */
void claims_begin(void);
#endif
