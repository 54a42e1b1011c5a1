/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Mappings: between two streams, and from peers that say of them what must not be.
 */
#include "tests/unit/stream/ends.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mpa/mpa.h"

#define SLOTS 4
#define AT 5000u /* the offset of far */

static uint8_t far[200000], near[sizeof(far)];

static void turn(struct stream *s[2])
{
	for (int i = 0; i < 4; i++)
		stream_progress(s[i % 2]);
	usleep(200);
}

static void both_open(struct stream *s[2], uint32_t without)
{
	ends_param.opts.maps = SLOTS;
	ends_without[0] = ends_without[1] = without;
	ends_open(s);
	memset(far, 0, sizeof(far));
	for (size_t i = 0; i < sizeof(near); i++)
		near[i] = ends_octet(i);
}

static int write_at(struct stream *s, uint64_t offset, uint32_t len)
{
	struct stream_job job = {
		.kind = STREAM_JOB_WRITE, .addr = near, .len = len, .to = offset, .mapped = true
	};

	return stream_post(s, &job);
}

static void octet_send(struct stream *s[2], unsigned int from)
{
	char octet = 'x';
	struct iovec iov = { &octet, 1 };
	ssize_t n = -EAGAIN;

	for (int i = 0; i < 5000 && (n = stream_send(s[from], &iov, 1)) == -EAGAIN; i++)
		turn(s);
	cr_assert_eq(n, 1);
	for (int i = 0; i < 5000 && (n = stream_recv(s[!from], &iov, 1, 0)) == -EAGAIN; i++)
		turn(s);
	cr_assert_eq(n, 1, "%zd", n);
}

static struct stream_completion completion(struct stream *s[2], unsigned int i)
{
	struct stream_completion c = { .status = 99 };

	for (int k = 0; k < 5000 && stream_complete(s[i], &c) == -EAGAIN; k++)
		turn(s);
	return c;
}

static const uint32_t peers[] = { ~0u, 0, STREAM_FEATURE_INLINE };

/* An octet behind a Write tells that it is in place, and one behind a mapping that it is there */
Test(iomap, what_is_written_is_there)
{
	struct stream *s[2];

	for (unsigned int i = 0; i < base_array_size(peers); i++) {
		both_open(s, peers[i]);
		cr_assert_eq(stream_map(s[1], far, sizeof(far), AT), 0);
		cr_expect(stream_serves(s[1]));
		octet_send(s, 1);
		cr_assert_eq(write_at(s[0], AT + 1, sizeof(far) - 1), 0);
		octet_send(s, 0);
		cr_expect_eq(far[0], 0);
		cr_expect_arr_eq(far + 1, near, sizeof(far) - 1);
		cr_expect_eq(completion(s, 0).status, STREAM_JOB_DONE);
		/* Another one in its place: the slot is used again */
		cr_assert_eq(stream_unmap(s[1], far, sizeof(far)), 0);
		cr_expect_not(stream_serves(s[1]));
		cr_assert_eq(stream_map(s[1], far + 100, 10, 0), 0);
		octet_send(s, 1);
		cr_expect_eq(write_at(s[0], AT, 1), -ENXIO);
		cr_expect_eq(write_at(s[0], 0, 10), 0);
		octet_send(s, 0);
		cr_expect_arr_eq(far + 100, near, 10);
		ends_destroy(s);
	}
}

/* The peer's memory is gone, but it has not said so */
Test(iomap, what_was_unmapped_is_refused)
{
	struct stream *s[2];

	both_open(s, ~0u);
	cr_assert_eq(stream_map(s[1], far, 100, AT), 0);
	octet_send(s, 1);
	cr_assert_eq(stream_unmap(s[1], far, 100), 0);
	cr_assert_eq(write_at(s[0], AT, 100), 0);
	for (int i = 0; i < 1000 && !(stream_levels(s[0], NULL) & STREAM_HUP); i++)
		turn(s);
	cr_expect(stream_levels(s[0], NULL) & STREAM_HUP);
	cr_expect_eq(far[0], 0);
	ends_destroy(s);
}

