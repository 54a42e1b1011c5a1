# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# More than 2^17 messages each way on one connection, with a device at the client
# Limit: 1200
# Table: verbs-software verbs-librspreload
# No others: the others are in wraps and wraps_devices
. "$lab/wraps.sh"

for pair in verbs-software verbs-librspreload; do
	check "$messages messages each way" wraps
done
