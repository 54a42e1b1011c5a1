/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Streams that a device carries: one in memory, which places Writes where they belong and tells
 * nobody, takes a few operations at a time, and ends both directions at once.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fdutil.h"
#include "tests/unit/stream/ends.h"

#define QUEUE 1024u
#define MESSAGES 200u /* fewer than STREAM_CREDITS would want */
#define ROOM 6u	      /* operations of which the device has not said that they have left */

struct device {
	struct rnic_native native;
	struct device *peer;
	bool initiator, asked, open, ended;
	uint8_t pd[256];
	size_t pd_len;
	int connects, starts; /* what these say */
	uint8_t *window[RNIC_WINDOWS];
	size_t window_len[RNIC_WINDOWS];
	uint32_t message[QUEUE];
	unsigned int said, heard; /* to this end */
	unsigned int under_way;
	bool destroyed;
};

static struct device *device_of(const struct rnic_stream_mem *mem)
{
	return base_container_of(mem->native, struct device, native);
}

/* --- the provider --- */

static int device_init(const struct rnic_stream_mem *mem, int fd,
		       const struct rnic_stream_param *param)
{
	cr_assert_eq(param->messages, MESSAGES);
	return 0;
}

static int device_window(const struct rnic_stream_mem *mem, unsigned int i, struct rnic_window *w)
{
	struct device *d = device_of(mem);

	d->window[i] = calloc(1, w->len);
	d->window_len[i] = w->len;
	w->to = (uintptr_t)d->window[i];
	w->stag = 100 + i;
	return 0;
}

static void data_give(struct device *to, const void *pd, size_t len)
{
	memcpy(to->pd, pd, len);
	to->pd_len = len;
	base_eventfd_notify(to->native.fd);
}

static int device_start(const struct rnic_stream_mem *mem, int fd, const void *pd, size_t len,
			short *events)
{
	struct device *d = device_of(mem);

	*events = POLLIN;
	if (d->starts)
		return d->starts;
	if (d->initiator && !d->asked)
		data_give(d->peer, pd, len);
	d->asked |= d->initiator;
	if (!d->initiator)
		return d->pd_len ? RNIC_STREAM_REQUEST : -EAGAIN;
	return d->open ? RNIC_STREAM_OPEN : -EAGAIN;
}

static int device_private_data(const struct rnic_stream_mem *mem, void *pd, size_t *len)
{
	*len = device_of(mem)->pd_len;
	memcpy(pd, device_of(mem)->pd, *len);
	return 0;
}

static int device_accept(const struct rnic_stream_mem *mem, int fd, const void *pd, size_t len)
{
	struct device *d = device_of(mem);

	data_give(d->peer, pd, len);
	d->open = d->peer->open = true;
	return 0;
}

static int device_reject(const struct rnic_stream_mem *mem, int fd, const void *pd, size_t len)
{
	return 0;
}

/* Into the window that has them all, or the test is over */
static void place(struct device *to, const struct rnic_stream_wr *wr)
{
	unsigned int i = wr->stag - 100;
	uint8_t *at = (uint8_t *)(uintptr_t)wr->to;

	cr_assert(i < RNIC_WINDOWS && to->window[i]);
	cr_assert(at >= to->window[i] && at + wr->len <= to->window[i] + to->window_len[i]);
	for (unsigned int k = 0; k < wr->niov; k++) {
		memcpy(at, wr->iov[k].iov_base, wr->iov[k].iov_len);
		at += wr->iov[k].iov_len;
	}
}

static void say(struct device *to, uint32_t message)
{
	cr_assert_lt(to->said - to->heard, MESSAGES);
	to->message[to->said++ % QUEUE] = message;
	base_eventfd_notify(to->native.fd);
}

