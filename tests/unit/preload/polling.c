/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A list is slept on only when nothing in it is ready: also of a thread alone, which has no wakeup
 * fd, and however often a socket is in it. Sockets, sets and the kernel are models here: an octet
 * comes to the kernel's socket in the middle of a look, and whoever makes progress then takes it
 * in, after which the kernel has nothing to tell.
 */
#include "preload/wait/polling.h"

#include <criterion/criterion.h>

#include "base/bits.h"
#include "base/clock.h"
#include "preload/guard/intr_sleep.h"
#include "preload/sock/others.h"
#include "preload/table/user_iov.h"
#include "preload/wait/epoll.h"
#include "preload/wait/wait.h"

/* Descriptors of the model */
enum { KERNELS = 3, BUSY, AGAIN, IDLE, SET };

enum { LIST = 4 };

static struct stream busy_stream, idle_stream;
static struct sock busy, idle;
static unsigned int turns, comes_at; /* times that progress was made; the octet's */
static bool waits_in_kernel, taken;

/* --- what polling.c asks of others --- */

struct fdent **fdtab_pages[FDTAB_MAX / FDTAB_PAGE];
uint32_t fdtab_entries = 1;
uint64_t fdtab_had[FDTAB_MAX / 64];
unsigned int others_age;

unsigned int stream_starting(void)
{
	return 0;
}

unsigned int stream_levels(struct stream *s, struct stream_edges *edges)
{
	return s == &busy_stream && taken ? STREAM_STARTED | STREAM_READABLE : STREAM_STARTED;
}

short stream_wait_events(struct stream *s, unsigned int wanted)
{
	return POLLIN;
}

uint64_t stream_wait_deadline(struct stream *s)
{
	return BASE_NEVER;
}

bool stream_more(struct stream *s)
{
	return false;
}

bool stream_shared(struct stream *s)
{
	return false;
}

int stream_wait_fd(const struct stream *s)
{
	return s->fd;
}

struct fdent *fdtab_get(int fd, enum fd_kind kind)
{
	struct sock *s = fd == BUSY || fd == AGAIN ? &busy : fd == IDLE ? &idle : NULL;

	if (!s)
		return NULL;
	s->ent.refs++;
	return &s->ent;
}

int sock_progress(struct sock *s)
{
	if (++turns == comes_at)
		waits_in_kernel = true;
	if (s == &busy && waits_in_kernel) {
		waits_in_kernel = false;
		taken = true;
	}
	return 0;
}

struct epset *epoll_get(int epfd)
{
	return epfd == SET ? (struct epset *)(void *)&busy : NULL;
}

void epoll_put(struct epset *set)
{
}

void epoll_poll_begin(struct epset *set)
{
}

void epoll_poll_end(struct epset *set)
{
}

/* The busy one is its member, and not for what may come */
bool epoll_poll_look(struct epset *set, int *fd)
{
	*fd = SET;
	sock_progress((struct sock *)(void *)set);
	return false;
}

bool epoll_poll_more(struct epset *set)
{
	return false;
}

int wait_ends(uint64_t deadline, const sigset_t *mask, unsigned int vain)
{
	return 0;
}

uint64_t epoll_poll_limit(struct epset *set)
{
	return BASE_NEVER;
}

/* The kernel's own is never ready; what waits for one of ours ends the sleep */
int intr_sleep_exact(struct pollfd *fds, unsigned int n, uint64_t deadline, const sigset_t *mask,
		     struct spin_place *place)
{
	int ready = 0;

	for (unsigned int i = 0; i < n; i++) {
		fds[i].revents = 0;
		if (fds[i].fd == BUSY && waits_in_kernel)
			ready += (fds[i].revents = fds[i].events & POLLIN) != 0;
	}
	return ready;
}

int intr_sleep_final(struct pollfd *fds, unsigned int n, uint64_t deadline, const sigset_t *mask,
		     struct spin_place *place)
{
	return intr_sleep_exact(fds, n, deadline, mask, place);
}

struct spin_thread *spin_self(void)
{
	return NULL;
}

void wait_wakeup_get(struct wait_wakeup *wakeup)
{
	wakeup->fd = -1;
}

