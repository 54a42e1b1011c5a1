/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What workers of our console and of a launcher share: waiting for the others while the endpoint is
 * polled, and leaving.
 */
#include "am/job.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "am/bundle.h"
#include "am/env.h"
#include "am/live.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"

#define FLUSH_TRIES 100
#define LINE_MIN 64
#define EXIT_TIMEOUT_S 60
#define LEAVE_TRIES 50 /* of 100 ms, until another thread that is leaving has left */

struct am_job am_job = { .rank = -1, .wanted = -1 };

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

/* A thread that comes second finds that the first one does not end, and ends for it. */
static void leave_alone(int code)
{
	static bool leaving;
	int i;

	if (!__atomic_exchange_n(&leaving, true, __ATOMIC_ACQ_REL)) /* with itself */
		return;
	for (i = 0; i < LEAVE_TRIES; i++)
		usleep(100000);
	_exit(code);
}

void am_job_leave(int code)
{
	leave_alone(code);
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

bool am_job_readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) > 0;
}

/* poll() passes a negative descriptor over. */
static void wait_unpolled(int fd)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLIN },
				{ .fd = am_bundle_interrupt_fd, .events = POLLIN } };

	do {
		poll(fds, 2, -1);
		am_bundle_interrupt_serve();
	} while (!fds[0].revents);
}

size_t am_job_line_size(void)
{
	int64_t size = am_env_int("LINEBUFFERSZ", 1024);

	return size ? (size_t)base_max(size, (int64_t)LINE_MIN) : 0;
}

int am_job_end_prepare(void)
{
	double seconds = am_env_double("EXITTIMEOUT", EXIT_TIMEOUT_S);

	am_job.exit_ns = seconds > 0 ? (uint64_t)(seconds * BASE_NS_PER_S) : BASE_NEVER;
	return am_bundle_interrupt_fd < 0 ? base_eventfd_create(&am_bundle_interrupt_fd) : 0;
}

void am_job_end_heard(void (*leave)(void))
{
	/* with am_bundle_interrupt_serve's load */
	__atomic_store_n(&am_bundle_interrupt, leave, __ATOMIC_RELEASE);
	base_eventfd_notify(am_bundle_interrupt_fd);
}

void am_job_end_await(void)
{
	for (;;) {
		am_job_wait_fd(am_bundle_interrupt_fd);
		am_bundle_interrupt_serve();
	}
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
	am_lock_take(&eb->lock);
	eb->extra_fd = fd;
	while (fd < 0 || !am_job_readable(fd))
		am_bundle_wait(eb, &spin);
	eb->extra_fd = -1;
	am_lock_drop(&eb->lock);
}
