/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The client: it learns from a user message where the server's memory is, and writes, reads and
 * changes it.
 */
#include "ddp.h"

#include <errno.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const kinds[] = {
	[DDP_CMSG_WRITE] = "Write",
	[DDP_CMSG_READ] = "Read",
	[DDP_CMSG_ATOMIC] = "Atomic",
};

static int server_connect(const char *host, const char *port, int *out)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *addr;
	int err = getaddrinfo(host, port, &hints, &addr), fd, status;

	if (err) {
		fprintf(stderr, "warp-ddp: %s: %s\n", host, gai_strerror(err));
		return 3;
	}
	fd = socket(addr->ai_family, addr->ai_socktype, addr->ai_protocol);
	status = fd < 0 ? ddp_failed("socket") : ddp_mode_set(fd);
	if (!status && connect(fd, addr->ai_addr, addr->ai_addrlen))
		status = ddp_failed("connect");
	freeaddrinfo(addr);
	*out = fd;
	return status;
}

/* One operation and its completion */
static int operate(int fd, int type, const void *what, size_t len)
{
	struct ddp_completion c;

	if (ddp_begin(fd, type, what, len) < 0)
		return ddp_failed(kinds[type]);
	if (ddp_complete(fd, &c))
		return ddp_failed("MSG_ERRQUEUE");
	printf("%s %llu: %llu bytes, status %u\n", kinds[c.type], (unsigned long long)c.cookie,
	       (unsigned long long)c.length, c.status);
	return c.status == DDP_STATUS_OK ? 0 : 3;
}

static int rdma(int fd, const struct ddp_place *place, int type, uint64_t cookie, void *p,
		size_t len, size_t offset)
{
	struct ddp_rdma m = {
		.cookie = cookie,
		.addr = (uintptr_t)p,
		.length = len,
		.remote_to = place->to + offset,
		.remote_stag = place->stag,
	};

	return operate(fd, type, &m, sizeof(m));
}

/* The counter: adds two, and doubles what comes of it if nobody else was there */
static int count(int fd, const struct ddp_place *place)
{
	uint64_t found = 0;
	struct ddp_atomic m = {
		.cookie = 3,
		.addr = (uintptr_t)&found,
		.remote_to = place->to + offsetof(struct ddp_table, counter),
		.remote_stag = place->stag,
		.op = DDP_FETCH_ADD,
		.operand = 2,
	};
	int status = operate(fd, DDP_CMSG_ATOMIC, &m, sizeof(m));

	if (status)
		return status;
	printf("the counter was %llu\n", (unsigned long long)found);
	m.cookie = 4;
	m.op = DDP_CMP_SWAP;
	m.compare = found + 2;
	m.operand = 2 * m.compare;
	m.mask = m.compare_mask = ~0ull;
	status = operate(fd, DDP_CMSG_ATOMIC, &m, sizeof(m));
	printf("the counter was %llu\n", (unsigned long long)found);
	return status;
}

static int work(int fd, const struct ddp_place *place, const char *text)
{
	char back[DDP_ROOM] = "";
	uint64_t one = 1;
	size_t len = strlen(text) + 1;
	int status;

	status = rdma(fd, place, DDP_CMSG_WRITE, 1, (void *)(uintptr_t)text, len,
		      offsetof(struct ddp_table, text));
	if (!status)
		status = rdma(fd, place, DDP_CMSG_READ, 2, back, len,
			      offsetof(struct ddp_table, text));
	if (status)
		return status;
	printf("read back \"%s\"\n", back);
	status = count(fd, place);
	if (status)
		return status;
	return rdma(fd, place, DDP_CMSG_WRITE, 5, &one, sizeof(one),
		    offsetof(struct ddp_table, finished));
}

static int talk(int fd, const char *text)
{
	struct ddp_place place;
	char bye[8] = "";
	int status;

	if (ddp_message_recv(fd, &place, sizeof(place)) != sizeof(place))
		return ddp_failed("DDP_CMSG_SEND");
	status = ddp_info_print(fd, "client");
	if (!status)
		status = work(fd, &place, text);
	if (status)
		return status;
	if (read(fd, bye, sizeof(bye) - 1) < 0)
		return ddp_failed("read");
	printf("the server says %s\n", bye);
	return 0;
}

int ddp_client(const char *host, const char *port, const char *text)
{
	int fd = -1, status;

	if (strlen(text) >= sizeof(((struct ddp_table *)0)->text)) {
		fprintf(stderr, "warp-ddp: TEXT is too long\n");
		return 2;
	}
	status = server_connect(host, port, &fd);
	if (!status)
		status = talk(fd, text);
	if (fd >= 0)
		close(fd);
	return status;
}
