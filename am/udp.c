/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The UDP driver: one socket of the kernel's.
 *
 * Sending: runs of datagrams of one length to one address become a single UDP GSO send, the rest
 * one sendmmsg; a lone datagram takes the shorter way through sendmsg. Receiving: UDP GRO is on,
 * so that what was sent as one may arrive as one. Buffers of a batch stand at different offsets
 * of their pages: with equal ones, the headers of a batch would all fall in one cache set.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "am/nic.h"
#include "base/bits.h"
#include "base/log.h"

#define BUFFER_SIZE (68 * 1024)
#define BUFFER_COLOUR 1088
#define BUFFERS_SIZE ((size_t)AM_NIC_BATCH * BUFFER_SIZE)
#define GSO_SEGMENTS 60 /* the kernel takes 64 */
#define GSO_BYTES 65000

struct udp_nic {
	struct am_nic nic;
	bool gso;
	char interface[IF_NAMESIZE]; /* empty until somebody asks for its state */
};

struct udp_control {
	_Alignas(struct cmsghdr) char octets[CMSG_SPACE(sizeof(int))];
};

struct udp_batch {
	struct am_batch batch;
	uint8_t *buffers;
	struct mmsghdr msg[AM_NIC_BATCH];
	struct iovec iov[AM_NIC_BATCH];
	struct udp_control control[AM_NIC_BATCH];
};

static const int udp_one = 1;

static void socket_tune(struct udp_nic *udp, int fd, uint32_t want)
{
	int bytes = (int)base_min(want / 2, (uint32_t)INT32_MAX);
	socklen_t len = sizeof(bytes);

	/* FORCE needs CAP_NET_ADMIN; without it the system's limit holds */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len) == 0)
		udp->nic.receive_bytes = (uint32_t)bytes;
	udp->gso = setsockopt(fd, IPPROTO_UDP, UDP_GRO, &udp_one, sizeof(udp_one)) == 0;
}

static int udp_create(struct am_nic **out, struct am_nic_config *config)
{
	struct udp_nic *udp = calloc(1, sizeof(*udp));
	socklen_t len = sizeof(udp->nic.name);
	int fd, ret;

	if (!udp)
		return -ENOMEM;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		goto err_free;
	if (bind(fd, (const struct sockaddr *)&config->name, sizeof(config->name)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&udp->nic.name, &len) < 0)
		goto err_close;
	socket_tune(udp, fd, config->receive_bytes);
	udp->nic.ops = &am_udp_ops;
	udp->nic.wait_fd = fd;
	udp->nic.also_fd = -1;
	*out = &udp->nic;
	return 0;

err_close:
	ret = -errno;
	base_warn("am: no UDP socket on port %u: %s", ntohs(config->name.sin_port), strerror(-ret));
	close(fd);
	free(udp);
	return ret;
err_free:
	ret = -errno;
	free(udp);
	return ret;
}

static void udp_destroy(struct am_nic *nic)
{
	struct am_batch *batch;

	while ((batch = nic->free)) {
		nic->free = batch->next;
		nic->ops->batch_destroy(batch);
	}
	close(nic->wait_fd);
	free(base_container_of(nic, struct udp_nic, nic));
}

/* No room now, or a fault of this moment: a retransmission will tell. Anything else is an error. */
static int send_error(void)
{
	switch (errno) {
	case EAGAIN:
	case ENOBUFS:
	case EINTR:
		return 0;
	case ECONNREFUSED: /* an earlier datagram's ICMP answer */
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ENETDOWN:
	case EPERM:
		return 1;
	default:
		return -errno;
	}
}

static bool same_target(const struct am_datagram *a, const struct am_datagram *b)
{
	return a->to.sin_port == b->to.sin_port && a->to.sin_addr.s_addr == b->to.sin_addr.s_addr;
}

/* How many datagrams from v on can leave as one GSO send: all of one length, the last shorter. */
static int gso_run(const struct udp_nic *udp, const struct am_datagram *v, int n)
{
	uint32_t total = v->length;
	int i;

	if (!udp->gso || v->length > GSO_BYTES / 2)
		return 1;
	for (i = 1; i < n && i < GSO_SEGMENTS; i++) {
		if (!same_target(v, v + i) || v[i].length > v->length ||
		    total + v[i].length > GSO_BYTES)
			break;
		total += v[i].length;
		if (v[i].length < v->length)
			return i + 1;
	}
	return i;
}

