/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_JOB_MASTER_H
#define AM_JOB_MASTER_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "am/console.h"
#include "am/job.h"
#include "am/job_collective.h"
#include "am/job_join.h"
#include "am/job_rank.h"

/* The console of a job. */
struct am_master {
	const struct am_master_config *config;
	struct am_join join;
	uint64_t nonce;
	uint64_t id;
	struct am_rank *workers; /* by rank once all have joined, by arrival before */
	int joined;
	int first; /* is served first: the one behind the rank that last made the others wait */
	struct am_collective collective;
	int channels; /* of a rank: without those of output where that does not come by us */
	bool parts;   /* of lines are passed on, and not only whole ones */
	bool booted;
	bool ending;
	bool all_gone; /* the ranks are, and the time for what they have left runs */
	int code;
	uint64_t end_at;
	uint64_t missing_at; /* when workers that have not joined are reported; BASE_NEVER: done */
	struct pollfd *fds;
};

/* job_boot.c: a frame for a rank; without memory the process ends. */
struct am_job_block *am_master_block(uint32_t kind, uint32_t value, size_t length);
/* Starts the workers; false: they cannot be started. */
bool am_boot_spawn(struct am_master *m);
/*
 * Takes in workers, and further connections of ranks; not more than a number of them, the rest wait
 * for the next call. 0, or -errno when the console can take no connection.
 */
int am_boot_arrivals(struct am_master *m);
/* Reports, once, the workers that have not joined: a firewall or a launcher may hold them up. */
void am_boot_missing_tell(struct am_master *m);

/* job_watch.c: the job ends with this code, unless it ends already. */
void am_watch_end(struct am_master *m, int code);
/* A rank or the user says so: while the ranks come to a good end, another code goes before it. */
void am_watch_exit(struct am_master *m, int code);
/* am_boot_arrivals(); where that fails, the job ends. */
void am_watch_admit(struct am_master *m);
/* Reads what a rank sends on its control connection. */
void am_watch_control(struct am_master *m, int rank);
/* The rank's connection has ended, or its process. */
void am_watch_lost(struct am_master *m, int rank);
/* Looks for processes that have ended. */
void am_watch_look(struct am_master *m);
/* True while a rank is there, or its output. */
bool am_watch_anyone_left(const struct am_master *m);
/* Kills children that did not end when told. */
void am_watch_kill(struct am_master *m);

#endif
