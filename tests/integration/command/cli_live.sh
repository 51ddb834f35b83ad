#!/usr/bin/env bash
# Run by test_cli_command under `thole dev`: every verb against a live engine. cli_live.sh THOLE CHECKOUT VERBS
# Prints one line for each check that fails; exit code 0 when there is none.
set -u
thole=$1
checkout=$2
verbs=$3
bad=0
log=$(mktemp)
server=
other_server=
finish() {
    for pid in $server $other_server; do
        kill -TERM "$pid" && wait "$pid"
    done
    rm -f "$log" "$log".*
}
trap finish EXIT

. "$(dirname "$0")/cli_checks.sh"

expect 3 'Try: start an engine' history x
"$checkout" run >"$log" 2>&1 &
server=$!
await 60 grep -q serving "$log"

expect 0 'order 1 shipped: parcel with goods-1' run checkout --id c-1 --input 'order=1;pay_ms=1' --timeout 60s
expect 4 'exists already' run checkout --id c-1 --timeout 60s
expect 4 'exists already' start checkout --id c-1
expect 4 'Try: another --id, or: thole show c-1' start checkout --id c-1
expect 0 'two words' start checkout --id 'two words' --input 'order=5;pay_ms=1'
expect 4 "Try: another --id, or: thole show 'two words'" start checkout --id 'two words'
expect 0 '"status":"Completed","execution":1,"output":"order 2 shipped' \
    run checkout --id c-2 -i 'order=2;pay_ms=1' -o json --timeout 60s
expect 0 'order 1 shipped' wait c-1 --timeout 60s
expect 3 'there is no instance' wait nobody --timeout 200ms
expect 3 'in namespace default yet: waiting for it to be started' wait nobody --timeout 5500ms
expect 3 'there is no instance' history nobody
expect 3 'there is no instance' cancel nobody
expect 3 'nobody' show nobody
expect 0 'checkout-' start checkout --input 'order=3;pay_ms=1'
expect 0 'c-4' start checkout --id c-4 --input 'order=4;pay_ms=600000;limit_ms=600000'
expect 8 'has not ended yet' wait c-4 --timeout 200ms
await 10 says 'has 1' queue list
expect 0 'SERVED BY' queue list
expect 0 'activity charge, queue default, try 1: worker ' show c-4
expect 0 '"state":"running","text":"worker ' show c-4 -o json
expect 0 '"running":1,"outside":0,"poisoned":0,"limit":null,"lease_ms":30000,"oldest_ms":null,"delivered":' \
    queue list --queue default -o json
expect 0 ',"workers":[{"worker":"' queue list --queue default -o json
expect 0 '{"schema":"thole.queue.v1","queue":"default","waiting":' queue list -o jsonl
expect 0 '"accepted":true' cancel c-4 --actor ann --reason 'no more' -o json
expect 9 'was cancelled: no more' wait c-4 --timeout 60s
expect 9 '"status":"Cancelled"' wait c-4 --timeout 60s -o json
# What has ended says so, instead of accepting what would change nothing.
expect 10 'instance "c-4" ended as Cancelled at 20' cancel c-4
expect 10 'nothing was cancelled' cancel c-1
expect 10 'Try: thole show c-1' cancel c-1
expect 10 'ended as Completed at 20' terminate c-1
expect 10 'nothing was terminated' terminate c-4
expect 10 'the event was not raised' signal c-1 paid
expect 10 'nothing was changed' pause c-1
expect 10 'nothing was changed' resume c-4
expect 10 '"status":"CONFLICT","exit_code":10,"verb":"cancel","object":"c-1","message":"instance \"c-1\" ended' \
    cancel c-1 -o json
expect 0 'TIME                      EXEC    ID  EVENT' history c-1
expect 0 'Z     1     2  ActivityScheduled     reserve' history c-1
expect 0 '"schema":"thole.history.v1","instance":"c-1","events":[{"execution":1,"id":1,"kind":"Started"' \
    history c-1 -o json
expect 0 '"complete":true}' history c-1 -o json
expect 0 '"kind":"CancelRequested","data":"no more"' history c-4 -o jsonl
# Who asked for it, and where it ran.
expect 0 'stated:ann ' history c-4 -o wide
expect 0 '"actor":"ann","actor_authenticated":false,"client":"thole ' history c-4 -o jsonl
expect 0 "\"actor\":\"$(id -un)@$(hostname)\",\"actor_authenticated\":false" history c-1 -o json
expect 0 "\"host\":\"$(hostname)\",\"attempt\":1,\"run_started\":\"20" history c-1 -o json
expect 0 " on $(hostname) in " history c-1 -o wide
expect 2 'instance id' start checkout --id "$(printf 'x%.0s' $(seq 201))"
expect 2 'orchestration' start 'check.out'
expect 2 'more than 262144 bytes' start checkout --input @/dev/zero
expect 6 'Try:' --nats nats://127.0.0.1:1 --timeout 300ms list

