/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Probes that wait for what comes of another one: not an octet goes before their turn.
 */
#include "tests/unit/stream/ends.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define LONG (60 * BASE_NS_PER_S)

/* What the stream's user says, and what it is told */
static struct {
	int says;
	uint64_t again;
	unsigned int asked, probed;
} user;

static int may_probe(void *ctx, uint64_t limit, uint64_t *when)
{
	user.asked++;
	*when = base_deadline(base_now(), user.again);
	return user.says;
}

static void probed(void *ctx)
{
	user.probed++;
}

static int fd[2];

static struct stream *begin(int says, uint64_t again)
{
	user.says = says;
	user.again = again;
	user.asked = user.probed = 0;
	ends_tcp(fd);
	ends_auto = true;
	ends_param = (struct stream_param){
		.probe = true,
		.start_limit = LONG,
		.may_probe = may_probe,
		.probed = probed,
	};
	return ends_attach(fd[0], true);
}

static void end(struct stream *s)
{
	stream_destroy(s);
	close(fd[0]);
	close(fd[1]);
}

static int heard(void)
{
	struct pollfd p = { .fd = fd[1], .events = POLLIN };
	int n;

	poll(&p, 1, 20);
	cr_assert_eq(ioctl(fd[1], FIONREAD, &n), 0);
	return n;
}

Test(turn, nothing_goes_before)
{
	struct stream *s = begin(-EAGAIN, LONG);
	uint64_t now = base_now();

	cr_expect_eq(stream_progress(s), -EAGAIN);
	cr_expect_eq(stream_progress(s), -EAGAIN);
	cr_expect_eq(heard(), 0);
	cr_expect_eq(user.asked, 2);
	cr_expect_eq(stream_levels(s, NULL), 0u);
	cr_expect_eq(stream_wait_events(s, STREAM_WRITABLE), POLLIN);
	cr_expect_geq(stream_wait_deadline(s), base_deadline(now, LONG));
	cr_expect_eq(stream_starting(), 1u);
	cr_expect_eq(stream_shutdown(s, SHUT_WR), 0);
	user.says = 0;
	cr_expect_eq(stream_progress(s), -EAGAIN);
	cr_expect_gt(heard(), 20);
	cr_expect_eq(stream_progress(s), -EAGAIN);
	cr_expect_eq(user.asked, 3);
	end(s);
	cr_expect_eq(stream_starting(), 0u);
}

/* The time to be asked again is no time of the Reply */
Test(turn, it_may_be_overdue)
{
	struct stream *s = begin(-EAGAIN, 0);

	for (unsigned int i = 1; i < 10; i++) {
		cr_expect_eq(stream_progress(s), -EAGAIN);
		cr_expect_eq(user.asked, i);
	}
	ends_param.start_limit = 0;
	user.says = 0;
	cr_expect_eq(stream_progress(s), -EAGAIN);
	cr_expect_geq(stream_wait_deadline(s), base_now());
	end(s);
}

static void plain_check(struct stream *s)
{
	struct stream_stats stats;

	cr_expect_eq(stream_progress(s), -ENOMSG);
	cr_expect_eq(stream_progress(s), -ENOMSG);
	stream_stats(s, &stats);
	cr_expect_eq(stats.probe_error, 0);
	cr_expect_not(stats.failed);
	cr_expect_eq(user.probed, 0u);
	cr_expect_eq(stream_starting(), 0u);
	/* The connection that it has is the program's */
	cr_expect_eq(write(fd[0], "hello", 5), 5);
	cr_expect_eq(heard(), 5);
}

Test(turn, a_peer_that_is_known_to_be_plain)
{
	struct stream *s = begin(-EAGAIN, LONG);

	cr_expect_eq(stream_progress(s), -EAGAIN);
	user.says = -ENOMSG;
	plain_check(s);
	end(s);
}

Test(turn, a_peer_that_speaks_meanwhile)
{
	struct stream *s = begin(-EAGAIN, LONG);
	char got[8] = "";

	cr_expect_eq(stream_progress(s), -EAGAIN);
	cr_expect_eq(write(fd[1], "welcome", 7), 7);
	plain_check(s);
	cr_expect_eq(read(fd[0], got, sizeof(got)), 7);
	cr_expect_str_eq(got, "welcome");
	end(s);
}

/* Who does not wait for the Reply holds writes, and its listener may come to it first */
Test(turn, who_holds_writes_does_not_wait)
{
	struct stream *s = begin(-EAGAIN, LONG);

	stream_destroy(s);
	ends_param.hold = true;
	s = ends_attach(fd[0], true);
	cr_expect_eq(stream_progress(s), -EAGAIN);
	cr_expect_gt(heard(), 20);
	cr_expect_eq(user.asked, 0u);
	end(s);
}

/* So many octets and no more, until there is a Reply */
Test(turn, what_is_held)
{
	static uint8_t octets[100000];
	struct iovec iov = { octets, sizeof(octets) };
	struct stream *s = begin(0, 0);

	stream_destroy(s);
	ends_param.hold = true;
	s = ends_attach(fd[0], true);
	cr_expect_eq(stream_progress(s), -EAGAIN);
	cr_expect_eq(stream_levels(s, NULL), STREAM_WRITABLE);
	cr_expect_eq(stream_send(s, &iov, 1), 65536);
	cr_expect_eq(stream_send(s, &iov, 1), -EAGAIN);
	cr_expect_eq(stream_levels(s, NULL), 0u);
	end(s);
}

Test(turn, what_came_to_nothing_is_told)
{
	struct stream *s = begin(0, 0);

	base_log_level = BASE_LOG_OFF;
	cr_expect_eq(stream_progress(s), -EAGAIN);
	cr_expect_eq(user.probed, 0u);
	/* Few octets are enough, though a Reply has more */
	cr_expect_eq(write(fd[1], "-ERR\n", 5), 5);
	heard();
	cr_expect_eq(stream_progress(s), -ENOMSG);
	cr_expect_eq(user.probed, 1u);
	end(s);
}
