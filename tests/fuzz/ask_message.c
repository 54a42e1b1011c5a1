/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagrams of the question beside a connection: what is taken is what ask_message_put() would say,
 * octet by octet, and what is not leaves nothing behind.
 */
#include <stdlib.h>
#include <string.h>

#include "preload/rules/ask_message.h"

static void require(int good)
{
	if (!good)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ask none;
	struct ask ask = none;
	struct ask_message m;

	if (ask_message_get(data, size, &ask)) {
		require(!memcmp(&ask, &none, sizeof(ask)));
		return 0;
	}
	require(size == ASK_LEN && ask.port);
	ask_message_put(&m, &ask);
	require(!memcmp(&m, data, sizeof(m)));
	return 0;
}