# The projection follows the history: what is asked for is there soon.
await 10 says Cancelled show c-4
expect 0 'Cancelled' show c-4
expect 0 '"status":"Cancelled"' show c-4 -o json
expect 0 '"instance":"c-1"' list --status completed -o json
expect 0 'c-4' list --status cancelled --orchestration checkout --prefix c-
expect 0 'no instances' list --status stuck

# Pages: complete says so only when nothing is left, and all pages together are the list.
expect 0 '"complete":true}' list -o json --limit 5
expect 0 'there are more: --next ' list --limit 3
expect 0 '"complete":false,"next":"' list -o json --limit 3
expect 0 '"note":"there are more: --next ' list -o jsonl --limit 1
lacks '"next"' list -o jsonl --limit 5 || { echo 'the last page has a token' && bad=1; }
expect 2 'nonsense is no token' list --next nonsense
expect 2 'is no token' list --next 12.
expect 2 'is no token' list --next 99999999999999999999.c-1
ids() { grep -o '"instance":"[^"]*"'; }
next_of() { sed -n 's/.*"next":"\([^"]*\)".*/\1/p'; }
whole=$("$thole" list -o json | ids)
page=$("$thole" list -o json --limit 1)
pages=$(ids <<<"$page")
while [ -n "$(next_of <<<"$page")" ]; do
    page=$("$thole" list -o json --limit 1 --next "$(next_of <<<"$page")")
    pages+=$'\n'$(ids <<<"$page")
done
[ "$pages" = "$whole" ] && [ "$(wc -l <<<"$whole")" -eq 5 ] || { echo "pages: $pages, whole: $whole" && bad=1; }
case $page in *'"complete":true}'*) ;; *) echo "the last page: $page" && bad=1 ;; esac
# By lines: the last line of a page has the token, each line is a row.
page=$("$thole" list -o jsonl --limit 2 2>/dev/null)
pages=$(ids <<<"$page")
for _ in 1 2; do
    [ -z "$(next_of <<<"${page%$'\n'*}")" ] || { echo "a token before the last line: $page" && bad=1; }
    page=$("$thole" list -o jsonl --limit 2 --next "$(next_of <<<"$page")" 2>/dev/null)
    pages+=$'\n'$(ids <<<"$page")
done
[ "$pages" = "$whole" ] && [ -z "$(next_of <<<"$page")" ] || { echo "pages by lines: $pages, whole: $whole" && bad=1; }

# Verbs that an orchestration has to play along with, in a namespace of their own.
export THOLE_NAMESPACE=verbs
VERBS_TOKENS=$log.tokens "$verbs" run >"$log.verbs" 2>&1 &
other_server=$!
await 60 grep -q serving "$log.verbs"
expect 0 'g-1' start gate --id g-1 --input 2
expect 0 'passed 0' query g-1 passed
expect 0 '{"schema":"thole.query.v1","instance":"g-1","name":"passed","output":"passed 0 now"}' \
    query g-1 passed now -o json
expect 3 "there is no query 'other'; the instance answers: no, badly, passed" query g-1 other
expect 3 'Try: thole show g-1: is it there' query g-1 other
expect 3 'there is no instance "nobody" in namespace verbs' query nobody passed
expect 0 'event for g-1 accepted' signal g-1 go first --wait
await 10 says 'passed 1' query g-1 passed
printf 'from a file' >"$log.data"
expect 0 '{"schema":"thole.signal.v1","instance":"g-1","accepted":false,"stored":true,' signal g-1 go "@$log.data" -o json
expect 0 'from a file' wait g-1 --timeout 60s
expect 0 'passed 2' query g-1 passed
expect 2 'stood on its stack' query g-1 no
expect 2 'must not begin with' signal g-1 go --request-id '<1'
expect 2 'instance id' signal "$(printf 'x%.0s' $(seq 201))" go
expect 0 'the event is kept for 7 days' signal early go before --request-id r-1 # nobody has started it
expect 0 '"stored":true,"kept":true' signal early go before --request-id r-1 -o json
expect 0 'before' run gate --id early --timeout 60s
expect 0 'event for early is stored' signal early go before --request-id r-1 # taken before it ended
expect 10 'ended as Completed' signal early go before --request-id r-2
expect 0 'started with' run gate --id with --event go --event-data 'started with' --timeout 60s
expect 0 'g-3' start gate --id g-3
expect 0 'pause of g-3 accepted' pause g-3 --reason look
await 10 says Paused show g-3
expect 0 'waits for go 1' show g-3
expect 0 '"status":"Paused"' show g-3 -o json
expect 0 '"custom_status":"waits for go 1"' show g-3 -o json
expect 0 'g-3' list --status paused --prefix g-
expect 0 'resumption of g-3 accepted' resume g-3
expect 0 '{"schema":"thole.terminate.v1","instance":"g-3","accepted":true,' terminate g-3 --reason enough -o json
expect 9 'instance g-3 was terminated: enough' wait g-3 --timeout 60s
expect 9 '"status":"Terminated"' wait g-3 -o json --timeout 60s
expect 0 'g-4' start gate --id g-4
expect 4 'has not ended' delete g-4
expect 4 'Try: thole delete g-4 --force' delete g-4
expect 0 'deletion of g-4 accepted' delete g-4 --force --reason 'asked to'
expect 3 'there is no instance' history g-4
expect 0 '{"schema":"thole.delete.v1","instance":"g-3","accepted":true,' delete g-3 -o json
await 10 lacks Terminated show g-3
expect 0 'again' run gate --id g-3 --event go --event-data again --timeout 60s

