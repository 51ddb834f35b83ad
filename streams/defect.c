#include "defect.h"
#include <string.h>

const char *const defect_objects[DEFECT_OBJECTS + 1] = {
    "config", "secret", "nodes", "crashes",  "work",  "rejected", "events", "in", "hist",
    "queue",  "tables", "holds", "bindings", "audit", "restored", "limits", NULL};

void defect_text(const struct defect *defect, struct buf *to)
{
    if (defect->field[0] == '\0')
        buf_printf(to, "%s is missing", defect->name);
    else
        buf_printf(to, "%s has %s %s, but %s is needed", defect->name, defect->field, defect->found,
                   defect->needed);
}

bool defect_equal(const struct defect *a, const struct defect *b)
{
    return a->object == b->object && strcmp(a->name, b->name) == 0 && strcmp(a->field, b->field) == 0 &&
           strcmp(a->found, b->found) == 0;
}
