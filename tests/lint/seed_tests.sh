#!/usr/bin/env bash
# seed_tests.sh ROOT: each row of docs/seed_tests.md names a test that is in each of the files beside it, and what breaks
# its rule in the simulation. The page has a line for each mutant of tests/integration/mutants, with the tests that must
# find it, and such a test is in its file.
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
mutants=$root/tests/integration/mutants
[ ! -f "$mutants" ] || awk '
    function row() { if (name != "") print "| " rule " | `" name "` | " tests " |" }
    sub(/^mutant /, "") { row(); name = $0; tests = "" }
    sub(/^rule /, "") { rule = $0 }
    sub(/^seed /, "") { tests = tests (tests == "" ? "" : ", ") "`" $2 "`" }
    END { row() }' "$mutants" >"$found.rows"
[ ! -f "$found.rows" ] || {
    grep -vxFf "$page" "$found.rows" | sed 's,^,docs/seed_tests.md has no line ,'
    sed -n '/^| rule |/,/^$/{/^| rule |/d; /^|---/d; /^|/p}' "$page" | grep -vxFf "$found.rows" |
        sed 's,^,tests/integration/mutants has another one: ,'
    sed -n 's/^seed //p' "$mutants" | while read -r program name; do
        files_of "$root" '*.c' | grep -q "/test_$program\.c\$" || echo "tests/integration/mutants: there is no test $program"
        grep -q "^| \`$name\` .*/test_$program\.c)" "$page" || echo "$name is not a row with test_$program.c"
    done
    rm -f "$found.rows"
} >>"$found" || true
verdict "tests that the seeds name and that are not there"
