# Included by the scripts that run the command. They set thole, bad=0 and log, a file; each check that fails prints a line and
# sets bad.

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

# await SECONDS COMMAND...: until it succeeds.
await() {
    local tries=$(($1 * 20))
    shift
    for _ in $(seq "$tries"); do
        ! "$@" >"$log.await" 2>&1 || return 0
        sleep 0.05
    done
    echo "never came true: $*: $(cat "$log.await")" && bad=1
}
says() {
    local words=$1
    shift
    "$thole" "$@" 2>&1 | grep -qF -- "$words"
}

lacks() { ! says "$@"; }
# own_words FILE: the lines of a stderr that are the command's own; what AddressSanitizer says of coroutines is not.
own_words() { sed -E '/^==[0-9]+==WARNING: ASan/d' "$1"; }

# full CODE ARGUMENT...: stdout is a full disk, which is said once, with the reason; as JSON when -o json is asked for.
full() {
    local code=$1 got said
    shift
    "$thole" "$@" 2>"$log.err" >/dev/full
    got=$?
    said=$(own_words "$log.err")
    case $said in
        *$'\n'*) echo "$* on a full disk: more than one line: $said" && bad=1 ;;
        *'cannot write to stdout: No space left on device'*) ;;
        *) echo "$* on a full disk: $said" && bad=1 ;;
    esac
    [ "$got" -eq "$code" ] || { echo "$* on a full disk: exit code $got instead of $code" && bad=1; }
}
