/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One operation becomes one call of libc's, the same in both worlds, and what it gave an
 * outcome. What a call leaves alone is filled with a pattern before, so that it is compared too.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "op.h"

#define PIECES 5

static int (*libc_socket)(int domain, int type, int protocol);
static __thread volatile sig_atomic_t sigpipes;

static void on_sigpipe(int number)
{
	sigpipes++;
}

void calls_init(void)
{
	struct sigaction action = { .sa_handler = on_sigpipe };
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	void *found = libc ? dlsym(libc, "socket") : NULL;

	if (!found)
		abort();
	memcpy(&libc_socket, &found, sizeof(found));
	sigaction(SIGPIPE, &action, NULL);
}

/* --- octets --- */

static size_t length_of(const struct call *c)
{
	return c->op->a;
}

static void fill(struct call *c)
{
	for (size_t i = 0; i < length_of(c); i++)
		c->data[i] = op_octet(op_side(c->op->slot), c->op->at + i);
}

/* The buffer in a few pieces, of which some are empty */
static int pieces(struct call *c, struct iovec *iov)
{
	uint32_t n = 1 + c->op->c % PIECES, shares = c->op->c >> 3;
	size_t left = length_of(c), at = 0;

	for (uint32_t i = 0; i < n; i++, shares >>= 3) {
		size_t len = i + 1 == n ? left : left * (shares & 7) / 8;

		iov[i] = (struct iovec){ c->data + at, len };
		at += len;
		left -= len;
	}
	return (int)n;
}

static int send_flags(const struct op *op)
{
	static const int flags[] = { 0, 0, MSG_DONTWAIT, MSG_NOSIGNAL,
				     MSG_NOSIGNAL | MSG_DONTWAIT };

	return flags[op->b % 5];
}

int recv_flags(const struct op *op)
{
	static const int flags[] = {
		0,
		MSG_PEEK,
		MSG_DONTWAIT,
		MSG_WAITALL,
		MSG_TRUNC,
		MSG_PEEK | MSG_DONTWAIT,
		MSG_PEEK | MSG_TRUNC,
		MSG_WAITALL | MSG_DONTWAIT,
		MSG_WAITALL | MSG_PEEK,
		MSG_NOSIGNAL,
	};

	if (op->kind != OP_RECV && op->kind != OP_RECVFROM && op->kind != OP_RECVMSG)
		return 0;
	return flags[op->b % (sizeof(flags) / sizeof(flags[0]))];
}

static long do_write(struct call *c)
{
	fill(c);
	return write(c->fd, c->data, length_of(c));
}

static long do_writev(struct call *c)
{
	struct iovec iov[PIECES];

	fill(c);
	return writev(c->fd, iov, pieces(c, iov));
}

static long do_send(struct call *c)
{
	fill(c);
	return send(c->fd, c->data, length_of(c), send_flags(c->op));
}

/* The rest follows at once: how long a transport would wait for it is not what is compared */
static long do_send_more(struct call *c)
{
	size_t half = length_of(c) / 2;
	ssize_t first, then;

	fill(c);
	first = send(c->fd, c->data, half, MSG_MORE);
	if (first < 0)
		return first;
	then = send(c->fd, c->data + half, length_of(c) - half, 0);
	return then < 0 ? then : first + then;
}

/* A connected socket pays no heed to the address */
static long do_sendto(struct call *c)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };

	fill(c);
	return sendto(c->fd, c->data, length_of(c), send_flags(c->op), (struct sockaddr *)&to,
		      sizeof(to));
}

static long do_sendmsg(struct call *c)
{
	struct iovec iov[PIECES];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = (size_t)pieces(c, iov) };

	fill(c);
	return sendmsg(c->fd, &msg, send_flags(c->op));
}

static void received(struct call *c)
{
	c->out->octets = length_of(c);
	memset(c->data, 0xA5, c->out->octets);
}

static long do_read(struct call *c)
{
	received(c);
	return read(c->fd, c->data, length_of(c));
}

static long do_readv(struct call *c)
{
	struct iovec iov[PIECES];

	received(c);
	return readv(c->fd, iov, pieces(c, iov));
}

static long do_recv(struct call *c)
{
	received(c);
	return recv(c->fd, c->data, length_of(c), recv_flags(c->op));
}

static long do_recvfrom(struct call *c)
{
	struct sockaddr_in from = { .sin_family = 77 };
	socklen_t len = sizeof(from);
	long got;

	received(c);
	got = recvfrom(c->fd, c->data, length_of(c), recv_flags(c->op), (struct sockaddr *)&from,
		       &len);
	call_value(c, len);
	call_value(c, from.sin_family);
	return got;
}