# What is stored cannot steer a terminal; in a pipe, or with --raw, it is what it is.
on_terminal() { script -qec "$thole $1" /dev/null </dev/null; }
red=$(printf '\033[31mred\007 \302\233\tend')
shown='\x1b[31mred\x07 \xc2\x9b'$'\tend'
expect 0 '' run gate --id red --event go --event-data "$red" --timeout 60s
[ "$(on_terminal 'wait red')" = "$shown"$'\r' ] || { echo "on a terminal: $(on_terminal 'wait red' | od -c)" && bad=1; }
[ "$(on_terminal 'wait red --raw')" = "$red" ] || { echo "--raw: $(on_terminal 'wait red --raw' | od -c)" && bad=1; }
[ "$("$thole" wait red)" = "$red" ] || { echo "in a pipe: $("$thole" wait red | od -c)" && bad=1; }
[ "$("$thole" wait red --raw)" = "$red" ] || { echo 'raw in a pipe' && bad=1; }
expect 0 'u001b[31mred\u0007 \u009b\tend' wait red -o json
expect 3 'there is no instance "\x1b[2J"' wait "$(printf '\033[2J')" --timeout 100ms

expect 3 'there is no instance' delete nobody
# A parent that is deleted says what it leaves; its children go with it when that is asked for.
"$thole" start parent --id fam-1 >"$log.out" 2>&1
await 20 says 'fam-1-child' list --parent fam-1
expect 0 '1 instances that it has started stay' delete fam-1 --force
expect 4 'exists already' start gate --id fam-1-child
expect 0 'deletion of fam-1-child accepted' delete fam-1 --with-children --force
await 20 says fam-1-child start gate --id fam-1-child
"$thole" cancel fam-1-child >"$log.out" 2>&1
expect 3 'there is no instance' terminate nobody
expect 3 'there is no instance' pause nobody
expect 3 'there is no instance' resume nobody
expect 9 'instance f-1 failed (card_declined): no card for 7' run failing --id f-1 --input 7 --timeout 60s
expect 9 '"error_type":"card_declined"' wait f-1 -o json
expect 0 'one' run versioned@1 --id v-1 --event go --timeout 60s
expect 0 'two' run versioned --id v-2 --timeout 60s
expect 0 'Started               versioned@2' history v-2
expect 0 '"version":2' history v-2 -o json
expect 0 'p-1' start parent --id p-1
await 10 says p-1-child list --parent p-1
expect 0 '"parent":"p-1"' show p-1-child -o json
expect 0 '[p-1-child]' history p-1
expect 0 'no instances' list --parent p-2
expect 0 'event for p-1-child is stored' signal p-1-child go up
expect 0 'up' wait p-1 --timeout 60s
expect 0 'n-1' start counter --id n-1
for i in 1 2 3; do expect 0 'is stored' signal n-1 add; done
await 10 says 'Z     3     1  Started               counter' history n-1
expect 0 'Z     1     1  Started               counter' history n-1
expect 0 'no instances' list --after 2100-01-01
expect 0 'no instances' list --before 2020-01-01T00:00Z
expect 0 'v-2' list --after 1h --orchestration versioned
await 10 says 'versioned@2' list --prefix v-2
expect 0 'executions' replay v-1 p-1 -- "$verbs"
VERBS_CHANGED=1 expect 0 '0 diverged' replay --all -- "$verbs"
expect 0 'h-1' start steps --id h-1 --input x
expect 0 'x' wait h-1 --timeout 60s
expect 0 '' history h-1 --raw "$log.raw"
VERBS_CHANGED=1 expect 5 'DIVERGED h-1' replay --file "$log.raw" -- "$verbs"
# An export has everything, and so has a file of either form. What is half of one is gone on with.
# Files are their user's, whatever the umask is.
umask 0
expect 0 '0 missing' export --all --to "$log.all"
expect 0 '' history h-1 --raw "$log.own"
umask 022
for file in "$log.all" "$log.own"; do [ "$(stat -c %a "$file")" = 600 ] || { stat "$file" && bad=1; }; done
expect 0 'Started               steps' history --file "$log.all" h-1
expect 3 'has no history of "nobody"' history --file "$log.all" nobody
VERBS_CHANGED=1 expect 5 'DIVERGED h-1' replay --file "$log.all" -- "$verbs"
expect 0 '"schema":"thole.export.manifest.v1"' export --prefix h- --form jsonl
"$thole" export --all --form jsonl >"$log.lines"
says_of() { python3 -c 'import json, sys; print([json.loads(line)["sha256"] for line in open(sys.argv[1], "rb") if b"sha256" in line])' "$1"; }
[ "$(says_of "$log.all")" = "$(says_of "$log.lines")" ] || { echo 'the forms have another digest' && bad=1; }
VERBS_CHANGED=1 expect 5 'DIVERGED h-1' replay --file "$log.lines" -- "$verbs"
head -c "$(($(stat -c %s "$log.all") * 2 / 3))" "$log.all" >"$log.again.part"
expect 4 'is of another export' export h-1 --to "$log.again"
expect 0 'going on behind them' export --all --to "$log.again"
[ ! -e "$log.again.part" ] || { echo 'a .part is left' && bad=1; }
[ "$(says_of "$log.all")" = "$(says_of "$log.again")" ] || { echo 'what was gone on with is another' && bad=1; }
# Time travel, and where two histories differ.
expect 0 'waits for #2    ' show h-1 --at 2
expect 0 '"schema":"thole.instance_at.v1","instance":"h-1","orchestration":"steps"' show --file "$log.all" h-1 --at 1.2 -o json
expect 3 'has no event 999' show h-1 --at 999
expect 3 'had not begun then' show h-1 --at 2001-01-01
expect 2 '--at: 0 is neither an event nor a time' show h-1 --at 0
expect 2 '--at: 1.0 is neither' show h-1 --at 1.0
"$thole" export h-1 --to "$log.h-1" >"$log.out" 2>&1
expect 0 'Completed' show h-1 --file "$log.h-1"
expect 3 'has no execution 7, or it was pruned: its latest is 1' show h-1 --file "$log.h-1" --at 7.3
expect 3 'has no execution 7, or it was pruned: its latest is 1' show h-1 --at 7.3
expect 2 'is neither an event nor a time' show h-1 --at yesterday
expect 2 'it has several histories' show --file "$log.all"
expect 0 'the same: ' diff h-1 "@$log.raw"
expect 0 '"same":true' diff h-1 "@$log.lines" --instance h-1 -o json
expect 1 ' | ' diff h-1 p-1
expect 0 'the same: ' diff h-1 -- "$verbs"
VERBS_CHANGED=1 expect 1 'the code asks for ' diff h-1 -- "$verbs"
VERBS_CHANGED=1 expect 1 'the code asks for ' diff "@$log.all" --instance h-1 -- "$verbs"
expect 3 'there is no instance' diff h-1 nobody
# What went wrong is said in the form that was asked for.
expect 126 'thole diff: /bin/true has not said what it has replayed' diff h-1 -- /bin/true
expect 126 '{"schema":"thole.error.v1","error":{"status":"UNSUPPORTED"' diff h-1 -o json -- /bin/true
expect 0 'REACHED h-1 execution 1 turn 1: has come to event 2' replay h-1 --until 2 -- "$verbs"
expect 3 'no execution here comes to event 999' replay h-1 --until 999 -- "$verbs"
expect 2 'no debugger runs this program' replay h-1 --until 2 --break -- "$verbs"
expect 2 'is no event' replay h-1 --until x -- "$verbs"
# A recorded case as a test.
expect 0 "$log.case.c and $log.case.thole" export h-1 --test "$log.case.c"
expect 2 'is there already' export h-1 --test "$log.case.c"
for how in '' "-DSOURCE=\"$(cd "$(dirname "$0")/../../.." && pwd)/examples/checkout.c\"" -DPROGRAM=trial_program; do
    cc -fsyntax-only -Wall -Wextra -Werror $how -I"$(dirname "$0")/../../../include" "$log.case.c" || { echo "the test does not compile $how" && bad=1; }
