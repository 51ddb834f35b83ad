/*
 * An orchestration whose input is its program: each byte is a step. For fuzzing: it uses the whole language,
 * in any order and with wrong arguments, and is deterministic whatever the bytes are.
 */
#ifndef THOLE_BYTE_PROGRAM_H
#define THOLE_BYTE_PROGRAM_H
#include "thole/orchestration.h"

thole_status byte_program(thole_ctx *ctx, thole_slice input, thole_slice *ret_output);
#endif
