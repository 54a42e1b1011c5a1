/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process of a relay.
 *
 * It is a helper process (preload/process/helper_process.c), and has nothing of its maker's but the
 * streams it is for.
 *
 * Until the program has been executed the relay does not touch a stream: it waits for the end
 * of a pipe, which is close-on-exec. A word in the pipe says that the program could not be
 * executed, and the relay leaves as if it had not been. From then on it is a program of its own
 * (preload/process/relay_again.c), where the states of all its streams can be found by another
 * program; else it goes on as the copy that it is, with its maker's memory.
 */
#include "preload/process/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/map.h"
#include "base/sockutil.h"
#include "preload/process/helper_process.h"
#include "preload/process/relay_again.h"
#include "preload/rules/report.h"
#include "preload/sock/info.h"
#include "preload/sock/others.h"
#include "preload/sock/param.h"
#include "preload/sock/worker.h"
#include "preload/wait/sock_io.h"

#define NAME RELAY_NAME

struct relay {
	struct relay_line *lines;
	struct sock **socks;
	struct pollfd *fds;
	void *again; /* room for relay_again() */
	unsigned int n;
	int go;
};

/* --- a process with nothing but its streams --- */

/* The least number from @from on that is the relay's; -1 */
static int number_next(void *ctx, int from)
{
	const struct relay *r = ctx;
	int least = r->go >= from ? r->go : -1;

	for (unsigned int i = 0; i < r->n; i++) {
		int two[] = { r->lines[i].local, stream_fd(r->lines[i].stream) };

		for (int j = 0; j < 2; j++)
			if (two[j] >= from && (least < 0 || two[j] < least))
				least = two[j];
	}
	return least;
}

/* Threads that another process has, and that slept on it, are nothing to wake */
static void sock_join(struct sock *s, int fd)
{
	pthread_mutex_init(&s->lock, NULL);
	base_list_init(&s->watches);
	stream_set_fd(s->stream, fd);
	stream_joined(s->stream);
	others_come(s);
}

/* Only a server in mode auto may speak first */
static uint64_t grace_of(const struct sock *s)
{
	bool may = s->accepted && s->opts.mode == CONFIG_USE_AUTO;

	return may ? base_max(1ull, sock_grace(s)) : 0;
}

static size_t room_of(unsigned int n)
{
	return n * (sizeof(struct relay_line) + sizeof(struct sock *)) +
	       RELAY_POLLS(n) * sizeof(struct pollfd) + relay_again_room(n);
}

static void room_destroy(struct relay *r, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		relay_line_uninit(&r->lines[i]);
	base_map_destroy(r->lines, room_of(n));
}

static void room_divide(struct relay *r, void *p, unsigned int n)
{
	r->lines = p;
	r->socks = (struct sock **)(r->lines + n);
	r->again = r->socks + n;
	r->fds = (struct pollfd *)(void *)((char *)r->again + relay_again_room(n));
}

/* By the one who makes it, whose call fails when there is none */
static int room_create(struct relay *r, unsigned int n)
{
	void *p;
	int err = base_map_create(room_of(n), &p);

	if (err)
		return err;
	room_divide(r, p, n);
	for (unsigned int i = 0; !err && i < n; i++)
		err = relay_line_init(&r->lines[i]);
	if (err)
		room_destroy(r, n);
	return err;
}

static void lines_make(struct relay *r, const struct relay_ask *asks, unsigned int n)
{
	for (; r->n < n; r->n++) {
		struct sock *s = asks[r->n].sock;
		struct relay_line *l = &r->lines[r->n];

		sock_join(s, asks[r->n].fd);
		r->socks[r->n] = s;
		l->stream = s->stream;
		l->local = asks[r->n].local;
		l->grace = grace_of(s);
		l->linger = sock_config.linger;
	}
}

/* Has the program been executed? Or has its process ended, which comes to the same */
static bool has_begun(const struct relay *r)
{
	struct pollfd p = { .fd = r->go, .events = POLLIN };
	char word;

	while (base_poll(&p, 1, BASE_NEVER) <= 0)
		;
	return syscall(SYS_read, r->go, &word, 1) != 1;
}

static void leave(struct relay *r)
{
	for (unsigned int i = 0; i < r->n; i++)
		stream_close(r->lines[i].stream);
}

static void serve(struct relay *r)
{
	/* The program has urgent octets in their places among the others */
	for (unsigned int i = 0; i < r->n; i++)
		stream_set_inline(r->lines[i].stream, true);
	report_reset();
	relay_serve(r->lines, r->n, r->fds);
	for (unsigned int i = 0; i < r->n; i++)
		sock_report(r->socks[i]);
	report_end(false);
}

struct plan {
	struct relay relay;
	const struct relay_ask *asks;
	unsigned int n;
	uint32_t before;
};

