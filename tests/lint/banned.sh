#!/usr/bin/env bash
# banned.sh ROOT: functions that no file may call: unbounded, not thread-safe, or not reporting errors.
set -eu
. "$(dirname "$0")/files.sh"
names='strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|atof|gmtime|localtime|rand|srand|alloca|gets'
files_of "$1" '*.c' '*.h' | while IFS= read -r file; do
    code_of "$1/$file" | awk -v file="$file" -v names="(^|[^A-Za-z0-9_])($names)[ \t]*[(]" '
        match($0, names) { printf "%s:%d: %s)\n", file, NR, substr($0, RSTART, RLENGTH) }'
done >"$found"
verdict "calls of banned functions"
