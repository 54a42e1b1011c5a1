/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random programs with urgent data, over TCP and over DDP: they do the same, call by call.
 *
 *	urgent one|two SEED OPERATIONS [all: tells of each operation]
 *
 * There are two connections, one of each kind. Each operation is done on one of them and then on
 * the other one, and what the calls gave is compared; then both are looked at until they are alike,
 * for what was sent takes its time. In shape "two" a child has the same descriptors, and either
 * process does an operation. SIGURG goes to the parent: the kernel's says SI_KERNEL, ours does not.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM_OPS 60
#define LENGTH_MAX 4000
#define LIMIT_MS 5000

enum { PLAIN, DDP, WORLDS };
enum { BY_LEVEL, BY_EDGE, PRI_ALONE, SETS };

enum kind { SEND, URGENT, RECV, RECVMSG, TAKE, INLINE, WAIT, SELECT, SHUT, LOOK, KINDS };

static const struct {
	const char *name;
	unsigned int weight;
} kinds[KINDS] = {
	[SEND] = { "send", 30 },       [URGENT] = { "urgent", 30 }, [RECV] = { "recv", 40 },
	[RECVMSG] = { "recvmsg", 10 }, [TAKE] = { "take", 20 },	    [INLINE] = { "inline", 5 },
	[WAIT] = { "wait", 30 },       [SELECT] = { "select", 8 },  [SHUT] = { "shut", 1 },
	[LOOK] = { "look", 5 },
};

struct op {
	enum kind kind;
	unsigned int side, len, pick, child;
};

struct outcome {
	long ret, err, value[4];
	uint8_t octets[LENGTH_MAX];
};

struct world {
	int fd[2], set[2][SETS];
};

static bool verbose;
static uint64_t sent[2]; /* by each end, in either world */
static struct world worlds[WORLDS];
static volatile sig_atomic_t signals[WORLDS];
static int line = -1; /* to the child */
static int (*libc_socket)(int domain, int type, int protocol);

static void on_urg(int number, siginfo_t *info, void *context)
{
	signals[info->si_code == SI_KERNEL ? PLAIN : DDP]++;
}

static uint64_t state;

static uint32_t draw(uint32_t n)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ (z >> 31)) % n);
}

static void fail(const char *what)
{
	printf("cannot %s: %s\n", what, strerror(errno));
	exit(2);
}

/* --- a connection of each kind --- */

