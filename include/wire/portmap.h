/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What port mappers of iWARP devices say to each other, one message in a datagram of UDP. Nothing
 * else. There is no RFC: it is as rdma-core's iwpmd has it.
 */
#ifndef WIRE_PORTMAP_H
#define WIRE_PORTMAP_H

#include <wire/iwarp.h>

#define PORTMAP_PORT 3935
#define PORTMAP_REQUEST_LEN 64
#define PORTMAP_ANSWER_LEN 48 /* and of an acknowledgement */

/* The first octet: version 0, what it is, the IP version of the addresses */
enum portmap_kind {
	PORTMAP_REQUEST = 0x00,
	PORTMAP_ACCEPT = 0x10, /* the acceptor's are the mapped ones */
	PORTMAP_ACK = 0x20,
	PORTMAP_REJECT = 0x30, /* it knows of no such port */
};

/* An IPv4 address stands in the first four octets of its place */
struct portmap_message {
	__u8 kind;	    /* enum portmap_kind, 4 or 6 */
	__u8 time;	    /* 0 */
	__be16 mapped_port; /* Request: the connecting end's */
	__be16 accept_port;
	__be16 connect_port;
	__be64 handle; /* given back */
	__u8 connect_addr[16];
	__u8 accept_addr[16];
	__u8 mapped_addr[16]; /* Request: the connecting end's */
};

WIRE_SIZE(struct portmap_message, PORTMAP_REQUEST_LEN);
WIRE_AT(struct portmap_message, handle, 8);
WIRE_AT(struct portmap_message, mapped_addr, PORTMAP_ANSWER_LEN);

#endif
