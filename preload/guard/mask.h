/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_MASK_H
#define PRELOAD_MASK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* What a call with a signal mask has changed in its thread */
struct mask_hold {
	uint64_t added;		 /* blocked by the call's mask alone */
	uint64_t own;		 /* by the thread's alone */
	uint64_t notes;		 /* as many had been taken before */
	uint64_t muted, swapped; /* of the thread's record, as they were */
};

/*
 * Around the waiting of a call that has a mask, as ppoll() has it; @mask may be NULL, and then
 * nothing happens. In between, signals that @mask blocks wait in the kernel. 0 or -EFAULT
 */
int mask_begin(struct mask_hold *hold, const sigset_t *mask);
/* @interrupted: the call says EINTR, so handlers run with its mask */
void mask_end(const struct mask_hold *hold, bool interrupted);

#endif
