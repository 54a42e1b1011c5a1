/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Start-up: Request and Reply of both roles (RFC 5044 section 7.1, RFC 6581 sections 6 to 10).
 *
 * What this end wants stands in conn->config; what came out stands in the connection. A responder
 * settles it when it answers and not before, so config may change between the Request and the
 * Reply. Frames are judged by whatever prefix is there, so that a stream that is no MPA stream is
 * told from one that is slow.
 *
 * Choices where the RFCs leave one: revision 0 is refused; S in a frame of revision 1 is a
 * reserved bit; a Reply that accepts must have the form (S or not) of the Request, one that
 * rejects need not; a Reply echoes the revision of the Request. A Read as RTR needs a slot: the
 * initiator that offers it asks for an ORD of 1, the responder that chooses it, or of which
 * nothing is known, gives an IRD of 1.
 * A Reply without A, to a Request with it, is one of a device that waits for no RTR.
 */
#include "mpa/mpa.h"

#include <errno.h>

#include "base/bits.h"

#define FLAGS_AT offsetof(struct mpa_rr, flags)
#define REV_AT offsetof(struct mpa_rr, rev)
#define PD_LEN_AT offsetof(struct mpa_rr, pd_len)
#define REV_ENHANCED 2 /* the first revision that knows S */
#define DEPTH_MAX (MPA_ENH_DEPTH - 1)

static __u16 depth_clamp(__u16 depth)
{
	return depth > MPA_DEPTH_ULP ? DEPTH_MAX : depth;
}

void mpa_conn_init(struct mpa_conn *c, enum mpa_role role, const struct mpa_config *config)
{
	*c = (struct mpa_conn){
		.role = role,
		.state = MPA_START,
		.config = *config,
		.mulpdu = MPA_MULPDU_MIN,
		.peer_ird = MPA_DEPTH_ULP,
		.peer_ord = MPA_DEPTH_ULP,
	};
	c->config.rev = config->rev < REV_ENHANCED ? 1 : REV_ENHANCED;
	c->config.ird = depth_clamp(config->ird);
	c->config.ord = depth_clamp(config->ord);
}

static int start_fail(struct mpa_conn *c, enum iwarp_fault fault)
{
	c->state = MPA_FAILED;
	c->fault = fault;
	return -EPROTO;
}

/* --- frames out ---------------------------------------------------------------------------- */

static size_t enh_len(const struct mpa_conn *c)
{
	return c->flags & MPA_F_ENHANCED ? MPA_ENH_LEN : 0;
}

static bool pd_fits(const struct mpa_conn *c, size_t pd_len)
{
	return pd_len <= MPA_PD_MAX - enh_len(c);
}

static void enh_put(const struct mpa_conn *c, __u16 ird, __u16 ord, __u8 *out)
{
	if (c->flags & MPA_F_P2P)
		ird |= MPA_ENH_A | (c->rtr & MPA_RTR_SEND ? MPA_ENH_B : 0);
	if (c->rtr & MPA_RTR_WRITE)
		ord |= MPA_ENH_C;
	if (c->rtr & MPA_RTR_READ)
		ord |= MPA_ENH_D;
	base_put_be16(out + offsetof(struct mpa_enh, ird), ird);
	base_put_be16(out + offsetof(struct mpa_enh, ord), ord);
}

struct frame {
	const char *key;
	__u8 flags; /* besides those that the connection implies */
	__u16 ird, ord;
	const void *pd;
	size_t pd_len;
};

