/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Private data: what is said, and what of the peer's is refused.
 */
#include "tests/unit/stream/ends.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sockutil.h"
#include "preload/rules/probe.h"
#include "stream/life/life.h"
#include "tests/unit/mpa/mpa_test.h"

static struct rs_conn_data base;

static void nothing(struct rs_conn_data *cd)
{
}

static void version(struct rs_conn_data *cd)
{
	cd->version = 2;
}

static void big_endian(struct rs_conn_data *cd)
{
	cd->flags |= RS_CONN_NET;
}

static void one_slot(struct rs_conn_data *cd)
{
	cd->target_sgl.length = htobe32(1);
}

static void no_slot(struct rs_conn_data *cd)
{
	cd->target_sgl.length = 0;
}

static void sgl_wraps(struct rs_conn_data *cd)
{
	cd->target_sgl.addr = htobe64(UINT64_MAX - 20);
}

static void no_ring(struct rs_conn_data *cd)
{
	cd->data_buf.length = 0;
}

static void ring_wraps(struct rs_conn_data *cd)
{
	cd->data_buf.addr = htobe64(UINT64_MAX - 100);
}

static void reserved(struct rs_conn_data *cd)
{
	memset(cd->reserved, 0xff, sizeof(cd->reserved));
	cd->target_iomap_size = 0x81;
}

static const struct {
	const char *name;
	void (*change)(struct rs_conn_data *cd);
	size_t len;
	bool good;
	const char *behind; /* the forty octets, of @len */
} cases[] = {
	{ "forty good octets", nothing, 40, true, NULL },
	{ "octets behind them", nothing, 60, true, NULL },
	{ "reserved octets", reserved, 40, true, NULL },
	{ "no private data", nothing, 0, false, NULL },
	{ "one octet", nothing, 1, false, NULL },
	{ "39 octets", nothing, 39, false, NULL },
	{ "version 2", version, 40, false, NULL },
	{ "a big-endian host", big_endian, 40, false, NULL },
	{ "a target SGL of one slot", one_slot, 40, false, NULL },
	{ "a target SGL of none", no_slot, 40, false, NULL },
	{ "a target SGL that wraps", sgl_wraps, 40, false, NULL },
	{ "a ring of no octets", no_ring, 40, false, NULL },
	{ "a ring that wraps", ring_wraps, 40, false, NULL },
	{ "an extension block", nothing, 54, true, "WARP\1\0\0\6\1\4\0\0\0\3" },
	{ "one of another version", nothing, 54, true, "WARP\2\0\0\6\1\4\0\0\0\3" },
	{ "one that is cut", nothing, 53, false, "WARP\1\0\0\6\1\4\0\0\0\3" },
	{ "one with too long a value", nothing, 54, false, "WARP\1\0\0\6\1\5\0\0\0\3" },
};

static void one(unsigned int i)
{
	uint8_t pd[64] = { 0 };
	struct ends_peer p;
	struct stream *s;
	bool opened;
	int fd[2];

	ends_tcp(fd);
	s = ends_attach(fd[1], false);
	ends_peer_init(&p, fd[0]);
	base = ends_conn_data(&p, 384, 4096);
	cases[i].change(&base);
	memcpy(pd, &base, sizeof(base));
	if (cases[i].behind)
		memcpy(pd + sizeof(base), cases[i].behind, cases[i].len - sizeof(base));
	opened = ends_peer_open(&p, s, pd, cases[i].len);
	cr_expect_eq(opened, cases[i].good, "%s", cases[i].name);
	if (!opened)
		cr_expect(stream_levels(s, NULL) & STREAM_HUP, "%s: no HUP", cases[i].name);
	close(fd[1]);
	stream_destroy(s);
	ends_peer_destroy(&p);
}

Test(start, private_data_is_judged)
{
	for (unsigned int i = 0; i < base_array_size(cases); i++)
		one(i);
}

Test(start, plain_peer_is_refused_or_left_alone)
{
	struct stream_param param = { .initiator = false, .decide_limit = 10 * BASE_NS_PER_S };
	struct stream *s;
	char c[4];
	int fd[2];

	for (int only = 0; only < 2; only++) {
		ends_tcp(fd);
		param.opts.mode = only ? CONFIG_USE_DDP : CONFIG_USE_AUTO;
		cr_assert_eq(stream_attach(fd[1], &param, &s), 0);
		cr_expect_eq(stream_progress(s), -EAGAIN);
		cr_assert_eq(write(fd[0], "MPA", 3), 3);
		usleep(2000);
		cr_expect_eq(stream_progress(s), -EAGAIN);
		cr_expect_eq(stream_levels(s, NULL), 0u);
		cr_assert_eq(write(fd[0], "!", 1), 1);
		usleep(2000);
		if (only) {
			cr_expect_eq(stream_progress(s), -ECONNRESET);
			cr_expect(stream_levels(s, NULL) & STREAM_HUP);
		} else {
			cr_expect_eq(stream_progress(s), -ENOMSG);
			cr_expect_eq(read(fd[1], c, 4), 4);
			cr_expect_arr_eq(c, "MPA!", 4);
		}
		close(fd[0]);
		close(fd[1]);
		stream_destroy(s);
	}
}

