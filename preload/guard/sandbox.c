/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Life behind a seccomp filter.
 *
 * A filter may end the process for a call that it does not know, so none is tried: the program's
 * filters are copied before they stand, and asked (preload/guard/filter.c). What they say of a
 * number is kept, unless they go by arguments too. As every system call of our own passes one
 * function (preload/calls/raw.c), what is forbidden fails there with EPERM, and the parts below
 * need know no more of sandboxes than that: octets then go by read() and write(), sleeps by poll()
 * (llp/tcp.c, base/sockutil.c), and what cannot be asked any more has been asked before
 * (preload/wait/confine.c).
 *
 * A filter is a thread's, and its copy counts for the whole process: a connection is no one
 * thread's affair.
 */
#include "preload/guard/sandbox.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <linux/audit.h>

#include "base/bits.h"
#include "base/map.h"
#include "preload/guard/filter.h"
#include "preload/table/user_iov.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

#define NUMBERS 512

struct sandbox_filter {
	struct sandbox_filter *older;
	size_t size;
	unsigned int n;
	struct sock_filter program[];
};

enum verdict { UNKNOWN, LETS, DENIES, LOOKS };

bool sandbox_on;
static struct sandbox_filter *filters; /* atomic: the newest */
static uint8_t verdicts[NUMBERS];      /* atomic: enum verdict, by the number of a call */

/* Do all of them let it through? *@looks: one went by an argument */
static bool ask(const struct sandbox_filter *f, long n, const long *a, bool *looks)
{
	struct seccomp_data call = { .nr = (int)n, .arch = ARCH };
	bool lets = true;

	memcpy(call.args, a, sizeof(call.args));
	*looks = false;
	for (; f; f = f->older) {
		bool one;

		lets &= filter_lets(filter_run(f->program, f->n, &call, &one));
		*looks |= one;
	}
	return lets;
}

bool sandbox_lets(long n, const long *a)
{
	bool kept = n >= 0 && n < NUMBERS, lets, looks;
	enum verdict v = kept ? __atomic_load_n(&verdicts[n], __ATOMIC_RELAXED) : UNKNOWN;

	if (v != UNKNOWN && v != LOOKS)
		return v == LETS;
	lets = ask(__atomic_load_n(&filters, __ATOMIC_ACQUIRE), n, a, &looks);
	v = looks ? LOOKS : lets ? LETS : DENIES;
	if (kept)
		__atomic_store_n(&verdicts[n], v, __ATOMIC_RELAXED);
	return lets;
}

bool sandbox_may(long n)
{
	return !__atomic_load_n(&sandbox_on, __ATOMIC_RELAXED) || sandbox_lets(n, (long[6]){ 0 });
}

/* What octets and sleeps are made of outside of a sandbox */
static const short whole[] = { SYS_sendmsg, SYS_recvmsg, SYS_ppoll, SYS_fcntl, SYS_getsockopt };
/* And start-up, besides */
static const short begin[] = { SYS_setsockopt, SYS_recvfrom, SYS_ioctl, SYS_getsockname };
/* Without these there is no stream */
static const short least[] = { SYS_read, SYS_write, SYS_futex };

static bool lets_call(const struct sandbox_filter *f, long n)
{
	bool looks;

	return ask(f, n, (long[6]){ 0 }, &looks);
}

static bool lets_all(const struct sandbox_filter *f, const short *calls, size_t n)
{
	bool lets = true;

	for (size_t i = 0; i < n && lets; i++)
		lets = lets_call(f, calls[i]);
	return lets;
}

static bool lets_poll(const struct sandbox_filter *f)
{
	bool lets = lets_call(f, SYS_ppoll);

#ifdef SYS_poll
	lets |= lets_call(f, SYS_poll);
#endif
	return lets;
}

bool sandbox_may_begin(void)
{
	const struct sandbox_filter *f = __atomic_load_n(&filters, __ATOMIC_ACQUIRE);

	if (!f)
		return true;

	return lets_all(f, whole, base_array_size(whole)) &&
	       lets_all(f, begin, base_array_size(begin));
}

/* The kernel tells of a program that is none; then there is nothing to stand behind */
int sandbox_prepare(const void *program, struct sandbox_filter **out, bool *serves, bool *is_whole)
{
	const struct sock_fprog *p = program;
	struct sandbox_filter *f;
	size_t size;
	int err;

	if (user_iov_wild(p, sizeof(*p)) || user_iov_wild(p->filter, p->len * sizeof(*p->filter)) ||
	    !p->len)
		return -EFAULT;
	size = sizeof(*f) + p->len * sizeof(*p->filter);
	err = base_map_create(size, (void **)&f);
	if (err)
		return err;
	f->size = size;
	f->n = p->len;
	f->older = __atomic_load_n(&filters, __ATOMIC_ACQUIRE);
	memcpy(f->program, p->filter, p->len * sizeof(*p->filter));
	*serves = lets_all(f, least, base_array_size(least)) && lets_poll(f);
	*is_whole = lets_all(f, whole, base_array_size(whole));
	*out = f;
	return 0;
}

static void forget(void)
{
	for (unsigned int i = 0; i < NUMBERS; i++)
		__atomic_store_n(&verdicts[i], UNKNOWN, __ATOMIC_RELAXED);
}

/* Of two threads that confine themselves at the same time none loses its filter */
void sandbox_commit(struct sandbox_filter *f)
{
	while (!__atomic_compare_exchange_n(&filters, &f->older, f, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE))
		;
	forget();
	__atomic_store_n(&sandbox_on, true, __ATOMIC_RELEASE);
}

/* Who is asking it may go on to; so it stays where it is, and lets everything through */
void sandbox_revert(struct sandbox_filter *f)
{
	static const struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

	f->program[0] = all;
	forget();
}

void sandbox_drop(struct sandbox_filter *f)
{
	base_map_destroy(f, f->size);
}