static int device_send(const struct rnic_stream_mem *mem, int fd, const struct rnic_stream_wr *wr,
		       unsigned int n)
{
	struct device *d = device_of(mem);
	unsigned int i;

	if (d->ended)
		return -ECONNRESET;
	for (i = 0; i < n && d->under_way < ROOM; i++, d->under_way++)
		if (wr[i].stag)
			place(d->peer, &wr[i]);
		else
			say(d->peer, base_get_le32(wr[i].iov[0].iov_base));
	return i ? (int)i : -EAGAIN;
}

static unsigned int device_segment(const struct rnic_stream_mem *mem, unsigned int message)
{
	return 5000;
}

static int device_flush(const struct rnic_stream_mem *mem, int fd)
{
	return 0;
}

static bool device_owes(const struct rnic_stream_mem *mem)
{
	return false;
}

static void device_align(const struct rnic_stream_mem *mem, bool on)
{
}

static ssize_t device_receive(const struct rnic_stream_mem *mem, int fd,
			      const struct rnic_sink *sink, size_t budget)
{
	struct device *d = device_of(mem);
	ssize_t sum = d->under_way;
	uint8_t octets[4];

	if (d->under_way)
		sink->room(sink->ctx);
	d->under_way = 0;
	for (; d->heard != d->said; sum++) {
		base_put_le32(octets, d->message[d->heard++ % QUEUE]);
		if (sink->message(sink->ctx, 0, octets, 4, true))
			return -EPROTO;
	}
	return sum ? sum : d->ended ? 0 : -EAGAIN;
}

static void device_info(const struct rnic_stream_mem *mem, struct rnic_stream_info *info)
{
	*info = (struct rnic_stream_info){ .state = RNIC_STREAM_OPEN, .may_send = true };
}

static int device_shutdown(const struct rnic_stream_mem *mem, int fd)
{
	device_of(mem)->ended = device_of(mem)->peer->ended = true;
	return 0;
}

static int carrier_connect(const struct rnic_stream_mem *mem, int fd, short *events)
{
	return device_of(mem)->connects;
}

static bool carrier_room(const struct rnic_stream_mem *mem, int fd)
{
	return device_of(mem)->under_way < ROOM;
}

static int carrier_unacked(const struct rnic_stream_mem *mem, int fd)
{
	return -EPERM;
}

static void carrier_abort(const struct rnic_stream_mem *mem, int fd)
{
	device_shutdown(mem, fd);
}

static const struct rnic_carrier_ops carrier = { carrier_connect, carrier_room, carrier_unacked,
						 carrier_abort };

static void *native_memory(const struct rnic_native *n, unsigned int i)
{
	return base_container_of(n, struct device, native)->window[i];
}

static uint32_t native_messages(const struct rnic_native *n)
{
	return MESSAGES;
}

static void native_destroy(struct rnic_native *n)
{
	base_container_of(n, struct device, native)->destroyed = true;
}

/* The socket is connected, and nothing comes from the device any more */
static void native_follow(struct rnic_native *n, int fd)
{
}

static const struct rnic_native_ops native = { .memory = native_memory,
					       .messages = native_messages,
					       .destroy = native_destroy,
					       .follow = native_follow };

/* Memory of the program's: nobody writes there */
static int regions_create(const struct rnic_stream_mem *mem, uint16_t ird, uint16_t ord,
			  struct rnic_regions **out)
{
	static struct rnic_regions regions;

	*out = &regions;
	return 0;
}

static int regions_add(struct rnic_regions *regions, void *addr, size_t len, unsigned int access,
		       uint32_t *stag)
{
	*stag = 200;
	return access == RNIC_REMOTE_WRITE ? 0 : -EINVAL;
}

static void regions_end(struct rnic_regions *regions)
{
}

static const struct rnic_onesided_ops onesided = {
	.create = regions_create, .add = regions_add, .close = regions_end, .destroy = regions_end
};

