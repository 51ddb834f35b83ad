/*
 * Checks that the tables of a schema are as the migrations make them: their columns, types, indexes,
 * constraints, triggers, functions and domains, and not only the number of the last migration. Other objects
 * are ignored.
 */
#ifndef THOLE_SCHEMA_LOOK_H
#define THOLE_SCHEMA_LOOK_H
#include "defect.h"
#include "postgres.h"

/* A part of the schema that the migrations make, in the order in which it can be made; written by
 * integration.schema_shape. */
struct schema_part {
    const char *kind;  /* "table", "column", "constraint", "index", "trigger", "function", "domain" */
    const char *table; /* empty: of none */
    const char *name;
    const char *text; /* of an index and a trigger: the statement; of a constraint: what follows its name */
};
extern const struct schema_part schema_shape[];
extern const size_t schema_shape_len;

typedef void schema_part_fn(void *arg, const struct schema_part *part);
/* Reads the parts that exist. */
THOLE_NODISCARD thole_status schema_read(struct postgres *pg, schema_part_fn *each, void *arg,
                                         thole_error *reterr);
/* One call for each part that is missing (DEFECT_REFUSED) or has another text (DEFECT_WARNS).
 * THOLE_NOT_FOUND: there is none at all. */
THOLE_NODISCARD thole_status schema_look(struct postgres *pg, defect_fn *each, void *arg,
                                         thole_error *reterr);
/*
 * Inside a transaction that holds the lock of migrations: makes missing parts by their names. Indexes,
 * constraints and triggers alone; if a table, a column, a function or a domain is missing, @p migrate makes
 * all tables again, from the first migration on, and the engines fill them from the histories.
 */
typedef thole_status schema_make_fn(struct postgres *pg, thole_error *reterr);
THOLE_NODISCARD thole_status schema_mend(struct postgres *pg, schema_make_fn *migrate, thole_error *reterr);
#endif
