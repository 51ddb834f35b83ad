#!/usr/bin/env bash
# file_length.sh ROOT: no source file is longer than 800 lines.
set -eu
. "$(dirname "$0")/files.sh"
max=800
files_of "$1" '*.c' '*.h' | while IFS= read -r file; do
    lines=$(wc -l <"$1/$file")
    [ "$lines" -le "$max" ] || echo "$file: $lines lines"
done >"$found"
verdict "files longer than $max lines"
