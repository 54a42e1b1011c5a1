/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A wakeup fd is a datagram socket of AF_UNIX with a random abstract name: no file, nothing to be
 * cleaned up, and whoever knows the name can wake its process without having been given a
 * descriptor. Processes of one connection tell each other their names in its state.
 *
 * The message says nothing; who hears it looks at everything that may be meant. So it does no harm
 * when a queue is full, for then there is one to be heard, nor when a stranger sends one, who can
 * see the names in /proc/net/unix: that costs a look.
 *
 * Abstract names belong to a network namespace. A process in another one cannot wake it, and says
 * so where the name came from; the same holds where a filter or a limit forbids.
 */
#include "preload/sock/wakeup.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fdutil.h"
#include "base/log.h"
#include "base/rand.h"
#include "preload/table/fork_gen.h"
#include "preload/table/internal.h"

#define WAKES 64

static struct {
	pthread_mutex_t lock; /* making it */
	uint64_t name;	      /* atomic; 0: none */
	int fd;		      /* atomic; -1 */
	bool told;
} wakeup = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static socklen_t address(uint64_t name, struct sockaddr_un *out)
{
	int n;

	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "warpsock/wakeup/%016llx",
		     (unsigned long long)name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* The lock. A name that is another's already is one in 2^64 */
static int make(void)
{
	int fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un un;
	uint64_t name;
	int err;

	if (fd < 0)
		return -errno;
	err = base_rand_u64(&name);
	name |= 1; /* none is 0 */
	if (!err && syscall(SYS_bind, fd, &un, address(name, &un)))
		err = -errno;
	if (err) {
		base_fd_close(fd);
		return err;
	}
	__atomic_store_n(&wakeup.fd, internal_move(fd), __ATOMIC_RELEASE);
	__atomic_store_n(&wakeup.name, name, __ATOMIC_RELEASE);
	return 0;
}

uint64_t wakeup_name(void)
{
	uint64_t name = __atomic_load_n(&wakeup.name, __ATOMIC_ACQUIRE);
	int saved = errno, err;

	if (name)
		return name;
	pthread_mutex_lock(&wakeup.lock);
	err = wakeup.name ? 0 : make();
	if (err && !wakeup.told)
		base_info("no wakeup fd for other processes: %s", strerror(-err));
	wakeup.told |= err;
	name = wakeup.name;
	pthread_mutex_unlock(&wakeup.lock);
	errno = saved;
	return name;
}

int wakeup_fd(void)
{
	return __atomic_load_n(&wakeup.fd, __ATOMIC_ACQUIRE);
}

/*
 * More than once means no more than once. A bound, for a stranger may go on sending. read() is what
 * a process may that may hardly anything.
 */
bool wakeup_take(void)
{
	int saved = errno, fd = wakeup_fd(), n = 0;
	char octet;

	while (fd >= 0 && n < WAKES && syscall(SYS_read, fd, &octet, 1) >= 0)
		n++;
	errno = saved;
	return n;
}

int wakeup_send(uint64_t name)
{
	int saved = errno, err = 0;
	struct sockaddr_un un;
	socklen_t len = address(name, &un);

	if (!wakeup_name())
		return -EPERM;
	if (syscall(SYS_sendto, wakeup_fd(), "", 0, MSG_DONTWAIT | MSG_NOSIGNAL, &un, len) < 0)
		err = errno == EAGAIN ? 0 : -errno; /* one that has not been heard yet will do */
	errno = saved;
	return err;
}

void wakeup_before_fork(void)
{
	pthread_mutex_lock(&wakeup.lock);
}

void wakeup_forget(void)
{
	pthread_mutex_init(&wakeup.lock, NULL);
	wakeup.name = 0;
	wakeup.fd = -1;
}

/* A child that listened to its parent's would take away what is meant for that */
void wakeup_after_fork(bool child)
{
	int fd = wakeup.fd;

	fork_gen_lock_drop(&wakeup.lock, child);
	if (!child)
		return;
	wakeup.name = 0;
	wakeup.fd = -1;
	internal_close(fd);
}
