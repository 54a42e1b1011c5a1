/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A cache of fixed size, as that of probe.c: an entry is one word, read and written whole without a
 * lock, and a row that is full loses what would be forgotten first. Each word means something,
 * whatever another process of the family wrote there.
 *
 * A host stands there as its address with port 0. How often it was silent outlives the time for
 * which it is left alone, since the next one is to be twice as long.
 */
#include "preload/rules/ask_known.h"

#include <netinet/in.h>
#include <string.h>

#include "base/address.h"
#include "base/bits.h"
#include "base/map.h"
#include "preload/rules/probe.h"

#define ROWS 256u
#define WAYS 4u
/* A host that was silent counts as one for so long behind that */
#define SILENT_LEVEL_S 600
#define LIFE_MAX_S 86400

/* A word: tag, 32 bits; second when it is over, 24; how often silent, 4; enum ask_known, 4 */
#define TAG_SHIFT 32
#define TIME_SHIFT 8
#define TIME_MASK 0xffffffu
#define LEVEL_SHIFT 4
#define PART_MASK 15u
#define LEVEL_MAX 5u

static uint64_t own[ROWS][WAYS];
static uint64_t (*cache)[WAYS] = own; /* its words atomic */

struct place {
	uint64_t hash; /* 0: no address of IP */
	unsigned int now;
};

static struct place place_of(const struct sockaddr *peer, socklen_t len, uint64_t now)
{
	return (struct place){ probe_hash(peer, len),
			       (unsigned int)(now / BASE_NS_PER_S) & TIME_MASK };
}

static struct place host_of(const struct sockaddr *peer, socklen_t len, uint64_t now)
{
	struct sockaddr_in6 host = { .sin6_family = AF_UNSPEC };

	memcpy(&host, peer, base_min((size_t)len, sizeof(host)));
	base_address_set_port(&host, 0);
	return place_of((struct sockaddr *)&host, base_min(len, (socklen_t)sizeof(host)), now);
}

static enum ask_known state_of(uint64_t word)
{
	return (enum ask_known)(word & PART_MASK);
}

static unsigned int level_of(uint64_t word)
{
	return base_min((unsigned int)(word >> LEVEL_SHIFT) & PART_MASK, LEVEL_MAX);
}

/* Seconds until it is over; less than 0: so long ago */
static int left(uint64_t word, unsigned int now)
{
	unsigned int s = ((unsigned int)(word >> TIME_SHIFT) - now) & TIME_MASK;

	return s > TIME_MASK / 2 ? (int)s - (int)TIME_MASK - 1 : (int)s;
}

/* Seconds until there is no trace of it; 0: there is none */
static int worth(uint64_t word, unsigned int now)
{
	int s = left(word, now) + (state_of(word) == ASK_KNOWN_SILENT ? SILENT_LEVEL_S : 0);

	return word && s > 0 && s <= LIFE_MAX_S + SILENT_LEVEL_S ? s : 0;
}

static bool is_of(uint64_t word, const struct place *p)
{
	return worth(word, p->now) && word >> TAG_SHIFT == p->hash >> TAG_SHIFT;
}

/* Where it stands in its row, or else may stand, and the word that was there then */
static uint64_t *find(const struct place *p, uint64_t *word)
{
	uint64_t *row = cache[p->hash >> 8 & (ROWS - 1)], *best = NULL;

	for (unsigned int i = 0; i < WAYS; i++) {
		uint64_t is = __atomic_load_n(&row[i], __ATOMIC_RELAXED);
		bool found = is_of(is, p);

		if (best && !found && worth(is, p->now) >= worth(*word, p->now))
			continue;
		best = &row[i];
		*word = is;
		if (found)
			break;
	}
	return best;
}

static uint64_t word_of(const struct place *p, enum ask_known state, uint64_t seconds,
			unsigned int level)
{
	uint64_t until = (p->now + base_min(seconds, (uint64_t)LIFE_MAX_S)) & TIME_MASK;

	return p->hash >> TAG_SHIFT << TAG_SHIFT | until << TIME_SHIFT | level << LEVEL_SHIFT |
	       state;
}

/* What is said of it now, and the word that says so; 0 where there is none */
static enum ask_known known_of(const struct place *p, uint64_t *word)
{
	if (!p->hash)
		return ASK_KNOWN_NOTHING;
	find(p, word);
	if (!is_of(*word, p))
		*word = 0;
	return *word && left(*word, p->now) > 0 ? state_of(*word) : ASK_KNOWN_NOTHING;
}

static void store(const struct place *p, enum ask_known state, uint64_t seconds, unsigned int level)
{
	uint64_t was;

	if (p->hash)
		__atomic_store_n(find(p, &was), word_of(p, state, seconds, level),
				 __ATOMIC_RELAXED);
}

void ask_known_init(void)
{
	void *p;

	if (!base_map_create_shared(sizeof(own), &p))
		cache = p;
}

enum ask_known ask_known(const struct sockaddr *peer, socklen_t len, uint64_t now)
{
	struct place p = place_of(peer, len, now), host = host_of(peer, len, now);
	uint64_t word;
	enum ask_known known = known_of(&p, &word);

	if (known == ASK_KNOWN_YES || known == ASK_KNOWN_NO)
		return known;
	/* Refused by its kernel, say, while another question is out */
	return known_of(&host, &word) != ASK_KNOWN_NOTHING ? known_of(&host, &word) : known;
}

bool ask_known_claim(const struct sockaddr *peer, socklen_t len, uint64_t now)
{
	struct place p = place_of(peer, len, now);
	uint64_t mine = word_of(&p, ASK_KNOWN_ASKED, ASK_KNOWN_OUT / BASE_NS_PER_S, 0), was, *slot;

	if (!p.hash)
		return false;
	do {
		slot = find(&p, &was);
		if (is_of(was, &p))
			return false;
	} while (!__atomic_compare_exchange_n(slot, &was, mine, false, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return true;
}

void ask_known_answer(const struct sockaddr *peer, socklen_t len, bool yes, uint64_t life,
		      uint64_t now)
{
	struct place p = place_of(peer, len, now), host = host_of(peer, len, now);
	uint64_t word;

	if (yes)
		store(&p, ASK_KNOWN_YES, ASK_KNOWN_LIFE / BASE_NS_PER_S, 0);
	else
		store(&p, ASK_KNOWN_NO, life / BASE_NS_PER_S, 0);
	known_of(&host, &word);
	if (word)
		store(&host, ASK_KNOWN_NOTHING, 0, 0);
}

void ask_known_silent(const struct sockaddr *peer, socklen_t len, uint64_t now)
{
	struct place host = host_of(peer, len, now);
	unsigned int level = 0;
	uint64_t word;

	/* Several questions to it were out */
	if (known_of(&host, &word) == ASK_KNOWN_SILENT || !host.hash)
		return;
	if (word && state_of(word) == ASK_KNOWN_SILENT)
		level = base_min(level_of(word) + 1, LEVEL_MAX);
	store(&host, ASK_KNOWN_SILENT, base_min(ASK_SILENT_MIN_S << level, ASK_SILENT_MAX_S),
	      level);
}

void ask_known_far(const struct sockaddr *peer, socklen_t len, uint64_t now)
{
	struct place host = host_of(peer, len, now);

	store(&host, ASK_KNOWN_FAR, ASK_KNOWN_LIFE / BASE_NS_PER_S, 0);
}
