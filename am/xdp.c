/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The AF_XDP driver: frames go between the interface's queue and our memory past the kernel's
 * network stack; the wire format is the UDP driver's.
 *
 * A UDP socket of the same name stands behind it. It keeps the port ours, takes what the
 * redirect program leaves to the kernel (IP fragments, options), and sends what cannot go by
 * frame: to this machine, to a next hop not known yet, or too long. The program takes only
 * packets for exactly our address and port and passes everything else on. It hangs on a BPF link,
 * so that the kernel detaches it when the process ends, however that happens.
 *
 * Where frames are copied, the kernel makes a socket buffer of each. Of a run of fragments it makes
 * a single one, up to 64 KiB, when the UDP socket sends them, and the device has their checksums to
 * compute. So bulk data go by that socket, and the rest by frames.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xdp/xsk.h>

#include "am/env.h"
#include "am/nic.h"
#include "am/window.h"
#include "am/xdp_frame.h"
#include "am/xdp_program.h"
#include "am/xdp_route.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"

#define FRAMES 4096u
#define FRAME_SIZE 4096u
#define TX_FRAMES (FRAMES / 2)
#define RING (FRAMES / 2)
#define RECEIVE_BYTES (RING * am_window_cost(0)) /* a frame for each packet, however short */
#define HEADROOM 6				 /* puts a datagram's bytes on a multiple of 8 */
#define IDLE_MIN 1u	  /* receives without a frame, before the socket behind is looked at: ... */
#define IDLE_MAX 2048u	  /* ... from these to those, by how long it has had nothing */
#define BUSY_TRIES 50	  /* of 10 ms: a socket that was just closed lets go a little later */
#define DATAGRAM_MAX 3400 /* with headers and headroom in one frame */
#define FRAME_MAX (DATAGRAM_MAX + sizeof(struct am_xdp_header))

struct xdp_nic {
	struct am_nic nic;
	struct am_nic *udp;
	uint8_t *memory;
	struct xsk_umem *umem;
	struct xsk_socket *xsk;
	struct xsk_ring_prod fill, tx;
	struct xsk_ring_cons done, rx;
	struct am_xdp_program program;
	struct am_routes routes;
	struct am_xdp_header header; /* for outgoing frames, but for the destination */
	uint64_t free[TX_FRAMES];    /* frames to send from */
	uint32_t num_free;
	uint16_t ip_id;
	uint32_t idle; /* receives that found no frame, since the last look at the socket */
	uint32_t idle_max;
	char interface[IF_NAMESIZE];
	int copies; /* why frames are copied, an errno; 0: they are not */
};

struct xdp_batch {
	struct am_batch batch;
	struct am_batch *udp;	       /* NULL until the kernel had something for us */
	uint64_t frames[AM_NIC_BATCH]; /* to give back to the kernel */
	uint32_t num_frames;
};

static struct xdp_nic *xdp_of(struct am_nic *nic)
{
	return base_container_of(nic, struct xdp_nic, nic);
}

/* The interface that has this address. */
static int interface_find(struct xdp_nic *x, uint32_t address)
{
	struct ifaddrs *all, *i;
	int ret = -ENODEV;

	if (getifaddrs(&all) < 0)
		return -errno;
	for (i = all; i && ret < 0; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET ||
		    ((struct sockaddr_in *)i->ifa_addr)->sin_addr.s_addr != address)
			continue;
		/* frames of the loopback never pass an interface's queue */
		ret = i->ifa_flags & IFF_LOOPBACK ? -EOPNOTSUPP : 0;
		snprintf(x->interface, sizeof(x->interface), "%s", i->ifa_name);
	}
	freeifaddrs(all);
	return ret;
}

static int interface_mac(const struct xdp_nic *x, uint8_t *mac)
{
	struct ifreq request = { 0 };
	int ret;

	memcpy(request.ifr_name, x->interface, sizeof(request.ifr_name));
	ret = ioctl(x->udp->wait_fd, SIOCGIFHWADDR, &request);
	if (ret < 0)
		return -errno;
	memcpy(mac, request.ifr_hwaddr.sa_data, 6);
	return 0;
}

/*
 * Ends of a virtual wire get socket buffers, and their native hook first copies each into a page:
 * there the generic one is the shorter way.
 */
static bool generic_is_better(const struct xdp_nic *x)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq request = { .ifr_data = (void *)&info };

	memcpy(request.ifr_name, x->interface, sizeof(request.ifr_name));
	return ioctl(x->udp->wait_fd, SIOCETHTOOL, &request) == 0 && !strcmp(info.driver, "veth");
}

