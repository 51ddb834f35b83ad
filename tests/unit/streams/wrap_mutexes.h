/* Mutexes that are made meanwhile find out what is wrong with their use: one that is unlocked and was not
 * locked by this thread, is locked twice by it, or is destroyed while it is locked ends the test. */
#ifndef WRAP_MUTEXES_H
#define WRAP_MUTEXES_H
#endif
