#!/usr/bin/env bash
# The machines' own code, broken on purpose: the simulation must notice. The table is the file mutants beside this one.
#   mutants.sh list                        names
#   mutants.sh check                       each text of the three tables is found exactly once in its file
#   mutants.sh run NAME BUILD LINK...      compiles the one source, changed, links a simulation with it in place of the
#                                          archive's member, and runs seeds until one notices
#   mutants.sh units BUILD [NAME...]       the same with tests/unit/mutants, whose lines `tests` name the unit tests that
#                                          must notice; all of them: minutes. scripts/mutants calls this
#   mutants.sh seeds BUILD [NAME...]       the same with tests/integration/mutants, whose lines `seed` name a test program
#                                          and the one of its tests that must fail. scripts/mutants --seeds calls this
# Exit code 0 when it is as it should be, 77 when the build folder says nothing of how it compiles.
set -eu
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
table=$here/mutants
unit_table=$root/tests/unit/mutants
seed_table=$root/tests/integration/mutants

# read_mutants CALLBACK: calls it for each, with name, rule, file, first, seeds, tests, programs, seed_tests, old and new set.
read_mutants() {
    local callback=$1 line number=0
    name='' rule='' file='' first=1 seeds=4000 tests='' programs='' seed_tests='' old='' new=''
    while IFS= read -r line || [ -n "$line" ]; do
        number=$((number + 1))
        case $line in
            'mutant '*)
                [ -z "$name" ] || "$callback"
                name=${line#mutant } rule='' file='' first=1 seeds=4000 tests='' programs='' seed_tests='' old='' new='' ;;
            'rule '*) rule=${line#rule } ;;
            'file '*) file=${line#file } ;;
            'first '*) first=${line#first } ;;
            'seeds '*) seeds=${line#seeds } ;;
            'tests '*) tests=${line#tests } ;;
            'programs '*) programs=${line#programs } ;;
            'seed '*) seed_tests+=${line#seed }$'\n' ;;
            -*) old+=${line#-}$'\n' ;;
            +*) new+=${line#+}$'\n' ;;
            '#'* | '') ;;
            *)
                echo "$table:$number: what is this: $line" >&2
                exit 2 ;;
        esac
    done <"$table"
    [ -z "$name" ] || "$callback"
}

# Writes the source with its text replaced to $1; fails unless the text is there exactly once.
change() {
    if [ -z "$rule" ] || [ -z "$old" ] || [ ! -f "$root/$file" ]; then
        echo "mutant $name: it needs a rule, a file that is there, and lines that begin with -"
        return 1
    fi
    name=$name file=$file old=$old new=$new awk '
        BEGIN { RS = "\001"; old = ENVIRON["old"] }
        {
            at = index($0, old)
            rest = substr($0, at + length(old))
            why = at == 0 ? "not in" : index(rest, old) > 0 ? "more than once in" : ""
            if (why != "") {
                print "mutant " ENVIRON["name"] ": its text is " why " " ENVIRON["file"] >"/dev/stderr"
                exit 1
            }
            printf "%s%s%s", substr($0, 1, at - 1), ENVIRON["new"], rest
        }' "$root/$file" >"$1"
}

names=' '
bad=0
check_one() {
    case $names in *" $name "*)
        echo "mutant $name: twice"
        bad=$((bad + 1)) ;;
    esac
    names+="$name "
    change /dev/null || bad=$((bad + 1))
}

list_one() { echo "$name"; }

