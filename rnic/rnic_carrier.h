/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What carries the bytes of a stream connection: the program's socket, or a device.
 *
 * Where a device does, the socket is never connected. It stays the program's descriptor, keeps its
 * options and names the state; the connection is a thing of the process that made it, and is there
 * before the stream is.
 */
#ifndef RNIC_RNIC_CARRIER_H
#define RNIC_RNIC_CARRIER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct rnic_stream_mem;

struct rnic_carrier_ops {
	/*
	 * Both locks, initiator, before init(): is there a connection for start-up? 0, -EAGAIN with
	 * *@events to wait for, or why there will be none; -ENODEV: of what the device cannot
	 */
	int (*connect)(const struct rnic_stream_mem *mem, int fd, short *events);
	/* Any: after a send() that did not take all, does it take something now? */
	bool (*room)(const struct rnic_stream_mem *mem, int fd);
	/* Any: is there something that has left, and is not known to have come? <0: who knows */
	int (*unacked)(const struct rnic_stream_mem *mem, int fd);
	/* Any: ends the connection at once, in a way that the peer takes for a reset */
	void (*abort)(const struct rnic_stream_mem *mem, int fd);
};

extern const struct rnic_carrier_ops rnic_socket_carrier;

/*
 * A connection of a device. A provider embeds it at the head of its own. @fd is readable when
 * receive() or start() may have something to do, which includes what became of what was sent.
 * @apart: it is not TCP that carries it, so a peer that it does not reach may be there all the
 * same; written until start-up is begun
 */
struct rnic_native {
	int fd;
	bool apart;
};

/* @fd is readable when a request may wait; @owner: the process whose it is */
struct rnic_native_listener {
	int fd;
	uint32_t owner;
};

/* How devices listen at an address, as bits */
enum rnic_listens {
	RNIC_LISTENS_ALONE = 1,	 /* at the kernel's port, which is taken then */
	RNIC_LISTENS_BESIDE = 2, /* at one of their own that has the same number */
};

struct rnic_native_address {
	const struct sockaddr *addr;
	socklen_t len;
	int backlog;
	bool only_six; /* IPV6_V6ONLY, which is of no matter with AF_INET */
	bool beside;   /* only devices that leave the kernel its port */
};

/* None of these waits, and in another process than the one that made it, each does nothing */
struct rnic_native_ops {
	/*
	 * One to @peer, if the route to it leads over a device: 0, -ENODEV; -EXDEV: the devices are
	 * the process's that this one was forked from
	 */
	int (*reach)(const struct sockaddr *peer, socklen_t len, struct rnic_native **out);
	/* As getsockname() and getpeername() */
	int (*name)(const struct rnic_native *n, bool peer, struct sockaddr_storage *out);
	/* Where the peer's Writes to window @i land by themselves; no sink is told of them */
	void *(*memory)(const struct rnic_native *n, unsigned int i);
	/* Sends of the peer's that it can have room for, before init(): no more are to be wanted */
	uint32_t (*messages)(const struct rnic_native *n);
	/* Nothing has come of it, and @fd goes on by itself: is to be waited for as well */
	void (*follow)(struct rnic_native *n, int fd);
	/*
	 * Where nothing has come or left for so long, from the next receive() on, the peer is to be
	 * asked whether it is there: then receive() may say -ETIMEDOUT. 0: it is not
	 */
	void (*keepalive)(struct rnic_native *n, uint64_t ns);
	void (*destroy)(struct rnic_native *n);
	/* How those with that address would listen, of all addresses all; -ENODEV, -EXDEV */
	int (*listens)(const struct sockaddr *addr, socklen_t len);
	/* -ENODEV: no device has that address; -EXDEV */
	int (*listen)(const struct rnic_native_address *at, struct rnic_native_listener **out);
	/*
	 * Who asked first, for a responder's stream; -EAGAIN, -EXDEV. Else who asked is there yet,
	 * and with other errors than those of a lack (ENOMEM, EMFILE, ENFILE) nobody is to be had
	 */
	int (*get)(struct rnic_native_listener *l, struct rnic_native **out);
	void (*unlisten)(struct rnic_native_listener *l);
};

#endif
