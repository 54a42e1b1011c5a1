/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Both directions of two streams at once, without a lock between the directions of a stream:
 *
 *	a.tx --frames--> b.rx		b.tx --frames--> a.rx
 *	a.rx, a.tx share a's stream	b.rx, b.tx share b's
 *
 * Each end asks for Reads and Atomics as deep as it may and answers the other's; the transport
 * often takes less than was built. All must be answered, in order, and nobody may see more
 * requests than the depth that was agreed, however late a commit is.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "rdmap/rdmap.h"
#include "tests/tap.h"

enum { DEPTH = 3, REQUESTS = 20000, READ_LEN = 300, FRAMES = 5, PIPE = 1 << 16, PD = 1 };
enum { SECONDS_MAX = 50 };
#define TO 0x1000

/* One direction of the connection; holds whole FPDUs */
struct pipe {
	pthread_mutex_t lock;
	size_t used;
	__u8 octets[PIPE];
};

struct end {
	struct rdmap_stream s;
	struct rdmap_inbound in[2 * DEPTH];
	struct rdmap_outbound out[DEPTH];
	struct rdmap_slots slots;
	struct rdmap_sink sink;
	struct rdmap_source source;
	struct ddp_stag_table stags;
	struct ddp_region region[3];
	struct end *peer;
	struct pipe *to, *from;
	__u8 data[READ_LEN], sink_octets[READ_LEN];
	__u64 number;	    /* Atomics of the peer add to it */
	unsigned int done;  /* by rx */
	unsigned int wrong; /* by rx */
	unsigned int seed;
	__u8 taken[PIPE]; /* by rx */
};

enum { DATA, SINK, NUMBER };

static struct pipe pipes[2];
static struct end ends[2];
static time_t deadline;

static bool all_done(void)
{
	unsigned int done = 0;

	for (unsigned int i = 0; i < 2; i++) {
		/* The last of them pairs with sink_done(); the state, with rdmap_fault_at() */
		if (__atomic_load_n(&ends[i].s.state, __ATOMIC_ACQUIRE) != RDMAP_OPEN)
			return true;
		done += __atomic_load_n(&ends[i].done, __ATOMIC_ACQUIRE) == REQUESTS;
	}
	return done == 2 || time(NULL) > deadline;
}

/* --- receiving --------------------------------------------------------------------------- */

static enum iwarp_fault sink_place(void *ctx, const struct ddp_seg *seg, unsigned int access)
{
	struct end *e = ctx;
	enum ddp_stag_error err;
	__u8 *addr;

	err = ddp_stag_check(&e->stags, seg->stag, PD, seg->to, seg->len, access, &addr);
	if (err)
		return ddp_stag_fault_tagged(err);
	memcpy(addr, seg->payload, seg->len);
	return IWARP_OK;
}

/* Even requests are Reads, odd ones Atomics, which find how many of them were before */
static void sink_done(void *ctx, __u64 cookie, __u64 value)
{
	struct end *e = ctx;

	e->wrong += cookie != e->done || value != (cookie % 2 ? cookie / 2 : 0);
	if (cookie % 2 == 0) {
		e->wrong += memcmp(e->sink_octets, e->data, READ_LEN) != 0;
		memset(e->sink_octets, 0, READ_LEN);
	}
	__atomic_store_n(&e->done, e->done + 1, __ATOMIC_RELEASE);
}

static void sink_kick(void *ctx)
{
}

static size_t pipe_take(struct pipe *p, __u8 *out)
{
	size_t n;

	pthread_mutex_lock(&p->lock);
	n = p->used;
	memcpy(out, p->octets, n);
	p->used = 0;
	pthread_mutex_unlock(&p->lock);
	return n;
}

static void *rx(void *arg)
{
	struct end *e = arg;

	while (!all_done()) {
		size_t n = pipe_take(e->from, e->taken), at = 0;
		struct mpa_fpdu f;

		for (; at < n; at += f.used) {
			if (mpa_rx_fpdu(&e->s.ddp.mpa, e->taken + at, n - at, &f))
				abort();
			rdmap_rx(&e->s, &e->slots, f.ulpdu, f.len, &e->sink);
		}
		if (!n)
			sched_yield();
	}
	return NULL;
}

/* --- sending ----------------------------------------------------------------------------- */

static enum ddp_stag_error source_get(void *ctx, __u32 stag, __u64 to, __u64 len,
				      unsigned int access, __u8 **addr)
{
	struct end *e = ctx;

	return ddp_stag_check(&e->stags, stag, PD, to, len, access, addr);
}

static struct rdmap_wr request(const struct end *e, unsigned int i)
{
	return (struct rdmap_wr){ .op = i % 2 ? RDMAP_ATOMIC_REQ : RDMAP_READ_REQ,
				  .aop = RDMAP_FETCH_ADD,
				  .data = 1,
				  .len = READ_LEN,
				  .stag = e->peer->region[i % 2 ? NUMBER : DATA].stag,
				  .to = TO,
				  .sink_stag = e->region[SINK].stag,
				  .sink_to = TO,
				  .cookie = i };
}

struct batch {
	struct mpa_txv v;
	struct iovec iov[64];
	__u8 scratch[1024];
	unsigned int count;
	struct rdmap_tx_mark mark[FRAMES + 1]; /* before each frame, and behind the last */
	__u64 end[FRAMES + 1];
	unsigned int asked[FRAMES + 1];
};

