/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs under several threads: callers at both ends, callers beside the progress thread,
 * and memory that goes away under a peer's Writes.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/entries.h"
#include "tests/tap.h"
#include "tests/unit/soft/end.h"

/* A machine may be slow, and a sanitizer is */
enum { PATIENCE_MS = 60000 };

static struct warp_device *dev;
static struct end a, b;

static void ends_make(const struct warp_conn_param *p)
{
	MUST(warp_device_open("soft", &dev) == 0);
	end_init(&a, dev, 256);
	end_init(&b, dev, 256);
	ends_connect(&a, &b, p, p);
	MUST(warp_conn_wait(b.conn, PATIENCE_MS) == 0);
}

static bool ends_drop(void)
{
	end_uninit(&a);
	end_uninit(&b);
	return warp_device_close(dev) == 0;
}

/* --- ping and pong --- */

struct player {
	struct end *end;
	bool blocks, serves;
	unsigned int rounds, got;
};

static struct warp_wc player_next(struct player *p)
{
	struct warp_wc wc;
	int n;

	while ((n = warp_cq_poll(p->end->cq, &wc, 1)) == 0)
		if (p->blocks)
			MUST(warp_cq_wait(p->end->cq, PATIENCE_MS) == 0);
	MUST(n == 1 && wc.status == WARP_WC_SUCCESS);
	return wc;
}

static void *play(void *arg)
{
	struct player *p = arg;
	struct warp_send_wr wr = { .opcode = WARP_WR_SEND };
	bool turn = p->serves;

	for (unsigned int i = 0; i < p->rounds;) {
		if (turn) {
			MUST(end_post(p->end, wr, 0, 64) == 1);
			turn = false;
		}
		if (player_next(p).opcode != WARP_WC_RECV)
			continue;
		MUST(end_recv(p->end, 0, 4096, 64) == 1);
		p->got++;
		i++;
		turn = p->serves ? i < p->rounds : true;
		if (turn && !p->serves && i == p->rounds)
			MUST(end_post(p->end, wr, 0, 64) == 1);
	}
	return NULL;
}

static bool ping_pong(bool blocks, unsigned int rounds)
{
	struct player pa = { &a, blocks, true, rounds, 0 }, pb = { &b, blocks, false, rounds, 0 };
	pthread_t ta, tb;

	ends_make(NULL);
	for (int i = 0; i < 4; i++)
		MUST(end_recv(&a, 0, 4096, 64) == 1 && end_recv(&b, 0, 4096, 64) == 1);
	pthread_create(&ta, NULL, play, &pa);
	pthread_create(&tb, NULL, play, &pb);
	pthread_join(ta, NULL);
	pthread_join(tb, NULL);
	return ends_drop() && pa.got == rounds && pb.got == rounds;
}

/* --- everything at once --- */

#define LOAD 300

/*
 * What a peer may use without the program's doing is parted by use: nobody reads what another
 * writes. Octets 0-7 count the Atomics, 64 K on is what Reads bring, 256 K on what is read.
 */
struct loader {
	struct end *end, *peer;
};

static void *load(void *arg)
{
	const struct loader *l = arg;
	static const enum warp_wr_opcode ops[] = { WARP_WR_WRITE, WARP_WR_READ, WARP_WR_FETCH_ADD };
	const size_t to[] = { 512 << 10, 256 << 10, 0 }, at[] = { 256 << 10, 64 << 10, 8 };
	struct warp_send_wr wr = { .remote_stag = warp_mr_stag(l->peer->mr), .swap_add = 1 };

	for (int i = 0; i < LOAD; i++) {
		int got, op = i % 3;

		wr.opcode = ops[op];
		wr.remote_to = (uintptr_t)l->peer->mem + to[op];
		while ((got = end_post(l->end, wr, at[op], op == 2 ? 8 : 3000)) == -ENOMEM)
			usleep(100);
		MUST(got == 1);
	}
	return NULL;
}

