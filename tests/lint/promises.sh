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

# NAME: sets $file to the file with the tests of that name, or to the one that names it, and $text to what is in it;
# $file is empty when there is no such test.
source_of() {
    local rest=${1#*.} named=
    case $1 in
        unit.* | golden.* | examples.* | integration.*)
            for file in "$root/tests/${1%%.*}"/{,*/}test_"$rest".c "$root/tests/rooms/test_$rest.c"; do
                [ ! -f "$file" ] || break
            done
            ;;
        sim.mutant_*) file=$root/tests/sim/mutants named=$'\n'"mutant ${rest#mutant_}"$'\n' ;;
        sim.*) file=$root/tests/sim/CMakeLists.txt named=${rest#mutation_} ;;
        lint.*) file=$root/tests/lint/$rest.sh ;;
        *) file=$root/tests/CMakeLists.txt named=$1 ;;
    esac
    text_of "$file"
    case $1 in
        sim.mutant_*) [[ $text == *"$named"* ]] || file= ;;
        sim.*) [[ $text =~ [^A-Za-z0-9_]"$named"[^A-Za-z0-9_] ]] || file= ;;
        *) [ -n "$text" ] && [[ $text == *"$named"* ]] || file= ;;
    esac
}

check() { # PAGE:LINE NAMES
    local at=$1 one name test file text all
    [ -n "$2" ] || echo "$at: a promise without a test"
    IFS=';' read -ra all <<<"$2"
    for one in ${all[@]+"${all[@]}"}; do
        one=${one# }
        [ -n "$one" ] || continue
        name=${one%% *}
        source_of "$name"
        if [ -z "$file" ]; then
            echo "$at: there is no test $name"
        elif [ "$one" != "$name" ] && { ! [[ $one =~ ^[^\ ]*\ \'(.*)\'$ ]] || [[ $text != *"{\"${BASH_REMATCH[1]}\""* ]]; }; then
            echo "$at: $name has no test called ${one#"$name" }"
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
