/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's clocks, whatever the program has in front of libc's: a library that lends it another
 * time (libfaketime) would make deadlines late, or let none ever pass.
 *
 * The kernel's own function in the process's memory (vDSO) costs no system call. It has one name
 * for each machine; where there is none, as under Valgrind, the system call answers.
 */
#include "base/clock.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"

static int (*kernel_time)(clockid_t clock, struct timespec *ts);

/* Before any thread. Until then, system calls */
__attribute__((constructor)) static void kernel_time_find(void)
{
	static const char *const names[] = { "__vdso_clock_gettime", "__kernel_clock_gettime" };
	void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD), *found = NULL;

	for (size_t i = 0; vdso && !found && i < base_array_size(names); i++)
		found = dlsym(vdso, names[i]);
	if (found)
		memcpy(&kernel_time, &found, sizeof(found));
}

uint64_t base_clock(clockid_t clock)
{
	struct timespec ts = { 0 };

	if (!kernel_time || kernel_time(clock, &ts))
		syscall(SYS_clock_gettime, clock, &ts);
	return (uint64_t)ts.tv_sec * BASE_NS_PER_S + (uint64_t)ts.tv_nsec;
}
