/* export --test: a history, and a unit test that begins from it. */
#include "client_internal.h"
#include "export.h"
#include "private_file.h"
#include "write_flaw.h"
#include <errno.h>
#include <string.h>

/* A string of C: what is not printable ASCII in octal digits. */
static void put_string(FILE *to, thole_slice text)
{
    (void)fputc('"', to);
    for (size_t i = 0; i < text.len; i++) {
        uint8_t const c = text.ptr[i];
        if (c == '"' || c == '\\')
            (void)fprintf(to, "\\%c", c);
        else if (c >= 0x20 && c < 0x7f && c != '?')
            (void)fputc(c, to);
        else
            (void)fprintf(to, "\\%03o", c);
    }
    (void)fputc('"', to);
}

static const char *status_constant(thole_instance_status status)
{
    switch (status) {
    case THOLE_INSTANCE_FAILED: return "THOLE_INSTANCE_FAILED";
    case THOLE_INSTANCE_CANCELLED: return "THOLE_INSTANCE_CANCELLED";
    case THOLE_INSTANCE_TERMINATED: return "THOLE_INSTANCE_TERMINATED";
    default: return "THOLE_INSTANCE_COMPLETED";
    }
}

struct described {
    const char *expected;
    bool ended;
    char orchestration[THOLE_NAME_BYTES_MAX + 1];
};

static thole_status export_test_describe(void *arg, const thole_inspection *inspection)
{
    struct described *described = arg;
    described->expected = status_constant(inspection->status);
    described->ended =
        inspection->status != THOLE_INSTANCE_RUNNING && inspection->status != THOLE_INSTANCE_PAUSED;
    (void)snprintf(described->orchestration, sizeof described->orchestration, "%.*s",
                   THOLE_FMT(inspection->orchestration));
    return THOLE_OK;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static void put_test(FILE *to, const char *history, thole_slice id, const struct described *described)
{
    (void)fprintf(
        to,
        "/* A recorded case of %s as a test. Written by thole export --test; it is yours to change.\n"
        " * A program in one file, which may have a main() and a static `program`:\n"
        " *   cc -DSOURCE='\"program.c\"' %.*s.c $(pkg-config --cflags --libs thole)\n"
        " * One that is linked with it, under another name: cc -DPROGRAM=my_program FILE.c REST.c ... */\n"
        "#include <stdbool.h>\n#include <stdio.h>\n#include <thole/testing.h>\n\n"
        "#ifndef PROGRAM\n#define PROGRAM program /* what main() hands to thole_main() */\n#endif\n"
        "#ifdef SOURCE\n#define main program_main\n#include SOURCE\n#undef main\n"
        "#else\nextern const thole_program PROGRAM;\n#endif\n\n"
        "int main(int argc, char **argv)\n{\n"
        "    const char *path = argc > 1 ? argv[1] : ",
        described->orchestration, (int)(strlen(base_name(history)) - strlen(".thole")), base_name(history));
    put_string(to, thole_slice_from(base_name(history)));
    (void)fprintf(to, ";\n    thole_slice const id = THOLE_STR(");
    put_string(to, id);
    (void)fprintf(to,
                  ");\n    thole_error error = {.status = THOLE_OK};\n"
                  "    thole_test_env *const env = thole_test_create(&PROGRAM);\n"
                  "    /* Activities that had not ended run again, unless they are scripted here:\n"
                  "     *   thole_test_returns(env, \"charge\", THOLE_STR(\"charged\"), 0);\n"
                  "     * The number: only as far as this event of the history; 0: all of it. */\n"
                  "    if (thole_test_load_history(env, path, id, 0, &error) != THOLE_OK) {\n"
                  "        (void)fprintf(stderr, \"%%s\\n\", error.text);\n        return 2;\n    }\n"
                  "    %s\n"
                  "    bool const good = thole_test_run(env, id) == %s;\n"
                  "    thole_slice const output = thole_test_output(env, id);\n"
                  "    if (!good)\n        (void)printf(\"%%.*s\\n\", THOLE_FMT(output));\n"
                  "    if (!good)\n        (void)puts(thole_test_history(env, id));\n"
                  "    thole_test_destroy(env);\n    return good ? 0 : 1;\n}\n",
                  described->ended ? "/* It had ended: it must end the same again. */"
                                   : "/* It had not ended: what should happen from here? */",
                  described->expected);
}

int export_test_write(const struct cli *cli, thole_client *client, const char *history)
{
    struct described described = {.expected = "THOLE_INSTANCE_COMPLETED"};
    thole_slice const id = thole_slice_from(cli->words[0]);
    thole_error error = {.status = THOLE_OK};
    error.status = thole_client_inspect(client, id, export_test_describe, &described, &error);
    if (error.status != THOLE_OK)
        return cli_complain(cli, cli->words[0], &error);
    FILE *to = private_file_open(cli->options.test, "wx");
    if (to == NULL)
        return cli_unwritten(cli, cli->options.test, errno);
    put_test(to, history, id, &described);
    int const flaw = write_flaw_close(to);
    if (flaw != 0)
        return cli_unwritten(cli, cli->options.test, flaw);
    if (cli->options.output == OUTPUT_TABLE)
        (void)printf("%s and %s\n", cli->options.test, history);
    return EXIT_DONE;
}
