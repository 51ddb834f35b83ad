#!/usr/bin/env bash
# banned.sh ROOT: functions that no file may call: unbounded, not thread-safe, or not reporting errors; and clocks, which the
# product reads in clock/ alone (tests, benchmarks and examples are programs of their own).
set -eu
. "$(dirname "$0")/files.sh"
names='strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|atof|gmtime|localtime|rand|srand|alloca|gets'
files_of "$1" '*.c' '*.h' | code_of "$1" | awk -F'\t' -v names="(^|[^A-Za-z0-9_])($names)[ \t]*[(]" \
    -v clocks='(^|[^A-Za-z0-9_])(clock_gettime|gettimeofday|time)[ \t]*[(]' '
    { code = substr($0, length($1) + length($2) + 3) }
    match(code, names) || ($1 !~ /^(clock|tests|bench|examples)\// && match(code, clocks)) { printf "%s:%d: %s)\n", $1, $2, substr(code, RSTART, RLENGTH) }' >"$found"
verdict "calls of banned functions"