static long do_recvmsg(struct call *c)
{
	struct sockaddr_in from = { .sin_family = 77 };
	char control[64];
	struct iovec iov[PIECES];
	struct msghdr msg = { .msg_name = &from,
			      .msg_namelen = sizeof(from),
			      .msg_iov = iov,
			      .msg_iovlen = (size_t)pieces(c, iov),
			      .msg_control = control,
			      .msg_controllen = sizeof(control),
			      .msg_flags = -1 };
	long got;

	received(c);
	got = recvmsg(c->fd, &msg, recv_flags(c->op));
	call_value(c, msg.msg_namelen);
	call_value(c, (long)msg.msg_controllen);
	call_value(c, msg.msg_flags);
	call_value(c, from.sin_family);
	return got;
}

/* --- the life of a descriptor --- */

static long do_shutdown(struct call *c)
{
	static const int how[] = { SHUT_WR, SHUT_WR, SHUT_WR, SHUT_RD, SHUT_RDWR, 3, -1 };

	return shutdown(c->fd, how[c->op->b % 7]);
}

static long do_close(struct call *c)
{
	c->w->fd[c->op->slot] = -1;
	return close(c->fd);
}

/* To the next slot of the same end; by number the worlds cannot be alike */
static long do_dup(struct call *c)
{
	int *to = &c->w->fd[(c->op->slot + 2) % SLOTS];

	if (*to >= 0) {
		if (to == &c->w->fd[c->op->slot] || dup2(c->fd, *to) != *to)
			return -1;
		return 1;
	}
	*to = c->op->b & 1 ? fcntl(c->fd, F_DUPFD_CLOEXEC, 100) : dup(c->fd);
	return *to < 0 ? -1 : 0;
}

static long do_fionread(struct call *c)
{
	int n = -1;
	long r = ioctl(c->fd, FIONREAD, &n);

	call_value(c, n);
	return r;
}

static long do_fionbio(struct call *c)
{
	int on = c->op->b & 1;

	return ioctl(c->fd, FIONBIO, &on);
}

static long do_setfl(struct call *c)
{
	return fcntl(c->fd, F_SETFL, c->op->b & 1 ? O_NONBLOCK : 0);
}

static long do_getfl(struct call *c)
{
	call_value(c, fcntl(c->fd, F_GETFD));
	return fcntl(c->fd, F_GETFL);
}

static long do_setopt(struct call *c)
{
	static const int names[][2] = {
		{ IPPROTO_TCP, TCP_NODELAY },
		{ SOL_SOCKET, SO_KEEPALIVE },
		{ SOL_SOCKET, SO_RCVTIMEO },
		{ SOL_SOCKET, 9999 },
		{ 4711, 1 },
	};
	const int *name = names[c->op->b % 5];
	struct timeval tv = { .tv_usec = c->op->c & 1 ? 2000 : 0 };
	int on = c->op->c & 1;

	/* Without it Nagle's rule makes each small octet of the plain world 40 ms late */
	if (name[1] == TCP_NODELAY && name[0] == IPPROTO_TCP)
		on |= c->op->c % 32 != 0;
	if (name[1] == SO_RCVTIMEO)
		return setsockopt(c->fd, name[0], name[1], &tv, sizeof(tv));
	return setsockopt(c->fd, name[0], name[1], &on, sizeof(on));
}

static long do_getopt(struct call *c)
{
	static const int names[][2] = {
		{ SOL_SOCKET, SO_ERROR },      { SOL_SOCKET, SO_TYPE },
		{ SOL_SOCKET, SO_DOMAIN },     { SOL_SOCKET, SO_PROTOCOL },
		{ SOL_SOCKET, SO_ACCEPTCONN }, { IPPROTO_TCP, TCP_NODELAY },
		{ SOL_SOCKET, SO_KEEPALIVE },  { SOL_SOCKET, SO_RCVTIMEO },
		{ SOL_SOCKET, 9999 },
	};
	const int *name = names[c->op->b % (sizeof(names) / sizeof(names[0]))];
	int value[4] = { -1, -1, -1, -1 };
	socklen_t len = c->op->c % 3 ? sizeof(value) : 2;
	long r = getsockopt(c->fd, name[0], name[1], value, &len);

	call_value(c, len);
	call_value(c, value[0]);
	call_value(c, value[2]);
	return r;
}

/* Ports differ: only that they are there and which family they are of */
static long do_names(struct call *c)
{
	struct sockaddr_in addr = { 0 };
	socklen_t len = sizeof(addr);
	long r = c->op->b & 1 ? getpeername(c->fd, (struct sockaddr *)&addr, &len)
			      : getsockname(c->fd, (struct sockaddr *)&addr, &len);

	call_value(c, len);
	call_value(c, addr.sin_family);
	call_value(c, addr.sin_addr.s_addr);
	return r;
}

