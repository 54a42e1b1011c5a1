/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One end of a connection that does what its command line says, step by step, for tests. The
 * steps are the same over librdmacm (script_verbs.c) and over the native API (script_warp.c).
 *
 *	listen ADDR PORT    wait for a Request          connect ADDR PORT
 *	                    (may come again, after the last connection's end)
 *	memory N | buffer N octets that the peer may write and read, and of a message: 65536
 *	receives N          buffers for messages, at first 4
 *	apart               our memory is of another protection domain than the connection
 *	rights r|w|rw|none  that the peer has on that memory: at first rw
 *	depth IRD ORD       at first 4 4
 *	no-rtr              the initiator asks for none: the client-server model (native API only)
 *	private N           of N octets, for the next connect, accept or reject
 *	private-is N        what the peer gave
 *	stream N | stream-block N
 *	                    of N octets, a stream's connection data, alone or with our extension
 *	                    block; octets that mean nothing fill it up
 *	stream-is N         the peer gave a stream's
 *	accept | reject     of what came                refused    the peer has rejected us
 *	try-accept          which may fail as well
 *	swap                tell each other where our memory is: initiator first
 *	pieces N            of which Sends and Writes are gathered from here on
 *	scatter N           pieces of each receive, at first 1
 *	send N | got N      a Send of N octets of the pattern, and its receipt
 *	send-se N           with the Solicited Event
 *	solicited | plain   so was the message that was got last (native API only)
 *	send-inv N          and the peer's region is invalid from then on; send-se-inv N: both
 *	invalidate          our own region
 *	write N | read N    the peer's memory, from its start
 *	reads N             of 1000 octets each, all posted at once
 *	has N               our memory has what was written there
 *	write-stag, write-end, read-stag, read-end
 *	                    of an STag that nobody has, or up to behind the end of the region
 *	try-send N, try-write N, try-read N
 *	                    which may fail as well
 *	fails               the connection ends with an error
 *	over                it ends, in order or not
 *	any                 from here on a step may fail, which ends the script, as a success
 *	torn                the same, but then the connection must have ended with an error
 *	sleep MS | mark FILE   which is made then
 *	kill | leave        the process ends, by SIGKILL or without closing anything
 *	terminate CODE      as 0xLTCC: layer, type, code of the Terminate (native API only)
 *	close | closed      in order, by us or by the peer
 */
#ifndef TESTS_VM_SCRIPT_H
#define TESTS_VM_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#define SCRIPT_RECEIVES 4
#define SCRIPT_PIECES 16   /* of a message, where both ends' devices have as many: siw has 6 */
#define SCRIPT_REQUESTS 64 /* at a time */
#define SCRIPT_WAIT_MS 300000

enum script_op {
	SCRIPT_SEND,
	SCRIPT_SEND_SE,
	SCRIPT_SEND_INV,
	SCRIPT_SEND_SE_INV,
	SCRIPT_WRITE,
	SCRIPT_READ,
	SCRIPT_INVALIDATE, /* of our region @stag */
};

enum script_end { SCRIPT_FAILED, SCRIPT_IN_ORDER, SCRIPT_ANYHOW };

/* Where the peer's memory is, as Sends carry it; big-endian */
struct script_where {
	uint64_t to;
	uint32_t stag, size;
} __attribute__((packed));

/* What a back end has: 0, or 1 after it has said on stderr what is wrong */
struct script_ops {
	int (*listen)(const char *addr, const char *port);
	int (*connect)(const char *addr, const char *port, const void *pd, unsigned int len);
	int (*accept)(const void *pd, unsigned int len);
	int (*reject)(const void *pd, unsigned int len);
	int (*refused)(void);
	/* The peer's private data, valid until the end */
	const void *(*private_data)(unsigned int *len);
	/*
	 * The first @len octets of script_out go out, or to or from @to, @times at once; and all
	 * that is complete
	 */
	int (*post)(enum script_op op, unsigned int len, uint32_t stag, uint64_t to,
		    unsigned int times);
	/* The next message is in script_in[@slot] with @len octets */
	int (*receive)(unsigned int *slot, unsigned int *len);
	int (*receive_again)(unsigned int slot);
	int (*solicited)(bool want); /* the last message */
	struct script_where (*where)(void);
	/* Waits for the end of the connection; one in order frees all that it had */
	int (*ended)(enum script_end how);
	int (*terminated)(uint32_t code);
	int (*close)(void); /* the same */
};

extern const struct script_ops script_ops;
/* Registered by the back end: for sending and as the sink of Reads; posted; open to the peer */
extern uint8_t *script_out, *script_in[SCRIPT_RECEIVES], *script_memory;
extern unsigned int script_out_size, script_buffer_size, script_memory_size;
extern unsigned int script_receives; /* at most SCRIPT_RECEIVES */
extern unsigned int script_pieces, script_scatter, script_ird, script_ord;
extern bool script_readable, script_writable; /* the memory, by the peer */
extern bool script_apart;		      /* it is of a protection domain of its own */
extern bool script_no_rtr;

int script_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
