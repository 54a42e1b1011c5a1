# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Cases of a script that prints TAP: commands that are run, and what they say. With $tmp, a folder
# of the script's, whose *.log go with a case that failed.
count=0
limit=60 # seconds for a case

# check NAME WANTED-CODE PATTERN COMMAND...: the code, and a line of the output
check() {
	local name=$1 want=$2 pattern=$3 got
	shift 3
	count=$((count + 1))
	timeout "$limit" "$@" >"$tmp/out" 2>&1 </dev/null
	got=$?
	if [ $got -eq "$want" ] && grep -qE -- "$pattern" "$tmp/out"; then
		echo "ok $count - $name"
	else
		echo "not ok $count - $name"
		echo "# code $got, not $want; or no line like '$pattern' in:"
		head -20 "$tmp/out" $(ls "$tmp"/*.log 2>/dev/null) | sed 's/^/# /'
	fi
}

# skip NAME REASON
skip() {
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $2"
}
