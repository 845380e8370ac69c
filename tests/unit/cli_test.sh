#!/usr/bin/env bash
# The program from outside: exit status, what goes to stdout and to stderr. Usage: cli_test.sh PROGRAM SOURCE_DIR
set -u
program=$1
source_dir=$2
failures=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# expect STATUS STDERR ARGS...: runs the program and compares exit status and the whole of stderr.
expect() {
    local status=$1 stderr=$2 got
    shift 2
    "$program" "$@" >"$folder/out" 2>"$folder/err"
    got=$?
    if [ "$got" -ne "$status" ]; then
        echo "contraflow $*: exit status $got, expected $status"
        failures=$((failures + 1))
    fi
    if [ "$(cat "$folder/err")" != "$stderr" ]; then
        printf 'contraflow %s: stderr is\n%s\nexpected\n%s\n' "$*" "$(cat "$folder/err")" "$stderr"
        failures=$((failures + 1))
    fi
}

# says TEXT: the last command's stdout holds the text.
says() {
    if ! grep -qF -- "$1" "$folder/out"; then
        printf 'stdout lacks "%s"; it is\n%s\n' "$1" "$(head -5 "$folder/out")"
        failures=$((failures + 1))
    fi
}

# check WHAT STATUS GOT
check() {
    if [ "$2" != "$3" ]; then
        echo "$1: got \"$3\", expected \"$2\""
        failures=$((failures + 1))
    fi
}

expect 0 "" --version
says "contraflow "
expect 0 "" --help
says "keys"
says "devices"
expect 0 "" keys --help
says "Usage: contraflow keys"
expect 2 "Usage: contraflow COMMAND [options]
\`contraflow --help\` lists the commands."
expect 2 "contraflow: unknown command kyes; did you mean keys?" kyes
expect 2 "contraflow: unknown command frobnicate; \`contraflow --help\` lists them" frobnicate

expect 0 "" keys
says "network.encoders"
expect 0 "" keys --markdown
cmp -s "$folder/out" "$source_dir/docs/keys.md"
check "contraflow keys --markdown differs from docs/keys.md" 0 $?
expect 2 "contraflow: unknown option --markdwn; did you mean --markdown?" keys --markdwn
expect 2 "contraflow: unknown option --mark; did you mean --markdown?" keys --mark
expect 2 "contraflow: unexpected argument foo; usage: contraflow keys [--markdown]" keys foo

expect 0 "" devices
says "devices/u50.ini"
says "1163/1344"
says "HBM2"
says "devices/zcu102.ini"

# A reader that leaves early is no error; an output nobody can write to is.
"$program" keys 2>"$folder/err" | head -n 1 >/dev/null
check "contraflow keys | head -1" "0" "${PIPESTATUS[0]}"
check "stderr of contraflow keys | head -1" "" "$(cat "$folder/err")"
"$program" keys 2>"$folder/err" | true
check "contraflow keys | true" "0" "${PIPESTATUS[0]}"
check "stderr of contraflow keys | true" "" "$(cat "$folder/err")"
"$program" keys >&- 2>"$folder/err"
check "contraflow keys with stdout closed" 1 $?
check "its stderr" "contraflow: the standard output could not be written" "$(cat "$folder/err")"
if [ -e /dev/full ]; then
    "$program" keys >/dev/full 2>"$folder/err"
    check "contraflow keys on a full disk" 1 $?
fi

[ "$failures" -eq 0 ] || { echo "$failures failures"; exit 1; }