done
expect 13 '1 missing' export h-1 nobody --to "$log.part-of-it"
expect 0 'Started' history --file "$log.part-of-it"
head -c -9 "$log.all" >"$log.cut"
expect 1 'a section that is cut off' history --file "$log.cut"
expect 0 'l-1' start outside --id l-1
await 10 grep -q . "$log.tokens"
expect 0 'completion of' complete "$(head -n 1 "$log.tokens")" approved
expect 0 'approved' wait l-1 --timeout 60s
expect 0 'l-2' start outside --id l-2
await 10 grep -q l-2 "$log.tokens"
expect 0 '"schema":"thole.fail.v1","token":"' fail "$(tail -n 1 "$log.tokens")" 'no way' --type refused -o json
expect 9 'instance l-2 failed (refused): outside said: no way' wait l-2 --timeout 60s
expect 2 'not a token' complete nonsense

# What nobody knows is said: at the start of an instance, and of what it waits for.
expect 0 'no engine of namespace verbs knows orchestration gaet; did you mean gate?' start gaet --id k-1
expect 0 '"known":false' start gaet --id k-2 -o json
expect 0 '"known":true' start gate --id k-3 -o json
expect 11 'did you mean gate?' start gaet --id k-4 --require-known
expect 11 'nothing was started' run gaet --id k-4 --require-known
expect 11 'knows orchestration versioned@3' start versioned@3 --id k-4 --require-known
expect 3 'there is no instance' history k-4
expect 0 'k-5' start versioned@2 --id k-5 --require-known
expect 0 'w-1' start waiting --id w-1 --input "$red"
await 10 says 'its next try is due' show w-1
await 10 says 'no worker of queue default knows ecoh; did the code mean echo?' show w-1
expect 0 'activity ecoh, queue default, try 1: no worker of queue default knows ecoh; did the code mean echo?' show w-1
expect 0 'activity echo, queue gpu, try 1: no worker serves queue gpu' show w-1
expect 0 'activity flaky, queue default, try 1: failed, its next try is due at 20' show w-1
expect 0 'timer, due at 20' show w-1
expect 0 'waits for #6    event go' show w-1
expect 0 'waits for #7    event other' show w-1
expect 0 'child w-child (gate)' show w-1
expect 0 'input           \x1b[31mred\x07 \xc2\x9b\tend (16 bytes)' show w-1
expect 0 '"input_bytes":16,"pending":[{"kind":"activity","id":2,"name":"ecoh","asked_for":"20' show w-1 -o json
expect 0 '"queue":"default","try":1,"state":"unknown","text":"no worker of queue default knows ecoh' show w-1 -o json
expect 0 '"queue":"gpu","try":1,"state":"unserved"' show w-1 -o json
expect 0 '"state":"retrying"' show w-1 -o json
lacks 'weigh' show w-1 || { echo 'show: what has come is not waited for' && bad=1; }
expect 0 'no worker serves queue gpu: 1 of activity echo' queue list
expect 0 'no worker of queue default knows ecoh; did the code mean echo?: 1 of activity ecoh' queue list
expect 0 '"serving":[],"activities":[{"name":"echo","count":1,"known":false}]' queue list --queue gpu -o json
expect 0 '"slots":16}],"activities":[{"name":"ecoh","count":1,"known":false}' queue list --queue default -o json
expect 0 'e-1' start eager --id e-1 --input 60
await 10 says 'and             10 more; -o json prints all' show e-1
expect 0 'waits for #51   timer' show e-1
lacks 'waits for #52 ' show e-1 || { echo 'show: more lines than 50' && bad=1; }
expect 0 '{"kind":"timer","id":61,' show e-1 -o json
expect 0 'event for w-1 is stored' signal w-1 go now
await 10 lacks 'event go' show w-1
expect 0 'event other' show w-1
expect 0 'output          from a file (11 bytes)' show g-1
expect 0 '"output":"from a file","output_bytes":11,"pending":[]' show g-1 -o json
expect 0 'output          no card for 7 (13 bytes)' show f-1
expect 0 'waits for' show k-3
expect 0 'pause of k-3 accepted' pause k-3
await 10 says Paused show k-3
expect 0 'waits for #3    event go' show k-3

