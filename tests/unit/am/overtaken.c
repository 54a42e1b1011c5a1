/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A question that overtakes its request, as one by AF_XDP does where the request had to go by the
 * socket behind it, once in a second: docs/amudp.md, section 4. That datagram is held back here.
 * By UDP all go by the socket, and the others pass.
 */
#include "counted.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "am/request.h"

#define WARM 16 /* round trips: now both ends know how long one takes */

static int by_socket;

static struct {
	bool armed, is_held;
	int fd;
	struct sockaddr_in to;
	socklen_t to_len;
	size_t length;
	char data[256];
} held;

static long hold(const long *a)
{
	held.is_held = true;
	held.fd = (int)a[0];
	held.length = (size_t)a[2];
	held.to_len = (socklen_t)a[5];
	cr_assert_leq(held.length, sizeof(held.data));
	memcpy(held.data, (void *)a[1], held.length);
	memcpy(&held.to, (void *)a[4], held.to_len);
	return a[2];
}

/* How the library sends one datagram by a socket. */
__attribute__((visibility("default"))) long syscall(long number, ...)
{
	static long (*next)(long, ...);
	long a[6];
	va_list list;
	int i;

	va_start(list, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_sendto) {
		by_socket++;
		if (held.armed && !held.is_held)
			return hold(a);
	}
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* One request, its slot. Nothing goes again by itself. */
static struct am_tx_slot *request(struct pair *p)
{
	struct am_peer *peer = p->ep[0]->translations[0].peer;
	struct am_tx_slot *slot;

	cr_assert_eq(AM_Request0(p->ep[0], 0, 1), AM_OK);
	slot = base_list_entry(base_list_first(&peer->waiting), struct am_tx_slot, node);
	slot->last_sent += LATE;
	slot->ask_at = BASE_NEVER;
	return slot;
}

static struct am_tx_slot *request_held(struct pair *p)
{
	struct am_tx_slot *slot;

	for (;;) {
		ran = answered = 0;
		held.armed = true;
		slot = request(p);
		held.armed = false;
		if (held.is_held)
			return slot;
		pair_until(p, answered == 1);
	}
}

static void ask(struct pair *p, struct am_tx_slot *slot)
{
	am_retransmit_init(&p->ep[0]->retransmit);
	slot->asked = 0;
	slot->ask_at = 0;
	p->ep[0]->next_deadline = 0;
	while (!slot->asked)
		AM_Poll(p->eb[0]);
	slot->ask_at = BASE_NEVER;
}

static uint64_t copies_not_run(const struct pair *p)
{
	const amudp_stats_t *s = &p->ep[1]->stats;

	return s->RepliesSquashed[amudp_Short] + s->RepliesRetransmitted[amudp_Short];
}

Test(overtaken, a_question_overtakes_its_request, .timeout = 60)
{
	bool is_xdp = !strcmp(am_place_nic(), "xdp");
	struct am_tx_slot *slot;
	uint64_t before;
	struct pair p;
	int i;

	counted_open(&p);
	/* until the way past the kernel is known, too */
	for (i = 0; i < WARM || (is_xdp && by_socket); i++) {
		by_socket = 0;
		AM_Request0(p.ep[0], 0, 1);
		pair_until(&p, answered == i + 1);
	}
	slot = request_held(&p);
	before = copies_not_run(&p);
	by_socket = 0;
	ask(&p, slot);
	cr_assert_eq(by_socket, !is_xdp, "%d questions by the socket", by_socket);
	/* it is not there, says the peer, and the second copy goes */
	pair_until(&p, answered == 1);
	cr_assert_eq(slot->drawn, 1);
	cr_assert_eq(ran, 1);
	cr_assert_eq(sendto(held.fd, held.data, held.length, 0, (void *)&held.to, held.to_len),
		     (ssize_t)held.length);
	pair_until(&p, copies_not_run(&p) == before + 1);
	pair_poll(&p);
	cr_assert_eq(ran, 1);
	cr_assert_eq(answered, 1);
	cr_assert_eq(p.ep[0]->outstanding, 0);
	pair_close(&p);
}
