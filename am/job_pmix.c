/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Jobs under a launcher that speaks PMIx: mpirun, srun --mpi=pmix, prterun.
 *
 * The launcher has the console, the exit codes and the killing; ranks are told by PMIx, and
 * collectives are a put, a fence that collects, and a get of each rank's data. Fences do not
 * poll: a thread waits in one while the caller serves its endpoint.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <pmix.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "am/bundle.h"
#include "am/env.h"
#include "am/job.h"
#include "base/bits.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/rand.h"

/*
 * The library is loaded when a launcher asks for it and not before: programs that are started
 * otherwise need not have it.
 */
#define PMIX_CALLS(x) \
	x(Abort) x(Commit) x(Fence) x(Finalize) x(Get) x(Info_load) x(Init) x(Put) x(Value_destruct)

static struct {
#define MEMBER(name) __typeof__(&PMIx_##name) name;
	PMIX_CALLS(MEMBER)
#undef MEMBER
} pmix;

/* PMIx's own macros call these two by name. */
#define PMIx_Info_load pmix.Info_load
#define PMIx_Value_destruct pmix.Value_destruct

static int library_load(void)
{
	void *library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL);

	if (!library)
		library = dlopen(AM_PMIX_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		base_err("am: a launcher with PMIx, but no library: %s", dlerror());
		return -ELIBACC;
	}
#define LOOK_UP(name)                                         \
	*(void **)&pmix.name = dlsym(library, "PMIx_" #name); \
	if (!pmix.name)                                       \
		return -ELIBACC;
	PMIX_CALLS(LOOK_UP)
#undef LOOK_UP
	return 0;
}

static pmix_proc_t self;
static uint32_t serial; /* of collectives: every put has a key of its own */

bool am_pmix_is(void)
{
	return getenv("PMIX_RANK") && getenv("PMIX_NAMESPACE");
}

static void everybody(pmix_proc_t *all)
{
	PMIX_PROC_CONSTRUCT(all);
	PMIX_LOAD_NSPACE(all->nspace, self.nspace);
	all->rank = PMIX_RANK_WILDCARD;
}

struct fence {
	int done_fd;
	bool collect;
	pmix_status_t status;
};

static void *fence_wait(void *arg)
{
	struct fence *f = arg;
	pmix_proc_t all;
	pmix_info_t info;

	everybody(&all);
	PMIX_INFO_CONSTRUCT(&info);
	PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &f->collect, PMIX_BOOL);
	f->status = pmix.Fence(&all, 1, &info, 1);
	base_eventfd_ring(f->done_fd);
	return NULL;
}

static int fence(bool collect)
{
	struct fence f = { .collect = collect };
	pthread_t thread;
	int ret = base_eventfd_create(&f.done_fd);

	if (ret < 0)
		return ret;
	ret = -pthread_create(&thread, NULL, fence_wait, &f);
	if (ret == 0) {
		am_job_wait_fd(f.done_fd);
		pthread_join(thread, NULL);
		ret = f.status == PMIX_SUCCESS ? 0 : -EIO;
	}
	base_fd_close(f.done_fd);
	return ret;
}

static int pmix_put(const char *key, const void *p, size_t n)
{
	pmix_value_t value = { .type = PMIX_BYTE_OBJECT };

	value.data.bo.bytes = (char *)p;
	value.data.bo.size = n;
	if (pmix.Put(PMIX_GLOBAL, key, &value) != PMIX_SUCCESS)
		return -EIO;
	return pmix.Commit() == PMIX_SUCCESS ? 0 : -EIO;
}

static int pmix_get(int rank, const char *key, void *p, size_t n)
{
	pmix_value_t *value;
	pmix_proc_t from;
	int ret = 0;

	PMIX_PROC_CONSTRUCT(&from);
	PMIX_LOAD_PROCID(&from, self.nspace, (pmix_rank_t)rank);
	if (pmix.Get(&from, key, NULL, 0, &value) != PMIX_SUCCESS)
		return -EIO;
	if (value->type == PMIX_BYTE_OBJECT && value->data.bo.size == n)
		memcpy(p, value->data.bo.bytes, n);
	else
		ret = -EPROTO;
	PMIX_VALUE_RELEASE(value);
	return ret;
}

static int pmix_gather(const void *source, void *dest, size_t len)
{
	char key[32];
	int i, ret;

	snprintf(key, sizeof(key), "amudp.%u", serial++);
	ret = pmix_put(key, source, len);
	if (ret == 0)
		ret = fence(true);
	for (i = 0; i < am_job.size && ret == 0; i++)
		ret = pmix_get(i, key, (uint8_t *)dest + (size_t)i * len, len);
	return ret;
}

static int pmix_barrier(void)
{
	return fence(false);
}

/* A good end is the launcher's to see when all have left; a bad one ends the others. */
static void __attribute__((noreturn)) pmix_end(int code)
{
	if (code == 0)
		pmix.Finalize(NULL, 0);
	else
		pmix.Abort(code, "AMUDP_SPMDExit", NULL, 0);
	am_job_leave(code);
}

static const struct am_job_ops pmix_ops = {
	.gather = pmix_gather,
	.barrier = pmix_barrier,
	.end = pmix_end,
};

static int size_get(void)
{
	pmix_value_t *value;
	pmix_proc_t all;

	everybody(&all);
	if (pmix.Get(&all, PMIX_JOB_SIZE, NULL, 0, &value) != PMIX_SUCCESS)
		return -EIO;
	am_job.size = (int)value->data.uint32;
	PMIX_VALUE_RELEASE(value);
	return am_job.size > 0 ? 0 : -EPROTO;
}

/* Nobody hands out a secret here, so the ranks agree on rank 0's. */
static int nonce_agree(void)
{
	struct {
		uint64_t nonce;
		uint64_t id;
	} own, *all = calloc((size_t)am_job.size, sizeof(*all));
	int ret = all ? base_rand_u64(&own.nonce) : -ENOMEM;

	own.id = (uint64_t)(uint32_t)gethostid() << 32 | ((uint32_t)getpid() & 0xFFFF);
	if (ret == 0)
		ret = pmix_gather(&own, all, sizeof(own));
	if (ret == 0) {
		am_job.nonce = all[0].nonce;
		am_job.id = all[0].id;
	}
	free(all);
	return ret;
}

int am_pmix_join(void)
{
	const char *ip = am_env_get("WORKERIP");
	int ret = library_load();

	if (ret < 0)
		return ret;
	if (pmix.Init(&self, NULL, 0) != PMIX_SUCCESS)
		return -EIO;
	am_job.rank = (int)self.rank;
	am_job.ops = &pmix_ops;
	ret = size_get();
	if (ret == 0)
		ret = nonce_agree();
	if (ip && inet_addr(ip) != INADDR_NONE)
		am_job.address = inet_addr(ip);
	return ret;
}
