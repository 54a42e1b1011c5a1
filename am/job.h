/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_JOB_H
#define AM_JOB_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/warp/amudp_spmd.h"

/* How the processes of a job find each other: by our console, or by the launcher's library. */
struct am_job_ops {
	/* Each gives len bytes; all of them, in order of rank, are everybody's result. */
	int (*gather)(const void *source, void *dest, size_t len);
	int (*barrier)(void);
	/* Ends the job for all; does not return. */
	void (*end)(int code) __attribute__((noreturn));
};

struct am_job {
	const struct am_job_ops *ops; /* NULL: this process is in no job */
	int rank;
	int wanted; /* rank; -1: any */
	int size;
	int depth;   /* 0: the program's own */
	uint64_t id; /* what tags are made of */
	uint64_t nonce;
	uint32_t address; /* to bind to, network order */
	bool ending;	  /* a thread is about to leave; only job_pmix.c */
	uint64_t exit_ns; /* after another rank's good end; BASE_NEVER: no limit */
	ep_t endpoint;	  /* NULL: the program has freed it */
	void (*exit_callback)(int code);
};

extern struct am_job am_job;

/* The endpoint is being freed: if it is the job's, nobody polls it any more. */
void am_job_endpoint_forget(const struct amudp_ep *ep);
/* Polls the bundle that the job's endpoint is in until the descriptor can be read. */
void am_job_wait_fd(int fd);
bool am_job_readable(int fd);
/* Bytes of a line of output; 0: lines are not kept together. */
size_t am_job_line_size(void);
/* Before the job can end: makes the descriptor that wakes sleepers at the end. 0 or -errno. */
int am_job_end_prepare(void);
/* Another rank has ended the job with 0: the next thread that polls calls leave. */
void am_job_end_heard(void (*leave)(void));
/* Waits until then, polling, and calls it. */
void am_job_end_await(void) __attribute__((noreturn));
/* Flushes what the program printed, as far as no other thread holds the stream, and leaves. */
void am_job_leave(int code) __attribute__((noreturn));

/* job_worker.c: our own console's worker; 0 or -errno. */
bool am_worker_is(void);
/* Of a console that a rank of another job has started: what it inherits is not for its workers. */
void am_worker_forget(void);
int am_worker_join(const char *args);
/* The console that is meant, for messages. */
const char *am_worker_console(void);

/* job_master.c: runs the job and never returns. */
struct am_master_config {
	int size;
	int depth;
	amudp_spawnfn_t spawn;
	int argc;
	char **argv;	  /* of the workers */
	uint32_t address; /* of the console, network order */
};
void am_master_run(const struct am_master_config *config) __attribute__((noreturn));

/* job_pmix.c: true when a launcher that speaks PMIx started us. */
bool am_pmix_is(void);
int am_pmix_join(void);

#endif
