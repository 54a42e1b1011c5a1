/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stream over a device that is made up: what a client's beginning comes to, and peers that
 * overlook what they are sent first.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "fake.h"
#include "verbs/verbs_stream.h"

#define NATIVE verbs_native_ops
#define STREAM verbs_stream_ops
#define ROUNDS 3000

static unsigned int heard;

static int heard_one(void *ctx, uint64_t off, const void *p, size_t len, bool last)
{
	heard++;
	return 0;
}

static void room(void *ctx)
{
}

static const struct rnic_sink sink = { .message = heard_one, .room = room };

static int reach(struct rnic_native **out)
{
	struct sockaddr_in peer = { .sin_family = AF_INET,
				    .sin_port = htons(80),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	return NATIVE.reach((struct sockaddr *)&peer, sizeof(peer), out);
}

/* As far as it goes: 0, or what it said */
static int begin(struct rnic_stream_mem *mem, int *state)
{
	struct rnic_stream_param param = { .initiator = true, .messages = 20 };
	struct rnic_window window = { .len = 65536 };
	short events;
	int err = STREAM.carrier->connect(mem, -1, &events);

	if (!err)
		err = STREAM.init(mem, -1, &param);
	if (!err)
		err = STREAM.window(mem, 0, &window);
	if (!err)
		*state = STREAM.start(mem, -1, "x", 1, &events);
	return err;
}

static void open_one(struct rnic_stream_mem *mem)
{
	int state = 0;

	cr_assert_eq(reach(&mem->native), 0);
	cr_assert_eq(begin(mem, &state), 0);
	cr_assert_eq(state, RNIC_STREAM_OPEN);
}

static void close_one(struct rnic_stream_mem *mem)
{
	NATIVE.destroy(mem->native);
	cr_assert_eq(fake.made, fake.destroyed, "%u made, %u destroyed", fake.made, fake.destroyed);
}

static void say(struct rnic_stream_mem *mem)
{
	struct iovec iov = { "word", 4 };
	struct rnic_stream_wr wr = { .iov = &iov, .niov = 1, .len = 4 };

	cr_assert_eq(STREAM.send(mem, -1, &wr, 1), 1);
}

static void place(struct rnic_stream_mem *mem, uint32_t stag, uint64_t to)
{
	struct iovec iov = { "word", 4 };
	struct rnic_stream_wr wr = { .stag = stag, .to = to, .iov = &iov, .niov = 1, .len = 4 };

	cr_assert_eq(STREAM.send(mem, -1, &wr, 1), 1);
}

/* Takes in what is there until there is nothing more */
static void look(struct rnic_stream_mem *mem)
{
	while (STREAM.receive(mem, -1, &sink, 0) > 0)
		;
}

/* Is there something for who waits, within @ms? */
static int poll_one(const struct rnic_stream_mem *mem, int ms)
{
	struct pollfd p = { .fd = mem->native->fd, .events = POLLIN };

	return poll(&p, 1, ms);
}

TestSuite(stream, .init = fake_reset);

Test(stream, where_no_device_leads)
{
	static const struct {
		int load, channel_errno;
		bool elsewhere;
		int want;
	} cases[] = {
		{ -ENODEV, 0, false, -ENODEV },
		{ -ENOPKG, 0, false, -ENODEV },
		{ 0, EACCES, false, -EACCES },
		{ 0, 0, true, -ENODEV },
	};
	struct rnic_native *native;

	for (size_t i = 0; i < base_array_size(cases); i++) {
		fake_reset();
		fake.load = cases[i].load;
		fake.channel_errno = cases[i].channel_errno;
		fake.elsewhere = cases[i].elsewhere;
		cr_expect_eq(reach(&native), cases[i].want, "case %zu", i);
		cr_expect_eq(fake.made, fake.destroyed, "case %zu", i);
	}
}

/* -ENODEV: software may begin anew. What an iWARP peer answers is an answer */
Test(stream, what_a_beginning_comes_to)
{
	static const struct {
		enum rdma_cm_event_type resolved, connected;
		unsigned int regions, late;
		int want, state;
	} cases[] = {
		{ RDMA_CM_EVENT_ADDR_ERROR, RDMA_CM_EVENT_ESTABLISHED, 100, 0, -ENODEV, 0 },
		{ RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ESTABLISHED, 0, 0, -ENODEV, 0 },
		{ RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ESTABLISHED, 2, 0, -ENODEV, 0 },
		{ RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_REJECTED, 100, 0, 0,
		  RNIC_STREAM_REJECTED },
		{ RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_UNREACHABLE, 100, 0, 0, -ETIMEDOUT },
		{ RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ESTABLISHED, 100, 3, 0,
		  RNIC_STREAM_OPEN },
		{ RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ESTABLISHED, 100, 4, -ENODEV, 0 },
	};

	for (size_t i = 0; i < base_array_size(cases); i++) {
		struct rnic_stream_mem mem = { 0 };
		int state = 0;

		fake_reset();
		fake.resolved = cases[i].resolved;
		fake.connected = cases[i].connected;
		fake.regions = cases[i].regions;
		fake.late = cases[i].late;
		cr_assert_eq(reach(&mem.native), 0);
		cr_expect_eq(begin(&mem, &state), cases[i].want, "case %zu", i);
		cr_expect_eq(state, cases[i].state, "case %zu", i);
		close_one(&mem);
	}
}

Test(stream, only_iwarp_is_tcp)
{
	struct rnic_stream_mem mem = { 0 };

	open_one(&mem);
	cr_expect_not(mem.native->apart);
	close_one(&mem);
	fake.transport = IBV_TRANSPORT_IB;
	open_one(&mem);
	cr_expect(mem.native->apart);
	close_one(&mem);
}

/* A forked child has its parent's libraries, and their descriptors */
Test(stream, a_child_has_no_device)
{
	struct rnic_stream_mem mem = { 0 };
	struct rnic_native *native;
	int status;

	open_one(&mem);
	if (!fork())
		_exit(reach(&native) == -EXDEV ? 0 : 1);
	wait(&status);
	cr_expect_eq(status, 0);
	close_one(&mem);
}

static bool is_write_retry(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_RDMA_WRITE && !wr->num_sge && !(wr->send_flags);
}

/* Who waits for an answer is woken, and a Write of no octets makes the peer look; or some more */
Test(stream, a_peer_that_overlooks_the_first_word)
{
	struct rnic_stream_mem mem = { 0 };

	open_one(&mem);
	look(&mem);
	cr_expect_eq(poll_one(&mem, 100), 0, "nothing has been said");
	place(&mem, 7, 0x1000);
	place(&mem, 8, 0x2000);
	look(&mem);
	for (unsigned int i = 1; i <= RNIC_WRITE_RETRIES; i++) {
		cr_assert_eq(fake.num_sent, i + 1);
		cr_assert_eq(poll_one(&mem, 10000), 1);
		look(&mem);
		cr_expect(is_write_retry(&fake.sent[i + 1]));
		cr_expect_eq(fake.sent[i + 1].wr.rdma.rkey, 7, "the peer's first");
		cr_expect_eq(fake.sent[i + 1].wr.rdma.remote_addr, 0x1000);
	}
	cr_expect_eq(poll_one(&mem, 100), 0);
	look(&mem);
	say(&mem);
	look(&mem);
	cr_expect_eq(poll_one(&mem, 100), 0);
	cr_expect_eq(fake.num_sent, RNIC_WRITE_RETRIES + 3u);
	close_one(&mem);
}

Test(stream, a_peer_that_answers)
{
	struct rnic_stream_mem mem = { 0 };

	open_one(&mem);
	say(&mem);
	look(&mem);
	fake_hear(1);
	cr_assert_eq(poll_one(&mem, 10000), 1);
	look(&mem);
	cr_expect_eq(heard, 1u);
	cr_expect_eq(poll_one(&mem, 100), 0, "and no timer is left");
	look(&mem);
	cr_expect_eq(fake.num_sent, 2u, "it may have spoken before it looked");
	cr_expect(is_write_retry(&fake.sent[1]));
	cr_expect_eq(fake.sent[1].wr.rdma.rkey, 1, "of which none is known");
	close_one(&mem);
}

/* Before anybody has looked: it was up, and what it said is taken in before its end */
Test(stream, a_peer_that_speaks_and_ends)
{
	struct rnic_stream_mem mem = { 0 };

	fake.brief = true;
	open_one(&mem);
	look(&mem);
	cr_expect_eq(heard, 1u);
	cr_expect_eq(STREAM.receive(&mem, -1, &sink, 0), 0, "an end without error");
	close_one(&mem);
}

static void listen_one(struct rnic_native_listener **listener)
{
	static const struct sockaddr_in own = { .sin_family = AF_INET };
	const struct rnic_native_address at = { .addr = (const struct sockaddr *)&own,
						.len = sizeof(own),
						.backlog = 1 };

	cr_assert_eq(NATIVE.listen(&at, listener), 0);
}

static void accept_one(struct rnic_stream_mem *mem, struct rnic_native_listener **listener)
{
	static const struct rnic_stream_param param = { .messages = 20 };
	short events;

	listen_one(listener);
	cr_assert(fake_ask(FAKE_PORT, NULL, 0));
	cr_assert_eq(NATIVE.get(*listener, &mem->native), 0);
	cr_assert_eq(STREAM.init(mem, -1, &param), 0);
	cr_assert_eq(STREAM.start(mem, -1, NULL, 0, &events), RNIC_STREAM_REQUEST);
	cr_assert_eq(STREAM.accept(mem, -1, "x", 1), 0);
}

/* Who asks stays where it is, until there is what a connection takes */
Test(stream, a_request_for_which_there_is_nothing)
{
	static const int lacks[] = { EMFILE, ENOMEM };
	struct rnic_native_listener *listener;
	struct rnic_stream_mem mem = { 0 };

	listen_one(&listener);
	for (size_t i = 0; i < base_array_size(lacks); i++) {
		fake.channel_errno = lacks[i];
		cr_expect_eq(NATIVE.get(listener, &mem.native), -EAGAIN, "nobody has asked");
		cr_assert(fake_ask(FAKE_PORT, NULL, 0));
		cr_expect_eq(NATIVE.get(listener, &mem.native), -lacks[i]);
		fake.channel_errno = 0;
		cr_assert_eq(NATIVE.get(listener, &mem.native), 0);
		NATIVE.destroy(mem.native);
	}
	NATIVE.unlisten(listener);
	cr_assert_eq(fake.made, fake.destroyed, "%u made, %u destroyed", fake.made, fake.destroyed);
}

/* As behind setuid(): the channel is readable all the while, and the call comes back */
Test(stream, events_that_are_refused, .timeout = 10)
{
	static const int refused[] = { EACCES, ENOMEM, EAGAIN };
	struct rnic_native_listener *listener;
	struct rnic_stream_mem mem = { 0 };

	listen_one(&listener);
	cr_expect_eq(listener->owner, (uint32_t)getpid());
	for (size_t i = 0; i < base_array_size(refused); i++) {
		cr_assert(fake_stir(FAKE_PORT));
		cr_assert(fake_ask(FAKE_PORT, NULL, 0));
		fake.event_errno = refused[i];
		cr_expect_eq(NATIVE.get(listener, &mem.native), -refused[i]);
		fake.event_errno = 0;
		cr_assert_eq(NATIVE.get(listener, &mem.native), 0, "behind what is no Request");
		NATIVE.destroy(mem.native);
	}
	cr_assert(fake_stir(FAKE_PORT));
	cr_expect_eq(NATIVE.get(listener, &mem.native), -EAGAIN);
	NATIVE.unlisten(listener);
	cr_assert_eq(fake.made, fake.destroyed, "%u made, %u destroyed", fake.made, fake.destroyed);
}

static bool may_send(const struct rnic_stream_mem *mem)
{
	struct rnic_stream_info info;

	STREAM.info(mem, &info);
	return info.may_send;
}

/* siw as initiator fails when anything stands behind the Reply: a responder lets it speak first */
Test(stream, a_responder_waits_for_the_first_word)
{
	static const struct {
		enum ibv_transport_type transport;
		bool waits, hears;
	} cases[] = {
		{ IBV_TRANSPORT_IWARP, true, true },
		{ IBV_TRANSPORT_IWARP, true, false },
		{ IBV_TRANSPORT_IB, false, false },
	};

	for (size_t i = 0; i < base_array_size(cases); i++) {
		struct rnic_native_listener *listener;
		struct rnic_stream_mem mem = { 0 };

		fake_reset();
		fake.transport = cases[i].transport;
		accept_one(&mem, &listener);
		cr_expect_not(may_send(&mem), "case %zu", i);
		cr_assert_gt(STREAM.receive(&mem, -1, &sink, 0), 0, "it is established");
		if (cases[i].waits) {
			cr_expect_not(may_send(&mem), "case %zu", i);
			if (cases[i].hears)
				fake_hear(1);
			cr_assert_eq(poll_one(&mem, 10000), 1);
			cr_assert_gt(STREAM.receive(&mem, -1, &sink, 0), 0, "who waits is told");
		}
		cr_expect(may_send(&mem), "case %zu", i);
		cr_expect_eq(poll_one(&mem, 0), 0, "case %zu", i);
		cr_expect_eq(fake.num_sent, 0u, "case %zu", i);
		NATIVE.unlisten(listener);
		close_one(&mem);
	}
}

/* The program may see that the connection is open later than what the peer has said on it */
Test(stream, a_first_word_before_the_event)
{
	struct rnic_native_listener *listener;
	struct rnic_stream_mem mem = { 0 };

	accept_one(&mem, &listener);
	fake_hear(1);
	while (STREAM.receive(&mem, -1, &sink, 0) > 0)
		;
	cr_expect_eq(heard, 1u);
	cr_expect(may_send(&mem));
	cr_expect_eq(poll_one(&mem, 200), 0, "and there is no timer");
	NATIVE.unlisten(listener);
	close_one(&mem);
}

/* siw may send other octets than those of a small message, or end there, unless it has them */
Test(stream, small_messages_go_with_their_work_request)
{
	static char octets[65];
	struct iovec iov = { octets, 0 };
	struct rnic_stream_wr wr = { .iov = &iov, .niov = 1 };
	struct rnic_stream_mem mem = { 0 };

	for (int inlined = 64; inlined >= 0; inlined -= 64) {
		fake_reset();
		fake.inlined = (uint32_t)inlined;
		open_one(&mem);
		for (uint32_t len = 4; len <= sizeof(octets); len++) {
			const struct ibv_send_wr *sent = &fake.sent[fake.num_sent % 16];
			bool has = len <= (uint32_t)inlined;

			wr.len = (uint32_t)(iov.iov_len = len);
			cr_assert_eq(STREAM.send(&mem, -1, &wr, 1), 1, "%u", len);
			cr_expect_eq(!!(sent->send_flags & IBV_SEND_INLINE), has, "%u", len);
			look(&mem);
		}
		close_one(&mem);
	}
}

static bool is_keepalive(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_RDMA_WRITE && !wr->num_sge && wr->send_flags;
}

/* One of RoCE, which sends no retry Writes */
static void open_kept(struct rnic_stream_mem *mem, uint64_t ns)
{
	fake.transport = IBV_TRANSPORT_IB;
	open_one(mem);
	NATIVE.keepalive(mem->native, ns);
	look(mem);
}

/* As long as the program wishes it, and as often as nothing comes for so long */
Test(stream, a_peer_that_may_be_gone)
{
	struct rnic_stream_mem mem = { 0 };
	uint64_t before;

	open_kept(&mem, 50 * BASE_NS_PER_MS);
	for (unsigned int i = 0; i < 3; i++) {
		before = base_now();
		while (fake.num_sent == i) {
			cr_assert_eq(poll_one(&mem, 10000), 1);
			look(&mem);
		}
		cr_expect_geq(base_now() - before, 40 * BASE_NS_PER_MS);
		cr_expect(is_keepalive(&fake.sent[i]));
		cr_expect_neq(fake.sent[i].wr.rdma.rkey, 0u);
	}
	cr_expect(verbs_stream_idle(verbs_stream_of(&mem)), "it is not what was sent");
	NATIVE.keepalive(mem.native, 0);
	look(&mem);
	cr_expect_eq(poll_one(&mem, 200), 0);
	cr_expect_eq(fake.num_sent, 3u);
	close_one(&mem);
}

Test(stream, a_peer_that_is_heard_is_there)
{
	struct rnic_stream_mem mem = { 0 };
	uint64_t begin, before, now, longest = 0;

	open_kept(&mem, BASE_NS_PER_S);
	begin = before = base_now();
	while (before - begin < 2 * BASE_NS_PER_S) {
		fake_hear(1);
		look(&mem);
		usleep(20000);
		now = base_now();
		longest = base_max(longest, now - before);
		before = now;
	}
	/* Unless the machine itself was silent for so long */
	cr_expect(!fake.num_sent || longest >= BASE_NS_PER_S / 2);
	close_one(&mem);
}

Test(stream, a_peer_that_is_gone)
{
	struct rnic_stream_mem mem = { 0 };
	ssize_t said;

	open_kept(&mem, 50 * BASE_NS_PER_MS);
	fake.sent_status = IBV_WC_RETRY_EXC_ERR;
	do {
		cr_assert_eq(poll_one(&mem, 10000), 1);
		said = STREAM.receive(&mem, -1, &sink, 0);
	} while (said > 0 || said == -EAGAIN);
	cr_expect_eq(said, -ETIMEDOUT);
	close_one(&mem);
}

static void forget(int fd)
{
}

static int move_high(int fd)
{
	int high = base_fd_dup_high(fd);

	base_fd_close(fd);
	return high;
}

/* It has the timer, too, which the set would tell of for ever; and its number is not its first */
Test(stream, a_child_while_the_timer_runs)
{
	struct rnic_native_listener *listener;
	struct rnic_stream_mem mem = { 0 };
	pid_t pid;

	base_fd_keeper(move_high, forget);
	fake_reset();
	accept_one(&mem, &listener);
	cr_assert_gt(STREAM.receive(&mem, -1, &sink, 0), 0);
	pid = fork();
	if (!pid) {
		pause();
		_exit(0);
	}
	cr_assert_eq(poll_one(&mem, 10000), 1);
	cr_expect_gt(STREAM.receive(&mem, -1, &sink, 0), 0);
	cr_expect_eq(poll_one(&mem, 0), 0, "it is over");
	cr_expect_eq(fake.num_sent, 0u);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	NATIVE.unlisten(listener);
	close_one(&mem);
}

static bool over; /* atomic */

static void *receive(void *mem)
{
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
		STREAM.receive(mem, -1, &sink, 0);
	return NULL;
}

/* The other thread may be slow to count */
static bool is_idle_soon(const struct rnic_stream_mem *mem)
{
	uint64_t limit = base_deadline(base_now(), 10 * BASE_NS_PER_S);

	while (!verbs_stream_idle(verbs_stream_of(mem)) && !base_deadline_passed(limit, base_now()))
		sched_yield();
	return verbs_stream_idle(verbs_stream_of(mem));
}

/* The last words of who ends it are not waited for when they have left, whoever has seen that */
Test(stream, an_end_while_another_thread_receives)
{
	struct rnic_stream_mem mem = { 0 };
	pthread_t thread;

	open_one(&mem);
	fake.paired = true;
	cr_assert_eq(pthread_create(&thread, NULL, receive, &mem), 0);
	for (int i = 0; i < ROUNDS; i++) {
		say(&mem);
		say(&mem);
		STREAM.carrier->abort(&mem, -1);
		cr_assert(is_idle_soon(&mem), "round %d", i);
	}
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	close_one(&mem);
}

/* Memory of the program's: the device knows it until it is taken back, or the connection ends */
Test(stream, memory_for_the_peer)
{
	struct rnic_stream_mem mem = { 0 };
	struct rnic_regions *regions;
	uint32_t stag = 0;
	char memory[64];
	int status = -1;
	pid_t child;

	fake.regions = 8;
	open_one(&mem);
	cr_assert_eq(STREAM.onesided->create(&mem, 0, 0, &regions), 0);
	cr_expect_eq(STREAM.onesided->add(regions, memory, 64, RNIC_REMOTE_READ, &stag),
		     -EOPNOTSUPP);
	cr_expect_eq(STREAM.onesided->add(regions, memory, 64, RNIC_REMOTE_WRITE, &stag), 0);
	cr_expect_eq(STREAM.onesided->remove(regions, stag + 1), -EINVAL);
	cr_expect_eq(STREAM.onesided->remove(regions, stag), 0);
	cr_expect_eq(STREAM.onesided->remove(regions, stag), -EINVAL);
	cr_expect_eq(STREAM.onesided->add(regions, memory, 64, RNIC_REMOTE_WRITE, &stag), 0);
	fake.regions = 0;
	cr_expect_eq(STREAM.onesided->add(regions, memory, 64, RNIC_REMOTE_WRITE, &stag), -ENOMEM);
	child = fork();
	if (!child) {
		unsigned int before = fake.destroyed;

		STREAM.onesided->destroy(regions);
		_exit(fake.destroyed == before ? 0 : 1);
	}
	waitpid(child, &status, 0);
	cr_expect_eq(status, 0);
	fake.regions = 8;
	STREAM.onesided->close(regions);
	cr_expect_eq(STREAM.onesided->add(regions, memory, 64, RNIC_REMOTE_WRITE, &stag), -EPIPE);
	STREAM.onesided->destroy(regions);
	close_one(&mem);
}
