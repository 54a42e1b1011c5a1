/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_LISTING_H
#define APPS_ARFS_LISTING_H

/* A directory that is open: what the server listed last, for the kernel asks for it in parts. */

#include "client.h"
#include "entry.h"

struct listing;

struct listing *listing_create(void);
void listing_destroy(struct listing *l);

/* The kernel's question; with keep >= 0 attributes are wanted, which it may show so long */
struct listing_ask {
	fuse_req_t req;
	uint64_t node;
	off_t offset;
	size_t room;
	double keep;
};

/* Fills @to: how many bytes, or a negative errno. At offset 0 the server is asked again */
long listing_read(struct listing *l, struct client *c, const struct listing_ask *ask, char *to);

#endif
