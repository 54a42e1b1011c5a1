/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program that knows sockets only and does what its command line says, step by step; it runs
 * under warpsock, under librspreload of rdma-core 44 (so no epoll, no flags in socket's type), and
 * on TCP. The octets of each direction are a pattern by their place, so that one that is lost,
 * doubled or moved is seen.
 *
 *	option NAME VALUE   for the next listen or connect: rcvbuf, sndbuf, linger, or of
 *	                    rsockets: rqsize, sqsize, maps; keepalive: idle s of the connection
 *	listen ADDR PORT    and takes one connection    connect ADDR PORT
 *	refused ADDR PORT   a connect that must fail
 *	sleep MS            with no call on the socket
 *	mark FILE           which is made then
 *	polling             from here on poll before each octet is read
 *	slow MS             from here on rest so long before octets are read
 *	piece N             octets of one send or recv, at most (at first 65536)
 *	put N | get N       octets
 *	trade N SIZE        sends N times SIZE octets and gets as many, both at once
 *	echo                what comes, until the end
 *	map N               under warpsock: N times memory for the peer, and not once more
 *	silent MS           nothing can be read for that time
 *	watch MS            polls for that time and reads nothing
 *	hung-up             poll says so though there are octets to read, as rsockets' does
 *	shut rd|wr|both | eof | close
 *	fails               sends until that fails      breaks    recv fails
 *	over                the end or an error, after octets that are not looked at
 *	leave               the process ends at once, without close
 *	kill                by SIGKILL
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <warp/ddp.h>

#define PIECE_MAX 1048576
#define WAIT_MS 20000
#define SOL_RDMA 0x10000 /* of rdma/rsocket.h */
#define RDMA_SQSIZE 0
#define RDMA_RQSIZE 1
#define RDMA_IOMAPSIZE 3

static int fd = -1;
static bool polling;
static long slow_ms;
static size_t piece = 65536;
/* Of the patterns: how far either direction has come, and whose is whose */
static uint64_t sent, got;
static uint8_t kind_out, kind_in;
static struct option {
	const char *name;
	int level, number;
	int value; /* -1: as it is */
} options[] = {
	{ "rcvbuf", SOL_SOCKET, SO_RCVBUF, -1 },	{ "sndbuf", SOL_SOCKET, SO_SNDBUF, -1 },
	{ "rqsize", SOL_RDMA, RDMA_RQSIZE, -1 },	{ "sqsize", SOL_RDMA, RDMA_SQSIZE, -1 },
	{ "maps", SOL_RDMA, RDMA_IOMAPSIZE, -1 },	{ "linger", SOL_SOCKET, SO_LINGER, -1 },
	{ "keepalive", IPPROTO_TCP, TCP_KEEPIDLE, -1 },
};
#define NUM_OPTIONS (sizeof(options) / sizeof(options[0]))

static int wrong(const char *what)
{
	fprintf(stderr, "%s: %s, after %llu sent, %llu got\n", what, strerror(errno),
		(unsigned long long)sent, (unsigned long long)got);
	return 1;
}

static void rest(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static uint8_t octet(uint64_t at, uint8_t kind)
{
	return (uint8_t)(at * 7 + (at >> 8) * 5 + (at >> 16) * 3 + kind);
}

/* --- start ---------------------------------------------------------------------------------- */

static int step_option(char **arg)
{
	for (unsigned int i = 0; i < NUM_OPTIONS; i++)
		if (!strcmp(options[i].name, arg[0])) {
			options[i].value = atoi(arg[1]);
			return 0;
		}
	return wrong(arg[0]);
}

static int set_one(int sock, const struct option *o)
{
	struct linger linger = { .l_onoff = 1, .l_linger = o->value };
	bool is_linger = o->number == SO_LINGER && o->level == SOL_SOCKET;
	int on = 1;

	if (o->level == IPPROTO_TCP && setsockopt(sock, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)))
		return wrong(o->name);
	if (is_linger ? setsockopt(sock, o->level, o->number, &linger, sizeof(linger))
		      : setsockopt(sock, o->level, o->number, &o->value, sizeof(o->value)))
		return wrong(o->name);
	return 0;
}

/* Of a connection, or, before it, of a socket that will be one: keepalive is for the former. */
static int set_options(int sock, bool connected)
{
	for (unsigned int i = 0; i < NUM_OPTIONS; i++)
		if (options[i].value >= 0 && (options[i].level == IPPROTO_TCP) == connected &&
		    set_one(sock, &options[i]))
			return 1;
	return 0;
}

static socklen_t resolve(char **arg, struct sockaddr_storage *out)
{
	struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)out;
	struct sockaddr_in *a = (struct sockaddr_in *)out;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, arg[0], &a->sin_addr) == 1) {
		a->sin_family = AF_INET;
		a->sin_port = htons((uint16_t)atoi(arg[1]));
		return sizeof(*a);
	}
	inet_pton(AF_INET6, arg[0], &a6->sin6_addr);
	a6->sin6_family = AF_INET6;
	a6->sin6_port = htons((uint16_t)atoi(arg[1]));
	return sizeof(*a6);
}