static void begin(struct relay *r, uint32_t before)
{
	for (unsigned int i = 0; before && i < r->n; i++)
		stream_left(r->lines[i].stream, before);
	relay_again(r->again, r->lines, r->socks, r->n);
	serve(r);
}

static void run(void *ctx)
{
	const struct plan *plan = ctx;
	struct relay r = plan->relay;

	helper_process_init(NAME);
	lines_make(&r, plan->asks, plan->n);
	helper_process_close_others(number_next, &r);
	if (has_begun(&r))
		begin(&r, plan->before);
	else
		leave(&r);
	syscall(SYS_exit_group, 0);
}

/* --- as a program of its own --- */

static int line_adopt(struct relay *r, const struct relay_given *given)
{
	struct relay_line *l = &r->lines[r->n];
	struct sock *s = sock_get_stream(given->fd);
	int err = s ? relay_line_init(l) : -ENOENT;

	if (err) {
		sock_put(s);
		return err;
	}
	/* It begins anew with each program that adopts a stream, and here nobody else calls */
	worker_forget(s);
	r->socks[r->n++] = s;
	l->stream = s->stream;
	l->local = given->local;
	l->grace = given->grace;
	l->linger = sock_config.linger;
	return 0;
}

int relay_go_on(const struct relay_given *given, unsigned int n)
{
	struct relay r = { .go = -1 };
	size_t size = room_of(n);
	void *p;
	int err = base_map_create(size, &p);

	if (err)
		return err;
	room_divide(&r, p, n);
	for (unsigned int i = 0; i < n; i++)
		if (line_adopt(&r, &given[i]))
			base_fd_close(given[i].local);
	worker_stop();
	serve(&r);
	base_map_destroy(p, size);
	return 0;
}

/* --- in the process that makes it --- */

/* The kernel's list of local sockets, and getpeername(), show what it is */
static void far_name(int far)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	uint64_t cookie = sock_cookie(far);
	int n = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, NAME "-%016llx",
			 (unsigned long long)cookie);

	syscall(SYS_bind, far, &un, offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static enum config_reason reason_of(int err, bool loads)
{
	if (!loads)
		return CONFIG_REASON_NOT_LOADED;
	return err == -EACCES ? CONFIG_REASON_OTHER_USER : CONFIG_REASON_RUNTIME_DIR;
}

void relay_explain(int fd, int err, bool loads)
{
	enum config_reason reason = reason_of(err, loads);

	base_info("descriptor %d has a relay: %s", fd, config_reason_text(reason));
	report_reason(reason, 1);
}

bool relay_is_behind(int fd)
{
	struct sockaddr_un un = { .sun_family = AF_UNSPEC };
	socklen_t len = sizeof(un);

	return !syscall(SYS_getpeername, fd, &un, &len) && un.sun_family == AF_UNIX &&
	       len > sizeof(NAME) + sizeof(sa_family_t) && !un.sun_path[0] &&
	       !strncmp(un.sun_path + 1, NAME "-", sizeof(NAME));
}

int relay_pair(int fd, int *local, int *far)
{
	int two[2], on = 1;

	if (syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, two))
		return -errno;
	/* What is urgent to the program is an octet among others here, and not left out */
	syscall(SYS_setsockopt, two[0], SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	*local = base_fd_dup_high(two[0]);
	*far = base_fd_dup_high(two[1]);
	base_fd_close(two[0]);
	base_fd_close(two[1]);
	if (*local < 0 || *far < 0)
		return -EMFILE;
	far_name(*far);
	return base_fd_set_nonblock(*local, base_sock_is_nonblock(fd));
}

static void share_all(const struct relay_ask *asks, unsigned int n, bool on)
{
	for (unsigned int i = 0; i < n; i++) {
		struct stream *stream = asks[i].sock->stream;

		if (!on) {
			stream_unshare(stream, STREAM_SHARE_FORK);
			continue;
		}
		stream_share(stream, STREAM_SHARE_FORK);
		others_come(asks[i].sock);
	}
}

int relay_create(const struct relay_ask *asks, unsigned int n, uint32_t before, int *out)
{
	struct plan plan = { .asks = asks, .n = n, .before = before };
	int go[2], err = room_create(&plan.relay, n);

	if (err)
		return err;
	if (syscall(SYS_pipe2, go, O_CLOEXEC)) {
		err = -errno;
		room_destroy(&plan.relay, n);
		return err;
	}
	plan.relay.go = go[0];
	share_all(asks, n, true);
	err = helper_process_create(run, &plan);
	if (err)
		share_all(asks, n, false);
	room_destroy(&plan.relay, n);
	base_fd_close(go[0]);
	if (err)
		base_fd_close(go[1]);
	else
		*out = go[1];
	return err;
}

void relay_cancel(int go)
{
	syscall(SYS_write, go, "", 1);
	base_fd_close(go);
}
