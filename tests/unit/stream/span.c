/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Octets that wait where they were received, until they are read or that memory is needed.
 */
#include "tests/unit/stream/ends.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct stream *end[2];
static uint64_t sent, got;

static struct stream *reader(void)
{
	return end[1];
}

static const struct stream_rx *rx(void)
{
	return &reader()->state->rx;
}

static unsigned int spans(void)
{
	return rx()->span_end - rx()->span_first;
}

static unsigned int chunks(void)
{
	return STREAM_CHUNKS - rx()->chunks_free;
}

static void setup(void)
{
	sent = got = 0;
	ends_open(end);
}

static void teardown(void)
{
	ends_destroy(end);
}

/* The kernel may take less at once, and more when the other end has looked */
static void say(size_t len)
{
	static uint8_t buf[1 << 20];
	unsigned int tries = 0;

	for (size_t i = 0; i < len; i++)
		buf[i] = ends_octet(sent + i);
	for (size_t done = 0; done < len; tries++) {
		struct iovec iov = { buf + done, len - done };
		ssize_t n = stream_send(end[0], &iov, 1);

		cr_assert(n > 0 || (n == -EAGAIN && tries < 2000), "%zd", n);
		done += n > 0 ? (size_t)n : 0;
		if (done < len) {
			poll(NULL, 0, n < 0);
			stream_pump(reader());
		}
	}
	sent += len;
}

/* What was said is there, without a reader's buffer */
static void look(void)
{
	for (int i = 0; i < 2000 && rx()->delivered != sent; i++) {
		struct pollfd p = { end[1]->fd, POLLIN, 0 };

		poll(&p, 1, 10);
		stream_levels(end[1], NULL);
		stream_pump(reader());
	}
	cr_assert_eq(rx()->delivered, sent);
}

static void hear(size_t len)
{
	static uint8_t buf[1 << 20];
	struct iovec iov = { buf, len };

	cr_assert_eq(stream_recv(end[1], &iov, 1, 0), (ssize_t)len, "of %zu", len);
	for (size_t i = 0; i < len; i++)
		cr_assert_eq(buf[i], ends_octet(got + i), "octet %llu",
			     (unsigned long long)(got + i));
	got += len;
}

Test(span, octets_wait_where_they_came, .init = setup, .fini = teardown)
{
	say(1000);
	look();
	cr_expect_eq(spans(), 1);
	cr_expect_eq(chunks(), 0);
	hear(10);
	cr_expect_eq(spans(), 1);
	hear(989);
	hear(1);
	cr_expect_eq(spans(), 0);
	cr_expect_eq(reader()->slab->at->rx_block[reader()->cell], 0, "its memory is of use again");
}

Test(span, a_look_leaves_them, .init = setup, .fini = teardown)
{
	char buf[64];
	struct iovec iov = { buf, sizeof(buf) };

	say(100);
	look();
	cr_expect_eq(stream_recv(end[1], &iov, 1, MSG_PEEK), 64);
	cr_expect_eq((uint8_t)buf[63], ends_octet(63));
	cr_expect_eq(spans(), 1);
	hear(100);
}

Test(span, a_table_that_is_full, .init = setup, .fini = teardown)
{
	for (unsigned int i = 0; i < STREAM_SPANS + 8; i++)
		say(100);
	look();
	cr_expect_eq(spans(), STREAM_SPANS);
	cr_expect_eq(chunks(), 1);
	/* Across the edge of both, and what comes meanwhile is behind */
	hear(100 * STREAM_SPANS - 50);
	say(77);
	look();
	hear(100);
	cr_expect_eq(spans(), 0);
	hear(750 + 77);
	cr_expect_eq(chunks(), 0);
	say(5);
	look();
	cr_expect_eq(spans(), 1, "and from the beginning");
	hear(5);
}

Test(span, chunks_before_them, .init = setup, .fini = teardown)
{
	for (unsigned int i = 0; i < STREAM_SPANS + 1; i++)
		say(64);
	look();
	hear(64 * STREAM_SPANS);
	cr_expect_eq(spans(), 0);
	cr_expect_eq(chunks(), 1);
	say(200);
	look();
	cr_expect_eq(spans(), 1);
	hear(32);
	hear(132);
	cr_expect_eq(chunks(), 0, "the chunk before them is given back");
	hear(100);
}

/* More than the area takes: it is used again, and nothing is lost */
Test(span, memory_that_is_needed_again, .init = setup, .fini = teardown)
{
	for (unsigned int i = 0; i < 12; i++) {
		say(20000);
		look();
	}
	cr_expect_gt(chunks(), 0);
	hear(1);
	hear(239999);
	cr_expect_eq(chunks(), 0);
	cr_expect_eq(spans(), 0);
}

Test(span, a_reader_takes_the_first, .init = setup, .fini = teardown)
{
	struct pollfd p = { end[1]->fd, POLLIN, 0 };

	say(3000);
	cr_assert_eq(poll(&p, 1, 1000), 1);
	hear(1000);
	cr_expect_eq(spans(), 1, "what its buffer does not take");
	hear(2000);
}

/* Behind a user message they go to chunks, and in order */
Test(span, a_user_message_between, .init = setup, .fini = teardown)
{
	char buf[8];
	struct iovec in = { buf, sizeof(buf) };
	size_t len;

	say(500);
	cr_assert_eq(stream_message_send(end[0], "msg", 3), 0);
	sent += STREAM_MESSAGE_COST + 3;
	say(300);
	look();
	cr_expect_eq(spans(), 1);
	hear(500);
	cr_expect_eq(stream_message_recv(end[1], &in, 1, 0, &len), 3);
	cr_expect_arr_eq(buf, "msg", 3);
	got += STREAM_MESSAGE_COST + 3;
	hear(300);
}

/* Another process may have written anything there */
Test(span, a_table_of_rubbish, .init = setup, .fini = teardown)
{
	static const struct {
		uint8_t first, end;
		uint32_t off, len;
	} rubbish[] = {
		{ 3, 1, 0, 100 },   { 0, 255, 0, 100 }, { 200, 200, 0, 0 },
		{ 0, 1, ~0u, ~0u }, { 0, 1, 0, ~0u },	{ 0, 1, RNIC_STREAM_IN - 4, 100 },
		{ 0, 24, 0, 5 },
	};
	char buf[200];
	struct iovec iov = { buf, sizeof(buf) };

	for (unsigned int i = 0; i < sizeof(rubbish) / sizeof(*rubbish); i++) {
		struct stream_rx *w = &reader()->state->rx;

		say(100);
		look();
		w->span_first = rubbish[i].first;
		w->span_end = rubbish[i].end;
		w->span[0] = (struct stream_span){ rubbish[i].off, rubbish[i].len };
		cr_expect_eq(stream_recv(end[1], &iov, 1, 0), 100, "row %u", i);
		w->span_first = w->span_end = 0;
	}
}

/* Any sizes, in any order */
Test(span, whatever_comes, .init = setup, .fini = teardown)
{
	srand(7);
	for (unsigned int i = 0; i < 3000; i++) {
		unsigned int n = (unsigned int)rand();
		size_t wait = sent - got;

		if (n % 3 && wait < 200000) {
			say(n % 7 ? 1 + n % 900 : 1 + n % 60000);
			if (n % 2)
				look();
		} else if (wait) {
			look();
			hear(1 + n % wait);
		}
	}
	look();
	if (sent != got)
		hear(sent - got);
	cr_expect_eq(spans(), 0);
	cr_expect_eq(chunks(), 0);
}