static bool frame_put(struct end *e, struct batch *b, unsigned int *asked)
{
	struct rdmap_wr wr = request(e, *asked);
	bool last;

	if (rdmap_tx_response(&e->s, &e->slots, &b->v, &e->source) == 1)
		return true;
	if (*asked == REQUESTS || rdmap_tx_wr(&e->s, &e->slots, &b->v, &wr, 0, &last) < 0)
		return false;
	++*asked;
	return true;
}

static void batch_build(struct end *e, struct batch *b, unsigned int *asked)
{
	b->v = (struct mpa_txv){
		.iov = b->iov, .iov_cap = 64, .scratch = b->scratch, .scratch_cap = 1024
	};
	for (b->count = 0;; b->count++) {
		rdmap_tx_mark(&e->s, &b->mark[b->count]);
		b->end[b->count] = b->v.octets;
		b->asked[b->count] = *asked;
		if (b->count == FRAMES || !frame_put(e, b, asked))
			return;
	}
}

/* The first @n octets of the batch, unless the pipe is too full */
static bool pipe_put(struct pipe *p, const struct batch *b, size_t n)
{
	bool fits;

	pthread_mutex_lock(&p->lock);
	fits = p->used + n <= PIPE;
	for (__u32 i = 0; fits && n; i++) {
		size_t piece = base_min(n, b->iov[i].iov_len);

		memcpy(p->octets + p->used, b->iov[i].iov_base, piece);
		p->used += piece;
		n -= piece;
	}
	pthread_mutex_unlock(&p->lock);
	return fits;
}

static void *tx(void *arg)
{
	struct end *e = arg;
	unsigned int asked = 0;
	struct batch b;

	while (!all_done()) {
		unsigned int n;

		batch_build(e, &b, &asked);
		n = rand_r(&e->seed) % 4 ? b.count : rand_r(&e->seed) % (b.count + 1);
		if (!pipe_put(e->to, &b, b.end[n]))
			n = 0;
		/* The other end may have answered before this one commits */
		if (rand_r(&e->seed) % 2)
			sched_yield();
		if (n < b.count) {
			rdmap_tx_rewind(&e->s, &b.mark[n]);
			asked = b.asked[n];
		}
		rdmap_tx_commit(&e->s);
	}
	return NULL;
}

/* --- both -------------------------------------------------------------------------------- */

static void region_add(struct end *e, unsigned int i, void *addr, size_t len, __u8 access)
{
	e->region[i] = (struct ddp_region){
		.to = TO, .len = len, .addr = addr, .pd = PD, .access = access
	};
	if (ddp_stag_insert(&e->stags, &e->region[i]))
		abort();
}

static void end_init(struct end *e, unsigned int i)
{
	struct mpa_config config = { .rev = 2, .ird = DEPTH, .ord = DEPTH };
	struct mpa_conn *c = &e->s.ddp.mpa;

	e->slots = (struct rdmap_slots)RDMAP_SLOTS(e->in, e->out);
	e->sink = (struct rdmap_sink){
		.place = sink_place, .done = sink_done, .kick = sink_kick, .ctx = e
	};
	e->source = (struct rdmap_source){ .get = source_get, .ctx = e };
	e->peer = &ends[!i];
	e->to = &pipes[i];
	e->from = &pipes[!i];
	e->seed = i + 1;
	for (unsigned int k = 0; k < READ_LEN; k++)
		e->data[k] = (__u8)(k * 7);
	if (ddp_stag_table_init(&e->stags, 3))
		abort();
	region_add(e, DATA, e->data, READ_LEN, DDP_REMOTE_READ);
	region_add(e, SINK, e->sink_octets, READ_LEN, DDP_LOCAL_WRITE);
	region_add(e, NUMBER, &e->number, sizeof(e->number), DDP_REMOTE_ATOMIC);
	rdmap_stream_init(&e->s, i ? MPA_RESPONDER : MPA_INITIATOR, &config, 2 * DEPTH, DEPTH);
	c->state = MPA_OPEN;
	c->flags = MPA_F_CRC;
	c->ird = c->ord = DEPTH;
	c->mulpdu = 140;
	if (rdmap_stream_started(&e->s))
		abort();
	pthread_mutex_init(&pipes[i].lock, NULL);
}

static void end_judge(const struct end *e, const char *name)
{
	if (e->s.term.fault)
		printf("# %s: %s\n", name, rdmap_fault_text(e->s.term.fault));
	printf("# %s: %u requests answered\n", name, e->done);
	tap_case(e->done == REQUESTS && !e->wrong, name);
	tap_case(e->number == REQUESTS / 2, "each Atomic was executed once");
}

int main(void)
{
	pthread_t threads[4];

	deadline = time(NULL) + SECONDS_MAX;
	end_init(&ends[0], 0);
	end_init(&ends[1], 1);
	for (unsigned int i = 0; i < 4; i++) {
		if (pthread_create(&threads[i], NULL, i % 2 ? rx : tx, &ends[i / 2]))
			abort();
	}
	for (unsigned int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	end_judge(&ends[0], "what the initiator asked for");
	end_judge(&ends[1], "what the responder asked for");
	for (unsigned int i = 0; i < 2; i++)
		ddp_stag_table_uninit(&ends[i].stags);
	return tap_finish();
}
