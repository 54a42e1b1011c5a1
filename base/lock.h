/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A lock that may lie in memory shared by processes, survives the death of its owner, and holds
 * nothing but a number, so that whoever writes rubbish over it harms no one else: it can be had
 * wrongly, or late, but never hangs and never leads anywhere. What it guards may then be half
 * changed, or be changed by another at the same time: who gets -EOWNERDEAD holds the lock, and it
 * alone is told. The user of the lock must treat what it guards as lost; the lock itself goes on
 * working.
 *
 * Never held across a sleep, unless its owner says so. All zeros is a free one.
 */
struct base_lock {
	uint32_t word;	 /* atomic: 0, or the owner's process; lock.c */
	uint32_t asleep; /* atomic: since when the owner sleeps with it, for as long as it likes */
};

void base_lock_init(struct base_lock *lock);
/*
 * Of a PID namespace other than the caller's, where nobody can be seen, @space is all that is
 * known: may a process of such a one have the lock? NULL: it may.
 */
typedef bool base_lock_may_fn(const void *ctx, uint32_t space);
/* What a lock keeps of base_process.space */
#define BASE_LOCK_SPACE 0x7fu
/*
 * 0, or -EOWNERDEAD: held as well, but the owner before died in it, or nobody gave it back in
 * BASE_LOCK_TIMEOUT, and its owner was not stopped
 */
#define BASE_LOCK_TIMEOUT (10 * 1000000000ull)
int base_lock_take(struct base_lock *lock, base_lock_may_fn *may, const void *ctx);
void base_lock_drop(struct base_lock *lock);
/*
 * The owner sleeps from now on, or does so no more. Whoever comes looks first, since to take the
 * lock would be to wait for the end of that: others are asked for behind it
 */
void base_lock_sleep(struct base_lock *lock, bool on);
/* Does an owner that is known to live sleep with it? */
bool base_lock_sleeps(const struct base_lock *lock);
/*
 * Who of this process is inside when it is called has left when it returns; who comes later sees
 * what the caller wrote before
 */
void base_lock_pass(struct base_lock *lock);

#endif
