/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The native API: what <warp/rdma.h> declares, handed through to the object's provider.
 *
 * A provider gets no NULL where the header wants a pointer, no unknown flag and no size that no
 * device could have; objects of one call belong to one device. Only the device's own limits and
 * states are left to it.
 */
#pragma GCC visibility push(default) /* the calls declared there are what the library exports */
#include <warp/rdma.h>
#pragma GCC visibility pop

#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>

#include "base/fdutil.h"
#include "rnic/rnic.h"

#define PD_MAX 512		  /* private data, RFC 5044 section 7.1.1 */
#define PD_MAX_ENHANCED 508	  /* beside enhanced connection data, RFC 6581 section 9 */
#define DEPTH_MAX WARP_DEPTH_NONE /* fourteen bits */

#define ACCESS_ALL                                                                      \
	(WARP_ACCESS_LOCAL_WRITE | WARP_ACCESS_REMOTE_WRITE | WARP_ACCESS_REMOTE_READ | \
	 WARP_ACCESS_REMOTE_ATOMIC)
#define CONN_FLAGS_ALL                                                              \
	(WARP_CONN_NO_CRC | WARP_CONN_MARKERS | WARP_CONN_REV1 | WARP_CONN_NO_P2P | \
	 WARP_CONN_RTR_SEND | WARP_CONN_RTR_WRITE | WARP_CONN_RTR_READ | WARP_CONN_PORT_MAPPER)

const char *warp_version(void)
{
	return WARPSOCK_VERSION;
}

/* --- device and memory -------------------------------------------------------------------- */

const char *warp_provider_name(unsigned int i)
{
	const struct rnic_ops *ops = rnic_at(i);

	return ops ? ops->name : NULL;
}

int warp_device_open(const char *name, struct warp_device **out)
{
	const struct rnic_ops *ops = rnic_find(name);

	if (!out)
		return -EINVAL;
	return ops ? ops->device_open(rnic_device_name(name), out) : -ENODEV;
}

int warp_device_close(struct warp_device *dev)
{
	return dev ? dev->ops->device_close(dev) : 0;
}

int warp_device_query(const struct warp_device *dev, struct warp_device_attr *attr)
{
	return dev && attr ? dev->ops->device_query(dev, attr) : -EINVAL;
}

int warp_pd_create(struct warp_device *dev, struct warp_pd **out)
{
	return dev && out ? dev->ops->pd_create(dev, out) : -EINVAL;
}

int warp_pd_destroy(struct warp_pd *pd)
{
	return pd ? pd->dev->ops->pd_destroy(pd) : 0;
}

int warp_mr_register(struct warp_pd *pd, void *addr, size_t length, unsigned int access,
		     struct warp_mr **out)
{
	if (!pd || !addr || !length || !out || access & ~ACCESS_ALL)
		return -EINVAL;
	if (length - 1 > UINTPTR_MAX - (uintptr_t)addr)
		return -EINVAL;
	return pd->dev->ops->mr_register(pd, addr, length, access, out);
}

int warp_mr_deregister(struct warp_mr *mr)
{
	return mr ? mr->pd->dev->ops->mr_deregister(mr) : 0;
}

uint32_t warp_mr_stag(const struct warp_mr *mr)
{
	return mr ? mr->stag : 0;
}

/* --- completion queues -------------------------------------------------------------------- */

int warp_cq_create(struct warp_device *dev, unsigned int entries, struct warp_cq **out)
{
	return dev && entries && out ? dev->ops->cq_create(dev, entries, out) : -EINVAL;
}

int warp_cq_destroy(struct warp_cq *cq)
{
	return cq ? cq->dev->ops->cq_destroy(cq) : 0;
}

int warp_cq_poll(struct warp_cq *cq, struct warp_wc *wc, int n)
{
	if (!cq || n < 0 || (n && !wc))
		return -EINVAL;
	return cq->dev->ops->cq_poll(cq, wc, n);
}

int warp_cq_arm(struct warp_cq *cq, bool solicited_only)
{
	return cq ? cq->dev->ops->cq_arm(cq, solicited_only) : -EINVAL;
}

int warp_cq_fd(struct warp_cq *cq)
{
	return cq ? cq->dev->ops->cq_fd(cq) : -EINVAL;
}

int warp_cq_ack(struct warp_cq *cq)
{
	return cq ? cq->dev->ops->cq_ack(cq) : -EINVAL;
}

int warp_cq_wait(struct warp_cq *cq, int timeout_ms)
{
	return cq ? cq->dev->ops->cq_wait(cq, timeout_ms) : -EINVAL;
}

/* --- queue pairs -------------------------------------------------------------------------- */

