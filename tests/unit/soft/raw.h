/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_SOFT_RAW_H
#define TESTS_SOFT_RAW_H

/*
 * A peer made by hand: one end of a local socket pair whose other end is a queue pair's, in MPA
 * revision 1 without CRC. It writes and reads frames when the test says so.
 */
#include <endian.h>
#include <sys/socket.h>
#include <unistd.h>
#include <wire/iwarp.h>

#include "tests/unit/soft/end.h"

/* Two sockets: the first one for raw_connect(), the second one is the peer's */
static inline void raw_pair(int fd[2])
{
	int room = 1 << 18;

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
	MUST(setsockopt(fd[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)) == 0);
}

static inline void raw_connect(struct end *e, const int fd[2], uint16_t ord)
{
	static const char reply[] = "MPA ID Rep Frame\x00\x01\x00\x00";
	struct warp_conn_param p = { .ird = 16,
				     .ord = ord,
				     .flags = WARP_CONN_REV1 | WARP_CONN_NO_CRC };
	char request[20];

	MUST(warp_connect_fd(e->qp, fd[0], &p, &e->conn) == 0);
	MUST(recv(fd[1], request, 20, MSG_WAITALL) == 20);
	MUST(send(fd[1], reply, 20, 0) == 20);
	MUST(warp_conn_wait(e->conn, 5000) == 0);
}

/* One frame of @len octets of ULPDU, which may be longer than a sender of ours makes */
static inline void raw_put(int fd, const void *ulpdu, size_t len)
{
	static const uint8_t zeroes[8];
	uint8_t length[2] = { (uint8_t)(len >> 8), (uint8_t)len };

	MUST(send(fd, length, 2, 0) == 2);
	MUST(send(fd, ulpdu, len, 0) == (ssize_t)len);
	MUST(send(fd, zeroes, 4 + (-(2 + len) & 3), 0) > 0);
}

static inline void raw_recv(int fd, uint8_t *p, size_t len, void (*drive)(void))
{
	for (ssize_t n; len; p += n, len -= (size_t)n) {
		while ((n = recv(fd, p, len, MSG_DONTWAIT)) < 0)
			drive();
		MUST(n > 0);
	}
}

/* The next frame; @drive takes the other end further meanwhile */
static inline size_t raw_get(int fd, uint8_t ulpdu[65536], void (*drive)(void))
{
	uint8_t length[2], rest[8];
	size_t len;

	raw_recv(fd, length, 2, drive);
	len = (size_t)(length[0] << 8 | length[1]);
	raw_recv(fd, ulpdu, len, drive);
	raw_recv(fd, rest, 4 + (-(2 + len) & 3), drive);
	return len;
}

static inline void raw_read_request(int fd, uint32_t msn, const struct end *from, uint32_t len)
{
	struct {
		struct ddp_untagged ddp;
		struct rdmap_read_req read;
	} __attribute__((packed)) m = {
		.ddp = { .ctl = DDP_L | DDP_DV1,
			 .rsvdulp = RDMAP_RV1 | RDMAP_READ_REQ,
			 .qn = htobe32(RDMAP_QN_READ),
			 .msn = htobe32(msn) },
		.read = { .sink_stag = htobe32(msn),
			  .size = htobe32(len),
			  .src_stag = htobe32(warp_mr_stag(from->mr)),
			  .src_to = htobe64((uintptr_t)from->mem) },
	};

	raw_put(fd, &m, sizeof(m));
}

/* "Invalid STag" of a Read */
static inline void raw_terminate(int fd)
{
	struct {
		struct ddp_untagged ddp;
		struct rdmap_term term;
	} __attribute__((packed)) m = {
		.ddp = { .ctl = DDP_L | DDP_DV1,
			 .rsvdulp = RDMAP_RV1 | RDMAP_TERMINATE,
			 .qn = htobe32(RDMAP_QN_TERM),
			 .msn = htobe32(1) },
		.term = { .layer_etype = 0x01 },
	};

	raw_put(fd, &m, sizeof(m));
}

/* Of the answer to a Read: @len octets of it, whatever they are */
static inline void raw_read_response(int fd, const struct rdmap_read_req *r, uint32_t off,
				     uint32_t len)
{
	static uint8_t m[65536];
	struct ddp_tagged ddp = {
		.ctl = DDP_T | DDP_DV1 | (off + len == be32toh(r->size) ? DDP_L : 0),
		.rsvdulp = RDMAP_RV1 | RDMAP_READ_RESP,
		.stag = r->sink_stag,
		.to = htobe64(be64toh(r->sink_to) + off),
	};

	memcpy(m, &ddp, sizeof(ddp));
	raw_put(fd, m, sizeof(ddp) + len);
}

#endif
