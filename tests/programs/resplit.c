/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A proxy that knows nothing of what it carries, and leaves nothing of how it came but its order.
 *
 *     resplit SEED PORT TARGET [PORT TARGET ...]
 *
 * Octets leave in pieces of random size, from 1 to 64 KiB, some after a random delay, in which
 * what comes is joined to what is there. Delays are bounded: a direction may be held up by a
 * twentieth of a second, and by a quarter of its age. Ends and resets are passed on. On SIGTERM it
 * says what it did.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LISTENERS 8
#define CONNECTIONS 1024
#define ROOM 65536u
#define US 1000ull
#define MS (1000 * US)

/* Octets on their way to a socket, from the other one of its connection */
struct flow {
	size_t begin, end;
	size_t joint;  /* where what came last begins, if it was joined to something */
	uint64_t when; /* the next piece may leave */
	uint64_t held; /* for how long, all in all */
	bool ended, shut;
	bool waits;  /* there is something, and it may not leave yet */
	bool broken; /* where it comes from: a reset follows it */
	uint8_t octets[ROOM];
};

struct connection {
	int fd[2];
	uint64_t since;
	struct flow to[2]; /* to fd[i] */
};

struct listener {
	int fd;
	in_port_t target;
};

static struct listener listeners[LISTENERS];
static struct connection *connections[CONNECTIONS];
static struct pollfd fds[LISTENERS + 2 * CONNECTIONS];
static unsigned int listening, count;
static struct {
	unsigned long accepted, pieces, cuts, joins, delays;
	size_t smallest, largest;
	uint64_t held;
} seen = { .smallest = ROOM };
static uint64_t state;
static volatile sig_atomic_t told;

static void note(int number)
{
	told = number;
}

