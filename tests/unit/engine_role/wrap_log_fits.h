/* Each log is the one that was there: test_log_fit has those that are not. */
#ifndef THOLE_WRAP_LOG_FITS_H
#define THOLE_WRAP_LOG_FITS_H
#include "shard_parts.h"
#endif
