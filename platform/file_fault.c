#include "file_fault.h"
#include "write_flaw.h"
#include <string.h>

#define CANNOT_WRITE "cannot write to "

thole_status file_fault_read(const char *path, int why, thole_error *reterr)
{
    return thole_fail(reterr, THOLE_NOT_FOUND, "cannot read %.300s: %s", path, strerror(why));
}

thole_status file_fault_write(const char *path, int flaw, thole_error *reterr)
{
    return thole_fail(reterr, THOLE_UNAVAILABLE, CANNOT_WRITE "%.300s: %s", path, write_flaw_text(flaw));
}

bool file_fault_is_write(const thole_error *error)
{
    return error->status == THOLE_UNAVAILABLE &&
           strncmp(error->text, CANNOT_WRITE, strlen(CANNOT_WRITE)) == 0;
}
