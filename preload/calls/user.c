/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls behind which a process may not come to the folder of the states any more: those that
 * make it another user for good, and chroot(). The names that its connections have there would
 * stay for ever, so they go before.
 *
 * A guest (preload/table/life.c) has its parent's memory, and leaves its parent's names alone: the
 * parent comes to them.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/table/libc.h"
#include "preload/table/life.h"
#include "stream/place.h"

#define SAME ((uid_t)-1)

struct users {
	uid_t real, effective, saved;
};

static struct users users_now(void)
{
	struct users now = { 0, 0, 0 };

	syscall(SYS_getresuid, &now.real, &now.effective, &now.saved);
	return now;
}

/* The process is one of these, or may become it again */
static bool is_one_of(struct stream_place place, const void *ctx)
{
	const struct users *users = ctx;

	return place.user == users->real || place.user == users->effective ||
	       place.user == users->saved;
}

/* Root may become whoever it likes */
static void names_drop(struct users next)
{
	if (!life_is_guest() && next.real && next.effective && next.saved)
		stream_names_drop(is_one_of, &next);
}

long call_setuid(uid_t user)
{
	struct users next = users_now();

	if (!next.effective)
		next.real = next.saved = user;
	next.effective = user;
	names_drop(next);
	return libc_try(libc.setuid(user));
}

long call_seteuid(uid_t effective)
{
	struct users next = users_now();

	next.effective = effective;
	names_drop(next);
	return libc_try(libc.seteuid(effective));
}

/* The saved one follows, where the kernel has it so */
long call_setreuid(uid_t real, uid_t effective)
{
	struct users now = users_now(), next = now;

	if (real != SAME)
		next.real = real;
	if (effective != SAME)
		next.effective = effective;
	if (real != SAME || next.effective != now.real)
		next.saved = next.effective;
	names_drop(next);
	return libc_try(libc.setreuid(real, effective));
}

long call_setresuid(uid_t real, uid_t effective, uid_t saved)
{
	struct users next = users_now();

	if (real != SAME)
		next.real = real;
	if (effective != SAME)
		next.effective = effective;
	if (saved != SAME)
		next.saved = saved;
	names_drop(next);
	return libc_try(libc.setresuid(real, effective, saved));
}

static bool is_under(struct stream_place place, const void *root)
{
	return stream_place_is_under(place, root);
}

long call_chroot(const char *path)
{
	if (!life_is_guest())
		stream_names_drop(is_under, path);
	return libc_try(libc.chroot(path));
}
