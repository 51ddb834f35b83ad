#include "payload.h"
#include "text.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 64 * 1024 };

/* One byte more than allowed is read, so that too much is told apart from just enough. */
static bool payload_read_all(FILE *from, uint64_t max, struct buf *to)
{
    char chunk[CHUNK];
    size_t n;
    while (to->len <= max && (n = fread(chunk, 1, sizeof chunk, from)) > 0)
        buf_append(to, chunk, n);
    return !ferror(from) && buf_status(to) == THOLE_OK;
}

bool payload_read(const struct cli *cli, const char *text, struct buf *to, int *ret_code)
{
    const char *input = text == NULL ? "" : text;
    const char *path = input[0] == '@' ? input + 1 : NULL;
    bool const standard = strcmp(input, "-") == 0;
    buf_init(to, cli->options.payload_max + CHUNK + 1);
    if (path == NULL && !standard) {
        buf_text(to, input);
    } else {
        FILE *from = standard ? stdin : fopen(path, "re");
        bool const ok = from != NULL && payload_read_all(from, cli->options.payload_max, to);
        int const error = errno;
        if (from != NULL && !standard)
            (void)fclose(from);
        if (!ok) {
            *ret_code = cli_unread(cli, standard ? "stdin" : path, error, "the path of a file, after @");
            return false;
        }
    }
    if (buf_status(to) == THOLE_OK && to->len <= cli->options.payload_max)
        return true;
    *ret_code = cli_misused(cli, "the input has more than %" PRIu64 " bytes; see --payload-max",
                            cli->options.payload_max);
    return false;
}

static void print_shown(thole_slice bytes)
{
    struct buf text;
    buf_init(&text, 4 * bytes.len + 16);
    text_lines(&text, bytes);
    (void)fputs(buf_cstr(&text), stdout);
    buf_release(&text);
}

void payload_print(const struct cli *cli, thole_slice bytes)
{
    if (!cli->options.unescaped && isatty(STDOUT_FILENO) == 1)
        print_shown(bytes);
    else if (bytes.len > 0)
        (void)fwrite(bytes.ptr, 1, bytes.len, stdout);
    if (!cli->options.unescaped && (bytes.len == 0 || bytes.ptr[bytes.len - 1] != '\n'))
        (void)fputc('\n', stdout);
}
