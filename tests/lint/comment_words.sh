#!/usr/bin/env bash
# comment_words.sh ROOT: comments stand alone. At most 2 % of them begin with "it", "that", "what", "who" or "the same", so
# that a reader must find out what they are about; and at most 20 in all have a word that plain English has another one
# for: "behind" (after), "anew" (again), "somebody" (a user, another engine), "is there" (exists).
set -eu
. "$(dirname "$0")/files.sh"
files_of "$1" '*.c' '*.h' | awk_over "$1" '
    # one line for each comment: FILE:LINE, a tab, its text in small letters, with a blank for all that is no letter or digit
    function comment_ends() {
        if (text != "") {
            text = tolower(text)
            gsub(/[^a-z0-9_]+/, " ", text)
            sub(/^ /, "", text)
            if (text ~ /[a-z]/) print place "\t" text " "
        }
        text = ""
    }
    FNR == 1 { comment_ends(); inside = lines = 0 }
    { line = $0
      own = line ~ /^[ \t]*\/\//
      if (lines && !own) { comment_ends(); lines = 0 }
      if (own) { # lines of // below each other are one comment
        if (!lines) place = FILENAME ":" FNR
        lines = 1
        text = text " " substr(line, index(line, "//") + 2)
        next
      }
      while (line != "") {
        if (inside) {
            end = index(line, "*/")
            text = text " " (end ? substr(line, 1, end - 1) : line)
            if (!end) break
            line = substr(line, end + 2); inside = 0; comment_ends()
            continue
        }
        if (!match(line, "/[*/]|[\"'\'']")) break
        c = substr(line, RSTART, 1); two = substr(line, RSTART, 2); line = substr(line, RSTART + 1)
        if (two == "/*") { inside = 1; place = FILENAME ":" FNR; line = substr(line, 2); continue }
        if (two == "//") { place = FILENAME ":" FNR; text = substr(line, 2); comment_ends(); break }
        n = 1
        while (n <= length(line) && substr(line, n, 1) != c) n += substr(line, n, 1) == "\\" ? 2 : 1
        line = substr(line, n + 1)
      } }
    END { comment_ends() }' | awk -F'\t' '
    { line = $1 ": " substr($2, 1, 80) }
    $2 ~ /^(it|its|that|what|who|the same) / { begins = begins line "\n"; begin++ }
    { n = 0; padded = " " $2; gsub(" ", "  ", padded); for (i = split("behind anew somebody", word, " "); i; i--) n += gsub(" " word[i] " ", " ", padded)
      n += gsub(/ is  there /, " ", padded); words += n; if (n) has = has line "\n" }
    END { if (begin > NR / 50) printf "%s", begins
          if (words > 20) printf "%s", has }' >"$found"
verdict "more than 2 % of the comments begin with it, that, what, who, the same; or more than 20 have behind, anew, somebody, is there"
