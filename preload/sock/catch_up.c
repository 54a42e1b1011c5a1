/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A socket that was new here, and that another process has connected: its stream is taken over
 * when this process comes to it.
 *
 * A socket whose frames this process cannot take part in is put out of reach: at its number
 * stands a new one, which has no connection, so that no byte gets among the frames. What others do
 * with it goes on.
 */
#include "preload/sock/catch_up.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fdutil.h"
#include "base/log.h"
#include "preload/rules/plain.h"
#include "preload/rules/report.h"
#include "preload/sock/exec_record.h"
#include "preload/sock/number.h"
#include "preload/sock/others.h"
#include "preload/sock/sock.h"
#include "preload/sock/worker.h"

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
void sock_put_away(int fd, int err)
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

struct catching {
	const struct fdent *ent;
	int err;
};

static void number_put_away(int fd, struct fdent *ent, void *ctx)
{
	const struct catching *c = ctx;

	if (ent == c->ent)
		sock_put_away(fd, c->err);
}

void sock_catch_up(struct sock *s, int fd)
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
