/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A rank's connection as the console has it: frames that come in pieces, output that is not taken,
 * and the collective calls that are made of them.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "am/job_collective.h"
#include "base/bits.h"

#define LONG_OCTETS (16u << 20)

static struct am_channel channel;
static int rank; /* the other end */

static void setup(void)
{
	int fds[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	am_channel_init(&channel, fds[0]);
	rank = fds[1];
}

TestSuite(channel, .init = setup, .timeout = 20);

static void say(const void *p, size_t n)
{
	cr_assert_eq(write(rank, p, n), (ssize_t)n);
}

static void head_say(uint32_t kind, uint32_t length)
{
	struct am_job_message head = { htobe32(kind), htobe32(7), htobe32(length) };

	say(&head, sizeof(head));
}

Test(channel, a_frame_in_pieces)
{
	struct am_job_message head = { htobe32(AM_JOB_GATHER), htobe32(7), htobe32(4) };
	uint8_t data[4] = "";

	cr_assert_eq(am_channel_read_head(&channel), -EAGAIN);
	say(&head, 5);
	cr_assert_eq(am_channel_read_head(&channel), -EAGAIN);
	say((char *)&head + 5, 6);
	cr_assert_eq(am_channel_read_head(&channel), -EAGAIN);
	say((char *)&head + 11, 1);
	say("a", 1);
	cr_assert_eq(am_channel_read_head(&channel), 0);
	cr_assert_eq(channel.got, sizeof(head), "the data stay where they are");
	cr_assert_eq(channel.head.kind, AM_JOB_GATHER);
	cr_assert_eq(channel.head.value, 7);
	cr_assert_eq(channel.head.length, 4);
	cr_assert_eq(am_channel_read_data(&channel, data), -EAGAIN);
	say("bc", 2);
	cr_assert_eq(am_channel_read_head(&channel), 0, "it stays until its data have come");
	cr_assert_eq(am_channel_read_data(&channel, data), -EAGAIN);
	say("dX", 2);
	cr_assert_eq(am_channel_read_data(&channel, data), 0);
	cr_assert(!memcmp(data, "abcd", 4));
	cr_assert_eq(am_channel_read_head(&channel), -EAGAIN, "the next frame has one octet");
	cr_assert_eq(channel.got, 1);
}

Test(channel, a_frame_without_data)
{
	head_say(AM_JOB_EXIT, 0);
	head_say(AM_JOB_BARRIER, 0);
	cr_assert_eq(am_channel_read_head(&channel), 0);
	cr_assert_eq(am_channel_read_data(&channel, NULL), 0);
	cr_assert_eq(channel.head.kind, AM_JOB_EXIT);
	cr_assert_eq(am_channel_read_head(&channel), 0);
	cr_assert_eq(am_channel_read_data(&channel, NULL), 0);
	cr_assert_eq(channel.head.kind, AM_JOB_BARRIER);
}

Test(channel, the_end_within_a_frame)
{
	uint8_t data[4];

	head_say(AM_JOB_GATHER, 4);
	say("ab", 2);
	close(rank);
	cr_assert_eq(am_channel_read_head(&channel), 0);
	cr_assert_eq(am_channel_read_data(&channel, data), -EAGAIN);
	cr_assert_eq(am_channel_read_data(&channel, data), -ECONNRESET);
}

/* A part of a long frame at a time: the others are to have their turn */
Test(channel, long_data_come_by_turns)
{
	uint8_t *data = calloc(1, LONG_OCTETS), *said = malloc(LONG_OCTETS);
	size_t put = 0, i;
	int turns = 0, ret = -EAGAIN;

	for (i = 0; i < LONG_OCTETS; i++)
		said[i] = (uint8_t)(i * 7 >> 3);
	head_say(AM_JOB_GATHER, LONG_OCTETS);
	cr_assert_eq(am_channel_read_head(&channel), 0);
	for (; ret == -EAGAIN; turns++) {
		ssize_t n = send(rank, said + put, LONG_OCTETS - put, MSG_DONTWAIT);

		put += n > 0 ? (size_t)n : 0;
		ret = am_channel_read_data(&channel, data);
	}
	cr_assert_eq(ret, 0);
	cr_assert_geq(turns, 16);
	cr_assert(!memcmp(data, said, LONG_OCTETS));
	free(data);
	free(said);
}

static struct am_job_block *block(char octet, uint32_t n)
{
	struct am_job_block *b = am_job_block_create(AM_JOB_GATHER, 0, n);

	memset(am_job_block_data(b), octet, n);
	return b;
}

static void expect(char octet, uint32_t n)
{
	char *data = malloc(n + 1);
	struct am_job_message head;
	size_t i;

	cr_assert_eq(am_job_receive(rank, &head), 0);
	cr_assert_eq(head.kind, AM_JOB_GATHER);
	cr_assert_eq(head.length, n);
	cr_assert_eq(am_job_read(rank, data, n), 0);
	for (i = 0; i < n; i++)
		cr_assert_eq(data[i], octet);
	free(data);
}

Test(channel, output_is_sent_at_once)
{
	struct am_job_block *b = block('x', 100);

	am_channel_send(&channel, b);
	cr_assert_eq(channel.waiting, 0);
	cr_assert_eq(am_channel_events(&channel), POLLIN);
	cr_assert_eq(b->refs, 1, "the channel keeps none of what it has sent");
	expect('x', 100);
	am_job_block_put(b);
}

static uint32_t read_some(char *data, size_t size)
{
	ssize_t n = recv(rank, data, size, MSG_DONTWAIT);

	return n > 0 ? (uint32_t)n : 0;
}

Test(channel, output_that_is_not_taken_waits)
{
	struct am_job_block *b = block('x', LONG_OCTETS), *last = block('y', 10);
	size_t whole = LONG_OCTETS + 10 + 2 * sizeof(struct am_job_message), n = 0;
	char *data = malloc(whole);

	am_channel_send(&channel, b);
	cr_assert_eq(channel.waiting, 1);
	am_channel_send(&channel, last);
	cr_assert_eq(channel.waiting, 2);
	cr_assert_eq(am_channel_events(&channel), POLLOUT, "it is not listened to meanwhile");
	cr_assert_eq(b->refs, 2);
	for (; channel.waiting; am_channel_flush(&channel))
		n += read_some(data + n, whole - n);
	n += read_some(data + n, whole - n);
	cr_assert_eq(n, whole);
	for (n = sizeof(struct am_job_message); n < LONG_OCTETS; n++)
		cr_assert_eq(data[n], 'x');
	cr_assert_eq(data[whole - 1], 'y');
	cr_assert_eq(b->refs, 1);
	cr_assert_eq(am_channel_events(&channel), POLLIN);
	am_job_block_put(b);
	am_job_block_put(last);
	free(data);
}

Test(channel, output_to_one_that_is_gone)
{
	struct am_job_block *b = block('x', 100);

	close(rank);
	am_channel_send(&channel, b);
	cr_assert_eq(channel.waiting, 0);
	cr_assert_eq(b->refs, 1);
	cr_assert_eq(am_channel_events(&channel), POLLIN, "reading finds the end");
	cr_assert_eq(am_channel_read_head(&channel), -ECONNRESET);
	am_channel_close(&channel);
	cr_assert_eq(channel.fd, -1);
	am_channel_send(&channel, b);
	cr_assert_eq(channel.waiting, 0);
	am_job_block_put(b);
}

Test(channel, what_waits_goes_with_the_connection)
{
	struct am_job_block *b = block('x', LONG_OCTETS);
	char octet;

	am_channel_send(&channel, b);
	am_channel_close(&channel);
	cr_assert_eq(b->refs, 1);
	while (read(rank, &octet, 1) == 1)
		continue;
	am_job_block_put(b);
}

Test(channel, a_deaf_one_is_not_polled)
{
	channel.paused = true;
	cr_assert_eq(am_channel_events(&channel), 0);
}

/* --- collective calls --- */

static const struct am_job_message four = { AM_JOB_GATHER, 0, 4 };

Test(channel, a_collective_of_three)
{
	struct am_collective c = { .size = 3 };
	struct am_job_block *answer = NULL;
	int round, i;

	for (round = 0; round < 2; round++) {
		for (i = 2; i >= 0; i--) {
			cr_assert_null(answer);
			cr_assert_eq(am_collective_enter(&c, &four), 0);
			memset(am_collective_place(&c, i), 'a' + i, 4);
			answer = am_collective_leave(&c);
		}
		cr_assert_not_null(answer);
		cr_assert_eq(answer->size, sizeof(four) + 12);
		cr_assert(!memcmp(am_job_block_data(answer), "aaaabbbbcccc", 12));
		am_job_block_put(answer);
		answer = NULL;
	}
}

Test(channel, a_collective_that_the_others_do_not_call)
{
	struct am_job_message other_kind = { AM_JOB_BARRIER, 0, 4 };
	struct am_job_message other_length = { AM_JOB_GATHER, 0, 5 };
	struct am_collective c = { .size = 3 };

	cr_assert_eq(am_collective_enter(&c, &four), 0);
	cr_assert_eq(am_collective_enter(&c, &other_kind), -EPROTO);
	cr_assert_eq(am_collective_enter(&c, &other_length), -EPROTO);
	cr_assert_eq(am_collective_enter(&c, &four), 0, "those two have not come in");
	am_job_block_put(c.answer);
}

Test(channel, a_collective_that_is_too_long)
{
	struct am_job_message most = { AM_JOB_GATHER, 0, AM_JOB_LENGTH_MAX / 4 };
	struct am_job_message more = { AM_JOB_GATHER, 0, AM_JOB_LENGTH_MAX / 4 + 1 };
	struct am_job_message all = { AM_JOB_GATHER, 0, UINT32_MAX };
	struct am_collective c = { .size = 4 };

	cr_assert_eq(am_collective_enter(&c, &more), -EMSGSIZE);
	cr_assert_eq(am_collective_enter(&c, &all), -EMSGSIZE);
	cr_assert_eq(am_collective_enter(&c, &most), 0);
	cr_assert_eq(am_collective_enter(&c, &more), -EMSGSIZE);
	am_job_block_put(c.answer);
}
