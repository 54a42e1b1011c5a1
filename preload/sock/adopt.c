/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets that come from other processes, or from the program that this process was before.
 *
 * The kernel's socket comes by itself, and the stream is found by its cookie.
 */
#include "preload/sock/adopt.h"

#include <errno.h>

#include "base/log.h"
#include "base/point.h"
#include "preload/sock/catch_up.h"
#include "preload/sock/exec_record.h"
#include "preload/sock/number.h"
#include "preload/sock/others.h"
#include "preload/sock/sock.h"
#include "preload/sock/worker.h"
#include "preload/table/tmp_cloexec.h"

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
static void landed(int fd, bool had, enum sock_adopt_way way)
{
	struct stream *stream = sock_stream_of_entry(fdtab_peek(fd));

	/* The worker thread may have found it to be plain */
	if (!stream)
		return;
	if (had && way == SOCK_ADOPT_RECEIVED)
		stream_unshare(stream, STREAM_SHARE_FLIGHT);
	else if (!had && way == SOCK_ADOPT_PEEKED)
		stream_share(stream, STREAM_SHARE_FLIGHT);
}

int sock_adopt(int fd, enum sock_adopt_way way)
{
	struct sock *have = exec_record_find(sock_cookie(fd));
	int err = have ? number_add(have, fd) : adopt_new(fd);

	if (!err)
		landed(fd, have, way);
	if (err == -ENOENT && exec_record_is_marked(fd))
		err = -EACCES;
	sock_put(have);
	if (err && err != -ENOENT)
		sock_put_away(fd, err);
	return err;
}