struct udp_outgoing {
	struct mmsghdr msg[AM_NIC_BATCH];
	struct iovec iov[2 * AM_NIC_BATCH];
	struct udp_control control[AM_NIC_BATCH];
	int datagrams[AM_NIC_BATCH]; /* in each message */
};

static void put_segment_size(struct msghdr *msg, struct udp_control *control, uint32_t length)
{
	uint16_t size = (uint16_t)length;
	struct cmsghdr *c;

	msg->msg_control = control->octets;
	msg->msg_controllen = CMSG_SPACE(sizeof(size));
	c = CMSG_FIRSTHDR(msg);
	c->cmsg_level = IPPROTO_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(size));
	memcpy(CMSG_DATA(c), &size, sizeof(size));
}

/* Returns the number of messages. */
static int outgoing_fill(const struct udp_nic *udp, struct udp_outgoing *o,
			 const struct am_datagram *v, int n)
{
	int i, j, run, used = 0, count = 0;
	struct msghdr *msg;

	for (i = 0; i < n; i += run, count++) {
		run = gso_run(udp, v + i, n - i);
		msg = &o->msg[count].msg_hdr;
		memset(msg, 0, sizeof(*msg));
		msg->msg_name = (void *)&v[i].to;
		msg->msg_namelen = sizeof(v[i].to);
		msg->msg_iov = o->iov + used;
		for (j = i; j < i + run; j++) {
			memcpy(o->iov + used, v[j].iov, v[j].count * sizeof(struct iovec));
			used += (int)v[j].count;
		}
		msg->msg_iovlen = (size_t)(o->iov + used - msg->msg_iov);
		if (run > 1)
			put_segment_size(msg, &o->control[count], v[i].length);
		o->datagrams[count] = run;
	}
	return count;
}

static int send_one(struct am_nic *nic, const struct am_datagram *v)
{
	ssize_t ret;

	nic->calls_send++;
	if (v->count == 1) {
		ret = sendto(nic->wait_fd, v->iov[0].iov_base, v->iov[0].iov_len, MSG_DONTWAIT,
			     (const struct sockaddr *)&v->to, sizeof(v->to));
	} else {
		struct msghdr msg = { .msg_name = (void *)&v->to,
				      .msg_namelen = sizeof(v->to),
				      .msg_iov = (void *)v->iov,
				      .msg_iovlen = v->count };

		ret = sendmsg(nic->wait_fd, &msg, MSG_DONTWAIT);
	}
	return ret < 0 ? send_error() : 1;
}

/* A device without checksum offload refuses GSO with EIO: do without from then on. */
static bool gso_refused(struct udp_nic *udp, const struct udp_outgoing *o)
{
	if (errno != EIO && errno != EINVAL)
		return false;
	if (!udp->gso || o->datagrams[0] == 1)
		return false;
	base_info("am: UDP GSO is refused here: %s", strerror(errno));
	udp->gso = false;
	return true;
}

static int send_many(struct udp_nic *udp, const struct am_datagram *v, int n)
{
	struct udp_outgoing o;
	int i, sent, done = 0, count = outgoing_fill(udp, &o, v, n);

	udp->nic.calls_send++;
	sent = sendmmsg(udp->nic.wait_fd, o.msg, (unsigned int)count, MSG_DONTWAIT);
	if (sent < 0 && gso_refused(udp, &o))
		return send_many(udp, v, n);
	if (sent < 0) {
		sent = send_error();
		if (sent < 0)
			return sent;
	}
	for (i = 0; i < sent; i++)
		done += o.datagrams[i];
	return done;
}

static int udp_send(struct am_nic *nic, const struct am_datagram *v, int n)
{
	if (n == 1)
		return send_one(nic, v);
	return send_many(base_container_of(nic, struct udp_nic, nic), v, base_min(n, AM_NIC_BATCH));
}

