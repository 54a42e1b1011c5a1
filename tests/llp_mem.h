/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_LLP_MEM_H
#define TESTS_LLP_MEM_H

#include "llp/llp.h"

/*
 * A pair in memory, for tests: what one end sends the other receives, after what the tampering
 * below does to it
 */
struct llp_mem;

struct llp_mem_tamper {
	size_t cut;  /* a recv returns at most so many octets; 0: as many as there are */
	size_t take; /* a send takes at most so many octets; 0: all that fit */
	/* so many recv calls answer -EAGAIN before each one that gives octets */
	unsigned int delay;
	/* with flip_mask != 0: the octet at this offset of the direction is XORed */
	unsigned long flip_at;
	unsigned char flip_mask;
};

/*
 * Both ends; each direction holds @capacity octets. llp.fd is an eventfd that is readable when
 * input or an end is there.
 */
int llp_mem_pair(size_t capacity, struct llp **a, struct llp **b);
/*
 * What happens to octets that @l sends from now on; the offset of flip_at counts from the first
 * octet ever sent
 */
void llp_mem_tamper(struct llp *l, const struct llp_mem_tamper *t);
void llp_mem_set_emss(struct llp *l, unsigned int emss);
void llp_mem_destroy(struct llp *a, struct llp *b);

#endif