static void *reap(void *arg)
{
	struct end *e = arg;
	struct warp_wc wc[16];

	for (int left = 2 * LOAD, n; left; left -= n) {
		n = warp_cq_poll(e->cq, wc, 16);
		MUST(n >= 0);
		for (int i = 0; i < n; i++)
			MUST(wc[i].status == WARP_WC_SUCCESS);
		if (!n)
			MUST(warp_cq_wait(e->cq, PATIENCE_MS) == 0);
	}
	return NULL;
}

static uint64_t counter_of(const struct end *e)
{
	return __atomic_load_n((const uint64_t *)e->mem, __ATOMIC_RELAXED); /* with the peer's */
}

/* Two posters and a reaper on each side; the counters in both memories add up */
static bool everything(void)
{
	struct loader l[2] = { { &a, &b }, { &b, &a } };
	pthread_t t[6];
	bool good;

	ends_make(NULL);
	for (int i = 0; i < 2; i++) {
		pthread_create(&t[3 * i], NULL, load, &l[i]);
		pthread_create(&t[3 * i + 1], NULL, load, &l[i]);
		pthread_create(&t[3 * i + 2], NULL, reap, l[i].end);
	}
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	good = counter_of(&a) == 2 * LOAD / 3 && counter_of(&b) == 2 * LOAD / 3;
	return ends_drop() && good;
}

/* --- the program at the target does nothing --- */

static bool reads_of_a_sleeping_program(void)
{
	struct warp_send_wr wr = { .opcode = WARP_WR_READ };
	struct warp_mr *mr;
	bool good = true;

	ends_make(NULL);
	memset(b.mem, 0x5a, END_ROOM / 2);
	MUST(warp_mr_register(b.pd, b.mem, END_ROOM / 2, WARP_ACCESS_REMOTE_READ, &mr) == 0);
	wr.remote_stag = warp_mr_stag(mr);
	wr.remote_to = (uintptr_t)b.mem;
	for (int i = 0; i < 50 && good; i++) {
		MUST(end_post(&a, wr, END_ROOM / 2, 100000) == 1);
		good = warp_cq_wait(a.cq, PATIENCE_MS) == 0 &&
		       end_next(&a, NULL).status == WARP_WC_SUCCESS;
	}
	good = good && a.mem[END_ROOM / 2 + 99999] == 0x5a;
	MUST(warp_mr_deregister(mr) == 0);
	return ends_drop() && good;
}

struct scribbler {
	uint8_t *p;
	bool stop;
};

/* The peer is reading it: that is the point */
__attribute__((no_sanitize("thread"))) static void *scribble(void *arg)
{
	struct scribbler *s = arg;

	for (uint8_t x = 0; !__atomic_load_n(&s->stop, __ATOMIC_RELAXED); x++) /* with the case */
		for (int i = 0; i < 100000; i += 64)
			*(volatile uint8_t *)(s->p + i) = x;
	return NULL;
}

static bool reads_of_changing_memory(void)
{
	struct warp_send_wr wr = { .opcode = WARP_WR_READ };
	struct scribbler s = { 0 };
	bool good = true;
	pthread_t t;

	ends_make(NULL);
	s.p = b.mem;
	wr.remote_stag = warp_mr_stag(b.mr);
	wr.remote_to = (uintptr_t)b.mem;
	pthread_create(&t, NULL, scribble, &s);
	for (int i = 0; i < 200 && good; i++) {
		MUST(end_post(&a, wr, 0, 100000) == 1);
		good = end_next(&a, &b).status == WARP_WC_SUCCESS;
	}
	__atomic_store_n(&s.stop, true, __ATOMIC_RELAXED); /* with scribble() */
	pthread_join(t, NULL);
	return ends_drop() && good;
}

/* --- memory that goes away --- */

