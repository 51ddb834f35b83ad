#!/usr/bin/env bash
# snippets.sh SOURCE BUILD CMAKE CC: builds and runs what docs/cancellation.md shows.
#   ```c file=NAME                a file; the blocks of one name follow each other
# Blocks of c and cmake that name no file are an error there: nothing would build them. docs/testing.md has
# fragments; they only have to compile. docs/tutorial.md has a test of its own.
set -eu
source=$1 build=$2 cmake=$3 cc=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# extract PAGE FOLDER
extract() {
    awk -v folder="$2" '
        /^```/ && inside { inside = 0; next }
        /^```(c|cmake)( |$)/ {
            inside = 1
            file = ""
            for (k = 2; k <= NF; k++)
                if (index($k, "file=") == 1) file = substr($k, 6)
            if (file == "") { print FILENAME ":" FNR ": names no file" > "/dev/stderr"; exit 1 }
            next
        }
        /^```/ { inside = 1; file = ""; next }
        inside && file != "" { print >> (folder "/" file) }' "$source/docs/$1"
}

"$cmake" --install "$build" --prefix "$work/prefix" >/dev/null
# docs/cancellation.md: each of its activities is cancelled while it runs, on real servers where there are some.
mkdir "$work/jobs"
extract cancellation.md "$work/jobs"
"$cmake" -S "$work/jobs" -B "$work/jobs/build" -G Ninja -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$work/prefix" \
    -DCMAKE_C_STANDARD=11 -DCMAKE_C_FLAGS="-Wall -Wextra -Werror" >"$work/log" &&
    "$cmake" --build "$work/jobs/build" >"$work/log" || { cat "$work/log"; exit 1; }
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
    printf 'int main(void)\n{\n    return ships_what_is_paid() && survives != NULL && stops_within_a_second != NULL &&\n'
    printf '           the_first_parcel_is_lost != NULL;\n}\n'
} >"$work/fragments.c"
"$cc" -std=c11 -Wall -Wextra -Werror -Wno-address -I"$source/include" -fsyntax-only "$work/fragments.c"
echo "docs/testing.md compiles"
