#!/usr/bin/env bash
# seed_tests.sh ROOT: each row of docs/seed_tests.md names a test that is in each of the files beside it, and what breaks
# its rule in the simulation.
set -eu
. "$(dirname "$0")/files.sh"
root=$1
page=$root/docs/seed_tests.md
[ -f "$page" ] || exit 0
while IFS='|' read -r _ name files sim _; do
    [[ $name =~ [a-z0-9_]+ ]] && name=${BASH_REMATCH[0]}
    paths=0
    while [[ $files =~ \(\.\./([^\)]*)\)(.*) ]]; do
        path=${BASH_REMATCH[1]} files=${BASH_REMATCH[2]} paths=1
        text_of "$root/$path"
        [[ $text == *"{\"$name\""* ]] || echo "$name is not in $path"
    done
    [ "$paths" -eq 1 ] || echo "$name: no file"
    while [[ $sim =~ mut(ation|ant)_([a-z_]+)(.*) ]]; do
        kind=${BASH_REMATCH[1]} rule=${BASH_REMATCH[2]} sim=${BASH_REMATCH[3]}
        if [ "$kind" = ant ]; then
            text_of "$root/tests/sim/mutants"
            [[ $text == *$'\n'"mutant $rule"$'\n'* ]]
        else
            text_of "$root/tests/sim/CMakeLists.txt"
            [[ $text =~ [^A-Za-z0-9_]"$rule"[^A-Za-z0-9_] ]]
        fi || echo "$name: there is no sim.mut${kind}_$rule"
    done
done < <(grep '^| `' "$page") >"$found"
verdict "tests that the seeds name and that are not there"
