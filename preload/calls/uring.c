/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * liburing's functions that make a ring.
 *
 * liburing makes its system calls by instructions of its own, so syscall() does not see them. But
 * programs that use it as a shared object call these functions by their names, and so does liburing
 * itself for a ring of its own (io_uring_get_probe()). They answer as io_uring_setup() does by
 * syscall() (preload/calls/limit.h).
 *
 * liburing may be loaded late, and for one object alone, or an object may have it inside. Then it
 * does not stand behind us in the order in which names are looked up, and is found by the object
 * that called.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "preload/calls/limit.h"

#define EXPORT __attribute__((visibility("default")))

struct io_uring;
struct io_uring_params;

int wrap_queue_init(unsigned int entries, struct io_uring *ring,
		    unsigned int flags) __asm__("io_uring_queue_init") EXPORT;
int wrap_queue_init_params(unsigned int entries, struct io_uring *ring,
			   struct io_uring_params *p) __asm__("io_uring_queue_init_params") EXPORT;
int wrap_queue_init_mem(unsigned int entries, struct io_uring *ring, struct io_uring_params *p,
			void *buf, size_t len) __asm__("io_uring_queue_init_mem") EXPORT;
int wrap_setup(unsigned int entries, struct io_uring_params *p) __asm__("io_uring_setup") EXPORT;

/* Where the arguments end: who called, to find what that object would have called */
#define CALLER 5
#define CALL(...)                                                         \
	{                                                                 \
		__VA_ARGS__, [CALLER] = (long)__builtin_return_address(0) \
	}

static void *find_in(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD), *real;

	if (!handle)
		return NULL;
	real = dlsym(handle, name);
	/* The program has it open */
	dlclose(handle);
	return real;
}

static int find(const char *name, const long *a, void *function)
{
	void *real = dlsym(RTLD_NEXT, name);
	Dl_info caller;

	if (!real && dladdr((void *)a[CALLER], &caller))
		real = find_in(caller.dli_fname, name);
	if (!real)
		real = find_in("liburing.so.2", name);
	if (!real)
		return -ENOSYS;
	memcpy(function, &real, sizeof(real));
	return 0;
}

static long queue_init(const long *a)
{
	int (*real)(unsigned int entries, struct io_uring *ring, unsigned int flags);
	int err = find("io_uring_queue_init", a, &real);

	return err ? err : real((unsigned int)a[0], (struct io_uring *)a[1], (unsigned int)a[2]);
}

static long queue_init_params(const long *a)
{
	int (*real)(unsigned int entries, struct io_uring *ring, struct io_uring_params *p);
	int err = find("io_uring_queue_init_params", a, &real);

	return err ? err
		   : real((unsigned int)a[0], (struct io_uring *)a[1],
			  (struct io_uring_params *)a[2]);
}

static long queue_init_mem(const long *a)
{
	int (*real)(unsigned int entries, struct io_uring *ring, struct io_uring_params *p,
		    void *buf, size_t len);
	int err = find("io_uring_queue_init_mem", a, &real);

	return err ? err
		   : real((unsigned int)a[0], (struct io_uring *)a[1],
			  (struct io_uring_params *)a[2], (void *)a[3], (size_t)a[4]);
}

static long setup(const long *a)
{
	int (*real)(unsigned int entries, struct io_uring_params *p);
	int err = find("io_uring_setup", a, &real);

	return err ? err : real((unsigned int)a[0], (struct io_uring_params *)a[1]);
}

int wrap_queue_init(unsigned int entries, struct io_uring *ring, unsigned int flags)
{
	const long a[] = CALL((long)entries, (long)ring, (long)flags);

	return (int)limit_uring(queue_init, a);
}

int wrap_queue_init_params(unsigned int entries, struct io_uring *ring, struct io_uring_params *p)
{
	const long a[] = CALL((long)entries, (long)ring, (long)p);

	return (int)limit_uring(queue_init_params, a);
}

int wrap_queue_init_mem(unsigned int entries, struct io_uring *ring, struct io_uring_params *p,
			void *buf, size_t len)
{
	const long a[] = CALL((long)entries, (long)ring, (long)p, (long)buf, (long)len);

	return (int)limit_uring(queue_init_mem, a);
}

int wrap_setup(unsigned int entries, struct io_uring_params *p)
{
	const long a[] = CALL((long)entries, (long)p);

	return (int)limit_uring(setup, a);
}
