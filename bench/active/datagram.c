/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The server in C by UDP, which is what programs in the kernel are measured against: they are asked
 * by UDP, too. Both of its ends poll. The client asks the server by AF_XDP in the same way.
 */
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "speed.h"

bool own_network(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int any;
	bool up;

	if (unshare(CLONE_NEWNET))
		return false;
	any = socket(AF_INET, SOCK_DGRAM, 0);
	up = any >= 0 && !ioctl(any, SIOCSIFFLAGS, &lo);
	close(any);
	if (!up)
		fail("no loopback interface", 0);
	return true;
}

void udp_serve(int tell)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct told told = rpc_structures();
	struct question q;
	socklen_t len = sizeof(at);
	int fd;

	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) ||
	    getsockname(fd, (struct sockaddr *)&told.addr, &len) ||
	    write(tell, &told, sizeof(told)) != sizeof(told))
		fail("no server by UDP", 0);
	for (;;) {
		unsigned long value;

		len = sizeof(at);
		if (recvfrom(fd, &q, sizeof(q), MSG_DONTWAIT, (struct sockaddr *)&at, &len) !=
		    sizeof(q))
			continue;
		value = rpc_answer(&q);
		if (sendto(fd, &value, sizeof(value), 0, (struct sockaddr *)&at, len) < 0)
			fail("no answer by UDP", 0);
	}
}

void udp_connect(struct datagrams *d)
{
	d->fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (d->fd < 0 ||
	    connect(d->fd, (const struct sockaddr *)&d->told.addr, sizeof(struct sockaddr_in)))
		fail("no client by UDP", 0);
}

unsigned long udp_call(const struct datagrams *d, const struct question *q)
{
	struct question answer; /* that of AF_XDP is as long as the question */

	if (send(d->fd, q, sizeof(*q), 0) != sizeof(*q))
		fail("no question by UDP", 0);
	while (recv(d->fd, &answer, sizeof(answer), MSG_DONTWAIT) < (ssize_t)sizeof(unsigned long))
		;
	return answer.structure;
}
