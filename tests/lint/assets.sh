#!/usr/bin/env bash
# assets.sh ROOT: index.html loads each of the console's modules ahead, and each file that a module imports is there.
set -eu
. "$(dirname "$0")/files.sh"
assets=$1/console/assets
[ -d "$assets" ] || exit 0
for file in "$assets"/*.js; do
    name=$(basename "$file")
    grep -q "/assets/$name\"" "$assets/index.html" || echo "index.html does not load $name ahead"
    grep -oE "from '\./[a-z_]+\.js'" "$file" | sed "s,.*/,,; s,'$,," | while IFS= read -r imported; do
        [ -f "$assets/$imported" ] || echo "$name imports $imported, which is not there"
    done
done >"$found"
verdict "modules of the console that are not loaded"
