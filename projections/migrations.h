/*
 * The numbered SQL files of projections/migrations, embedded in the library at build time
 * (cmake/EmbedMigrations.cmake), in ascending order of their numbers: 1, 2, 3, … without a gap.
 */
#ifndef THOLE_MIGRATIONS_H
#define THOLE_MIGRATIONS_H
#include <stddef.h>

struct migration {
    int number;       /* 1 for 0001_init.sql */
    const char *name; /* "0001_init" */
    const char *sql;  /* the file's text, NUL-terminated; may hold several statements */
};

extern const struct migration migrations[]; /* one more row than migrations_len, all zero, ends it */
extern const size_t migrations_len;
/* deploy/postgres/grants.sql, a script for psql with the variables schema, owner, engine, worker, reader. */
extern const char *const grants_sql;

#endif
