/* Words of a line of stores.transcript, and the output that follows it. */
#ifndef STORE_WORDS_H
#define STORE_WORDS_H
#include "arena.h"
#include <stdio.h>

enum { LINE_WORDS_MAX = 24, LINE_LETTERS_MAX = 65536, LINE_FIELDS_MAX = 16 };

struct store_line {
    char *words[LINE_WORDS_MAX];
    size_t len;
    char letters[LINE_LETTERS_MAX]; /* of what words say */
    size_t letters_len;
    FILE *to;
    size_t rows;          /* given to a callback */
    uint64_t refused_row; /* the callback refuses it; 0: none */
    struct arena arena;
    thole_error err;
};
extern struct store_line line;

/* Cuts a line's words and forgets what was before. */
void line_begin(char *words);
/* The value of KEY=; NULL: it has none. */
const char *line_option(const char *key);
uint64_t line_number_of(const char *key); /* 0: it has none */
thole_slice line_text_of(const char *key);
bool line_has(const char *word);
/* The i-th word; 0 and empty after the last one. */
uint64_t line_number(size_t i);
thole_slice line_text(size_t i);

/* The columns of a row: "/" is between them. */
struct fields {
    const char *at[LINE_FIELDS_MAX];
    size_t len[LINE_FIELDS_MAX];
};
struct fields fields_of(const char *word);
thole_slice field_text(const struct fields *fields, size_t i);
uint64_t field_number(const struct fields *fields, size_t i);

/* " NAME=VALUE" unless it is 0 or empty. */
void put_number(const char *name, uint64_t value);
void put_text(const char *name, thole_slice value);
void put_key(thole_slice instance, uint64_t execution, uint64_t id);
void put_end(void);
/* Counts a row; true: it is written. */
bool line_shows_row(void);
/* The status that the line's callback returns. */
thole_status line_row_status(void);
#endif
