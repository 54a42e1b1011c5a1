/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_EXAMPLES_PLACE_H
#define APPS_EXAMPLES_PLACE_H

/*
 * How the code of a data structure reaches it. The code is one source, for its client and for the
 * program that the client sends: the client reaches memory by RDMA, a round trip for each of these
 * calls (place_rdma.h); the program by pointers (place_memory.h).
 *
 * Addresses are the server's. Calls return 0 or a negative errno. What a peer may have written is
 * not trusted: a wrong address is an error at the client, and ends a program's run.
 */

struct place;

enum {
	PLACE_DAMAGED = -74, /* -EBADMSG: the structure holds what it cannot hold */
	PLACE_FULL = -28,    /* -ENOSPC */
	PLACE_LATE = -110,   /* -ETIMEDOUT */
	PLACE_AGAIN = -11,   /* -EAGAIN: others changed it too often meanwhile */
};

/*
 * @len bytes at @addr: the memory itself where there is a pointer to it, or a copy in @buffer.
 * NULL: place_error() says why. Of a program it is what the memory holds later, too.
 */
static inline const void *place_see(struct place *p, unsigned long addr, void *buffer,
				    unsigned long len);
static inline int place_error(const struct place *p);
static inline int place_load(struct place *p, unsigned long addr, unsigned long *value);
static inline int place_store(struct place *p, unsigned long addr, const void *from,
			      unsigned long len);
/* New memory at @addr, of which nobody else knows: it is written through the pointer, ... */
static inline void *place_draft(struct place *p, unsigned long addr, void *buffer);
/* ... and is there behind this call */
static inline int place_publish(struct place *p, unsigned long addr, const void *draft,
				unsigned long len);
/* Compare-and-swap: what was there is left in *old */
static inline int place_swap(struct place *p, unsigned long addr, unsigned long *old,
			     unsigned long value);
/* Adds to a number; what was there before into *old */
static inline int place_add(struct place *p, unsigned long addr, unsigned long add,
			    unsigned long *old);

#endif
