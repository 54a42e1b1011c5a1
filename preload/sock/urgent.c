/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SIGURG, as the kernel sends it to the owner of a descriptor (F_SETOWN).
 *
 * The owner stands in the kernel's file, which all processes share that have the socket. It is
 * asked for when an octet has come, under the lock of what comes: whoever finds the octet there
 * finds the signal sent. A socket notes whether an owner was ever set, for then the worker thread
 * looks for input.
 */
#include "preload/sock/urgent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/guard/sandbox.h"
#include "preload/table/libc.h"

static bool owner_get(int fd, struct f_owner_ex *owner)
{
	return sandbox_may(SYS_fcntl) && !syscall(SYS_fcntl, fd, F_GETOWN_EX, owner) && owner->pid;
}

static void owner_signal(const struct f_owner_ex *owner)
{
	if (owner->type == F_OWNER_TID && sandbox_may(SYS_tkill))
		syscall(SYS_tkill, owner->pid, SIGURG);
	else if (owner->type != F_OWNER_TID && sandbox_may(SYS_kill))
		syscall(SYS_kill, owner->type == F_OWNER_PGRP ? -owner->pid : owner->pid, SIGURG);
}

void urgent_signal(void *sock)
{
	struct sock *s = sock;
	struct f_owner_ex owner;
	int saved = errno;

	if (owner_get(__atomic_load_n(&s->fd, __ATOMIC_SEQ_CST), &owner))
		owner_signal(&owner);
	errno = saved;
}

void urgent_owner_set(struct sock *s)
{
	__atomic_store_n(&s->urgent_owner, true, __ATOMIC_RELEASE);
}

void urgent_owner_find(struct sock *s)
{
	struct f_owner_ex owner;
	int saved = errno;

	if (owner_get(s->fd, &owner))
		__atomic_store_n(&s->urgent_owner, true, __ATOMIC_RELEASE);
	errno = saved;
}
