/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The end under test, behind calls and structs of the native API whatever it is made of: the
 * protocol layers with a small driver over an octet stream (end_layers.c), or a provider
 * (end_provider.c).
 */
#ifndef CONFORMANCE_END_H
#define CONFORMANCE_END_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warp/rdma.h>

struct llp;
struct rdmap_stream;

/* How an end starts, and what the peer says to it in world_start() */
struct setup {
	bool initiator;
	bool no_crc, markers; /* what the end asks for; CRC is the default */
	uint8_t rev;	      /* 0: 1 */
	uint8_t rtr;	      /* WARP_CONN_RTR_ bits: the peer-to-peer model */
	uint16_t ird, ord;    /* 0: 8 */
	const void *pd;
	size_t pd_len;
	bool hold;	/* a responder waits for end_accept() or end_reject() */
	int timeout_ms; /* of start-up; 0: none that a case would see */
	uint16_t mss;	/* TCP: the segment size; memory: EMSS. 0: as it comes */

	bool peer_no_crc, peer_markers;
};

struct end;

struct end_ops {
	/* @fd: TCP, the end closes it; else @l */
	struct end *(*create)(struct llp *l, int fd, const struct setup *s);
	void (*destroy)(struct end *e);
	void (*progress)(struct end *e);
	int (*accept)(struct end *e, const struct setup *s);
	int (*reject)(struct end *e, const void *pd, size_t len);
	/*
	 * Memory; its TO is its address. @foreign: of another protection domain. 0 when
	 * it failed
	 */
	uint32_t (*mr)(struct end *e, void *addr, size_t len, unsigned int access, bool foreign);
	void (*mr_remove)(struct end *e, uint32_t stag);
	int (*post_recv)(struct end *e, const struct warp_recv_wr *wr);
	int (*post_send)(struct end *e, const struct warp_send_wr *wr);
	int (*poll)(struct end *e, struct warp_wc *wc, int n);
	void (*info)(struct end *e, struct warp_conn_info *info);
	void (*disconnect)(struct end *e);
	/* What the layers keep; NULL where that is out of reach */
	struct rdmap_stream *(*stream)(struct end *e);
};

struct end {
	const struct end_ops *ops;
};

extern const struct end_ops end_layers_ops, end_provider_ops;

/*
 * An end on the device that CONFORMANCE_DEVICE names. As initiator it connects to @at; else it
 * listens there, and @at is told the port
 */
struct end *end_device_create(const struct setup *s, struct sockaddr_in *at);

/* The providers' only */
struct warp_cq *end_provider_cq(struct end *e);

/* Layers only: build no more than @n FPDUs until told otherwise; -1: no limit */
void end_layers_limit(struct end *e, int n);

#endif