/* Marsaglia's xorshift, shifts 13, 7 and 17 */
static uint64_t pick(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % below;
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

static struct sockaddr_in loopback(in_port_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

static int listen_at(in_port_t port)
{
	struct sockaddr_in addr = loopback(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 512)) {
		perror("resplit: listen");
		exit(1);
	}
	return fd;
}

static void drop(struct connection *c, bool reset)
{
	struct linger hard = { .l_onoff = 1 };

	for (int i = 0; i < 2; i++) {
		if (reset)
			setsockopt(c->fd[i], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
		close(c->fd[i]);
		seen.held += c->to[i].held;
	}
	free(c);
}

/* Its connect() is waited for by the first write */
static void accept_one(const struct listener *l)
{
	struct sockaddr_in addr = loopback(l->target);
	int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK), one = 1;
	struct connection *c = fd < 0 ? NULL : calloc(1, sizeof(*c));

	if (!c)
		return;
	*c = (struct connection){ .since = now() };
	c->fd[0] = fd;
	c->fd[1] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	for (int i = 0; i < 2; i++)
		setsockopt(c->fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	seen.accepted++;
	if (connect(c->fd[1], (struct sockaddr *)&addr, sizeof(addr)) && errno != EINPROGRESS)
		drop(c, true);
	else
		connections[count++] = c;
}

/* Now and then; seldom for long */
static void delay(const struct connection *c, struct flow *f)
{
	uint64_t t = now(), wait;

	if (pick(4))
		return;
	wait = pick(16) ? pick(300 * US) : pick(5 * MS);
	if (f->held + wait > 50 * MS + (t - c->since) / 4)
		return;
	f->held += wait;
	f->when = t + wait;
}

/* fd[@i] was reset: what came from it still goes on, nothing goes there any more */
static void lose(struct connection *c, int i)
{
	c->to[!i].broken = true;
	c->to[i].begin = c->to[i].end = 0;
	c->to[i].ended = c->to[i].shut = true;
}

static void take_in(struct connection *c, int from)
{
	struct flow *f = &c->to[!from];
	ssize_t n;

	if (f->begin) {
		memmove(f->octets, f->octets + f->begin, f->end - f->begin);
		f->end -= f->begin;
		f->joint -= f->joint < f->begin ? f->joint : f->begin;
		f->begin = 0;
	}
	n = recv(c->fd[from], f->octets + f->end, 1 + pick(ROOM - f->end), 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0)
		lose(c, from);
	else if (n && !f->end)
		delay(c, f);
	if (n > 0)
		f->joint = f->end;
	f->end += n > 0 ? (size_t)n : 0;
	f->ended |= n <= 0;
}

/* As many sizes below 8 octets as above 8 KiB */
static size_t piece_of(const struct flow *f)
{
	size_t size = 1 + pick(1ull << pick(17));

	return size < f->end - f->begin ? size : f->end - f->begin;
}

/* Does it end within something that came as one, does it hold the end of one and more? */
static void count_piece(const struct flow *f, size_t n)
{
	size_t end = f->begin + n;

	seen.pieces++;
	seen.delays += f->waits;
	seen.cuts += end != f->end && end != f->joint;
	seen.joins += f->begin < f->joint && f->joint < end;
	seen.smallest = n < seen.smallest ? n : seen.smallest;
	seen.largest = n > seen.largest ? n : seen.largest;
}

static void hand_out(struct connection *c, int to)
{
	struct flow *f = &c->to[to];
	size_t size = piece_of(f);
	ssize_t n = send(c->fd[to], f->octets + f->begin, size, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN)
		lose(c, to);
	if (n < 0)
		return;
	count_piece(f, (size_t)n);
	f->waits = false;
	f->begin += (size_t)n;
	if (f->begin == f->end)
		f->begin = f->end = 0;

	delay(c, f);
}

/* What each socket of it is to be looked at for; returns when time alone will bring something */
static uint64_t watch(struct connection *c, struct pollfd *p, uint64_t t)
{
	uint64_t next = UINT64_MAX;

	for (int i = 0; i < 2; i++) {
		struct flow *in = &c->to[!i], *out = &c->to[i];
		bool ready = out->end && out->when <= t;

		p[i].events = (short)((!in->ended && in->end - in->begin < ROOM ? POLLIN : 0) |
				      (ready ? POLLOUT : 0));
		p[i].fd = p[i].events ? c->fd[i] : -1;
		p[i].revents = 0;
		out->waits |= out->end && !ready;
		if (out->end && !ready && out->when < next)
			next = out->when;
	}
	return next;
}

/* Returns 0 to go on, 1 when both ways have ended, -1 when a reset has */
static int serve(struct connection *c, const struct pollfd *p)
{
	for (int i = 0; i < 2; i++) {
		if (p[i].events & POLLIN && p[i].revents & (POLLIN | POLLERR | POLLHUP))
			take_in(c, i);
		if (p[i].events & POLLOUT && p[i].revents & (POLLOUT | POLLERR | POLLHUP))
			hand_out(c, i);
	}
	for (int i = 0; i < 2; i++) {
		struct flow *out = &c->to[i];

		if (!out->ended || out->end || out->shut)
			continue;
		if (out->broken)
			return -1;
		out->shut = true;
		shutdown(c->fd[i], SHUT_WR);
	}
	return c->to[0].shut && c->to[1].shut;
}

static void look(void)
{
	unsigned int kept = 0, served = count;

	for (unsigned int i = 0; i < served; i++) {
		struct connection *c = connections[i];
		int done = serve(c, &fds[listening + 2 * i]);

		if (done)
			drop(c, done < 0);
		else
			connections[kept++] = c;
	}
	count = kept;
	for (unsigned int i = 0; i < listening; i++)
		if (fds[i].revents && count < CONNECTIONS)
			accept_one(&listeners[i]);
}

static void sleep_and_look(const sigset_t *mask)
{
	uint64_t t = now(), next = UINT64_MAX;
	struct timespec left = { .tv_sec = 0 };

	for (unsigned int i = 0; i < listening; i++)
		fds[i] = (struct pollfd){ listeners[i].fd, POLLIN, 0 };
	for (unsigned int i = 0; i < count; i++) {
		uint64_t when = watch(connections[i], &fds[listening + 2 * i], t);

		next = when < next ? when : next;
	}
	if (next != UINT64_MAX) {
		left.tv_sec = (time_t)((next - t) / (1000 * MS));
		left.tv_nsec = (long)((next - t) % (1000 * MS));
	}
	if (ppoll(fds, listening + 2 * count, next == UINT64_MAX ? NULL : &left, mask) >= 0)
		look();
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = note };
	sigset_t mask, before;

	if (argc < 4 || argc % 2 || argc > 2 + 2 * LISTENERS) {
		fprintf(stderr, "usage: resplit SEED PORT TARGET [PORT TARGET ...]\n");
		return 2;
	}
	state = strtoull(argv[1], NULL, 10) ^ 0x9e3779b97f4a7c15ull;
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigprocmask(SIG_BLOCK, &mask, &before);
	sigaction(SIGTERM, &action, NULL);
	for (int i = 2; i < argc; i += 2) {
		listeners[listening].fd = listen_at((in_port_t)atoi(argv[i]));
		listeners[listening++].target = (in_port_t)atoi(argv[i + 1]);
	}
	while (!told)
		sleep_and_look(&before);
	for (unsigned int i = 0; i < count; i++)
		drop(connections[i], true);
	printf("%lu connections, %lu pieces of %zu to %zu octets, %lu cuts, %lu joins, "
	       "%lu delays of %llu ms in all\n",
	       seen.accepted, seen.pieces, seen.smallest, seen.largest, seen.cuts, seen.joins,
	       seen.delays, (unsigned long long)(seen.held / MS));
	return 0;
}
