# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# More than 2^17 messages each way on one connection, with a device at either end
# Limit: 900
# No fault: what wraps and wraps_device find is the same here
# Table: verbs-verbs
# No others: the others are in wraps and wraps_device
. "$lab/wraps.sh"

pair=verbs-verbs
check "$messages messages each way" wraps
