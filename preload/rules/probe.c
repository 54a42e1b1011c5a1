/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is known of peers, by address and port.
 *
 * A cache of fixed size in which an entry is one word, so that it is read and written whole
 * without a lock: a tag of the address, when to forget, and the answer, or that somebody asks. Two
 * addresses of one tag are taken for each other, one pair of 2^39 that fall into one row; that
 * costs a Request to a plain peer, or a connection on TCP that could have been on DDP. A row that
 * is full loses what would be forgotten first.
 *
 * It is one memory for a process and all that it forks, for pools are made of those, too; a program
 * that is executed begins with nothing. What any of them may have written there is a guess at most:
 * every word means something, and none of them is a place or a length.
 */
#include "preload/rules/probe.h"

#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include "base/bits.h"
#include "base/map.h"

#define ROWS 256u
#define WAYS 4u
#define LIFE_S ((unsigned int)(PROBE_LIFE_MAX / BASE_NS_PER_S))

/* A word: tag, 39 bits; second to forget it at, 23; enum probe_answer, 2. 0 is no entry */
#define TAG_SHIFT 25
#define TIME_SHIFT 2
#define TIME_MASK ((1u << 23) - 1)
#define ANSWER_MASK 3u

static uint64_t own[ROWS][WAYS];
static uint64_t (*cache)[WAYS] = own; /* its words atomic */

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

uint64_t probe_hash(const struct sockaddr *addr, socklen_t len)
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
	return word >> TAG_SHIFT;
}

/* Seconds until it is to be forgotten, 0: it is no entry, or to be forgotten now */
static unsigned int left(uint64_t word, unsigned int now)
{
	unsigned int s = ((unsigned int)(word >> TIME_SHIFT) - now) & TIME_MASK;

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

static bool is_entry(uint64_t word, uint64_t h, unsigned int now)
{
	return left(word, now) && tag_of(word) == tag_of(h);
}

/*
 * Where @h stands in its row, or else may stand, and the word there that this was found by: each
 * is looked at once, or what another one enters meanwhile would be entered twice
 */
static uint64_t *slot_find(uint64_t h, unsigned int now, uint64_t *word)
{
	uint64_t *row = row_of(h), *best = NULL;

	for (unsigned int i = 0; i < WAYS; i++) {
		uint64_t is = load(&row[i]);
		bool found = is_entry(is, h, now);

		if (best && !found && left(is, now) >= left(*word, now))
			continue;
		best = &row[i];
		*word = is;
		if (found)
			break;
	}
	return best;
}

static uint64_t word_of(uint64_t h, enum probe_answer answer, uint64_t life, unsigned int now)
{
	unsigned int until = now + (unsigned int)(base_min(life, PROBE_LIFE_MAX) / BASE_NS_PER_S);

	return tag_of(h) << TAG_SHIFT | (uint64_t)(until & TIME_MASK) << TIME_SHIFT | answer;
}

void probe_init(void)
{
	void *p;

	if (!base_map_create_shared(sizeof(own), &p))
		cache = p;
}

void probe_note(const struct sockaddr *peer, socklen_t len, enum probe_answer answer, uint64_t life,
		uint64_t now)
{
	uint64_t h = probe_hash(peer, len);
	unsigned int s = seconds(now);
	uint64_t was;

	if (h && answer != PROBE_UNKNOWN)
		__atomic_store_n(slot_find(h, s, &was), word_of(h, answer, life, s),
				 __ATOMIC_RELAXED);
}

enum probe_answer probe_known(const struct sockaddr *peer, socklen_t len, uint64_t now)
{
	uint64_t h = probe_hash(peer, len), word;

	if (!h)
		return PROBE_UNKNOWN;
	slot_find(h, seconds(now), &word);
	if (!is_entry(word, h, seconds(now)) || (word & ANSWER_MASK) == PROBE_ASKED)
		return PROBE_UNKNOWN;
	return (enum probe_answer)(word & ANSWER_MASK);
}

enum probe_answer probe_flight(const struct sockaddr *peer, socklen_t len, uint64_t limit,
			       uint64_t now)
{
	uint64_t h = probe_hash(peer, len), *slot, word, mine;
	unsigned int s = seconds(now);

	if (!h)
		return PROBE_UNKNOWN;
	/* Whole seconds, of which the first and the last are not */
	mine = word_of(h, PROBE_ASKED, base_deadline(limit, 2 * BASE_NS_PER_S), s);
	do {
		slot = slot_find(h, s, &word);
		if (is_entry(word, h, s))
			return (enum probe_answer)(word & ANSWER_MASK);
	} while (!__atomic_compare_exchange_n(slot, &word, mine, false, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return PROBE_UNKNOWN;
}

static void forget(const struct sockaddr *peer, socklen_t len, enum probe_answer answer,
		   uint64_t now)
{
	uint64_t h = probe_hash(peer, len), *slot, word;

	if (!h)
		return;
	slot = slot_find(h, seconds(now), &word);
	if (is_entry(word, h, seconds(now)) && (word & ANSWER_MASK) == answer)
		__atomic_compare_exchange_n(slot, &word, 0, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
}

void probe_flight_end(const struct sockaddr *peer, socklen_t len, uint64_t now)
{
	forget(peer, len, PROBE_ASKED, now);
}

void probe_doubt(const struct sockaddr *peer, socklen_t len, uint64_t now)
{
	forget(peer, len, PROBE_DDP, now);
}
