/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For programs that have the interposer inside: the sanitizers' setrlimit() is the kernel's.
 *
 * They call it before they are ready for anything that is instrumented, as the interposer's is.
 * `-Wl,--wrap=setrlimit` makes this of it; so it may not be instrumented, nor call what is.
 */
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#ifdef __clang__
#define BARE __attribute__((disable_sanitizer_instrumentation))
#else
#define BARE
#endif

int __wrap_setrlimit(int resource, const struct rlimit *limit);

BARE int __wrap_setrlimit(int resource, const struct rlimit *limit)
{
	register long old __asm__("r10") = 0;
	long r = SYS_prlimit64;

	__asm__ volatile("syscall"
			 : "+a"(r)
			 : "D"(0l), "S"((long)resource), "d"(limit), "r"(old)
			 : "rcx", "r11", "memory");
	return r ? -1 : 0;
}
