/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets that come from other processes, or from the program that this process was before.
 *
 * The kernel's socket comes by itself, and the stream is found by its cookie. What this side
 * knows besides (what the program has set and shut, and how the connection was begun) lies in the
 * stream's state. It is judged when it is read, for others may have written there.
 *
 * Sockets that carry frames are marked, so that one whose state cannot be found, for it is another
 * user's, is not taken for plain TCP.
 *
 * A socket whose frames this process cannot take part in is put out of reach: at its number
 * stands a new one, which has no connection, so that no octet gets among the frames. What others do
 * with it goes on.
 */
#include "preload/sock/exec_record.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/point.h"
#include "base/sockutil.h"
#include "preload/rules/plain.h"
#include "preload/rules/report.h"
#include "preload/sock/others.h"
#include "preload/sock/worker.h"
#include "preload/table/libc.h"
#include "preload/table/tmp_cloexec.h"

#define RECORD_MAGIC 0x65786332u

struct exec_record {
	uint32_t magic;
	uint16_t mode; /* enum config_transport */
	uint8_t way;   /* enum connect_way */
	uint8_t start; /* enum sock_start */
	uint8_t accepted, mode_set, shut, nodelay;
	uint32_t cork;
	uint64_t acked;
	uint32_t peer_len;
	/* Room for either family */
	uint8_t name[sizeof(struct sockaddr_in6)], peer[sizeof(struct sockaddr_in6)];
};
_Static_assert(sizeof(struct exec_record) <= STREAM_EXEC_RECORD, "more is kept than there is room "
								 "for");

void exec_record_write(struct sock *s)
{
	struct exec_record *k = stream_exec_record(s->stream);

	*k = (struct exec_record){
		.magic = RECORD_MAGIC,
		.mode = (uint16_t)s->opts.mode,
		.way = (uint8_t)s->way,
		.start = (uint8_t)sock_start(s),
		.accepted = s->accepted,
		.mode_set = s->opts.mode_set,
		.shut = __atomic_load_n(&s->shut, __ATOMIC_RELAXED),
		.nodelay = s->option.nodelay,
		.cork = s->option.cork,
		.acked = __atomic_load_n(&s->acked, __ATOMIC_RELAXED),
		.peer_len = base_min(s->peer_len, (socklen_t)sizeof(k->peer)),
	};
	memcpy(k->name, &s->name, sizeof(k->name));
	memcpy(k->peer, &s->peer, sizeof(k->peer));
}

/* Can it be how far a connection is, of a server's or of a client's? */
static bool start_is_of(uint8_t start, bool accepted)
{
	if (start == SOCK_START_UNDECIDED || start == SOCK_START_SPOKEN)
		return accepted;
	return start == SOCK_START_OPEN || (start == SOCK_START_CONNECTING && !accepted);
}

/* A stream that nobody handed over, as when a program was executed behind our back, has none */
void exec_record_read(struct sock *s)
{
	struct exec_record k;

	memcpy(&k, stream_exec_record(s->stream), sizeof(k));
	if (k.magic != RECORD_MAGIC)
		k = (struct exec_record){ .mode = CONFIG_USE_DDP };
	s->opts.mode = k.mode == CONFIG_USE_AUTO ? CONFIG_USE_AUTO : CONFIG_USE_DDP;
	s->way = k.way <= CONNECT_ASK ? k.way : CONNECT_PLAIN;
	s->accepted = k.accepted & 1;
	if (start_is_of(k.start, s->accepted))
		sock_start_set(s, k.start);
	s->opts.mode_set = k.mode_set & 1;
	s->shut = k.shut & 3;
	s->option.nodelay = k.nodelay & 1;
	s->option.cork = k.cork & 1;
	s->acked = k.acked;
	s->peer_len = base_min(k.peer_len, (socklen_t)sizeof(k.peer));
	memcpy(&s->name, k.name, sizeof(k.name));
	memcpy(&s->peer, k.peer, sizeof(k.peer));
}

/*
 * An option that means nothing to TCP, and that every process which has the socket can read,
 * whoever it is
 */
void exec_record_mark(int fd, bool on)
{
	int value = on;

	libc.setsockopt(fd, IPPROTO_IP, IP_RECVORIGDSTADDR, &value, sizeof(value));
}

bool exec_record_is_marked(int fd)
{
	return base_sock_number(fd, IPPROTO_IP, IP_RECVORIGDSTADDR) > 0;
}

