/*
 * Contexts: options of the command that are kept under a name, in files as --config reads them:
 *
 *   ~/.config/thole/contexts/NAME.yaml   ($XDG_CONFIG_HOME instead of ~/.config, when it is set)
 *   ~/.config/thole/current              the name of the one in use
 */
#ifndef THOLE_CONTEXT_H
#define THOLE_CONTEXT_H
#include "command.h"

enum { CONTEXT_PATH_BYTES = 4096 };

/* The file of the context that --context names, or that is in use; "" when there is none. THOLE_INVALID: the
 * one that is named is not there. */
thole_status context_path(const char *name, char ret[CONTEXT_PATH_BYTES], thole_error *reterr);
#endif
