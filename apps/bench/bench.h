/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `warpsock bench`: DDP against plain TCP, in turns. One file is one noun:
 *
 *	bench.c     the command: its options, the rounds
 *	turn.c      one run: a server and a client are started, and asked what they saw
 *	report.c    what is told of all runs
 *	end.c       a server or a client: a process of its own
 *	wire.c      a TCP connection, whole messages over it
 *	pingpong.c stream.c    socket calls, the same over TCP and DDP
 *	rdma.c      one-sided operations through the native API
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bench_role { BENCH_SERVER, BENCH_CLIENT, BENCH_ROLES };
enum bench_via { BENCH_DDP, BENCH_TCP, BENCH_VIAS };

#define BENCH_ROUNDS 99
#define BENCH_SAID 256

struct bench_kind;

struct bench_plan {
	const struct bench_kind *kind;
	size_t size;	/* octets of a message */
	uint64_t count; /* messages of a run at most; 0: any number */
	double seconds; /* of a run at most */
	unsigned int rounds;
	bool spin; /* look again and again instead of sleeping */
	bool crc;
	bool json;
	const char *report;
	int cpu[BENCH_ROLES]; /* -1: any */
};

/* One end at work */
struct bench_end {
	const struct bench_plan *plan;
	enum bench_role role;
	uint16_t port; /* of the server */
	double value;  /* the client's result, in the kind's unit */
	char said[BENCH_SAID];
};

/* Each is a process's whole work: 0 or -errno */
typedef int bench_work(struct bench_end *end);

struct bench_kind {
	const char *name, *unit;
	size_t size;
	bool native; /* DDP by the native API and not by the interposer */
	bench_work *work[BENCH_VIAS][BENCH_ROLES];
};

/* The command; argv[0] is "bench" */
int bench_main(int argc, char **argv);
/* argv: "end" server|client ddp|tcp PORT, then as for bench_main() */
int bench_end_main(int argc, char **argv);
/* 0, or 125 when it was told what is wrong */
int bench_plan_parse(struct bench_plan *plan, int argc, char **argv);

/* --- turn.c --- */

struct bench_turn {
	unsigned int number; /* from 0, as they were run */
	double value;
	char said[BENCH_ROLES][BENCH_SAID];
};

/* argv: of bench_main() */
int bench_turn_run(const struct bench_plan *plan, enum bench_via via, char **argv,
		   struct bench_turn *turn);

/* --- report.c --- */

struct bench_sums {
	struct bench_turn turn[BENCH_VIAS][BENCH_ROUNDS];
	unsigned long software, tcp; /* connections, of both ends, in the runs over DDP */
};

void bench_report(const struct bench_plan *plan, const struct bench_sums *sums);

/* --- end.c --- */

/* Tells the client's starter where to connect to */
void bench_end_listens(struct bench_end *end, uint16_t port);
double bench_clock(void);

/* What is left of a run; it has one message at least, so that there is a value */
struct bench_limit {
	uint64_t left;
	double end;
};

void bench_limit_init(struct bench_limit *l, const struct bench_plan *plan);
/* After each message: one more? */
bool bench_limit_go(struct bench_limit *l);

/* --- wire.c --- */

/*
 * Lets @work, which gets a buffer of one message, have a connection that is in step with the
 * other end's: 0 or -errno
 */
int bench_wire_run(struct bench_end *end, int (*work)(struct bench_end *end, int fd, char *buf));
/* The whole of @len octets: 1, 0 the end came first, -errno */
int bench_wire_recv(const struct bench_end *end, int fd, void *p, size_t len);
int bench_wire_send(const struct bench_end *end, int fd, const void *p, size_t len);
/* What is there, up to @len octets */
long bench_wire_some(const struct bench_end *end, int fd, void *p, size_t len);

/* --- the kinds --- */

bench_work bench_pingpong_server, bench_pingpong_client;
bench_work bench_put_server, bench_put_client, bench_get_server, bench_get_client;
bench_work bench_rdma_server, bench_write_client, bench_read_client;

#endif
