/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options of level SOL_DDP: the hand-over, and what is told of a connection.
 */
#include <linux/slab.h>

#include "kmod/conn.h"
#include "kmod/op.h"
#include "kmod/region.h"
#include "kmod/ulp.h"

#include <warp/ddp.h>

#define FLAGS_KNOWN                                                            \
	(DDP_HANDOVER_RESPONDER | DDP_HANDOVER_CRC | DDP_HANDOVER_TX_MARKERS | \
	 DDP_HANDOVER_RX_MARKERS | DDP_HANDOVER_GATED | DDP_HANDOVER_ALIGNED)

static bool phase_good(__u16 phase)
{
	return phase < MPA_MARKER_EVERY && phase % 4 == 0;
}

static bool handover_good(const struct ddp_handover *h)
{
	if (h->flags & ~FLAGS_KNOWN || h->reserved[0] || h->reserved[1])
		return false;
	if (h->flags & DDP_HANDOVER_GATED && !(h->flags & DDP_HANDOVER_RESPONDER))
		return false;
	if (h->mulpdu && (h->mulpdu < MPA_MULPDU_MIN || h->mulpdu > MPA_MULPDU_MAX))
		return false;
	return h->recv_max <= DDP_KERNEL_RECV_MAX && h->left_len <= DDP_KERNEL_LEFT_MAX &&
	       h->ird <= DDP_KERNEL_DEPTH_MAX && h->ord <= DDP_KERNEL_DEPTH_MAX &&
	       phase_good(h->tx_phase) && phase_good(h->rx_phase);
}

static __u8 mpa_flags(const struct ddp_handover *h)
{
	return (h->flags & DDP_HANDOVER_CRC ? MPA_F_CRC : 0) |
	       (h->flags & DDP_HANDOVER_TX_MARKERS ? MPA_F_TX_MARKERS : 0) |
	       (h->flags & DDP_HANDOVER_RX_MARKERS ? MPA_F_RX_MARKERS : 0);
}

/* The stream as it would be had it started here */
static void stream_fill(struct conn *c, const struct ddp_handover *h)
{
	const struct mpa_config config = { .rev = 2, .ird = h->ird, .ord = h->ord };
	const bool responder = h->flags & DDP_HANDOVER_RESPONDER;
	const bool gated = h->flags & DDP_HANDOVER_GATED;
	struct rdmap_stream *s = &c->s;
	struct mpa_conn *mpa = &s->ddp.mpa;

	rdmap_stream_init(s, responder ? MPA_RESPONDER : MPA_INITIATOR, &config,
			  base_array_size(c->in), base_array_size(c->out));
	mpa->state = gated ? MPA_GATED : MPA_OPEN;
	mpa->flags = mpa_flags(h);
	mpa->ird = h->ird;
	mpa->ord = h->ord;
	mpa->tx_phase = h->tx_phase;
	mpa->rx_phase = h->rx_phase;
	mpa_conn_set_emss(mpa, tcp_sk(c->sk)->mss_cache);
	mpa->rx_fpdus = responder && !gated; /* the one that opened the gate */
	rdmap_stream_started(s);
	s->began = !gated;
	memcpy(s->ddp.tx_msn, h->tx_msn, sizeof(h->tx_msn));
	memcpy(s->ddp.rx_msn, h->rx_msn, sizeof(h->rx_msn));
}

static int left_read(const struct ddp_handover *h, bool user, struct conn_chunk **out)
{
	struct conn_chunk *left;

	if (!h->left_len)
		return 0;
	if (!user)
		return -EINVAL;
	left = conn_chunk_get(h->left_len, GFP_KERNEL_ACCOUNT);
	if (!left)
		return -ENOMEM;
	left->len = h->left_len;
	if (copy_from_user(left->data, u64_to_user_ptr(h->left), h->left_len)) {
		kvfree(left);
		return -EFAULT;
	}
	*out = left;
	return 0;
}