# Each verb: its answer is one JSON object with a schema, and so is each kind of error, alone on stderr.
verbs_of_help=$("$thole" help -o json | grep -o '"verb":"[^"]*"' | cut -d'"' -f4)
answered=' '
# json_answer SCHEMA VERB ARGUMENT...
json_answer() {
    local schema=$1 output
    shift
    output=$("$thole" "$@" -o json 2>"$log.err") || { echo "$*: exit code $?: $(cat "$log.err")" && bad=1; }
    answered+="$1 "
    case $output in
        "{\"schema\":\"thole.$schema.v1\","*'}') ;;
        *) echo "$*: no thole.$schema.v1: $output" && bad=1 ;;
    esac
    [ "$(wc -l <<<"$output")" -eq 1 ] || { echo "$*: more than one line" && bad=1; }
    own_words "$log.err" | grep -qvE '^\{"schema":"thole.note.v1","note":".*\}$' && echo "$*: stderr: $(cat "$log.err")" && bad=1
}
# json_error CODE STATUS VERB ARGUMENT...
json_error() {
    local code=$1 status=$2 got output
    shift 2
    output=$("$thole" "$@" 2>"$log.err")
    got=$?
    [ "$got" -eq "$code" ] || { echo "$*: exit code $got instead of $code: $(cat "$log.err")" && bad=1; }
    [ -z "$output" ] || { echo "$*: stdout: $output" && bad=1; }
    own_words "$log.err" | grep -v 'thole.note.v1' >"$log.line"
    case $(cat "$log.line") in
        '{"schema":"thole.error.v1","error":{"status":"'$status'","exit_code":'$code',"verb":"'$1'",'*'}}') ;;
        *) echo "$*: no error $status, $code: $(cat "$log.err")" && bad=1 ;;
    esac
    [ "$(wc -l <"$log.line")" -eq 1 ] || { echo "$*: $(wc -l <"$log.line") lines" && bad=1; }
}
# start-many: each line is answered, a bad one stops nobody, the same lines again start nothing.
printf '%s\n' '{"id":"m-1","orchestration":"gate","input":"2"}' 'nonsense' '' '{"id":"m 2","orchestration":"gate","input":{"a":1}}' \
    '{"id":"m-3","orchestration":"g te"}' '{"id":"m-4","orchestration":"gate","version":"x"}' '{"id":"m-5","orchestration":"gate","input_base64":"/w=="}' >"$log.lines"
