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

# code_of FILE: the file with comments, strings and character constants blanked, line numbers kept.
code_of() {
    awk '
    { line = $0; out = ""
      while (line != "") {
        if (inside) {
            end = index(line, "*/")
            if (end == 0) { line = ""; break }
            line = substr(line, end + 2); inside = 0; continue
        }
        c = substr(line, 1, 1); two = substr(line, 1, 2)
        if (two == "/*") { inside = 1; line = substr(line, 3); continue }
        if (two == "//") break
        if (out !~ /^[ \t]*#[ \t]*include/ && (c == "\"" || c == "'\''")) {
            n = 2
            while (n <= length(line) && substr(line, n, 1) != c) n += substr(line, n, 1) == "\\" ? 2 : 1
            out = out c c; line = substr(line, n + 1); continue
        }
        out = out c; line = substr(line, 2)
      }
      print out }' "$1"
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
