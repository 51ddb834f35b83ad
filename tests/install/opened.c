/* Acts like a language's runtime: loads libthole.so into a process that runs already, with threads. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static void *load(void *path)
{
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *(*version)(void) = NULL;
    if (library == NULL) {
        (void)fprintf(stderr, "opened: %s\n", dlerror());
        return NULL;
    }
    *(void **)&version = dlsym(library, "thole_version");
    return version == NULL ? NULL : (void *)version();
}

int main(int argc, char **argv)
{
    pthread_t thread;
    void *version = NULL;
    if (argc != 2 || pthread_create(&thread, NULL, load, argv[1]) != 0 || pthread_join(thread, &version) != 0)
        return 2;
    (void)printf("opened at run time: %s\n", version == NULL ? "no" : (const char *)version);
    return version == NULL;
}