/* --- the player's --- */

static int socket_of(const struct world *w)
{
	bool plain = w == &arena->world[PLAIN];

	return plain ? libc_socket(AF_INET, SOCK_STREAM, 0) : socket(AF_INET, SOCK_STREAM, 0);
}

/* Of both worlds, or where a device is */
static in_addr_t address(void)
{
	const char *given = getenv("DIFFERENTIAL_ADDRESS");

	return given ? inet_addr(given) : htonl(INADDR_LOOPBACK);
}

static long do_listen(struct call *c)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = address() };
	socklen_t len = sizeof(addr);
	unsigned int proc = c->op->slot;
	int fd = socket_of(c->w);

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) || listen(fd, 8) ||
	    getsockname(fd, (struct sockaddr *)&addr, &len))
		return -1;
	c->w->listener[proc] = fd;
	c->w->port[proc] = addr.sin_port;
	c->w->release[proc] = eventfd(0, EFD_NONBLOCK);
	return 0;
}

static void no_delay(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static long do_connect(struct call *c)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = address(),
				    .sin_port = c->w->port[c->op->a] };
	int fd = socket_of(c->w);

	c->w->fd[c->op->slot] = fd;
	no_delay(fd);
	return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&addr, sizeof(addr));
}

/* The first look at an accepted connection is what answers its Request */
static long do_accept(struct call *c)
{
	int fd = accept(c->w->listener[c->op->a], NULL, NULL);
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	no_delay(fd);
	c->w->fd[c->op->slot] = fd;
	return fd < 0 ? -1 : poll(&p, 1, 5000);
}

static const struct {
	const char *name;
	long (*run)(struct call *c);
} kinds[OP_ALL] = {
	[OP_WRITE] = { "write", do_write },
	[OP_WRITEV] = { "writev", do_writev },
	[OP_SEND] = { "send", do_send },
	[OP_SEND_MORE] = { "send-more", do_send_more },
	[OP_SENDTO] = { "sendto", do_sendto },
	[OP_SENDMSG] = { "sendmsg", do_sendmsg },
	[OP_READ] = { "read", do_read },
	[OP_READV] = { "readv", do_readv },
	[OP_RECV] = { "recv", do_recv },
	[OP_RECVFROM] = { "recvfrom", do_recvfrom },
	[OP_RECVMSG] = { "recvmsg", do_recvmsg },
	[OP_SHUTDOWN] = { "shutdown", do_shutdown },
	[OP_CLOSE] = { "close", do_close },
	[OP_DUP] = { "dup", do_dup },
	[OP_FIONREAD] = { "fionread", do_fionread },
	[OP_FIONBIO] = { "fionbio", do_fionbio },
	[OP_SETFL] = { "setfl", do_setfl },
	[OP_GETFL] = { "getfl", do_getfl },
	[OP_SETOPT] = { "setsockopt", do_setopt },
	[OP_GETOPT] = { "getsockopt", do_getopt },
	[OP_NAMES] = { "names", do_names },
	[OP_POLL] = { "poll", call_poll },
	[OP_PPOLL] = { "ppoll", call_ppoll },
	[OP_SELECT] = { "select", call_select },
	[OP_PSELECT] = { "pselect", call_pselect },
	[OP_EPOLL_CTL] = { "epoll_ctl", call_epoll_ctl },
	[OP_EPOLL_WAIT] = { "epoll_wait", call_epoll_wait },
	[OP_LISTEN] = { "(listen)", do_listen },
	[OP_CONNECT] = { "(connect)", do_connect },
	[OP_ACCEPT] = { "(accept)", do_accept },
	[OP_OBSERVE] = { "(observe)", call_observe },
	[OP_SET_READY] = { "(set ready)", call_set_ready },
	[OP_RELEASE] = { "(release)", call_release },
};

const char *op_name(enum op_kind kind)
{
	return kinds[kind].name;
}

bool op_is_send(enum op_kind kind)
{
	return kind <= OP_SENDMSG;
}

bool op_is_receive(enum op_kind kind)
{
	return kind >= OP_READ && kind <= OP_RECVMSG;
}

bool op_is_wait(enum op_kind kind)
{
	return (kind >= OP_POLL && kind <= OP_PSELECT) || kind == OP_EPOLL_WAIT;
}

void call_run(unsigned int world, struct box *box)
{
	struct world *w = &arena->world[world];
	struct call c = { &box->op, w, w->fd[box->op.slot], box->data, &box->out };

	sigpipes = 0;
	box->out.n = 0;
	box->out.octets = 0;
	errno = 0;
	box->out.ret = kinds[box->op.kind].run(&c);
	box->out.err = box->out.ret == -1 ? errno : 0;
	box->out.sigpipes = sigpipes;
}
