#include "link.h"

struct thread_name link_name_begin(const char *name)
{
    struct thread_name own = {.text = ""};
    (void)pthread_getname_np(pthread_self(), own.text, sizeof own.text);
    (void)pthread_setname_np(pthread_self(), name);
    return own;
}

void link_name_end(const struct thread_name *own)
{
    (void)pthread_setname_np(pthread_self(), own->text);
}
