# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# More than 2^17 messages each way on one connection: every 16-bit counter wraps twice
# Limit: 900
# Table: software-librspreload librspreload-software
# No others: over devices it is in wraps_device and wraps_devices; a queue pair counts in 32 bits
. "$lab/wraps.sh"

for pair in software-librspreload librspreload-software; do
	check "$messages messages each way" wraps
done
