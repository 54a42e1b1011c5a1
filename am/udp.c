/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The UDP driver: a socket of the kernel's, or two.
 *
 * Sending: runs of datagrams of one length to one address become a single UDP GSO send, the rest
 * one sendmmsg; a lone datagram takes the shorter way through sendto. Receiving: UDP GRO is on,
 * so that what was sent as one may arrive as one; packets tell their lengths, so that a receive
 * of one datagram needs no control message and can be a recvfrom, the shortest of its kind.
 *
 * After many datagrams in a row to one address, a second socket of our name is connected to it, for
 * then the kernel keeps the route. That socket gets what this peer sends; what all others send
 * comes to the first one, which every few receives look at.
 *
 * Buffers of a batch stand at different offsets of their pages: with equal ones, the headers of
 * a batch would all fall in one cache set.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "am/nic.h"
#include "base/bits.h"
#include "base/fdutil.h"
#include "base/log.h"

#define BUFFER_SIZE (68 * 1024)
#define BUFFER_COLOUR 1088
#define BUFFERS_SIZE ((size_t)AM_NIC_BATCH * BUFFER_SIZE)
#define GSO_SEGMENTS 60 /* the kernel takes 64 */
#define GSO_BYTES 65000
#define CONNECT_AFTER 256 /* sends to one address, until the second socket has it */
#define TURN 4		  /* receives, of which one looks at the other socket first */

struct udp_nic {
	struct am_nic nic;
	bool gso;
	bool one_socket;
	int connected;		     /* the second socket; -1: none */
	struct sockaddr_in target;   /* of the second socket */
	struct sockaddr_in last_to;  /* of the last send */
	uint32_t in_a_row;	     /* of those, to last_to */
	uint32_t turn;		     /* of receives */
	char interface[IF_NAMESIZE]; /* empty until somebody asks for its state */
};

struct udp_control {
	_Alignas(struct cmsghdr) char bytes[CMSG_SPACE(sizeof(int))];
};

struct udp_batch {
	struct am_batch batch;
	uint8_t *buffers;
	struct mmsghdr msg[AM_NIC_BATCH];
	struct iovec iov[AM_NIC_BATCH];
};

static const int udp_one = 1;

/* Buffers that take so much, and UDP GRO; true when there is any. */
static bool socket_tune(int fd, uint32_t want)
{
	int bytes = (int)base_min(want / 2, (uint32_t)INT32_MAX);

	/* FORCE needs CAP_NET_ADMIN; without it the system's limit holds */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	return setsockopt(fd, IPPROTO_UDP, UDP_GRO, &udp_one, sizeof(udp_one)) == 0;
}

static uint32_t receive_bytes_granted(int fd)
{
	int bytes = 0;
	socklen_t len = sizeof(bytes);

	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len);
	return (uint32_t)bytes;
}

static int udp_create(struct am_nic **out, struct am_nic_config *config)
{
	struct udp_nic *udp = calloc(1, sizeof(*udp));
	socklen_t len = sizeof(udp->nic.name);
	char address[INET_ADDRSTRLEN];
	int fd, ret;

	if (!udp)
		return -ENOMEM;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		goto err_free;
	if (bind(fd, (const struct sockaddr *)&config->name, sizeof(config->name)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&udp->nic.name, &len) < 0)
		goto err_close;
	udp->gso = socket_tune(fd, config->receive_bytes);
	udp->nic.receive_bytes = receive_bytes_granted(fd);
	udp->nic.ops = &am_udp_ops;
	udp->nic.wait_fd = fd;
	udp->nic.also_fd = -1;
	udp->connected = -1;
	udp->one_socket = config->one_socket;
	*out = &udp->nic;
	return 0;

err_close:
	ret = -errno;
	inet_ntop(AF_INET, &config->name.sin_addr, address, sizeof(address));
	base_warn("am: no UDP socket on %s, port %u: %s", address, ntohs(config->name.sin_port),
		  strerror(-ret));
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
	struct udp_nic *udp = base_container_of(nic, struct udp_nic, nic);
	struct am_batch *batch;

	while ((batch = nic->free)) {
		nic->free = batch->next;
		nic->ops->batch_destroy(batch);
	}
	base_fd_close(udp->connected);
	close(nic->wait_fd);
	free(udp);
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

static bool same_place(const struct sockaddr_in *a, const struct sockaddr_in *b)
{
	return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
}

/* Of our name: for the moment of bind() both sockets say that they share it, then neither. */
static int connected_open(struct udp_nic *udp)
{
	const int zero = 0;
	int ret, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	setsockopt(udp->nic.wait_fd, SOL_SOCKET, SO_REUSEPORT, &udp_one, sizeof(udp_one));
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &udp_one, sizeof(udp_one));
	ret = bind(fd, (const struct sockaddr *)&udp->nic.name, sizeof(udp->nic.name));
	ret = ret < 0 ? -errno : 0;
	setsockopt(udp->nic.wait_fd, SOL_SOCKET, SO_REUSEPORT, &zero, sizeof(zero));
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &zero, sizeof(zero));
	if (ret < 0) {
		close(fd);
		return ret;
	}
	socket_tune(fd, udp->nic.receive_bytes);
	udp->connected = fd;
	udp->nic.also_fd = fd;
	return 0;
}

static void connected_choose(struct udp_nic *udp, const struct sockaddr_in *to)
{
	if (udp->one_socket || (udp->connected < 0 && connected_open(udp) < 0))
		return;
	if (connect(udp->connected, (const struct sockaddr *)to, sizeof(*to)) == 0)
		udp->target = *to;
}

