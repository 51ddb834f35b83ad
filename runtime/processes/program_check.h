/* Checks of a program's registrations: names, functions, options. */
#ifndef THOLE_PROGRAM_CHECK_H
#define THOLE_PROGRAM_CHECK_H
#include "host_options.h"

/* THOLE_INVALID with a sentence that names the entry. */
THOLE_NODISCARD thole_status program_check(const thole_program *program, thole_error *reterr);
/* The part of it about orchestrations and activities, each by itself. */
THOLE_NODISCARD thole_status program_check_entries(const thole_program *program, thole_error *reterr);
/* Whether it has something to do in @p role. */
THOLE_NODISCARD thole_status program_check_role(const thole_program *program, enum host_role role,
                                                thole_error *reterr);
#endif
