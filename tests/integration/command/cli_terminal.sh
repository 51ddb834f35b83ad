#!/usr/bin/env bash
# Run by test_cli_command under `thole dev`: what stays on the screen, colours, contexts, completion, manual pages, and the
# outputs for people. cli_terminal.sh THOLE CHECKOUT. Prints one line for each check that fails; exit code 0 when there is none.
set -u
thole=$1
checkout=$2
bad=0
log=$(mktemp)
engine=
other=
finish() {
    for pid in $engine $other; do
        kill -TERM "$pid" && wait "$pid"
    done
    rm -rf "$log" "$log".*
}
trap finish EXIT
. "$(dirname "$0")/cli_checks.sh"
unset THOLE_CONTEXT
export XDG_CONFIG_HOME=$log.xdg
unset NO_COLOR

"$checkout" run >"$log.engine" 2>&1 &
engine=$!
await 60 says '"partitions":[0,1,2,3,4,5,6,7]' nodes -o json
"$thole" run checkout --id t-1 --input 'order=1;pay_ms=1;limit_ms=9000' --timeout 60s >"$log.out" 2>&1
"$thole" start checkout --id t-2 --input 'order=2;pay_ms=90000;limit_ms=90000' >"$log.out" 2>&1
await 20 says t-2 list --status running

# has FILE WORDS...: all of them, in this order.
has() {
    local file=$1 text
    shift
    text=$(tr -d '\r' <"$file")
    for words in "$@"; do
        case $text in
            *"$words"*) text=${text#*"$words"} ;;
            *) echo "no \"$words\" (any more) in: $(cat "$file")" && bad=1 && return ;;
        esac
    done
}
# on_terminal COMMAND: what a terminal gets.
on_terminal() { TERM=xterm script -qec "$*" /dev/null </dev/null; }

# Outputs.
expect 0 't-1' list -o name --prefix t-1
[ "$("$thole" list -o name | wc -l)" -eq 2 ] || { echo "list -o name: $("$thole" list -o name)" && bad=1; }
expect 0 'ACTIVITIES  TIMERS  PARENT' list -o wide
expect 0 $'instances:\n- instance: t-2\n  orchestration: checkout\n  version: 1\n  status: Running' list -o yaml
expect 0 "created: '20" show t-1 -o yaml
expect 3 '"status":"NOT_FOUND"' show nobody -o yaml
expect 2 'here use jsonl' list -o yaml --watch
expect 2 'no list of names' show t-1 -o name
expect 0 $'0\n1\n2\n3' partitions -o name

# Where the code is, by the engine that has it; a line where the tool for it is installed.
where='code is at      .*checkout'
command -v addr2line >"$log.out" && where='code is at      sell (checkout\.c:[0-9]'
"$thole" show t-2 --source | grep -q "$where" || { echo "show --source: $("$thole" show t-2 --source 2>&1)" && bad=1; }
expect 0 '"source":"' show t-2 --source -o json
expect 0 '"source_error":"it has ended' show t-1 --source -o json
expect 0 'is not known: it has ended' show t-1 --source
expect 2 'PROGRAM replay ID --until EVENT' show t-2 --source --at 1

# A history that is followed ends with its instance, and each event comes at once.
"$thole" history t-2 --follow >"$log.follow" 2>&1 &
other=$!
await 20 grep -q TimerCreated "$log.follow"
"$thole" cancel t-2 --reason enough >"$log.out" 2>&1
await 5 grep -q 'CancelRequested .*enough' "$log.follow"
wait "$other"
code=$?
other=
[ "$code" -eq 0 ] || { echo "history --follow: exit code $code" && bad=1; }
has "$log.follow" 'TIME ' Started ActivityScheduled CancelRequested ActivityCancelled 'Cancelled '
"$thole" history t-2 >"$log.whole" && diff "$log.whole" "$log.follow" || { echo 'history --follow is another one' && bad=1; }
expect 0 '"kind":"Completed"' history t-1 -f -o jsonl
expect 2 'no end' history t-1 -f -o json
expect 2 'one of them' history t-1 -f --raw -
expect 3 'there is no instance' history nobody --follow

# A list that is watched: each change is a line.
"$thole" watch -o jsonl >"$log.watch" 2>&1 &
other=$!
await 20 grep -q '"instance":"t-1"' "$log.watch"
"$thole" start checkout --id 日-3 --input 'order=3;pay_ms=90000;limit_ms=90000' >"$log.out" 2>&1
await 20 grep -q '"instance":"日-3",.*"status":"Running"' "$log.watch"
"$thole" cancel 日-3 >"$log.out" 2>&1
await 20 grep -q '"instance":"日-3",.*"status":"Cancelled"' "$log.watch"
[ "$(grep -c '"instance":"t-1"' "$log.watch")" -eq 1 ] || { echo "t-1 was printed again: $(cat "$log.watch")" && bad=1; }
kill "$other"
wait "$other"
other=
expect 2 'a line for each change' list --watch -o json

