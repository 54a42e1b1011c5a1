/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a socket comes to a stream of its own, loses it, and goes back to the kernel.
 *
 * The descriptor is a real TCP socket all the time, so what is not about data needs no word of
 * ours.
 */
#include "preload/sock/life.h"

#include "base/log.h"
#include "base/point.h"
#include "base/sockutil.h"
#include "preload/rules/plain.h"
#include "preload/rules/report.h"
#include "preload/sock/exec_record.h"
#include "preload/sock/info.h"
#include "preload/sock/older.h"
#include "preload/sock/others.h"
#include "preload/sock/param.h"
#include "preload/sock/provider.h"
#include "preload/sock/sets.h"
#include "preload/sock/single_flight.h"
#include "preload/sock/sock.h"
#include "preload/sock/waited.h"
#include "preload/sock/worker.h"
#include "preload/table/libc.h"

/* No other process had a stream of it, nor this one */
static bool is_fresh(const struct sock *s)
{
	return !s->streams && (s->accepted || (sock_tenure(s) != SOCK_NEW_ELSEWHERE &&
					       !exec_record_is_marked(s->fd)));
}

static int stream_make(struct sock *s, bool initiator, bool connecting, bool hold)
{
	struct stream_param param = {
		.older = s->stream,
		.fresh = is_fresh(s),
	};
	struct stream *fresh;
	int err;

	sock_param_init(&param, s);
	param.initiator = initiator;
	param.connecting = connecting;
	param.hold = hold;
	sock_param_made(&param, s);
	s->flight = (struct single_flight){ 0 };
	s->places[0] = s->places[1] = (struct spin_place){ 0 };
	option_prepare(s->fd, &s->option);
	err = stream_attach(s->fd, &param, &fresh);
	if (err)
		return err;
	exec_record_mark(s->fd, true);
	BASE_POINT(preload_sock_attached);
	older_replace(s, fresh);
	__atomic_add_fetch(&fdtab_streams, 1, __ATOMIC_RELAXED);
	s->cookie = fresh->cookie ? fresh->cookie : sock_cookie(s->fd);
	s->reported = s->said = false;
	/* A dup() meanwhile has not seen the stream */
	stream_set_fd(s->stream, __atomic_load_n(&s->fd, __ATOMIC_SEQ_CST));
	/* In this order: a set may see an edge too many, and none too few */
	sock_role_set(s, SOCK_STREAM_ON);
	__atomic_add_fetch(&s->streams, 1, __ATOMIC_ACQ_REL);
	if (s->native) {
		provider_keepalive(s);
		sets_rekey(s);
	}
	/* Who has it from before will find it */
	if (sock_tenure(s) == SOCK_NEW_ELSEWHERE) {
		exec_record_write(s);
		others_come(s);
	}
	return 0;
}

int sock_begin(struct sock *s, bool initiator, bool connecting, bool hold)
{
	/* The socket itself is connected */
	if (!s->native && provider_ops(s))
		provider_forgo(s, CONFIG_REASON_PROVIDER_UNAVAILABLE);
	return stream_make(s, initiator, connecting, hold);
}

int sock_connect(struct sock *s, bool connecting, bool hold)
{
	int err;

	sock_start_set(s, SOCK_START_CONNECTING);
	err = sock_begin(s, true, connecting, hold);
	if (err)
		sock_start_set(s, SOCK_START_NEW);
	return err;
}

void sock_drop_stream(struct sock *s)
{
	if (!s->stream)
		return;
	sock_report(s);
	sock_settle(s);
	older_destroy(s->stream);
	s->stream = NULL;
}

void sock_forget_stream(struct sock *s)
{
	if (!sock_role_set(s, SOCK_NEW))
		return;
	s->connect_told = false;
	__atomic_add_fetch(&s->streams, 1, __ATOMIC_ACQ_REL);
	worker_forget(s);
	sock_report(s);
	sock_settle(s);
	sock_start_set(s, SOCK_START_NEW);
	exec_record_mark(s->fd, false);
	s->native = NULL; /* the stream's to destroy */
	/* Who is inside must not get at what the descriptor becomes */
	stream_set_fd(s->stream, -1);
	s->shut = 0;
}

static void number_take(int fd, struct fdent *ent, void *ctx)
{
	if (ent != ctx)
		return;
	fdtab_put(fdtab_take(fd, ent, NULL));
	waited_add(fd);
}

/* What start-up has set goes back to what the program set */
void sock_give_back(struct sock *s, enum config_reason reason)
{
	if (!sock_role_set(s, SOCK_PLAIN))
		return;
	worker_forget(s);
	if (s->stream) {
		exec_record_mark(s->fd, false);
		option_restore(s->fd, &s->option);
		base_sock_set_lowat(s->fd, (int)stream_lowat(s->stream));
		/* The process may end before the worker thread has come back from it */
		stream_leave(s->stream);
	}
	if (s->shut && s->accepted)
		libc.shutdown(s->fd, s->shut - 1);
	/* Of one that spoke first it is told already */
	if (sock_start(s) != SOCK_START_SPOKEN) {
		report_plain(s->fd, reason);
		plain_note(s->fd, reason);
	}
	sets_give_back(s);
	/* A thread that sleeps for it may have overslept all that the kernel had to tell */
	sock_tell(s);
	if (sock_number(s) == SOCK_NUMBER_INTERNAL)
		fdtab_each(number_take, &s->ent);
	else
		number_take(s->fd, &s->ent, &s->ent);
}
