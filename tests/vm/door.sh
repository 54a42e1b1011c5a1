#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The developer's door to the guest: ./dev vm -- COMMAND, its output and its exit status
set -u
project=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
number=0 failed=0
echo "TAP version 13"

# gives STATUS PATTERN NAME ARGUMENTS...: of ./dev vm
gives() {
	local out status=0 word=ok
	out=$(timeout 500 "$project/dev" vm "${@:4}" 2>&1) || status=$?
	number=$((number + 1))
	[ $status = "$1" ] && grep -qE "$2" <<<"$out" || { word="not ok" failed=1; }
	echo "$word $number - $3"
	[ "$word" = ok ] || printf '%s\n' "status $status" "$out" | tail -n 30 | sed 's/^/# /'
}

mkdir -p "$project/build-vm"
script=$(mktemp -p "$project/build-vm") # the guest has a /tmp of its own
trap 'rm -f "$script"' EXIT
echo 'echo "a script with $# words"; exit 3' >"$script"
gives 0 '^6\.1\.' "a command" -- uname -r
gives 7 '' "its exit status" -- sh -c 'exit 7'
gives 3 'with 2 words' "a script" "$script" one two
gives 0 '^6\.12\.' "on the other kernel" -k 6.12 -- uname -r
gives 124 '' "its time is over" -t 30 -- sleep 100
gives 0 '^siw ' "siw is there" -- cat /proc/modules
echo "1..$number"
exit $failed