static int udp_batch_create(struct am_nic *nic, struct am_batch **out)
{
	struct udp_batch *b = calloc(1, sizeof(*b));
	int i;

	if (!b)
		return -ENOMEM;
	b->buffers = mmap(NULL, BUFFERS_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (b->buffers == MAP_FAILED) {
		free(b);
		return -ENOMEM;
	}
	for (i = 0; i < AM_NIC_BATCH; i++) {
		uint8_t *at =
			b->buffers + (size_t)i * BUFFER_SIZE + (size_t)(i % 3) * BUFFER_COLOUR;

		b->batch.arrivals[i].data = at;
		b->iov[i].iov_base = at;
		b->iov[i].iov_len = AM_WIRE_MAX_DATAGRAM;
		b->msg[i].msg_hdr.msg_iov = &b->iov[i];
		b->msg[i].msg_hdr.msg_iovlen = 1;
		b->msg[i].msg_hdr.msg_name = &b->batch.arrivals[i].from;
		b->msg[i].msg_hdr.msg_control = b->control[i].octets;
	}
	*out = &b->batch;
	return 0;
}

static void udp_batch_destroy(struct am_batch *batch)
{
	struct udp_batch *b = base_container_of(batch, struct udp_batch, batch);

	munmap(b->buffers, BUFFERS_SIZE);
	free(b);
}

static uint32_t segment_size(struct msghdr *msg)
{
	struct cmsghdr *c;
	int size;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			memcpy(&size, CMSG_DATA(c), sizeof(size));
			return size > 0 ? (uint32_t)size : 0;
		}
	}
	return 0;
}

static int udp_receive(struct am_nic *nic, struct am_batch *batch, int max)
{
	struct udp_batch *b = base_container_of(batch, struct udp_batch, batch);
	int i, n;

	for (i = 0; i < max; i++) {
		b->msg[i].msg_hdr.msg_namelen = sizeof(struct sockaddr_in);
		b->msg[i].msg_hdr.msg_controllen = sizeof(b->control[i]);
	}
	nic->calls_receive++;
	if (max == 1) {
		ssize_t len = recvmsg(nic->wait_fd, &b->msg[0].msg_hdr, MSG_DONTWAIT);

		b->msg[0].msg_len = (unsigned int)len;
		n = len < 0 ? -1 : 1;
	} else {
		n = recvmmsg(nic->wait_fd, b->msg, (unsigned int)max, MSG_DONTWAIT, NULL);
	}
	for (i = 0; i < n; i++) {
		batch->arrivals[i].length = b->msg[i].msg_len;
		batch->arrivals[i].segment = segment_size(&b->msg[i].msg_hdr);
	}
	return base_max(n, 0);
}

/* The name of the interface that has the socket's address; none is no fault. */
static void interface_note(struct udp_nic *udp)
{
	struct ifaddrs *all, *i;

	if (getifaddrs(&all) < 0)
		return;
	for (i = all; i; i = i->ifa_next) {
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET &&
		    ((struct sockaddr_in *)i->ifa_addr)->sin_addr.s_addr ==
			    udp->nic.name.sin_addr.s_addr)
			snprintf(udp->interface, sizeof(udp->interface), "%s", i->ifa_name);
	}
	freeifaddrs(all);
}

static int udp_state(struct am_nic *nic)
{
	struct udp_nic *udp = base_container_of(nic, struct udp_nic, nic);
	struct ifreq request = { 0 };

	if (!udp->interface[0])
		interface_note(udp);
	memcpy(request.ifr_name, udp->interface, sizeof(request.ifr_name));
	if (ioctl(nic->wait_fd, SIOCGIFFLAGS, &request) < 0)
		return udp->interface[0] ? -ENETDOWN : 0;
	return (request.ifr_flags & IFF_UP) && (request.ifr_flags & IFF_RUNNING) ? 0 : -ENETDOWN;
}

const struct am_nic_ops am_udp_ops = {
	.name = "udp",
	.create = udp_create,
	.destroy = udp_destroy,
	.send = udp_send,
	.batch_create = udp_batch_create,
	.batch_destroy = udp_batch_destroy,
	.receive = udp_receive,
	.state = udp_state,
};
