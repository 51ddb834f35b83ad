/* The whole output of the command: cli.transcript has command lines ("$ thole …"), each followed by the calls
 * of the client ("<"), stdout, stderr ("!") and the exit code ("="). With THOLE_WRITE_TRANSCRIPT=1 in the
 * environment the file is written again, to be read and committed. */
#include "captured.h"
#include "command.h"
#include "thole_cunit.h"
#include "transcript.h"
#include "wrap_command_world.h"
#include "wrap_queue_settings.h"
#include "wrap_standing.h"
#include "wrap_timers.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRANSCRIPT THOLE_SOURCE_DIR "/tests/unit/command/cli.transcript"
enum { WORDS_MAX = 32, TEXT_MAX = 128 * 1024 };

struct line {
    char room[TEXT_MAX];
    char *words[WORDS_MAX];
    int len, code;
    char *said;    /* on stderr */
    char *setting; /* in the environment; NULL: none */
    FILE *in;
};

/* NAME=VALUE before the command, which the environment has for this line; then words between spaces or '…';
 * the text after <<< is stdin, with % for the end of a line, and *N for N bytes more than that. */
static void split(struct line *line, const char *text)
{
    memset(line, 0, sizeof *line);
    (void)snprintf(line->room, sizeof line->room, "%s", text);
    char *const in = strstr(line->room, " <<< ");
    line->in = tmpfile();
    CU_ASSERT_PTR_NOT_NULL_FATAL(line->in);
    for (const char *c = in == NULL ? "" : in + 5; *c != '\0'; c++)
        (void)fputc(*c == '%' ? '\n' : *c, line->in);
    for (long n = in != NULL && in[5] == '*' ? strtol(in + 6, NULL, 10) : 0; n > 0; n--)
        (void)fputc('x', line->in);
    (void)fflush(line->in);
    rewind(line->in);
    if (in != NULL)
        *in = '\0';
    char *at = line->room;
    if (strncmp(at, "THOLE_", 6) == 0) {
        line->setting = at;
        at += strcspn(at, " ");
        *at++ = '\0';
        CU_ASSERT_EQUAL(putenv(line->setting), 0);
    }
    while (*at != '\0') {
        bool const quoted = *at == '\'';
        at += quoted;
        CU_ASSERT_FATAL(line->len < WORDS_MAX - 1);
        line->words[line->len++] = at;
        at += strcspn(at, quoted ? "'" : " ");
        if (*at != '\0')
            *at++ = '\0';
        at += strspn(at, " ");
    }
}

static void run_words(void *arg)
{
    struct line *const line = arg;
    line->code = cli_main(line->len, line->words);
}

static void run_line(void *arg)
{
    struct line *const line = arg;
    line->said = captured(STDERR_FILENO, run_words, line);
}

static void add_lines(FILE *to, const char *before, const char *text)
{
    while (*text != '\0') {
        size_t const len = strcspn(text, "\n");
        (void)fprintf(to, "%s%s", before, before[0] != '\0' && len > 0 ? " " : "");
        for (size_t i = 0; i < len; i++) /* so that the file is text */
            (void)fprintf(to, (uint8_t)text[i] < 0x20 || (uint8_t)text[i] == 0xff ? "<%02x>" : "%c",
                          (uint8_t)text[i]);
        (void)fprintf(to, "%s\n",
                      text[len] == '\0'                 ? "<no end of line>"
                      : len > 0 && text[len - 1] == ' ' ? "<>"
                                                        : "");
        text += len + (text[len] != '\0');
    }
}

/* The contents of the file of that name, written by the command. */
static void add_file(FILE *to)
{
    struct stat about;
    if (lstat("written", &about) == 0)
        (void)fprintf(to, "+ a file of %llu bytes\n", (unsigned long long)about.st_size);
    (void)remove("written");
    if (remove("written.part") == 0)
        (void)fprintf(to, "+ what is half of a file\n");
}

static void play_line(const char *text, FILE *to)
{
    static struct line line;
    memset(&play, 0, sizeof play);
    split(&line, text);
    int const before = dup(STDIN_FILENO);
    (void)dup2(fileno(line.in), STDIN_FILENO);
    rewind(stdin);
    clearerr(stdin);
    char *const out = captured(STDOUT_FILENO, run_line, &line);
    if (line.setting != NULL) {
        *strchr(line.setting, '=') = '\0';
        (void)unsetenv(line.setting);
    }
    (void)dup2(before, STDIN_FILENO);
    (void)close(before);
    (void)fclose(line.in);
    add_lines(to, "", out);
    add_lines(to, "!", line.said);
    add_file(to);
    (void)fprintf(to, "= %d%s\n", line.code, play.owned == 0 ? "" : ", and something is not released");
    free(line.said);
    free(out);
}

static char folder[32];

/* A folder of its own, with a link to where nothing can be written to. */
static void enter(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/thole-unit.XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(folder) != NULL && chdir(folder) == 0 && symlink("/dev/full", "full") == 0);
}

static void leave(void)
{
    CU_ASSERT_EQUAL(unlink("full"), 0); /* the file still exists */
    CU_ASSERT_TRUE(chdir("/") == 0 && rmdir(folder) == 0);
}

static void test_transcript(void)
{
    enter();
    transcript_check(TRANSCRIPT, play_line);
    leave();
}

/* Nothing stays on the heap. */
static void test_heap(void)
{
    enter();
    transcript_check_heap(TRANSCRIPT, play_line);
    leave();
}

/* Settings of the command would change what it prints. */
int main(void)
{
    static const struct thole_test tests[] = {{"transcript", test_transcript}, {"heap", test_heap}};
    static const char *const settings[] = {"THOLE_NATS_URL",   "THOLE_NATS_CREDS", "THOLE_NATS_CA",
                                           "THOLE_NATS_CERT",  "THOLE_NATS_KEY",   "THOLE_NATS_SERVER_NAME",
                                           "THOLE_NATS_INBOX", "THOLE_POSTGRES",   "THOLE_NAMESPACE",
                                           "THOLE_PAYLOAD_MAX"};
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        (void)unsetenv(settings[i]);
    return thole_run_suite("cli_transcript", tests, ARRAY_LEN(tests));
}
