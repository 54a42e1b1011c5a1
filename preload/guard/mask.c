/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The mask of a call that waits: ppoll(), pselect(), epoll_pwait(), epoll_pwait2().
 *
 * On Linux the thread has that mask while it is in the call. Here the call sleeps several times and
 * works in between. The kernel sets the mask for each sleep. Outside the sleeps the thread blocks
 * the signals of both masks, its own and the call's:
 *
 * - A signal that the call's mask blocks stays pending until the call has its result, so it cannot
 *   interrupt the call. Its handler runs behind it.
 * - A signal that only the thread's own mask blocks is delivered in a sleep and nowhere else. A
 *   call that has something to tell does not sleep, and leaves that signal pending.
 *
 * Handlers run with the call's mask when they end the call, else with the thread's own. Which, is
 * known at the end, so until then a note has neither.
 *
 * Signals of faults are not blocked. The kernel kills a process whose own fault is blocked, and
 * Linux says EFAULT where we fault on a bad address.
 */
#include "preload/guard/mask.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/guard/call.h"

#define BIT(sig) (1ull << ((sig)-1))

static const uint64_t faults = BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) |
			       BIT(SIGTRAP) | BIT(SIGSYS);

static void unblock(uint64_t set)
{
	if (set)
		syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &set, NULL, sizeof(set));
}

int mask_begin(struct mask_hold *hold, const sigset_t *mask)
{
	struct call *e = call_self;
	uint64_t own, blocked;
	int saved = errno;

	*hold = (struct mask_hold){ 0 };
	if (!e || !mask)
		return 0;
	/* The kernel reads the program's set, for the address may be bad */
	if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, mask, &own, sizeof(own))) {
		int err = errno == EFAULT ? -EFAULT : 0;

		errno = saved;
		return err;
	}
	memcpy(&blocked, mask, sizeof(blocked));
	hold->added = blocked & ~own & ~faults;
	hold->own = own & ~blocked & ~e->blocked;
	hold->notes = e->notes;
	hold->muted = e->muted;
	hold->swapped = e->swapped;
	e->swapped = hold->added | hold->own;
	/* What was noted just before counts as pending, too */
	e->muted |= blocked;
	e->kept |= own & ~e->blocked;
	unblock(blocked & ~own & faults);
	return 0;
}

static void notes_mask(struct call *e, uint64_t from, uint64_t mask)
{
	for (uint64_t left = e->noted; left; left &= left - 1) {
		struct call_note *n = &e->note[__builtin_ctzll(left)];

		if (n->order >= from)
			n->mask |= mask;
	}
}

void mask_end(const struct mask_hold *hold, bool interrupted)
{
	struct call *e = call_self;

	if (!e)
		return;
	e->muted = hold->muted;
	e->swapped = hold->swapped;
	if (e->noted)
		notes_mask(e, hold->notes, interrupted ? hold->added : hold->own);
	else
		e->kept = 0; /* else it counts until the handlers have run */
	unblock(hold->added);
}
