/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Buckets that hold a second's answers and fill as time goes by. What is kept of one is the time at
 * which it will be full: each answer puts that off by its share of a second, and none is given that
 * would put it off by more than a second.
 *
 * Hosts share the buckets by a hash with a secret key, so that nobody can choose whose he empties.
 */
#include "preload/rules/answer_rate.h"

#include "base/bits.h"

static bool has_room(const struct answer_bucket *b, unsigned int rate, uint64_t now)
{
	return base_max(b->at, now) + BASE_NS_PER_S / rate <= now + BASE_NS_PER_S;
}

static void take(struct answer_bucket *b, unsigned int rate, uint64_t now)
{
	b->at = base_max(b->at, now) + BASE_NS_PER_S / rate;
}

bool answer_rate_take(struct answer_rate *r, uint64_t hash, uint64_t now)
{
	struct answer_bucket *one = &r->one[hash % ANSWER_RATE_HOSTS];

	if (!has_room(one, ANSWER_RATE_ONE, now) || !has_room(&r->all, ANSWER_RATE_ALL, now))
		return false;
	take(one, ANSWER_RATE_ONE, now);
	take(&r->all, ANSWER_RATE_ALL, now);
	return true;
}
