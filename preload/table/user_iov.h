/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_USER_IOV_H
#define PRELOAD_USER_IOV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* What a program gave as buffers, judged as the kernel does before anything moves */
struct user_iov {
	const struct iovec *iov;
	int n;
	size_t len;   /* of all, at most as much as the kernel moves in one call */
	size_t sound; /* octets before the first piece that cannot be memory */
	int n_sound;
};

/* 0, -EINVAL or -EFAULT */
int user_iov_init(struct user_iov *p, const struct iovec *iov, long n);

/*
 * The octets behind the first @done, up to @max, in @rest; how many pieces that are, at most
 * @room
 */
int user_iov_rest(const struct user_iov *p, size_t done, size_t max, struct iovec *rest, int room);

/* Nobody can map less (vm.mmap_min_addr), or beyond the half of programs */
#define USER_IOV_FIRST 0x10000u
#define USER_IOV_END ((uintptr_t)1 << 56)

static inline bool user_iov_far(const void *p, size_t len)
{
	return (uintptr_t)p >= USER_IOV_END || len > USER_IOV_END - (uintptr_t)p;
}

/* Can no memory of a program be there? */
static inline bool user_iov_wild(const void *p, size_t len)
{
	return (uintptr_t)p < USER_IOV_FIRST || user_iov_far(p, len);
}

#endif
