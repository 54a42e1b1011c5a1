/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The extension block of the stream protocol: what is taken is what stream_ext_put() would say, and
 * no octet behind the block changes it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "stream/protocol/extension.h"

static void require(int good)
{
	if (!good)
		abort();
}

static void again(const struct stream_ext *ext)
{
	uint8_t p[STREAM_EXT_MAX];
	struct stream_ext offered = *ext, got;

	/* of features that are not offered nothing is said */
	if (!(ext->features & STREAM_FEATURE_INLINE))
		offered.window = 0;
	if (!(ext->features & STREAM_FEATURE_ONESIDED))
		offered.ird = offered.ord = 0;
	require(!stream_ext_get(p, stream_ext_put(p, ext), &got));
	require(!memcmp(&offered, &got, sizeof(got)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct stream_ext none;
	uint8_t longer[512];
	struct stream_ext ext, other;
	int err = stream_ext_get(data, size, &ext);

	if (err || size < sizeof(struct stream_ext_head)) {
		require(!memcmp(&ext, &none, sizeof(ext)));
		return 0;
	}
	again(&ext);
	if (size + 8 > sizeof(longer))
		return 0;
	memcpy(longer, data, size);
	memset(longer + size, 0x5a, 8);
	require(!stream_ext_get(longer, size + 8, &other));
	require(!memcmp(&ext, &other, sizeof(ext)));
	return 0;
}