static void frame_put(const struct mpa_conn *c, const struct frame *f, __u8 *out, size_t *len)
{
	const size_t enh = enh_len(c);

	memcpy(out, f->key, MPA_KEY_LEN);
	out[FLAGS_AT] = f->flags | (c->flags & MPA_F_RX_MARKERS ? MPA_RR_M : 0) |
			(c->flags & MPA_F_CRC ? MPA_RR_C : 0) | (enh ? MPA_RR_S : 0);
	out[REV_AT] = c->rev;
	base_put_be16(out + PD_LEN_AT, enh + f->pd_len);
	if (enh)
		enh_put(c, f->ird, f->ord, out + MPA_RR_LEN);
	if (f->pd_len)
		memcpy(out + MPA_RR_LEN + enh, f->pd, f->pd_len);
	*len = MPA_RR_LEN + enh + f->pd_len;
}

/* --- frames in ----------------------------------------------------------------------------- */

static bool frame_is_enhanced(__u8 flags, __u8 rev)
{
	return (flags & MPA_RR_S) && rev >= REV_ENHANCED;
}

static bool rev_good(const struct mpa_conn *c, __u8 flags, __u8 rev)
{
	if (rev < 1 || rev > c->config.rev)
		return false;
	if (c->role == MPA_RESPONDER || (flags & MPA_RR_R))
		return true;
	return frame_is_enhanced(flags, rev) == !!(c->flags & MPA_F_ENHANCED);
}

/* Can the @n octets at @p begin the frame that is due? */
static bool prefix_good(const struct mpa_conn *c, const __u8 *p, size_t n)
{
	const char *key = c->role == MPA_INITIATOR ? MPA_KEY_REP : MPA_KEY_REQ;
	__u16 pd_len;

	for (size_t i = 0; i < n && i < MPA_KEY_LEN; i++) {
		if (p[i] != (__u8)key[i])
			return false;
	}
	if (n > REV_AT && !rev_good(c, p[FLAGS_AT], p[REV_AT]))
		return false;
	if (n == PD_LEN_AT + 1)
		return p[PD_LEN_AT] <= MPA_PD_MAX >> 8;
	if (n < MPA_RR_LEN)
		return true;
	pd_len = base_get_be16(p + PD_LEN_AT);
	return pd_len <= MPA_PD_MAX &&
	       (pd_len >= MPA_ENH_LEN || !frame_is_enhanced(p[FLAGS_AT], p[REV_AT]));
}

static void enh_get(struct mpa_startup *in, const __u8 *p)
{
	const __u16 ird = base_get_be16(p + offsetof(struct mpa_enh, ird));
	const __u16 ord = base_get_be16(p + offsetof(struct mpa_enh, ord));

	in->ird = ird & MPA_ENH_DEPTH;
	in->ord = ord & MPA_ENH_DEPTH;
	in->p2p = ird & MPA_ENH_A;
	if (!in->p2p)
		return;
	in->rtr = (ird & MPA_ENH_B ? MPA_RTR_SEND : 0) | (ord & MPA_ENH_C ? MPA_RTR_WRITE : 0) |
		  (ord & MPA_ENH_D ? MPA_RTR_READ : 0);
}

/* Takes a whole frame apart that prefix_good() has seen */
static void frame_split(const __u8 *p, struct mpa_startup *in)
{
	const __u16 pd_len = base_get_be16(p + PD_LEN_AT);
	size_t enh = 0;

	*in = (struct mpa_startup){
		.flags = p[FLAGS_AT] & (MPA_RR_M | MPA_RR_C | MPA_RR_R),
		.rev = p[REV_AT],
		.ird = MPA_DEPTH_ULP,
		.ord = MPA_DEPTH_ULP,
	};
	if (frame_is_enhanced(p[FLAGS_AT], p[REV_AT])) {
		in->flags |= MPA_RR_S;
		enh_get(in, p + MPA_RR_LEN);
		enh = MPA_ENH_LEN;
	}
	in->pd = p + MPA_RR_LEN + enh;
	in->pd_len = pd_len - enh;
}

