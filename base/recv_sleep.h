/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_RECV_SLEEP_H
#define BASE_RECV_SLEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * A recvmsg() that sleeps in the kernel until bytes come, and that a signal handler ends, also
 * one that runs a moment before the kernel has begun: base_recv_sleep_end() spoils the message
 * header, which the kernel reads when it begins, and once more when it restarts the call behind a
 * handler. So no signal is lost between the last look at it and the sleep.
 */
struct base_recv_sleep {
	struct msghdr msg; /* msg_iovlen is atomic */
	/* Called when @msg is filled: may the sleep begin? What was noted before says no */
	bool (*may)(struct base_recv_sleep *s);
	bool slept; /* the kernel was called, and had nothing against a sleep */
};

/* @msg counts from now on. Pairs with base_recv_sleep_end() */
static inline void base_recv_sleep_fill(struct base_recv_sleep *s, const struct msghdr *msg)
{
	s->msg = *msg;
	__atomic_store_n(&s->msg.msg_iovlen, msg->msg_iovlen, __ATOMIC_SEQ_CST);
}

/* No kernel takes a list that long: the call is -EMSGSIZE */
static inline void base_recv_sleep_end(struct base_recv_sleep *s)
{
	__atomic_store_n(&s->msg.msg_iovlen, SIZE_MAX, __ATOMIC_SEQ_CST);
}

#endif