expect 2 "$log.lines:2: not JSON: byte 1" start-many "$log.lines"
expect 2 "$log.lines:5: orchestration name" start-many "$log.lines"
expect 2 "$log.lines:6: \"version\" is not a number" start-many "$log.lines"
expect 2 '3 stored, 3 refused' start-many "$log.lines"
expect 2 '{"schema":"thole.start_many.v1","line":2,"instance":"","status":"INVALID","error":"not JSON: byte 1' start-many -o jsonl "$log.lines"
expect 2 '{"schema":"thole.start_many.v1","line":4,"instance":"m 2","status":"STORED"}' start-many -o jsonl <"$log.lines"
# A file that is not there has one exit code, wherever it is named.
expect 3 'cannot read /nowhere/at/all: No such file' start gate --input @/nowhere/at/all
expect 3 'cannot read /nowhere/at/all: No such file' list --config /nowhere/at/all
expect 3 'the path of a file' list --nats-creds /nowhere/at/all
expect 3 'the path of a file' list --nats-ca /nowhere/at/all
expect 3 'the path of a file' namespaces --nats-creds /nowhere/at/all
expect 3 'the path of a file' recover --nats-creds /nowhere/at/all
expect 3 'the path of a file' doctor --nats-creds /nowhere/at/all
expect 3 'cannot read /nowhere/at/all: No such file' show --file /nowhere/at/all
expect 3 'cannot read /nowhere/at/all: No such file' start-many /nowhere/at/all
expect 3 'cannot read /nowhere/at/all: No such file' console --token-file /nowhere/at/all
expect 3 'cannot read /nowhere/at/all: No such file' audit verify h-1 --key /nowhere/at/all
expect 3 'cannot read /: Is a directory' start-many /
# A full disk has one exit code, one status and one text, whatever is written there.
expect 1 'cannot write to /dev/full: No space left on device' export h-1 --to /dev/full
expect 1 'cannot write to /dev/full: No space left on device' history h-1 --raw /dev/full
expect 1 '"status":"UNAVAILABLE","exit_code":1' export h-1 --to /dev/full -o json
expect 1 'cannot write to /nowhere/at/key: No such file' audit keygen me.example.com --key /nowhere/at/key
expect 0 '0 stored, 0 refused' start-many /dev/null
printf '%s\n' '{"id":"m-6","orchestration":"gaet"}' '{"id":"m-7","orchestration":"gate"}' >"$log.lines"
expect 11 'lines:1: no engine of namespace verbs knows orchestration gaet; did you mean gate?' start-many --require-known "$log.lines"
# Interrupted while it waits for a line: what was sent is stored, and how far it came is said.
code=0
{ printf '{"id":"m-8","orchestration":"gate"}\n{"id":"m-9",' && sleep 2; } | timeout --foreground -s INT 1 "$thole" start-many >"$log.out" 2>"$log.err" || code=$?
case "$code $(cat "$log.out" "$log.err")" in
    *'1 stored, 0 refused'*'interrupted after line 1: what stands after it was not started'*) ;;
    *) echo "start-many, interrupted: exit code $code, $(cat "$log.out" "$log.err")" && bad=1 ;;
