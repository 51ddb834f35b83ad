#include "write_flaw.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

int write_flaw(FILE *file)
{
    if (fflush(file) != 0)
        return errno;
    if (!ferror(file))
        return 0;
    /* The bytes that could not be written are not in the buffer any more. */
    return fputc('\n', file) == EOF || fflush(file) != 0 ? errno : WRITE_FLAW_UNKNOWN;
}

int write_flaw_close(FILE *file)
{
    int const flaw = write_flaw(file);
    return fclose(file) != 0 && flaw == 0 ? errno : flaw;
}

int write_whole(int fd, const void *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t const n = write(fd, (const char *)bytes + done, len - done);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n == 0)
            return EIO; /* a file that takes nothing, and says no error */
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

const char *write_flaw_text(int flaw)
{
    return flaw == WRITE_FLAW_UNKNOWN ? "an earlier write has failed" : strerror(flaw);
}
