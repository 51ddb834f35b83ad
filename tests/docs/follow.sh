#!/usr/bin/env bash
# follow.sh PAGE: does what a page says, from its first line to its last, in the way of somebody who reads it. Starts in
# the current folder, with the current HOME; exit code 0 when every command printed what the page shows.
#   ```c file=NAME          (or cmake) a file in the reader's current folder; `append` adds to it
#   ```console              "$ " commands of the first shell, each with what it prints; "…" stands for any lines. Where
#                           nothing is shown nothing is compared. Every command must succeed.
#   ```console terminal=1   another terminal: its program goes on in the background; shown lines must come in this
#                           order within a minute; "^C" presses Ctrl-C and waits for the prompt
#   ```console in=source    typed in thole's source; $FOLLOW_INSTEAD is run instead when it is set
#   ```console needs=NAME   left out, and said, when there is no such program
# Blocks of c and cmake that name no file are an error: nothing would build them. Other blocks are not run.
set -u
page=$1
source_dir=$PWD
work=$(mktemp -d)
chmod 711 "$work"
declare -A terminal_fd terminal_at
checked=0

finish() {
    local pid
    for pid in $(cat "$work"/*.pid 2>/dev/null); do # script, whose end hangs up the terminal
        kill -TERM "$pid" 2>/dev/null
    done
    rm -rf "$work"
}
trap finish EXIT

fail() { # TEXT [FILE]...
    echo "$page:$line_number: $1"
    shift
    [ $# -eq 0 ] || tail -n 40 "$@"
    exit 1
}

# What differs from run to run: times, durations, folders, spaces at line ends.
normalised() {
    sed -E -e 's/\r//g; s/^\^C//; s/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z/TIME/g' \
        -e 's/[0-9]+ events replayed in [0-9.]+ s: [0-9]+ events/N events replayed in N s: N events/; s/due [0-9]{10,}/due N/; s#\(/[^ ]*/#(#; s/ +$//'
}

# same EXPECTED GOT: both normalised.
same() {
    awk '
        NR == FNR { want[++wants] = $0; next }
        { got[++gots] = $0 }
        END {
            at = 1
            for (i = 1; i <= wants; i++) {
                if (want[i] == "…") { gap = 1; continue }
                while (gap && at <= gots && got[at] != want[i]) at++
                if (at > gots || got[at] != want[i]) { print "not printed: " want[i]; exit 1 }
                at++; gap = 0
            }
            if (at <= gots && !gap) { print "not on the page: " got[at]; exit 1 }
        }' "$1" "$2"
}

# ---- the first shell: this one ----

# nats, where there is none: `nats -s URL pub SUBJECT`, the message on standard input, by the protocol itself.
nats() {
    local url=${2#nats://} subject=$4 bytes answer user
    bytes=$(cat | base64 -w 0)
    user=${url%@*} url=${url##*@}
    exec 7<>"/dev/tcp/${url%:*}/${url#*:}" || return 1
    read -r answer <&7
    {
        printf 'CONNECT {"verbose":false,"user":"%s","pass":"%s"}\r\nPUB %s %d\r\n' "${user%%:*}" "${user#*:}" \
            "$subject" "$(base64 -d <<<"$bytes" | wc -c)"
        base64 -d <<<"$bytes"
        printf '\r\nPING\r\n'
    } >&7
    read -r answer <&7
    exec 7>&-
    [ "${answer%$'\r'}" = PONG ]
}
[ -z "$(type -P nats)" ] || unset -f nats

run_once() {
    if [ "${option[in]:-}" = source ]; then
        (cd "$source_dir" && eval "$command") >"$work/got" 2>&1
    else
        eval "$command" >"$work/got" 2>&1
    fi || { echo "exit code $?, of: $command" >"$work/why" && return 1; }
    [ -s "$work/expected" ] || return 0
    normalised <"$work/expected" >"$work/want"
    normalised <"$work/got" >"$work/have"
    same "$work/want" "$work/have" >"$work/why"
}

# What only reads may be a moment ahead of what it is to show; people type slower.
run_command() {
    local tries=0
    until run_once; do
        case $command in
            'thole list'* | 'thole show'* | 'thole history'* | 'thole replay'*) [ $((tries += 1)) -lt 50 ] && sleep 0.2 ;;
            *) false ;;
        esac || fail "$(cat "$work/why")" "$work/got"
    done
    checked=$((checked + 1))
}

# ---- other terminals ----

prompts() { grep -o '%PROMPT%' "$work/$1.log" 2>/dev/null | wc -l; }

await_prompt() { # TERMINAL COUNT
    local tries=0
    until [ "$(prompts "$1")" -ge "$2" ]; do
        [ $((tries += 1)) -lt 1200 ] || fail "no prompt in terminal $1" "$work/$1.log"
        sleep 0.05
    done
}

open_terminal() {
    local fd
    mkfifo "$work/$1.in"
    echo "PS1=%PROMPT%" >"$work/rc"
    TERM=dumb script -qfc "bash --rcfile '$work/rc' --noprofile -i" "$work/$1.log" <"$work/$1.in" >/dev/null 2>&1 &
    echo $! >"$work/$1.pid"
    exec {fd}>"$work/$1.in"
    terminal_fd[$1]=$fd
    terminal_at[$1]=0
    await_prompt "$1" 1
}

await_line() { # TERMINAL LINE
    local tries=0 at want
    want=$(normalised <<<"$2")
    while :; do
        at=$(normalised <"$work/$1.log" | awk -v after="${terminal_at[$1]}" -v want="$want" \
            'NR > after && $0 == want { print NR; exit }')
        [ -z "$at" ] || break
        [ $((tries += 1)) -lt 600 ] || fail "terminal $1 does not print: $2" "$work/$1.log"
        sleep 0.1
    done
    terminal_at[$1]=$at
    checked=$((checked + 1))
}

in_terminal() { # TERMINAL LINE
    local before
    [ -n "${terminal_fd[$1]:-}" ] || open_terminal "$1"
    before=$(prompts "$1")
    case $2 in
        '$ '*) printf '%s\n' "${2#$ }" >&"${terminal_fd[$1]}" ;;
        '^C')
            printf '\003' >&"${terminal_fd[$1]}"
            await_prompt "$1" $((before + 1))
            ;;
        …) ;;
        *) await_line "$1" "$2" ;;
    esac
}

