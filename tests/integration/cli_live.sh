#!/usr/bin/env bash
# Run by test_cli_command under `thole dev`: every verb against a live engine. cli_live.sh THOLE CHECKOUT
# Prints one line for each check that fails; exit code 0 when there is none.
set -u
thole=$1
checkout=$2
bad=0
log=$(mktemp)
server=
finish() {
    [ -z "$server" ] || { kill -TERM "$server" && wait "$server"; }
    rm -f "$log"
}
trap finish EXIT

# expect_of PROGRAM CODE WORDS ARGUMENT...: its exit code, and words that both outputs together hold.
expect_of() {
    local program=$1 code=$2 words=$3 got output
    shift 3
    output=$("$program" "$@" 2>&1)
    got=$?
    case $output in
        *"$words"*) ;;
        *) echo "${program##*/} $*: no \"$words\" in: $output" && bad=1 ;;
    esac
    [ "$got" -eq "$code" ] || { echo "${program##*/} $*: exit code $got instead of $code: $output" && bad=1; }
}
expect() { expect_of "$thole" "$@"; }

expect 3 'Try: start an engine' history x
"$checkout" run >"$log" 2>&1 &
server=$!
for _ in $(seq 1200); do
    ! grep -q serving "$log" || break
    sleep 0.05
done

expect 0 'order 1 shipped: parcel with goods-1' run checkout --id c-1 --input 'order=1;pay_ms=1' --timeout 60s
expect 4 'exists already' run checkout --id c-1 --timeout 60s
expect 4 'exists already' start checkout --id c-1
expect 0 '"status":"Completed","execution":1,"output":"order 2 shipped' \
    run checkout --id c-2 -i 'order=2;pay_ms=1' -o json --timeout 60s
expect 0 'order 1 shipped' wait c-1 --timeout 60s
expect 3 'there is no instance' wait nobody --timeout 200ms
expect 3 'there is no instance' history nobody
expect 3 'there is no instance' cancel nobody
expect 3 'nobody' show nobody
expect 0 'checkout-' start checkout --input 'order=3;pay_ms=1'
expect 0 'c-4' start checkout --id c-4 --input 'order=4;pay_ms=600000;limit_ms=600000'
expect 8 'has not ended yet' wait c-4 --timeout 200ms
expect 0 '"accepted":true' cancel c-4 --reason 'no more' -o json
expect 9 'was cancelled: no more' wait c-4 --timeout 60s
expect 9 '"status":"Cancelled"' wait c-4 --timeout 60s -o json
expect 0 'accepted' cancel c-4 # repeating changes nothing
expect 0 'ActivityScheduled     reserve' history c-1
expect 0 '"schema":"thole.history.v1","instance":"c-1","events":[{"execution":1,"id":1,"kind":"Started"' \
    history c-1 -o json
expect 0 '"complete":true}' history c-1 -o json
expect 0 '"kind":"CancelRequested","data":"no more"' history c-4 -o jsonl
expect 2 'instance id' start checkout --id "$(printf 'x%.0s' $(seq 201))"
expect 2 'orchestration' start 'check.out'
expect 2 'more than 262144 bytes' start checkout --input @/dev/zero
expect 6 'Try:' --nats nats://127.0.0.1:1 --timeout 300ms list

# The projection follows the history: what is asked for is there soon.
for _ in $(seq 200); do
    "$thole" show c-4 2>/dev/null | grep -q Cancelled && break
    sleep 0.05
done
expect 0 'Cancelled' show c-4
expect 0 '"status":"Cancelled"' show c-4 -o json
expect 0 '"instance":"c-1"' list --status completed -o json
expect 0 'c-4' list --status cancelled --orchestration checkout --prefix c-
expect 0 'no instances' list --status stuck
expect 0 'there may be more' list --limit 1

# What thole_main() says of itself.
expect_of "$checkout" 0 'THOLE_LEASE' --help
expect_of "$checkout" 0 'checkout: thole 0.' --version
expect_of "$checkout" 2 'a role is missing'
expect_of "$checkout" 2 'did you mean --postgres?' run --postgers x
expect_of "$checkout" 2 '--lease' run --lease soon
expect_of "$checkout" 6 'partitions' engine --partitions 3
expect_of "$checkout" 6 '' engine --postgres "${THOLE_POSTGRES/:*@/:wrong@}"
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
