/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll() by select().
 *
 * The kernel lets poll() look at no more descriptors than a process may open, so one that has set
 * RLIMIT_NOFILE to 0, to open none any more, cannot poll those that it has. select() is bound by
 * what is open.
 */
#include "base/select.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/fdutil.h"
#include "base/sockutil.h"

/* The sets lie on the stack */
#define MOST (64 * 1024)
#define WORD (CHAR_BIT * sizeof(unsigned long))

enum { IN, OUT, EXCEPT, SETS };

static const short kinds[SETS] = {
	[IN] = POLLIN | POLLRDNORM | POLLRDHUP,
	[OUT] = POLLOUT | POLLWRNORM,
	[EXCEPT] = POLLPRI,
};

static int numbers(const struct pollfd *fds, unsigned int n)
{
	int most = 0;

	for (unsigned int i = 0; i < n; i++)
		most = base_max(most, fds[i].fd + 1);
	return most;
}

static void sets_fill(unsigned long *sets, size_t words, const struct pollfd *fds, unsigned int n)
{
	memset(sets, 0, SETS * words * sizeof(*sets));
	for (unsigned int i = 0; i < n; i++)
		for (int k = 0; k < SETS && fds[i].fd >= 0; k++)
			if (fds[i].events & kinds[k])
				sets[(size_t)k * words + (size_t)fds[i].fd / WORD] |=
					1ul << (size_t)fds[i].fd % WORD;
}

static short answer(const unsigned long *sets, size_t words, const struct pollfd *p)
{
	short found = 0;

	if (p->fd < 0)
		return 0;
	for (int k = 0; k < SETS; k++)
		if (sets[(size_t)k * words + (size_t)p->fd / WORD] & 1ul << (size_t)p->fd % WORD)
			found |= kinds[k];
	found &= p->events;
	if (found & POLLRDHUP && base_sock_unread(p->fd) != 0)
		found &= ~POLLRDHUP;
	return found;
}

/* @closed: some are, and none was looked at */
static int answers(const unsigned long *sets, size_t words, struct pollfd *fds, unsigned int n,
		   bool closed)
{
	int ready = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (!closed)
			fds[i].revents = answer(sets, words, &fds[i]);
		else
			fds[i].revents = fds[i].fd >= 0 && !base_fd_is_open(fds[i].fd) ? POLLNVAL
										       : 0;
		ready += fds[i].revents != 0;
	}
	return ready;
}

int base_select(struct pollfd *fds, unsigned int n, struct timespec *limit, const sigset_t *mask)
{
	const struct {
		const sigset_t *mask;
		size_t size;
	} sig = { mask, _NSIG / 8 };
	int most = numbers(fds, n), saved = errno, err;
	size_t words = ((size_t)most + WORD - 1) / WORD;
	unsigned long *sets;
	long r;

	if (most > MOST)
		return -EINVAL;
	sets = __builtin_alloca(SETS * words * sizeof(*sets) + 1);
	sets_fill(sets, words, fds, n);
	r = syscall(SYS_pselect6, most, sets + IN * words, sets + OUT * words,
		    sets + EXCEPT * words, limit, &sig);
	err = r < 0 ? errno : 0;
	errno = saved;
	if (err && err != EBADF)
		return err == EPERM ? -EINVAL : -err;
	return answers(sets, words, fds, n, err);
}
