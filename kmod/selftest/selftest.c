/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The codec as it was compiled for this kernel, held against the vectors of the unit tests: each
 * FPDU is built, received whole and received with a bit flipped, each message is sent, each
 * Terminate is brought about. It runs in the context of insmod, before any socket.
 */
#include "kmod/selftest/selftest.h"

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/kernel.h>
#include <linux/slab.h>

#include "base/bits.h"
#include "base/crc32c.h"
#include "tests/vectors/fpdu.h"
#include "tests/vectors/rdmap.h"

#define OCTETS_MAX 256 /* of a vector, and of what is made of it */

/* All of a test that would make the frames of its functions long */
struct bench {
	struct rdmap_stream s;
	struct rdmap_inbound in[2];
	struct rdmap_outbound out[2];
	struct rdmap_slots slots;
	struct mpa_txv v;
	struct iovec iov[16];
	__u8 scratch[OCTETS_MAX];
	__u8 wire[OCTETS_MAX], want[OCTETS_MAX], ulpdu[OCTETS_MAX];
};

/* Octets from hex digits, of which each has two; blanks are for the reader */
static size_t unhex(const char *text, __u8 *out)
{
	size_t n = 0;

	for (; *text && n < OCTETS_MAX; text++) {
		if (*text == ' ')
			continue;
		out[n++] = (__u8)(hex_to_bin(text[0]) << 4 | hex_to_bin(text[1]));
		text++;
	}
	return n;
}

static void bench_reset(struct bench *b, enum mpa_role role, __u8 flags, __u8 rtr)
{
	const struct mpa_config config = { .rev = 2, .ird = 2, .ord = 2 };
	struct mpa_conn *c = &b->s.ddp.mpa;

	memset(b, 0, sizeof(*b));
	b->slots = (struct rdmap_slots)RDMAP_SLOTS(b->in, b->out);
	b->v = (struct mpa_txv){
		.iov = b->iov,
		.iov_cap = base_array_size(b->iov),
		.scratch = b->scratch,
		.scratch_cap = sizeof(b->scratch),
	};
	rdmap_stream_init(&b->s, role, &config, 2, 2);
	c->state = MPA_OPEN;
	c->flags = flags;
	c->rtr = rtr;
	c->ird = c->ord = 2;
	c->mulpdu = 1440;
	rdmap_stream_started(&b->s);
}

/* What has been built, in one piece */
static size_t bench_flatten(struct bench *b)
{
	size_t n = 0;

	for (__u32 i = 0; i < b->v.niov && n + b->iov[i].iov_len <= OCTETS_MAX; i++) {
		memcpy(b->wire + n, b->iov[i].iov_base, b->iov[i].iov_len);
		n += b->iov[i].iov_len;
	}
	return n;
}

static bool wire_is(struct bench *b, const char *hex)
{
	size_t n = bench_flatten(b);

	return n == unhex(hex, b->want) && !memcmp(b->wire, b->want, n);
}

/* --- MPA ------------------------------------------------------------------------------------ */

static bool fpdu_built(struct bench *b, const struct fpdu_vector *row)
{
	size_t n = unhex(row->ulpdu, b->ulpdu);

	bench_reset(b, MPA_INITIATOR, row->flags, 0);
	n = unhex(row->ulpdu, b->ulpdu);
	b->s.ddp.mpa.tx_phase = row->phase;
	return !mpa_tx_fpdu(&b->s.ddp.mpa, &b->v, b->ulpdu, n, NULL, 0) && wire_is(b, row->wire);
}

static int fpdu_take(struct bench *b, const struct fpdu_vector *row, unsigned int bit,
		     struct mpa_fpdu *f)
{
	size_t n;

	bench_reset(b, MPA_INITIATOR, row->flags, 0);
	n = unhex(row->wire, b->wire);
	b->s.ddp.mpa.rx_phase = row->phase;
	if (bit)
		b->wire[bit / 8] ^= 1u << bit % 8;
	return mpa_rx_fpdu(&b->s.ddp.mpa, b->wire, n, f);
}

static bool fpdu_received(struct bench *b, const struct fpdu_vector *row)
{
	struct mpa_fpdu f;

	if (fpdu_take(b, row, 0, &f))
		return false;
	return f.len == unhex(row->ulpdu, b->ulpdu) && !memcmp(f.ulpdu, b->ulpdu, f.len);
}

