/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls behind which a process may not come to the folder of the states any more: those that
 * make it another user for good, and chroot(). The names that its connections have there would
 * stay for ever, so they go before, unless the kernel is about to refuse the call.
 *
 * A guest (preload/table/fork_gen.c) has its parent's memory, and leaves its parent's names alone:
 * the parent comes to them.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/process.h"
#include "preload/table/fork_gen.h"
#include "preload/table/libc.h"
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

/* Not where that cannot be known: then the names are taken away in vain, if at all */
static bool has_not(unsigned int capability)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	int saved = errno;
	bool known = !base_process_confined() && !syscall(SYS_capget, &head, data);

	errno = saved;
	return known && !(data[capability / 32].effective & 1u << capability % 32);
}

/* Who may not become whoever it likes may be one of these three, and exchange them */
static bool is_refused(const struct users *now, uid_t user)
{
	return user != now->real && user != now->effective && user != now->saved &&
	       has_not(CAP_SETUID);
}

/* The process is one of these, or may become it again */
static bool is_one_of(struct stream_place place, const void *ctx)
{
	const struct users *users = ctx;

	return place.user == users->real || place.user == users->effective ||
	       place.user == users->saved;
}

/* Root may become whoever it likes */
static void names_drop(const struct users *now, const struct users *next)
{
	if (fork_gen_is_guest() || !next->real || !next->effective || !next->saved)
		return;
	if (!is_refused(now, next->real) && !is_refused(now, next->effective) &&
	    !is_refused(now, next->saved))
		stream_names_drop(is_one_of, next);
}

long call_setuid(uid_t user)
{
	struct users now = users_now(), next = now;

	if (!has_not(CAP_SETUID))
		next.real = next.saved = user;
	next.effective = user;
	names_drop(&now, &next);
	return libc_try(libc.setuid(user));
}

long call_seteuid(uid_t effective)
{
	struct users now = users_now(), next = now;

	if (effective != SAME)
		next.effective = effective;
	names_drop(&now, &next);
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
	if (real != SAME || (effective != SAME && effective != now.real))
		next.saved = next.effective;
	names_drop(&now, &next);
	return libc_try(libc.setreuid(real, effective));
}

long call_setresuid(uid_t real, uid_t effective, uid_t saved)
{
	struct users now = users_now(), next = now;

	if (real != SAME)
		next.real = real;
	if (effective != SAME)
		next.effective = effective;
	if (saved != SAME)
		next.saved = saved;
	names_drop(&now, &next);
	return libc_try(libc.setresuid(real, effective, saved));
}

static bool is_under(struct stream_place place, const void *root)
{
	return stream_place_is_under(place, root);
}

/* What is no folder at all, stream_place_is_under() finds out */
static bool is_no_root(const char *path)
{
	int saved = errno;
	bool refused =
		has_not(CAP_SYS_CHROOT) ||
		(syscall(SYS_faccessat2, AT_FDCWD, path, X_OK, AT_EACCESS) && errno == EACCES);

	errno = saved;
	return refused;
}

long call_chroot(const char *path)
{
	if (!fork_gen_is_guest() && !is_no_root(path))
		stream_names_drop(is_under, path);
	return libc_try(libc.chroot(path));
}
