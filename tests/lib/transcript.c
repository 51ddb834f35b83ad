#include "transcript.h"
#include "heap.h"
#include "thole_cunit.h"
#include <stdint.h>
#include <stdlib.h>

enum { TEXT_MAX = 1024 * 1024 };

static char *read_file(const char *path)
{
    char *const text = calloc(1, TEXT_MAX);
    FILE *const from = fopen(path, "re");
    CU_ASSERT_FATAL(text != NULL && from != NULL);
    CU_ASSERT_FATAL(fread(text, 1, TEXT_MAX - 1, from) < TEXT_MAX - 1);
    (void)fclose(from);
    return text;
}

static char *play_all(const char *script, transcript_line_fn *play)
{
    char *text = NULL;
    size_t len = 0;
    FILE *const to = open_memstream(&text, &len);
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    for (const char *at = script; *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n') {
        if (*at != '#' && (at[0] != '$' || at[1] != ' '))
            continue;
        char *const line = strndup(at, strcspn(at, "\n"));
        (void)fprintf(to, "%s%s\n", at == script ? "" : "\n", line);
        if (*at == '$')
            play(line + 2, to);
        free(line);
    }
    (void)fclose(to);
    return text;
}

static void say_difference(const char *path, const char *got, const char *want)
{
    size_t at = 0, line = 1;
    for (; got[at] == want[at]; at++)
        line += got[at] == '\n';
    for (; at > 0 && got[at - 1] != '\n'; at--)
        continue;
    fprintf(stderr, "\n  %s:%zu\n    got  %.*s\n    want %.*s\n", path, line, (int)strcspn(got + at, "\n"),
            got + at, (int)strcspn(want + at, "\n"), want + at);
}

void transcript_check(const char *path, transcript_line_fn *play)
{
    char *const want = read_file(path), *const got = play_all(want, play);
    if (getenv("THOLE_WRITE_TRANSCRIPT") != NULL) {
        FILE *const to = fopen(path, "we");
        CU_ASSERT_PTR_NOT_NULL_FATAL(to);
        (void)fputs(got, to);
        (void)fclose(to);
    } else if (strcmp(got, want) != 0) {
        say_difference(path, got, want);
        CU_FAIL("the transcript differs");
    }
    free(got);
    free(want);
}

void transcript_check_heap(const char *path, transcript_line_fn *play)
{
    /* The first rounds may fill lists of what is used again; where threads play along, that takes some more.
     * What is lost in each round grows in each. */
    enum { ROUNDS = 16, ROUNDS_MAX = 64, IN_TURN = 6 };
    char *const script = read_file(path);
    size_t before = SIZE_MAX, grown_in_turn = 0;
    for (int i = 0; i < ROUNDS || (i < ROUNDS_MAX && grown_in_turn >= IN_TURN); i++) {
        free(play_all(script, play));
        size_t const used = heap_used();
        grown_in_turn = used > before ? grown_in_turn + 1 : 0;
        before = used;
    }
    CU_ASSERT_TRUE(grown_in_turn < IN_TURN);
    free(script);
}