/* The key's first octets wait in the socket; a sleeper in poll() must not spin over them */
Test(start, partial_key_does_not_make_poll_spin)
{
	struct pollfd p = { .events = POLLIN };
	struct stream *s;
	int fd[2];

	ends_tcp(fd);
	s = ends_attach(fd[1], false);
	cr_assert_eq(write(fd[0], MPA_KEY_REQ, 10), 10);
	usleep(2000);
	cr_expect_eq(stream_progress(s), -EAGAIN);
	p.fd = fd[1];
	cr_expect_eq(poll(&p, 1, 20), 0);
	cr_assert_eq(write(fd[0], &MPA_KEY_REQ[10], 1), 1);
	cr_expect_eq(poll(&p, 1, 1000), 1);
	close(fd[0]);
	close(fd[1]);
	stream_destroy(s);
}

Test(start, a_silent_peer_times_out)
{
	struct stream_param param = { .initiator = true, .start_limit = 20000000 };
	struct stream *s;
	int fd[2];

	ends_tcp(fd);
	cr_assert_eq(stream_attach(fd[0], &param, &s), 0);
	cr_expect_eq(stream_progress(s), -EAGAIN);
	cr_expect_eq(stream_starting(), 1u);
	usleep(30000);
	cr_expect_eq(stream_progress(s), -ETIMEDOUT);
	cr_expect_eq(stream_take_error(s), ETIMEDOUT);
	cr_expect_eq(stream_starting(), 0u);
	close(fd[0]);
	close(fd[1]);
	stream_destroy(s);
}

/* A limit, and round trips where they take longer; what a client in mode auto has is preload's */
Test(start, how_long_a_reply_may_take)
{
	int fd[2];
	uint64_t trip;

	ends_tcp(fd);
	trip = base_sock_rtt(fd[0]);
	cr_assert(trip > 0 && trip < BASE_NS_PER_S, "%lu", trip);

	const struct {
		uint64_t limit;
		unsigned int trips;
		uint64_t wanted;
	} cases[] = {
		{ 0, 0, 0 },
		{ 0, 4, 0 },
		{ 1, 0, 1 },
		{ 1, 4, 4 * trip },
		{ BASE_NS_PER_S, 1, BASE_NS_PER_S },
		{ 1, PROBE_RTTS, 4 * trip },
		{ PROBE_LIMIT, 0, 50 * BASE_NS_PER_MS },
		{ PROBE_LIMIT, PROBE_RTTS, base_max(50 * BASE_NS_PER_MS, 4 * trip) },
	};

	for (size_t i = 0; i < base_array_size(cases); i++) {
		struct stream_param param = { .initiator = true,
					      .start_limit = cases[i].limit,
					      .start_rtts = cases[i].trips };
		struct stream *s;

		cr_assert_eq(stream_attach(fd[0], &param, &s), 0);
		cr_expect_eq(stream_start_limit(s), cases[i].wanted, "case %zu: %lu", i,
			     stream_start_limit(s));
		stream_destroy(s);
	}
	close(fd[0]);
	close(fd[1]);
}

/* In force is what both ends offer; a peer that offers nothing leaves all as rsockets has it */
Test(start, features_are_those_of_both)
{
	static const uint32_t without[][3] = {
		{ 0, 0, STREAM_FEATURES },
		{ 0, STREAM_FEATURE_ABORT, STREAM_FEATURES & ~STREAM_FEATURE_ABORT },
		{ STREAM_FEATURE_CUT, 0, STREAM_FEATURES & ~STREAM_FEATURE_CUT },
		{ ~0u, 0, 0 },
		{ 0, ~0u, 0 },
	};
	struct stream *s[2];

	for (unsigned int i = 0; i < base_array_size(without); i++) {
		ends_without[0] = without[i][0];
		ends_without[1] = without[i][1];
		ends_open(s);
		for (int k = 0; k < 2; k++)
			cr_expect_eq(s[k]->state->features, without[i][2]);
		ends_destroy(s);
	}
}

