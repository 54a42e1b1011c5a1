/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll() and its kin, for a list with some of ours (preload/wrap.list).
 */
#include "base/clock.h"
#include "preload/guard/mask.h"
#include "preload/table/libc.h"
#include "preload/wait/polling.h"

long call_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	return polling_list(fds, n, base_deadline_ms(timeout), NULL);
}

long call___poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room)
{
	if (room / sizeof(*fds) < n)
		return CALL_THEIRS;
	return polling_list(fds, n, base_deadline_ms(timeout), NULL);
}

/* With the mask of the call */
static long list_masked(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
			const sigset_t *mask)
{
	struct mask_hold hold;
	long r;

	if (base_timespec_bad(timeout))
		return CALL_THEIRS;
	r = mask_begin(&hold, mask);
	if (r)
		return r;
	r = polling_list(fds, n, base_deadline_timespec(timeout), mask);
	mask_end(&hold, r == -EINTR);
	return r;
}

long call_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	return list_masked(fds, n, timeout, mask);
}

long call___ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		      const sigset_t *mask, size_t room)
{
	if (room / sizeof(*fds) < n)
		return CALL_THEIRS;
	return list_masked(fds, n, timeout, mask);
}
