/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytes between a job's console and its workers: whole messages over TCP, in blocking calls.
 */
#include "am/job_wire.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"

static int wait_for(int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	return poll(&pfd, 1, -1) < 0 && errno != EINTR ? -errno : 0;
}

int am_job_read(int fd, void *p, size_t n)
{
	uint8_t *at = p;
	ssize_t got;

	while (n) {
		got = recv(fd, at, n, 0);
		if (got == 0)
			return -ECONNRESET;
		if (got < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (got < 0) {
			wait_for(fd, POLLIN);
			continue;
		}
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

int am_job_write(int fd, const void *p, size_t n)
{
	const uint8_t *at = p;
	ssize_t put;

	while (n) {
		put = send(fd, at, n, MSG_NOSIGNAL);
		if (put < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (put < 0) {
			wait_for(fd, POLLOUT);
			continue;
		}
		at += put;
		n -= (size_t)put;
	}
	return 0;
}

int am_job_send(int fd, uint32_t kind, uint32_t value, const void *p, uint32_t n)
{
	struct am_job_message m = { htobe32(kind), htobe32(value), htobe32(n) };
	int ret = am_job_write(fd, &m, sizeof(m));

	return ret < 0 || !n ? ret : am_job_write(fd, p, n);
}

int am_job_receive(int fd, struct am_job_message *out)
{
	int ret = am_job_read(fd, out, sizeof(*out));

	if (ret < 0)
		return ret;
	out->kind = be32toh(out->kind);
	out->value = be32toh(out->value);
	out->length = be32toh(out->length);
	return out->length > AM_JOB_LENGTH_MAX ? -EPROTO : 0;
}