static const struct rnic_stream_ops device_stream = {
	.init = device_init,
	.window = device_window,
	.start = device_start,
	.private_data = device_private_data,
	.accept = device_accept,
	.reject = device_reject,
	.send = device_send,
	.segment = device_segment,
	.flush = device_flush,
	.owes = device_owes,
	.align = device_align,
	.receive = device_receive,
	.info = device_info,
	.shutdown = device_shutdown,
	.onesided = &onesided,
	.carrier = &carrier,
	.native = &native,
};
static const struct rnic_ops device_ops = { .name = "memory", .stream = &device_stream };

/* --- two ends --- */

static struct device devices[2];
static struct stream *ends[2];

static void attach(unsigned int i)
{
	struct stream_param param = { .initiator = !i,
				      .connecting = true,
				      .opts = { .mode = CONFIG_USE_DDP,
						.ring = 64 * 1024,
						.maps = 2,
						.provider = "memory" },
				      .native = &devices[i].native };

	devices[i].native.fd = eventfd(0, EFD_NONBLOCK);
	devices[i].peer = &devices[!i];
	devices[i].initiator = !i;
	cr_assert_eq(stream_attach(socket(AF_INET, SOCK_STREAM, 0), &param, &ends[i]), 0);
}

static void open_both(void)
{
	rnic_register(&device_ops);
	attach(0);
	attach(1);
	cr_assert_eq(stream_progress(ends[0]), -EAGAIN);
	cr_assert_eq(stream_progress(ends[1]), 0);
	cr_assert_eq(stream_progress(ends[0]), 0);
	cr_assert_eq(stream_progress(ends[1]), 0);
}

static void close_one(unsigned int i)
{
	close(ends[i]->fd);
	stream_destroy(ends[i]);
	close(devices[i].native.fd);
	for (unsigned int k = 0; k < RNIC_WINDOWS; k++)
		free(devices[i].window[k]);
}

static void close_both(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		close_one(i);
		cr_assert(devices[i].destroyed);
	}
}

static size_t put(struct stream *s, uint64_t at, size_t len)
{
	uint8_t octets[7777];
	struct iovec iov = { octets, base_min(len, sizeof(octets)) };
	ssize_t n;

	for (size_t i = 0; i < iov.iov_len; i++)
		octets[i] = ends_octet(at + i);
	n = stream_send(s, &iov, 1);
	cr_assert(n > 0 || n == -EAGAIN);
	return (size_t)base_max(n, (ssize_t)0);
}

static size_t get(struct stream *s, uint64_t at)
{
	uint8_t octets[9999];
	struct iovec iov = { octets, sizeof(octets) };
	ssize_t n = stream_recv(s, &iov, 1, 0);

	cr_assert(n > 0 || n == -EAGAIN);
	for (ssize_t i = 0; i < n; i++)
		cr_assert_eq(octets[i], ends_octet(at + (uint64_t)i));
	return (size_t)base_max(n, (ssize_t)0);
}

Test(device, octets_both_ways)
{
	enum { OCTETS = 3000000 };
	uint64_t sent[2] = { 0 }, got[2] = { 0 };
	struct stream_info info;

	open_both();
	cr_assert_eq(stream_wait_fd(ends[0]), devices[0].native.fd);
	while (got[0] < OCTETS || got[1] < OCTETS)
		for (unsigned int i = 0; i < 2; i++) {
			if (sent[i] < OCTETS)
				sent[i] += put(ends[i], sent[i], OCTETS - sent[i]);
			got[i] += get(ends[i], got[i]);
		}
	stream_info(ends[0], &info);
	cr_assert_str_eq(info.provider, "memory");
	cr_assert_eq(info.features, STREAM_FEATURE_ABORT);
	cr_expect_eq(stream_urgent_send(ends[0], &(struct iovec){ (void *)"u", 1 }, 1),
		     -EOPNOTSUPP);
	close_both();
}

/*
 * What start-up of a client comes to: a device that is no TCP's, or that cannot begin, leaves the
 * peer to the socket, and is no answer of the peer's to a Request
 */
