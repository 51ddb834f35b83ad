#include "environment.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Variables that programs and the C library need to run, and that identify nobody. Proxies are not among
 * them: their URLs contain passwords. THOLE_PROCESS_ENV is among them since it is read as long as processes
 * run. */
static const char always[] =
    "THOLE_PROCESS_ENV,HOME,HOSTNAME,LANG,LANGUAGE,LC_*,LOGNAME,PATH,PWD,SHELL,TERM,TMPDIR,TEMP,TMP,TZ,TZDIR,"
    "USER,"
    "LD_LIBRARY_PATH,LD_PRELOAD,SSL_CERT_DIR,SSL_CERT_FILE,GLIBC_TUNABLES,MALLOC_*,OMP_NUM_THREADS,"
    "ASAN_OPTIONS,LSAN_OPTIONS,TSAN_OPTIONS,UBSAN_OPTIONS";

static bool is_name_byte(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

thole_status environment_check(const char *names, thole_error *reterr)
{
    if (names == NULL || *names == '\0')
        return THOLE_OK;
    for (const char *at = names;; at++) {
        const char *const from = at;
        while (is_name_byte(*at))
            at++;
        bool const star = *at == '*';
        at += star;
        if ((at == from) || (*at != ',' && *at != '\0'))
            return thole_fail(reterr, THOLE_INVALID,
                              "'%s' is no list of variables: names with commas between them, each with an "
                              "optional * at its end",
                              names);
        if (*at == '\0')
            return THOLE_OK;
    }
}

static bool environment_is_listed(const char *name, size_t len, const char *names)
{
    while (names != NULL && *names != '\0') {
        size_t const n = strcspn(names, ",");
        bool const star = n > 0 && names[n - 1] == '*';
        size_t const same = n - star;
        if (n > 0 && (star ? len >= same : len == same) && memcmp(name, names, same) == 0)
            return true;
        names += n + (names[n] == ',');
    }
    return false;
}

bool environment_allows(const char *variable, const char *names)
{
    size_t const len = strcspn(variable, "=");
    return environment_is_listed(variable, len, always) || environment_is_listed(variable, len, names);
}

/* The kernel writes: a text that cannot be written (main() may have given a literal to putenv()) is an error
 * of its, and no crash. */
void environment_erase(char *text, size_t len)
{
    int const zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    if (zeros < 0) {
        explicit_bzero(text, len);
        return;
    }
    while (len > 0) {
        ssize_t const n = read(zeros, text, len);
        if (n <= 0)
            break;
        text += n;
        len -= (size_t)n;
    }
    (void)close(zeros);
}

void environment_keep(const char *names)
{
    extern char **environ;
    char **to = environ;
    for (char **from = environ; from != NULL && *from != NULL; from++) {
        if (environment_allows(*from, names))
            *to++ = *from;
        else
            environment_erase(*from, strlen(*from));
    }
    if (to != NULL)
        *to = NULL;
}