static void *write_on(void *arg)
{
	struct warp_send_wr wr = { .opcode = WARP_WR_WRITE,
				   .remote_stag = *(uint32_t *)arg,
				   .remote_to = (uintptr_t)b.mem };
	struct warp_wc wc;
	int got = 0;

	memset(a.mem, 0xee, END_ROOM);
	while (got == 1 || got == -ENOMEM || got == 0) {
		got = end_post(&a, wr, 0, 20000);
		while (warp_cq_poll(a.cq, &wc, 1) == 1)
			;
	}
	return NULL;
}

/* The peer may be writing it: that is the point */
__attribute__((no_sanitize("thread"))) static uint8_t peek(const volatile uint8_t *p)
{
	return *p;
}

static bool deregistered_memory_stays_as_it_is(void)
{
	pthread_t writer;
	struct warp_mr *mr;
	uint32_t stag;
	bool good;

	ends_make(NULL);
	MUST(warp_mr_register(b.pd, b.mem, 20000, WARP_ACCESS_REMOTE_WRITE, &mr) == 0);
	stag = warp_mr_stag(mr);
	pthread_create(&writer, NULL, write_on, &stag);
	while (peek(&b.mem[19999]) != 0xee)
		usleep(100);
	MUST(warp_mr_deregister(mr) == 0);
	memset(b.mem, 0x11, 20000);
	pthread_join(writer, NULL);
	usleep(20000);
	good = true;
	for (int i = 0; i < 20000; i++)
		good = good && b.mem[i] == 0x11;
	return ends_drop() && good;
}

/* A page that holds whoever touches it until it is made good: told by the one pipe, by the other */
static struct {
	uint8_t *page;
	int touched[2], good[2];
} trap;

static void trapped(int sig)
{
	char c = 0;

	MUST(write(trap.touched[1], &c, 1) == 1);
	MUST(read(trap.good[0], &c, 1) == 1);
	MUST(mprotect(trap.page, 4096, PROT_READ | PROT_WRITE) == 0);
}

static void trap_set(uint8_t *page)
{
	struct sigaction sa = { .sa_handler = trapped };

	trap.page = page;
	MUST(pipe(trap.touched) == 0 && pipe(trap.good) == 0);
	MUST(sigaction(SIGSEGV, &sa, NULL) == 0);
	MUST(mprotect(page, 4096, PROT_NONE) == 0);
}

static void trap_remove(void)
{
	signal(SIGSEGV, SIG_DFL);
	for (int i = 0; i < 2; i++)
		MUST(close(trap.touched[i]) == 0 && close(trap.good[i]) == 0);
}

struct deregistration {
	struct warp_mr *mr;
	bool done;
};

static void *deregister(void *arg)
{
	struct deregistration *d = arg;

	MUST(warp_mr_deregister(d->mr) == 0);
	__atomic_store_n(&d->done, true, __ATOMIC_RELAXED); /* with the case */
	return NULL;
}

static void *take_one(void *arg)
{
	MUST(end_next(arg, NULL).status == WARP_WC_SUCCESS);
	return NULL;
}

/*
 * With no memory that a peer may use the progress thread, which takes no signals, leaves the octets
 * to who polls; before, it waits for one event more
 */
static void leave_to_callers(void)
{
	struct warp_send_wr nothing = { .opcode = WARP_WR_WRITE, .remote_stag = 1 };

	MUST(warp_mr_deregister(b.mr) == 0);
	b.mr = NULL;
	MUST(end_post(&a, nothing, 0, 0) == 1);
	usleep(60000);
}

static bool deregistration_waits(void)
{
	struct warp_sge sge = { .length = 8 };
	struct warp_recv_wr recv = { .sg = &sge, .num_sge = 1 };
	struct deregistration d = { 0 };
	pthread_t t[2];
	char c = 0;
	bool good;

	ends_make(NULL);
	leave_to_callers();
	trap_set(b.mem);
	MUST(warp_mr_register(b.pd, b.mem, 4096, WARP_ACCESS_LOCAL_WRITE, &d.mr) == 0);
	sge.addr = b.mem;
	sge.stag = warp_mr_stag(d.mr);
	MUST(warp_qp_post_recv(b.qp, &recv, 1) == 1);
	pthread_create(&t[0], NULL, take_one, &b);
	MUST(end_post(&a, (struct warp_send_wr){ .opcode = WARP_WR_SEND }, 0, 8) == 1);
	MUST(read(trap.touched[0], &c, 1) == 1);
	pthread_create(&t[1], NULL, deregister, &d);
	usleep(50000);
	good = !__atomic_load_n(&d.done, __ATOMIC_RELAXED); /* with deregister() */
	MUST(write(trap.good[1], &c, 1) == 1);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	trap_remove();
	return ends_drop() && good;
}

