#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# run.sh PROGRAM NAME: fuzzes for 5 seconds (WARPSOCK_LONG: 10 minutes) from the seeds of NAME.
set -u
seeds=$(dirname "$(readlink -f "$0")")/seeds/$2
scratch=$(mktemp -d /tmp/warpsock-fuzz-XXXXXX)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/corpus"
[ ! -d "$seeds" ] || cp "$seeds"/* "$scratch/corpus/"

seconds=5
[ -z "${WARPSOCK_LONG:-}" ] || seconds=600
echo 1..1
"$1" -max_total_time="$seconds" -timeout=10 -artifact_prefix="$scratch/" \
	-print_final_stats=1 "$scratch/corpus" >"$scratch/log" 2>&1
case $? in
0)
	echo "ok 1 - $2"
	exit 0
	;;
3) # what it needs is not to be had here
	echo "ok 1 - $2 # SKIP $(tail -n 1 "$scratch/log")"
	exit 0
	;;
esac
echo "not ok 1 - $2"
tail -n 60 "$scratch/log" | sed 's/^/# /'
for input in "$scratch"/{crash,timeout,oom,leak}-*; do
	[ ! -f "$input" ] || { echo "# the input, in base64:"; base64 "$input" | sed 's/^/# /'; }
done
exit 1
