#!/usr/bin/env bash
# banned.sh ROOT: functions that no file may call: unbounded, not thread-safe, or not reporting errors; and clocks, which the
# product reads in platform/clock.c alone (tests, benchmarks and examples are programs of their own). Clients read the streams of
# instances through place_last() and its like alone, which tell a stream that was lost from an instance that is not there.
# Verbs make files by private_file.h alone, which gives them to their user.
set -eu
. "$(dirname "$0")/files.sh"
names='strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|atof|gmtime|localtime|rand|srand|alloca|gets'
files_of "$1" '*.c' '*.h' | code_of "$1" | awk -F'\t' -v names="(^|[^A-Za-z0-9_])($names)[ \t]*[(]" \
    -v clocks='(^|[^A-Za-z0-9_])(clock_gettime|gettimeofday|time)[ \t]*[(]' \
    -v reads='(^|[^A-Za-z0-9_])(stream_last_by_subject|stream_message)[ \t]*[(]' '
    { code = substr($0, length($1) + length($2) + 3) }
    match(code, names) || ($1 !~ /^(platform\/clock[.]c$|(tests|bench|examples)\/)/ && match(code, clocks)) ||
        ($1 ~ /^(runtime\/client|cli)\// && $1 !~ /client_history[.]c$/ && match(code, reads)) { printf "%s:%d: %s)\n", $1, $2, substr(code, RSTART, RLENGTH) }' >"$found"
files_of "$1" '*.c' | { grep -E '^cli/' || true; } | { grep -vE '^cli/(private_file|man_command|dev_folder)[.]c$' || true; } |
    awk_over "$1" '/fopen[(].*"[wa]|O_CREAT/ { printf "%s:%d: a file is made: private_file.h\n", FILENAME, FNR }' >>"$found"
verdict "calls of banned functions"
