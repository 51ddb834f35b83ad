#!/usr/bin/env bash
# proof.sh ROOT CC: plants in a small tree what each lint must catch, and looks whether it does; a lint that cannot
# fail protects nobody.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cc=$2
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
bad=0

fresh() { # a tree that every lint accepts
    rm -rf "${tree:?}"/* "$tree"/.[a-z]*
    mkdir -p "$tree"/{include/thole,base,engine/core,platform,streams,projections,cli,examples,tests}
    cp "$here/../../.clang-format" "$tree/"
    printf '#ifndef A_H\n#define A_H\n#include <stdint.h>\n#define THOLE_API __attribute__((visibility("default")))\n' >"$tree/include/thole/a.h"
    printf '#ifdef __cplusplus\nextern "C" {\n#endif\nTHOLE_API uint32_t *thole_a(uint32_t *n);\n' >>"$tree/include/thole/a.h"
    printf '#ifdef __cplusplus\n}\n#endif\n#endif\n' >>"$tree/include/thole/a.h"
    printf '#include "thole/a.h"\nint core_b(int n);\n' >"$tree/engine/core/b.h"
    printf '#include "b.h"\nint core_b(int n)\n{\n    return n; /* not rand() and not "strcpy(" */\n}\n' >"$tree/engine/core/b.c"
    printf 'set(core\n  core/b.c)\n' >"$tree/engine/CMakeLists.txt"
    printf 'set(sources\n  c.c)\n' >"$tree/platform/CMakeLists.txt"
    printf 'int host_c(int n);\n' >"$tree/platform/c.h"
    mkdir -p "$tree/docs" && printf '<!-- walk -->\n| `b.c: core_b` |\n<!-- end of walk -->\n' >"$tree/docs/architecture.md"
    printf '#include "thole/a.h"\nuint32_t *thole_a(uint32_t *n)\n{\n    return n;\n}\n' >"$tree/platform/c.c"
}

