#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Checks the models with spin, if it is here. Cases that leave something out must fail, or the
# models prove nothing.
set -u
here=$(dirname "$(readlink -f "$0")")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
count=0

# model FILE NAME WANTED-ERRORS FLAGS...: 0, or "some"
model() {
	local file=$1 name=$2 want=$3 errors
	shift 3
	count=$((count + 1))
	(cd "$tmp" && rm -f pan* && spin "$@" -a "$here/$file.pml" &&
		gcc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=2048 -o pan pan.c &&
		timeout 250 ./pan -m1000000) >"$tmp/log" 2>&1
	errors=$(sed -n 's/.*errors: \([0-9]*\)$/\1/p' "$tmp/log")
	if [ -n "$errors" ] && ! grep -q "max search depth too small\|out of memory" "$tmp/log" &&
		{ [ "$want" = "$errors" ] || { [ "$want" = some ] && [ "$errors" -gt 0 ]; }; }; then
		echo "ok $count - $name"
		sed -n 's/^ *\([0-9.e+]*\) states, stored.*/# \1 states/p' "$tmp/log"
	else
		echo "not ok $count - $name"
		tail -20 "$tmp/log" | sed 's/^/# /'
	fi
}

if ! command -v spin >/dev/null; then
	echo "1..0 # SKIP there is no spin here (package spin)"
	exit 0
fi
model am_slot "exactly once, 3 messages, 2 packets each way" 0
model am_slot "exactly once, 4 messages, 3 packets each way" 0 -DMESSAGES=4 -DCAPACITY=3
model am_slot "returned or once, 3 messages" 0 -DGIVE_UP
model am_slot "a one-bit number is not enough when packets overtake" some -DONE_BIT -DMESSAGES=4
model am_slot "refused or once, of requests and of replies" 0 -DREFUSES
model am_slot "that a reply was refused must be kept" some -DREFUSES -DTOLD_AGAIN
model am_slot "a new incarnation runs what was not answered, once" 0 -DRENEWS
model am_slot "packets must tell which incarnation they are for" some -DRENEWS -DUNNAMED
model am_slot "answers of a predecessor must not be taken" some -DRENEWS -DBELATED
one_mover=(-DMOVERS=1 -DOCTETS=3)
model wakeup "who sleeps is woken, two others" 0
model wakeup "who sleeps is woken, one other" 0 "${one_mover[@]}"
model wakeup "to see to oneself alone is not enough" some -DNOT_TOLD
model wakeup "who takes away that it was woken must tell" some -DFORGETS
model wakeup "who was woken must await anew" some -DAWAITS_ONCE
model wakeup "a first await must tell who has looked before" some -DNEW_UNTOLD
echo "1..$count"