Test(device, start_up_that_fails)
{
	static const struct sockaddr_storage peer = { .ss_family = AF_INET };
	static const struct {
		int connects, starts;
		bool apart, probe;
		int want;
		uint32_t error;
	} cases[] = {
		{ -ENODEV, 0, false, false, -ENODEV, ENODEV },
		{ -ENODEV, 0, false, true, -ENODEV, ENODEV },
		{ 0, -ETIMEDOUT, false, false, -ETIMEDOUT, ETIMEDOUT },
		{ 0, RNIC_STREAM_REJECTED, false, false, -ECONNREFUSED, ECONNREFUSED },
		{ 0, -EBADMSG, false, false, -ENODEV, ENODEV }, /* software may read it */
		{ 0, -EPROTO, false, false, -EPROTO, EPROTO },
		{ 0, -ETIMEDOUT, true, false, -ENODEV, ENODEV },
		{ 0, RNIC_STREAM_REJECTED, true, false, -ENODEV, ENODEV },
		{ 0, RNIC_STREAM_REJECTED, true, true, -ENODEV, ENODEV },
	};

	rnic_register(&device_ops);
	for (size_t i = 0; i < base_array_size(cases); i++) {
		struct stream_param param = { .initiator = true,
					      .connecting = true,
					      .opts = { .mode = cases[i].probe ? CONFIG_USE_AUTO
									       : CONFIG_USE_DDP,
							.ring = 64 * 1024,
							.provider = "memory" },
					      .probe = cases[i].probe,
					      .peer = &peer,
					      .peer_len = sizeof(struct sockaddr_in),
					      .native = &devices[0].native };
		struct stream_info info;

		devices[0] = (struct device){ .initiator = true,
					      .peer = &devices[1],
					      .connects = cases[i].connects,
					      .starts = cases[i].starts };
		devices[0].native =
			(struct rnic_native){ eventfd(0, EFD_NONBLOCK), cases[i].apart };
		cr_assert_eq(stream_attach(socket(AF_INET, SOCK_STREAM, 0), &param, &ends[0]), 0);
		cr_expect_eq(stream_progress(ends[0]), cases[i].want, "case %zu", i);
		stream_info(ends[0], &info);
		cr_expect_eq(info.start_error, cases[i].error, "case %zu", i);
		close_one(0);
	}
}

/* Octets wait in the stream, and the ring's place is the peer's again */
Test(device, octets_wait_for_their_reader)
{
	uint64_t sent = 0, got = 0, n;

	open_both();
	do {
		n = put(ends[0], sent, 5000);
		sent += n;
		stream_progress(ends[1]);
		stream_progress(ends[0]);
	} while (n);
	cr_assert_gt(sent, 60000);
	cr_assert_eq(stream_readable(ends[1]), sent);
	cr_assert_not(stream_levels(ends[0], NULL) & STREAM_WRITABLE);
	while ((n = get(ends[1], got)))
		got += n;
	cr_assert_eq(got, sent);
	stream_progress(ends[0]);
	cr_assert(stream_levels(ends[0], NULL) & STREAM_WRITABLE);
	close_both();
}

/* Whoever finds no room is woken by what has yet to leave, or may go on at once */
Test(device, room_that_comes_while_one_looks)
{
	static uint8_t octets[30000];
	struct iovec iov = { octets, sizeof(octets) };
	ssize_t sent;

	open_both();
	stream_progress(ends[0]); /* what start-up sent has left */
	cr_assert_eq(stream_send(ends[0], &iov, 1), ROOM / 2 * 5000);
	sent = stream_send(ends[0], &iov, 1);
	cr_assert(sent > 0 || devices[0].under_way ||
		  stream_levels(ends[0], NULL) & STREAM_WRITABLE);
	close_both();
}

