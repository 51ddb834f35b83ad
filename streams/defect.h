/* Defects of a namespace: objects that are missing or differ from their specification. Each is found by
 * comparing the object itself. Pure. */
#ifndef THOLE_DEFECT_H
#define THOLE_DEFECT_H
#include "buf.h"
#include "thole/types.h"
#include <stdarg.h>

/* The object concerned; in the order of the label of thole_engine_defects. */
enum defect_object {
    DEFECT_CONFIG,
    DEFECT_SECRET,
    DEFECT_NODES,
    DEFECT_CRASHES,
    DEFECT_WORK,
    DEFECT_REJECTED,
    DEFECT_EVENTS,
    DEFECT_IN,
    DEFECT_HIST,
    DEFECT_QUEUE,
    DEFECT_TABLES,
    DEFECT_HOLDS, /* and the other stores that not every namespace has */
    DEFECT_BINDINGS,
    DEFECT_AUDIT,
    DEFECT_RESTORED,
    DEFECT_LIMITS, /* of the account: crowd.h */
    DEFECT_OBJECTS
};
extern const char *const defect_objects[DEFECT_OBJECTS + 1]; /* NULL-terminated */

enum defect_weight {
    DEFECT_WARNS,   /* works, and loses something that was meant to be there */
    DEFECT_REFUSED, /* an engine does not start so */
};

/* How it can be mended. */
enum defect_cure {
    CURE_NONE,   /* by people alone, as the remedy says */
    CURE_ENGINE, /* an engine makes it again by itself */
    CURE_FIX,    /* thole doctor --fix puts it right */
};

enum { DEFECT_NAME_BYTES = 200, DEFECT_VALUE_BYTES = 200, DEFECT_REMEDY_BYTES = 640 };

struct defect {
    enum defect_object object;
    enum defect_weight weight;
    enum defect_cure cure;
    uint32_t p;                   /* IN, HIST */
    char name[DEFECT_NAME_BYTES]; /* "stream THOLE_shop_WORK" */
    char field[64];               /* empty: all of it is missing */
    char found[DEFECT_VALUE_BYTES], needed[DEFECT_VALUE_BYTES];
    char remedy[DEFECT_REMEDY_BYTES];
};

typedef void defect_fn(void *arg, const struct defect *defect);

/* One sentence: "stream X is missing", "stream X has discard old, but new is needed". */
void defect_text(const struct defect *defect, struct buf *to);
/* Whether both have the same object, field and value. */
bool defect_equal(const struct defect *a, const struct defect *b);
#endif
