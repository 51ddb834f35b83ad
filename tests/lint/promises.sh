#!/usr/bin/env bash
# promises.sh ROOT: each numbered rule and each item of docs/guarantees.md, and each item of "What is guaranteed" in
# docs/cancellation.md, names the tests that would fail without it, and they are there:
#     <!-- tests: unit.buf; integration.verbs 'query'; sim.mutant_log_rule -->
# A name is CTest's; 'behind it' stands one of the tests of that file.
set -eu
. "$(dirname "$0")/files.sh"
root=$1

# promises_of FILE SECTIONS: "LINE<tab>NAMES" for each promise of the sections (a regular expression of headings)
promises_of() {
    awk -v wanted="$2" '
    function flush() { if (at) print at "\t" names; at = 0; names = "" }
    /^#/ { flush(); inside = $0 ~ wanted && $0 !~ /What is not/; next }
    /^```/ { code = !code }
    code || !inside { next }
    /^([0-9]+\.|-) / { flush(); at = NR }
    /<!-- tests: .* -->/ {
        one = $0; sub(/.*<!-- tests: /, "", one); sub(/ -->.*/, "", one)
        if (!at) at = NR
        names = names == "" ? one : names ";" one
    }
    END { flush() }' "$1"
}

source_of() { # NAME: the file with the tests of that name, or the one that names it
    local rest=${1#*.}
    case $1 in
        unit.* | golden.* | examples.* | integration.*) echo "$root/tests/${1%%.*}/test_$rest.c" ;;
        sim.mutant_*) grep -qsx "mutant ${rest#mutant_}" "$root/tests/sim/mutants" && echo "$root/tests/sim/mutants" ;;
        sim.*) grep -qsw -e "${rest#mutation_}" "$root/tests/sim/CMakeLists.txt" && echo "$root/tests/sim/CMakeLists.txt" ;;
        lint.*) echo "$root/tests/lint/$rest.sh" ;;
        *) grep -qsF "$1" "$root/tests/CMakeLists.txt" && echo "$root/tests/CMakeLists.txt" ;;
    esac
}

check() { # PAGE:LINE NAMES
    local one name test file
    [ -n "$2" ] || echo "$1: a promise without a test"
    tr ';' '\n' <<<"$2" | while IFS= read -r one; do
        one=${one# }
        name=${one%% *}
        test=$(sed -n "s/^[^ ]* '\(.*\)'$/\1/p" <<<"$one")
        file=$(source_of "$name" || true)
        if [ -z "$one" ]; then
            continue
        elif [ -z "$file" ] || [ ! -f "$file" ]; then
            echo "$1: there is no test $name"
        elif [ "$one" != "$name" ] && { [ -z "$test" ] || ! grep -qF "{\"$test\"" "$file"; }; then
            echo "$1: $name has no test called ${one#"$name" }"
        fi
    done
}

for page in "guarantees.md:^##" "cancellation.md:^## (Who cancels|What is guaranteed)"; do
    file=$root/docs/${page%%:*}
    [ -f "$file" ] || continue
    promises_of "$file" "${page#*:}" | while IFS=$'\t' read -r line names; do
        check "docs/${page%%:*}:$line" "$names"
    done
done >"$found"
verdict "promises that no test keeps"