# On a terminal: colours, and a screen that is drawn anew. Without one top prints once.
on_terminal "$thole list" >"$log.tty"
has "$log.tty" $'\e[33mCancelled\e[0m   checkout' $'\e[32mCompleted\e[0m   checkout'
NO_COLOR=1 on_terminal "$thole list" >"$log.tty"
grep -q $'\e' "$log.tty" && { echo "NO_COLOR: $(cat "$log.tty")" && bad=1; }
on_terminal "$thole history t-2" >"$log.tty"
has "$log.tty" $'\e[33mCancelRequested\e[0m'
on_terminal "timeout 3 $thole watch" >"$log.tty"
has "$log.tty" $'\e[H\e[J' 'ID  ' t-1 $'\e[?7h' $'\e[H\e[J' t-1
on_terminal "timeout 3 $thole top" >"$log.tty"
has "$log.tty" $'\e[H\e[J' 'namespace default: 1 engines, 1 workers at 20' 'nothing is in a queue' 'ENGINE  ' '0-7' $'\e[H\e[J'
expect 0 '1 engines, 1 workers' top
expect 2 'top is for people' top -o json

# A terminal that is narrow: no line is wider, and no number loses digits.
widest() { LC_ALL=C.UTF-8 sed 's/\x1b\[[?0-9;]*[A-Za-z]//g; s/\r$//' "$1" | LC_ALL=C.UTF-8 wc -L; }
for columns in 60 80; do
    for verb in list 'list -o wide' 'timeout 3 thole watch' 'timeout 3 thole top'; do
        case $verb in timeout*) words=${verb/thole/$thole} ;; *) words="$thole $verb" ;; esac
        on_terminal "stty columns $columns && $words" >"$log.tty"
        [ "$(widest "$log.tty")" -le $columns ] || { echo "$verb at $columns: $(cat "$log.tty")" && bad=1; }
    done
done
on_terminal "stty columns 60 && $thole list" >"$log.tty"
has "$log.tty" $'ID                                    STATUS      ORCHESTRA…\n' 日-3 checkout t-2

# Long work says on a terminal how far it is, and leaves nothing of that behind; elsewhere it says nothing.
clear=$'\e[K'
on_terminal "$thole replay --all -- $checkout" >"$log.tty"
has "$log.tty" "$clear"'0 of 8 partitions replayed, ' "$clear"'3 instances, 3 executions'
on_terminal "$thole projections verify" >"$log.tty"
has "$log.tty" "$clear"'partition ' ' of 8: ' "$clear" '3 instances, '
on_terminal "$thole export --all --to $log.thole" >"$log.tty"
has "$log.tty" '0 of 3 instances, 0 records'"$clear" "$clear"
"$thole" replay --all -- "$checkout" >"$log.out" 2>"$log.err" && [ -z "$(own_words "$log.err")" ] || { echo "replay: $(cat "$log.err")" && bad=1; }

# Every other table is as wide as the terminal at most, too; a character that takes two columns counts as two.
"$thole" start checkout --id 日-4 --input 'order=4;pay_ms=90000;limit_ms=90000' >"$log.out" 2>&1
await 20 says 'has 1' queue list
expect 0 '' hold set 日-4 --reason 'a reason that is longer than what a narrow terminal has room for: case 4711 of the court'
for columns in 60 80; do
    for verb in nodes partitions 'partitions --lag' 'queue list' 'history 日-4' 'history 日-4 -o wide' namespaces 'hold list' 'timer list' \
        'diff t-1 t-2'; do
        on_terminal "stty columns $columns && $thole $verb" >"$log.tty"
        [ "$(widest "$log.tty")" -le $columns ] && [ "$(wc -l <"$log.tty")" -gt 1 ] ||
            { echo "$verb at $columns: $(cat "$log.tty")" && bad=1; }
    done
done
"$thole" list | tail -n +2 | while read -r line; do
    [ "$(printf '%s' "${line%%[RC][uoa][nm]*}" | LC_ALL=C.UTF-8 wc -L)" = 38 ] || echo "not in its column: $line"
done >"$log.out"
[ ! -s "$log.out" ] || { cat "$log.out" && bad=1; }

