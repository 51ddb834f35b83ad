#include "store_words.h"
#include "played_text.h"
#include "thole_cunit.h"
#include <inttypes.h>
#include <stdlib.h>

enum { SHOWN_ROWS = 2 };

struct store_line line;

void line_begin(char *words)
{
    char *save = NULL;
    line.len = line.letters_len = line.rows = 0;
    memset(&line.err, 0, sizeof line.err);
    for (char *word = strtok_r(words, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        CU_ASSERT_FATAL(line.len < LINE_WORDS_MAX);
        line.words[line.len++] = word;
    }
    line.refused_row = line_number_of("refuse");
}

static thole_slice slice_of(const char *word, size_t len)
{
    char *const room = line.letters + line.letters_len;
    size_t n = 0, letters = 0;
    if (word[0] == '@' && (letters = strtoul(word + 1, NULL, 10)) > 0) {
        CU_ASSERT_TRUE_FATAL(letters < LINE_LETTERS_MAX - line.letters_len);
        memset(room, 'a', n = letters);
    } else {
        n = played_unescape(word, len, room, LINE_LETTERS_MAX - line.letters_len);
    }
    room[n] = '\0';
    line.letters_len += n + 1;
    return (thole_slice){(const uint8_t *)room, n};
}

const char *line_option(const char *key)
{
    size_t const len = strlen(key);
    for (size_t i = 0; i < line.len; i++)
        if (strncmp(line.words[i], key, len) == 0 && line.words[i][len] == '=')
            return line.words[i] + len + 1;
    return NULL;
}

uint64_t line_number_of(const char *key)
{
    const char *const value = line_option(key);
    return value == NULL ? 0 : strtoull(value, NULL, 10);
}

thole_slice line_text_of(const char *key)
{
    const char *const value = line_option(key);
    return value == NULL ? (thole_slice){NULL, 0} : slice_of(value, strlen(value));
}

bool line_has(const char *word)
{
    for (size_t i = 0; i < line.len; i++)
        if (strcmp(line.words[i], word) == 0)
            return true;
    return false;
}

uint64_t line_number(size_t i)
{
    return i < line.len ? strtoull(line.words[i], NULL, 10) : 0;
}

thole_slice line_text(size_t i)
{
    return i < line.len ? slice_of(line.words[i], strlen(line.words[i])) : (thole_slice){NULL, 0};
}

struct fields fields_of(const char *word)
{
    struct fields ret = {.len = {0}};
    for (size_t i = 0; i < LINE_FIELDS_MAX; i++) {
        ret.at[i] = word;
        ret.len[i] = strcspn(word, "/");
        word += ret.len[i] + (word[ret.len[i]] == '/');
    }
    return ret;
}

thole_slice field_text(const struct fields *fields, size_t i)
{
    return fields->len[i] == 0 ? (thole_slice){NULL, 0} : slice_of(fields->at[i], fields->len[i]);
}

uint64_t field_number(const struct fields *fields, size_t i)
{
    return strtoull(fields->at[i], NULL, 10);
}

/* ---- returned rows ---- */

void put_number(const char *name, uint64_t value)
{
    if (value == UINT64_MAX)
        (void)fprintf(line.to, " %s=max", name);
    else if (value != 0)
        (void)fprintf(line.to, " %s=%" PRIu64, name, value);
}

void put_text(const char *name, thole_slice value)
{
    if (value.len == 0)
        return;
    (void)fprintf(line.to, " %s=", name);
    played_text(line.to, value);
}

void put_key(thole_slice instance, uint64_t execution, uint64_t id)
{
    (void)fputs("  - ", line.to);
    played_text(line.to, instance);
    (void)fprintf(line.to, " %" PRIu64 " %" PRIu64, execution, id);
}

bool line_shows_row(void)
{
    line.rows++;
    return line.rows <= SHOWN_ROWS || line.rows % 500 <= 1;
}

thole_status line_row_status(void)
{
    return line.refused_row != 0 && line.rows == line.refused_row ? THOLE_CONFLICT : THOLE_OK;
}

void put_end(void)
{
    (void)fputc('\n', line.to);
}
