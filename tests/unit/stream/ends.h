/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two ends over a TCP connection, for tests of streams. One end or both are streams; or one is a
 * raw peer, which says what it likes over the same provider.
 */
#ifndef TESTS_UNIT_STREAM_ENDS_H
#define TESTS_UNIT_STREAM_ENDS_H

#include <criterion/criterion.h>
#include <wire/rsockets.h>

#include "rnic/rnic.h"
#include "rnic/rnic_stream.h"
#include "stream/life/life.h"

/* A connected pair of sockets, fd[0] the one that connected */
void ends_tcp(int fd[2]);
/* What ends_attach() goes by; all zero at first */
extern struct stream_param ends_param;
/* Octets of a TCP segment; 0: loopback's */
extern int ends_mss;
/* The peer may be one without DDP */
extern bool ends_auto;
/* Features that the initiator, the responder does not offer */
extern uint32_t ends_without[2];
/* The form of RTR that a raw peer has, enum mpa_rtr; 0: none */
extern uint8_t ends_rtr;
/* A stream over a socket */
struct stream *ends_attach(int fd, bool initiator);
/* Both as streams, open */
void ends_open(struct stream *s[2]);
/* The kernel has room for octets, as little as it allows */
void ends_narrow(struct stream *s);
/* Closes the descriptors too */
void ends_destroy(struct stream *s[2]);
/* fork(), as preload/ does it */
pid_t ends_fork(void);

/* Octet @at of what tests send */
static inline uint8_t ends_octet(uint64_t at)
{
	return (uint8_t)(at * 31 + (at >> 9));
}

/*
 * A peer that believes in nothing: it takes part in start-up as initiator, with private data of
 * the test's choice, and sends single operations.
 */
struct ends_peer {
	int fd;
	const struct rnic_stream_ops *rnic;
	struct rnic_stream_mem mem;
	struct rs_conn_data theirs; /* the stream's private data */
	struct rnic_window sgl, ring;
	uint8_t memory[4096];	 /* ours, as far as Writes to us are kept */
	uint32_t messages[4096]; /* Sends that came, in order */
	unsigned int n;
	bool ended;
};

/* What a good peer says of itself: @credits, a ring of @room octets */
struct rs_conn_data ends_conn_data(const struct ends_peer *p, uint16_t credits, uint32_t room);
void ends_peer_init(struct ends_peer *p, int fd);
/* Start-up against @s; false when it ended otherwise than open */
bool ends_peer_open(struct ends_peer *p, struct stream *s, const void *pd, size_t len);
void ends_peer_destroy(struct ends_peer *p);
void ends_peer_write(struct ends_peer *p, uint32_t stag, uint64_t to, const void *data,
		     uint32_t len);
void ends_peer_send(struct ends_peer *p, const void *data, uint32_t len);
void ends_peer_message(struct ends_peer *p, uint32_t msg);
/* What @say says comes in few segments, and is there when this returns */
void ends_peer_say(struct ends_peer *p, void (*say)(struct ends_peer *p));
/* Takes in what came */
void ends_peer_drain(struct ends_peer *p);

#endif