static int handover_locked(struct conn *c, const struct ddp_handover *h, struct conn_chunk *left)
{
	int rc;

	if (c->sk->sk_state != TCP_ESTABLISHED && c->sk->sk_state != TCP_CLOSE_WAIT)
		return -ENOTCONN;
	if (c->state != CONN_TCP)
		return -EALREADY;
	stream_fill(c, h);
	rc = conn_tx_init(c);
	if (rc)
		return rc;
	c->aligned = h->flags & DDP_HANDOVER_ALIGNED;
	c->mulpdu_max = h->mulpdu;
	c->rx.recv_max = h->recv_max ?: DDP_KERNEL_RECV_DEFAULT;
	rc = kmod_ulp_take(c, CONN_DDP);
	if (rc) {
		conn_tx_uninit(c);
		return rc;
	}
	c->rx.left = left;
	c->rx.seq = tcp_sk(c->sk)->copied_seq - h->left_len;
	conn_tx_run(c);
	conn_rx_pump(c, GFP_KERNEL);
	return 0;
}

static int handover_set(struct conn *c, sockptr_t value, unsigned int len)
{
	struct conn_chunk *left = NULL;
	struct ddp_handover h;
	int rc;

	if (len != sizeof(h))
		return -EINVAL;
	if (copy_from_sockptr(&h, value, sizeof(h)))
		return -EFAULT;
	if (!handover_good(&h))
		return -EINVAL;
	rc = left_read(&h, !sockptr_is_kernel(value), &left);
	if (rc)
		return rc;
	lock_sock(c->sk);
	rc = handover_locked(c, &h, left);
	release_sock(c->sk);
	if (rc)
		kvfree(left);
	return rc;
}

/* --- registered memory ------------------------------------------------------------------------ */

static int reg_set(struct conn *c, sockptr_t value, unsigned int len)
{
	struct ddp_reg_mr reg;
	__u32 stag;
	int rc;

	if (len != sizeof(reg) || sockptr_is_kernel(value))
		return -EINVAL;
	if (copy_from_sockptr(&reg, value, sizeof(reg)))
		return -EFAULT;
	rc = conn_region_add(c, &reg, &stag);
	if (rc || !put_user(stag, (__u32 __user *)u64_to_user_ptr(reg.stag)))
		return rc;
	conn_region_remove(c, stag);
	return -EFAULT;
}

static int dereg_set(struct conn *c, sockptr_t value, unsigned int len)
{
	__u32 stag;

	if (len != sizeof(stag))
		return -EINVAL;
	if (copy_from_sockptr(&stag, value, sizeof(stag)))
		return -EFAULT;
	return conn_region_remove(c, stag);
}

static int completions_set(struct conn *c, sockptr_t value, unsigned int len)
{
	__u32 entries;
	int rc;

	if (len != sizeof(entries))
		return -EINVAL;
	if (copy_from_sockptr(&entries, value, sizeof(entries)))
		return -EFAULT;
	lock_sock(c->sk);
	rc = c->state == CONN_DDP ? conn_ring_create(c, entries) : -ENOTCONN;
	release_sock(c->sk);
	return rc;
}

/* --- of a listener ---------------------------------------------------------------------------- */

static int wanted_locked(struct conn *c, int name, int value)
{
	int rc = 0;

	if (c->sk->sk_state != TCP_LISTEN)
		return -EISCONN;
	if (c->state == CONN_TCP)
		rc = kmod_ulp_listen(c);
	if (rc)
		return rc;
	if (name == DDP_MODE)
		c->wanted.on = value;
	else if (name == DDP_CRC)
		c->wanted.no_crc = !value;
	else
		c->wanted.markers = value;
	return 0;
}

