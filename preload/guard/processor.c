/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The processor of a thread, and that of its peer.
 *
 * Over loopback the kernel takes in what a peer sends on the peer's processor, which
 * SO_INCOMING_CPU tells. Of another host it tells which processor served the network card: this
 * one, perhaps, and it is no reason to sleep.
 */
#include "preload/guard/processor.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/sockutil.h"

/* A thread may be confined, or get another class, at any time */
#define THREAD_REFRESH (10 * BASE_NS_PER_MS)

/* Room for the mask of 8192 processors; a kernel of more refuses, and nobody is confined */
#define MASK_WORDS 128

int processor_here(void)
{
	return sched_getcpu();
}

static long preemptions(void)
{
	struct rusage usage = { .ru_nivcsw = 0 };

	syscall(SYS_getrusage, RUSAGE_THREAD, &usage);
	return usage.ru_nivcsw;
}

static bool is_confined(void)
{
	unsigned long mask[MASK_WORDS];
	long size = syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);
	int n = 0;

	for (long i = 0; i < size / (long)sizeof(*mask); i++)
		n += __builtin_popcountl(mask[i]);
	return n == 1;
}

void processor_look(struct processor_thread *t, uint64_t now)
{
	long policy;

	if (t->looked && now - t->looked < THREAD_REFRESH)
		return;
	policy = syscall(SYS_sched_getscheduler, 0);
	if (policy >= 0)
		policy &= ~SCHED_RESET_ON_FORK;
	t->urgent = policy == SCHED_FIFO || policy == SCHED_RR;
	t->confined = is_confined();
	t->preempted = preemptions();
	t->looked = now;
}

bool processor_was_taken(struct processor_thread *t)
{
	long before = t->preempted;

	t->preempted = preemptions();
	return t->preempted != before;
}

/* What sched_setattr() takes since Linux 3.14; <linux/sched/types.h> repeats libc's <sched.h> */
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period; /* runtime: of an ordinary thread its slice, in ns */
};
#define SLICE (100 * BASE_NS_PER_US)

void processor_slice_shorten(void)
{
	struct attr attr = { .size = sizeof(attr) };
	int saved = errno;

	/* A kernel that knows no slices says 0 */
	if (!syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) && attr.runtime > SLICE &&
	    (attr.policy == SCHED_OTHER || attr.policy == SCHED_BATCH)) {
		attr.runtime = SLICE;
		syscall(SYS_sched_setattr, 0, &attr, 0);
	}
	errno = saved;
}

/* Of IPv4 the whole of 127/8 is this host */
static bool is_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *six_a = (const void *)a, *six_b = (const void *)b;
	const struct sockaddr_in *four_a = (const void *)a, *four_b = (const void *)b;

	if (!base_address_is_four(a))
		return IN6_ARE_ADDR_EQUAL(&six_a->sin6_addr, &six_b->sin6_addr);
	return four_a->sin_addr.s_addr == four_b->sin_addr.s_addr ||
	       ntohl(four_b->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

static bool is_local(int fd)
{
	struct sockaddr_storage own = { 0 }, peer = { 0 };
	socklen_t own_len = sizeof(own), peer_len = sizeof(peer);

	if (syscall(SYS_getsockname, fd, &own, &own_len) ||
	    syscall(SYS_getpeername, fd, &peer, &peer_len))
		return false;
	base_address_unmap(&own);
	base_address_unmap(&peer);
	return own.ss_family == peer.ss_family && is_same_host(&own, &peer);
}

enum processor_peer processor_of_peer(int fd, int here)
{
	int cpu = fd < 0 ? -1 : base_sock_number(fd, SOL_SOCKET, SO_INCOMING_CPU);

	if (cpu < 0)
		return PROCESSOR_UNKNOWN;
	if (cpu != here)
		return PROCESSOR_OTHER;
	return is_local(fd) ? PROCESSOR_SAME : PROCESSOR_UNKNOWN;
}
