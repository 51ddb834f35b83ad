#!/usr/bin/env bash
# function_length.sh ROOT: no function is longer than 70 lines, from the line of its { to that of its }.
set -eu
. "$(dirname "$0")/files.sh"
max=70
files_of "$1" '*.c' '*.h' | awk_over "$1" '
    FNR == 1 { start = 0; previous = "" }
    /^\{/ { start = FNR; name = previous }
    /^\}/ { if (start && FNR - start + 1 > max) printf "%s:%d: %d lines: %s\n", FILENAME, start, FNR - start + 1, name; start = 0 }
    !/^[ \t]*$/ { previous = $0 }' -v max="$max" >"$found"
verdict "functions longer than $max lines"