/* A close with octets unread is a reset, and the peer knows that the program wanted it */
Test(start, abort_tells_why)
{
	struct iovec o = { "unread", 6 };
	struct stream *s[2];
	char c;

	for (int with = 0; with < 2; with++) {
		ends_without[0] = with ? 0 : STREAM_FEATURE_ABORT;
		ends_open(s);
		cr_assert_eq(stream_send(s[0], &o, 1), 6);
		usleep(2000);
		stream_progress(s[1]);
		cr_assert_eq(stream_close(s[1]), 0);
		usleep(2000);
		o = (struct iovec){ &c, 1 };
		cr_expect_eq(stream_recv(s[0], &o, 1, 0), -ECONNRESET);
		cr_expect_eq(s[0]->state->aborted, (uint32_t)with);
		o = (struct iovec){ "unread", 6 };
		ends_destroy(s);
	}
}

/* --- what a device's Reply may say, to an initiator --- */

#define RTR_WRITE "000ec140000000010000000000000000ebd34c5f"
#define RTR_READ                                                                           \
	"002e4141000000000000000100000001000000000000000000000000000000000000000000000001" \
	"0000000000000000ba10e3c9"

static const struct {
	const char *name;
	uint16_t ird, ord;
	const char *first; /* FPDU; NULL: whatever is due */
} replies[] = {
	{ "a Write", MPA_ENH_A, MPA_ENH_C, RTR_WRITE },
	{ "a Read", MPA_ENH_A | 1, MPA_ENH_D, RTR_READ },
	{ "either, and slots", MPA_ENH_A | 32, MPA_ENH_C | MPA_ENH_D, RTR_WRITE },
	{ "a Read that has no slot, or a Write", MPA_ENH_A, MPA_ENH_C | MPA_ENH_D, RTR_WRITE },
	{ "no RTR", 1, 0, NULL },
};

static ssize_t octets_of(int fd, uint8_t *octets, size_t room)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 1000) == 1 ? recv(fd, octets, room, MSG_DONTWAIT) : 0;
}

/* Either end of sockets may speak first, so an RTR is asked for (RFC 6581 section 9.2) */
static void request_judge(int fd)
{
	uint8_t octets[MPA_START_MAX];
	struct mpa_enh enh;

	cr_assert_gt(octets_of(fd, octets, sizeof(octets)), (ssize_t)(MPA_RR_LEN + MPA_ENH_LEN));
	cr_expect_eq(octets[17], 2);
	memcpy(&enh, octets + MPA_RR_LEN, sizeof(enh));
	cr_expect_eq(be16toh(enh.ird), MPA_ENH_A);
	cr_expect_eq(be16toh(enh.ord), MPA_ENH_C | MPA_ENH_D | 1);
}

static struct rs_conn_data conn_data(void)
{
	return (struct rs_conn_data){
		.version = RS_VERSION,
		.credits = htobe16(384),
		.target_sgl = { htobe64(4096), htobe32(7), htobe32(2) },
		.data_buf = { htobe64(8192), htobe32(8), htobe32(4096) },
	};
}

static void reply_say(int fd, uint16_t ird, uint16_t ord)
{
	const struct mpa_enh enh = { htobe16(ird), htobe16(ord) };
	const struct rs_conn_data cd = conn_data();
	uint8_t octets[MPA_RR_LEN + sizeof(enh) + sizeof(cd)] = MPA_KEY_REP;

	octets[16] = MPA_RR_C | MPA_RR_S;
	octets[17] = 2;
	octets[19] = sizeof(enh) + sizeof(cd);
	memcpy(octets + MPA_RR_LEN, &enh, sizeof(enh));
	memcpy(octets + MPA_RR_LEN + sizeof(enh), &cd, sizeof(cd));
	cr_assert_eq(write(fd, octets, sizeof(octets)), (ssize_t)sizeof(octets));
}

static void first_judge(unsigned int i, int fd)
{
	uint8_t octets[64];
	char hex[2 * sizeof(octets) + 1] = "";
	ssize_t n = octets_of(fd, octets, sizeof(octets));

	for (ssize_t k = 0; k < n; k++)
		snprintf(hex + 2 * k, 3, "%02x", octets[k]);
	cr_expect_not(strncmp(hex, replies[i].first, strlen(replies[i].first)), "%s: %s",
		      replies[i].name, hex);
}

