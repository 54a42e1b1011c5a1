/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SO_KEEPALIVE: where nothing has come or left for as long as the program says, a Write of no
 * octets goes, as with rsockets. Whether it comes to the peer is the transport's affair, which
 * sends it again, and gives the connection up when nobody answers: how long that takes is its own.
 *
 * There is one at a time. It completes as a message does, for it counts as nothing that was sent.
 * A timer stands in the connection's epoll set as long as the program wishes it, so it goes when
 * somebody waits for the connection, or comes by.
 */
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "verbs/verbs_stream.h"

static void timer_set(int fd, uint64_t ns)
{
	struct itimerspec when = { .it_value = { (time_t)(ns / BASE_NS_PER_S),
						 (long)(ns % BASE_NS_PER_S) } };

	syscall(SYS_timerfd_settime, fd, 0, &when, NULL);
}

/* Once for a connection: one that is not set tells nothing. False: there is none */
static bool timer_make(struct verbs_stream *s)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &s->keep_timer };
	int fd = (int)syscall(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0)
		return false;
	/* Before it enters the set, which gives it up by its number */
	fd = base_fd_keep(fd);
	if (syscall(SYS_epoll_ctl, s->native.fd, EPOLL_CTL_ADD, fd, &event)) {
		base_fd_drop(fd);
		base_fd_close(fd);
		return false;
	}
	s->keep_timer = fd;
	return true;
}

/* Pairs with verbs_stream_keep_look() */
void verbs_stream_keepalive(struct rnic_native *n, uint64_t ns)
{
	verbs_store(&base_container_of(n, struct verbs_stream, native)->keep_wish, ns);
}

/* Without a descriptor for a timer the peer is not asked */
void verbs_stream_keep_look(struct verbs_stream *s)
{
	uint64_t wish = verbs_load(&s->keep_wish);

	if (wish == s->keep_ns || verbs_load(&s->phase) != VERBS_OPEN)
		return;
	s->keep_ns = wish;
	s->moved = base_now();
	if (s->keep_timer < 0 && !timer_make(s))
		return;
	timer_set(s->keep_timer, wish);
}

static void keepalive(struct verbs_stream *s)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
				  .wr_id = VERBS_STREAM_KEEP,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	verbs_stream_nothing(s, &wr);
	base_debug("verbs: nothing has come for a while: a Write of no octets");
	s->keep_out = !ibv_post_send(s->id->qp, &wr, &bad);
}

void verbs_stream_keep_go(struct verbs_stream *s)
{
	uint64_t now = base_now(), quiet = now - s->moved;
	bool due = quiet >= s->keep_ns;

	if (due && !s->keep_out)
		keepalive(s);
	if (due)
		s->moved = now;
	timer_set(s->keep_timer, due ? s->keep_ns : s->keep_ns - quiet);
}

/* A child may have the timer too, and then the set would keep it */
void verbs_stream_keep_end(struct verbs_stream *s)
{
	if (s->keep_timer < 0)
		return;
	syscall(SYS_epoll_ctl, s->native.fd, EPOLL_CTL_DEL, s->keep_timer, NULL);
	base_fd_drop(s->keep_timer);
	base_fd_close(s->keep_timer);
	s->keep_timer = -1;
}
