/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The conformance suite: its numbered cases as tables, and what a case works with.
 *
 * 	 the peer                                   the end
 * 	 peer.c, raw.c: octets by hand  <-------->  the product: layers, or a provider
 *
 * A case runs in a process of its own, once for every kind of end that it is for, and ends it by
 * returning (good) or by fail().
 */
#ifndef CONFORMANCE_SUITE_H
#define CONFORMANCE_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "departures.h"
#include "end.h"
#include "peer.h"

/* What the end is made of */
enum kind {
	MEM = 1,    /* the protocol layers over a pair in memory */
	TCP = 2,    /* the same over TCP on loopback */
	SOFT = 4,   /* the native API with the software provider, over TCP on loopback */
	DEVICE = 8, /* the native API with an RDMA device, at an address of its own */
	LAYERS = MEM | TCP,
	PROVIDER = SOFT | DEVICE,
	ALL = LAYERS | PROVIDER,
};

struct world {
	enum kind kind;
	bool open, initiator; /* the end is */
	unsigned int without; /* parts of the case that are left out */
	struct peer peer;
	struct llp *mem[2];
	struct llp tcp;
	int fd, end_fd;	 /* TCP: the peer's, and the end's */
	const void *arg; /* of the row */
	struct end *end;
	uint8_t *arena; /* memory of the end for receives, sources and sinks */
	uint32_t arena_stag;
	uint8_t *region; /* memory of the end for the peer, REGION octets between two guards */
};

#define ARENA (1u << 20)
#define REGION (1u << 18)
#define GUARD 4096u

struct row {
	unsigned int number;
	const char *ref, *text;
	void (*run)(struct world *w);
	unsigned int kinds;
	const char *why; /* why not all kinds */
	const void *arg;
};

#define CASE(number, ref, text, run)                    \
	{                                               \
		number, ref, text, run, ALL, NULL, NULL \
	}
#define CASE_ON(number, ref, text, run, kinds, why)      \
	{                                                \
		number, ref, text, run, kinds, why, NULL \
	}

struct group {
	const char *name;
	const struct row *rows;
	size_t count;
};

extern const struct group device_group, start_group, depth_group, fpdu_group, ddp_group,
	rdmap_group, read_group, terminate_group, rfc7306_group, robust_group, vectors_group;

#define ROWS(group_name, rows)                                       \
	const struct group group_name##_group = { #group_name, rows, \
						  sizeof(rows) / sizeof((rows)[0]) }

/* --- verdicts ----------------------------------------------------------------------------- */

_Noreturn void fail_at(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define fail(...) fail_at(__FILE__, __LINE__, __VA_ARGS__)
#define check(condition, ...)              \
	do {                               \
		if (!(condition))          \
			fail(__VA_ARGS__); \
	} while (0)
#define check_eq(a, b)                                                                           \
	do {                                                                                     \
		unsigned long long va_ = (unsigned long long)(a), vb_ = (unsigned long long)(b); \
		if (va_ != vb_)                                                                  \
			fail("%s is %llu (%#llx), not %llu (%#llx)", #a, va_, va_, vb_, vb_);    \
	} while (0)
#define check_octets(a, b, n)                                                                     \
	do {                                                                                      \
		const uint8_t *a_ = (const void *)(a), *b_ = (const void *)(b);                   \
		size_t at_ = differ(a_, b_, (n));                                                 \
		if (at_ < (n))                                                                    \
			fail("%s differs from %s at octet %zu of %zu: %#x, not %#x", #a, #b, at_, \
			     (size_t)(n), a_[at_], b_[at_]);                                      \
	} while (0)

/* The first octet that differs, or @n */
size_t differ(const void *a, const void *b, size_t n);
/* Octets that depend on place and @seed */
void pattern(void *p, size_t n, unsigned int seed);

/* --- the world ---------------------------------------------------------------------------- */

/*
 * A transport, the end on it; an initiator has sent its Request or will soon. Closes
 * the world that was.
 */
void world_open(struct world *w, const struct setup *s);
/* The same, and start-up done: with revision 1 and CRC unless @s says otherwise */
void world_start(struct world *w, const struct setup *s);
static inline bool world_asks(const struct world *w, enum part part)
{
	return !(w->without & part);
}
/* The case is to have the end in this role */
bool world_plays(const struct world *w, const struct setup *s);
void world_close(struct world *w);

/* Lets the end work once */
void world_pump(struct world *w);
/* Lets it work until nothing more can be expected to happen */
void world_settle(struct world *w);
/* The next completion; fails when none comes */
struct warp_wc world_wc(struct world *w);
void world_no_wc(struct world *w);
struct warp_conn_info world_info(struct world *w);
/* Waits for a state */
struct warp_conn_info world_state(struct world *w, enum warp_conn_state state);

/* Registers the region; its TO is region_to() */
uint32_t world_region(struct world *w, unsigned int access, bool foreign);
static inline uint64_t region_to(const struct world *w)
{
	return (uintptr_t)w->region;
}
/* The guards are as they were */
void world_guards(struct world *w);

/* A receive of @len octets at @off of the arena, with @off as its id */
void world_recv(struct world *w, size_t off, uint32_t len);
/* A work request of one piece, @len octets at @off of the arena, with @off as its id */
void world_post(struct world *w, enum warp_wr_opcode op, size_t off, uint32_t len, uint32_t stag,
		uint64_t to);
void world_post_wr(struct world *w, const struct warp_send_wr *wr);

/*
 * The end must now send a Terminate with this fault, and then close. @hdrct: what it must say of
 * headers; the Terminate comes back for a closer look.
 */
struct seg *world_expect_terminate(struct world *w, uint32_t fault, uint8_t hdrct);
/* The same with a fault of several that will do, ended by 0: which it was */
uint32_t world_expect_terminates(struct world *w, const uint32_t *faults);
/* The end must now close, without another octet */
void world_expect_close(struct world *w);
/* A Send from the peer is still delivered */
void world_works(struct world *w);
/* The connection ends, whatever the program is told of it */
void world_ends(struct world *w);
/* No receive was completed well meanwhile */
void world_nothing_delivered(struct world *w);

/* --- sends.c: the system calls that the end makes to send ---------------------------------- */

struct sent_call {
	size_t n;
	bool record; /* a boundary stands behind it */
};

/* From now on calls on @fd are noted; -1: no more */
void sends_watch(int fd);
size_t sends_count(void);
struct sent_call sends_at(size_t i);

/*
 * Two ends of a TCP connection on loopback; the first is the one that connected. @mss
 * 0: as it comes
 */
void tcp_pair(int fds[2], int mss);

#endif
