/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_PIECES_H
#define PRELOAD_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* What a program gave as buffers, judged as the kernel does before anything moves */
struct pieces {
	const struct iovec *iov;
	int n;
	size_t len;   /* of all, at most as much as the kernel moves in one call */
	size_t sound; /* octets before the first piece that cannot be memory */
	int n_sound;
};

/* 0, -EINVAL or -EFAULT */
int pieces_init(struct pieces *p, const struct iovec *iov, long n);

/*
 * The octets behind the first @done, up to @max, in @rest; how many pieces that are, at most
 * @room
 */
int pieces_rest(const struct pieces *p, size_t done, size_t max, struct iovec *rest, int room);

/* Nobody can map less (vm.mmap_min_addr), or beyond the half of programs */
#define PIECES_FIRST 0x10000u
#define PIECES_END ((uintptr_t)1 << 56)

static inline bool pieces_far(const void *p, size_t len)
{
	return (uintptr_t)p >= PIECES_END || len > PIECES_END - (uintptr_t)p;
}

/* Can no memory of a program be there? */
static inline bool pieces_wild(const void *p, size_t len)
{
	return (uintptr_t)p < PIECES_FIRST || pieces_far(p, len);
}

#endif
