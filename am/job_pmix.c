/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Jobs under a launcher that speaks PMIx: mpirun, srun --mpi=pmix, prterun.
 *
 * The launcher has the console, the exit codes and the killing; ranks are told by PMIx, and
 * collectives are a put, a fence that collects, and a get of each rank's data. Fences do not
 * poll: a thread waits in one while the caller serves its endpoint.
 *
 * A good end is one for all, and leaves them time to flush what they printed, which PMIx's abort
 * does not. It is published, and every rank has a look-up under way that is answered then. Slurm
 * does not publish; it passes an event on, to the ranks of the same machine. To Open MPI's mpirun
 * an event is no way: version 4.1 hangs of it.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <pmix.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "am/bundle.h"
#include "am/env.h"
#include "am/job.h"
#include "am/job_address.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/rand.h"

/*
 * The library is loaded when a launcher asks for it and not before: programs that are started
 * otherwise need not have it.
 */
#define PMIX_CALLS(x)                                                                    \
	x(Abort) x(Commit) x(Fence) x(Finalize) x(Get) x(Info_load) x(Init) x(Lookup_nb) \
		x(Notify_event) x(Publish) x(Put) x(Register_event_handler) x(Value_destruct)

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

#define END_EVENT (PMIX_EXTERNAL_ERR_BASE - 0xA2)

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
	base_eventfd_notify(f->done_fd);
	return NULL;
}

/* The thread that leaves has closed PMIx behind us: this one only waits for the end. */
static int held_if_failed(int ret)
{
	while (ret < 0 && __atomic_load_n(&am_job.ending, __ATOMIC_ACQUIRE)) /* with end_claim's */
		pause();
	return ret;
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
	} else {
		base_err("am: no thread to wait for the other ranks: %s", strerror(-ret));
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
	return held_if_failed(ret);
}

static int pmix_barrier(void)
{
	return held_if_failed(fence(false));
}

/* One thread of a rank leaves: the program's by its call, or the one that heard of another's. */
static bool end_claim(void)
{
	return !__atomic_exchange_n(&am_job.ending, true,
				    __ATOMIC_ACQ_REL); /* with held_if_failed's */
}

/* The thread that comes second is ended by the first one's leaving. */
static void leave(void)
{
	while (!end_claim())
		pause();
	pmix.Finalize(NULL, 0);
	am_job_leave(0);
}

static bool heard;

/* A rank that polls no more, for as long as it may. */
static void *leave_late(void *unused)
{
	uint64_t ns = am_job.exit_ns;

	usleep((useconds_t)(ns % BASE_NS_PER_S / BASE_NS_PER_US));
	for (ns /= BASE_NS_PER_S; ns; ns--)
		sleep(1);
	leave();
	return NULL;
}

/* On PMIx's own thread, which must not close it. */
static void end_heard(void)
{
	sigset_t all, old;
	pthread_t thread;
	int err;

	if (__atomic_exchange_n(&heard, true, __ATOMIC_ACQ_REL)) /* with itself, and at_exit's */
		return;
	am_job_end_heard(leave);
	if (am_job.exit_ns == BASE_NEVER)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, leave_late, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		base_err("am: no thread to end a rank that does not poll: %s", strerror(err));
	else
		pthread_detach(thread);
}

/* A rank that returns from main after a good end: the launcher takes it for lost otherwise. */
static void at_exit(void)
{
	if (__atomic_load_n(&heard, __ATOMIC_ACQUIRE) && end_claim()) /* with end_heard's */
		pmix.Finalize(NULL, 0);
}

static void end_looked_up(pmix_status_t status, pmix_pdata_t *data, size_t n, void *unused)
{
	if (status == PMIX_SUCCESS && n > 0)
		end_heard();
}

static void end_event(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t *info,
		      size_t n, pmix_info_t *results, size_t num_results,
		      pmix_event_notification_cbfunc_fn_t done, void *arg)
{
	if (done)
		done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
	end_heard();
}

static void info_range(pmix_info_t *info)
{
	pmix_data_range_t range = PMIX_RANGE_SESSION;

	PMIX_INFO_CONSTRUCT(info);
	PMIX_INFO_LOAD(info, PMIX_RANGE, &range, PMIX_DATA_RANGE);
}

static char end_key[PMIX_MAX_NSLEN + 16];

/* Which of the two the launcher can do, it says of each by itself. */
static void end_listen(void)
{
	pmix_status_t code = END_EVENT;
	char *keys[] = { end_key, NULL };
	pmix_info_t info[2];
	int one = 1;

	snprintf(end_key, sizeof(end_key), "amudp.end.%s", self.nspace);
	info_range(&info[0]);
	PMIX_INFO_CONSTRUCT(&info[1]);
	PMIX_INFO_LOAD(&info[1], PMIX_WAIT, &one, PMIX_INT);
	pmix.Register_event_handler(&code, 1, NULL, 0, end_event, NULL, NULL);
	pmix.Lookup_nb(keys, info, 2, end_looked_up, NULL);
}

static void end_publish(void)
{
	pmix_info_t info[2];
	uint32_t code = 0;
	bool yes = true;

	info_range(&info[0]);
	PMIX_INFO_CONSTRUCT(&info[1]);
	PMIX_INFO_LOAD(&info[1], end_key, &code, PMIX_UINT32);
	if (pmix.Publish(info, 2) != PMIX_ERR_NOT_SUPPORTED)
		return;
	/* by default Slurm itself hears every event, and kills the job */
	PMIX_INFO_LOAD(&info[1], PMIX_EVENT_NON_DEFAULT, &yes, PMIX_BOOL);
	pmix.Notify_event(END_EVENT, &self, PMIX_RANGE_NAMESPACE, &info[1], 1, NULL, NULL);
}

/* A bad end is the launcher's, which kills the others. */
static void __attribute__((noreturn)) pmix_end(int code)
{
	while (!end_claim())
		am_job_wait_fd(-1);
	if (code == 0) {
		end_publish();
		pmix.Finalize(NULL, 0);
	} else {
		pmix.Abort(code, "AMUDP_SPMDExit", NULL, 0);
	}
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
	int ret = library_load();

	if (ret < 0)
		return ret;
	if (pmix.Init(&self, NULL, 0) != PMIX_SUCCESS)
		return -EIO;
	am_job.rank = (int)self.rank;
	am_job.ops = &pmix_ops;
	if (am_job_end_prepare() < 0 || atexit(at_exit) != 0)
		return -ENOMEM;
	end_listen();
	ret = size_get();
	if (ret == 0)
		ret = nonce_agree();
	return ret < 0 ? ret : am_address_of_worker(&am_job.address);
}
