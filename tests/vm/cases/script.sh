# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Our native API and librdmacm on siw step by step: private data, rejection, operations
# Limit: 900
# Table: operations
port=7500

capture right
for pair in software-siw siw-software; do
	steps 1 200 248
	check "rejected without a word" both reject -- refused private-is 0
done
end_capture right