# ---- the page ----

# A block of the first shell is run command by command, as soon as what it prints has been read.
flush_command() {
    [ -z "$command" ] || run_command
    command=
    : >"$work/expected"
}

begin_block() { # the line behind ```
    local word
    option=()
    for word in $1; do
        option[${word%%=*}]=${word#*=}
    done
    kind=${1%% *}
    case $kind in
        c | cmake)
            [ -n "${option[file]:-}" ] || fail "names no file"
            [ -n "${option[append]:-}" ] || : >"${option[file]}"
            ;;
        console)
            if [ -n "${option[needs]:-}" ] && [ -z "$(type -P "${option[needs]}")" ]; then
                echo "$page:$line_number: left out, for ${option[needs]} is not installed"
                kind=other
            elif [ "${option[in]:-}" = source ] && [ -n "${FOLLOW_INSTEAD:-}" ]; then
                command=$FOLLOW_INSTEAD
                run_command
                command=
                kind=other
            fi
            ;;
        *) kind=other ;;
    esac
}

in_block() {
    case $kind in
        c | cmake) printf '%s\n' "$1" >>"${option[file]}" ;;
        console)
            if [ -n "${option[terminal]:-}" ]; then
                in_terminal "${option[terminal]}" "$1"
            elif [ "${1#$ }" != "$1" ]; then
                flush_command
                command=${1#$ }
            else
                printf '%s\n' "$1" >>"$work/expected"
            fi
            ;;
    esac
}

declare -A option=()
kind= command= line_number=0
: >"$work/expected"
mapfile -t lines <"$page"
for line in "${lines[@]}"; do
    line_number=$((line_number + 1))
    if [ "${line#\`\`\`}" = "$line" ]; then
        [ -z "$kind" ] || in_block "$line"
    elif [ -n "$kind" ]; then
        flush_command
        kind=
    else
        begin_block "${line#\`\`\`} "
    fi
done
[ "$checked" -gt 0 ] || fail "nothing to follow"
echo "$page: $checked commands and lines are as shown"