Test(iomap, what_is_no_mapping)
{
	struct stream *s[2];

	both_open(s, ~0u);
	cr_expect_eq(stream_map(s[1], far, 0, 0), -EINVAL);
	cr_expect_eq(stream_map(s[1], far, 1ull << 32, 0), -EINVAL);
	cr_expect_eq(stream_map(s[1], far, 100, UINT64_MAX - 50), -EINVAL);
	cr_expect_eq(stream_unmap(s[1], far, 100), -EINVAL);
	cr_expect_eq(stream_unmap(s[1], NULL, 0), -EINVAL);
	for (unsigned int i = 0; i < SLOTS; i++)
		cr_expect_eq(stream_map(s[1], far + i, 100, 1000 * i), 0);
	cr_expect_eq(stream_map(s[1], far, 100, 0), -ENOMEM);
	cr_expect_eq(stream_unmap(s[1], far, 99), -EINVAL);
	octet_send(s, 1);
	cr_expect_eq(write_at(s[0], 3000, 101), -ENXIO);
	cr_expect_eq(write_at(s[0], 3099, 2), -ENXIO);
	cr_expect_eq(write_at(s[0], 3100, 0), -ENXIO);
	cr_expect_eq(write_at(s[0], 500, 1), -ENXIO);
	cr_expect_eq(write_at(s[0], 3099, 1), 0);
	cr_expect_eq(write_at(s[1], 0, 1), -ENXIO);
	ends_destroy(s);
	ends_param.opts.maps = 0;
	ends_open(s);
	cr_expect_eq(stream_map(s[1], far, 100, 0), -EOPNOTSUPP);
	cr_expect_eq(write_at(s[0], 0, 1), -EOPNOTSUPP);
	ends_destroy(s);
}

/*
 * rsockets gives new credits when half are used up, and takes mappings for none of them: there must
 * be as many left. Another Warpsock counts them.
 */
Test(iomap, credits_are_spared)
{
	for (unsigned int i = 0; i < base_array_size(peers); i++) {
		unsigned int most = peers[i] == ~0u ? 100 / 2 - 16 : 1000, n = 0;
		struct stream *s[2];
		int err = 0;

		ends_param.opts.credits = 100;
		both_open(s, peers[i]);
		for (int tries = 0; n < 1000 && tries < 20000; tries++) {
			err = stream_map(s[1], far, 100, AT);
			if (err == -EAGAIN)
				turn(s);
			else if (err)
				break;
			else
				cr_assert_eq(stream_unmap(s[1], far, 100), 0);
			n += !err;
		}
		cr_expect_eq(n, most, "%#x: %u, then %d", peers[i], n, err);
		cr_expect_eq(err, most == 1000 ? 0 : -ENOBUFS);
		for (unsigned int k = 0; k < 300; k++)
			octet_send(s, 1);
		ends_destroy(s);
	}
}

Test(iomap, belongs_to_one_process)
{
	struct stream *s[2];
	int status = -1;
	pid_t child;

	both_open(s, ~0u);
	cr_assert_eq(stream_map(s[1], far, 100, AT), 0);
	stream_share(s[1], STREAM_SHARE_FORK);
	child = fork();
	if (!child)
		_exit(stream_map(s[1], near, 100, 0) == -EXDEV &&
				      stream_unmap(s[1], far, 100) == -EXDEV &&
				      write_at(s[1], 0, 1) == -EXDEV
			      ? 0
			      : 1);
	waitpid(child, &status, 0);
	cr_expect_eq(status, 0);
	ends_destroy(s);
}

/* --- a peer of another kind --- */

