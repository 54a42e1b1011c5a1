/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_LEASE_H
#define PRELOAD_LEASE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Leases of processors. Of all threads of a user one at a time spins on a processor: it writes the
 * end of its spin into the processor's slot of a page that the user's processes share. A lease
 * that is past is none, so a process that is killed or stopped holds none. Times are base_now()'s.
 *
 * Other processes may write anything there: at worst nobody spins, and nobody spins for longer.
 */
#define LEASE_SLOTS 1024
/* A time that lies further ahead is no lease */
#define LEASE_MAX 1000000000ull

/*
 * The page: a file of the user's runtime folder; where there can be none, memory of this process.
 * @processors: that are online
 */
void lease_init(const char *path, unsigned int processors);

/* Until @end, which becomes the lease's name. False: the slot is taken, or there is no slot */
bool lease_take(unsigned int cpu, uint64_t now, uint64_t end);
/* Gives that lease back */
void lease_give(unsigned int cpu, uint64_t end);

/* A thread of another program wants the processor: nobody spins there for a while */
void lease_busy(unsigned int cpu, uint64_t now);
/* It wanted it for a moment: the same, and nothing is concluded for the next time */
void lease_busy_briefly(unsigned int cpu, uint64_t now);
bool lease_is_busy(unsigned int cpu, uint64_t now);
/*
 * Other programs have wanted some processor for a while, and a spin on @cpu would leave none free:
 * whatever becomes ready would wait for the end of a time slice
 */
bool lease_takes_last(unsigned int cpu, uint64_t now);

#endif
