/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way into a job: connections to its console, until they have said who they are.
 *
 * A connection without the secret is closed, and is told nothing. A worker says hello at once: so
 * connections that say nothing stay with the kernel for a while, and of those whose hello is not
 * whole the oldest is closed when there are too many.
 */
#include "am/job_join.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"

#define HELLO_WAIT_S 10 /* the kernel keeps those that say nothing to itself */
#define BACKLOG 1024

int am_join_open(struct am_join *j, uint32_t address)
{
	socklen_t len = sizeof(j->name);
	int seconds = HELLO_WAIT_S;

	/* other machines have no business at a console that they cannot have workers of */
	j->name = (struct sockaddr_in){ .sin_family = AF_INET };
	if (address == htonl(INADDR_LOOPBACK))
		j->name.sin_addr.s_addr = address;
	j->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (j->listener < 0 ||
	    bind(j->listener, (struct sockaddr *)&j->name, sizeof(j->name)) < 0 ||
	    listen(j->listener, BACKLOG) < 0 ||
	    getsockname(j->listener, (struct sockaddr *)&j->name, &len) < 0)
		return -errno;
	/* a flood of the silent must not push out a worker between its connect() and its hello */
	setsockopt(j->listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof(seconds));
	j->name.sin_addr.s_addr = address;
	return 0;
}

int am_join_poll(const struct am_join *j, struct pollfd *fds)
{
	int i, n = 0;

	fds[n++] = (struct pollfd){ j->listener, POLLIN, 0 };
	for (i = 0; i < j->num_pending; i++)
		fds[n++] = (struct pollfd){ j->pending[i].fd, POLLIN, 0 };
	return n;
}

/* The number of one process: waitid() and kill() take 0 and negative numbers for many. */
static bool hello_holds(const struct am_join *j, const struct am_job_hello *hello)
{
	return hello->magic == AM_JOB_MAGIC && hello->secret == j->secret && hello->pid > 0 &&
	       hello->pid <= INT32_MAX;
}

/* 0: it has come in, -EAGAIN: it has not said all, -EACCES: it does not come in. */
static int pending_read(const struct am_join *j, struct am_join_pending *p)
{
	struct am_job_hello *h = &p->hello;
	ssize_t n = recv(p->fd, (char *)h + p->used, sizeof(*h) - p->used, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (n <= 0)
		return -EACCES;
	p->used += (size_t)n;
	if (p->used < sizeof(*h))
		return -EAGAIN;
	*h = (struct am_job_hello){ be32toh(h->magic), be32toh(h->channel), be64toh(h->secret),
				    be32toh(h->rank), be32toh(h->pid) };
	return hello_holds(j, h) ? 0 : -EACCES;
}

static void pending_drop(struct am_join *j, int i)
{
	j->num_pending--;
	memmove(&j->pending[i], &j->pending[i + 1],
		(size_t)(j->num_pending - i) * sizeof(j->pending[0]));
}

/* The oldest has had its chance. */
static void pending_keep(struct am_join *j, const struct am_join_pending *p)
{
	if (j->num_pending == AM_JOIN_PENDING) {
		close(j->pending[0].fd);
		pending_drop(j, 0);
	}
	j->pending[j->num_pending++] = *p;
}

static int pending_next(struct am_join *j, struct am_job_hello *hello)
{
	int i = 0;

	while (i < j->num_pending) {
		struct am_join_pending p = j->pending[i];
		int ret = pending_read(j, &j->pending[i]);

		if (ret == -EAGAIN) {
			i++;
			continue;
		}
		*hello = j->pending[i].hello;
		pending_drop(j, i);
		if (ret == 0)
			return p.fd;
		close(p.fd);
	}
	return -EAGAIN;
}

/* It may have gone again, or been turned away by the host, before it was accepted. */
static int accept_error(void)
{
	bool lacks = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;

	return lacks ? -errno : -EAGAIN;
}

int am_join_next(struct am_join *j, struct am_job_hello *hello)
{
	int i, one = 1, ret = pending_next(j, hello);

	/* a flood must not keep the caller here */
	for (i = 0; i < AM_JOIN_PENDING && ret == -EAGAIN; i++) {
		struct am_join_pending new = { .fd = accept4(j->listener, NULL, NULL,
							     SOCK_CLOEXEC) };

		if (new.fd < 0)
			return accept_error();
		setsockopt(new.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		ret = pending_read(j, &new);
		if (ret == 0) {
			*hello = new.hello;
			return new.fd;
		}
		if (ret == -EAGAIN)
			pending_keep(j, &new);
		else
			close(new.fd);
		ret = -EAGAIN;
	}
	return ret;
}
