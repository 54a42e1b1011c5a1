/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A library for LD_PRELOAD with which the interposer gets no thread, and the program all of its.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

typedef int create_fn(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *arg),
		      void *arg);

/* What a thread begins with tells whose it is. */
static int ours(void *(*run)(void *arg))
{
	Dl_info info;
	void *at;

	memcpy(&at, &run, sizeof(at));
	return dladdr(at, &info) && info.dli_fname && strstr(info.dli_fname, "libwarpsock");
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *id, const pthread_attr_t *attr,
							  void *(*run)(void *arg), void *arg)
{
	create_fn *create;

	*(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
	return ours(run) ? EAGAIN : create(id, attr, run, arg);
}
