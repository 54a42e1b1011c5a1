/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every kind of worker shares, whoever brought it into its job: waiting for the others while
 * the endpoint is polled, and leaving.
 */
#include "am/job.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "am/bundle.h"
#include "am/env.h"
#include "am/live.h"

#define FLUSH_TRIES 100

struct am_job am_job = { .rank = -1 };

void (*AMUDP_SPMDkillmyprocess)(int exitcode) = _exit;

/* A stream that another thread holds for long is left as it is: the end must come. */
static void stream_flush(FILE *stream)
{
	int i;

	for (i = 0; i < FLUSH_TRIES; i++) {
		if (ftrylockfile(stream) == 0) {
			fflush(stream);
			funlockfile(stream);
			return;
		}
		usleep(1000);
	}
}

void am_job_leave(int code)
{
	if (am_job.exit_callback)
		am_job.exit_callback(code);
	stream_flush(stdout);
	stream_flush(stderr);
	if (am_env_bool("FS_SYNC", false))
		sync();
	if (am_job.endpoint)
		am_live_unlink(am_job.endpoint);
	AMUDP_SPMDkillmyprocess(code);
	_exit(code);
}

static bool readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) > 0;
}

/* poll() passes a negative descriptor over. */
static void wait_unpolled(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	while (poll(&pfd, 1, -1) <= 0)
		;
}

void am_job_endpoint_forget(const struct amudp_ep *ep)
{
	if (ep == am_job.endpoint)
		am_job.endpoint = NULL;
}

void am_job_wait_fd(int fd)
{
	struct amudp_eb *eb;
	uint64_t spin = 0;

	if (!am_job.endpoint) {
		wait_unpolled(fd);
		return;
	}
	/* the program may have moved it since the job began */
	eb = am_job.endpoint->bundle;
	am_bundle_lock(eb);
	eb->extra_fd = fd;
	while (fd < 0 || !readable(fd))
		am_bundle_wait(eb, &spin);
	eb->extra_fd = -1;
	am_bundle_unlock(eb);
}