Test(device, room_that_a_reader_hears_of)
{
	static uint8_t octets[30000];
	struct iovec iov = { octets, sizeof(octets) };
	struct stream_edges before, after;

	open_both();
	stream_progress(ends[0]); /* what start-up sent has left */
	cr_assert_eq(stream_send(ends[0], &iov, 1), ROOM / 2 * 5000);
	cr_assert_not(stream_levels(ends[0], &before) & STREAM_WRITABLE);
	cr_assert_eq(get(ends[0], 0), 0u);
	cr_assert(stream_levels(ends[0], &after) & STREAM_WRITABLE);
	cr_assert_neq(before.out, after.out);
	close_both();
}

/* Whoever closes first waits, for there is no half of an end */
Test(device, both_ends_close)
{
	struct stream_stats stats;
	bool safe;

	open_both();
	put(ends[0], 0, 100);
	cr_assert_eq(stream_close(ends[0]), -EAGAIN);
	cr_assert_not(devices[0].ended);
	cr_assert_eq(get(ends[1], 0), 100u);
	cr_assert_eq(stream_recv(ends[1], &(struct iovec){ &safe, 1 }, 1, 0), 0);
	cr_assert_eq(stream_close(ends[1]), 0);
	cr_assert(devices[1].ended);
	cr_assert_eq(stream_close_more(ends[0], &safe), 0);
	for (unsigned int i = 0; i < 2; i++) {
		stream_stats(ends[i], &stats);
		cr_assert(stats.device && !stats.broken);
	}
	close_both();
}

/* A device does not say how it ended: what comes without a word is no clean end */
Test(device, an_end_without_disconnect)
{
	char c;

	open_both();
	device_shutdown(&(struct rnic_stream_mem){ .native = &devices[0].native }, 0);
	cr_assert_eq(stream_recv(ends[1], &(struct iovec){ &c, 1 }, 1, 0), -ECONNRESET);
	close_both();
}

static bool ended_by(uint32_t first, uint32_t second)
{
	struct stream_info info;

	open_both();
	say(&devices[1], first);
	stream_progress(ends[1]);
	stream_info(ends[1], &info);
	cr_assert_not(info.broken);
	say(&devices[1], second);
	stream_progress(ends[1]);
	stream_info(ends[1], &info);
	close_both();
	return info.broken;
}

Test(device, told_of_more_than_the_ring_has)
{
	cr_assert(ended_by(rs_msg(RS_OP_DATA, 1), rs_msg(RS_OP_DATA, 64 * 1024 + 1)));
}

Test(device, told_of_more_than_was_granted)
{
	cr_assert(ended_by(rs_msg(RS_OP_DATA, 64 * 1024), rs_msg(RS_OP_DATA, 1)));
}

static uint8_t *slot(unsigned int end, unsigned int i)
{
	return devices[end].window[STREAM_SGL_WINDOW] + RS_SGL_LEN + i * sizeof(struct rs_iomap);
}

static int write_at(uint64_t offset, char *octets, uint32_t len)
{
	struct stream_job job = { .addr = octets, .len = len, .to = offset, .mapped = true };

	return stream_post(ends[0], &job);
}

/* Slots lie where the device places them; the message says when to look */
Test(device, mappings_land)
{
	uint8_t memory[10], *far;
	struct rs_iomap map = { htole64(7), { .key = htole32(101), .length = htole32(10) } };
	struct stream_info info;

	open_both();
	far = devices[1].window[STREAM_RING_WINDOW] + 40000;
	map.sge.addr = htole64((uintptr_t)far);
	memcpy(slot(0, 1), &map, sizeof(map));
	stream_progress(ends[0]);
	cr_expect_eq(write_at(7, "0123456789", 10), -ENXIO);
	say(&devices[0], rs_msg(RS_OP_IOMAP_SGL, 1));
	stream_progress(ends[0]);
	cr_expect_eq(write_at(8, "0123456789", 10), -ENXIO);
	cr_assert_eq(write_at(8, "012345678", 9), 0);
	cr_expect_arr_eq(far,
			 "\0"
			 "012345678",
			 10);
	/* The same from here: the slot, then the message */
	cr_assert_eq(stream_map(ends[1], memory, sizeof(memory), 99), 0);
	cr_expect_not(stream_serves(ends[1]));
	memcpy(&map, slot(0, 0), sizeof(map));
	cr_expect_eq(le64toh(map.offset), 99);
	cr_expect_eq(le64toh(map.sge.addr), (uintptr_t)memory);
	cr_expect_eq(le32toh(map.sge.key), 200);
	cr_expect_eq(devices[0].message[(devices[0].said - 1) % QUEUE], rs_msg(RS_OP_IOMAP_SGL, 0));
	stream_progress(ends[0]);
	cr_expect_eq(write_at(98, "0", 1), -ENXIO);
	/* Of a slot that nothing has come to */
	say(&devices[1], rs_msg(RS_OP_IOMAP_SGL, 0));
	stream_progress(ends[1]);
	stream_info(ends[1], &info);
	cr_expect(info.broken);
	close_both();
}

