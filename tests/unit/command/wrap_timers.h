/* See wrap_timers.c: who includes this is linked with it. */
#ifndef THOLE_WRAP_TIMERS_H
#define THOLE_WRAP_TIMERS_H
#endif
