# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Our native API and librdmacm on siw step by step: private data, rejection, operations
# Limit: 900
# Table: software-siw siw-software verbs-software verbs-verbs
# No others: its steps are queue pairs', and streams have their own in streams
port=7500
ulimit -l unlimited # siw counts what root has pinned, too

for pair in software-siw siw-software verbs-software verbs-verbs; do
	capture ${pair/verbs-verbs/verbs-verbs_devices}
	steps 1 200 248
	check "rejected without a word" both reject -- refused private-is 0
	end_capture ${pair/verbs-verbs/verbs-verbs_devices}
done
