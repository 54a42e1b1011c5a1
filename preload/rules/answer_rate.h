/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_ANSWER_RATE_H
#define PRELOAD_ANSWER_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* How often questions are answered: of all hosts, and of one, in a second */
#define ANSWER_RATE_ALL 2000u
#define ANSWER_RATE_ONE 200u
#define ANSWER_RATE_HOSTS 256u

/* All zeros: nobody has asked */
struct answer_bucket {
	uint64_t at; /* when it is full again */
};

struct answer_rate {
	struct answer_bucket all, one[ANSWER_RATE_HOSTS];
};

/* Is the question of the host that @hash stands for one to answer? */
bool answer_rate_take(struct answer_rate *r, uint64_t hash, uint64_t now);

#endif