static int step_listen(char **arg)
{
	struct sockaddr_storage a;
	socklen_t len = resolve(arg, &a);
	int on = 1, sock = socket(a.ss_family, SOCK_STREAM, 0);

	kind_out = 100;
	if (sock < 0 || set_options(sock, false) ||
	    setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(sock, (struct sockaddr *)&a, len) || listen(sock, 4))
		return wrong("listen");
	fd = accept(sock, NULL, NULL);
	if (fd < 0)
		return wrong("accept");
	close(sock);
	return set_options(fd, true);
}

static int connect_to(char **arg)
{
	struct sockaddr_storage a;
	socklen_t len = resolve(arg, &a);

	kind_in = 100;
	fd = socket(a.ss_family, SOCK_STREAM, 0);
	if (fd < 0 || set_options(fd, false))
		return -1;
	return connect(fd, (struct sockaddr *)&a, len);
}

static int step_connect(char **arg)
{
	return connect_to(arg) ? wrong("connect") : set_options(fd, true);
}

static int step_refused(char **arg)
{
	return connect_to(arg) ? 0 : wrong("the connect succeeded");
}

/* --- octets --------------------------------------------------------------------------------- */

static bool ready(short events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, ms) == 1;
}

static int put(size_t len)
{
	static uint8_t buf[PIECE_MAX];

	for (size_t i = 0; i < len; i++)
		buf[i] = octet(sent + i, kind_out);
	for (size_t done = 0; done < len;) {
		ssize_t n = send(fd, buf + done, len - done, MSG_NOSIGNAL);

		if (n <= 0)
			return 1;
		done += (size_t)n;
		sent += (uint64_t)n;
	}
	return 0;
}

/* How many octets came, at most @len; 0 at the end, -1: failed or not those that were due */
static ssize_t take(size_t len)
{
	static uint8_t buf[PIECE_MAX];
	ssize_t n;

	if (slow_ms)
		rest(slow_ms);
	if (polling && !ready(POLLIN, WAIT_MS))
		return -1;
	n = recv(fd, buf, len < piece ? len : piece, 0);
	for (ssize_t i = 0; i < n; i++)
		if (buf[i] != octet(got + (uint64_t)i, kind_in)) {
			fprintf(stderr, "octet %llu is another\n", (unsigned long long)got + i);
			return -1;
		}
	got += n > 0 ? (uint64_t)n : 0;
	return n;
}

static int put_all(uint64_t left)
{
	for (size_t n; left; left -= n) {
		n = left < piece ? left : piece;
		if (put(n))
			return wrong("send");
	}
	return 0;
}

static int get_all(uint64_t left)
{
	while (left) {
		ssize_t n = take(left < PIECE_MAX ? left : PIECE_MAX);

		if (n <= 0)
			return wrong(n ? "recv" : "the end");
		left -= (uint64_t)n;
	}
	return 0;
}

static int step_put(char **arg)
{
	return put_all(strtoull(arg[0], NULL, 0));
}

static int step_get(char **arg)
{
	return get_all(strtoull(arg[0], NULL, 0));
}

static uint64_t trade_count;
static size_t trade_size;

static void *trade_out(void *arg)
{
	for (uint64_t i = 0; i < trade_count; i++)
		if (put(trade_size)) {
			wrong("send");
			return (void *)1;
		}
	return NULL;
}

static int step_trade(char **arg)
{
	pthread_t writer;
	void *bad;
	int ret;

	trade_count = strtoull(arg[0], NULL, 0);
	trade_size = strtoul(arg[1], NULL, 0);
	if (pthread_create(&writer, NULL, trade_out, NULL))
		return wrong("thread");
	ret = get_all(trade_count * trade_size);
	pthread_join(writer, &bad);
	return bad ? 1 : ret;
}

/* Its own pattern is that of what came. */
static int step_echo(char **arg)
{
	ssize_t n;

	kind_out = kind_in;
	while ((n = take(PIECE_MAX)) > 0)
		if (put((size_t)n))
			return wrong("send");
	return n ? wrong("recv") : 0;
}

/* --- time and ends -------------------------------------------------------------------------- */

