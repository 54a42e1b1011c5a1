/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_NIC_H
#define AM_NIC_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "include/wire/am.h"

#define AM_NIC_BATCH 32

/* A datagram to send; the bytes belong to the caller. */
struct am_datagram {
	struct sockaddr_in to;
	struct iovec iov[2];
	uint32_t count;
	uint32_t length;
	bool bulk; /* it has a fragment of a longer message */
};

/* What came: one packet, or several that the kernel has merged (GRO); they know their lengths. */
struct am_arrival {
	struct sockaddr_in from;
	uint8_t *data;
	uint32_t length;
};

/* The memory that arrivals stand in; one per nested or concurrent poll. */
struct am_batch {
	struct am_batch *next;
	struct am_arrival arrivals[AM_NIC_BATCH];
	void *state; /* the driver's */
};

struct am_nic_config {
	struct sockaddr_in name; /* port 0: any */
	uint32_t receive_bytes;	 /* wanted for arrivals not yet looked at */
	bool one_socket;	 /* wait_fd is the only one: no second, connected socket */
};

struct am_nic;

/* A driver: it carries datagrams. All return 0, a count or -errno. */
struct am_nic_ops {
	const char *name;
	int (*create)(struct am_nic **out, struct am_nic_config *config);
	void (*destroy)(struct am_nic *nic);
	/* Sends as many as it can, in order; 0 when there is no room. */
	int (*send)(struct am_nic *nic, const struct am_datagram *v, int n);
	int (*batch_create)(struct am_nic *nic, struct am_batch **out);
	void (*batch_destroy)(struct am_batch *batch);
	/* Never waits. Arrivals are good until the next receive with this batch. */
	int (*receive)(struct am_nic *nic, struct am_batch *batch, int max);
	/* -ENETDOWN when the interface cannot carry anything now. */
	int (*state)(struct am_nic *nic);
	/* Arrivals that the kernel threw away so far, because too many were not yet looked at. */
	uint64_t (*dropped)(struct am_nic *nic);
};

struct am_nic {
	const struct am_nic_ops *ops;
	struct sockaddr_in name;
	int wait_fd;
	int also_fd;		/* one more to wait for; -1: none */
	uint32_t receive_bytes; /* granted; of am_window_cost, not of data */
	uint32_t datagram_max;	/* that it sends the short way; 0: any */
	uint64_t calls_send;	/* system calls */
	uint64_t calls_receive;
	struct am_batch *free;	 /* batches not in use */
	uint64_t dropped_before; /* the statistics were reset */
};

extern const struct am_nic_ops am_udp_ops;
extern const struct am_nic_ops am_xdp_ops;

#endif
