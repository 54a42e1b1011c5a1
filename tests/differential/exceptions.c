/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The differences from Linux TCP that are admitted: each has a name, which docs/limits.md has
 * too, and says exactly what it is. The run counts them. What no row knows is a failure.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "play.h"

/* TCP keeps the first part, so nothing answers it with a reset before the second one */
static bool more_after_close(const struct play *p, const struct op *op, const struct outcome *plain,
			     const struct outcome *ddp)
{
	unsigned int peer = !op_side(op->slot);

	return op->kind == OP_SEND_MORE && p->ended[peer] && (p->gone[peer] || p->deaf[peer]) &&
	       plain->ret == (long)op->a && ddp->ret == -1 && ddp->err == EPIPE;
}

static bool shut_and_reset(const struct play *p, unsigned int side)
{
	bool shut = (p->deaf[side] && p->ended[side]) || p->deaf[!side];

	return (p->gone[!side] || p->late[!side]) && shut && p->reset;
}

/*
 * DISCONNECT has said that nothing more is taken: a reset behind it says nothing new, also to who
 * sleeps in poll()
 */
static bool reset_after_both_shut(const struct play *p, const struct op *op,
				  const struct outcome *plain, const struct outcome *ddp)
{
	bool polls = op->kind == OP_POLL || op->kind == OP_PPOLL;
	bool only = plain->ret == ddp->ret && plain->n == ddp->n;

	for (unsigned int i = 0; i < plain->n && only; i++)
		only = plain->value[i] == ddp->value[i] ||
		       ((polls || !i) && plain->value[i] == (ddp->value[i] | POLLERR));
	return (polls || op->kind == OP_OBSERVE) && only &&
	       (shut_and_reset(p, op_side(op->slot)) ||
		(polls && shut_and_reset(p, !op_side(op->slot))));
}

static bool nothing_in_time(const struct play *p, const struct op *op, const struct outcome *plain,
			    const struct outcome *ddp)
{
	return op_is_receive(op->kind) && !op->a && p->timed[op_side(op->slot)] && !plain->ret &&
	       ddp->err == EAGAIN;
}

/* Does @more tell of slots for which @why holds, and @less not, and else the same? */
static bool tells_more(const struct play *p, const struct op *op, const struct outcome *more,
		       const struct outcome *less,
		       bool (*why)(const struct play *p, const struct op *op, unsigned int slot,
				   long told))
{
	bool so = op->kind == OP_EPOLL_WAIT && more->ret > less->ret && less->ret >= 0;

	for (unsigned int i = 0; i < SLOTS && so; i++)
		so = more->value[i] == less->value[i] ||
		     (more->value[i] && !less->value[i] && why(p, op, i, more->value[i]));
	return so;
}

/* It sends no more; and nothing that is readable has come since this set told of it last */
static bool sends_no_more(const struct play *p, const struct op *op, unsigned int slot, long told)
{
	unsigned int side = op_side(slot);

	return p->ended[side] &&
	       (!(told & (EPOLLIN | EPOLLRDHUP)) || p->heard[op->set][slot] == play_news(p, side));
}

/* When the peer's TCP acknowledges our FIN, the kernel wakes whoever watches the socket */
static bool edge_of_fin(const struct play *p, const struct op *op, const struct outcome *plain,
			const struct outcome *ddp)
{
	return tells_more(p, op, plain, ddp, sends_no_more);
}

static bool peer_is_deaf(const struct play *p, const struct op *op, unsigned int slot, long told)
{
	unsigned int side = op_side(slot);

	return p->ended[!side] && (p->deaf[!side] || p->gone[!side]);
}

/* DISCONNECT behind SHUTDOWN; TCP does not say that nobody receives any more */
static bool edge_of_deafness(const struct play *p, const struct op *op, const struct outcome *plain,
			     const struct outcome *ddp)
{
	return tells_more(p, op, ddp, plain, peer_is_deaf);
}

/* The TCP connection below lives until close() */
static bool peer_name_after_end(const struct play *p, const struct op *op,
				const struct outcome *plain, const struct outcome *ddp)
{
	bool over = (p->ended[0] && p->ended[1]) || p->late[op_side(op->slot)];

	return op->kind == OP_NAMES && op->b & 1 && over && plain->err == ENOTCONN && !ddp->ret;
}

/* Who has said DISCONNECT is told nothing more, not even that the peer has ended, too */
static bool shutdown_after_end(const struct play *p, const struct op *op,
			       const struct outcome *plain, const struct outcome *ddp)
{
	unsigned int side = op_side(op->slot);

	return op->kind == OP_SHUTDOWN && p->ended[0] && p->ended[1] && p->deaf[side] &&
	       plain->err == ENOTCONN && !ddp->ret;
}

static struct exception {
	const char *name;
	bool (*knows)(const struct play *p, const struct op *op, const struct outcome *plain,
		      const struct outcome *ddp);
	bool stops; /* after it the worlds are different for good */
	unsigned long count;
} exceptions[] = {
	{ "MSG_MORE after the peer's close", more_after_close, true, 0 },
	{ "reset after shutdown(SHUT_RDWR)", reset_after_both_shut, true, 0 },
	{ "recv() of no octets with SO_RCVTIMEO", nothing_in_time, false, 0 },
	{ "an edge when a FIN is acknowledged", edge_of_fin, true, 0 },
	{ "an edge when the peer shuts its receiving", edge_of_deafness, true, 0 },
	{ "getpeername() after both ends", peer_name_after_end, false, 0 },
	{ "shutdown() after both ends", shutdown_after_end, false, 0 },
	{ NULL, NULL, false, 0 },
};

bool exception_knows(struct play *p, const struct op *op, const struct outcome *plain,
		     const struct outcome *ddp)
{
	for (struct exception *e = exceptions; e->name; e++) {
		if (!e->knows(p, op, plain, ddp))
			continue;
		e->count++;
		p->stop |= e->stops;
		return true;
	}
	return false;
}

void exceptions_print(void)
{
	for (const struct exception *e = exceptions; e->name; e++)
		printf("exception %lu times: %s\n", e->count, e->name);
}
