#!/usr/bin/env bash
# words.sh ROOT: no file names a folder of the machine it was written on; in the product and its pages no word that
# docs/glossary.md has replaced, and none of some phrases that a reader has to guess the meaning of.
set -eu
. "$(dirname "$0")/files.sh"
names='work|root|home/[a-z]+|tmp/natssrv' # as /NAME/, or ending there
(cd "$1" && files_of . '*' | tr '\n' '\0' |
    xargs -0 -r grep -HnIE "(^|[^A-Za-z0-9_.}>-])/($names)(/|\$|[^A-Za-z0-9_/.-])") >"$found" || true
verdict "paths of one machine"

phrases=(
    # replaced: step down, crash reporter, crash report, root instance, isolated, per-receiver queue, release, execution 0
    'in doubt' 'witness(es)?' 'last words?' 'loners?' 'the other lane' 'let(s|ting)? go' 'antechamber' 'grows? old'
    'design §'
    # replaced: incarnation, generation
    '(earlier|former|next|later|another) (life|lives)'
    # say who: no worker, another owner, the sender, a user
    "nobody'?s" "nobody (knows|hears|looks|asks|wants|can|else)" 'somebody else' 'whoever' 'who (dies|lives|crashes)'
    # say what happens: the state afterwards, the status, the message, the log line
    '(what|whatever) (becomes|became|has become) of' 'what comes of' 'hears? of' '(has|have) heard' 'in vain'
    'the whole truth' 'all the same' 'harms nobody' 'the way is free' 'new eyes' 'lives? here' 'a hand plays'
)
pattern=$(printf '|%s' "${phrases[@]}")
# kept: messages that are stored, or that a test asserts; the tests that a page names; the table of old words
kept='<!-- tests: |^docs/glossary\.md:[0-9]+:\| (apart|last word)|nobody started it in time|so nobody knows what is in quarantine'
files_of "$1" '*.c' '*.h' '*.md' '*.proto' | grep -vE '^(tests/|CHANGELOG\.md)' | (cd "$1" && tr '\n' '\0' |
    xargs -0 -r grep -HniE "(^|[^A-Za-z_])(${pattern:1})(\$|[^A-Za-z_])") | grep -vE "$kept" >"$found" || true
verdict "words that docs/glossary.md has others for, or that say less than they seem to"