esac
await 20 says Started history m-1
await 20 says '{"a":1}' history 'm 2'
lacks Completed history m-1 || { echo 'm-1 has ended' && bad=1; }
# One instance for each, so that all succeed.
for id in j-1 j-2 j-3 j-4 j-5; do "$thole" start gate --id $id >"$log.await"; done
json_answer start start gate --id j-6
printf '{"id":"j-8","orchestration":"gate"}\n' >"$log.lines"
json_answer start_many start-many "$log.lines"
json_answer outcome run gate --id j-7 --event go --timeout 60s
json_answer outcome wait j-7
json_answer instance show k-3
json_answer migrate migrate
json_answer recover recover
expect 3 'deploy/postgres/roles.sql' migrate --grants
json_answer history history j-7
json_answer diff diff j-7 j-7
json_answer export_result export j-7 --to "$log.j-7"
json_answer list list
json_answer signal signal j-6 go
json_answer query query j-7 passed
json_answer cancel cancel j-1
json_answer terminate terminate j-2
json_answer delete delete j-3 --force
json_answer pause pause j-4
json_answer resume resume j-4
expect 10 'is not Stuck, so there is nothing to try again; it runs' retry j-4
expect 0 'nc-1' start nobody-has-it --id nc-1
await 20 says Waiting show nc-1
expect 10 'is not Stuck, so there is nothing to try again; it waits for code' retry nc-1
answered+='retry ' # of what is Stuck: cli_standing.sh
expect 0 'the cancellation is kept until its code runs again: instance "nc-1" waits for code (' cancel nc-1
json_answer complete complete "$(head -n 1 "$log.tokens")"
json_answer fail fail "$(head -n 1 "$log.tokens")"
json_answer rejected_list rejected
json_answer prune prune n-1 --executions-before 2 --dry-run
# What a run would be refused for is said of --dry-run, too.
expect 0 '' hold set n-1 --reason 'case 1'
expect 10 'case 1' prune n-1 --executions-before 3 --dry-run
expect 0 '' hold release n-1 --reason 'case 1 is closed'
# A dry run of many counts what the run would remove: nothing of what is held.
expect 0 'held-1' start counter --id held-1
for _ in 1 2; do expect 0 'is stored' signal held-1 add; done
await 20 says 'execution       3' show held-1
expect 0 '1 histories would be removed, nothing was changed' prune --prefix held- --executions-before 3 --dry-run
expect 0 '' hold set held-1 --reason 'case 2'
expect 0 '0 histories would be removed, of 1 instances they stay; nothing was changed' prune --prefix held- --executions-before 3 --dry-run
expect 0 'nothing is pruned: what could go is held' prune --prefix held- --executions-before 3
expect 0 '"executions":[]' prune --prefix held- --executions-before 3 -o json
expect 0 '' hold release held-1 --reason 'case 2 is closed'
json_answer timer_list timer list
# Verbs that read do so where nobody may write.
writable=$THOLE_POSTGRES
THOLE_POSTGRES="$writable?options=-c%20default_transaction_read_only%3Don"
expect 0 'n-1' list --prefix n-1
expect 0 'counter' show n-1
expect 0 '' queue list
expect 0 'SKIP  write            nobody may write here: a hot standby' doctor
expect 0 'OK    shape' doctor
expect 0 'all are as their histories say' projections verify
expect 0 'namespace verbs: same' recover
expect 6 'and may rows be written?' projections rebuild
THOLE_POSTGRES=$writable
json_answer queue_list queue list
json_answer binding_list bind list
json_answer node_list nodes
json_answer partition_list partitions
json_answer projections projections verify
json_answer namespace_list namespaces
json_error 6 UNAVAILABLE namespaces -o json --nats nats://127.0.0.1:1
json_answer poisoned_list queue poisoned
for verb in poisoned 'retry --all' 'fail --all'; do
    # shellcheck disable=SC2086
    expect 3 'nothing is in a queue typo, and no worker has served it' queue $verb --queue typo
done
expect 0 'nothing is in quarantine: nothing was changed' queue retry --all
json_answer queue_limit queue limit default
json_answer queue_lease queue lease default
expect 0 'default: 30s' queue lease default
expect 4 'keep the lease that they have' queue lease default 45s
expect 0 'default: 45s' queue lease default 45s --force
expect 0 '"lease_ms":45000' queue list --queue default -o json
expect 0 'default: 30s' queue lease default 30s --force
expect 3 'no worker has served a queue mistyped' queue limit mistyped 3
expect 3 'no worker has served it' queue list --queue mistyped
json_answer audit audit verify j-7
json_answer holds hold list
json_answer archive_run archive run --older-than 1d --unsealed --dry-run
json_answer replay replay j-7 -- "$verbs"
# A disk that is full is said once, with the reason, however much is written at once.
for verb in help 'help -o json' 'help list' man 'completion bash' list 'list -o json' 'show j-7' 'history j-7 -o jsonl'; do
    full 1 $verb
