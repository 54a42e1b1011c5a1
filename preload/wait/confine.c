/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections whose process gives up most system calls.
 *
 * read() and write() have no MSG_DONTWAIT, so the file itself must not block; and the file may be
 * that of several processes. What its program has set is therefore record beside it, and every
 * process answers F_GETFL by that and waits by it.
 *
 * The peer's answer to a Request, or the Request, cannot be looked for any more: it is waited
 * for, as long as it would be anyway. What is not up then is plain TCP, or was never to be.
 */
#include "preload/wait/confine.h"

#include <errno.h>
#include <fcntl.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "preload/sock/life.h"
#include "preload/sock/param.h"
#include "preload/sock/sock.h"
#include "preload/wait/sock_io.h"
#include "preload/wait/wait.h"

/* What the program believes of the file's O_NONBLOCK */
enum { FILE_AS_IS, FILE_BLOCKS, FILE_DOES_NOT };

/* Atomic; the last word of what the stream keeps for us, where all processes see it */
static uint32_t *file_word(const struct sock *s)
{
	char *record = stream_exec_record(s->stream);

	return (uint32_t *)(void *)(record + STREAM_EXEC_RECORD - sizeof(uint32_t));
}

static uint32_t file_of(const struct sock *s)
{
	return __atomic_load_n(file_word(s), __ATOMIC_ACQUIRE);
}

static void file_note(struct sock *s, bool nonblock)
{
	__atomic_store_n(file_word(s), nonblock ? FILE_DOES_NOT : FILE_BLOCKS, __ATOMIC_RELEASE);
	sock_waits_changed(s);
}

bool confine_is_nonblock(const struct sock *s)
{
	uint32_t file = file_of(s);

	return file ? file == FILE_DOES_NOT : base_sock_is_nonblock(stream_fd(s->stream));
}

uint64_t confine_timeout(const struct sock *s, int option)
{
	if (!__atomic_load_n(&s->confined.on, __ATOMIC_ACQUIRE))
		return base_sock_timeout(stream_fd(s->stream), option);
	return option == SO_RCVTIMEO ? s->confined.timeout_in : s->confined.timeout_out;
}

long confine_flags_get(const struct sock *s)
{
	long flags = file_of(s) ? libc_try(libc.fcntl(stream_fd(s->stream), F_GETFL, 0)) : 0;

	if (!file_of(s))
		return CALL_THEIRS;
	return flags < 0 || file_of(s) == FILE_DOES_NOT ? flags : flags & ~O_NONBLOCK;
}

long confine_flags_set(struct sock *s, int flags)
{
	long err;

	if (!file_of(s))
		return CALL_THEIRS;
	err = libc_try(libc.fcntl(stream_fd(s->stream), F_SETFL, flags | O_NONBLOCK));
	if (!err)
		file_note(s, flags & O_NONBLOCK);
	return err;
}

long confine_nonblock_set(struct sock *s, bool on)
{
	if (!file_of(s))
		return CALL_THEIRS;
	file_note(s, on);
	return 0;
}

/* As long as a server that speaks first waits, or whoever will have DDP or nothing */
static uint64_t start_timeout(const struct sock *s)
{
	if (s->accepted && s->opts.mode == CONFIG_USE_AUTO)
		return sock_grace(s);
	return sock_config.start ? sock_config.start : BASE_NEVER;
}

/* Brings start-up to an end: is it up? */
static bool settle(struct sock *s)
{
	uint64_t deadline = base_deadline(base_now(), start_timeout(s));
	int err;

	if (sock_progress(s) == -EAGAIN)
		wait_levels(s, STREAM_STARTED, deadline);
	err = sock_progress(s);
	if (err == -EAGAIN && s->opts.mode == CONFIG_USE_AUTO)
		sock_give_back(s, CONFIG_REASON_SANDBOXED);
	return !err;
}

void confine(struct sock *s)
{
	int fd;

	if (s->confined.on || !settle(s))
		return;
	fd = stream_fd(s->stream);
	s->confined.timeout_in = base_sock_timeout(fd, SO_RCVTIMEO);
	s->confined.timeout_out = base_sock_timeout(fd, SO_SNDTIMEO);
	if (!file_of(s)) {
		file_note(s, base_sock_is_nonblock(fd));
		if (base_fd_set_nonblock(fd, true))
			base_err("a call on descriptor %d may wait, as it cannot be made "
				 "non-blocking",
				 s->fd);
	}
	__atomic_store_n(&s->confined.on, true, __ATOMIC_RELEASE);
}