static int memory_create(struct xdp_nic *x)
{
	struct xsk_umem_config config = { .fill_size = RING,
					  .comp_size = RING,
					  .frame_size = FRAME_SIZE,
					  .frame_headroom = HEADROOM };
	uint32_t i, at;
	void *p = mmap(NULL, (size_t)FRAMES * FRAME_SIZE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret;

	if (p == MAP_FAILED)
		return -errno;
	x->memory = p;
	ret = xsk_umem__create(&x->umem, p, (uint64_t)FRAMES * FRAME_SIZE, &x->fill, &x->done,
			       &config);
	if (ret < 0)
		return ret;
	for (i = 0; i < TX_FRAMES; i++)
		x->free[x->num_free++] = (uint64_t)i * FRAME_SIZE;
	if (xsk_ring_prod__reserve(&x->fill, RING, &at) != RING)
		return -ENOBUFS;
	for (i = 0; i < RING; i++)
		*xsk_ring_prod__fill_addr(&x->fill, at + i) =
			(uint64_t)(TX_FRAMES + i) * FRAME_SIZE;
	xsk_ring_prod__submit(&x->fill, RING);
	return 0;
}

static int xsk_open(struct xdp_nic *x, uint16_t mode)
{
	struct xsk_socket_config config = { .rx_size = RING,
					    .tx_size = RING,
					    .libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
					    .bind_flags = mode | XDP_USE_NEED_WAKEUP };

	return xsk_socket__create(&x->xsk, x->interface, 0, x->umem, &x->rx, &x->tx, &config);
}

static int xsk_create(struct xdp_nic *x)
{
	bool copy = am_env_bool("XDP_COPY", false);
	int i, ret = -EBUSY;

	for (i = 0; i < BUSY_TRIES && ret == -EBUSY; i++) {
		if (i)
			usleep(10000);
		ret = copy ? -ECANCELED : xsk_open(x, XDP_ZEROCOPY);
		x->copies = -ret;
		/* before the queue is free it is not known what it can do */
		if (ret < 0 && (ret != -EBUSY || i + 1 == BUSY_TRIES))
			ret = xsk_open(x, XDP_COPY);
	}
	return ret;
}

static void xdp_destroy(struct am_nic *nic)
{
	struct xdp_nic *x = xdp_of(nic);
	struct am_batch *batch;

	am_xdp_program_uninit(&x->program);
	while ((batch = nic->free)) {
		nic->free = batch->next;
		nic->ops->batch_destroy(batch);
	}
	if (x->xsk)
		xsk_socket__delete(x->xsk);
	if (x->umem)
		xsk_umem__delete(x->umem);
	if (x->memory)
		munmap(x->memory, (size_t)FRAMES * FRAME_SIZE);
	am_routes_uninit(&x->routes);
	if (x->udp)
		x->udp->ops->destroy(x->udp);
	free(x);
}

static int open_failed(const struct xdp_nic *x, const char *what, int ret)
{
	base_warn("am: no AF_XDP on %s: %s: %s", x->interface[0] ? x->interface : "any interface",
		  what, strerror(-ret));
	return ret;
}

/* What the socket behind sends comes to a socket behind, if the receiver has AF_XDP, too. */
static void bulk_mark(const struct xdp_nic *x)
{
	const int tos = AM_XDP_TOS_BULK;

	if (x->copies)
		setsockopt(x->udp->wait_fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
}

static int xdp_open(struct xdp_nic *x, struct am_nic_config *config)
{
	struct am_nic_config behind = *config;
	struct am_xdp_target target = { .name = &x->nic.name, .frame_max = FRAME_MAX };
	int ret;

	behind.one_socket = true;
	ret = am_udp_ops.create(&x->udp, &behind);
	if (ret < 0)
		return ret;
	x->nic.name = x->udp->name;
	x->nic.receive_bytes = base_min(x->udp->receive_bytes, RECEIVE_BYTES);
	ret = interface_find(x, x->nic.name.sin_addr.s_addr);
	if (ret < 0)
		return open_failed(x, "no interface with the endpoint's address", ret);
	target.ifindex = (int)if_nametoindex(x->interface);
	ret = interface_mac(x, x->header.ether.h_source);
	if (ret == 0)
		ret = am_routes_init(&x->routes, target.ifindex);
	if (ret < 0)
		return open_failed(x, "interface", ret);
	ret = memory_create(x);
	if (ret < 0)
		return open_failed(x,
				   ret == -ENOBUFS ? "memory for frames, within ulimit -l"
						   : "memory for frames",
				   ret);
	ret = xsk_create(x);
	if (ret < 0)
		return open_failed(x, "socket", ret);
	bulk_mark(x);
	x->nic.datagram_max = x->copies ? 0 : DATAGRAM_MAX;
	target.socket = xsk_socket__fd(x->xsk);
	/* the generic hook has no frames but its own */
	target.generic = x->copies && am_env_bool("XDP_GENERIC", generic_is_better(x));
	ret = am_xdp_program_init(&x->program, &target);
	if (ret < 0)
		return open_failed(x, "redirect program", ret);
	/* two descriptors, not an epoll set of both: that would be told of every frame */
	x->nic.wait_fd = xsk_socket__fd(x->xsk);
	x->nic.also_fd = x->udp->wait_fd;
	return 0;
}

static void mode_tell(const struct xdp_nic *x)
{
	const char *hook = x->program.native ? "native" : "generic";

	if (!x->copies)
		base_info("am: AF_XDP on %s, zero-copy, %s", x->interface, hook);
	else
		base_info("am: AF_XDP on %s, copy mode, %s; zero-copy: %s", x->interface, hook,
			  x->copies == ECANCELED ? "not wanted" : strerror(x->copies));
}

static int xdp_create(struct am_nic **out, struct am_nic_config *config)
{
	struct xdp_nic *x = calloc(1, sizeof(*x));
	int ret;

	if (!x)
		return -ENOMEM;
	x->nic.ops = &am_xdp_ops;
	x->idle_max = IDLE_MIN;
	x->routes.netlink = -1;
	am_xdp_program_clear(&x->program);
	ret = xdp_open(x, config);
	if (ret < 0) {
		xdp_destroy(&x->nic);
		return ret;
	}
	am_xdp_header_init(&x->header, &x->nic.name);
	mode_tell(x);
	*out = &x->nic;
	return 0;
}

/* Frames that the kernel has sent may be used again. */
static void sent_reclaim(struct xdp_nic *x)
{
	uint32_t at = 0, i, n = xsk_ring_cons__peek(&x->done, RING, &at);

	for (i = 0; i < n; i++)
		x->free[x->num_free++] = *xsk_ring_cons__comp_addr(&x->done, at + i);
	xsk_ring_cons__release(&x->done, n);
}

static bool frame_queue(struct xdp_nic *x, const struct am_datagram *d, const uint8_t *mac)
{
	struct xdp_desc *desc;
	uint64_t frame;
	uint32_t at;

	if (!x->num_free || xsk_ring_prod__reserve(&x->tx, 1, &at) != 1)
		return false;
	frame = x->free[--x->num_free];
	desc = xsk_ring_prod__tx_desc(&x->tx, at);
	desc->addr = frame;
	desc->options = 0;
	desc->len = am_xdp_frame_put(x->memory + frame, &x->header, mac, x->ip_id++, d);
	xsk_ring_prod__submit(&x->tx, 1);
	return true;
}

/* In copy mode the kernel sends only when told to. */
static void tx_wake(struct xdp_nic *x)
{
	x->nic.calls_send++;
	if (sendto(xsk_socket__fd(x->xsk), NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 && errno != EAGAIN &&
	    errno != EBUSY && errno != ENOBUFS && errno != ENETDOWN)
		base_debug("am: %s: %s", x->interface, strerror(errno));
}

/*
 * Of the datagrams from v on, the first that are bulk data: sent by the socket behind, or 0. All
 * fragments go one way, for those that overtake others look as if these were lost.
 */
static int fragments_send(struct xdp_nic *x, const struct am_datagram *v, int n)
{
	int i = 0;

	while (x->copies && i < n && v[i].bulk)
		i++;
	return i ? x->udp->ops->send(x->udp, v, i) : 0;
}

static int xdp_send(struct am_nic *nic, const struct am_datagram *v, int n)
{
	struct xdp_nic *x = xdp_of(nic);
	uint64_t now = base_now();
	const uint8_t *mac;
	int i, queued = 0, sent;

	sent_reclaim(x);
	for (i = 0; i < n; i++) {
		sent = fragments_send(x, &v[i], n - i);
		if (sent > 0) {
			i += sent - 1;
			continue;
		}
		if (v[i].bulk && x->copies)
			break;
		mac = v[i].length <= DATAGRAM_MAX
			      ? am_routes_find(&x->routes, v[i].to.sin_addr.s_addr, now)
			      : NULL;
		if (mac) {
			if (!frame_queue(x, &v[i], mac))
				break;
			queued++;
			continue;
		}
		sent = x->udp->ops->send(x->udp, &v[i], 1);
		if (sent <= 0)
			break;
	}
	if (queued || i < n)
		tx_wake(x);
	return i;
}

static int xdp_batch_create(struct am_nic *nic, struct am_batch **out)
{
	struct xdp_batch *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	*out = &b->batch;
	return 0;
}

static void xdp_batch_destroy(struct am_batch *batch)
{
	struct xdp_batch *b = base_container_of(batch, struct xdp_batch, batch);

	if (b->udp)
		am_udp_ops.batch_destroy(b->udp);
	free(b);
}

static void frames_return(struct xdp_nic *x, struct xdp_batch *b)
{
	uint32_t i, at;

	if (!b->num_frames)
		return;
	/* there are only as many frames as the ring has places */
	if (xsk_ring_prod__reserve(&x->fill, b->num_frames, &at) != b->num_frames)
		return;
	for (i = 0; i < b->num_frames; i++)
		*xsk_ring_prod__fill_addr(&x->fill, at + i) = b->frames[i];
	xsk_ring_prod__submit(&x->fill, b->num_frames);
	b->num_frames = 0;
}

static int frames_take(struct xdp_nic *x, struct xdp_batch *b, int max)
{
	uint32_t at = 0, i, n = xsk_ring_cons__peek(&x->rx, (uint32_t)max, &at);
	int good = 0;

	for (i = 0; i < n; i++) {
		const struct xdp_desc *desc = xsk_ring_cons__rx_desc(&x->rx, at + i);

		b->frames[b->num_frames++] = desc->addr & ~(uint64_t)(FRAME_SIZE - 1);
		if (am_xdp_frame_parse(x->memory + desc->addr, desc->len, &b->batch.arrivals[good]))
			good++;
	}
	xsk_ring_cons__release(&x->rx, n);
	return good;
}

/* Datagrams that were left to the kernel. They stand in a batch of the UDP socket's. */
static int datagrams_take(struct xdp_nic *x, struct xdp_batch *b, int max)
{
	int i, n;

	if (!b->udp && x->udp->ops->batch_create(x->udp, &b->udp) < 0)
		return 0;
	n = x->udp->ops->receive(x->udp, b->udp, max);
	for (i = 0; i < n; i++)
		b->batch.arrivals[i] = b->udp->arrivals[i];
	return n;
}

static int xdp_receive(struct am_nic *nic, struct am_batch *batch, int max)
{
	struct xdp_nic *x = xdp_of(nic);
	struct xdp_batch *b = base_container_of(batch, struct xdp_batch, batch);
	int n;

	frames_return(x, b);
	if (xsk_ring_prod__needs_wakeup(&x->fill))
		recvfrom(xsk_socket__fd(x->xsk), NULL, 0, MSG_DONTWAIT, NULL, NULL);
	n = frames_take(x, b, max);
	if (n == 0 && ++x->idle >= x->idle_max) {
		x->idle = 0;
		n = datagrams_take(x, b, max);
		x->idle_max = n ? IDLE_MIN : base_min(x->idle_max * 2, IDLE_MAX);
	}
	return n;
}

static int xdp_state(struct am_nic *nic)
{
	return am_udp_ops.state(xdp_of(nic)->udp);
}

static uint64_t xdp_dropped(struct am_nic *nic)
{
	struct xdp_nic *x = xdp_of(nic);
	struct xdp_statistics stats = { 0 };
	socklen_t len = sizeof(stats);

	getsockopt(xsk_socket__fd(x->xsk), SOL_XDP, XDP_STATISTICS, &stats, &len);
	return stats.rx_dropped + stats.rx_ring_full + am_udp_ops.dropped(x->udp);
}

const struct am_nic_ops am_xdp_ops = {
	.name = "xdp",
	.create = xdp_create,
	.destroy = xdp_destroy,
	.send = xdp_send,
	.batch_create = xdp_batch_create,
	.batch_destroy = xdp_batch_destroy,
	.receive = xdp_receive,
	.state = xdp_state,
	.dropped = xdp_dropped,
};