int warp_qp_create(struct warp_pd *pd, const struct warp_qp_attr *attr, struct warp_qp **out)
{
	if (!pd || !attr || !out || !attr->send_cq || !attr->recv_cq)
		return -EINVAL;
	if (attr->send_cq->dev != pd->dev || attr->recv_cq->dev != pd->dev)
		return -EINVAL;
	return pd->dev->ops->qp_create(pd, attr, out);
}

int warp_qp_destroy(struct warp_qp *qp)
{
	return qp ? qp->pd->dev->ops->qp_destroy(qp) : 0;
}

void *warp_qp_context(const struct warp_qp *qp)
{
	return qp ? qp->context : NULL;
}

/* What a work request of each opcode may look like */
enum pieces { PIECES_NONE, PIECES_ANY, PIECES_ONE_AT_MOST, PIECES_ONE_OF_8 };

static const struct {
	unsigned int flags;
	enum pieces pieces;
} send_rows[] = {
	[WARP_WR_SEND] = { WARP_SEND_SOLICITED | WARP_SEND_INLINE, PIECES_ANY },
	[WARP_WR_SEND_INVALIDATE] = { WARP_SEND_SOLICITED | WARP_SEND_INLINE, PIECES_ANY },
	[WARP_WR_WRITE] = { WARP_SEND_INLINE, PIECES_ANY },
	[WARP_WR_READ] = { 0, PIECES_ONE_AT_MOST },
	[WARP_WR_IMMEDIATE] = { WARP_SEND_SOLICITED, PIECES_NONE },
	[WARP_WR_FETCH_ADD] = { 0, PIECES_ONE_OF_8 },
	[WARP_WR_CMP_SWAP] = { 0, PIECES_ONE_OF_8 },
	[WARP_WR_LOCAL_INVALIDATE] = { 0, PIECES_NONE },
};

static bool pieces_fit(const struct warp_sge *sg, unsigned int n, enum pieces pieces)
{
	switch (pieces) {
	case PIECES_NONE:
		return !n;
	case PIECES_ONE_AT_MOST:
		return n <= 1;
	case PIECES_ONE_OF_8:
		return n == 1 && sg->length == 8;
	default:
		return true;
	}
}

/* An RDMA message has less than 2^32 bytes. */
static bool sg_valid(const struct warp_sge *sg, unsigned int n)
{
	uint64_t sum = 0;

	if (n && !sg)
		return false;
	for (unsigned int i = 0; i < n; i++) {
		if (sg[i].length && !sg[i].addr)
			return false;
		sum += sg[i].length;
	}
	return sum <= UINT32_MAX;
}

static bool send_valid(const struct warp_send_wr *wr)
{
	unsigned int flags = WARP_SEND_SIGNALED | WARP_SEND_FENCE;

	if ((unsigned int)wr->opcode >= sizeof(send_rows) / sizeof(send_rows[0]))
		return false;
	flags |= send_rows[wr->opcode].flags;
	return !(wr->flags & ~flags) && sg_valid(wr->sg, wr->num_sge) &&
	       pieces_fit(wr->sg, wr->num_sge, send_rows[wr->opcode].pieces);
}

/*
 * What stands before the first work request that is none is posted: the count says where it
 * stands.
 */
int warp_qp_post_send(struct warp_qp *qp, const struct warp_send_wr *wr, unsigned int n)
{
	unsigned int good = 0;

	if (!qp || n > INT32_MAX || (n && !wr))
		return -EINVAL;
	while (good < n && send_valid(&wr[good]))
		good++;
	if (n && !good)
		return -EINVAL;
	return qp->pd->dev->ops->qp_post_send(qp, wr, good);
}

int warp_qp_post_recv(struct warp_qp *qp, const struct warp_recv_wr *wr, unsigned int n)
{
	unsigned int good = 0;

	if (!qp || n > INT32_MAX || (n && !wr))
		return -EINVAL;
	while (good < n && sg_valid(wr[good].sg, wr[good].num_sge))
		good++;
	if (n && !good)
		return -EINVAL;
	return qp->pd->dev->ops->qp_post_recv(qp, wr, good);
}

/* --- listeners ---------------------------------------------------------------------------- */

static int check_addr(const struct sockaddr *addr, socklen_t len)
{
	if (!addr || len < sizeof(addr->sa_family))
		return -EINVAL;
	switch (addr->sa_family) {
	case AF_INET:
		return len >= sizeof(struct sockaddr_in) ? 0 : -EINVAL;
	case AF_INET6:
		return len >= sizeof(struct sockaddr_in6) ? 0 : -EINVAL;
	default:
		return -EAFNOSUPPORT;
	}
}

int warp_listen(struct warp_device *dev, const struct sockaddr *addr, socklen_t len, int backlog,
		struct warp_listener **out)
{
	int ret = check_addr(addr, len);

	if (!dev || backlog < 0 || !out)
		return -EINVAL;
	return ret ? ret : dev->ops->listen(dev, addr, len, backlog, out);
}

