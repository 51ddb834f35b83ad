#!/usr/bin/env bash
# error_page.sh ROOT: docs/errors.md has an entry for each status of the API, each exit code of the command, each code of rejected
# messages and each cause for which a partition is closed, and no others; and docs/operations.md has a line for each area that
# logs warnings and errors. The page's lists are the first cells of the tables behind `<!-- table: NAME -->`.
set -eu
. "$(dirname "$0")/files.sh"
cd "$1"
told=$(mktemp)
trap 'rm -f "$found" "$told"' EXIT

# entries TABLE: the first cells, without backquotes.
entries() {
    awk -v mark="<!-- table: $1 -->" '
        $0 == mark { on = 1; n = 0; next }
        on && !/^\|/ { exit }
        on && ++n > 2 { split($0, cell, / *\| */); gsub(/`/, "", cell[2]); print cell[2] }' docs/errors.md | LC_ALL=C sort
}

# compare TABLE WHAT FILE: with what standard input has.
compare() {
    LC_ALL=C sort >"$told"
    [ -s "$told" ] || echo "$3: no $2 was found"
    entries "$1" | LC_ALL=C comm -13 - "$told" | sed "s,^,docs/errors.md: $2 without an entry: ,"
    entries "$1" | LC_ALL=C comm -23 - "$told" | sed "s,^,docs/errors.md: $3 has no $2 ,"
}

{
    grep -oE '^ +X\([A-Z_]+, [0-9]+, "' include/thole/types.h | sed -E 's/^ +X\(([A-Z_]+),.*/\1/' |
        compare statuses status include/thole/types.h
    grep -oE '^ +X\([A-Z_]+, [0-9]+,' cli/exit_codes.h | sed -E 's/.*, ([0-9]+),/\1/' |
        compare 'exit codes' 'exit code' cli/exit_codes.h
    grep -oE 'return "[a-z_]+"' engine/partition/base/reject_code.c | sed -E 's/.*"(.*)"/\1/' | grep -vx none |
        compare 'rejection codes' 'code of rejected messages' engine/partition/base/reject_code.c
    awk '/name = "thole_engine_partitions_closed_total"/ { on = 1 } on && /values = / { values = 1 } on && values { print }
        on && values && /\)/ { exit }' runtime/metrics/metric_table.c | grep -oE '"[a-z_]+"' | tr -d '"' |
        compare causes cause runtime/metrics/metric_table.c
    files_of . '*.c' | grep -E '^(base|engine|platform|streams|projections|runtime|testkit|cli|devservers)/' | tr '\n' '\0' |
        xargs -0 grep -ohE 'LOG_LEVEL_(WARN|ERROR), "[a-z]+"' | sed -E 's/.*"(.*)"/\1/' | LC_ALL=C sort -u |
        while read -r area; do
            grep -qE "^\| ([a-z]+, )*$area(, [a-z]+)* \|" docs/operations.md || echo "docs/operations.md: the table of warnings has no line of area $area"
        done
} >"$found"
verdict "errors without an entry"