# How the build compiles the file: $command, with the source and the object as in the compilation database.
find_command() {
    local database=$build/compile_commands.json
    [ -f "$database" ] || return 1
    command=$(grep -F -B 1 "\"file\": \"$root/$file\"" "$database" | sed -n 's/^ *"command": "\(.*\)",$/\1/p' | head -n 1)
    command=${command//\\\"/\"}
    command=${command//\\\\/\\}
    [ -n "$command" ]
}

# The changed source's object: $folder/mutant.o.
compile() {
    folder=$build/tests/mutants/$name
    if ! find_command; then
        echo "$build does not say how $file is compiled"
        exit 77
    fi
    rm -rf "$folder"
    mkdir -p "$folder"
    change "$folder/$(basename "$file")" || exit 1
    command=${command%% -o *}" -g0 -w -o $folder/mutant.o -c $folder/$(basename "$file")"
    (cd "$build" && eval "$command")
}

# Links a program of the tests as the build does, but with that object: instead of the one that is named, if it is, or of
# the one in an archive.
link_program() {
    command=$(ninja -C "$build" -t commands "tests/$1" | tail -n 1 | sed "s| [^ ]*/${file#*/}\\.o||")
    command=${command/ -o tests\/$1 / $folder/mutant.o -o $folder/$1 }
    (cd "$build" && eval "$command")
}

left=0
unit_one() {
    local unit by=''
    case " $chosen " in "  " | *" $name "*) ;; *) return 0 ;; esac
    compile
    for unit in $tests; do
        [ -z "$by" ] || break
        link_program "test_$unit"
        if ! { (cd "$folder" && timeout 30 "./test_$unit") </dev/null >"$folder/log" 2>&1; } 2>/dev/null; then
            by=$unit
        fi
    done
    rm -rf "$folder"
    [ -n "$by" ] || left=$((left + 1))
    echo "$name ($rule): $([ -n "$by" ] && echo "found by unit.$by" || echo "NOT FOUND by $tests")"
}

# Runs one test of a program that is in the folder $1; its verdict is in $folder/log.
run_seed() {
    (cd "$1" && THOLE_TEST_ONLY=$3 THOLE_TEST_PROGRAMS=$1 timeout 250 "./test_$2") </dev/null >"$folder/log" 2>"$folder/errors"
}

# Without the mutant the test passes alone: then it is the mutant that it fails by.
passed=' '
check_passes() {
    case $passed in *" $1/$2 "*) return 0 ;; esac
    run_seed "$build/tests" "$1" "$2" || return 1
    passed+="$1/$2 "
}

seed_one() {
    local program seed verdict
    case " $chosen " in "  " | *" $name "*) ;; *) return 0 ;; esac
    compile
    ln -s "$build"/tests/program_* "$build"/tests/*.so "$folder"
    for program in $programs; do
        rm -f "$folder/$program"
        link_program "$program"
    done
    while read -r program seed; do
        [ -n "$program" ] || continue
        [ -x "$folder/test_$program" ] || link_program "test_$program"
        verdict='NOT FOUND by'
        if ! check_passes "$program" "$seed"; then
            verdict='cannot be looked for, without it also fails'
        elif ! run_seed "$folder" "$program" "$seed" && grep -q "Test $seed had failures" "$folder/log"; then
            verdict='found by'
        fi
        [ "$verdict" = 'found by' ] || left=$((left + 1))
        echo "$name ($rule): $verdict $program's $seed"
    done <<<"$seed_tests"
    rm -rf "$folder"
}

run_one() {
    [ "$name" = "$wanted" ] || return 0
    found=1
    local code=0 output
    compile
    "${CC:-cc}" -o "$folder/sim" "$folder/mutant.o" "${link[@]}"
    output=$(timeout 100 "$folder/sim" --until-broken "$first" "$seeds" 2>&1) || code=$?
    echo "$name ($rule): $output"
    rm -rf "$folder"
    case $code in
        0) ;;
        134) echo "found by an assertion" ;;
        *)
            echo "not found: exit code $code"
            exit 1 ;;
    esac
}

case ${1:-} in
    list) read_mutants list_one ;;
    check)
        read_mutants check_one
        table=$unit_table
        read_mutants check_one
        table=$seed_table
        read_mutants check_one
        [ "$bad" -eq 0 ] ;;
    run)
        wanted=$2
        build=$3
        shift 3
        link=("$@")
        found=0
        read_mutants run_one
        [ "$found" -eq 1 ] || { echo "no such mutant: $wanted"; exit 2; } ;;
    units)
        build=$2
        shift 2
        chosen=$*
        table=$unit_table
        read_mutants unit_one
        [ "$left" -eq 0 ] ;;
    seeds)
        build=$2
        shift 2
        chosen=$*
        table=$seed_table
        read_mutants seed_one
        [ "$left" -eq 0 ] ;;
    *)
        sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        exit 2 ;;
esac
