/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection of the console to a rank, which carries frames both ways and never waits: a rank
 * that sends half a frame, or does not take what it is sent, delays itself only.
 *
 * A rank that has not taken all that was sent is not read from: so what waits for it is bounded.
 * A call reads what has come, or sends what there is room for, and no more: the others have their
 * turn.
 */
#include "am/job_channel.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"

struct am_job_block *am_job_block_create(uint32_t kind, uint32_t value, uint32_t length)
{
	struct am_job_message head = { htobe32(kind), htobe32(value), htobe32(length) };
	struct am_job_block *b = malloc(sizeof(*b) + sizeof(head) + length);

	if (!b)
		return NULL;
	b->refs = 1;
	b->size = sizeof(head) + length;
	memcpy(b->bytes, &head, sizeof(head));
	return b;
}

uint8_t *am_job_block_data(struct am_job_block *b)
{
	return b->bytes + sizeof(struct am_job_message);
}

void am_job_block_put(struct am_job_block *b)
{
	if (b && --b->refs == 0)
		free(b);
}

void am_channel_init(struct am_channel *c, int fd)
{
	*c = (struct am_channel){ .fd = fd };
}

static void first_drop(struct am_channel *c)
{
	am_job_block_put(c->out[0]);
	c->waiting--;
	memmove(c->out, c->out + 1, (size_t)c->waiting * sizeof(*c->out));
	c->sent = 0;
}

void am_channel_close(struct am_channel *c)
{
	while (c->waiting)
		first_drop(c);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

short am_channel_events(const struct am_channel *c)
{
	if (c->waiting)
		return POLLOUT;
	return c->paused ? 0 : POLLIN;
}

void am_channel_send(struct am_channel *c, struct am_job_block *b)
{
	if (c->fd < 0)
		return;
	b->refs++;
	c->out[c->waiting++] = b;
	am_channel_flush(c);
}

void am_channel_flush(struct am_channel *c)
{
	while (c->waiting) {
		struct am_job_block *b = c->out[0];
		ssize_t n = send(c->fd, b->bytes + c->sent, b->size - c->sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			/* a frame that is cut short must not be followed by another one */
			shutdown(c->fd, SHUT_RDWR);
			while (c->waiting)
				first_drop(c);
			return;
		}
		c->sent += (size_t)n;
		if (c->sent < b->size)
			return;
		first_drop(c);
	}
}

static int bytes_read(struct am_channel *c, void *to, size_t n)
{
	ssize_t got = recv(c->fd, to, n, MSG_DONTWAIT);

	if (got == 0)
		return -ECONNRESET;
	if (got < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	c->got += (size_t)got;
	return 0;
}

int am_channel_read_head(struct am_channel *c)
{
	struct am_job_message *head = &c->head;
	int ret;

	if (c->got >= sizeof(*head))
		return 0;
	ret = bytes_read(c, (uint8_t *)head + c->got, sizeof(*head) - c->got);
	if (ret < 0)
		return ret;
	if (c->got < sizeof(*head))
		return -EAGAIN;
	*head = (struct am_job_message){ be32toh(head->kind), be32toh(head->value),
					 be32toh(head->length) };
	return 0;
}

int am_channel_read_data(struct am_channel *c, uint8_t *to)
{
	size_t done = c->got - sizeof(c->head), left = c->head.length - done;
	int ret = left ? bytes_read(c, to + done, left) : 0;

	if (ret < 0)
		return ret;
	if (c->got < sizeof(c->head) + c->head.length)
		return -EAGAIN;
	c->got = 0;
	return 0;
}
