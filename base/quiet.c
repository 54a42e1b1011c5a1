/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes that raise no signal, by calls that a sandbox has left.
 *
 * The signal that a write() raises is its thread's. It is blocked around the write; one that
 * came is taken by read() from a signalfd, which gives the caller what waits for it, or, without
 * one, by sigtimedwait(); if it cannot be taken it stays blocked. One that had
 * been waiting before, because the program blocks it, is left there. Where signals cannot be
 * blocked, a look before the write tells whether the peer has gone; a reset in between is the one
 * case that is not quiet.
 */
#include "base/quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/fdutil.h"
#include "base/sockutil.h"

#define BIT(sig) (1ull << ((sig)-1))
#define BITS (BIT(SIGPIPE) | BIT(SIGXFSZ))

static int taker_fd = -1, broken_fd = -1; /* atomic */

int base_quiet_create(int *taker, int *broken)
{
	uint64_t mask = BITS;
	int fd[2];

	*taker = (int)syscall(SYS_signalfd4, -1, &mask, sizeof(mask), SFD_NONBLOCK | SFD_CLOEXEC);
	if (*taker < 0)
		return -errno;
	if (syscall(SYS_pipe2, fd, O_CLOEXEC) < 0) {
		int err = errno;

		base_fd_close(*taker);
		return -err;
	}
	base_fd_close(fd[0]);
	*broken = fd[1];
	return 0;
}

void base_quiet_init(int taker, int broken)
{
	__atomic_store_n(&taker_fd, taker, __ATOMIC_RELAXED);
	__atomic_store_n(&broken_fd, broken, __ATOMIC_RELAXED);
}

static bool mask_swap(int how, uint64_t mask, uint64_t *before)
{
	return !syscall(SYS_rt_sigprocmask, how, &mask, before, sizeof(mask));
}

/* Does one wait, because the program blocks it? Where nobody may ask, the taker knows */
static bool waits(void)
{
	uint64_t set = 0;

	if (!syscall(SYS_rt_sigpending, &set, sizeof(set)))
		return set & BITS;
	return base_sock_ready(__atomic_load_n(&taker_fd, __ATOMIC_RELAXED), POLLIN);
}

bool base_quiet_begin(struct base_quiet *q)
{
	if (!mask_swap(SIG_BLOCK, BITS, &q->before))
		return false;
	q->waited = q->before & BITS && waits();
	return true;
}

/* False: it is still there */
static bool take(void)
{
	int taker = __atomic_load_n(&taker_fd, __ATOMIC_RELAXED);
	struct signalfd_siginfo info;
	struct timespec none = { 0 };
	uint64_t mask = BITS;

	if (taker >= 0)
		return syscall(SYS_read, taker, &info, sizeof(info)) > 0;
	return syscall(SYS_rt_sigtimedwait, &mask, NULL, &none, sizeof(mask)) > 0;
}

void base_quiet_end(const struct base_quiet *q, bool raised)
{
	uint64_t after = q->before;

	if (raised && !q->waited && !take())
		after |= BITS;
	if (after != (q->before | BITS))
		mask_swap(SIG_SETMASK, after, NULL);
}

/* Signals cannot be blocked, or not be taken */
static long write_careful(int fd, const void *p, size_t n)
{
	long r;

	if (base_sock_ready(fd, POLLOUT) & (POLLERR | POLLHUP))
		return -EPIPE;
	r = syscall(SYS_write, fd, p, n);
	return r < 0 ? -errno : r;
}

static long write_quiet(int fd, const void *p, size_t n)
{
	struct base_quiet q;
	long r;

	if (__atomic_load_n(&taker_fd, __ATOMIC_RELAXED) < 0 || !base_quiet_begin(&q))
		return write_careful(fd, p, n);
	r = syscall(SYS_write, fd, p, n);
	r = r < 0 ? -errno : r;
	base_quiet_end(&q, r == -EPIPE);
	return r;
}

/* What fits of the rest of a list, from *@off of its first entry on */
static size_t gather(char *to, const struct iovec **iov, unsigned int *n, size_t *off)
{
	size_t len = 0;

	while (*n && len < BASE_QUIET_MAX) {
		size_t part = base_min((*iov)->iov_len - *off, BASE_QUIET_MAX - len);

		if (part)
			memcpy(to + len, (const char *)(*iov)->iov_base + *off, part);
		len += part;
		*off += part;
		if (*off < (*iov)->iov_len)
			break;
		++*iov;
		--*n;
		*off = 0;
	}
	return len;
}

long base_quiet_write(int fd, const struct iovec *iov, unsigned int n)
{
	char buf[BASE_QUIET_MAX];
	size_t off = 0, len, sum = 0;
	int saved = errno;
	long r = 0;

	while ((len = gather(buf, &iov, &n, &off))) {
		r = write_quiet(fd, buf, len);
		if (r <= 0)
			break;
		sum += (size_t)r;
		if ((size_t)r < len)
			break;
	}
	errno = saved;
	return sum ? (long)sum : r;
}

void base_quiet_raise(void)
{
	int fd = __atomic_load_n(&broken_fd, __ATOMIC_RELAXED), saved = errno;

	if (fd >= 0)
		syscall(SYS_write, fd, "", 1);
	errno = saved;
}