/* --- several wait for one thing --- */

#define ROUNDS 2000

static pthread_barrier_t both;

/* Takes one completion in each round and then does something else until the other has one, too */
static void *wait_for_one(void *arg)
{
	bool *good = arg;
	struct warp_wc wc;

	for (int i = 0; i < ROUNDS; i++) {
		int n = 0;

		while (*good && n == 0) {
			*good = warp_cq_wait(b.cq, 2000) == 0;
			n = warp_cq_poll(b.cq, &wc, 1);
		}
		pthread_barrier_wait(&both);
		if (!*good)
			pthread_exit(NULL);
	}
	return NULL;
}

/* Both completions come at once and by a third thread, that posts */
static bool two_wait_for_two_completions(void)
{
	struct warp_send_wr wr[2] = { { .opcode = WARP_WR_WRITE, .flags = WARP_SEND_SIGNALED } };
	bool good[2] = { true, true };
	pthread_t t[2];

	ends_make(NULL);
	wr[1] = wr[0];
	pthread_barrier_init(&both, NULL, 3);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, wait_for_one, &good[i]);
	for (int i = 0; i < ROUNDS && good[0] && good[1]; i++) {
		MUST(warp_qp_post_send(b.qp, wr, 2) == 2);
		pthread_barrier_wait(&both);
		MUST(warp_cq_poll(a.cq, NULL, 0) == 0);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	pthread_barrier_destroy(&both);
	return ends_drop() && good[0] && good[1];
}

struct onlooker {
	struct warp_conn *conn;
	bool stop;
};

static void *look_on(void *arg)
{
	struct onlooker *o = arg;
	struct warp_conn_info info;

	while (!__atomic_load_n(&o->stop, __ATOMIC_RELAXED)) /* with who waits */
		MUST(warp_conn_query(o->conn, &info) == 0);
	return NULL;
}

static void *answer(void *arg)
{
	usleep(1000);
	MUST(warp_listener_get(arg, 5000, &b.conn) == 0);
	MUST(warp_conn_reject(b.conn, NULL, 0) == 0);
	return NULL;
}

/* One waits for the end of start-up, another one asks for it again and again */
static bool waiting_while_another_looks(void)
{
	struct sockaddr_storage at;
	struct timespec t0, t1;
	struct warp_listener *l;
	struct onlooker o;
	pthread_t t[2];
	bool good = true;

	MUST(warp_device_open("soft", &dev) == 0);
	end_init(&a, dev, 16);
	l = end_listen(dev, &at);
	for (int i = 0; i < 50 && good; i++) {
		MUST(warp_connect(a.qp, (struct sockaddr *)&at, sizeof(struct sockaddr_in), NULL,
				  &a.conn) == 0);
		o = (struct onlooker){ .conn = a.conn };
		pthread_create(&t[0], NULL, look_on, &o);
		pthread_create(&t[1], NULL, answer, l);
		clock_gettime(CLOCK_MONOTONIC, &t0);
		good = warp_conn_wait(a.conn, 3000) == -ECONNREFUSED;
		clock_gettime(CLOCK_MONOTONIC, &t1);
		good = good && t1.tv_sec - t0.tv_sec < 2;
		__atomic_store_n(&o.stop, true, __ATOMIC_RELAXED); /* with look_on() */
		pthread_join(t[0], NULL);
		pthread_join(t[1], NULL);
		MUST(warp_conn_destroy(b.conn) == 0 && warp_conn_destroy(a.conn) == 0);
	}
	a.conn = NULL;
	MUST(warp_listener_destroy(l) == 0);
	end_uninit(&a);
	return warp_device_close(dev) == 0 && good;
}

