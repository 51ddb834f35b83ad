#!/usr/bin/env bash
# snippets.sh SOURCE BUILD CMAKE CC: builds and runs what docs/tutorial.md and docs/cancellation.md show, as a user
# would who follows them.
#   ```c file=NAME                a file; the blocks of one name follow each other
#   ```c file=NAME version=2      the same file later, in a copy of the project; `append` adds to it instead
# Blocks of c and cmake that name no file are an error there: nothing would build them. docs/testing.md has
# fragments; they only have to compile.
set -eu
source=$1 build=$2 cmake=$3 cc=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# extract VERSION FOLDER [PAGE]
extract() {
    awk -v version="$1" -v folder="$2" '
        function option(name, k) {
            for (k = 2; k <= NF; k++)
                if (index($k, name "=") == 1) return substr($k, length(name) + 2)
            return ""
        }
        /^```/ && inside { inside = 0; next }
        /^```(c|cmake)( |$)/ {
            inside = 1
            file = option("file")
            if (file == "") { print FILENAME ":" FNR ": names no file" > "/dev/stderr"; exit 1 }
            mine = (option("version") == "" ? 1 : option("version")) == version
            if (mine && $NF != "append" && !begun[file]) printf "" > (folder "/" file)
            if (mine) begun[file] = 1
            next
        }
        /^```/ { inside = 1; mine = 0; next }
        inside && mine { print >> (folder "/" file) }' "$source/docs/${3:-tutorial.md}"
}

follow() { # FOLDER TESTS
    "$cmake" -S "$work/$1" -B "$work/$1/build" -G Ninja -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$work/prefix" \
        -DCMAKE_C_STANDARD=11 -DCMAKE_C_FLAGS="-Wall -Wextra -Werror" >"$work/log" &&
        "$cmake" --build "$work/$1/build" >"$work/log" || { cat "$work/log"; exit 1; }
    shift
    for test in "$@"; do
        "$work/$folder/build/$test" >"$work/log" || { cat "$work/log"; echo "$folder: $test failed"; exit 1; }
        echo "$folder: $test passed"
    done
}

"$cmake" --install "$build" --prefix "$work/prefix" >/dev/null
folder=v1
mkdir "$work/v1"
extract 1 "$work/v1"
follow v1 test_trial
"$work/v1/build/trial" --help >/dev/null

folder=v2
cp -r "$work/v1" "$work/v2"
rm -rf "$work/v2/build"
cp "$work/v1/trial.c" "$work/v2/trial_v1.c"
extract 2 "$work/v2"
follow v2 test_trial test_change

# Without the patch the same change must be found: else the test above tests nothing.
folder=bad
cp -r "$work/v2" "$work/bad"
rm -rf "$work/bad/build"
sed -i 's/if (thole_patch(ctx, THOLE_STR("reminder")))/if (true)/' "$work/bad/trial.c"
if (follow bad test_change) >"$work/found"; then
    echo "a change without thole_patch() was not found"
    exit 1
fi
grep -q "the code asked for" "$work/found" || { cat "$work/found"; exit 1; }
echo "bad: the change without thole_patch() is found"

# docs/cancellation.md: each of its activities is cancelled while it runs, on real servers where there are some.
folder=jobs
mkdir "$work/jobs"
extract 1 "$work/jobs" cancellation.md
follow jobs
cat >"$work/jobs/cancel.sh" <<'END'
set -eu
thole=$1 jobs=$2 out=$3
until_said() { # TEXT
    for _ in $(seq 600); do
        grep -q "$1" "$out" && return
        sleep 0.1
    done
    echo "nothing said: $1" >&2
    cat "$out" >&2
    exit 1
}
"$jobs" run --log-level=debug >"$out" 2>&1 &
trap 'kill $! && wait $!' EXIT
until_said "serves queue"
for job in count watch receive convert; do
    "$thole" start job --id "$job" --input "$job" >/dev/null
    until_said "$job begins"
    "$thole" cancel "$job" --reason "no more" >/dev/null
    until_said "$job stopped: requested (no more)"
done
! pgrep -f "^sleep 3600 *$" -s 0 >/dev/null || { echo "convert left something behind" >&2; exit 1; }
END
if [ -n "${NATS_SERVER:-$(command -v nats-server || true)}" ]; then
    "$build/cli/thole" dev -- bash "$work/jobs/cancel.sh" "$build/cli/thole" "$work/jobs/build/jobs" "$work/jobs/out" \
        >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    echo "jobs: each was cancelled"
fi

# fragments
awk '/^```/ { inside = !inside && /^```c/; next } inside' "$source/docs/testing.md" >"$work/fragments.body"
{
    printf '#include <stdbool.h>\n#include <stdio.h>\n#include <thole/testing.h>\n'
    cat "$work/fragments.body"
    printf 'int main(void)\n{\n    return ships_what_is_paid() && survives != NULL;\n}\n'
} >"$work/fragments.c"
"$cc" -std=c11 -Wall -Wextra -Werror -Wno-address -I"$source/include" -fsyntax-only "$work/fragments.c"
echo "docs/testing.md compiles"