object() { "$cc" -std=c11 -fPIC -fvisibility=hidden -I"$tree/include" -I"$tree/engine/core" -c "$1" -o "$2"; }
library() { "$cc" -std=c11 -shared -fPIC -fvisibility=hidden -I"$tree/include" -I"$tree/engine/core" "$tree"/engine/*/*.c "$tree"/platform/*.c -o "$tree/lib.so"; }
run() { # LINT: on the tree as it is
    case $1 in
        core_is_pure) object "$tree/engine/core/b.c" "$tree/b.c.o" && "$here/$1.sh" "$tree/b.c.o" -- ;;
        circles)
            local folder to file objects=()
            for folder in new core; do
                to=$tree/engine/CMakeFiles/x.dir/./$folder
                mkdir -p "$to"
                for file in "$tree/engine/$folder"/*.c; do
                    [ -e "$file" ] || continue
                    objects+=("$to/$(basename "$file").o")
                    object "$file" "${objects[-1]}"
                done
            done
            "$here/$1.sh" "${objects[@]}"
            ;;
        upward)
            local top source to objects=()
            for top in engine/core platform; do
                for source in "$tree/$top"/*.c; do
                    to=$tree/${top%%/*}/CMakeFiles/x.dir
                    mkdir -p "$to"
                    objects+=("$to/$(basename "$source").o")
                    object "$source" "${objects[-1]}"
                done
            done
            "$here/$1.sh" "${objects[@]}"
            ;;
        exports) library && "$here/$1.sh" "$tree" "$tree/lib.so" ;;
        headers) "$here/$1.sh" "$tree" "$cc" ;;
        cli_page) "$here/$1.sh" "$tree" "$tree/thole" ;;
        *) "$here/$1.sh" "$tree" ;;
    esac
}
expect() { # good|bad LINT WHAT [WORD that the message must hold]
    local code=0 output
    output=$(run "$2" 2>&1) || code=$?
    if [ "$code" -eq 77 ]; then
        echo "skipped: $2"
    elif { [ "$1" = good ] && [ "$code" -ne 0 ]; } || { [ "$1" = bad ] && [ "$code" -ne 1 ]; } || [[ $output != *"${4:-}"* ]]; then
        printf 'lint.%s: %s: expected %s, exit code %d: %s\n' "$2" "$3" "$1" "$code" "$output"
        bad=$((bad + 1))
    fi
}
plant() { # LINT WHAT WORD FILE TEXT: appends the text to a file of a fresh tree
    fresh
    printf "$5" >>"$tree/$4"
    expect bad "$1" "$2" "$3"
}

for lint in core_is_pure upward exports headers function_length function_names file_length layers banned memory unique_names source_lists words comment_words seed_tests promises doc_names state_tables walks test_index json assets scripts format; do
    fresh
    expect good "$lint" "the clean tree"
done

long=$(printf '    n++;\\n%.0s' {1..67})
fresh
printf "int core_d(int n)\n{\n$long    return n;\n}\n" >>"$tree/engine/core/b.c"
expect good function_length "a function of 70 lines"
plant function_length "a function of 71 lines" 'b.c:7: 71 lines: int core_d' engine/core/b.c "int core_d(int n)\n{\n$long    n--;\n    return n;\n}\n"
plant function_names "a name of one word" 'b.c:6: d() has a name of one word' engine/core/b.c 'static int d(int n)\n{\n    return n;\n}\n'
plant function_names "a namesake" 'core_b() is also in' platform/c.c 'static int core_b(int n)\n{\n    return n;\n}\n'
plant file_length "a file of 801 lines" 'd.h: 801 lines' engine/core/d.h "$(printf '\\n%.0s' {1..801})"
plant banned "a call of sprintf" 'b.c:6: ' engine/core/b.c 'int core_d(char *s) { return sprintf (s, "x"); }\n'
plant banned "a clock of its own" 'clock_gettime()' streams/d.c 'int d(void) { return clock_gettime(0, 0); }\n'
plant banned "a file for everybody" 'private_file.h' cli/d.c 'int d(void) { return fopen("x", "we") != 0; }\n'
plant banned "a call of rand" 'rand()' streams/d.c 'int d(void) { return rand(); }\n'
plant memory "a small block of its own" 'd.c:2: malloc()' streams/d.c '#include <stdlib.h>\nvoid *d(void) { return malloc(8); }\n'
plant memory "a copy of a text" 'b.c:6: strdup()' engine/core/b.c 'char *d(const char *s) { return strdup (s); }\n'
plant memory "an abort without a word" 'd.c:1: abort()' projections/d.c 'void d(void) { abort(); }\n'
plant memory "a file that may call something else" 'arena.c:1: calloc()' base/arena.c 'void *d(void) { return malloc(1) ? calloc(1, 1) : 0; }\n'
plant memory "a file that needs its line no more" 'buf.c: calls realloc() no more' base/buf.c 'int d(void) { return 0; }\n'
plant unique_names "a name used twice" 'b.h' streams/b.h '\n'
plant unique_names "a header guard used twice" 'guard A_H' streams/d.h '#ifndef A_H\n#define A_H\n#endif\n'
plant comment_words "a comment that only the code explains" 'b.c:6: it is freed' engine/core/b.c '/* It is freed. */\n'
plant comment_words "a heading that says nothing" 'b.c:6: what is there' engine/core/b.c '// ---- what is there ----\n'
plant comment_words "too many of one word" 'b.c:6: after behind' engine/core/b.c "/* after$(printf ' behind%.0s' {1..21}) */\\n"
fresh
printf 'const char *d = "/* it is there, behind */";\n// The last one.\n// It is in this comment.\n' >>"$tree/engine/core/b.c"
expect good comment_words "words of code, and of the second line of a comment"
plant source_lists "a source that no list names" 'core/a.c is in no list' engine/core/a.c '\n'
plant source_lists "a folder without a list" 'streams/d.c is in no list' streams/d.c '\n'
plant source_lists "a list that is not sorted" 'core/a.c after core/b.c' engine/CMakeLists.txt 'set(more\n  core/b.c core/a.c)\n'
plant source_lists "a source that is not there" 'core/d.c is not there' engine/CMakeLists.txt 'set(more\n  core/d.c)\n'
plant source_lists "a glob" 'engine/CMakeLists.txt:3: ' engine/CMakeLists.txt 'file(GLOB more "core/*.c")\n'
seeds='mkdir -p "$tree"/{docs,tests/sim}; printf "\t{\"a_seed\", run},\n" >"$tree/tests/test_d.c"; printf "mutant rule\n" >"$tree/tests/sim/mutants"'
fresh && eval "$seeds" && printf '| `a_seed` | [d](../tests/test_d.c) | `mutant_rule` |\n' >"$tree/docs/seed_tests.md"
expect good seed_tests "a test that is where the page says"
fresh && eval "$seeds" && printf '| `other` | [d](../tests/test_d.c) | |\n' >"$tree/docs/seed_tests.md"
expect bad seed_tests "a test that is not there" 'other is not in tests/test_d.c'
fresh && eval "$seeds" && printf '| `a_seed` | | |\n' >"$tree/docs/seed_tests.md"
expect bad seed_tests "a test without a file" 'a_seed: no file'
fresh && eval "$seeds" && printf '| `a_seed` | [d](../tests/test_d.c) | `mutant_none` |\n' >"$tree/docs/seed_tests.md"
expect bad seed_tests "a rule that nothing breaks" 'there is no sim.mutant_none'
broken() { # good|bad WHAT WORD MUTANTS ROW: the row in the page's table of rules that tests/integration/mutants breaks
    fresh && eval "$seeds"
    mkdir -p "$tree/tests/integration"
    printf "$4" >"$tree/tests/integration/mutants"
    printf '| `a_seed` | [d](../tests/test_d.c) | |\n\n| rule | broken by | found by |\n|---|---|---|\n%s\n' "$5" >"$tree/docs/seed_tests.md"
    expect "$1" seed_tests "$2" "$3"
}
broken good "a mutant with its line" '' 'mutant m\nrule it is so\nseed d a_seed\n' '| it is so | `m` | `a_seed` |'
broken bad "a mutant without a line" 'has no line | it is so | `m` | `a_seed` |' 'mutant m\nrule it is so\nseed d a_seed\n' ''
broken bad "a line without a mutant" 'has another one: | it is so | `n`' 'mutant m\nrule it is so\nseed d a_seed\n' '| it is so | `m` | `a_seed` |
| it is so | `n` | `a_seed` |'
broken bad "a mutant with a test that is not there" 'other is not a row with test_d.c' 'mutant m\nrule it is so\nseed d other\n' '| it is so | `m` | `other` |'
errors() { # good|bad WHAT WORD ROW: the row in the table of statuses
    fresh
    mkdir -p "$tree"/engine/partition/base "$tree/runtime/metrics"
    printf '    X(DONE, 0, "done")   \\\n' | tee "$tree/include/thole/types.h" >"$tree/cli/exit_codes.h"
    printf 'case 1: return "odd";\n' >"$tree/engine/partition/base/reject_code.c"
    printf '{.name = "thole_engine_partitions_closed_total",\n .values = VALUES("rival",\n "lost")},\n' >"$tree/runtime/metrics/metric_table.c"
    printf 'void d(void) { log_line(LOG_LEVEL_WARN, "host", "x"); }\n' >"$tree/platform/d.c"
    printf '| engine, host | x | y |\n' >"$tree/docs/operations.md"
    local table
    for table in "statuses:$4" 'exit codes:| 0 | |' 'rejection codes:| `odd` | |' 'causes:| `rival` | |@| `lost` | |'; do
        printf '<!-- table: %s -->\n| a | b |\n|---|---|\n%s\n\n' "${table%%:*}" "$(tr @ '\n' <<<"${table#*:}")"
    done >"$tree/docs/errors.md"
    [ "$5" ] && rm "$tree/docs/operations.md" && : >"$tree/docs/operations.md"
    expect "$1" error_page "$2" "$3"
}
errors good "a page with each error" '' '| `DONE` | |' ''
errors bad "a status that the page lacks" 'status without an entry: DONE' '' ''
errors bad "a status that is not there" 'types.h has no status GONE' '| `DONE` | |@| `GONE` | |' ''
errors bad "an area that the table of warnings lacks" 'no line of area host' '| `DONE` | |' 1
index() { # good|bad WHAT WORD ROW: the row as the table of a tests/README.md
    fresh
    mkdir -p "$tree"/tests/{unit/f,sim}
    : >"$tree/tests/unit/f/test_d.c"
    printf 'foreach(mutation one\n  two)\nendforeach()\n' >"$tree/tests/sim/CMakeLists.txt"
    printf 'mutant rule\nfile engine/core/b.c\n' >"$tree/tests/sim/mutants"
    printf '| topic | folder | code | unit | simulation | integration |\n|---|---|---|---|---|---|\n%s\n' "$4" >"$tree/tests/README.md"
    expect "$1" test_index "$2" "$3"
}
index good "an index with all tests" '' '| d | `f` | `engine/core` | `d` | `one` `two` | |'
index bad "a test that the index lacks" 'not in the table: unit d' '| d | `f` | `engine/core` | | `one` `two` | |'
index bad "a mutation that the index lacks" 'not in the table: sim two' '| d | `f` | `engine/core` | `d` | `one` | |'
index bad "a test of the index that is not there" 'there is no test integration d' '| d | `f` | `engine/core` | `d` | `one` `two` | `d` |'
index bad "a test in another folder" 'no row has the folder of tests/unit/f/test_d.c' '| d | `g` | `engine/core` | `d` | `one` `two` | |'
index bad "a mutant that no row covers" 'no row covers engine/core/b.c' '| d | `f` | `streams` | `d` | `one` `two` | |'
promise() { # good|bad WHAT WORD TEXT: the text as a page of promises
    fresh && eval "$seeds" && mkdir -p "$tree/tests/unit/f" && cp "$tree/tests/test_d.c" "$tree/tests/unit/f/test_d.c"
    printf "## Section\n\n$4\n\n## What is not promised\n\n- Anything.\n" >"$tree/docs/guarantees.md"
    expect "$1" promises "$2" "$3"
}
promise good "promises with tests" '' "1. One.\n   <!-- tests: unit.d 'a_seed'; sim.mutant_rule -->\n2. Two.\n   <!-- tests: unit.d -->"
promise bad "a rule without a test" 'guarantees.md:5: a promise without a test' '1. One.\n   <!-- tests: unit.d -->\n2. Two, which has none.'
promise bad "an item without a test" 'guarantees.md:3: a promise without a test' '- One.\n- Two. <!-- tests: unit.d -->'
promise bad "a test that is not there" 'there is no test unit.e' '1. One. <!-- tests: unit.e -->'
promise bad "a rule of the simulation that is not there" 'there is no test sim.mutant_none' '1. One. <!-- tests: unit.d; sim.mutant_none -->'
promise bad "a test that its file does not have" "unit.d has no test called 'b_seed'" "1. One. <!-- tests: unit.d 'b_seed' -->"
states() { # good|bad WHAT WORD HEADER SOURCE WRITER
    fresh
    printf "enum b_state {\n$4};\n" >>"$tree/engine/core/b.h"
    printf "static const unsigned next[] = {\n$5};\n" >>"$tree/engine/core/b.c"
    printf '#include "b.h"\n%s\n' "$6" >"$tree/engine/core/d.c"
    {
        echo '<!-- states B_ of engine/core/b.h engine/core/b.c, set in engine/core/b.c -->'
        printf '| state | what it means | what may follow |\n|---|---|---|\n| on | it runs | off now |\n| off now | it does not | on |\n'
        echo '<!-- end of states -->'
    } >"$tree/docs/architecture.md"
    expect "$1" state_tables "$2" "$3"
}
b_header='    B_ON, /* it runs */\n    B_OFF_NOW, /* it does not */\n'
b_source='    [B_ON] = TO(OFF_NOW),\n    [B_OFF_NOW] = TO(ON),\n'
states good "a table as in the code" '' "$b_header" "$b_source" ''
states bad "a state that the table does not show" '| gone | is no more |' "$b_header    B_GONE, /* is no more */\n" "$b_source" ''
states bad "another meaning" 'it walks' "${b_header/runs/walks}" "$b_source" ''
states bad "a transition that the table does not show" 'off now, on' "$b_header" "${b_source/TO(OFF_NOW)/TO(OFF_NOW) | TO(ON)}" ''
states bad "a state that nothing says what may follow" 'no row says what may follow B_OFF_NOW' "$b_header" '    [B_ON] = TO(OFF_NOW),\n' ''
states bad "a state whose comment is in another line" 'no comment in the line of B_OFF_NOW' \
    '    B_ON, /* it runs */\n    /* it does not */\n    B_OFF_NOW,\n' "$b_source" ''
states bad "a state that is set in two places" 'b.c:11: a state is set in more than one place' "$b_header" \
    "$b_source};\nvoid e(struct b *b) { b->state = 1; }\nvoid f(struct b *b) { b->state = 2; }\nint g[] = {\n" ''
states bad "a state that is set elsewhere" 'd.c:2: a state is set in engine/core/b.c alone' "$b_header" "$b_source" 'void d(struct b *b) { b->state = 1; }'
walk() { # good|bad WHAT WORD TEXT: the text as a walk
    fresh
    printf 'struct b {\n    int n;\n};\nint core_c(int n);\n' >>"$tree/engine/core/b.c"
    printf '<!-- walk -->\n%s\n<!-- end of walk -->\n' "$4" >"$tree/docs/architecture.md"
    expect "$1" walks "$2" "$3"
}
walk good "a walk through what is there" '' '| `b.c: core_b` `c.c: thole_a` | `struct b` |'
walk bad "a function that is not there" 'architecture.md:2: there is no function b.c: core_d' '| `b.c: core_b, core_d` |'
walk bad "a function of another file" 'there is no function c.c: core_b' '| `c.c: core_b` |'
walk bad "a function that is only declared" 'there is no function b.c: core_c' '| `b.c: core_c` |'
walk bad "a struct that is not there" 'nothing in the code is called struct core' '| `b.c: core_b` | `struct core` |'
walk bad "a constant that is not there" 'called CORE_B' '| `b.c: core_b` | `CORE_B` |'
walk bad "a page without a walk" 'it has no walk' 'Nothing.'
plant json "a member written by hand" 'd.c:1:' streams/d.c 'void d(char *s, int n) { snprintf(s, 9, "{\\"seq\\":%%d}", n); }\n'
plant json "a member with what comes before it" 'd.c:1:' platform/d.c 'const char *d = ",\\"no_erase\\": true";\n'
plant json "a brace by hand" 'd.c:1:' cli/d.c 'void d(struct buf *to) { buf_text(to, "}}"); }\n'
fresh && printf 'One calls `core_b()` of `engine/core/b.c`, which includes `b.h`.\n' >"$tree/docs/d.md"
expect good doc_names "a page that names what is there"
plant doc_names "a function that is not there" 'd.md:1: there is no function core_d()' docs/d.md 'One calls core_d().\n'
plant doc_names "a path that is not there" 'there is no file engine/core/d.c' docs/d.md 'It is in `engine/core/d.c`.\n'
plant doc_names "a file that is not there" 'there is no file d.h' docs/d.md 'It is in `d.h: one`.\n'
page() { # good|bad WHAT WORD TEXT: the text as rows of the table of verbs
    fresh
    printf '#!/bin/sh\nif [ "$1" = --help ]; then\n    printf "Verbs:\\n  go  goes\\n\\nExit codes:\\n    0  done\\n"\nelse\n    printf "Options:\\n  -f, --far  far\\n"\nfi\n' >"$tree/thole"
    chmod +x "$tree/thole"
    printf '## Verbs\n\n%s\n\n## Exit codes\n\n| 0 | %s |\n' "$4" "${5:-done}" >"$tree/docs/cli.md"
    expect "$1" cli_page "$2" "$3"
}
page good "a page with each verb and option" '' '| `go` | `--far` |'
page bad "an option that the page lacks" 'go --far is missing' '| `go` | |'
page bad "an option that is not there" 'go has no --wide' '| `go` | `--far`, `--wide` |'
page bad "a verb that the page lacks" 'the verb go is missing' ''
page bad "a verb that is not there" 'there is no verb stop' '| `go` | `--far` |
| `stop` | |'
page bad "another meaning of an exit code" 'exit code 0 is: done' '| `go` | `--far` |' 'failed'
plant words "a path of this machine" 'c.h:2:' platform/c.h "/* see /w""ork/x */\n"
plant words "a home" 'c.h:2:' platform/c.h "/* see /ro""ot/.x */\n"
plant words "a word that the glossary has replaced" 'c.h:2:/* a loner */' platform/c.h '/* a loner */\n'
plant words "a person that is none" "c.h:2:/* Nobody's child */" platform/c.h "/* Nobody's child */\n"
plant words "a subject that is not named" 'c.h:2:' platform/c.h '/* given back to whoever opens it */\n'
plant words "a phrase of a page" 'd.md:1:' docs/d.md 'What becomes of it is in the log.\n'
fresh && printf '/* whoever is first */\n' >"$tree/tests/d.c" && printf '<!-- tests: unit.d %s -->\n' "'nobody waits'" >"$tree/docs/d.md"
expect good words "a test, and the name of one"
plant format "a line that is not formatted" 'c.h' platform/c.h 'int   host_d (void) ;\n'
writes() { # good|bad WHAT WORD TEXT: of a file that writes no part of an instance
    fresh
    cp "$here/../../engine/core/instance_state.h" "$tree/engine/core/"
    printf "$4" >"$tree/engine/core/instance_d.c"
    expect "$1" writers "$2" "$3"
}
writes good "parts that are read" '' 'bool d(struct instance *in) { return in->facts.started == in->end.ended && in->turn.number >= 1; }\n'
writes bad "a part of another file" 'instance_d.c:1: facts is written by instance_receive.c' 'void d(struct instance *in) { in->facts.started = true; }\n'
writes bad "a number of another file" 'tasks is written by instance_tasks.c' 'void d(struct instance *in) { in->tasks.len++; }\n'
writes bad "a whole part of another file" 'last_failure is written by instance_awaits.c' 'void d(struct instance *in) { in->last_failure = (struct last_failure){0}; }\n'
writes bad "a member that is no part" 'broken is written by instance_memory.c' 'void d(struct instance *in) { in->broken = 0; }\n'
fresh
cp "$here/../../engine/core/instance_state.h" "$tree/engine/core/"
printf '#include "instance_receive.h"\n' >"$tree/engine/core/instance_turn.c"
expect bad writers "a file that includes one below it" 'instance_receive.c stands below instance_turn.c'
two() { # TEXT of new/b.c: new/a.c uses it
    fresh
    mkdir -p "$tree/engine/new"
    printf 'int b(void);\nint a(void) { return b(); }\nint c(void) { return 0; }\n' >"$tree/engine/new/a.c"
    printf "$1" >"$tree/engine/new/b.c"
    rm "$tree"/engine/core/*.c
}
two 'int b(void) { return 1; }\n'
expect good circles "a file that uses another"
two 'int c(void);\nint b(void) { return c(); }\n'
expect bad circles "two files that use each other" 'new: 2 files in a circle: a.c b.c'
plant upward "a use of what stands below" 'engine/d.c: uses thole_a of platform/c.c' engine/core/d.c 'int *thole_a(int *n);\nint d(int *n) { return *thole_a(n); }\n'
plant layers "core includes host" 'below engine/core' engine/core/b.c '#include "c.h"\n'
fresh && mkdir -p "$tree"/engine/partition/{log,projection} && printf 'int room_p(int n);\n' >"$tree/engine/partition/projection/p.h"
printf '#include "p.h"\n' >"$tree/engine/partition/log/d.c"
expect bad layers "a room includes the one beside it" 'a room beside'
fresh && mkdir -p "$tree"/engine/partition/{log,projection} && printf 'int room_p(int n);\n' >"$tree/engine/partition/log/p.h"
printf '#include "p.h"\n' >"$tree/engine/partition/projection/d.c"
expect bad layers "a room includes the one before it" 'a room beside'
plant layers "host includes nats" 'streams/ alone' platform/c.c '#include <nats/nats.h>\n'
plant layers "the streams include microhttpd" 'console/ alone' streams/d.c '#include <microhttpd.h>\n'
plant layers "streams include libpq" 'projections/ alone' streams/d.c '#include <libpq-fe.h>\n'
plant layers "a path in quotes" 'plain name' platform/c.c '#include "../core/b.h"\n'
plant layers "an example includes what is not installed" 'installed' examples/d.c '#include "b.h"\n'
plant layers "a header that is not there" 'does not exist' engine/core/b.c '#include "none.h"\n'
script() { # good|bad WHAT WORD TEXT: of the one script
    fresh
    mkdir -p "$tree/scripts"
    printf '#!/usr/bin/env bash\n%s\n' "$4" >"$tree/scripts/do"
    chmod +x "$tree/scripts/do"
    expect "$1" scripts "$2" "$3"
}
script good "a script that says what it does" '' '[ "${1:-}" = --help ] && echo "Two minutes." || exit 2'
script bad "a script that takes any option" '--no-such-option: exit code 0' 'echo "Two minutes."'
script bad "a script that does not say how long it takes" 'how long' '[ "${1:-}" = --help ] && echo "Builds." || exit 2'
assets() { # WHAT WORD TEXT: of the one module
    fresh
    mkdir -p "$tree/console/assets"
    printf '<link href="/assets/main.js" />\n' >"$tree/console/assets/index.html"
    printf '%s\n' "$3" | tee "$tree/console/assets/main.js" >"$tree/console/assets/${4:-main.js}"
    expect "${5:-bad}" assets "$1" "$2"
}
assets "a module that imports nothing" '' '' main.js good
assets "a module that the page does not load ahead" 'does not load new.js ahead' '' new.js
assets "an import of what is not there" 'main.js imports none.js' "import { a } from './none.js';"
plant headers "a header that needs another" 'size_t' include/thole/d.h 'size_t thole_d(void);\n'
plant headers "a header that is not C++" 'c++17' include/thole/d.h 'int thole_d(int new);\n'
plant exports "a symbol that is not thole_" 'core_d' engine/core/b.c '__attribute__((visibility("default"))) int core_d(void);\nint core_d(void) { return 0; }\n'
plant exports "a function that is declared and not there" 'thole_d' include/thole/d.h '#include "thole/a.h"\nTHOLE_API int thole_d(const char *(*f)(void));\n'
plant core_is_pure "a clock" 'calls time' engine/core/b.c '#include <time.h>\nlong core_d(void) { return (long)time(0); }\n'
plant core_is_pure "randomness" 'calls getrandom' engine/core/b.c '#include <sys/random.h>\nlong core_d(void *p) { return (long)getrandom(p, 1, 0); }\n'
plant core_is_pure "a lock" 'calls pthread_mutex_lock' engine/core/b.c '#include <pthread.h>\nint core_d(pthread_mutex_t *m) { return pthread_mutex_lock(m); }\n'
plant core_is_pure "output" 'calls puts' engine/core/b.c '#include <stdio.h>\nint core_d(void) { return puts("x"); }\n'
plant core_is_pure "memory maps outside the coroutine" 'calls munmap' engine/core/b.c '#include <sys/mman.h>\nint core_d(void *p) { return munmap(p, 1); }\n'
plant core_is_pure "a global" 'writable global core_e' engine/core/b.c 'int core_e;\nint core_d(void) { return core_e++; }\n'
plant core_is_pure "a static inside a function" 'writable global' engine/core/b.c 'int core_d(void) { static int n; return n++; }\n'

echo "$bad lints that did not do as they should"
[ "$bad" -eq 0 ]
