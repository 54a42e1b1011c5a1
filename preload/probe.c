/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is known of peers, by address and port.
 *
 * A cache of fixed size in which an entry is one word, so that it is read and written whole without
 * a lock: a tag of the address, when to forget, and the answer. Two addresses of one tag are taken
 * for each other, one pair of 2^40 that fall into one row; that costs a Request to a plain peer,
 * or a connection on TCP that could have been on DDP. A row that is full loses what would be
 * forgotten first.
 */
#include "preload/probe.h"

#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include "base/bits.h"

#define ROWS 256u
#define WAYS 4u
#define LIFE_S ((unsigned int)(PROBE_LIFE_MAX / BASE_NS_PER_S))

/* A word: tag, 40 bits; second to forget it at, 23 bits; 1 DDP, 0 plain. 0 is no entry */
#define TIME_MASK ((1u << 23) - 1)

static uint64_t cache[ROWS][WAYS]; /* atomic */

static uint64_t mix(uint64_t h)
{
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	return h ^ h >> 32;
}

static uint64_t hash_in6(const struct in6_addr *addr, uint32_t scope, in_port_t port)
{
	uint64_t part[2];

	memcpy(part, addr, sizeof(part));
	return mix(mix(mix(part[0]) ^ part[1]) ^ ((uint64_t)scope << 16 | port));
}

/* An IPv4 address counts as the IPv6 address that it is mapped to. 0: it is no IP address */
static uint64_t hash(const struct sockaddr *addr, socklen_t len)
{
	struct in6_addr mapped = { .s6_addr = { [10] = 0xff, [11] = 0xff } };
	struct sockaddr_in6 six = { .sin6_port = 0 };
	struct sockaddr_in four;

	if (len >= sizeof(four) && addr->sa_family == AF_INET) {
		memcpy(&four, addr, sizeof(four));
		memcpy(&mapped.s6_addr[12], &four.sin_addr, 4);
		return hash_in6(&mapped, 0, four.sin_port) | 1;
	}
	if (len < offsetof(struct sockaddr_in6, sin6_scope_id) || addr->sa_family != AF_INET6)
		return 0;
	memcpy(&six, addr, len < sizeof(six) ? len : sizeof(six));
	return hash_in6(&six.sin6_addr, six.sin6_scope_id, six.sin6_port) | 1;
}

static uint64_t *row_of(uint64_t h)
{
	return cache[h >> 8 & (ROWS - 1)];
}

static uint64_t tag_of(uint64_t word)
{
	return word >> 24;
}

/* Seconds until it is to be forgotten, 0: it is no entry, or to be forgotten now */
static unsigned int left(uint64_t word, unsigned int now)
{
	unsigned int s = ((unsigned int)(word >> 1) - now) & TIME_MASK;

	return word && s <= LIFE_S ? s : 0;
}

static unsigned int seconds(uint64_t now)
{
	return (unsigned int)(now / BASE_NS_PER_S) & TIME_MASK;
}

static uint64_t load(const uint64_t *slot)
{
	return __atomic_load_n(slot, __ATOMIC_RELAXED);
}

/* Where @h stands in its row, or else may stand */
static uint64_t *slot_find(uint64_t h, unsigned int now)
{
	uint64_t *row = row_of(h), *best = row;

	for (unsigned int i = 0; i < WAYS; i++) {
		if (left(load(&row[i]), now) && tag_of(load(&row[i])) == tag_of(h))
			return &row[i];
		if (left(load(&row[i]), now) < left(load(best), now))
			best = &row[i];
	}
	return best;
}

void probe_note(const struct sockaddr *peer, socklen_t len, enum probe_answer answer, uint64_t life,
		uint64_t now)
{
	uint64_t h = hash(peer, len), word;
	unsigned int s = seconds(now);
	unsigned int until = s + (unsigned int)(base_min(life, PROBE_LIFE_MAX) / BASE_NS_PER_S);

	if (!h || answer == PROBE_UNKNOWN)
		return;
	word = tag_of(h) << 24 | (uint64_t)(until & TIME_MASK) << 1 | (answer == PROBE_DDP);
	__atomic_store_n(slot_find(h, s), word, __ATOMIC_RELAXED);
}

enum probe_answer probe_known(const struct sockaddr *peer, socklen_t len, uint64_t now)
{
	uint64_t h = hash(peer, len), word;

	if (!h)
		return PROBE_UNKNOWN;
	word = load(slot_find(h, seconds(now)));
	if (tag_of(word) != tag_of(h) || !left(word, seconds(now)))
		return PROBE_UNKNOWN;
	return word & 1 ? PROBE_DDP : PROBE_PLAIN;
}
