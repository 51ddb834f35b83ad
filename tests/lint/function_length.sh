#!/usr/bin/env bash
# function_length.sh ROOT: no function is longer than 70 lines, from the line of its { to that of its }.
set -eu
. "$(dirname "$0")/files.sh"
max=70
files_of "$1" '*.c' '*.h' | while IFS= read -r file; do
    awk -v max="$max" -v file="$file" '
        /^\{/ { start = NR; name = previous }
        /^\}/ { if (start && NR - start + 1 > max) printf "%s:%d: %d lines: %s\n", file, start, NR - start + 1, name; start = 0 }
        !/^[ \t]*$/ { previous = $0 }' "$1/$file"
done >"$found"
verdict "functions longer than $max lines"