static int step_sleep(char **arg)
{
	rest(atol(arg[0]));
	return 0;
}

static int step_mark(char **arg)
{
	FILE *f = fopen(arg[0], "w");

	return f ? fclose(f) : wrong(arg[0]);
}

static int step_silent(char **arg)
{
	return ready(POLLIN, atoi(arg[0])) ? wrong("something can be read") : 0;
}

static int step_watch(char **arg)
{
	for (int i = 0; i < atoi(arg[0]); i++) {
		ready(POLLIN, 0);
		rest(1);
	}
	return 0;
}

static int step_hung_up(char **arg)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	poll(&p, 1, WAIT_MS);
	return p.revents == (POLLIN | POLLHUP) ? 0 : wrong("not hung up with octets to read");
}

static int step_polling(char **arg)
{
	polling = true;
	return 0;
}

static int step_slow(char **arg)
{
	slow_ms = atol(arg[0]);
	return 0;
}

static int step_piece(char **arg)
{
	piece = strtoul(arg[0], NULL, 0);
	return piece > 0 && piece <= PIECE_MAX ? 0 : wrong("piece");
}

static int step_shut(char **arg)
{
	int how = arg[0][0] == 'r' ? SHUT_RD : arg[0][0] == 'w' ? SHUT_WR : SHUT_RDWR;

	return shutdown(fd, how) ? wrong("shutdown") : 0;
}

static int step_eof(char **arg)
{
	ssize_t n = take(1);

	return n ? wrong(n > 0 ? "there is an octet" : "no end") : 0;
}

static int step_breaks(char **arg)
{
	return take(1) < 0 ? 0 : wrong("recv does not fail");
}

static int step_fails(char **arg)
{
	for (int i = 0; i < WAIT_MS / 10; i++) {
		if (put(1))
			return 0;
		rest(10);
	}
	return wrong("sends do not fail");
}

static int step_map(char **arg)
{
	struct ddp_map map = { .addr = (uintptr_t)&sent, .length = sizeof(sent) };
	int n = 0;

	while (!setsockopt(fd, SOL_DDP, DDP_MAP, &map, sizeof(map))) {
		n++;
		if (setsockopt(fd, SOL_DDP, DDP_UNMAP, &map, sizeof(map)))
			return wrong("DDP_UNMAP");
	}
	return n == atoi(arg[0]) && errno == ENOBUFS ? 0 : wrong("DDP_MAP");
}

static int step_close(char **arg)
{
	return close(fd) ? wrong("close") : 0;
}

/* What it is differs between rsockets and TCP; that there is one is what counts. */
static int step_over(char **arg)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	for (int i = 0; i < WAIT_MS / 10; i++) {
		n = poll(&p, 1, 10) == 1 ? recv(fd, (char[1]){ 0 }, 1, 0) : 1;
		if (n <= 0)
			return 0;
	}
	return wrong("nothing ends");
}

static int step_kill(char **arg)
{
	return kill(getpid(), SIGKILL);
}

static int step_leave(char **arg)
{
	_exit(0);
}

static const struct step {
	const char *name;
	int args;
	int (*run)(char **arg);
} steps[] = {
	{ "option", 2, step_option },	{ "listen", 2, step_listen },
	{ "connect", 2, step_connect }, { "refused", 2, step_refused },
	{ "sleep", 1, step_sleep },	{ "polling", 0, step_polling },
	{ "piece", 1, step_piece },	{ "put", 1, step_put },
	{ "get", 1, step_get },		{ "trade", 2, step_trade },
	{ "echo", 0, step_echo },	{ "silent", 1, step_silent },
	{ "shut", 1, step_shut },	{ "eof", 0, step_eof },
	{ "close", 0, step_close },	{ "fails", 0, step_fails },
	{ "breaks", 0, step_breaks },	{ "leave", 0, step_leave },
	{ "watch", 1, step_watch },	{ "over", 0, step_over },
	{ "kill", 0, step_kill },	{ "mark", 1, step_mark },
	{ "hung-up", 0, step_hung_up }, { "slow", 1, step_slow },
	{ "map", 1, step_map },
};

static const struct step *find(const char *name)
{
	for (unsigned int i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (!strcmp(steps[i].name, name))
			return &steps[i];
	return NULL;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc;) {
		const struct step *s = find(argv[i]);

		if (!s || i + s->args >= argc) {
			fprintf(stderr, "no such step: %s\n", argv[i]);
			return 2;
		}
		if (s->run(argv + i + 1)) {
			fprintf(stderr, "step %d, %s, failed\n", i, s->name);
			return 1;
		}
		i += 1 + s->args;
	}
	return 0;
}
