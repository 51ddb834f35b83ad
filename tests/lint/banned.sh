#!/usr/bin/env bash
# banned.sh ROOT: functions that no file may call: unbounded, not thread-safe, or not reporting errors.
set -eu
. "$(dirname "$0")/files.sh"
names='strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|atof|gmtime|localtime|rand|srand|alloca|gets'
files_of "$1" '*.c' '*.h' | code_of "$1" | awk -F'\t' -v names="(^|[^A-Za-z0-9_])($names)[ \t]*[(]" '
    { code = substr($0, length($1) + length($2) + 3) }
    match(code, names) { printf "%s:%d: %s)\n", $1, $2, substr(code, RSTART, RLENGTH) }' >"$found"
verdict "calls of banned functions"