static int frame_get(struct mpa_conn *c, const __u8 *p, size_t n, struct mpa_startup *in,
		     size_t *used)
{
	size_t need = MPA_RR_LEN;

	if (!prefix_good(c, p, n))
		return start_fail(c, MPA_E_START);
	if (n >= MPA_RR_LEN)
		need += base_get_be16(p + PD_LEN_AT);
	*used = need;
	if (n < need)
		return -EAGAIN;
	frame_split(p, in);
	c->peer_ird = in->ird;
	c->peer_ord = in->ord;
	return 0;
}

/* What the peer's frame alone decides or joins in deciding */
static __u8 peer_flags(const struct mpa_startup *in)
{
	return (in->flags & MPA_RR_M ? MPA_F_TX_MARKERS : 0) |
	       (in->flags & MPA_RR_C ? MPA_F_CRC : 0);
}

/* --- negotiation --------------------------------------------------------------------------- */

/* Least trouble first: a Write leaves no trace, a Read takes a slot, a Send perhaps a buffer */
static __u8 rtr_pick(__u8 set)
{
	if (set & MPA_RTR_WRITE)
		return MPA_RTR_WRITE;
	return set & MPA_RTR_READ ? MPA_RTR_READ : set & MPA_RTR_SEND;
}

/* How deep Reads may be where one end wants @ord and the other takes @ird */
static __u16 depth_lower(__u16 ord, __u16 ird)
{
	if (ord == MPA_DEPTH_ULP || ird == MPA_DEPTH_ULP)
		return ord;
	return base_min(ord, ird);
}

static void initiator_want(struct mpa_conn *c)
{
	const struct mpa_config *f = &c->config;
	const bool p2p = (f->want & MPA_F_P2P) && f->rtr && f->rev >= REV_ENHANCED;

	c->flags = f->want & (MPA_F_CRC | MPA_F_RX_MARKERS);
	if (f->rev >= REV_ENHANCED)
		c->flags |= f->want & MPA_F_ENHANCED;
	if (p2p)
		c->flags |= MPA_F_ENHANCED | MPA_F_P2P;
	c->rev = c->flags & MPA_F_ENHANCED ? REV_ENHANCED : 1;
	c->rtr = p2p ? f->rtr : 0;
	c->ird = f->ird;
	c->ord = c->rtr & MPA_RTR_READ ? base_max(f->ord, 1) : f->ord;
}

static int initiator_settle(struct mpa_conn *c, const struct mpa_startup *in)
{
	c->flags |= peer_flags(in);
	if (!(c->flags & MPA_F_ENHANCED))
		return 0;
	c->ord = depth_lower(c->ord, in->ird);
	if (in->ord != MPA_DEPTH_ULP && in->ord > c->ird)
		return start_fail(c, MPA_E_IRD);
	if (!(c->flags & MPA_F_P2P && in->p2p)) {
		c->flags &= ~MPA_F_P2P;
		c->rtr = 0;
		return 0;
	}
	c->rtr = rtr_pick(c->rtr & in->rtr & (c->ord ? ~0 : ~MPA_RTR_READ));
	return c->rtr ? 0 : start_fail(c, MPA_E_RTR);
}

/* Where nothing is agreed there are devices whose first FPDU is a Read all the same */
static bool read_may_come(const struct mpa_conn *c)
{
	return c->rtr == MPA_RTR_READ || !(c->flags & MPA_F_ENHANCED);
}

static void responder_settle(struct mpa_conn *c)
{
	const struct mpa_config *f = &c->config;
	const __u8 common = c->rtr & f->rtr;

	c->flags |= f->want & (MPA_F_CRC | MPA_F_RX_MARKERS);
	if (c->flags & MPA_F_P2P)
		c->rtr = rtr_pick(common ? common : f->rtr);
	c->ird = read_may_come(c) ? base_max(f->ird, 1) : f->ird;
	c->ord = f->ord;
}

