/* The settings in natsOptions, as text; nothing is set. */
#ifndef THOLE_WRAP_NATS_OPTIONS_H
#define THOLE_WRAP_NATS_OPTIONS_H
#include <nats/nats.h>

typedef natsStatus played_option_fn(const char *name, const char *value);
extern played_option_fn *played_option;
#endif