/* --- two accept the same connection --- */

struct acceptor {
	struct end *end;
	struct warp_conn *conn;
	pthread_barrier_t *start;
	int got;
};

static void *accept_it(void *arg)
{
	struct acceptor *x = arg;

	pthread_barrier_wait(x->start);
	x->got = warp_conn_accept(x->conn, x->end->qp, NULL);
	return NULL;
}

static bool one_of_two_accepts(void)
{
	static struct end r[2];
	struct acceptor x[2];
	struct sockaddr_storage at;
	struct warp_listener *l;
	pthread_barrier_t start;
	pthread_t t[2];
	bool good = true;

	MUST(warp_device_open("soft", &dev) == 0);
	end_init(&a, dev, 16);
	end_init(&r[0], dev, 16);
	end_init(&r[1], dev, 16);
	l = end_listen(dev, &at);
	pthread_barrier_init(&start, NULL, 2);
	for (int i = 0; i < 200 && good; i++) {
		struct warp_conn *c;

		MUST(warp_connect(a.qp, (struct sockaddr *)&at, sizeof(struct sockaddr_in), NULL,
				  &a.conn) == 0);
		MUST(warp_listener_get(l, 5000, &c) == 0);
		for (int k = 0; k < 2; k++) {
			x[k] = (struct acceptor){ &r[k], c, &start, 1 };
			pthread_create(&t[k], NULL, accept_it, &x[k]);
		}
		for (int k = 0; k < 2; k++)
			pthread_join(t[k], NULL);
		good = (x[0].got == 0) != (x[1].got == 0) &&
		       warp_conn_wait(a.conn, PATIENCE_MS) == 0;
		MUST(warp_conn_destroy(c) == 0 && warp_conn_destroy(a.conn) == 0);
	}
	a.conn = NULL;
	pthread_barrier_destroy(&start);
	MUST(warp_listener_destroy(l) == 0);
	end_uninit(&a);
	end_uninit(&r[0]);
	end_uninit(&r[1]);
	return warp_device_close(dev) == 0 && good;
}

/* --- many connections, of which few do something --- */

#define IDLE 150

/* Nanoseconds of a look at an empty queue */
static uint64_t look_ns(struct warp_cq *cq)
{
	struct timespec t0, t1;
	struct warp_wc wc;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t0);
	for (int i = 0; i < 2000; i++)
		MUST(warp_cq_poll(cq, &wc, 1) == 0);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t1);
	return ((uint64_t)(t1.tv_sec - t0.tv_sec) * 1000000000 +
		(uint64_t)(t1.tv_nsec - t0.tv_nsec)) /
	       2000;
}

static bool idle_connections_cost_nothing(void)
{
	static struct end e[IDLE];
	static struct warp_qp *qps[IDLE];
	static struct warp_conn *conns[IDLE];
	struct warp_qp_attr attr = { .max_send_wr = 1, .max_recv_wr = 1 };
	struct end server;
	uint64_t two = 0, all;

	MUST(warp_device_open("soft", &dev) == 0);
	end_init(&server, dev, 4);
	attr.send_cq = attr.recv_cq = server.cq;
	for (int i = 0; i < IDLE; i++) {
		struct end s = server;

		end_init(&e[i], dev, 4);
		MUST(warp_qp_create(server.pd, &attr, &s.qp) == 0);
		ends_connect(&e[i], &s, NULL, NULL);
		MUST(warp_conn_wait(s.conn, PATIENCE_MS) == 0);
		qps[i] = s.qp;
		conns[i] = s.conn;
		if (i == 1)
			two = look_ns(server.cq);
	}
	all = look_ns(server.cq);
	printf("# a look takes %lu ns with 2 connections, %lu ns with %d\n", (unsigned long)two,
	       (unsigned long)all, IDLE);
	for (int i = 0; i < IDLE; i++) {
		MUST(warp_conn_destroy(conns[i]) == 0);
		MUST(warp_qp_destroy(qps[i]) == 0);
		end_uninit(&e[i]);
	}
	end_uninit(&server);
	return warp_device_close(dev) == 0 && all < 10 * two;
}

