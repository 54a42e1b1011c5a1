/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the two endpoints of a test stand: on the loopback; or, for AF_XDP, which needs a wire,
 * each in a network namespace: AM_TEST_PLACES is "NAMESPACE ADDRESS NAMESPACE ADDRESS" then
 * (tests/e2e/am-xdp.sh, tests/threads/am_xdp.sh).
 */
#ifndef TESTS_AM_PLACE_H
#define TESTS_AM_PLACE_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What this thread makes from here on stands where this end does; the address, or INADDR_NONE. */
static inline in_addr_t am_place(int end)
{
	const char *places = getenv("AM_TEST_PLACES");
	char name[2][64], address[2][64], path[128];
	int fd, ret;

	if (!places)
		return htonl(INADDR_LOOPBACK);
	if (sscanf(places, "%63s %63s %63s %63s", name[0], address[0], name[1], address[1]) != 4)
		return INADDR_NONE;
	snprintf(path, sizeof(path), "/run/netns/%s", name[end]);
	fd = open(path, O_RDONLY);
	ret = setns(fd, CLONE_NEWNET);
	close(fd);
	return ret == 0 ? inet_addr(address[end]) : INADDR_NONE;
}

/* The driver that an endpoint there must have. */
static inline const char *am_place_nic(void)
{
	return getenv("AM_TEST_PLACES") ? "xdp" : "udp";
}

#endif