void wait_wakeup_put(struct wait_wakeup *wakeup)
{
}

uint64_t wait_wakeup_limit(const struct wait_wakeup *wakeup)
{
	return BASE_NEVER;
}

void wait_watch(struct wait_watch *w, const struct wait_wakeup *wakeup, struct sock *s)
{
}

void wait_unwatch(struct wait_watch *w, struct sock *s)
{
}

uint32_t wait_level_events(unsigned int l)
{
	return l & STREAM_READABLE ? EPOLLIN : 0;
}

int listener_proxy_wait_fd(int fd)
{
	return fd;
}

void others_await(struct sock *s)
{
}

void others_await_all(void)
{
}

int others_fd(void)
{
	return -1;
}

void others_heard(void)
{
}

uint64_t others_limit(void)
{
	return BASE_NEVER;
}

/* --- */

static void model_init(unsigned int at)
{
	const struct fdent entry = { .refs = 1, .kind = FD_SOCK };

	turns = 0;
	comes_at = at;
	waits_in_kernel = taken = false;
	busy_stream = (struct stream){ .fd = BUSY };
	idle_stream = (struct stream){ .fd = IDLE };
	busy = (struct sock){ .ent = entry, .role = SOCK_STREAM_ON, .stream = &busy_stream };
	idle = (struct sock){ .ent = entry, .role = SOCK_STREAM_ON, .stream = &idle_stream };
}

/* Whenever in the first look it comes, who asked for it is told, in this call */
static void told(const int fds[LIST], const short events[LIST])
{
	struct pollfd p[LIST];
	int ready;

	for (unsigned int at = 1;; at++) {
		model_init(at);
		for (int i = 0; i < LIST; i++)
			p[i] = (struct pollfd){ .fd = fds[i], .events = events[i] };
		ready = polling_list(p, LIST, base_now(), NULL);
		if (turns < at)
			break;
		cr_expect_gt(ready, 0, "the octet comes at %u", at);
		for (int i = 0; i < LIST; i++)
			cr_expect_eq(p[i].revents,
				     fds[i] == BUSY || fds[i] == AGAIN ? events[i] : 0,
				     "the octet comes at %u: %d", at, i);
	}
}

Test(polling, a_socket_is_in_the_list_twice)
{
	static const struct {
		int fd[LIST];
		short events[LIST];
	} lists[] = {
		{ { BUSY, BUSY, KERNELS, IDLE }, { POLLIN, 0, POLLIN, POLLIN } },
		{ { BUSY, IDLE, IDLE, BUSY }, { POLLIN, POLLIN, POLLIN, 0 } },
		{ { BUSY, IDLE, AGAIN, -1 }, { POLLIN, POLLIN, 0, 0 } },
		{ { BUSY, AGAIN, BUSY, AGAIN }, { POLLIN, 0, POLLIN, 0 } },
		{ { KERNELS, BUSY, IDLE, SET }, { POLLIN, POLLIN, POLLIN, POLLIN } },
		{ { SET, IDLE, BUSY, SET }, { POLLIN, 0, POLLIN, POLLIN } },
	};

	for (unsigned int i = 0; i < base_array_size(lists); i++)
		told(lists[i].fd, lists[i].events);
}

/* Of a list the table is asked only where a number of it ever had an entry */
Test(polling, one_of_ours_is_found_anywhere_in_the_list)
{
	static struct fdent *page[FDTAB_PAGE];
	static struct pollfd list[100];

	fdtab_pages[0] = page;
	for (int at = 0; at < 100; at++) {
		for (int i = 0; i < 100; i++)
			list[i] = (struct pollfd){ .fd = i % 7 ? i + 3 : -1 };
		cr_expect_not(polling_has_ours(list, 100), "%d", at);
		list[at].fd = 500;
		fdtab_had[500 / 64] |= 1ull << 500 % 64;
		cr_expect_not(polling_has_ours(list, 100), "%d: it had one", at);
		page[500] = &busy.ent;
		cr_expect(polling_has_ours(list, 100), "%d", at);
		page[500] = NULL;
		fdtab_had[500 / 64] = 0;
	}
}
