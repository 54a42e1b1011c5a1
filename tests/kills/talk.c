/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One end of the connection that suffers; in two processes where they share it. Either the two
 * take turns with everything, or one sends while the other reads; when one is gone, the other
 * goes on alone.
 *
 * Flags: l long writes, b slow reader, x no wait for the peer before close(), i idle at the end,
 * d another number by dup(), t two processes by turns, f two processes by direction, k the child is
 * to be killed, h it executes a program, m it is sent the connection, e shared before its first
 * octet, c its parent closes it at once, r a time to linger, z as much as there is room
 * for and a reader that waits, y who listens starts a shell, q short reads, g who listens has no
 * DDP, w who connects does not wait, v who sends does, for as long as it takes.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger.h"

#define LONG_MAX_LEN 65536
#define SHORT_MAX_LEN 1000
#define TURN_STEPS 4
/* Fewer octets may be found in several places */
#define FIND_LEN 16

enum who { ALONE, PARENT, CHILD };

struct end {
	struct ledger *l;
	const struct plan *plan;
	struct way *out, *in;
	uint64_t seed;
	int role, fd, side;
	enum who who;
	pid_t parent, child;
	unsigned int steps;
	bool lost; /* the position of what comes next is in doubt */
	bool called;
	size_t held; /* octets that came while it is */
	uint8_t octets[LONG_MAX_LEN], came[FIND_LEN + LONG_MAX_LEN];
};

static bool has(const struct end *e, char flag)
{
	return plan_has(e->plan, flag);
}

/* --- octets out --- */

static bool out_is_over(const struct end *e)
{
	return ledger_load(&e->out->shut) || ledger_load(&e->out->failed);
}

static void out_end(struct end *e)
{
	if (has(e, 'i'))
		return;
	if (!has(e, 'x'))
		shutdown(e->fd, SHUT_WR);
	ledger_store(&e->out->shut, 1);
}

/* Its reader waits and there is no room: that is all */
static void out_cut(struct end *e)
{
	e->out->total = e->out->sent;
	out_end(e);
}

static void out_note(struct end *e, uint64_t at)
{
	struct way *w = e->out;

	if (w->ends < LEDGER_ENDS)
		w->end_at[w->ends] = at;
	ledger_store(&w->ends, w->ends + 1);
	ledger_store(&w->sent, at);
}

static void out_step(struct end *e)
{
	struct way *w = e->out;
	uint32_t most = has(e, 'l') ? LONG_MAX_LEN : SHORT_MAX_LEN;
	uint64_t len = 1 + pattern_random(&e->seed, most);
	ssize_t n;

	if (len > w->total - w->sent)
		len = w->total - w->sent;
	if (!len) {
		out_end(e);
		return;
	}
	pattern_put(e->role, w->sent, e->octets, len);
	ledger_store(&w->upto, w->sent + len);
	n = send(e->fd, e->octets, len, MSG_NOSIGNAL | (has(e, 'v') ? 0 : MSG_DONTWAIT));
	if (n > 0)
		out_note(e, w->sent + (uint64_t)n);
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		ledger_store(&w->failed, END_ERROR + (uint32_t)errno);
	ledger_store(&w->upto, w->sent);
}

/* --- octets in --- */

/* Where they belong, if what was asked for by somebody who was killed is in doubt */
static void in_find(struct end *e, size_t len)
{
	struct way *w = e->in;

	e->lost = false;
	for (uint64_t at = w->got; at <= w->asked; at++) {
		if (pattern_check(!e->role, at, e->came, len) == len) {
			ledger_store(&w->got, at);
			return;
		}
	}
}

/* Who sends may have left out what was in doubt: nothing, a part of it or all of it has come */
static size_t in_leap(struct end *e, size_t right, size_t len)
{
	struct way *w = e->in;
	uint64_t from = ledger_load(&w->doubt_from), to = ledger_load(&w->doubt_to);

	for (size_t back = 0; back <= right && back < 8; back++) {
		uint64_t at = w->got + right - back;

		if (to <= at || at < from || at > to)
			continue;
		if (pattern_check(!e->role, to, e->came + right - back, len - right + back) !=
		    len - right + back)
			continue;
		ledger_store(&w->got, to - (right - back));
		return len;
	}
	return right;
}

static void in_take(struct end *e, size_t len, bool filled)
{
	struct way *w = e->in;
	size_t right;

	e->held = e->lost && len < FIND_LEN ? len : 0;
	if (e->held)
		return;
	if (e->lost)
		in_find(e, len);
	right = pattern_check(!e->role, w->got, e->came, len);
	if (right < len)
		right = in_leap(e, right, len);
	if (right < len)
		ledger_store(&w->wrong, w->wrong + 1);
	if (filled)
		ledger_store(&w->filled, w->got + len);
	ledger_store(&w->got, w->got + len);
}

/*
 * Nothing, or little, comes behind what is in doubt: who was killed in reading has taken the rest,
 * if he asked for as much; who was killed in sending has left it out, if that was his last call
 */
