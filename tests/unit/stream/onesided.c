/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * User messages and one-sided operations between two streams.
 */
#include "tests/unit/stream/ends.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static uint8_t far[1 << 20] __attribute__((aligned(8)));
static uint8_t near[1 << 20] __attribute__((aligned(8)));

static void turn(struct stream *s[2])
{
	for (int i = 0; i < 4; i++)
		stream_progress(s[i % 2]);
	usleep(200);
}

/* --- user messages --- */

static ssize_t message_get(struct stream *s[2], void *p, size_t room, int flags, size_t *len)
{
	struct iovec iov = { p, room };
	ssize_t got = -ENODATA;

	for (int i = 0; i < 1000 && got == -ENODATA; i++) {
		turn(s);
		got = stream_message_recv(s[1], &iov, 1, flags, len);
	}
	return got;
}

Test(user, boundaries_and_order)
{
	static const size_t lengths[] = { 0, 1, 100, 65536, 3, 0, 40000 };
	static uint8_t in[65536];
	struct iovec o = { near, 5 }, i = { in, sizeof(in) };
	struct stream *s[2];
	size_t len;

	for (size_t k = 0; k < sizeof(near); k++)
		near[k] = ends_octet(k);
	ends_open(s);
	for (unsigned int k = 0; k < base_array_size(lengths); k++) {
		cr_assert_eq(stream_send(s[0], &o, 1), 5);
		cr_assert_eq(stream_message_send(s[0], near, lengths[k]), 0, "%zu", lengths[k]);
	}
	for (unsigned int k = 0; k < base_array_size(lengths); k++) {
		turn(s);
		cr_expect_eq(stream_message_recv(s[1], &i, 1, 0, &len), -ENODATA);
		cr_expect_eq(stream_readable(s[1]), 5u);
		cr_expect_eq(stream_recv(s[1], &i, 1, 0), 5);
		cr_expect_eq(message_get(s, in, sizeof(in), MSG_PEEK, &len), (ssize_t)lengths[k]);
		cr_expect_eq(stream_readable(s[1]), lengths[k]);
		cr_expect(stream_levels(s[1], NULL) & STREAM_READABLE);
		cr_expect_eq(stream_recv(s[1], &i, 1, 0), -EBADMSG);
		memset(in, 0xee, sizeof(in));
		cr_expect_eq(stream_message_recv(s[1], &i, 1, 0, &len), (ssize_t)lengths[k]);
		cr_expect_eq(len, lengths[k]);
		cr_expect_eq(memcmp(in, near, len), 0);
	}
	cr_expect_eq(stream_recv(s[1], &i, 1, 0), -EAGAIN);
	cr_expect_eq(stream_readable(s[1]), 0u);
	ends_destroy(s);
}

Test(user, short_buffers_cut)
{
	struct stream *s[2];
	uint8_t in[8];
	size_t len;

	ends_open(s);
	cr_assert_eq(stream_message_send(s[0], "0123456789", 10), 0);
	cr_assert_eq(stream_message_send(s[0], "next", 4), 0);
	cr_expect_eq(message_get(s, in, 4, 0, &len), 4);
	cr_expect_eq(len, 10u);
	cr_expect_eq(message_get(s, in, 8, 0, &len), 4);
	cr_expect_eq(len, 4u);
	cr_expect_arr_eq(in, "next", 4);
	ends_destroy(s);
}

/* Many, through a small ring: none is lost, none runs into another; the longest there may be */
Test(user, many_through_a_small_ring, .timeout = 120)
{
	static uint8_t in[65536];
	struct stream *s[2];
	size_t len, longest;

	ends_param.opts.ring = 8192;
	ends_open(s);
	longest = 8192 / 2 - STREAM_MESSAGE_COST;
	cr_expect_eq(stream_message_send(s[0], near, longest + 1), -EMSGSIZE);
	for (unsigned int sent = 0, got = 0; got < 3000;) {
		size_t want = sent * 37 % (longest + 1);

		memset(near, (int)sent, longest);
		if (sent < 3000 && stream_message_send(s[0], near, want) == 0)
			sent++;
		else
			turn(s);
		want = got * 37 % (longest + 1);
		if (stream_message_recv(s[1], &(struct iovec){ in, sizeof(in) }, 1, 0, &len) < 0)
			continue;
		cr_assert_eq(len, want, "message %u", got);
		cr_assert(!len || (in[0] == (uint8_t)got && in[len - 1] == (uint8_t)got));
		got++;
	}
	ends_destroy(s);
}