static void slot_write(struct ends_peer *p, uint64_t off, uint64_t offset, uint64_t to,
		       uint32_t key, uint32_t len)
{
	struct rs_iomap map = { htole64(offset), { htole64(to), htole32(key), htole32(len) } };

	ends_peer_write(p, be32toh(p->theirs.target_sgl.key),
			be64toh(p->theirs.target_sgl.addr) + RS_SGL_LEN + off, &map, sizeof(map));
}

static void map_say(struct ends_peer *p, uint32_t slot)
{
	slot_write(p, slot * sizeof(struct rs_iomap), 0, 0x1000, p->ring.stag, 100);
	ends_peer_message(p, rs_msg(RS_OP_IOMAP_SGL, slot));
}

static void slot_beyond(struct ends_peer *p)
{
	map_say(p, SLOTS);
}

static void message_beyond(struct ends_peer *p)
{
	slot_write(p, 0, 0, 0x1000, 1, 100);
	ends_peer_message(p, rs_msg(RS_OP_IOMAP_SGL, SLOTS));
}

/* The slot's number has 16 bits */
static void message_high(struct ends_peer *p)
{
	slot_write(p, 0, 0, 0x1000, 1, 100);
	ends_peer_message(p, rs_msg(RS_OP_IOMAP_SGL, 1 << 16));
}

static void message_alone(struct ends_peer *p)
{
	map_say(p, 0);
	ends_peer_message(p, rs_msg(RS_OP_IOMAP_SGL, 0));
}

static void message_of_another(struct ends_peer *p)
{
	slot_write(p, 0, 0, 0x1000, 1, 100);
	ends_peer_message(p, rs_msg(RS_OP_IOMAP_SGL, 1));
}

static void write_twice(struct ends_peer *p)
{
	slot_write(p, 0, 0, 0x1000, 1, 100);
	slot_write(p, sizeof(struct rs_iomap), 0, 0x1000, 1, 100);
}

static void write_beside(struct ends_peer *p)
{
	slot_write(p, 8, 0, 0x1000, 1, 100);
}

static void write_half(struct ends_peer *p)
{
	ends_peer_write(p, be32toh(p->theirs.target_sgl.key),
			be64toh(p->theirs.target_sgl.addr) + RS_SGL_LEN, far, 12);
}

static void write_over_both(struct ends_peer *p)
{
	slot_write(p, (uint64_t)-8, 0, 0x1000, 1, 100);
}

static void maps(struct ends_peer *p, uint64_t offset, uint64_t to, uint32_t key, uint32_t len)
{
	slot_write(p, 0, offset, to, key, len);
	ends_peer_message(p, rs_msg(RS_OP_IOMAP_SGL, 0));
}

static void maps_nothing(struct ends_peer *p)
{
	maps(p, 0, 0x1000, 1, 0);
}

static void maps_by_no_stag(struct ends_peer *p)
{
	maps(p, 0, 0x1000, 0, 100);
}

static void maps_round(struct ends_peer *p)
{
	maps(p, 0, UINT64_MAX - 50, 1, 100);
}

static void maps_offsets_round(struct ends_peer *p)
{
	maps(p, UINT64_MAX - 50, 0x1000, 1, 100);
}

static void maps_after_end(struct ends_peer *p)
{
	ends_peer_message(p, rs_msg(RS_OP_CTRL, RS_CTRL_SHUTDOWN));
	map_say(p, 0);
}

static void maps_without_credit(struct ends_peer *p)
{
	for (unsigned int i = 0; i <= STREAM_CREDITS; i++)
		map_say(p, i % SLOTS);
}