Test(start, an_initiator_asks_for_an_rtr)
{
	for (unsigned int i = 0; i < base_array_size(replies); i++) {
		struct stream *s;
		int fd[2], err = -EAGAIN;

		ends_tcp(fd);
		s = ends_attach(fd[0], true);
		cr_expect_eq(stream_progress(s), -EAGAIN);
		request_judge(fd[1]);
		reply_say(fd[1], replies[i].ird, replies[i].ord);
		for (int k = 0; k < 5000 && err == -EAGAIN; k++) {
			err = stream_progress(s);
			usleep(100);
		}
		cr_expect_eq(err, 0, "%s: %d", replies[i].name, err);
		if (replies[i].first)
			first_judge(i, fd[1]);
		close(fd[0]);
		close(fd[1]);
		stream_destroy(s);
	}
}

/* --- and what one says that is initiator and speaks revision 1 --- */

static void request_say(int fd)
{
	const struct rs_conn_data cd = conn_data();
	uint8_t octets[MPA_RR_LEN + sizeof(cd)] = MPA_KEY_REQ;

	octets[16] = MPA_RR_C;
	octets[17] = 1;
	octets[19] = sizeof(cd);
	memcpy(octets + MPA_RR_LEN, &cd, sizeof(cd));
	cr_assert_eq(write(fd, octets, sizeof(octets)), (ssize_t)sizeof(octets));
}

/* A server may write before its peer's first FPDU, also when something else is due by then */
/* Of the kernel's struct tcp_info, which is longer than libc's */
#define DATA_SEGS_OUT 39

static uint32_t segments_sent(int fd)
{
	uint32_t info[64] = { 0 };
	socklen_t len = sizeof(info);

	cr_assert_eq(getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len), 0);
	return info[DATA_SEGS_OUT];
}

/* The Request; and the RTR with the first window */
Test(start, an_initiators_first_words_are_two_segments)
{
	struct stream *s[2];

	ends_open(s);
	cr_expect_eq(segments_sent(s[0]->fd), 2, "%u", segments_sent(s[0]->fd));
	ends_destroy(s);
}

/* A peer of rsockets gets the RTR, too */
Test(start, an_initiators_rtr_goes_to_any_peer)
{
	struct stream *s[2];

	ends_param.without = ~0u;
	ends_open(s);
	for (int i = 0; i < 1000 && !base_load(&s[1]->state->may_send); i++) {
		stream_progress(s[1]);
		usleep(100);
	}
	cr_expect(base_load(&s[1]->state->may_send));
	ends_destroy(s);
}

Test(start, room_until_the_first_fpdu)
{
	struct stream *s;
	int fd[2];

	ends_tcp(fd);
	ends_param.hold = true;
	s = ends_attach(fd[1], false);
	request_say(fd[0]);
	for (int k = 0; k < 5000 && stream_progress(s) == -EAGAIN; k++)
		usleep(100);
	cr_assert(stream_levels(s, NULL) & STREAM_WRITABLE, "answered");
	cr_assert_eq(stream_shutdown(s, SHUT_RD), 0);
	cr_expect(stream_levels(s, NULL) & STREAM_WRITABLE, "its reading side is shut");
	cr_expect_eq(stream_send(s, &(struct iovec){ "x", 1 }, 1), 1);
	ends_param.hold = false;
	close(fd[0]);
	close(fd[1]);
	stream_destroy(s);
}

/* Chelsio's and Intel's begin with a Read of no octets, of which revision 1 knows nothing */
Test(start, a_read_that_nobody_has_agreed_on)
{
	static const uint8_t response[] = { 0x00, 0x0e, 0xc1, 0x42 };
	uint8_t octets[MPA_START_MAX], wire[64];
	size_t n = test_hex(RTR_READ, wire);
	struct stream *s;
	int fd[2];

	ends_tcp(fd);
	s = ends_attach(fd[1], false);
	request_say(fd[0]);
	for (int k = 0; k < 5000 && stream_progress(s) == -EAGAIN; k++)
		usleep(100);
	cr_assert_eq(stream_progress(s), 0);
	cr_assert_gt(octets_of(fd[0], octets, sizeof(octets)), MPA_RR_LEN + RS_CONN_DATA_LEN);
	cr_assert_eq(write(fd[0], wire, n), (ssize_t)n);
	usleep(2000);
	cr_expect_eq(stream_progress(s), 0);
	cr_assert_geq(octets_of(fd[0], octets, sizeof(octets)), 20);
	cr_expect_arr_eq(octets, response, sizeof(response));
	cr_expect(stream_levels(s, NULL) & STREAM_WRITABLE);
	close(fd[0]);
	close(fd[1]);
	stream_destroy(s);
}
