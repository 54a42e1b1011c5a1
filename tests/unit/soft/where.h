/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_SOFT_WHERE_H
#define TESTS_SOFT_WHERE_H

/*
 * The devices of the two queue pairs of end.h.
 *
 * END_PROVIDER and END_ADDRESS in the environment run the same tests on another provider, at an
 * address of its device; with END_PEER who listens is on that one, in the network namespace
 * END_PEER_NAMESPACE. See tests/vm/cases/native.sh.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warp/rdma.h>

#define MUST(x)                                                                 \
	do {                                                                    \
		if (!(x)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			abort();                                                \
		}                                                               \
	} while (0)

static inline const char *end_provider(void)
{
	const char *name = getenv("END_PROVIDER");

	return name ? name : "soft";
}

/*
 * What only the software provider has: the codes of Terminates, ends told apart, and its own ways
 */
static inline bool end_is_soft(void)
{
	return !strcmp(end_provider(), "soft");
}

/*
 * END_TRANSPORT=roce: who sends is told what became of it, private data has zeros behind it, and
 * there is no TCP
 */
static inline bool end_is_roce(void)
{
	const char *transport = getenv("END_TRANSPORT");

	return transport && !strcmp(transport, "roce");
}

static inline bool end_can(const struct warp_device *dev, uint32_t feature)
{
	struct warp_device_attr has;

	MUST(warp_device_query(dev, &has) == 0);
	return has.features & feature;
}

static inline struct sockaddr_in end_address(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	const char *address = getenv("END_ADDRESS");

	MUST(inet_pton(AF_INET, address ? address : "127.0.0.1", &sin.sin_addr) == 1);
	return sin;
}

/* To @namespace, and back to the one that is returned */
static inline int end_move(int namespace)
{
	int before = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	MUST(before >= 0 && setns(namespace, CLONE_NEWNET) == 0);
	close(namespace);
	return before;
}

/* END_PEER's, if it is not this one; end_return() of what it returns goes back */
static inline int end_visit(void)
{
	const char *namespace = getenv("END_PEER_NAMESPACE");

	return namespace ? end_move(open(namespace, O_RDONLY | O_CLOEXEC)) : -1;
}

static inline void end_return(int home)
{
	if (home >= 0)
		close(end_move(home));
}

/* That of who connects, and of who listens, which may be the same */
static inline void end_devices_open(struct warp_device **dev, struct warp_device **there)
{
	const char *peer = getenv("END_PEER");
	int home;

	MUST(warp_device_open(end_provider(), dev) == 0);
	*there = *dev;
	if (!peer)
		return;
	home = end_visit();
	MUST(warp_device_open(peer, there) == 0);
	end_return(home);
}

static inline void end_devices_close(struct warp_device *dev, struct warp_device *there)
{
	MUST(warp_device_close(dev) == 0);
	if (there != dev)
		MUST(warp_device_close(there) == 0);
}

#endif
