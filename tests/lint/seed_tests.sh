#!/usr/bin/env bash
# seed_tests.sh ROOT: each row of docs/seed_tests.md names a test that is in each of the files beside it, and what breaks
# its rule in the simulation.
set -eu
. "$(dirname "$0")/files.sh"
root=$1
page=$root/docs/seed_tests.md
[ -f "$page" ] || exit 0
grep '^| `' "$page" | while IFS='|' read -r _ name files sim _; do
    name=$(grep -oE '[a-z0-9_]+' <<<"$name")
    paths=$(grep -oE '\(\.\./[^)]*\)' <<<"$files" | tr -d '()' || true)
    [ -n "$paths" ] || echo "$name: no file"
    for path in $paths; do
        grep -qsF "{\"$name\"" "$root/docs/$path" || echo "$name is not in ${path#../}"
    done
    for rule in $(grep -oE 'mut(ation|ant)_[a-z_]+' <<<"$sim" || true); do
        case $rule in
            mutant_*) grep -qsx "mutant ${rule#mutant_}" "$root/tests/sim/mutants" ;;
            *) grep -qswF "${rule#mutation_}" "$root/tests/sim/CMakeLists.txt" ;;
        esac || echo "$name: there is no sim.$rule"
    done
done >"$found"
verdict "tests that the seeds name and that are not there"
