# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# More than 2^17 messages each way on one connection: every 16-bit counter wraps twice
# Limit: 900
# Table: software-librspreload librspreload-software verbs-software verbs-verbs verbs-librspreload
port=7900
messages=132000
limit=90

# Our report proves the number: a message is at least one FPDU.
wraps() {
	mode=(--all --mode on --report /tmp/case/report.json)
	sockets trade $messages 3 get 1 close -- trade $messages 3 put 1 eof close || return
	python3 - $messages </tmp/case/report.json <<-'END'
		import json, sys
		report = json.load(open("/tmp/case/report.json"))
		print(report)
		tx, rx = report["fpdus"]["tx"], report["fpdus"]["rx"]
		sys.exit(min(tx, rx) < 2 * int(sys.argv[1]) or report["connections"]["tcp"] != 0)
	END
}

for pair in "${stream_pairs[@]}"; do
	check "$messages messages each way" wraps
done
