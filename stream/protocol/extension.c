/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The extension block: what two Warpsock ends tell each other behind rsockets' connection data
 * (docs/stream-wire.md).
 *
 * A value of a type that is not known is skipped, so that later versions may say more; one that
 * is known must have its length and come once, for whoever says it otherwise means something
 * else. Bytes behind the block are not looked at.
 */
#include "stream/protocol/extension.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/bits.h"

static size_t value_put(uint8_t *p, enum stream_ext_type type, const void *value, uint8_t len)
{
	struct stream_ext_tlv tlv = { (__u8)type, len };

	memcpy(p, &tlv, sizeof(tlv));
	memcpy(p + sizeof(tlv), value, len);
	return sizeof(tlv) + len;
}

size_t stream_ext_put(uint8_t *p, const struct stream_ext *ext)
{
	struct stream_ext_features features = { htobe32(ext->features) };
	struct stream_ext_window window = { htobe64(ext->window) };
	struct stream_ext_depth depth = { htobe16(ext->ird), htobe16(ext->ord) };
	struct stream_ext_head head = { .version = STREAM_EXT_VERSION };
	size_t len = sizeof(head);

	_Static_assert(sizeof(head) + 3 * sizeof(struct stream_ext_tlv) + sizeof(features) +
				       sizeof(window) + sizeof(depth) <=
			       STREAM_EXT_MAX,
		       "the block");
	len += value_put(p + len, STREAM_EXT_FEATURES, &features, sizeof(features));
	/* What nobody needs is left out: RoCE has room for 56 bytes with the connection data */
	if (ext->features & STREAM_FEATURE_INLINE)
		len += value_put(p + len, STREAM_EXT_WINDOW, &window, sizeof(window));
	if (ext->features & STREAM_FEATURE_ONESIDED)
		len += value_put(p + len, STREAM_EXT_DEPTH, &depth, sizeof(depth));
	memcpy(head.magic, STREAM_EXT_MAGIC, sizeof(head.magic));
	head.length = htobe16((uint16_t)(len - sizeof(head)));
	memcpy(p, &head, sizeof(head));
	return len;
}

static void features_get(const uint8_t *value, struct stream_ext *out)
{
	struct stream_ext_features v;

	memcpy(&v, value, sizeof(v));
	out->features = be32toh(v.bits);
}

static void window_get(const uint8_t *value, struct stream_ext *out)
{
	struct stream_ext_window v;

	memcpy(&v, value, sizeof(v));
	out->window = be64toh(v.octets);
}

static void depth_get(const uint8_t *value, struct stream_ext *out)
{
	struct stream_ext_depth v;

	memcpy(&v, value, sizeof(v));
	out->ird = be16toh(v.ird);
	out->ord = be16toh(v.ord);
}

static const struct {
	uint8_t len;
	void (*get)(const uint8_t *value, struct stream_ext *out);
} rows[] = {
	[STREAM_EXT_FEATURES] = { sizeof(struct stream_ext_features), features_get },
	[STREAM_EXT_WINDOW] = { sizeof(struct stream_ext_window), window_get },
	[STREAM_EXT_DEPTH] = { sizeof(struct stream_ext_depth), depth_get },
};

/* One value at the front of @p: how many bytes it takes, or -EPROTO */
static ssize_t value_get(const uint8_t *p, size_t len, unsigned int *seen, struct stream_ext *out)
{
	struct stream_ext_tlv tlv;

	if (len < sizeof(tlv))
		return -EPROTO;
	memcpy(&tlv, p, sizeof(tlv));
	if (tlv.length > len - sizeof(tlv))
		return -EPROTO;
	if (tlv.type < base_array_size(rows) && rows[tlv.type].get) {
		if (*seen & 1u << tlv.type || tlv.length != rows[tlv.type].len)
			return -EPROTO;
		*seen |= 1u << tlv.type;
		rows[tlv.type].get(p + sizeof(tlv), out);
	}
	return (ssize_t)(sizeof(tlv) + tlv.length);
}

static int values_get(const uint8_t *p, size_t len, struct stream_ext *out)
{
	unsigned int seen = 0;
	ssize_t step;

	for (; len; p += step, len -= (size_t)step) {
		step = value_get(p, len, &seen, out);
		if (step < 0)
			return (int)step;
	}
	return 0;
}

int stream_ext_get(const uint8_t *p, size_t len, struct stream_ext *out)
{
	struct stream_ext ext = { 0 };
	struct stream_ext_head head;
	size_t values;
	int err;

	*out = ext;
	if (len < sizeof(head))
		return 0;
	memcpy(&head, p, sizeof(head));
	if (memcmp(head.magic, STREAM_EXT_MAGIC, sizeof(head.magic)) ||
	    head.version != STREAM_EXT_VERSION)
		return 0;
	values = be16toh(head.length);
	if (values > len - sizeof(head) || values > STREAM_EXT_MAX - sizeof(head))
		return -EPROTO;
	err = values_get(p + sizeof(head), values, &ext);
	if (!err)
		*out = ext;
	return err;
}
