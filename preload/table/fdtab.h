/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_FDTAB_H
#define PRELOAD_FDTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What stands behind the descriptors that are ours. An entry embeds struct fdent at its head and
 * lies in a pool (preload/table/pool.h). It counts its users: the table is one for each number, and
 * each call that works on it another. And it counts its numbers, for the last close() is the end
 * of an open file, whoever still works on it.
 */
enum fd_kind {
	FD_SOCK = 1,
	FD_EPOLL,
	FD_INTERNAL, /* a descriptor of our own (preload/table/internal.h) */
	FD_WAITED,   /* the kernel's, but for its waits (preload/sock/waited.h) */
};

struct fdent;

struct fdent_ops {
	void (*release)(struct fdent *ent); /* the last user has gone */
	/* The program's last number goes; the kernel has not closed it yet */
	void (*end)(struct fdent *ent);
	/* From now on to be worked on by an internal descriptor, so that numbers may go; -errno */
	int (*own)(struct fdent *ent);
};

struct fdent {
	uint32_t refs;
	uint32_t kind;
	uint32_t numbers;
	uint32_t round; /* preload/calls/fork.c */
	const struct fdent_ops *ops;
};

#define FDTAB_PAGE 1024u
#define FDTAB_MAX (FDTAB_PAGE * 1024u)

/* Streams there are; atomic. Without any, a message can pass none on */
extern uint32_t fdtab_streams;
/* Entries, or more, that there are; atomic. Without any, no list has one of ours */
extern uint32_t fdtab_entries;

extern struct fdent **fdtab_pages[FDTAB_MAX / FDTAB_PAGE];

/*
 * A bit for each number that has ever had an entry; atomic. For long lists, which cost more by
 * fdtab_peek(). None is taken back: a thread that closes a number could take the bit of one that
 * has just got it
 */
extern uint64_t fdtab_had[FDTAB_MAX / 64];

/* The bit of a number in the lowest place; a number beyond the table, or none, has another's */
static inline uint64_t fdtab_had_bit(int fd)
{
	unsigned int n = (unsigned int)fd % FDTAB_MAX;

	return __atomic_load_n(&fdtab_had[n / 64], __ATOMIC_RELAXED) >> n % 64;
}

#define FDTAB_INLINE __attribute__((always_inline)) static inline

/* The question of every intercepted call, which is not to call anything for it */
FDTAB_INLINE struct fdent *fdtab_peek(int fd)
{
	struct fdent **page;

	if ((unsigned int)fd >= FDTAB_MAX)
		return NULL;
	page = __atomic_load_n(&fdtab_pages[(unsigned int)fd / FDTAB_PAGE], __ATOMIC_ACQUIRE);
	return page ? __atomic_load_n(&page[(unsigned int)fd % FDTAB_PAGE], __ATOMIC_ACQUIRE)
		    : NULL;
}

FDTAB_INLINE bool fdtab_is_ours(int fd)
{
	return __builtin_expect(fdtab_peek(fd) != NULL, 0);
}

/* Told when the entry at 0, 1 or 2 has changed; NULL: nobody */
extern void (*fdtab_standard)(int fd);

/* The same, and not for the sake of its waits alone */
FDTAB_INLINE bool fdtab_is_carried(int fd)
{
	struct fdent *ent = fdtab_peek(fd);

	return ent && ent->kind != FD_WAITED;
}

/* NULL, or an entry with a reference for the caller: of any kind, or of @kind */
struct fdent *fdtab_ref(int fd);
struct fdent *fdtab_get(int fd, enum fd_kind kind);
void fdtab_hold(struct fdent *ent);
/* Of one of a pool's: false when nobody has it */
bool fdtab_hold_living(struct fdent *ent);
static inline void fdtab_put(struct fdent *ent)
{
	if (ent && __atomic_sub_fetch(&ent->refs, 1, __ATOMIC_ACQ_REL) == 0)
		ent->ops->release(ent);
}

/* One number more, with a reference, unless the last one has gone */
bool fdtab_number_get(struct fdent *ent);
/* One less that has not come into the table */
void fdtab_number_put(struct fdent *ent);

/*
 * A new entry has one reference and one number, and fdtab_number_get() makes another of each:
 * fdtab_set() takes both over. What stood there is thrown out: its descriptor was closed behind
 * our back.
 */
int fdtab_set(int fd, struct fdent *ent);
/*
 * The same when the kernel has just put @ent's file in the place of another: that one loses its
 * number. NULL: a file that is not ours
 */
int fdtab_replace(int fd, struct fdent *ent);
/*
 * Out of the table, the table's reference to the caller; NULL @ent: whatever stands there.
 * *@last (may be NULL): it was the last number.
 */
struct fdent *fdtab_take(int fd, struct fdent *ent, bool *last);
/* Each entry with its number; @fn may take it out */
void fdtab_each(void (*fn)(int fd, struct fdent *ent, void *ctx), void *ctx);

#endif
