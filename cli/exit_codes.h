/*
 * Exit codes of `thole`, and the one table of them: --help, `thole help -o json` and docs/cli.md say the
 * same, which a test compares. Codes are for ever.
 */
#ifndef THOLE_EXIT_CODES_H
#define THOLE_EXIT_CODES_H

#define EXIT_CODE_MAP(X)                                                                                     \
    X(DONE, 0, "done")                                                                                       \
    X(GENERIC, 1,                                                                                            \
      "failed: out of memory, a damaged history, a file or stdout that cannot be written (a full disk); "    \
      "diff: they differ; bind test: the rule does not take it")                                             \
    X(USAGE, 2, "wrong usage, or a value that is refused: too large, no such time, not a token")             \
    X(NOT_FOUND, 3,                                                                                          \
      "there is no such instance, query, queue, queue entry, context, file, rule or stream, or the file "    \
      "cannot be read; the namespace was never set up")                                                      \
    X(CONFLICT, 4,                                                                                           \
      "the id is in use (start, run); the instance has not ended, or is held (delete); "                     \
      "the rule has another revision (bind); NATS has lost some of the namespace (recover); "                \
      "there is another context of that name (context save); workers serve it (queue lease)")                \
    X(DIVERGED, 5, "replay: code and history differ; audit, archive: a history is not what was written")     \
    X(UNREACHABLE, 6, "a server cannot be reached or is too old; no engine answers")                         \
    X(DENIED, 7, "a server denies the permission")                                                           \
    X(TIMEOUT, 8, "timed out: it has not ended yet")                                                         \
    X(UNSUCCESSFUL, 9, "run, wait: the instance failed, was cancelled or terminated")                        \
    X(ENDED, 10,                                                                                             \
      "nothing was changed: the instance has ended (cancel, terminate, signal, pause, resume, retry, "       \
      "prune), or there is "                                                                                 \
      "nothing to change (pause, resume, retry)")                                                            \
    X(NO_CODE, 11,                                                                                           \
      "no code: no live engine has it (start --require-known); PROGRAM lacks it for an instance that runs, " \
      "or "                                                                                                  \
      "has it for no history (replay)")                                                                      \
    X(UNHEALTHY, 12, "doctor: a check failed")                                                               \
    X(INCOMPLETE, 13,                                                                                        \
      "export: an instance is missing in it; the manifest says which and why; archive: one stays, damaged")  \
    X(DRIFTED, 15, "projections: rows are not what the histories say")                                       \
    X(CANNOT_RUN, 126, "replay, dev: PROGRAM cannot be run")                                                 \
    X(NO_PROGRAM, 127, "replay, dev: PROGRAM does not exist")                                                \
    X(INTERRUPTED, 130, "interrupted; any 128 + N: ended by signal N; 141: nobody reads stdout any more")

enum {
#define X(name, code, text) EXIT_##name = code,
    EXIT_CODE_MAP(X)
#undef X
        EXIT_SIGNALLED = 128, /* plus the signal's number */
};

#define X(name, code, text) +1
enum { EXIT_CODES = 0 EXIT_CODE_MAP(X) };
#undef X
extern const struct exit_code {
    int code;
    const char *text;
} exit_codes[EXIT_CODES];
#endif
