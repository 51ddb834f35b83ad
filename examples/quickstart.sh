#!/usr/bin/env bash
# Three orders through the checkout example, each with the timeline that is read back from the stream:
#   thole dev -- examples/quickstart.sh BUILD_DIR
# Ends by itself, and clean on Ctrl-C too.
set -eu -o pipefail
[ $# -eq 1 ] || { echo "usage: thole dev -- $0 BUILD_DIR" >&2; exit 2; }
thole=$1/cli/thole
checkout=$1/examples/checkout
for program in "$thole" "$checkout"; do
    [ -x "$program" ] || { echo "$program is not there: build first" >&2; exit 1; }
done

log=$(mktemp)
server=
finish() {
    trap - EXIT
    trap '' INT TERM
    if [ -n "$server" ]; then
        kill -TERM "$server" 2>/dev/null || true
        wait "$server" || true
    fi
    rm -f "$log"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

die() {
    echo "quickstart: $*" >&2
    tail -n 20 "$log" >&2
    exit 1
}

# until_logged TEXT: waits for a line of the program's output, at most 60 s.
until_logged() {
    local tries=0
    until grep -qF -- "$1" "$log"; do
        kill -0 "$server" 2>/dev/null || die "the program ended"
        [ $((tries += 1)) -le 1200 ] || die "no \"$1\" after a minute"
        sleep 0.05
    done
}

# logged_us TEXT: the wall-clock microseconds that the program printed with it.
logged_us() { sed -n "s/^$1 at_us=\([0-9]*\).*/\1/p" "$log" | head -n 1; }

milliseconds() { printf '%d.%03d ms' $(($1 / 1000)) $(($1 % 1000)); }
say() { printf '\n== %s\n' "$*"; }

# show ARGUMENT...: prints the command as one would type it, and runs it.
show() {
    local word line='$ thole'
    for word in "$@"; do
        case $word in
            *[!A-Za-z0-9_=.,/-]*) line+=" '$word'" ;;
            *) line+=" $word" ;;
        esac
    done
    printf '%s\n' "$line"
    "$thole" "$@"
}

# fails ARGUMENT...: the same for a run or wait of an instance that does not complete.
fails() {
    local code=0
    show "$@" || code=$?
    [ "$code" -eq 9 ] || die "thole $1 answered $code instead of 9"
}

say "The program: orchestration, engine and worker in one process"
echo '$ checkout run'
"$checkout" run >"$log" 2>&1 &
server=$!
until_logged serving

say "1. An order that completes"
show run checkout --id order-1 --input 'order=1;pay_ms=50;limit_ms=5000' --timeout 60s
show history order-1

say "2. The payment takes a minute, its limit is one second: the timer wins, the payment is cancelled, all is undone"
fails run checkout --id order-2 --input 'order=2;pay_ms=60000;limit_ms=1000' --timeout 60s
show history order-2
until_logged 'charge of order-2 cancelled'
due=$("$thole" history order-2 -o jsonl | sed -n 's/.*"kind":"TimerCreated".*"due":"\([^"]*\)".*/\1/p')
due_us=$(date -u -d "$due" +%s%6N)
echo "The running payment knew $(milliseconds $(($(logged_us 'charge of order-2 cancelled') - due_us))) after the" \
    "timer was due (from the due time in the history to the activity's cancellation token)."

say "3. The customer cancels while the payment runs"
show start checkout --id order-3 --input 'order=3;pay_ms=60000;limit_ms=60000'
until_logged 'charge of order-3 begins'
echo "\$ thole cancel order-3 --reason 'customer changed their mind'"
answer=$("$thole" cancel order-3 --reason 'customer changed their mind' -o json)
requested_us=$(printf '%s' "$answer" | sed -n 's/.*"requested_us":\([0-9]*\).*/\1/p')
until_logged 'charge of order-3 cancelled'
fails wait order-3 --timeout 60s
show history order-3
echo "The running payment knew $(milliseconds $(($(logged_us 'charge of order-3 cancelled') - requested_us))) after" \
    "the request (from thole_client_cancel() being called in one process to the token in the other)."

say "All orders (from the projection in Postgres)"
show list
