#!/usr/bin/env bash
# words.sh ROOT: no file names a folder of the machine it was written on.
set -eu
. "$(dirname "$0")/files.sh"
names='work|root|home/[a-z]+|tmp/natssrv' # as /NAME/, or ending there
files_of "$1" '*' | while IFS= read -r file; do
    grep -HnIE "(^|[^A-Za-z0-9_.}>-])/($names)(/|\$|[^A-Za-z0-9_/.-])" "$1/$file" | sed "s,^$1/,," || true
done >"$found"
verdict "paths of one machine"
