#!/usr/bin/env bash
# json.sh ROOT: in the product only base/json.c writes JSON: no string elsewhere holds a key with its colon, or a
# brace or bracket alone, as texts do that are put together by hand.
set -eu
. "$(dirname "$0")/files.sh"
files_of "$1" '*.c' '*.h' | grep -vE '^(tests|bench|examples)/|^base/json\.c$' | awk_over "$1" '
    { line = $0; gsub(/\/\*[^*]*\*\//, "", line) }
    line ~ /^ ?\*|^ *\/\*/ { next } # a comment
    line ~ /\\"[^" ]*\\" ?:/ || line ~ /"([{}][][{}]*|\[+)"/ { print FILENAME ":" FNR ": " $0 }' >"$found"
verdict "JSON written by hand"
