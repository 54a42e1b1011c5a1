/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_SPAWN_H
#define AM_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "include/warp/amudp_spmd.h"

/* The function that this letter names, in either case; NULL: none. */
amudp_spawnfn_t am_spawn_find(char letter);
/* All workers have come, or none will: what only they needed goes. May come twice. */
void am_spawn_end(void);
/* Has this child been started for the job? Where the program's own function did that, all have. */
bool am_spawn_started(pid_t pid);
/* The job ends before all have come: who has been started and still runs is told to end. */
void am_spawn_cancel(void);

#endif
