/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The first words on an iWARP connection, which siw does not always take in.
 *
 * As responder it does not look at what arrives while it sends its Reply, until the next segment
 * comes. So an initiator that has sent something, and has heard nothing for a while, sends a Write
 * of no octets, and again after twice as long, for that one may have come as early.
 *
 * As initiator it gives a connection up if anything stands behind the Reply when it reads that. So
 * a responder says nothing before it has heard of its peer (RFC 5044 section 7.1.3), but for a
 * while only: a peer of rsockets may have nothing to say.
 *
 * A timer stands in the connection's epoll set meanwhile, for who waits sleeps there.
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
#define GATE_NS (100 * BASE_NS_PER_MS)

static int timer_set(int fd, uint64_t ns)
{
	struct itimerspec when = { .it_value.tv_nsec = (long)ns };

	return syscall(SYS_timerfd_settime, fd, 0, &when, NULL) ? -errno : 0;
}

static int timer_create_in(struct verbs_stream *s, uint64_t ns)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &s->timer };
	int fd = (int)syscall(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0)
		return -errno;
	/* Before it enters the set, which knows it by its number, too, and gives it up by that */
	fd = base_fd_keep(fd);
	if (timer_set(fd, ns) || syscall(SYS_epoll_ctl, s->native.fd, EPOLL_CTL_ADD, fd, &event)) {
		base_fd_drop(fd);
		base_fd_close(fd);
		return -EPERM;
	}
	s->timer = fd;
	return 0;
}

/* Without a descriptor for it the peer is left as it is */
static void wait_begin(struct verbs_stream *s, enum verbs_nudge what, uint64_t ns)
{
	verbs_store(&s->nudge, timer_create_in(s, ns) ? VERBS_NUDGE_OVER : what);
}

void verbs_stream_nudge_init(struct verbs_stream *s, bool initiator)
{
	if (s->id->verbs->device->transport_type != IBV_TRANSPORT_IWARP)
		return;
	if (initiator)
		verbs_store(&s->nudge, VERBS_NUDGE_LATER);
	else
		wait_begin(s, VERBS_NUDGE_GATED, GATE_NS);
}

void verbs_stream_nudge_look(struct verbs_stream *s)
{
	if (s->nudge == VERBS_NUDGE_LATER && verbs_load(&s->posted))
		wait_begin(s, VERBS_NUDGE_DUE, NUDGE_NS);
}

/* A child may have the timer too, and then the set would keep it */
void verbs_stream_nudge_end(struct verbs_stream *s)
{
	if (s->nudge >= VERBS_NUDGE_DUE) {
		syscall(SYS_epoll_ctl, s->native.fd, EPOLL_CTL_DEL, s->timer, NULL);
		base_fd_drop(s->timer);
		base_fd_close(s->timer);
	}
	verbs_store(&s->nudge, VERBS_NUDGE_OVER);
}

/* There are devices that look the STag up for no octet */
void verbs_stream_nothing(const struct verbs_stream *s, struct ibv_send_wr *wr)
{
	wr->wr.rdma.rkey = verbs_load(&s->window_key);
	wr->wr.rdma.remote_addr = s->window_to;
	if (!wr->wr.rdma.rkey)
		wr->wr.rdma.rkey = 1;
}

/* It completes only if it fails, and then as a message that has not come */
static void nudge(struct verbs_stream *s)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .wr_id = verbs_stream_id(true, 0) },
			   *bad;

	verbs_stream_nothing(s, &wr);
	base_debug("verbs: a peer has not answered: a Write of no octets");
	ibv_post_send(s->id->qp, &wr, &bad);
}

/* It may have spoken before it has looked, and looks from then on */
void verbs_stream_nudge_heard(struct verbs_stream *s)
{
	bool sent = s->nudge == VERBS_NUDGE_LATER && verbs_load(&s->posted);

	if (sent || s->nudge == VERBS_NUDGE_DUE)
		nudge(s);
	verbs_stream_nudge_end(s);
}

bool verbs_stream_nudge_go(struct verbs_stream *s)
{
	bool gated = s->nudge == VERBS_NUDGE_GATED;

	if (!gated) {
		nudge(s);
		s->nudges++;
	}
	if (gated || s->nudges == VERBS_NUDGES || timer_set(s->timer, NUDGE_NS << s->nudges))
		verbs_stream_nudge_end(s);
	return gated;
}
