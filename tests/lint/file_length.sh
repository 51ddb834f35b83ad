#!/usr/bin/env bash
# file_length.sh ROOT: no source file is longer than 800 lines.
set -eu
. "$(dirname "$0")/files.sh"
max=800
files_of "$1" '*.c' '*.h' | awk_over "$1" '
    FNR == 1 { say() }
    { file = FILENAME; lines = FNR }
    END { say() }
    function say() { if (lines > max) print file ": " lines " lines"; lines = 0 }' -v max="$max" >"$found"
verdict "files longer than $max lines"
