#!/usr/bin/env bash
# walks.sh ROOT: what the walks of docs/architecture.md name is there. A walk stands between <!-- walk --> and
# <!-- end of walk -->. In it `file.c: one, two` names functions of that file; `struct x` and `SOME_NAME`, which say what
# crosses a wall, stand somewhere in the product's code.
set -eu
. "$(dirname "$0")/files.sh"
{
    echo docs/architecture.md
    files_of "$1" '*.c' '*.h' | grep -v '^tests/'
} | awk_over "$1" '
    FILENAME == page && $0 == "<!-- walk -->" { inside = 1 }
    FILENAME == page && $0 == "<!-- end of walk -->" { inside = 0 }
    FILENAME == page {
        for (rest = inside ? $0 : ""; match(rest, /`[^`]+`/);) {
            text = substr(rest, RSTART + 1, RLENGTH - 2)
            rest = substr(rest, RSTART + RLENGTH)
            if (match(text, /^[a-z_0-9]+\.[ch]: /)) {
                file = substr(text, 1, RLENGTH - 2)
                n = split(substr(text, RLENGTH + 1), names, ", ")
                for (i = 1; i <= n; i++) steps[file ": " names[i]] = FNR
                named[file] = 1
            } else if (text ~ /^struct [a-z_0-9]+$/ || text ~ /^[A-Z]+_[A-Z0-9_]+$/) {
                words[text] = FNR
            }
        }
        next
    }
    FNR == 1 { file = FILENAME; sub(/.*\//, "", file) }
    (file in named) && /^[a-z].*[^;]$/ { # not indented and no declaration: a definition begins
        for (rest = $0; match(rest, /[a-z_0-9]+\(/); rest = substr(rest, RSTART + RLENGTH))
            defined[file ": " substr(rest, RSTART, RLENGTH - 1)] = 1
    }
    { for (word in words)
        if (index($0, word) && $0 ~ ("(^|[^A-Za-z0-9_])" word "([^A-Za-z0-9_]|$)")) delete words[word] }
    END {
        for (step in steps) { any = 1; if (!(step in defined)) print page ":" steps[step] ": there is no function " step }
        for (word in words) print page ":" words[word] ": nothing in the code is called " word
        if (!any) print page ": it has no walk"
    }' -v page=docs/architecture.md | LC_ALL=C sort >"$found"
verdict "names of the walks that the code does not have"