/* One frame of a responder's; what the initiator leaves to the ULP is left so */
static void answer_put(struct mpa_conn *c, __u8 flags, const void *pd, size_t pd_len, __u8 *out,
		       size_t *len)
{
	const struct frame f = {
		.key = MPA_KEY_REP,
		.flags = flags,
		.ird = c->peer_ord == MPA_DEPTH_ULP ? MPA_DEPTH_ULP : c->ird,
		.ord = c->peer_ird == MPA_DEPTH_ULP ? MPA_DEPTH_ULP : c->ord,
		.pd = pd,
		.pd_len = pd_len,
	};

	frame_put(c, &f, out, len);
}

/* --- the calls ----------------------------------------------------------------------------- */

static bool stands(const struct mpa_conn *c, enum mpa_role role, enum mpa_state state)
{
	return c->role == role && c->state == state;
}

/* Why a frame is not taken now: it has been judged already, or the caller is wrong */
static int refuse(const struct mpa_conn *c)
{
	return c->state == MPA_FAILED ? -EPROTO : -EINVAL;
}

int mpa_start_request_put(struct mpa_conn *c, const void *pd, size_t pd_len, __u8 *out, size_t *len)
{
	struct frame f = { .key = MPA_KEY_REQ, .pd = pd, .pd_len = pd_len };

	if (!stands(c, MPA_INITIATOR, MPA_START))
		return -EINVAL;
	initiator_want(c);
	if (!pd_fits(c, pd_len))
		return -EMSGSIZE;
	f.ird = c->ird;
	f.ord = c->ord;
	frame_put(c, &f, out, len);
	c->state = MPA_REQUESTED;
	return 0;
}

int mpa_start_request_get(struct mpa_conn *c, const __u8 *p, size_t n, struct mpa_startup *in,
			  size_t *used)
{
	int rc;

	if (!stands(c, MPA_RESPONDER, MPA_START))
		return refuse(c);
	rc = frame_get(c, p, n, in, used);
	if (rc)
		return rc;
	in->flags &= ~MPA_RR_R;
	c->rev = in->rev;
	c->rtr = in->rtr;
	c->flags = peer_flags(in) | (in->flags & MPA_RR_S ? MPA_F_ENHANCED : 0) |
		   (in->p2p ? MPA_F_P2P : 0);
	c->state = MPA_REQUESTED;
	return 0;
}

int mpa_start_reply_put(struct mpa_conn *c, const void *pd, size_t pd_len, __u8 *out, size_t *len)
{
	if (!stands(c, MPA_RESPONDER, MPA_REQUESTED))
		return -EINVAL;
	if (!pd_fits(c, pd_len))
		return -EMSGSIZE;
	responder_settle(c);
	c->ord = depth_lower(c->ord, c->peer_ird);
	answer_put(c, 0, pd, pd_len, out, len);
	c->state = MPA_GATED;
	return 0;
}

/* The depths are the wanted ones, not lowered: they may be why it was rejected */
int mpa_start_reject_put(struct mpa_conn *c, const void *pd, size_t pd_len, __u8 *out, size_t *len)
{
	if (!stands(c, MPA_RESPONDER, MPA_REQUESTED))
		return -EINVAL;
	if (!pd_fits(c, pd_len))
		return -EMSGSIZE;
	responder_settle(c);
	answer_put(c, MPA_RR_R, pd, pd_len, out, len);
	c->state = MPA_REJECTED;
	return 0;
}

int mpa_start_reply_get(struct mpa_conn *c, const __u8 *p, size_t n, struct mpa_startup *in,
			size_t *used)
{
	int rc;

	if (!stands(c, MPA_INITIATOR, MPA_REQUESTED))
		return refuse(c);
	rc = frame_get(c, p, n, in, used);
	if (rc)
		return rc;
	if (in->flags & MPA_RR_R) {
		c->state = MPA_REJECTED;
		return -ECONNREFUSED;
	}
	rc = initiator_settle(c, in);
	if (rc)
		return rc;
	c->state = MPA_OPEN;
	return 0;
}