static void pair_make(struct world *w, bool plain)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int (*make)(int, int, int) = plain ? libc_socket : socket;
	int listener = make(AF_INET, SOCK_STREAM, 0), on = 1;
	char c;

	w->fd[0] = make(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&addr, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&addr, &len) ||
	    connect(w->fd[0], (struct sockaddr *)&addr, len))
		fail("connect");
	w->fd[1] = accept(listener, NULL, NULL);
	close(listener);
	for (int i = 0; i < 2; i++)
		setsockopt(w->fd[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	/* One octet each way: both are open */
	if (write(w->fd[0], "a", 1) != 1 || read(w->fd[1], &c, 1) != 1 ||
	    write(w->fd[1], "b", 1) != 1 || read(w->fd[0], &c, 1) != 1)
		fail("open");
	fcntl(w->fd[0], F_SETOWN, getpid());
}

static void sets_make(struct world *w)
{
	static const uint32_t events[SETS] = { EPOLLIN | EPOLLPRI | EPOLLRDHUP,
					       EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET,
					       EPOLLPRI | EPOLLET };

	for (int i = 0; i < 2 * SETS; i++) {
		struct epoll_event e = { .events = events[i % SETS] };

		w->set[i / SETS][i % SETS] = epoll_create1(0);
		epoll_ctl(w->set[i / SETS][i % SETS], EPOLL_CTL_ADD, w->fd[i / SETS], &e);
	}
}

static void worlds_close(void)
{
	for (int i = 0; i < WORLDS; i++)
		for (int side = 0; side < 2; side++) {
			for (int k = 0; k < SETS; k++)
				close(worlds[i].set[side][k]);
			close(worlds[i].fd[side]);
		}
}

/* --- operations --- */

static int recv_flags(unsigned int pick)
{
	static const int flags[] = {
		0, 0, 0, MSG_PEEK, MSG_WAITALL, MSG_TRUNC, MSG_PEEK | MSG_TRUNC
	};

	return flags[pick % 7] | MSG_DONTWAIT;
}

static void fill(struct outcome *out, const struct op *op)
{
	for (unsigned int i = 0; i < op->len; i++)
		out->octets[i] = (uint8_t)(op->pick + i * 7);
}

static void do_recvmsg(int fd, const struct op *op, struct outcome *out)
{
	struct iovec iov[2] = { { out->octets, op->len / 3 },
				{ out->octets + op->len / 3, op->len - op->len / 3 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2, .msg_flags = -1 };

	out->ret = recvmsg(fd, &msg, op->pick & 1 ? MSG_OOB : recv_flags(op->pick >> 1));
	out->value[0] = msg.msg_flags;
}

static void do_wait(const struct world *w, const struct op *op, struct outcome *out)
{
	struct epoll_event e = { 0 };

	out->ret = epoll_wait(w->set[op->side][op->pick % SETS], &e, 1, 0);
	out->value[0] = out->ret > 0 ? (long)e.events : 0;
}

static void do_select(int fd, struct outcome *out)
{
	struct timeval now = { 0, 0 };
	fd_set in, except;

	FD_ZERO(&in);
	FD_ZERO(&except);
	FD_SET(fd, &in);
	FD_SET(fd, &except);
	out->ret = select(fd + 1, &in, NULL, &except, &now);
	out->value[0] = FD_ISSET(fd, &in) != 0;
	out->value[1] = FD_ISSET(fd, &except) != 0;
}

static void do_look(int fd, struct outcome *out)
{
	struct pollfd p = { .fd = fd,
			    .events = POLLIN | POLLPRI | POLLRDBAND | POLLRDHUP | POLLOUT };
	int at = -1, there = -1;

	out->ret = poll(&p, 1, 0);
	ioctl(fd, SIOCATMARK, &at);
	ioctl(fd, FIONREAD, &there);
	out->value[0] = p.revents;
	out->value[1] = at;
	out->value[2] = there;
	out->value[3] = sockatmark(fd);
}

static void do_op(const struct world *w, const struct op *op, struct outcome *out)
{
	int fd = w->fd[op->side], on = op->pick & 1;

	memset(out, 0, sizeof(*out));
	errno = 0;
	switch (op->kind) {
	case SEND:
	case URGENT:
		fill(out, op);
		out->ret = send(fd, out->octets, op->len,
				MSG_NOSIGNAL | MSG_DONTWAIT | (op->kind == URGENT ? MSG_OOB : 0));
		break;
	case RECV:
		out->ret = recv(fd, out->octets, op->len, recv_flags(op->pick));
		break;
	case RECVMSG:
		do_recvmsg(fd, op, out);
		break;
	case TAKE:
		out->ret = recv(fd, out->octets, 1, MSG_OOB | (op->pick & 1 ? MSG_PEEK : 0));
		break;
	case INLINE:
		out->ret = setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
		break;
	case WAIT:
		do_wait(w, op, out);
		break;
	case SELECT:
		do_select(fd, out);
		break;
	case SHUT:
		out->ret = shutdown(fd, SHUT_WR);
		break;
	default:
		do_look(fd, out);
	}
	out->err = out->ret < 0 ? errno : 0;
}

/* --- a child that has the same --- */

static void serve(int fd)
{
	struct outcome out;
	struct op op;

	while (read(fd, &op, sizeof(op)) == sizeof(op)) {
		do_op(&worlds[op.child >> 1], &op, &out);
		if (write(fd, &out, sizeof(out)) != sizeof(out))
			break;
	}
	_exit(0);
}

static pid_t child_make(void)
{
	int pair[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		fail("pair");
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGURG, SIG_IGN);
		close(pair[0]);
		serve(pair[1]);
	}
	close(pair[1]);
	line = pair[0];
	return child;
}

static void do_there(unsigned int world, struct op op, struct outcome *out)
{
	op.child = 1 | world << 1;
	if (write(line, &op, sizeof(op)) != sizeof(op) ||
	    recv(line, out, sizeof(*out), MSG_WAITALL) != sizeof(*out))
		fail("hear of the child");
}

static void do_in(unsigned int world, const struct op *op, struct outcome *out)
{
	if (op->child && line >= 0)
		do_there(world, *op, out);
	else
		do_op(&worlds[world], op, out);
}

/* --- programs --- */

static struct op op_draw(void)
{
	static const unsigned int most[] = { 1, 1, 2, 3, 8, 8, 40, LENGTH_MAX };
	unsigned int sum = 0, at, kind = 0;
	struct op op;

	for (unsigned int i = 0; i < KINDS; i++)
		sum += kinds[i].weight;
	for (at = draw(sum); at >= kinds[kind].weight; kind++)
		at -= kinds[kind].weight;
	op = (struct op){ .kind = (enum kind)kind, .side = draw(4) == 0, .pick = draw(1u << 16) };
	op.len = 1 + draw(most[draw(8)]);
	if (op.len > LENGTH_MAX)
		op.len = LENGTH_MAX;
	/* A set that was forked has edges of its own in each process (docs/limits.md) */
	op.child = op.kind != WAIT && draw(2);
	/* Octets go mostly from one end to the other one */
	if (op.kind == SEND || op.kind == URGENT || op.kind == SHUT)
		op.side = !op.side;
	return op;
}

static void outcome_print(const char *name, const struct outcome *out)
{
	printf("  %s: %ld %s, %#lx %ld %ld %ld, \"%.8s\"\n", name, out->ret,
	       out->err ? strerrorname_np((int)out->err) : "", out->value[0], out->value[1],
	       out->value[2], out->value[3], (const char *)out->octets);
}

static bool alike(const struct outcome out[WORLDS])
{
	return !memcmp(&out[PLAIN], &out[DDP], sizeof(out[PLAIN]));
}

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* What lies behind a mark shows in nothing else: has the kernel all of it? */
static bool plain_rests(unsigned int side)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	getsockopt(worlds[PLAIN].fd[side], IPPROTO_TCP, TCP_INFO, &info, &len);
	return info.tcpi_bytes_received >= sent[!side];
}