/* In the octet behind the length and a marker before it, which the CRC covers */
static bool flip_caught(struct bench *b, const struct fpdu_vector *row)
{
	struct mpa_fpdu f;

	return !(row->flags & MPA_F_CRC) ||
	       (fpdu_take(b, row, 8 * 8 + 3, &f) == -EPROTO && b->s.ddp.mpa.fault == MPA_E_CRC);
}

/* --- RDMAP ---------------------------------------------------------------------------------- */

static bool message_sent(struct bench *b, const struct rdmap_vector *row)
{
	bool last = false;

	bench_reset(b, MPA_INITIATOR, MPA_F_CRC | (row->rtr ? MPA_F_P2P : 0), row->rtr);
	if (row->rtr)
		return rdmap_tx_rtr(&b->s, &b->slots, &b->v) == 1 && wire_is(b, row->wire);
	b->s.ddp.tx_msn[RDMAP_QN_SEND] = row->msn;
	return rdmap_tx_wr(&b->s, &b->slots, &b->v, &row->wr, 0, &last) >= 0 && last &&
	       wire_is(b, row->wire);
}

static unsigned int no_receive(void *ctx, __u64 *len)
{
	return 0;
}

static void ignore(void *ctx)
{
}

static enum ddp_stag_error out_of_bounds(void *ctx, __u32 stag, __u64 to, __u64 len,
					 unsigned int access, __u8 **addr)
{
	return DDP_STAG_BOUNDS;
}

static void provoke(struct bench *b, const struct terminate_vector *row)
{
	static const struct rdmap_sink sink = { .recv_ready = no_receive, .kick = ignore };
	static const struct rdmap_source source = { .get = out_of_bounds };
	size_t n = unhex(row->in, b->ulpdu);

	b->s.ddp.rx_msn[RDMAP_QN_SEND] = row->msn;
	if (!rdmap_rx(&b->s, &b->slots, b->ulpdu, n, &sink))
		rdmap_tx_response(&b->s, &b->slots, &b->v, &source);
}

static bool terminate_sent(struct bench *b, const struct terminate_vector *row)
{
	bench_reset(b, MPA_INITIATOR, MPA_F_CRC, 0);
	if (row->in)
		provoke(b, row);
	else
		rdmap_fault(&b->s, row->fault);
	return b->s.term.fault == row->fault && rdmap_tx_terminate(&b->s, &b->v) == 1 &&
	       wire_is(b, row->wire);
}

/* --- all ------------------------------------------------------------------------------------ */

static unsigned int failed(bool good, const char *what, const char *name)
{
	if (!good)
		pr_err("self-test: %s: %s\n", name, what);
	return !good;
}

static unsigned int crc_fails(void)
{
	__u32 crc = base_crc32c(BASE_CRC32C_INIT, "123456789", 9);

	return failed(base_crc32c_final(crc) == 0xE3069283, "the check value", "CRC32c");
}

int kmod_selftest_run(void)
{
	struct bench *b = kmalloc(sizeof(*b), GFP_KERNEL);
	unsigned int bad = crc_fails();

	if (!b)
		return -ENOMEM;
	for (size_t i = 0; i < base_array_size(fpdu_vectors); i++) {
		bad += failed(fpdu_built(b, &fpdu_vectors[i]), "building", fpdu_vectors[i].name);
		bad += failed(fpdu_received(b, &fpdu_vectors[i]), "taking", fpdu_vectors[i].name);
		bad += failed(flip_caught(b, &fpdu_vectors[i]), "a bit", fpdu_vectors[i].name);
	}
	for (size_t i = 0; i < base_array_size(rdmap_vectors); i++)
		bad += failed(message_sent(b, &rdmap_vectors[i]), "sending", rdmap_vectors[i].name);
	for (size_t i = 0; i < base_array_size(terminate_vectors); i++)
		bad += failed(terminate_sent(b, &terminate_vectors[i]), "it",
			      terminate_vectors[i].name);
	kfree(b);
	if (bad)
		return -EINVAL;
	pr_info("self-test: %zu vectors passed\n", base_array_size(fpdu_vectors) +
							   base_array_size(rdmap_vectors) +
							   base_array_size(terminate_vectors));
	return 0;
}