static void in_end(struct end *e)
{
	struct way *w = e->in;
	uint64_t sent = ledger_load(&w->sent), at = sent - e->held;

	if (e->lost && w->got <= at && at <= w->asked &&
	    pattern_check(!e->role, at, e->came, e->held) == e->held)
		ledger_store(&w->got, sent);
	if (ledger_load(&w->doubt_to) == sent && w->got >= ledger_load(&w->doubt_from))
		ledger_store(&w->got, sent);
	ledger_store(&w->end, END_OF_STREAM);
}

static uint32_t in_most(const struct end *e)
{
	if (has(e, 'q'))
		return SHORT_MAX_LEN / 4;
	return has(e, 'b') ? 8192 : LONG_MAX_LEN - 1;
}

static void in_step(struct end *e)
{
	struct way *w = e->in;
	size_t most = 1 + pattern_random(&e->seed, in_most(e));
	ssize_t n;

	if (has(e, 'z') && !w->got)
		most = 1;
	if (!e->lost)
		ledger_store(&w->asked, w->got + most);
	n = recv(e->fd, e->came + e->held, most, MSG_DONTWAIT);
	if (n > 0)
		in_take(e, e->held + (size_t)n, (size_t)n == most);
	else if (n == 0)
		in_end(e);
	else if (errno != EAGAIN && errno != EINTR)
		ledger_store(&w->end, END_ERROR + (uint32_t)errno);
	if (!e->lost)
		ledger_store(&w->asked, w->got);
	if (has(e, 'b'))
		usleep(200);
}

/* What comes stays where it is until its sender is another program, a second at most */
static void in_leave(const struct end *e)
{
	static int waited;

	for (; waited < 1000 && !ledger_load(&e->l->after) && !ledger_load(&e->l->killed); waited++)
		usleep(1000);
}

/* --- two processes --- */

static bool partner_is_gone(const struct end *e)
{
	if (e->who == CHILD)
		return getppid() != e->parent;
	return waitpid(e->child, NULL, WNOHANG) != 0;
}

static void take_over(struct end *e)
{
	struct way *w = e->out;

	ledger_store(&e->l->alone, e->who == CHILD ? 2u : 1u);
	e->who = ALONE;
	if (ledger_load(&w->upto) > w->sent) {
		ledger_store(&w->doubt_from, w->sent);
		ledger_store(&w->doubt_to, w->upto);
		ledger_store(&w->sent, w->upto);
	}
	e->lost = ledger_load(&e->in->asked) > e->in->got;
}

static bool may_send(const struct end *e)
{
	if (e->who == ALONE)
		return true;
	if (has(e, 't'))
		return ledger_load(&e->l->turn) == (e->who == CHILD);
	return e->who == PARENT;
}

static bool may_read(const struct end *e)
{
	if (e->who == ALONE || has(e, 't'))
		return may_send(e);
	return e->who == CHILD;
}

static void turn_pass(struct end *e)
{
	if (e->who != ALONE && has(e, 't') && may_send(e) && ++e->steps % TURN_STEPS == 0)
		ledger_store(&e->l->turn, e->who != CHILD);
}

/* Only the one that is to be killed comes to its point */
void point_hide(bool hide)
{
	static char first;
	char *value = getenv("WARPSOCK_TEST_POINT");

	if (!value || *value == '?')
		return;
	if (hide && !first) {
		first = *value;
		*value = '-';
	} else if (!hide && first) {
		*value = first;
		first = 0;
	}
}

/* One that the child comes to before fork() returns, and its parent never */
static bool point_is_of_fork(void)
{
	const char *value = getenv("WARPSOCK_TEST_POINT");

	return value && strstr(value, "reload_fork_");
}

static pid_t child_make(struct ledger *l, const struct plan *plan)
{
	pid_t pid;

	if (plan_has(plan, 'k') && point_is_of_fork())
		point_hide(false);
	pid = fork();
	if (pid < 0)
		abort();
	point_hide(plan_has(plan, 'k') ? pid : !pid);
	ledger_store(&l->child, (uint32_t)(pid ? pid : getpid()));
	return pid;
}

/* The child goes on as another program */
static _Noreturn void execute(const struct end *e)
{
	char fd[16], parent[16], **a = e->plan->argv;

	snprintf(fd, sizeof(fd), "%d", e->fd);
	snprintf(parent, sizeof(parent), "%d", e->parent);
	execl("/proc/self/exe", a[0], a[1], "shared", a[3], a[4], a[5], a[6], fd, parent, NULL);
	abort();
}

static void fd_send(int to, int fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct iovec iov = { "f", 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };

	*CMSG_FIRSTHDR(&m) = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
					       .cmsg_type = SCM_RIGHTS,
					       .cmsg_len = CMSG_LEN(sizeof(fd)) };
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof(fd));
	/* The child may be dead */
	if (sendmsg(to, &m, MSG_NOSIGNAL) != 1 && errno != EPIPE && errno != ECONNRESET)
		abort();
}

