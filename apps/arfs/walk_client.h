/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_WALK_CLIENT_H
#define APPS_ARFS_WALK_CLIENT_H

#include "client.h"
#include "walk.h"

/* A walk as its client sees it. The args have what the walk does; their state is where it is. */
struct walk {
	const char *name; /* of the program, for what it says */
	struct client_attr client;
	const char *host;
	struct walk_args args;
	/* Takes what was found, but for the state; false: it makes no sense */
	bool (*take)(const struct walk_hit *hit, const char *bytes);
};

/* Runs the code on all below @where until it is done: 0, or what was wrong has been said */
int walk_all(struct walk *w, const void *elf, size_t len, const char *where);

#endif