int warp_listener_destroy(struct warp_listener *l)
{
	return l ? l->dev->ops->listener_destroy(l) : 0;
}

int warp_listener_addr(const struct warp_listener *l, struct sockaddr_storage *addr)
{
	return l && addr ? l->dev->ops->listener_addr(l, addr) : -EINVAL;
}

int warp_listener_fd(struct warp_listener *l)
{
	return l ? l->dev->ops->listener_fd(l) : -EINVAL;
}

int warp_listener_get(struct warp_listener *l, int timeout_ms, struct warp_conn **out)
{
	return l && out ? l->dev->ops->listener_get(l, timeout_ms, out) : -EINVAL;
}

/* --- connections -------------------------------------------------------------------------- */

static const struct warp_conn_param default_param = { .ird = WARP_DEPTH_DEFAULT,
						      .ord = WARP_DEPTH_DEFAULT };

static int check_private_data(const void *p, size_t len, size_t max)
{
	if (len && !p)
		return -EINVAL;
	return len <= max ? 0 : -EMSGSIZE;
}

static bool depth_valid(uint16_t depth)
{
	return depth <= DEPTH_MAX || depth == WARP_DEPTH_DEFAULT;
}

static int check_param(const struct warp_conn_param *p)
{
	size_t max = p->flags & WARP_CONN_REV1 ? PD_MAX : PD_MAX_ENHANCED;

	if (p->flags & ~CONN_FLAGS_ALL || p->timeout_ms < 0)
		return -EINVAL;
	if (!depth_valid(p->ird) || !depth_valid(p->ord))
		return -EINVAL;
	return check_private_data(p->private_data, p->private_data_len, max);
}

int warp_connect(struct warp_qp *qp, const struct sockaddr *addr, socklen_t len,
		 const struct warp_conn_param *param, struct warp_conn **out)
{
	const struct warp_conn_param *p = param ? param : &default_param;
	int ret = check_addr(addr, len);

	if (!qp || !out)
		return -EINVAL;
	if (!ret)
		ret = check_param(p);
	return ret ? ret : qp->pd->dev->ops->connect(qp, addr, len, p, out);
}

/*
 * The two that take a socket over close it, whatever they answer, or the caller could not know
 * whose it is.
 */
static int check_fd(bool objects, int fd, const struct warp_conn_param *p)
{
	int ret = objects ? check_param(p) : -EINVAL;

	if (fd < 0)
		return -EBADF;
	if (ret)
		base_fd_close(fd);
	return ret;
}

int warp_connect_fd(struct warp_qp *qp, int fd, const struct warp_conn_param *param,
		    struct warp_conn **out)
{
	const struct warp_conn_param *p = param ? param : &default_param;
	int ret = check_fd(qp && out, fd, p);

	return ret ? ret : qp->pd->dev->ops->connect_fd(qp, fd, p, out);
}

int warp_accept_fd(struct warp_device *dev, int fd, const struct warp_conn_param *param,
		   struct warp_conn **out)
{
	const struct warp_conn_param *p = param ? param : &default_param;
	int ret = check_fd(dev && out, fd, p);

	return ret ? ret : dev->ops->accept_fd(dev, fd, p, out);
}

int warp_conn_accept(struct warp_conn *c, struct warp_qp *qp, const struct warp_conn_param *param)
{
	const struct warp_conn_param *p = param ? param : &default_param;
	int ret;

	if (!c || !qp || qp->pd->dev != c->dev)
		return -EINVAL;
	ret = check_param(p);
	return ret ? ret : c->dev->ops->conn_accept(c, qp, p);
}

int warp_conn_reject(struct warp_conn *c, const void *private_data, size_t len)
{
	int ret = check_private_data(private_data, len, PD_MAX);

	if (!c)
		return -EINVAL;
	return ret ? ret : c->dev->ops->conn_reject(c, private_data, len);
}

int warp_conn_wait(struct warp_conn *c, int timeout_ms)
{
	return c ? c->dev->ops->conn_wait(c, timeout_ms) : -EINVAL;
}

int warp_conn_fd(struct warp_conn *c)
{
	return c ? c->dev->ops->conn_fd(c) : -EINVAL;
}

int warp_conn_query(struct warp_conn *c, struct warp_conn_info *info)
{
	return c && info ? c->dev->ops->conn_query(c, info) : -EINVAL;
}

int warp_conn_disconnect(struct warp_conn *c)
{
	return c ? c->dev->ops->conn_disconnect(c) : -EINVAL;
}

int warp_conn_abort(struct warp_conn *c)
{
	return c ? c->dev->ops->conn_abort(c) : -EINVAL;
}

int warp_conn_destroy(struct warp_conn *c)
{
	return c ? c->dev->ops->conn_destroy(c) : 0;
}