static const struct {
	const char *name;
	void (*say)(struct ends_peer *p);
} cases[] = {
	{ "a Write behind the last slot", slot_beyond },
	{ "a message of a slot behind the last", message_beyond },
	{ "a message of slot 65536", message_high },
	{ "a message without a Write", message_alone },
	{ "a message of another slot", message_of_another },
	{ "two Writes and no message", write_twice },
	{ "a Write that begins within a slot", write_beside },
	{ "half a slot", write_half },
	{ "a Write of SGE and slot", write_over_both },
	{ "a mapping of no octets", maps_nothing },
	{ "a mapping without an STag", maps_by_no_stag },
	{ "memory that wraps", maps_round },
	{ "offsets that wrap", maps_offsets_round },
	{ "a mapping after SHUTDOWN", maps_after_end },
	{ "mappings without credit", maps_without_credit },
};

static struct stream *peer_open(struct ends_peer *p, uint32_t *slots)
{
	struct rs_conn_data pd;
	struct stream *s;
	int fd[2];

	ends_param.opts.maps = SLOTS;
	ends_tcp(fd);
	s = ends_attach(fd[1], false);
	ends_peer_init(p, fd[0]);
	pd = ends_conn_data(p, 384, 4096);
	pd.target_iomap_size = SLOTS;
	cr_assert(ends_peer_open(p, s, &pd, sizeof(pd)));
	*slots = p->theirs.target_iomap_size;
	return s;
}

static void peer_close(struct ends_peer *p, struct stream *s)
{
	close(s->fd);
	stream_destroy(s);
	ends_peer_destroy(p);
}

Test(iomap, each_ends_its_connection)
{
	for (unsigned int i = 0; i < base_array_size(cases); i++) {
		struct ends_peer p;
		uint32_t slots;
		struct stream *s = peer_open(&p, &slots);

		cr_assert_eq(slots, SLOTS);
		ends_peer_say(&p, cases[i].say);
		stream_progress(s);
		ends_peer_drain(&p);
		cr_expect(p.ended, "%s: the connection lives on", cases[i].name);
		peer_close(&p, s);
	}
}

/* What is mapped goes to the slot's place, and Writes that are not within it end the connection */
Test(iomap, a_peer_that_writes_where_it_may_not)
{
	static const struct {
		int64_t off;
		uint32_t len;
		int32_t stag;
		bool good;
	} writes[] = { { 0, 100, 0, true },
		       { 1, 100, 0, false },
		       { -1, 1, 0, false },
		       { 100, 1, 0, false },
		       { 0, 10, 1, false } };

	for (unsigned int i = 0; i < base_array_size(writes); i++) {
		struct ends_peer p;
		struct rs_iomap map;
		uint32_t slots;
		struct stream *s = peer_open(&p, &slots);

		memset(far, 0, sizeof(far));
		memset(near, 1, sizeof(near));
		/* It speaks first, which the call sees */
		cr_expect_eq(stream_map(s, far + 50, 100, AT), -EAGAIN);
		ends_peer_message(&p, rs_msg(RS_OP_CTRL, RS_CTRL_KEEPALIVE));
		usleep(2000);
		cr_assert_eq(stream_map(s, far + 50, 100, AT), 0);
		ends_peer_drain(&p);
		cr_assert_gt(p.n, 0);
		cr_expect_eq(p.messages[p.n - 1], rs_msg(RS_OP_IOMAP_SGL, 0));
		memcpy(&map, p.memory + RS_SGL_LEN, sizeof(map));
		cr_expect_eq(le64toh(map.offset), AT);
		cr_expect_eq(le32toh(map.sge.length), 100);
		ends_peer_write(&p, le32toh(map.sge.key) + (uint32_t)writes[i].stag,
				le64toh(map.sge.addr) + (uint64_t)writes[i].off, near,
				writes[i].len);
		usleep(2000);
		stream_progress(s);
		ends_peer_drain(&p);
		cr_expect_eq(p.ended, !writes[i].good, "case %u", i);
		cr_expect_eq(far[50], writes[i].good, "case %u", i);
		cr_expect_eq(far[49] + far[150], 0, "case %u", i);
		peer_close(&p, s);
	}
}

/*
 * A device's first FPDU may be a Read of no octets, as RTR. It is answered also where the program,
 * which knows nothing of it, has mapped memory before
 */
