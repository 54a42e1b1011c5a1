/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Notes how an end hands its octets to the kernel, which nothing on the other side of a TCP
 * connection can tell. It stands before libc's syscall(), by which the product makes its
 * transfers, and hands every call on.
 */
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "suite.h"

enum { CALLS = 4096 };

static struct sent_call calls[CALLS];
static size_t count;
static int watched = -1;

static size_t whole_of(const struct msghdr *msg)
{
	size_t whole = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		whole += msg->msg_iov[i].iov_len;
	return whole;
}

static void note(size_t whole, int flags, long sent)
{
	check(count < CALLS, "too many calls");
	/* the kernel marks a boundary only when it took everything */
	calls[count++] =
		(struct sent_call){ (size_t)sent, flags & MSG_EOR && (size_t)sent == whole };
}

/*
 * Seven arguments whatever the call has, which is what the kernel's convention makes of it: hence
 * no <unistd.h> here, which says otherwise.
 */
long syscall(long number, long a, long b, long c, long d, long e, long f);

__attribute__((visibility("default"))) long syscall(long number, long a, long b, long c, long d,
						    long e, long f)
{
	static long (*next)(long number, long a, long b, long c, long d, long e, long f);
	long result;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	result = next(number, a, b, c, d, e, f);
	if (watched < 0 || (int)a != watched || result <= 0)
		return result;
	if (number == SYS_sendmsg)
		note(whole_of((const struct msghdr *)b), (int)c, result);
	if (number == SYS_sendto)
		note((size_t)c, (int)d, result);
	return result;
}

void sends_watch(int fd)
{
	if (fd >= 0)
		count = 0;
	watched = fd;
}

size_t sends_count(void)
{
	return count;
}

struct sent_call sends_at(size_t i)
{
	return calls[i];
}
