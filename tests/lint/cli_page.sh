#!/usr/bin/env bash
# cli_page.sh ROOT THOLE: docs/cli.md has each verb of the command THOLE, with all of its options and no others, the options
# of every verb, and the exit codes, as --help prints them. A row of the table of verbs whose first cell is empty belongs to the
# verbs above it.
set -eu
. "$(dirname "$0")/files.sh"
thole=$2
{
    "$thole" --help | sed 's/^/- /'
    "$thole" --help | awk '/^Verbs:/ { on = 1; next } /^[^ ]/ { on = 0 } on && NF { print $1 }' | while read -r verb; do
        "$thole" "$verb" --help | sed "s/^/$verb /"
    done
} | awk -v page=docs/cli.md '
    function flags(text, into,    flag) { # appends the --flags in the text, with blanks around each
        while (match(text, /--[a-z][a-z-]+/)) {
            flag = substr(text, RSTART, RLENGTH)
            text = substr(text, RSTART + RLENGTH)
            if (index(into, " " flag " ") == 0) into = into flag " "
        }
        return into
    }
    FILENAME == "-" { # VERB LINE, or - LINE of the general help
        verb = $1
        line = substr($0, length(verb) + 2)
        if (line ~ /^[^ ]/) section = line
        else if (verb == "-" && section == "Exit codes:" && line ~ /^ +[0-9]/) {
            code = line; sub(/^ +/, "", code); text = code; sub(/ .*/, "", code); sub(/^[0-9]+ +/, "", text)
            codes[code] = text
        } else if ((section == "Options:" || section ~ /^Options of a worker/) && match(line, /^ +(-[a-z], )?--[a-z-]+/)) has[verb] = flags(substr(line, 1, RLENGTH), has[verb] " ")
        else if (verb == "-" && match(line, /^ +(-[a-z], )?--[a-z-]+/)) common = flags(substr(line, 1, RLENGTH), common " ")
        if (verb != "-") verbs[verb] = 1
        next
    }
    FNR == 1 { n = 0 }
    /^##/ { heading = $0 }
    heading == "## Verbs" && /^\|/ {
        split($0, cell, "|")
        if (cell[2] ~ /`/) { # the verbs of this row
            n = 0
            for (rest = cell[2]; match(rest, /`[a-z-]+`/); rest = substr(rest, RSTART + RLENGTH)) {
                row[++n] = substr(rest, RSTART + 1, RLENGTH - 2)
                if (!(row[n] in verbs)) print page ":" FNR ": there is no verb " row[n]
                told[row[n]] = " "
            }
        }
        gsub(/\[[^]]*\]... -- /, "") # a separator, no flag
        for (i = 1; i <= n; i++) told[row[i]] = flags($0, told[row[i]])
    }
    heading == "## Verbs" && /^Options of every verb:/ { everywhere = 1 }
    everywhere && /^$/ { everywhere = 0 }
    everywhere { listed = flags($0, listed " ") }
    heading == "## Exit codes" && /^\| [0-9]+ \|/ {
        split($0, cell, / *\| */)
        if (codes[cell[2]] != cell[3]) print page ":" FNR ": exit code " cell[2] " is: " codes[cell[2]]
        delete codes[cell[2]]
    }
    END {
        for (verb in verbs) {
            if (!(verb in told)) { print page ": the verb " verb " is missing"; continue }
            k = split(has[verb], flag, " ")
            for (i = 1; i <= k; i++) if (index(told[verb], " " flag[i] " ") == 0) print page ": " verb " " flag[i] " is missing"
            k = split(told[verb], flag, " ")
            for (i = 1; i <= k; i++) if (index(" " has[verb], " " flag[i] " ") == 0) print page ": " verb " has no " flag[i]
        }
        k = split(common, flag, " ")
        for (i = 1; i <= k; i++) if (index(listed, " " flag[i] " ") == 0) print page ": " flag[i] ", of every verb, is missing"
        for (code in codes) print page ": exit code " code " is missing"
    }' - "$1/docs/cli.md" | LC_ALL=C sort >"$found"
verdict "verbs, options and exit codes that docs/cli.md has otherwise than the command"
