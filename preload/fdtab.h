/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_FDTAB_H
#define PRELOAD_FDTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What stands behind the descriptors that are ours. An entry embeds struct fdent at its head,
 * lies in a pool (preload/pool.h) and counts its users: the table is one, and each call that
 * works on it another.
 */
enum fd_kind { FD_SOCK = 1, FD_EPOLL };

struct fdent {
	uint32_t refs;
	uint32_t kind;
	void (*release)(struct fdent *ent); /* the last user has gone */
};

#define FDTAB_PAGE 1024u
#define FDTAB_MAX (FDTAB_PAGE * 1024u)

extern struct fdent **fdtab_pages[FDTAB_MAX / FDTAB_PAGE];

/* The question of every intercepted call */
static inline struct fdent *fdtab_peek(int fd)
{
	struct fdent **page;

	if ((unsigned int)fd >= FDTAB_MAX)
		return NULL;
	page = __atomic_load_n(&fdtab_pages[(unsigned int)fd / FDTAB_PAGE], __ATOMIC_ACQUIRE);
	return page ? __atomic_load_n(&page[(unsigned int)fd % FDTAB_PAGE], __ATOMIC_ACQUIRE)
		    : NULL;
}

static inline bool fdtab_is_ours(int fd)
{
	return __builtin_expect(fdtab_peek(fd) != NULL, 0);
}

/* NULL, or an entry of @kind with a reference for the caller */
struct fdent *fdtab_get(int fd, enum fd_kind kind);
void fdtab_hold(struct fdent *ent);
void fdtab_put(struct fdent *ent);

/*
 * Takes over the caller's reference. What stood there is thrown out: its descriptor was closed
 * behind our back.
 */
int fdtab_set(int fd, struct fdent *ent);
/* Out of the table, the table's reference to the caller; NULL @ent: whatever stands there */
struct fdent *fdtab_take(int fd, struct fdent *ent);
/* Each entry with its number; @fn may take it out */
void fdtab_each(void (*fn)(int fd, struct fdent *ent, void *ctx), void *ctx);

#endif
