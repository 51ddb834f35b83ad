#!/usr/bin/env bash
# words.sh ROOT: no file names a folder of the machine it was written on.
set -eu
. "$(dirname "$0")/files.sh"
names='work|root|home/[a-z]+|tmp/natssrv' # as /NAME/, or ending there
(cd "$1" && files_of . '*' | tr '\n' '\0' |
    xargs -0 -r grep -HnIE "(^|[^A-Za-z0-9_.}>-])/($names)(/|\$|[^A-Za-z0-9_/.-])") >"$found" || true
verdict "paths of one machine"
