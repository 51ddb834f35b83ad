# shellcheck shell=bash
# Sourced by the lint scripts. files_of ROOT PATTERN... prints the project's own files, relative to ROOT.
files_of() {
    local root=$1
    shift
    (
        cd "$root" || exit 1
        if [ -e .git ] && git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
            git ls-files -co --exclude-standard -- "$@" | while IFS= read -r f; do [ -f "$f" ] && printf '%s\n' "$f"; done
        else # a release archive has no git
            local pattern args=()
            for pattern in "$@"; do args+=(-o -name "$pattern"); done
            find . \( -name build -o -name .git \) -prune -o -type f \( "${args[@]:1}" \) -print | sed 's,^\./,,'
        fi
    ) | grep -v '^build/' | LC_ALL=C sort -u
}

# awk_over ROOT PROGRAM [-v NAME=VALUE...]: one awk over the files, relative to ROOT, that standard input names.
awk_over() {
    local root=$1 program=$2
    shift 2
    (cd "$root" && tr '\n' '\0' | xargs -0 -r awk "$@" "$program")
}

# code_of ROOT: of the files that standard input names, FILE, LINE NUMBER and the line, with tabs between; comments,
# strings and character constants are blanked. One process for all of them.
code_of() {
    awk_over "$1" '
    FNR == 1 { inside = 0 }
    { line = $0; out = ""; plain = line ~ /^[ \t]*#[ \t]*include/ # of that the quotes are kept
      while (line != "") {
        if (inside) {
            end = index(line, "*/")
            if (end == 0) break
            line = substr(line, end + 2); inside = 0; plain = (out line) ~ /^[ \t]*#[ \t]*include/
            continue
        }
        if (!match(line, plain ? "/[*/]" : "/[*/]|[\"'\'']")) { out = out line; break }
        c = substr(line, RSTART, 1); two = substr(line, RSTART, 2)
        out = out substr(line, 1, RSTART - 1); line = substr(line, RSTART + 1)
        if (two == "/*") { inside = 1; line = substr(line, 2); continue }
        if (two == "//") break
        n = 1
        while (n <= length(line) && substr(line, n, 1) != c) n += substr(line, n, 1) == "\\" ? 2 : 1
        out = out c c; line = substr(line, n + 1)
      }
      print FILENAME "\t" FNR "\t" out }'
}

# text_of FILE: sets $text to what is in it, with a newline before it; empty: it is not there. Each file is read once, by
# the shell itself: a process for each look would take seconds.
declare -A texts=()
text_of() {
    if [ -z "${texts[$1]+read}" ]; then
        texts[$1]=
        [ ! -f "$1" ] || texts[$1]=$'\n'$(<"$1")$'\n'
    fi
    text=${texts[$1]}
}

# verdict WHAT: fails when anything was written to $found, and says how many.
verdict() {
    if [ -s "$found" ]; then
        head -n 40 "$found"
        printf '%s: %d found\n' "$1" "$(wc -l <"$found")"
        exit 1
    fi
}
found=$(mktemp)
trap 'rm -f "$found"' EXIT
