#!/usr/bin/env bash
# state_tables.sh ROOT [--write]: each table of states in docs/architecture.md is what the code says. A table stands between
#     <!-- states LEASE_ of engine/worker/lease_states.h engine/worker/lease_states.c, set in engine/worker/lease_table.c -->
# and <!-- end of states -->: the prefix, the header with one state a line and what it means in a comment, the source with
# `[PREFIX_STATE] = TO(NEXT) | TO(NEXT),`, a row for each state, and the one file of that folder that may write a field
# `state` of it; `, set in FILE as FIELD` if the field is called otherwise. With --write the tables are drawn anew.
set -eu
. "$(dirname "$0")/files.sh"
root=$1
page=docs/architecture.md
drawn=$(mktemp)
trap 'rm -f "$found" "$drawn"' EXIT

# draw PREFIX HEADER SOURCE: the table
draw() {
    awk -v prefix="$1" -v root="$root/" -v found="$found" '
        FNR == 1 { file++; name = "" }
        file == 1 && match($0, "^ *" prefix "[A-Z_]+, *\\/\\*") {
            name = $1; sub(",", "", name); text = $0
            sub(/^[^*]*\* */, "", text)
            if (!sub(/ *\*\/$/, "", text)) { bad(FILENAME ":" FNR ": a comment of one line says what a state means"); next }
            names[++n] = name; means[name] = text; next }
        file == 2 && match($0, "^ *\\[" prefix "[A-Z_]+\\] =") { name = $1; gsub(/[][]/, "", name); has[name] = 1 }
        file == 2 && name != "" {
            rest = $0
            while (match(rest, /TO\([A-Z_]+\)/)) {
                next_states[name] = next_states[name] (next_states[name] == "" ? "" : ", ") plain(substr(rest, RSTART + 3, RLENGTH - 4))
                rest = substr(rest, RSTART + RLENGTH) }
            if ($0 ~ /,$/) name = "" }
        function plain(name) { sub("^" prefix, "", name); gsub("_", " ", name); return tolower(name) }
        function bad(what) { sub(root, "", what); print what >>found }
        END { print "| state | what it means | what may follow |"; print "|---|---|---|"
            for (i = 1; i <= n; i++) if (!(names[i] in has)) bad(FILENAME ": no row says what may follow " names[i])
            for (name in has) if (!(name in means)) bad(FILENAME ": no comment in the line of " name " in the header says what it means")
            for (i = 1; i <= n; i++) print "| " plain(names[i]) " | " means[names[i]] " | " next_states[names[i]] " |" }
    ' "$2" "$3"
}

inside=0
declare -A tables=() # how many a file sets the states of
while IFS= read -r line; do
    if [[ $line =~ ^'<!-- states '([A-Z_]+)' of '([^ ]+)' '([^ ]+)', set in '([^ ]+)(' as '([a-z_]+))?' -->'$ ]]; then
        prefix=${BASH_REMATCH[1]} header=${BASH_REMATCH[2]} source=${BASH_REMATCH[3]} setter=${BASH_REMATCH[4]} field=${BASH_REMATCH[6]:-state}
        printf '%s\n' "$line"
        draw "$prefix" "$root/$header" "$root/$source"
        inside=1
        tables["$setter $field"]=$((${tables["$setter $field"]:-0} + 1))
        files_of "$root" '*.c' '*.h' | grep "^${setter%/*}/[^/]*$" | code_of "$root" | awk -F'\t' -v setter="$setter" -v field="$field" '
            $1 != setter && $3 ~ ("[>.]" field " = ") { print $1 ":" $2 ": a state is set in " setter " alone: " $3 }' >>"$found"
    elif [ "$line" = '<!-- end of states -->' ]; then
        inside=0
        printf '%s\n' "$line"
    elif [ $inside -eq 0 ]; then
        printf '%s\n' "$line"
    fi
done <"$root/$page" >"$drawn"
for at in "${!tables[@]}"; do # one function for each of them
    echo "${at% *}" | code_of "$root" | awk -F'\t' -v field="${at#* }" -v tables="${tables[$at]}" '
        $3 ~ ("->" field " = ") && ++n > tables { print $1 ":" $2 ": a state is set in more than one place: " $3 }' >>"$found"
done
if [ "${2:-}" = --write ]; then
    cp "$drawn" "$root/$page"
fi
diff "$root/$page" "$drawn" | sed -n "s,^[<>],$page: tests/lint/state_tables.sh . --write draws it anew: &,p" >>"$found" || true
verdict "tables of states that are not as in the code"
