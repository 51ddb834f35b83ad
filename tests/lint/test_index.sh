#!/usr/bin/env bash
# test_index.sh ROOT: each test of tests/unit, tests/rooms and tests/integration, and each rule that the simulation's world breaks, is in
# the table of tests/README.md and in the folder of a row that names it, each name there is one, and each file that a mutant
# changes is covered by a row.
set -eu
. "$(dirname "$0")/files.sh"
root=$1
page=$root/tests/README.md
[ -f "$page" ] || exit 0
awk -F'|' -v root="$root" '
    function words(cell, kind,   n, i, list) {
        n = split(cell, list, "`")
        for (i = 2; i <= n; i += 2) print kind, list[i] }
    /^\| topic /, /^$/ { if ($0 ~ /^\| (topic|---)/ || $0 !~ /^\|/) next
        split($3, folder, "`")
        words($4, "code"); words($5, "unit"); words($6, "sim"); words($7, "integration")
        words($5, "in " folder[2] " unit"); words($7, "in " folder[2] " integration") }' "$page" | sort -u >"$found.page"
{
    files_of "$root" '*.c' | sed -nE 's,^tests/rooms/,tests/unit/,; s,^tests/(unit|integration)/(.*/)?test_(.*)\.c$,\1 \3,p'
    [ ! -f "$root/tests/sim/CMakeLists.txt" ] || awk '
        sub(/^foreach\(mutation /, "") { inside = 1 }
        inside { n = split($0, names, /[ )]+/); for (i = 1; i <= n; i++) if (names[i] != "") print "sim", names[i] }
        /\)/ { inside = 0 }' "$root/tests/sim/CMakeLists.txt"
} | sort -u >"$found.tree"
grep -E '^(unit|sim|integration) ' "$found.page" | comm -13 - "$found.tree" | sed 's,^,tests/README.md: not in the table: ,' >"$found"
grep -E '^(unit|sim|integration) ' "$found.page" | comm -23 - "$found.tree" | sed 's,^,tests/README.md: there is no test ,' >>"$found"
files_of "$root" '*.c' | sed -nE 's,^tests/(unit|integration)/(.*/)?test_(.*)\.c$,\1 \2 \3,p' | while read -r kind folder name; do
    [ -n "$name" ] || name=$folder folder=
    grep -qxF "in ${folder%/} $kind $name" "$found.page" || echo "tests/README.md: no row has the folder of tests/$kind/${folder}test_$name.c"
done >>"$found"
for mutants in "$root"/tests/{sim,unit,integration}/mutants; do
    [ ! -f "$mutants" ] || sed -n 's/^file //p' "$mutants"
done | sort -u | while IFS= read -r file; do
    while read -r kind folder; do
        case $kind:$file in "code:$folder"/* | "code:$folder") continue 2 ;; esac
    done <"$found.page"
    echo "tests/README.md: no row covers $file, which a mutant changes"
done >>"$found"
rm -f "$found.page" "$found.tree"
verdict "tests that their index does not know"
