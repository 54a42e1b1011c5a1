/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program that waited, and reads what came, would ask a transport again that was found empty a
 * moment ago. It is spared that once, if it reads little, and this process has sent nothing to
 * this socket since: what others sent meanwhile wakes it later. Where much comes, a reader does
 * well to take it all.
 *
 * Whether this process has the other end, too, nobody knows; but both ends of a connection have the
 * same two ports. So what is sent is counted by the pair of ports, once a connection has sent a
 * little, and by itself before.
 */
#include "stream/state/memory.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/process.h"

#define SPARED_MAX 4096
/* It is worth two system calls to know the ports of a connection that has sent so often */
#define SENDS_MIN 8
#define PAIRS 256u

static uint64_t all, strange, of_pair[PAIRS]; /* atomic: sends; before the pair was known; behind */

static bool port_get(long call, int fd, in_port_t *out)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} name;
	socklen_t len = sizeof(name);
	int saved = errno;
	bool got = !syscall(call, fd, &name.any, &len);

	errno = saved;
	if (!got || (name.any.sa_family != AF_INET && name.any.sa_family != AF_INET6))
		return false;
	*out = name.any.sa_family == AF_INET ? name.in.sin_port : name.in6.sin6_port;
	return true;
}

/* The same of both ends; 0: it cannot be known */
static uint32_t pair_of(const struct stream *s)
{
	int fd = stream_fd(s);
	in_port_t here, there;

	if (base_process_confined() || !port_get(SYS_getsockname, fd, &here) ||
	    !port_get(SYS_getpeername, fd, &there))
		return 0;
	return 1 + (uint32_t)(here ^ there) * 2654435761u % (PAIRS - 1);
}

void stream_spare_sent(struct stream *s)
{
	uint32_t pair = base_load(&s->pair);

	__atomic_add_fetch(pair ? &of_pair[pair] : &strange, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&all, 1, __ATOMIC_RELAXED);
	if (!pair && ++s->sends == SENDS_MIN)
		base_store(&s->pair, pair_of(s));
}

static uint64_t load(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

struct stream_spare stream_spare_begin(const struct stream *s)
{
	uint32_t pair = base_load(&s->pair);

	return (struct stream_spare){
		.is_set = true,
		.pair = pair,
		.sends = pair ? load(&strange) + load(&of_pair[pair]) : load(&all),
	};
}

bool stream_spare_take(struct stream *s, size_t taken)
{
	struct stream_spare was = s->spare, now = stream_spare_begin(s);

	s->spare.is_set = false;
	return was.is_set && was.pair == now.pair && was.sends == now.sends && taken &&
	       taken <= SPARED_MAX;
}
