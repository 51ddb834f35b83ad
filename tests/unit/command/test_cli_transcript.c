/* What the command prints, whole: cli.transcript has command lines ("$ thole …") and behind each what it
 * asked the client for ("<"), its stdout, its stderr ("!") and its exit code ("="). With
 * THOLE_WRITE_TRANSCRIPT=1 in the environment the file is written anew, to be read and committed. */
#include "captured.h"
#include "command.h"
#include "heap.h"
#include "thole_cunit.h"
#include "wrap_command_world.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRANSCRIPT THOLE_SOURCE_DIR "/tests/unit/command/cli.transcript"
enum { WORDS_MAX = 24, TEXT_MAX = 1024 * 1024 };

struct line {
    char room[TEXT_MAX / 8];
    char *words[WORDS_MAX];
    int len, code;
    char *said; /* on stderr */
    FILE *in;
};

/* Words between spaces or '…'; what stands behind <<< is stdin, with % for the end of a line, and *N for N
 * bytes more than that. */
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
    for (char *at = line->room; *at != '\0';) {
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

/* What a command has written to the file of that name. */
static void add_file(FILE *to)
{
    struct stat about;
    if (lstat("written", &about) == 0)
        (void)fprintf(to, "+ a file of %llu bytes\n", (unsigned long long)about.st_size);
    (void)remove("written");
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

static char *read_file(const char *path)
{
    char *const text = calloc(1, TEXT_MAX);
    FILE *const from = fopen(path, "re");
    CU_ASSERT_FATAL(text != NULL && from != NULL);
    CU_ASSERT_FATAL(fread(text, 1, TEXT_MAX - 1, from) < TEXT_MAX - 1);
    (void)fclose(from);
    return text;
}

/* All command lines of @p script, and what they print. */
static char *play_all(const char *script)
{
    char *text = NULL, *line = NULL;
    size_t len = 0;
    FILE *const to = open_memstream(&text, &len);
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    for (const char *at = script; *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n') {
        if (*at != '#' && (at[0] != '$' || at[1] != ' '))
            continue;
        line = strndup(at, strcspn(at, "\n"));
        (void)fprintf(to, "%s%s\n", at == script ? "" : "\n", line);
        if (*at == '$')
            play_line(line + 2, to);
        free(line);
    }
    (void)fclose(to);
    return text;
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
    CU_ASSERT_EQUAL(unlink("full"), 0); /* it is still there */
    CU_ASSERT_TRUE(chdir("/") == 0 && rmdir(folder) == 0);
}

static void test_transcript(void)
{
    bool const writes = getenv("THOLE_WRITE_TRANSCRIPT") != NULL;
    (void)clearenv(); /* settings of the command */
    enter();
    char *const want = read_file(TRANSCRIPT), *const got = play_all(want);
    leave();
    if (writes) {
        FILE *const to = fopen(TRANSCRIPT, "we");
        CU_ASSERT_PTR_NOT_NULL_FATAL(to);
        (void)fputs(got, to);
        (void)fclose(to);
    } else if (strcmp(got, want) != 0) {
        size_t at = 0, line = 1;
        for (; got[at] == want[at]; at++)
            line += got[at] == '\n';
        for (; at > 0 && got[at - 1] != '\n'; at--)
            continue;
        fprintf(stderr, "\n  cli.transcript:%zu\n    got  %.*s\n    want %.*s\n", line,
                (int)strcspn(got + at, "\n"), got + at, (int)strcspn(want + at, "\n"), want + at);
        CU_FAIL("the transcript differs");
    }
    free(got);
    free(want);
}

/* Nothing stays on the heap. */
static void test_heap(void)
{
    char *const script = read_file(TRANSCRIPT);
    enter();
    free(play_all(script));
    free(play_all(script));
    size_t const before = heap_used();
    free(play_all(script));
    CU_ASSERT_EQUAL(heap_used(), before);
    leave();
    free(script);
}

static const struct thole_test tests[] = {{"transcript", test_transcript}, {"heap", test_heap}};
THOLE_TEST_MAIN("cli_transcript", tests)
