#!/usr/bin/env bash
# scripts.sh ROOT: each script says what it does and how long it takes when it is asked (--help), and refuses an option that it
# does not know before it does anything.
set -eu
. "$(dirname "$0")/files.sh"
root=$1
[ -d "$root/scripts" ] || exit 0
for script in "$root"/scripts/*; do
    name=$(basename "$script")
    [ -x "$script" ] || continue
    code=0
    head=$(cd / && timeout 10 "$script" --help 2>&1 </dev/null) || code=$?
    [ "$code" -eq 0 ] || echo "$name --help: exit code $code"
    grep -qE '(second|minute|hour)s?\b|[Ss]econds' <<<"$head" || echo "$name --help does not say how long it takes"
    code=0
    said=$(cd / && timeout 10 "$script" --no-such-option 2>&1 </dev/null) || code=$?
    [ "$code" -eq 2 ] || echo "$name --no-such-option: exit code $code, not 2: $(head -n 1 <<<"$said")"
done >"$found"
verdict "what scripts do not say, or take"