static int wanted_set(struct conn *c, int name, sockptr_t data, unsigned int len)
{
	int value, rc;

	if (len != sizeof(value))
		return -EINVAL;
	if (copy_from_sockptr(&value, data, sizeof(value)))
		return -EFAULT;
	if (name == DDP_MODE && value == DDP_MODE_AUTO)
		return -EOPNOTSUPP;
	if (value != 0 && value != 1) /* DDP_MODE_OFF and _ON, too */
		return -EINVAL;
	lock_sock(c->sk);
	rc = wanted_locked(c, name, value);
	release_sock(c->sk);
	return rc;
}

int conn_option_set(struct conn *c, int name, sockptr_t value, unsigned int len)
{
	switch (name) {
	case DDP_MODE:
	case DDP_CRC:
	case DDP_MARKERS:
		return wanted_set(c, name, value, len);
	case DDP_HANDOVER:
		return handover_set(c, value, len);
	case DDP_REG_MR:
		return reg_set(c, value, len);
	case DDP_DEREG_MR:
		return dereg_set(c, value, len);
	case DDP_COMPLETIONS:
		return completions_set(c, value, len);
	default:
		return -ENOPROTOOPT;
	}
}

/* --- DDP_INFO --------------------------------------------------------------------------------- */

static struct ddp_fault fault_of(__u32 fault)
{
	return (struct ddp_fault){
		.present = fault != IWARP_OK,
		.layer = fault ? IWARP_FAULT_LAYER(fault) : 0,
		.type = fault ? IWARP_FAULT_ETYPE(fault) : 0,
		.code = fault ? IWARP_FAULT_CODE(fault) : 0,
	};
}

static void info_fill(const struct conn *c, struct ddp_info *info)
{
	const struct rdmap_stream *s = &c->s;
	const struct mpa_conn *mpa = &s->ddp.mpa;

	*info = (struct ddp_info){
		.mode = DDP_MODE_ON,
		.connected = c->state == CONN_DDP,
		.features = DDP_FEATURE_MESSAGES | DDP_FEATURE_ONESIDED,
		.provider = "kernel",
		.mpa_rev = mpa->rev ?: mpa->config.rev,
		.crc = !!(mpa->flags & MPA_F_CRC),
		.tx_markers = !!(mpa->flags & MPA_F_TX_MARKERS),
		.rx_markers = !!(mpa->flags & MPA_F_RX_MARKERS),
		.mulpdu = mpa->mulpdu,
		.ird = mpa->ird,
		.ord = mpa->ord,
		.local = fault_of(s->term.fault),
		.peer = fault_of(s->peer_term.fault),
		.tx_octets = c->tx_octets,
		.rx_octets = c->rx_octets,
		.tx_fpdus = mpa->tx_fpdus,
		.rx_fpdus = mpa->rx_fpdus,
		.tx_messages = c->tx_messages,
		.rx_messages = c->rx_messages,
		.operations = c->operations,
	};
}

static void stats_fill(const struct conn *c, struct ddp_kernel_stats *stats)
{
	*stats = (struct ddp_kernel_stats){
		.early_segments = c->ooo.placed,
		.early_octets = c->ooo.octets,
		.early_kept = c->ooo.kept,
		.early_work = c->ooo.work,
	};
}

union told {
	struct ddp_info info;
	struct ddp_kernel_stats stats;
};

int conn_option_get(struct conn *c, int name, char __user *value, int __user *len)
{
	union told told;
	int room;

	if ((name != DDP_INFO && name != DDP_KERNEL_STATS) || c->state < CONN_START)
		return -ENOPROTOOPT;
	if (get_user(room, len))
		return -EFAULT;
	if (room < 0)
		return -EINVAL;
	room = min_t(int, room, name == DDP_INFO ? sizeof(told.info) : sizeof(told.stats));
	lock_sock(c->sk);
	if (name == DDP_INFO)
		info_fill(c, &told.info);
	else
		stats_fill(c, &told.stats);
	release_sock(c->sk);
	return copy_to_user(value, &told, room) || put_user(room, len) ? -EFAULT : 0;
}