# Contexts: flags and environment win, a file that says another namespace shows which one was taken.
expect 0 'there are no contexts' context list
expect 3 'no context is in use' context show
expect 0 '' context save away --nats nats://127.0.0.1:1 -n away
expect 0 '' context save here -n nowhere
expect 3 'there is no context gone' context use gone
expect 4 'there is a context away, and it says something else' context save away -n nowhere
expect 0 '' context save away --nats nats://127.0.0.1:1 -n away
expect 0 '' context save away -n nowhere --force
expect 0 '' context save away --nats nats://127.0.0.1:1 -n away --force
THOLE_NATS_URL=nats://me:hidden@127.0.0.1:1 "$thole" context save secret
expect 0 'nats://…@127.0.0.1:1' context show secret
"$thole" context show secret | grep hidden && bad=1
THOLE_POSTGRES="host=h password='hidden" "$thole" context save secret --force >/dev/null
expect 0 'postgres: "…"' context show secret
"$thole" context show secret | grep hidden && bad=1
# a URL without a scheme, blanks around the sign of a password
THOLE_NATS_URL=anna:hidden@127.0.0.1:1 THOLE_POSTGRES='host=h user=u password = hidden' "$thole" context save secret --force >/dev/null
expect 0 'nats: "…"' context show secret
expect 0 "host='h'" context show secret
"$thole" context show secret | grep hidden && bad=1
expect 0 '' context use here
expect 0 $'  away\n* here' context list
THOLE_CONTEXT=none expect 0 $'  away\n  here' context list
expect 0 $'away\nhere' context list -o name
expect 0 '"context":"here","current":true' context list -o json
expect 0 'namespace: "nowhere"' context show
expect 0 'nats: "nats://127.0.0.1:1"' context show away
expect 0 '{"schema":"thole.context_options.v1","context":"away","options":{"nats":"nats://127.0.0.1:1",' context show away -o json
"$thole" context show secret -o json | grep -q hidden && bad=1
[ "$(stat -c %a "$XDG_CONFIG_HOME/thole/contexts/here.yaml")" = 600 ] || { echo 'a context that others can read' && bad=1; }
expect 3 'namespace nowhere' list
expect 0 t-1 list -n default
THOLE_CONTEXT=none expect 0 t-1 list
(unset THOLE_NATS_URL && expect 6 '127.0.0.1:1' list --context away && exit "$bad") || bad=1
expect 3 'there is no context gone' list --context gone
expect 0 '' context delete here
expect 0 '  away' context list
expect 2 'none is no context' context save none
expect 3 'there is no context here' context delete here
expect 2 'is none of: list' context rename x
expect 2 'NAME is missing' context save
expect 2 'context name has byte' context save a/b

# Completion, in a bash that knows nothing else.
complete_words() { # what the last word of the line becomes
    PATH=$(dirname "$thole"):$PATH bash --norc -c '
        compopt() { :; }
        source <(thole completion bash)
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _thole
        printf "%s\n" "${COMPREPLY[@]}"' - "$@" | sort | tr '\n' ' '
}
completes() {
    local want=$1 got
    shift
    got=$(complete_words "$@")
    [ "$got" = "$want " ] || { echo "$* <TAB>: \"$got\" instead of \"$want\"" && bad=1; }
}
completes 'start start-many' thole star
completes 'bash fish zsh' thole completion ''
completes 'name' thole list -o n
completes 'completed continued-as-new' thole list --status co
completes 't-1 t-2' thole cancel t-
completes 't-2' thole -n default show t-2
"$thole" run checkout --id 'a:b:1' --input 'order=4;pay_ms=1;limit_ms=9000' --timeout 60s >"$log.out" 2>&1
await 20 says a:b:1 list
completes '1' thole show a : b :
completes 'b:1' thole show a :
completes 'a:b:1' thole show a
completes 'json jsonl' thole list --output = js
completes '--timeout' thole wait x --ti
completes '--traceparent --tracestate' thole start --tr
completes "$checkout" thole replay t-1 -- "$checkout"

# In zsh and in fish: what TAB makes of a line. Where a shell is not there that is said; REQUIRE_SHELLS=1 fails then.
in_zsh() { timeout 20 zsh -f "$(dirname "$0")/complete.zsh" "$log.zsh" "$1" 2>&1; }
in_fish() { fish --no-config -c "source $log.fish; complete -C '$1'" 2>&1; }
offers() { # SHELL LINE WORDS...: each is offered
    local shell=$1 line=$2 got
    shift 2
    got=$(PATH=$(dirname "$thole"):$PATH "in_$shell" "$line")
    for words in "$@"; do
        case $got in
            *"$words"*) ;;
            *) echo "$shell: $line <TAB>: no \"$words\" in: $got" && bad=1 ;;
        esac
    done
}
for shell in zsh fish; do
    "$thole" completion $shell >"$log.$shell"
    if ! command -v $shell >"$log.out"; then
        echo "completion in $shell is not tested: there is no $shell"
        [ "${REQUIRE_SHELLS:-0}" != 1 ] || bad=1
        continue
    fi
    $shell -n "$log.$shell" || bad=1
    offers $shell 'thole star' start start-many
    offers $shell 'thole completion ' bash fish zsh
    offers $shell 'thole list -o n' name
    offers $shell 'thole list --status co' completed continued-as-new
    offers $shell 'thole cancel t-' t-1 t-2
    offers $shell 'thole start --tr' traceparent tracestate
done
expect 2 'no shell that is known' completion csh

# Manual pages.
mkdir "$log.man"
expect 0 '' man --dir "$log.man"
for verb in $("$thole" help -o json | grep -o '"verb":"[^"]*"' | cut -d'"' -f4); do
    grep -q "^\.TH THOLE.-$verb 1 " "$log.man/thole-$verb.1" || { echo "no page of $verb" && bad=1; }
done
expect 0 '.B \-w, \-\-watch' man list
expect 0 'Environment: THOLE_NATS_URL.' man
expect 2 'did you mean start?' man stort
expect 2 'for the pages of all verbs' man start --dir "$log.man"
expect 1 'cannot write to' man --dir /nowhere/at/all
exit "$bad"