struct search {
	uint64_t cookie;
	struct sock *found;
};

static void search_one(int fd, struct fdent *ent, void *ctx)
{
	struct search *search = ctx;
	struct sock *s = sock_of_entry(ent);

	if (search->found || !s || s->cookie != search->cookie || sock_role(s) != SOCK_STREAM_ON)
		return;
	fdtab_hold(ent);
	search->found = s;
}

struct sock *exec_record_find(uint64_t cookie)
{
	struct search search = { cookie, NULL };

	if (cookie && __atomic_load_n(&fdtab_streams, __ATOMIC_RELAXED))
		fdtab_each(search_one, &search);
	return search.found;
}

static int number_add(struct sock *s, int fd)
{
	int err;

	if (sock_of_entry(fdtab_peek(fd)) == s)
		return 0;
	if (!fdtab_number_get(&s->ent))
		return -EBADF;
	err = sock_own(s);
	tmp_cloexec_forget(fd);
	if (!err)
		err = fdtab_set(fd, &s->ent);
	if (err)
		fdtab_number_put(&s->ent);
	return err;
}

static enum config_reason reason_of(int err)
{
	switch (err) {
	case -EACCES:
		return CONFIG_REASON_OTHER_USER;
	case -EXDEV:
		return CONFIG_REASON_NOT_OWNER;
	case -ENOENT:
		return CONFIG_REASON_CLOSED;
	case -ENODEV:
		return CONFIG_REASON_PROVIDER_UNAVAILABLE;
	case -ENOMEM:
	case -EMFILE:
		return CONFIG_REASON_NO_MEMORY;
	default:
		return CONFIG_REASON_STATE_DAMAGED;
	}
}

/* Whoever calls on it is told that it is not connected */
static void put_away(int fd, int err)
{
	long flags = syscall(SYS_fcntl, fd, F_GETFD);
	int dead = (int)syscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (err != -ENOENT)
		base_err("descriptor %d is a DDP stream that cannot be used here: %s", fd,
			 config_reason_text(reason_of(err)));
	if (dead < 0) {
		syscall(SYS_close, fd);
		return;
	}
	syscall(SYS_dup3, dead, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
	base_fd_close(dead);
	plain_note(fd, reason_of(err));
	report_reason(reason_of(err), 1);
}

static int adopt_new(int fd)
{
	struct sock *s;
	int err = sock_create_adopted(fd, &s);

	if (err)
		return err;
	BASE_POINT(preload_exec_record_adopted);
	exec_record_read(s);
	err = fdtab_set(fd, &s->ent);
	if (err) {
		sock_put(s);
		return err;
	}
	base_info("descriptor %d is a DDP stream of another program's", fd);
	if (stream_shared(s->stream))
		others_come(s);
	worker_owing(s);
	return 0;
}

/* Of the copies in flight: one that has come to who had it has landed, one looked at has not */
static void landed(int fd, bool had, enum exec_record_way way)
{
	struct stream *stream = sock_stream_of_entry(fdtab_peek(fd));

	/* The worker thread may have found it to be plain */
	if (!stream)
		return;
	if (had && way == EXEC_RECORD_RECEIVED)
		stream_unshare(stream, STREAM_SHARE_FLIGHT);
	else if (!had && way == EXEC_RECORD_PEEKED)
		stream_share(stream, STREAM_SHARE_FLIGHT);
}

int exec_record_adopt(int fd, enum exec_record_way way)
{
	struct sock *have = exec_record_find(sock_cookie(fd));
	int err = have ? number_add(have, fd) : adopt_new(fd);

	if (!err)
		landed(fd, have, way);
	if (err == -ENOENT && exec_record_is_marked(fd))
		err = -EACCES;
	sock_put(have);
	if (err && err != -ENOENT)
		put_away(fd, err);
	return err;
}

struct catching {
	const struct fdent *ent;
	int err;
};

static void number_put_away(int fd, struct fdent *ent, void *ctx)
{
	const struct catching *c = ctx;

	if (ent == c->ent)
		put_away(fd, c->err);
}

void exec_record_catch_up(struct sock *s, int fd)
{
	struct catching c = { .ent = &s->ent };

	if (sock_role(s) != SOCK_NEW || !exec_record_is_marked(fd))
		return;
	c.err = sock_overtake(s);
	if (c.err) {
		fdtab_each(number_put_away, &c);
		return;
	}
	others_come(s);
	worker_owing(s);
}