/* The kernel takes a message in part; what follows it waits */
Test(user, narrow_transport)
{
	static uint8_t in[65536];
	struct stream *s[2];
	int room = 1;
	size_t len;

	ends_open(s);
	cr_assert_eq(setsockopt(s[0]->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	for (unsigned int sent = 0, got = 0; got < 100;) {
		memset(near, (int)sent, 60000);
		if (sent < 100 && stream_message_send(s[0], near, 60000) == 0)
			sent++;
		else
			turn(s);
		if (stream_message_recv(s[1], &(struct iovec){ in, sizeof(in) }, 1, 0, &len) < 0)
			continue;
		cr_assert_eq(len, 60000u);
		cr_assert(in[0] == (uint8_t)got && in[59999] == (uint8_t)got);
		got++;
	}
	ends_destroy(s);
}

/* --- one-sided --- */

static uint32_t far_stag;

static void both_open(struct stream *s[2], unsigned int access)
{
	ends_open(s);
	cr_assert_eq(stream_region_add(s[1], far, sizeof(far), access, &far_stag), 0);
	cr_expect(stream_serves(s[1]));
}

static struct stream_completion job_do(struct stream *s[2], const struct stream_job *job)
{
	struct stream_completion c = { .status = 99 };
	int err = stream_post(s[0], job);

	cr_assert_eq(err, 0, "post: %d", err);
	for (int i = 0; i < 5000 && (err = stream_complete(s[0], &c)) == -EAGAIN; i++)
		turn(s);
	cr_assert_eq(err, 0, "completion: %d", err);
	return c;
}

static struct stream_job job_of(enum stream_job_kind kind, uint32_t len)
{
	return (struct stream_job){
		.kind = kind,
		.cookie = 77,
		.addr = near,
		.len = len,
		.stag = far_stag,
		.to = (uintptr_t)far,
	};
}

Test(onesided, writes_and_reads)
{
	static const uint32_t lengths[] = { 0, 1, 4096, 65536, 1 << 20 };
	struct stream_completion c;
	struct stream_job job;
	struct stream *s[2];

	for (unsigned int crc = 0; crc < 2; crc++) {
		ends_param.opts.no_crc = !crc;
		both_open(s, 0x2 | 0x4);
		for (unsigned int i = 0; i < base_array_size(lengths); i++) {
			for (size_t k = 0; k < lengths[i]; k++)
				near[k] = ends_octet(k + i);
			job = job_of(STREAM_JOB_WRITE, lengths[i]);
			c = job_do(s, &job);
			cr_expect_eq(c.status, STREAM_JOB_DONE);
			cr_expect_eq(c.cookie, 77u);
			cr_expect_eq(c.len, lengths[i]);
			memset(near, 0, sizeof(near));
			job = job_of(STREAM_JOB_READ, lengths[i]);
			c = job_do(s, &job);
			cr_expect_eq(c.status, STREAM_JOB_DONE);
			for (size_t k = 0; k < lengths[i]; k++)
				cr_assert_eq(near[k], ends_octet(k + i), "octet %zu", k);
		}
		ends_destroy(s);
	}
}

Test(onesided, atomics)
{
	struct stream_completion c;
	struct stream_job job;
	struct stream *s[2];
	uint64_t value = 40, found;

	both_open(s, 0x8);
	memcpy(far, &value, sizeof(value));
	job = job_of(STREAM_JOB_ADD, 8);
	job.data = 2;
	c = job_do(s, &job);
	memcpy(&found, near, sizeof(found));
	memcpy(&value, far, sizeof(value));
	cr_expect_eq(c.status, STREAM_JOB_DONE);
	cr_expect_eq(found, 40u);
	cr_expect_eq(value, 42u);
	job = job_of(STREAM_JOB_SWAP, 8);
	job.compare = 42;
	job.compare_mask = job.mask = ~0ull;
	job.data = 7;
	c = job_do(s, &job);
	memcpy(&found, near, sizeof(found));
	memcpy(&value, far, sizeof(value));
	cr_expect_eq(found, 42u);
	cr_expect_eq(value, 7u);
	job.len = 4;
	cr_expect_eq(stream_post(s[0], &job), -EINVAL);
	ends_destroy(s);
}

/* A message that is sent behind a Write tells of octets that are there */
Test(onesided, a_write_is_there_before_later_messages)
{
	struct stream_job job;
	struct stream *s[2];
	int room = 1;
	size_t len;
	uint8_t in[4];

	both_open(s, 0x2);
	cr_assert_eq(setsockopt(s[0]->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	for (int k = 1; k < 20; k++) {
		int err;

		memset(near, k, sizeof(near));
		job = job_of(STREAM_JOB_WRITE, 300000);
		cr_assert_eq(stream_post(s[0], &job), 0);
		while ((err = stream_message_send(s[0], "done", 4)) == -EAGAIN)
			turn(s);
		cr_assert_eq(err, 0);
		cr_assert_eq(message_get(s, in, 4, 0, &len), 4);
		cr_assert_eq(far[299999], k);
		cr_assert_eq(stream_complete(s[0], &(struct stream_completion){ 0 }), 0);
	}
	ends_destroy(s);
}

/* More Reads than may be outstanding, and more operations than there is room for */
Test(onesided, a_queue_of_reads)
{
	struct stream_completion c;
	struct stream *s[2];
	unsigned int posted = 0, done = 0;

	both_open(s, 0x4);
	for (size_t k = 0; k < sizeof(far); k++)
		far[k] = ends_octet(k);
	while (posted <= STREAM_JOBS) {
		struct stream_job job = job_of(STREAM_JOB_READ, 1000);
		int err;

		job.cookie = posted;
		job.addr = near + posted * 1000;
		job.to += posted * 1000;
		err = stream_post(s[0], &job);
		if (posted == STREAM_JOBS)
			cr_expect_eq(err, -ENOBUFS);
		else
			cr_assert_eq(err, 0);
		posted++;
	}
	cr_expect_not(stream_levels(s[0], NULL) & STREAM_WRITABLE);
	for (int i = 0; i < 5000 && done < STREAM_JOBS; i++) {
		turn(s);
		while (!stream_complete(s[0], &c)) {
			cr_assert_eq(c.cookie, done);
			cr_assert_eq(c.status, STREAM_JOB_DONE);
			done++;
		}
	}
	cr_expect_eq(done, (unsigned int)STREAM_JOBS);
	cr_expect_eq(memcmp(near, far, STREAM_JOBS * 1000), 0);
	cr_expect(stream_levels(s[0], NULL) & STREAM_WRITABLE);
	cr_expect_not(stream_levels(s[0], NULL) & STREAM_ERROR);
	ends_destroy(s);
}

/* Rights, bounds, and memory that is no longer registered: the peer's Terminate is told once */
Test(onesided, what_the_peer_refuses)
{
	static const struct {
		const char *name;
		unsigned int access;
		enum stream_job_kind kind;
		uint64_t off;
		bool removed;
	} cases[] = {
		{ "Write without the right", 0x4, STREAM_JOB_WRITE, 0, false },
		{ "Read without the right", 0x2, STREAM_JOB_READ, 0, false },
		{ "Atomic without the right", 0x6, STREAM_JOB_ADD, 0, false },
		{ "Write past the end", 0xe, STREAM_JOB_WRITE, sizeof(far) - 7, false },
		{ "Read past the end", 0xe, STREAM_JOB_READ, sizeof(far) - 7, false },
		{ "Read of memory that is gone", 0xe, STREAM_JOB_READ, 0, true },
		{ "Write to memory that is gone", 0xe, STREAM_JOB_WRITE, 0, true },
	};
	struct stream_completion c, later;
	struct stream_job job;
	struct stream *s[2];

	for (unsigned int i = 0; i < base_array_size(cases); i++) {
		both_open(s, cases[i].access);
		if (cases[i].removed)
			cr_assert_eq(stream_region_remove(s[1], far_stag), 0);
		far[0] = 0;
		memset(near, 0xab, 8);
		job = job_of(cases[i].kind, 8);
		job.to += cases[i].off;
		if (cases[i].kind == STREAM_JOB_WRITE) {
			/* It was good as far as our kernel is concerned */
			c = job_do(s, &job);
			cr_expect_eq(c.status, STREAM_JOB_DONE);
			job = job_of(STREAM_JOB_READ, 8);
		}
		cr_assert_eq(stream_post(s[0], &job), 0);
		c = job_do(s, &job);
		for (int k = 0; k < 1000 && stream_complete(s[0], &later) == -EAGAIN; k++)
			turn(s);
		cr_expect_eq(c.status, STREAM_JOB_REFUSED, "%s: %d", cases[i].name, c.status);
		cr_expect_eq(later.status, STREAM_JOB_FLUSHED, "%s", cases[i].name);
		cr_expect_eq(far[0], 0, "%s", cases[i].name);
		cr_expect(stream_levels(s[0], NULL) & STREAM_HUP, "%s", cases[i].name);
		ends_destroy(s);
	}
}

Test(onesided, without_the_bit_nothing_goes)
{
	struct stream_job job = job_of(STREAM_JOB_WRITE, 8);
	struct stream *s[2];
	uint32_t stag;

	for (int i = 0; i < 2; i++) {
		ends_without[i] = i ? ~0u : STREAM_FEATURE_ONESIDED | STREAM_FEATURE_MESSAGES;
		ends_open(s);
		cr_expect_eq(stream_post(s[0], &job), -EOPNOTSUPP);
		cr_expect_eq(stream_message_send(s[0], "x", 1), -EOPNOTSUPP);
		cr_expect_eq(stream_region_add(s[0], far, 8, 2, &stag), -EOPNOTSUPP);
		turn(s);
		cr_expect_eq(stream_recv(s[1], &(struct iovec){ near, 8 }, 1, 0), -EAGAIN);
		cr_expect_eq(s[1]->state->rx.delivered, 0u);
		ends_destroy(s);
	}
}

static int open_and_send(struct stream *s[2])
{
	struct iovec iov = { near, 8 };

	stream_joined(s[1]);
	for (int i = 0; i < 1000 && !(stream_levels(s[1], NULL) & STREAM_WRITABLE); i++)
		turn(s);
	return stream_send(s[1], &iov, 1) != 8;
}

/* The one who starts it up leaves it as good to the other; the first to use them has operations */
Test(onesided, started_in_another_process)
{
	struct iovec iov = { near, sizeof(near) };
	struct stream_job job;
	struct stream *s[2];
	ssize_t got = -EAGAIN;
	int fd[2], status;
	pid_t pid;

	ends_tcp(fd);
	s[0] = ends_attach(fd[0], true);
	s[1] = ends_attach(fd[1], false);
	for (int i = 0; i < 2; i++)
		stream_share(s[i], STREAM_SHARE_FORK);
	pid = fork();
	if (!pid)
		_exit(open_and_send(s));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && !WEXITSTATUS(status));
	for (int i = 0; i < 1000 && got == -EAGAIN; i++) {
		turn(s);
		got = stream_recv(s[0], &iov, 1, 0);
	}
	cr_expect_eq(got, 8);
	cr_expect_eq(stream_send(s[1], &(struct iovec){ near, 8 }, 1), 8);
	cr_assert_eq(stream_region_add(s[1], far, sizeof(far), 0x6, &far_stag), 0);
	job = job_of(STREAM_JOB_WRITE, 8);
	cr_expect_eq(job_do(s, &job).status, STREAM_JOB_DONE);
	ends_destroy(s);
}

/* Registered memory is of one process; another may only close */
Test(onesided, belongs_to_one_process)
{
	struct stream_job job;
	struct stream *s[2];
	int status;
	pid_t pid;

	both_open(s, 0x6);
	job = job_of(STREAM_JOB_WRITE, 8);
	stream_share(s[1], STREAM_SHARE_FORK);
	pid = fork();
	if (!pid) {
		struct iovec iov = { near, 8 };
		uint32_t stag;
		bool good;

		stream_joined(s[1]);
		good = stream_recv(s[1], &iov, 1, 0) == -EXDEV &&
		       stream_send(s[1], &iov, 1) == -EXDEV && stream_post(s[1], &job) == -EXDEV &&
		       stream_message_send(s[1], near, 1) == -EXDEV &&
		       stream_region_add(s[1], near, 8, 2, &stag) == -EXDEV;

		stream_close(s[1]);
		_exit(!good);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && !WEXITSTATUS(status));
	cr_expect_eq(job_do(s, &job).status, STREAM_JOB_DONE);
	ends_destroy(s);
}

/* After close() the peer's operations reach nothing, and ours touch nothing */
Test(onesided, close_ends_access)
{
	struct stream_completion c;
	struct stream_job job;
	struct stream *s[2];

	both_open(s, 0x6);
	job = job_of(STREAM_JOB_READ, 1 << 20);
	cr_assert_eq(stream_post(s[1], &(struct stream_job){ .kind = STREAM_JOB_READ,
							     .addr = near,
							     .len = 8,
							     .stag = 1,
							     .to = 8 }),
		     0);
	cr_expect_leq(stream_close(s[1]), 0);
	c = job_do(s, &job);
	cr_expect_neq(c.status, STREAM_JOB_DONE);
	ends_destroy(s);
}
