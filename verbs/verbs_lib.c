/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loads libibverbs and librdmacm.
 *
 * They are not linked with, because libwarp and the interposer come into every program: these
 * two would bring libnl and a file descriptor or two along, on hosts without a device, too. So
 * the kernel is asked first whether there is one, and only then they are loaded, once and for
 * good: their drivers are plug-ins that cannot be unloaded safely. A host that has none of them
 * hears of it once in each process.
 */
#include "verbs/verbs_lib.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"

#define CLASS "/sys/class/infiniband"

struct verbs_lib verbs_lib;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Lock: what became of it; before, and as long as the host has no device, EAGAIN */
static int loaded = -EAGAIN;
/* Lock: a host that had no device is asked again then, for each connect() comes by here */
#define DEVICE_POLL BASE_NS_PER_S
static uint64_t look_next;

/* Where any connect() may ask, and that takes none of the program's memory */
static bool host_has_device(void)
{
	char entries[1024] __attribute__((aligned(8)));
	long fd = syscall(SYS_openat, AT_FDCWD, CLASS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool has = false;
	long n;

	if (fd < 0)
		return false;
	while (!has && (n = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0)
		for (const struct dirent64 *e = (const void *)entries;
		     !has && (const char *)e < entries + n;
		     e = (const void *)((const char *)e + e->d_reclen))
			has = e->d_name[0] != '.';
	base_fd_close((int)fd);
	return has;
}

static void *library_open(const char *name)
{
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		base_err("verbs: %s", dlerror());
	return handle;
}

/* Pointers to functions have the form that dlsym() gives: POSIX says so, C does not */
static int calls_find(void *ibv, void *rdma)
{
	static const struct {
		bool cm;
		const char *name;
		size_t offset;
	} rows[] = {
#define VERBS_ROW(lib, name)                              \
	{ sizeof(#lib) == sizeof("rdma"), #lib "_" #name, \
	  offsetof(struct verbs_lib, lib##_##name##_call) },
		VERBS_CALLS(VERBS_ROW)
#undef VERBS_ROW
	};

	for (size_t i = 0; i < base_array_size(rows); i++) {
		void *found = dlsym(rows[i].cm ? rdma : ibv, rows[i].name);

		if (!found) {
			base_err("verbs: %s", dlerror());
			return -ENOPKG;
		}
		memcpy((char *)&verbs_lib + rows[i].offset, &found, sizeof(found));
	}
	return 0;
}

static int load(void)
{
	void *ibv = library_open("libibverbs.so.1"), *rdma;
	int err;

	if (!ibv)
		return -ENOPKG;
	rdma = library_open("librdmacm.so.1");
	if (!rdma)
		return -ENOPKG;
	err = calls_find(ibv, rdma);
	/* Before any other call; kernels from 5.12 on need nothing and say so */
	if (!err && verbs_call(ibv_fork_init)())
		base_warn("verbs: memory that is registered may move in a parent that forks");
	return err;
}

static bool may_look(void)
{
	uint64_t now = base_now();

	if (!base_deadline_passed(look_next, now))
		return false;
	look_next = base_deadline(now, DEVICE_POLL);
	return true;
}

int verbs_lib_load(void)
{
	int err;

	pthread_mutex_lock(&lock);
	if (loaded == -EAGAIN && may_look() && host_has_device())
		loaded = load();
	err = loaded == -EAGAIN ? -ENODEV : loaded;
	pthread_mutex_unlock(&lock);
	return err;
}