/* The socket for datagrams of which all go to one place. */
static int socket_for(struct udp_nic *udp, const struct sockaddr_in *to)
{
	if (same_place(&udp->target, to))
		return udp->connected;
	if (!same_place(&udp->last_to, to)) {
		udp->last_to = *to;
		udp->in_a_row = 0;
	}
	if (++udp->in_a_row % CONNECT_AFTER == 0)
		connected_choose(udp, to);
	return udp->nic.wait_fd;
}

static int socket_for_many(struct udp_nic *udp, const struct am_datagram *v, int n)
{
	int i;

	for (i = 1; i < n; i++) {
		if (!same_place(&v[i].to, &v->to))
			return udp->nic.wait_fd;
	}
	return socket_for(udp, &v->to);
}

/* How many datagrams from v on can leave as one GSO send: all of one length, the last shorter. */
static int gso_run(const struct udp_nic *udp, const struct am_datagram *v, int n)
{
	uint32_t total = v->length;
	int i;

	if (!udp->gso || v->length > GSO_BYTES / 2)
		return 1;
	for (i = 1; i < n && i < GSO_SEGMENTS; i++) {
		if (!same_place(&v->to, &v[i].to) || v[i].length > v->length ||
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

	msg->msg_control = control->bytes;
	msg->msg_controllen = CMSG_SPACE(sizeof(size));
	c = CMSG_FIRSTHDR(msg);
	c->cmsg_level = IPPROTO_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(size));
	memcpy(CMSG_DATA(c), &size, sizeof(size));
}

/* Returns the number of messages. */
static int outgoing_fill(const struct udp_nic *udp, struct udp_outgoing *o,
			 const struct am_datagram *v, int n, bool known)
{
	int i, j, run, used = 0, count = 0;
	struct msghdr *msg;

	for (i = 0; i < n; i += run, count++) {
		run = gso_run(udp, v + i, n - i);
		msg = &o->msg[count].msg_hdr;
		memset(msg, 0, sizeof(*msg));
		msg->msg_name = known ? NULL : (void *)&v[i].to;
		msg->msg_namelen = known ? 0 : sizeof(v[i].to);
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

static int send_one(struct udp_nic *udp, const struct am_datagram *v)
{
	int fd = socket_for(udp, &v->to);
	bool known = fd == udp->connected;
	struct msghdr msg = { .msg_name = known ? NULL : (void *)&v->to,
			      .msg_namelen = known ? 0 : sizeof(v->to),
			      .msg_iov = (void *)v->iov,
			      .msg_iovlen = v->count };
	ssize_t ret;

	udp->nic.calls_send++;
	if (v->count == 1)
		ret = syscall(SYS_sendto, fd, v->iov[0].iov_base, v->iov[0].iov_len, MSG_DONTWAIT,
			      msg.msg_name, msg.msg_namelen);
	else
		ret = sendmsg(fd, &msg, MSG_DONTWAIT);
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
	int i, sent, done = 0, fd = socket_for_many(udp, v, n);
	int count = outgoing_fill(udp, &o, v, n, fd == udp->connected);

	udp->nic.calls_send++;
	sent = sendmmsg(fd, o.msg, (unsigned int)count, MSG_DONTWAIT);
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
	struct udp_nic *udp = base_container_of(nic, struct udp_nic, nic);

	return n == 1 ? send_one(udp, v) : send_many(udp, v, base_min(n, AM_NIC_BATCH));
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

static int receive_one(int fd, struct am_arrival *a)
{
	socklen_t len = sizeof(a->from);
	ssize_t n = syscall(SYS_recvfrom, fd, a->data, AM_WIRE_MAX_DATAGRAM, MSG_DONTWAIT, &a->from,
			    &len);

	if (n < 0)
		return 0;
	a->length = (uint32_t)n;
	return 1;
}

static int receive_many(int fd, struct udp_batch *b, int max)
{
	int i, n;

	for (i = 0; i < max; i++)
		b->msg[i].msg_hdr.msg_namelen = sizeof(struct sockaddr_in);
	n = recvmmsg(fd, b->msg, (unsigned int)max, MSG_DONTWAIT, NULL);
	for (i = 0; i < n; i++)
		b->batch.arrivals[i].length = b->msg[i].msg_len;
	return base_max(n, 0);
}

static int receive_from(struct am_nic *nic, int fd, struct am_batch *batch, int max)
{
	nic->calls_receive++;
	if (max == 1)
		return receive_one(fd, &batch->arrivals[0]);
	return receive_many(fd, base_container_of(batch, struct udp_batch, batch), max);
}

static int udp_receive(struct am_nic *nic, struct am_batch *batch, int max)
{
	struct udp_nic *udp = base_container_of(nic, struct udp_nic, nic);
	int n = 0;

	if (udp->connected < 0)
		return receive_from(nic, nic->wait_fd, batch, max);
	if (++udp->turn % TURN == 0)
		n = receive_from(nic, nic->wait_fd, batch, max);
	return n > 0 ? n : receive_from(nic, udp->connected, batch, max);
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

static uint64_t socket_dropped(int fd)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(memory);

	getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &len);
	return memory[SK_MEMINFO_DROPS];
}

static uint64_t udp_dropped(struct am_nic *nic)
{
	return socket_dropped(nic->wait_fd) + (nic->also_fd < 0 ? 0 : socket_dropped(nic->also_fd));
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
	.dropped = udp_dropped,
};