/* -1: who should send it is gone */
static int fd_receive(int from)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	struct msghdr m = { .msg_control = control, .msg_controllen = sizeof(control) };
	char octet;
	struct iovec iov = { &octet, 1 };
	int fd;

	m.msg_iov = &iov;
	m.msg_iovlen = 1;
	if (recvmsg(from, &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

void talk_child(struct ledger *l, struct plan *plan)
{
	int pair[2], fd, parent = getpid();

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		abort();
	plan->pass = pair[0];
	plan->child = child_make(l, plan);
	if (plan->child) {
		close(pair[1]);
		return;
	}
	close(pair[0]);
	fd = fd_receive(pair[1]);
	if (fd >= 0)
		talk_on(l, plan, fd, parent);
	ledger_store(&l->done[ROLES], 1);
	exit(0);
}

static void share(struct end *e)
{
	e->parent = getpid();
	if (has(e, 'm')) {
		e->child = e->plan->child;
		fd_send(e->plan->pass, e->fd);
	} else {
		e->child = child_make(e->l, e->plan);
	}
	e->who = e->child ? PARENT : CHILD;
	if (e->child)
		return;
	if (has(e, 'c'))
		e->who = ALONE;
	if (has(e, 'h'))
		execute(e);
	ledger_store(&e->l->joined, 1);
	e->side = -1; /* its parent's, though it has it as well */
}

static bool is_to_share(const struct end *e)
{
	if (e->parent || e->role != BY_LISTEN || !(has(e, 't') || has(e, 'f') || has(e, 'c')))
		return false;
	return has(e, 'e') || e->in->got || e->out->sent;
}

/* --- both directions --- */

static bool is_over(const struct end *e)
{
	if (has(e, 'i') && ledger_load(&e->in->end))
		return true;
	if (has(e, 'x') && !e->in->total && out_is_over(e))
		return true;
	return out_is_over(e) && ledger_load(&e->in->end);
}

static void idle_note(struct end *e)
{
	if (has(e, 'i') && e->out->sent == e->out->total && e->in->got == e->in->total)
		ledger_store(&e->l->idle[e->role], 1);
}

static void step(struct end *e)
{
	bool out = may_send(e) && !out_is_over(e) &&
		   !(has(e, 'i') && e->out->sent == e->out->total);
	bool in = may_read(e) && !ledger_load(&e->in->end);
	struct pollfd p[2] = { { e->fd, (short)((out ? POLLOUT : 0) | (in ? POLLIN : 0)), 0 },
			       { e->side, POLLIN, 0 } };

	if (poll(p, 2, e->who == ALONE ? 20 : 1) < 0)
		return;
	if (out && p[0].revents & (POLLOUT | POLLERR | POLLHUP))
		out_step(e);
	else if (out && has(e, 'z') && ledger_load(&e->out->got))
		out_cut(e);
	if (in && has(e, 'z') && e->in->got)
		in_leave(e);
	if (in && p[0].revents & (POLLIN | POLLERR | POLLHUP))
		in_step(e);
	if (e->side >= 0)
		side_step(e->l, e->role, e->side);
	turn_pass(e);
	idle_note(e);
}

static void number_change(struct end *e)
{
	int other = dup(e->fd);

	if (other < 0)
		abort();
	close(e->fd);
	e->fd = other;
}

static void linger_set(int fd)
{
	struct linger linger = { 1, 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

static void end_init(struct end *e, struct ledger *l, const struct plan *plan, int role)
{
	*e = (struct end){ .l = l, .plan = plan, .role = role, .side = -1 };
	e->seed = plan->seed + (uint64_t)role;
	e->out = &l->way[role];
	e->in = &l->way[!role];
}

/* Which inherits nothing where states have no folder */
static void shell_start(struct end *e)
{
	if (e->called || e->role != BY_LISTEN || !has(e, 'y') || !(e->in->got || e->out->sent))
		return;
	e->called = true;
	if (system("exit 7") != 7 << 8)
		abort();
}

static void run(struct end *e)
{
	while (!is_over(e)) {
		shell_start(e);
		if (is_to_share(e))
			share(e);
		if (e->who == PARENT && has(e, 'c'))
			break; /* it has given it away */
		if (e->who != ALONE && partner_is_gone(e))
			take_over(e);
		step(e);
	}
	if (has(e, 'r'))
		linger_set(e->fd);
	close(e->fd);
	if (e->who == CHILD || (e->child == 0 && e->parent)) {
		ledger_store(&e->l->done[ROLES], 1);
		exit(0);
	}
}

static struct end end;

void talk(struct ledger *l, const struct plan *plan, int role, int fd, int side)
{
	end_init(&end, l, plan, role);
	end.fd = fd;
	end.side = side;
	if (has(&end, 'd'))
		number_change(&end);
	run(&end);
}

void talk_on(struct ledger *l, const struct plan *plan, int fd, int parent)
{
	end_init(&end, l, plan, BY_LISTEN);
	end.fd = fd;
	end.who = CHILD;
	end.parent = parent;
	ledger_store(&l->joined, 1);
	run(&end);
	abort();
}
