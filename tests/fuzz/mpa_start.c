/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Start-up frames from anybody, to both roles. However the octets are cut, the verdict must be
 * that of the whole; what is handed up must lie inside the frame; and a responder's answer must
 * be a frame that an initiator takes.
 *
 * The input: mode, revision and wants, forms, depths (2 + 2), cuts, then the octets that come in.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "mpa/mpa.h"

enum { MODE_INITIATOR = 1, MODE_KEY = 2, MODE_REJECT = 4 };
enum { HEAD = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
	if (!good)
		abort();
}

struct verdict {
	int rc;
	struct mpa_conn c;
	struct mpa_startup in;
	size_t used;
};

static int get(struct mpa_conn *c, const uint8_t *p, size_t n, struct mpa_startup *in, size_t *used)
{
	return c->role == MPA_INITIATOR ? mpa_start_reply_get(c, p, n, in, used)
					: mpa_start_request_get(c, p, n, in, used);
}

/* Offers @n octets at an address of their own, where reading on is seen */
static struct verdict offer(const struct mpa_conn *c, const uint8_t *p, size_t n)
{
	struct verdict v = { .c = *c };
	uint8_t *copy = malloc(n);

	memcpy(copy, p, n);
	v.rc = get(&v.c, copy, n, &v.in, &v.used);
	if (v.rc == 0 || v.rc == -ECONNREFUSED) {
		must(v.used <= n && v.used <= MPA_START_MAX);
		must(v.in.pd + v.in.pd_len == copy + v.used);
		must(v.in.pd >= copy + MPA_RR_LEN);
	}
	v.in.pd = NULL;
	free(copy);
	return v;
}

static bool refused(const struct verdict *v)
{
	return v->rc == -EPROTO && v->c.fault == MPA_E_START;
}

/* The frame comes in pieces; @cuts says where they end */
static void offer_cut(const struct mpa_conn *c, const uint8_t *p, size_t n, uint8_t cuts,
		      const struct verdict *whole)
{
	size_t need = 0;

	for (size_t have = 0; have < n; have += 1 + cuts % 32, cuts = cuts * 5 + 1) {
		struct verdict v = offer(c, p, have);

		if (v.rc == -EAGAIN) {
			must(v.used > have && v.used >= need && v.used <= MPA_START_MAX);
			must(whole->rc == -EAGAIN || refused(whole) || v.used <= whole->used);
			must(v.c.state == c->state && v.c.fault == IWARP_OK);
			need = v.used;
			continue;
		}
		must(v.rc == whole->rc && v.c.fault == whole->c.fault);
		must(memcmp(&v.c, &whole->c, sizeof(v.c)) == 0);
		must(refused(&v) || memcmp(&v.in, &whole->in, sizeof(v.in)) == 0);
	}
}

/* What the responder says to the request that it took, an initiator of the same form takes */
static void answer(struct mpa_conn c, const struct mpa_startup *request, bool reject)
{
	const struct mpa_config config = { .rev = request->rev,
					   .want = request->flags & MPA_RR_S ? MPA_F_ENHANCED : 0,
					   .ird = MPA_DEPTH_ULP };
	uint8_t pd[MPA_PD_MAX] = { 0 }, wire[MPA_START_MAX];
	size_t pd_len = MPA_PD_MAX - (config.want ? MPA_ENH_LEN : 0), len, used;
	struct mpa_conn peer;
	struct mpa_startup in;

	mpa_conn_init(&peer, MPA_INITIATOR, &config);
	must(!mpa_start_request_put(&peer, NULL, 0, wire, &len));
	if (reject)
		must(!mpa_start_reject_put(&c, pd, pd_len, wire, &len));
	else
		must(!mpa_start_reply_put(&c, pd, pd_len, wire, &len));
	must(len == MPA_START_MAX && !(wire[16] & 0xF) && wire[17] == request->rev);
	must(c.rtr == 0 || c.rtr == MPA_RTR_SEND || c.rtr == MPA_RTR_WRITE ||
	     c.rtr == MPA_RTR_READ);
	must(!mpa_conn_may_send(&c));
	must(mpa_start_reply_get(&peer, wire, len, &in, &used) == (reject ? -ECONNREFUSED : 0));
	must(used == len && in.pd_len == pd_len && in.p2p == request->p2p);
}

static struct mpa_conn conn_of(const uint8_t *head)
{
	const struct mpa_config config = {
		.rev = head[1] & 3,
		.want = head[1] & (MPA_F_CRC | MPA_F_RX_MARKERS | MPA_F_ENHANCED | MPA_F_P2P),
		.rtr = head[2] & 7,
		.ird = base_get_be16(head + 3),
		.ord = base_get_be16(head + 5),
	};
	struct mpa_conn c;
	uint8_t wire[MPA_START_MAX];
	size_t len;

	mpa_conn_init(&c, head[0] & MODE_INITIATOR ? MPA_INITIATOR : MPA_RESPONDER, &config);
	if (c.role == MPA_INITIATOR)
		must(!mpa_start_request_put(&c, NULL, 0, wire, &len));
	return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t octets[2 * MPA_START_MAX];
	size_t n = base_min(size - HEAD, sizeof(octets));
	struct mpa_conn c;
	struct verdict v;

	if (size < HEAD)
		return 0;
	c = conn_of(data);
	memcpy(octets, data + HEAD, n);
	if ((data[0] & MODE_KEY) && n >= MPA_KEY_LEN)
		memcpy(octets, c.role == MPA_INITIATOR ? MPA_KEY_REP : MPA_KEY_REQ, MPA_KEY_LEN);
	v = offer(&c, octets, n);
	offer_cut(&c, octets, n, data[7], &v);
	if (v.rc == 0 && c.role == MPA_RESPONDER)
		answer(v.c, &v.in, data[0] & MODE_REJECT);
	return 0;
}