/* Both ends look alike, and so many signals have come */
static bool settle(void)
{
	static struct outcome out[WORLDS];
	long limit = now_ms() + LIMIT_MS;

	for (unsigned int side = 0; side < 2;) {
		struct op op = { .kind = LOOK, .side = side };

		for (unsigned int w = 0; w < WORLDS; w++)
			do_op(&worlds[w], &op, &out[w]);
		if (plain_rests(side) && alike(out) && signals[PLAIN] == signals[DDP]) {
			side++;
			continue;
		}
		if (now_ms() > limit) {
			printf("  they look different at end %u, signals %d and %d\n", side,
			       signals[PLAIN], signals[DDP]);
			outcome_print("plain", &out[PLAIN]);
			outcome_print("ddp", &out[DDP]);
			return false;
		}
		poll(NULL, 0, 1);
	}
	return true;
}

static void op_print(const struct op *op, const struct outcome out[WORLDS])
{
	printf("%s at end %u, %u octets, pick %u%s\n", kinds[op->kind].name, op->side, op->len,
	       op->pick, op->child && line >= 0 ? ", by the child" : "");
	outcome_print("plain", &out[PLAIN]);
	outcome_print("ddp", &out[DDP]);
}

static bool op_play(unsigned int i, const struct op *op)
{
	static struct outcome out[WORLDS];
	bool same;

	for (unsigned int w = 0; w < WORLDS; w++)
		do_in(w, op, &out[w]);
	if ((op->kind == SEND || op->kind == URGENT) && out[PLAIN].ret > 0)
		sent[op->side] += (uint64_t)out[PLAIN].ret;
	same = alike(out);
	if (verbose)
		op_print(op, out);
	if (same && settle())
		return true;
	printf("operation %u differs%s\n", i, same ? " in what it leaves" : "");
	op_print(op, out);
	return false;
}

static bool program_play(uint64_t seed, bool two)
{
	bool good = true;
	pid_t child = 0;

	state = seed * 0x10001u;
	for (unsigned int w = 0; w < WORLDS; w++) {
		pair_make(&worlds[w], w == PLAIN);
		sets_make(&worlds[w]);
	}
	signals[PLAIN] = signals[DDP] = 0;
	sent[0] = sent[1] = 1;
	if (two)
		child = child_make();
	for (unsigned int i = 0; i < PROGRAM_OPS && good; i++) {
		struct op op = op_draw();

		good = op_play(i, &op);
	}
	if (two) {
		close(line);
		waitpid(child, NULL, 0);
	}
	worlds_close();
	return good;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_urg, .sa_flags = SA_SIGINFO | SA_RESTART };
	unsigned long operations = argc > 3 ? strtoul(argv[3], NULL, 10) : PROGRAM_OPS;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, programs;
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), *found;

	found = libc ? dlsym(libc, "socket") : NULL;
	if (!found || argc < 2)
		return 2;
	memcpy(&libc_socket, &found, sizeof(found));
	verbose = argc > 4;
	sigaction(SIGURG, &action, NULL);
	programs = (operations + PROGRAM_OPS - 1) / PROGRAM_OPS;
	for (uint64_t i = 0; i < programs; i++, seed++) {
		if (program_play(seed, !strcmp(argv[1], "two")))
			continue;
		printf("FAILED seed %llu\n", (unsigned long long)seed);
		return 1;
	}
	printf("%lu operations in %llu programs, the last seed %llu\n", operations,
	       (unsigned long long)programs, (unsigned long long)seed - 1);
	return 0;
}
