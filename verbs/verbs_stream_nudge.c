/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A peer that overlooks what comes first: siw as responder does not look at what arrives while it
 * sends its Reply, until the next segment comes. So an initiator that has sent something, and has
 * heard nothing for a while, sends one Write of no octets. A timer stands in the connection's epoll
 * set meanwhile, for who waits for the answer sleeps there.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "verbs/verbs_stream.h"

#define NUDGE_NS (20 * BASE_NS_PER_MS)

void verbs_stream_nudge_init(struct verbs_stream *s)
{
	if (!s->native.apart)
		s->nudge = VERBS_NUDGE_LATER;
}

/* Without a descriptor for it the peer is left as it is */
static int timer_create_in(struct verbs_stream *s)
{
	struct itimerspec when = { .it_value.tv_nsec = NUDGE_NS };
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &s->timer };
	int fd = (int)syscall(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (syscall(SYS_timerfd_settime, fd, 0, &when, NULL) ||
	    syscall(SYS_epoll_ctl, s->native.fd, EPOLL_CTL_ADD, fd, &event)) {
		base_fd_close(fd);
		return -EPERM;
	}
	s->timer = base_fd_keep(fd);
	return 0;
}

void verbs_stream_nudge_look(struct verbs_stream *s)
{
	if (s->nudge != VERBS_NUDGE_LATER || !verbs_load(&s->posted))
		return;
	s->nudge = timer_create_in(s) ? VERBS_NUDGE_OVER : VERBS_NUDGE_DUE;
}

/* A child may have the timer too, and then the set would keep it */
void verbs_stream_nudge_end(struct verbs_stream *s)
{
	if (s->nudge == VERBS_NUDGE_DUE) {
		syscall(SYS_epoll_ctl, s->native.fd, EPOLL_CTL_DEL, s->timer, NULL);
		base_fd_drop(s->timer);
		base_fd_close(s->timer);
	}
	s->nudge = VERBS_NUDGE_OVER;
}

/* It completes only if it fails, and then as a message that has not come */
void verbs_stream_nudge_go(struct verbs_stream *s)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .wr_id = verbs_stream_id(true, 0) },
			   *bad;

	verbs_stream_nudge_end(s);
	wr.wr.rdma.rkey = 1; /* nobody looks at it */
	base_debug("verbs: a peer has not answered: a Write of no octets");
	ibv_post_send(s->id->qp, &wr, &bad);
}