Test(iomap, a_peer_that_begins_with_a_read)
{
	struct ends_peer p;
	struct stream *s;
	struct rs_conn_data pd;
	short events;
	int fd[2];

	ends_rtr = MPA_RTR_READ;
	ends_tcp(fd);
	s = ends_attach(fd[1], false);
	ends_peer_init(&p, fd[0]);
	pd = ends_conn_data(&p, 384, 4096);
	pd.target_iomap_size = SLOTS;
	p.rnic->start(&p.mem, p.fd, &pd, sizeof(pd), &events);
	for (int i = 0; i < 1000 && stream_progress(s); i++)
		usleep(200);
	cr_expect_eq(stream_map(s, far, 100, AT), -EAGAIN);
	cr_assert(ends_peer_open(&p, s, &pd, sizeof(pd)));
	usleep(2000);
	cr_expect_eq(stream_map(s, far, 100, AT), 0);
	ends_peer_drain(&p);
	cr_expect_not(p.ended);
	peer_close(&p, s);
}

/* And ours may be one, which such a device answers while the program maps memory */
Test(iomap, a_peer_that_wants_a_read)
{
	static const struct rnic_stream_param param = { .mpa_rev = 2,
							.rtr = MPA_RTR_READ,
							.ird = 1 };
	struct stream_edges before, after;
	struct ends_peer p;
	struct stream *s;
	struct rs_conn_data pd;
	short events;
	int fd[2], state = -EAGAIN;

	ends_tcp(fd);
	s = ends_attach(fd[0], true);
	ends_peer_init(&p, fd[1]);
	memset(p.mem.state, 0, RNIC_STREAM_STATE);
	cr_assert_eq(p.rnic->init(&p.mem, fd[1], &param), 0);
	cr_assert_eq(p.rnic->window(&p.mem, 0, &p.sgl), 0);
	cr_assert_eq(p.rnic->window(&p.mem, 1, &p.ring), 0);
	pd = ends_conn_data(&p, 384, 4096);
	pd.target_iomap_size = SLOTS;
	for (int i = 0; i < 1000 && state != RNIC_STREAM_REQUEST; i++) {
		stream_progress(s);
		usleep(200);
		state = p.rnic->start(&p.mem, p.fd, NULL, 0, &events);
	}
	cr_assert_eq(p.rnic->accept(&p.mem, p.fd, &pd, sizeof(pd)), 0);
	for (int i = 0; i < 1000 && stream_progress(s); i++)
		usleep(200);
	cr_expect_eq(stream_map(s, far, 100, AT), 0);
	stream_levels(s, &before);
	ends_peer_drain(&p);
	p.rnic->flush(&p.mem, p.fd);
	usleep(2000);
	cr_expect_eq(stream_map(s, far, 100, AT), 0);
	stream_levels(s, &after);
	/* The answer is none to the program */
	cr_expect_eq(after.in, before.in);
	ends_peer_drain(&p);
	cr_expect_not(p.ended);
	peer_close(&p, s);
}

/* Each mapping counts: rsockets, which counts them as sender, has its limit raised by as many */
Test(iomap, mappings_count)
{
	struct ends_peer p;
	uint32_t slots, last = 0;
	struct stream *s = peer_open(&p, &slots);

	for (unsigned int i = 0; i < STREAM_CREDITS / 2; i++)
		map_say(&p, i % SLOTS);
	usleep(2000);
	stream_progress(s);
	ends_peer_drain(&p);
	for (unsigned int i = 0; i < p.n; i++)
		if (rs_msg_op(p.messages[i]) == RS_OP_SGL)
			last = rs_msg_data(p.messages[i]);
	cr_expect_eq(last, STREAM_CREDITS + STREAM_CREDITS / 2, "%u", last);
	cr_expect_not(p.ended);
	peer_close(&p, s);
}
