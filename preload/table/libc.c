/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libc's functions behind ours, and the place where results become errno.
 *
 * Constructors of other libraries run before ours and may call what we export: until our
 * constructor has found libc's own functions, stand-ins make the system calls. They may not
 * look the names up themselves, for the caller may be a malloc at its first call, and looking
 * up allocates.
 */
#include "preload/table/libc.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

long libc_result(long result)
{
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

void *libc_pointer(long result)
{
	if (result >= 0)
		return (void *)result;
	errno = (int)-result;
	return NULL;
}

bool libc_find(const char *name, void *function)
{
	void *real = dlsym(RTLD_NEXT, name);

	if (real)
		memcpy(function, &real, sizeof(real));
	return real;
}

long libc_early_pselect(int n, fd_set *in, fd_set *out, fd_set *except,
			const struct timespec *timeout, const sigset_t *mask)
{
	struct {
		const sigset_t *mask;
		size_t size;
	} sigmask = { mask, _NSIG / 8 };
	struct timespec left = { 0 };

	if (timeout)
		left = *timeout;
	return syscall(SYS_pselect6, n, in, out, except, timeout ? &left : NULL, &sigmask);
}

void libc_init(void)
{
	for (unsigned int i = 0; i < LIBC_NAMES; i++)
		if (!libc_find(libc_names[i].name, (char *)&libc + libc_names[i].at))
			base_debug("libc has no %s", libc_names[i].name);
}
