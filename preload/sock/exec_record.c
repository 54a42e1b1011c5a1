/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What this process knows of a socket besides its stream, for the process that has it next.
 *
 * The kernel's socket comes by itself, and the stream is found by its cookie. What this side
 * knows besides (what the program has set and shut, and how the connection was begun) lies in the
 * stream's state. It is judged when it is read, for others may have written there.
 *
 * Sockets that carry frames are marked, so that one whose state cannot be found, for it is another
 * user's, is not taken for plain TCP.
 */
#include "preload/sock/exec_record.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bits.h"
#include "base/sockutil.h"
#include "preload/table/libc.h"

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