done
full 1 replay j-7 -- "$verbs"
full 1 replay j-7 -o json -- "$verbs"
echo nothing >"$log.bad"
full 1 start-many -o json "$log.bad"
"$thole" replay j-7 -- "$verbs" 2>"$log.err" | true
left=${PIPESTATUS[0]}
[ "$left" = 141 ] && [ -z "$(own_words "$log.err")" ] || { echo "replay without a reader: $left: $(cat "$log.err")" && bad=1; }
json_answer doctor doctor
json_answer version version
json_answer help help
for verb in $verbs_of_help; do
    arguments=()
    unreachable=yes
    missing=() # what the verb says of an id that nobody has
    case $verb in
        start | run) arguments=(gate) ;;
        wait) arguments=(nobody --timeout 300ms) missing=(3 NOT_FOUND) ;;
        show | history | cancel | terminate | delete | pause | resume | retry) arguments=(nobody) missing=(3 NOT_FOUND) ;;
        signal) arguments=(nobody go) ;;
        query) arguments=(nobody passed) missing=(3 NOT_FOUND) ;;
        complete | fail) arguments=(nobody) missing=(2 INVALID) ;;
        start-many) arguments=(/dev/null) ;;
        list | rejected | nodes | partitions) ;;
        watch | top | completion | man) continue ;; # cli_terminal.sh
        context) continue ;;
        projections) arguments=(verify) ;;
        recover) ;;
        prune) arguments=(nobody --executions-before 1) missing=(3 NOT_FOUND) ;;
        timer) arguments=(list nobody) missing=(3 NOT_FOUND) ;;
        bind) arguments=(show nobody) missing=(3 NOT_FOUND) ;;
        queue) arguments=(retry nobody 1) missing=(3 NOT_FOUND) ;;
        audit) arguments=(verify nobody) missing=(3 NOT_FOUND) ;;
        hold) arguments=(list) ;;
        archive) arguments=(run --older-than 1d --unsealed --dry-run) ;;
        replay) arguments=(--all -- "$verbs") ;;
        diff) arguments=(nobody nobody) missing=(3 NOT_FOUND) ;;
        export) arguments=(--all --to "$log.nothing") ;;
        dev | doctor | migrate | namespaces | version | help) unreachable= answered+="$verb " ;;
        console) continue ;; # integration.console
        gateway | binder) continue ;; # a role of thole_main(), which answers as programs do
        *) echo "the verb $verb has no line here" && bad=1 && continue ;;
    esac
    case $answered in *" $verb "*) ;; *) echo "$verb: no json_answer" && bad=1 ;; esac
    json_error 2 INVALID "$verb" --no-such-option -o json
    [ -n "$unreachable" ] || continue
    json_error 6 UNAVAILABLE "$verb" -o json --nats nats://127.0.0.1:1 "${arguments[@]}"
    json_error 3 NOT_FOUND "$verb" -o json -n nowhere "${arguments[@]}"
    [ ${#missing[@]} -eq 0 ] || json_error "${missing[@]}" "$verb" -o json "${arguments[@]}"
done
json_error 4 CONFLICT start gate --id j-4 -o json
json_error 4 CONFLICT delete j-4 -o json
json_error 8 TIMEOUT wait j-4 --timeout 100ms -o json
json_error 10 CONFLICT cancel j-7 -o json
json_error 11 NOT_FOUND start gaet --require-known -o json
json_error 2 INVALID wait -o json
json_error 2 INVALID list more -o json
json_error 2 INVALID list --limit 0 -o jsonl
json_error 2 INVALID list --after yesterday -o json
json_error 127 NOT_FOUND replay j-7 -o json -- /nowhere/at/all

kill -TERM "$other_server" && wait "$other_server"
other_server=
expect 6 'Try: an engine must run' query g-1 passed
expect 0 'no engine has a heartbeat in namespace verbs; the instance waits until one does' start gate --id z-1 --timeout 300ms
expect 0 'queued: it is stored, and the next engine will take it' start gate --id z-2 --timeout 300ms
expect 11 'no engine has a heartbeat in namespace verbs' start gate --id z-3 --require-known
expect 10 'ended as Completed' cancel g-1 # the history says so, without an engine
unset THOLE_NAMESPACE

# What thole_main() says of itself.
expect_of "$checkout" 0 'THOLE_LEASE' --help
expect_of "$checkout" 0 'checkout: thole 0.' --version
expect_of "$checkout" 2 'a role is missing'
expect_of "$checkout" 2 'did you mean --postgres?' run --postgers x
expect_of "$checkout" 2 '--lease' run --lease soon
expect_of "$checkout" 6 'partitions' engine --partitions 3
expect_of "$checkout" 6 'lower --payload-max' engine --payload-max 1MiB
expect_of "$checkout" 6 'leave --payload-max away' engine --payload-max 128KiB
expect_of "$checkout" 6 'leave --payload-max away' worker --payload-max 128KiB
THOLE_POSTGRES="${THOLE_POSTGRES/:*@/:wrong@}" expect_of "$checkout" 6 '' engine
expect_of "$checkout" 2 '--postgres: there is a password in it' engine --postgres "$THOLE_POSTGRES"
expect_of "$checkout" 2 '--nats: there is a password in it' worker --nats "$THOLE_NATS_URL"
THOLE_POSTGRES='' expect_of "$checkout" 2 '--postgres is missing' run

# A second SIGINT does not wait for anything; a first signal ends the program even while it cannot connect.
"$checkout" run --nats nats://127.0.0.1:1 >"$log.2" 2>&1 &
other=$!
for _ in $(seq 200); do
    grep -q 'trying again' "$log.2" && break
    sleep 0.05
done
kill -TERM "$other"
wait "$other"
code=$?
[ "$code" -eq 0 ] || { echo "stopped while connecting: exit code $code: $(cat "$log.2")" && bad=1; }
rm -f "$log.2"
exit "$bad"
