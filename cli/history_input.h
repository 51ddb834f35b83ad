/* Histories from a file that the command line names: - is stdin. */
#ifndef THOLE_HISTORY_INPUT_H
#define THOLE_HISTORY_INPUT_H
#include "command.h"
#include "event.h"

/* Slices are borrowed for the call. Anything but THOLE_OK stops the reading and is returned. */
struct history_input {
    thole_slice only; /* this instance's alone; empty: all */
    thole_status (*begin)(void *arg, thole_slice instance);
    /* Of a turn of the instance; bytes: as it is stored. */
    thole_status (*record)(void *arg, uint64_t sequence, const struct record *record, thole_slice bytes);
    thole_status (*end)(void *arg);
    void *arg;
};
/* THOLE_NOT_FOUND: no such file, or the instance is not in it; otherwise as history_file_read(). Texts begin
 * with the path; @p reterr is not NULL, and may be written by the functions, too. */
THOLE_NODISCARD thole_status history_input_read(const char *path, const struct history_input *input,
                                                thole_error *reterr);
#endif
