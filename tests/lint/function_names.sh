#!/usr/bin/env bash
# function_names.sh ROOT: each function of the product has a name of two words or more that no other function has, so that a
# back trace, a profile and a breakpoint mean one place. Tests, benchmarks and examples are free; so is main().
set -eu
. "$(dirname "$0")/files.sh"
files_of "$1" '*.c' '*.h' | grep -vE '^(tests|bench|examples|include|proto)/' | awk_over "$1" '
    # A definition: from a line that begins with a type to the "{" that begins one.
    FNR == 1 { head = "" }
    /^[A-Za-z_]/ { head = $0; at = FNR; next }
    /^\{/ { gsub(/THOLE_PRINTF\([^)]*\)|__attribute__\(\(.*\)\)/, "", head)
            if (match(head, /[A-Za-z0-9_]+\(/) && head !~ /^(struct|enum|union) [a-z_]+ *$/)
                print substr(head, RSTART, RLENGTH - 1), FILENAME ":" at
            head = "" }' | grep -v '^main ' | LC_ALL=C sort | awk '
    $1 !~ /_/ && $1 != "supervise" { print $2 ": " $1 "() has a name of one word" }
    $1 == name { print $2 ": " $1 "() is also in " place }
    { name = $1; place = $2 }' >"$found"
verdict "functions with a name that says too little"
