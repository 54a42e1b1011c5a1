/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random octets by the raw getrandom system call.
 *
 * Numbers of four octets are many, two for each connection, so some are asked for at once. Each is
 * taken out of its place by one exchange, so nobody gets it twice. In the child of a fork, whoever
 * made it, they are its parent's: the process's number says so, and none of them is used.
 *
 * The raw call, because libc's wrapper is a cancellation point and this runs in critical
 * sections. A call of more than 256 octets may be cut short by a signal, so it loops.
 */
#include "base/rand.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/process.h"

int base_rand_fill(void *p, size_t n)
{
	unsigned char *at = p;

	while (n) {
		long got = syscall(SYS_getrandom, at, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

#define KEPT 32u

/* All atomic. 0 is none: so nobody is told 0 by way of this */
static struct {
	uint64_t owner;
	uint32_t next;
	uint32_t number[KEPT];
} kept;

static uint64_t self(void)
{
	struct base_process p = base_process_self();

	return (uint64_t)p.space << 32 | p.pid;
}

static int kept_fill(uint64_t owner)
{
	uint32_t fresh[KEPT];
	int err = base_rand_fill(fresh, sizeof(fresh));

	for (unsigned int i = 0; !err && i < KEPT; i++)
		__atomic_store_n(&kept.number[i], fresh[i], __ATOMIC_RELAXED);
	if (!err)
		__atomic_store_n(&kept.owner, owner, __ATOMIC_RELEASE);
	return err;
}

/* 0: there is none */
static uint32_t kept_take(uint64_t owner)
{
	uint32_t i;

	if (__atomic_load_n(&kept.owner, __ATOMIC_ACQUIRE) != owner)
		return 0;
	i = __atomic_fetch_add(&kept.next, 1, __ATOMIC_RELAXED) % KEPT;
	return __atomic_exchange_n(&kept.number[i], 0, __ATOMIC_RELAXED);
}

int base_rand_u32(uint32_t *out)
{
	uint64_t owner = self();
	int err;

	*out = kept_take(owner);
	if (*out)
		return 0;
	err = kept_fill(owner);
	return err ? err : base_rand_fill(out, sizeof(*out));
}

int base_rand_u64(uint64_t *out)
{
	return base_rand_fill(out, sizeof(*out));
}