/* --- storms --- */

#define STORM 40

static void *storm(void *arg)
{
	const struct sockaddr_storage *at = arg;
	struct end e;

	for (int i = 0; i < STORM; i++) {
		struct warp_wc wc;

		end_init(&e, dev, 16);
		MUST(warp_connect(e.qp, (const struct sockaddr *)at, sizeof(struct sockaddr_in),
				  NULL, &e.conn) == 0);
		MUST(i % 3 == 2 || warp_conn_wait(e.conn, PATIENCE_MS) == 0);
		if (i % 3 == 0) {
			MUST(end_post(&e, (struct warp_send_wr){ .opcode = WARP_WR_SEND }, 0,
				      100) == 1);
			MUST(warp_conn_disconnect(e.conn) == 0);
		}
		warp_cq_poll(e.cq, &wc, 1);
		end_uninit(&e);
	}
	return NULL;
}

static void *serve(void *arg)
{
	struct warp_listener *l = arg;
	struct end e;

	end_init(&e, dev, 16);
	while (warp_listener_get(l, 500, &e.conn) == 0) {
		struct warp_wc wc;

		if (warp_conn_accept(e.conn, e.qp, NULL) == 0) {
			end_recv(&e, 0, 0, 100);
			warp_cq_wait(e.cq, 200);
			while (warp_cq_poll(e.cq, &wc, 1) == 1)
				;
		}
		MUST(warp_conn_destroy(e.conn) == 0);
		e.conn = NULL;
	}
	MUST(warp_listener_get(l, 0, &e.conn) == -ETIMEDOUT);
	MUST(warp_qp_destroy(e.qp) == 0 && warp_mr_deregister(e.mr) == 0);
	MUST(warp_cq_destroy(e.cq) == 0 && warp_pd_destroy(e.pd) == 0);
	free(e.mem);
	return NULL;
}

static bool storms_leave_nothing(void)
{
	struct sockaddr_storage at;
	struct warp_listener *l;
	pthread_t t[4];
	int before = entries("/proc/self/fd");

	MUST(warp_device_open("soft", &dev) == 0);
	l = end_listen(dev, &at);
	pthread_create(&t[0], NULL, storm, &at);
	pthread_create(&t[1], NULL, storm, &at);
	pthread_create(&t[2], NULL, serve, l);
	pthread_create(&t[3], NULL, serve, l);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	MUST(warp_listener_destroy(l) == 0);
	MUST(warp_device_close(dev) == 0);
	return entries("/proc/self/fd") == before;
}

int main(void)
{
	alarm(120);
	tap_case(ping_pong(false, 2000), "two threads poll");
	tap_case(ping_pong(true, 2000), "two threads sleep");
	tap_case(everything(), "posters, reapers and the progress thread at once");
	tap_case(reads_of_a_sleeping_program(), "Reads are answered while the program sleeps");
	tap_case(reads_of_changing_memory(), "Reads of memory that changes");
	for (int i = 0; i < 3; i++)
		tap_case(deregistered_memory_stays_as_it_is(), "deregistration under Writes");
	tap_case(deregistration_waits(), "deregistration waits for who is in the memory");
	tap_case(two_wait_for_two_completions(), "two wait for two completions");
	tap_case(waiting_while_another_looks(), "one waits for a connection, another one looks");
	tap_case(one_of_two_accepts(), "one of two accepts");
	tap_case(idle_connections_cost_nothing(), "idle connections cost a look nothing");
	tap_case(storms_leave_nothing(), "storms of connections leave no descriptors");
	return tap_finish();
}