/* It is one process's: another one is refused, and leaves it as it is */
Test(device, a_child_has_nothing_of_it)
{
	const unsigned int refused = STREAM_ERROR | STREAM_READABLE | STREAM_WRITABLE;
	int status = -1;
	pid_t child;
	char c;

	open_both();
	put(ends[0], 0, 10);
	stream_share(ends[1], STREAM_SHARE_FORK);
	child = fork();
	if (!child) {
		struct iovec iov = { &c, 1 };
		bool good = stream_recv(ends[1], &iov, 1, 0) == -EXDEV &&
			    stream_send(ends[1], &iov, 1) == -EXDEV &&
			    (stream_levels(ends[1], NULL) & refused) == refused &&
			    stream_close(ends[1]) == 0 && !devices[0].ended;

		_exit(good ? 0 : 1);
	}
	waitpid(child, &status, 0);
	cr_assert_eq(status, 0);
	cr_assert_not(stream_levels(ends[1], NULL) & STREAM_ERROR);
	cr_assert_eq(stream_hand_over(ends[1]), -EXDEV);
	cr_assert_eq(get(ends[1], 0), 10u);
	/* Also while another one has it, its owner ends it */
	stream_share(ends[1], STREAM_SHARE_FORK);
	cr_assert_eq(stream_close(ends[1]), -EAGAIN);
	cr_assert_eq(stream_recv(ends[0], &(struct iovec){ &c, 1 }, 1, 0), 0);
	close_both();
}

static int waived(void *ctx, uint64_t limit, uint64_t *when)
{
	return -ENOMSG;
}

/* A probe that need not go leaves no device's connection behind, and a socket that is connected */
Test(device, a_probe_that_is_waived)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct stream_param param = { .initiator = true,
				      .connecting = true,
				      .probe = true,
				      .peer_len = sizeof(to),
				      .may_probe = waived,
				      .opts.provider = "memory",
				      .native = &devices[0].native };
	struct sockaddr_storage peer = { 0 };
	socklen_t len = sizeof(to);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	struct stream *s;

	cr_assert_eq(bind(listener, (struct sockaddr *)&to, len), 0);
	cr_assert_eq(listen(listener, 1), 0);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&to, &len), 0);
	memcpy(&peer, &to, sizeof(to));
	param.peer = &peer;
	rnic_register(&device_ops);
	devices[0].native.fd = eventfd(0, EFD_NONBLOCK);
	devices[0].initiator = true;
	devices[0].peer = &devices[1];
	cr_assert_eq(stream_attach(fd, &param, &s), 0);
	while (stream_progress(s) == -EAGAIN)
		poll(NULL, 0, 1);
	cr_expect_eq(stream_progress(s), -ENOMSG);
	cr_expect_not(devices[0].asked);
	cr_expect_eq(getpeername(fd, (struct sockaddr *)&peer, &len), 0);
	stream_destroy(s);
	close(fd);
	close(listener);
	close(devices[0].native.fd);
}
