/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A job as its programs see it: start, rank, barrier, all-gather, end.
 *
 * The process that is started by hand becomes the console and never returns from
 * AMUDP_SPMDStartup; the workers it starts return from there with an endpoint on which every
 * rank is mapped. am_job_ops has the calls of our console's workers, or of the launcher's ranks.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "am/bundle.h"
#include "am/env.h"
#include "am/job.h"
#include "am/job_address.h"
#include "am/live.h"
#include "am/path.h"
#include "am/spawn.h"
#include "base/bits.h"

static tag_t tag_of(int rank)
{
	return am_job.id | (tag_t)(uint32_t)rank << 16;
}

static int depth_choose(int networkdepth)
{
	int depth = am_job.depth ? am_job.depth : networkdepth;

	if (depth <= 0)
		depth = (int)am_env_int("NETWORKDEPTH", AMUDP_DEFAULT_NETWORKDEPTH);
	return base_min(base_max(depth, 1), AMUDP_MAX_NETWORKDEPTH);
}

static int endpoint_make(eb_t *eb)
{
	en_t name;
	int ret;

	am_path_shared = true;
	AMUDP_SetUDPInterface(am_job.address);
	ret = AM_Init();
	if (ret == AM_OK)
		ret = AM_AllocateBundle(AM_SEQ, eb);
	if (ret == AM_OK)
		ret = AM_AllocateEndpoint(*eb, &am_job.endpoint, &name);
	if (ret == AM_OK)
		am_job.endpoint->freed = am_job_endpoint_forget;
	if (ret == AM_OK)
		ret = AMUDP_SetJobNonce(am_job.endpoint, am_job.nonce);
	if (ret == AM_OK)
		ret = AM_SetTag(am_job.endpoint, tag_of(am_job.rank));
	return ret;
}

/* What a rank tells the others of its endpoint. */
struct place {
	struct sockaddr_in name;
	struct am_path_missed missed;
};

static int places_gather(struct sockaddr_in *names, struct am_path_missed *missed)
{
	struct place own, *all = calloc((size_t)am_job.size, sizeof(*all));
	int i, ret = all ? 0 : -ENOMEM;

	own = (struct place){ am_job.endpoint->name, am_path_missed(am_job.endpoint) };
	if (ret == 0)
		ret = am_job.ops->gather(&own, all, sizeof(own));
	for (i = 0; ret == 0 && i < am_job.size; i++) {
		names[i] = all[i].name;
		missed[i] = all[i].missed;
	}
	free(all);
	return ret;
}

static int map_all(const struct sockaddr_in *names)
{
	int i, ret = AM_OK;

	if (am_job.size > AMUDP_INIT_NUMTRANSLATIONS)
		ret = AM_SetNumTranslations(am_job.endpoint, am_job.size);
	for (i = 0; i < am_job.size && ret == AM_OK; i++)
		ret = AM_Map(am_job.endpoint, i, names[i], tag_of(i));
	return ret;
}

/* More ranks than the processors that they may use: a poll that finds nothing must give way. */
static int oversubscription_check(const struct sockaddr_in *names)
{
	size_t size = (size_t)am_job.size;
	cpu_set_t own, *all = calloc(size, sizeof(*all));
	bool *here = calloc(size, sizeof(*here));
	size_t i;
	int ret = -ENOMEM;

	CPU_ZERO(&own);
	/* more processors than a set has bits for: enough of them */
	if (sched_getaffinity(0, sizeof(own), &own) < 0)
		memset(&own, 0xFF, sizeof(own));
	if (all && here)
		ret = am_job.ops->gather(&own, all, sizeof(own));
	for (i = 0; ret == 0 && i < size; i++)
		here[i] = names[i].sin_addr.s_addr == names[am_job.rank].sin_addr.s_addr;
	if (ret == 0)
		am_oversubscribed = am_spin_oversubscribed((uint8_t *)all, sizeof(own), here,
							   am_job.size, am_job.rank);
	free(here);
	free(all);
	return ret < 0 ? AM_ERR_RESOURCE : AM_OK;
}

static int ranks_connect(int networkdepth)
{
	size_t size = (size_t)am_job.size;
	struct sockaddr_in *names = calloc(size, sizeof(*names));
	struct am_path_missed *missed = calloc(size, sizeof(*missed));
	int ret = AM_ERR_RESOURCE;

	if (names && missed && places_gather(names, missed) == 0) {
		am_path_missed_tell(missed, am_job.size, am_job.rank);
		ret = map_all(names);
	}
	if (ret == AM_OK)
		ret = AM_SetExpectedResources(am_job.endpoint, am_job.size,
					      depth_choose(networkdepth));
	if (ret == AM_OK)
		ret = oversubscription_check(names);
	free(names);
	free(missed);
	/* nobody sends before everybody knows everybody */
	if (ret == AM_OK && am_job.ops->barrier() < 0)
		ret = AM_ERR_RESOURCE;
	return ret;
}

/* For a debugger: AMUDP_FREEZE stops every worker here until it is told to go on. */
static void freeze_wait(void)
{
	if (!am_env_bool("FREEZE", false))
		return;
	fprintf(stderr, "rank %d is process %d, and stops until it gets SIGCONT\n", am_job.rank,
		(int)getpid());
	raise(SIGSTOP);
}

static int worker_start(int networkdepth, uint64_t *networkpid, eb_t *eb, ep_t *ep)
{
	int ret;

	if (am_job.wanted >= 0 && am_job.wanted != am_job.rank)
		AMUDP_FatalErr("rank %d cannot be had: another worker has it, or the job has only "
			       "%d ranks",
			       am_job.wanted, am_job.size);
	am_live_rank = (uint32_t)am_job.rank;
	freeze_wait();
	ret = endpoint_make(eb);
	if (ret == AM_OK)
		ret = ranks_connect(networkdepth);
	if (ret != AM_OK)
		return ret;
	if (networkpid)
		*networkpid = am_job.id;
	*ep = am_job.endpoint;
	return AM_OK;
}

static void arguments_drop(int *argc, char **argv, int n)
{
	int i;

	for (i = 1; i + n <= *argc; i++)
		argv[i] = argv[i + n];
	*argc -= n;
}

/* 0: it is none, or too many */
static int size_parse(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	return *end || n < 1 || n > AMUDP_MAX_SPMDPROCS ? 0 : (int)n;
}

/* argv[1] is the number of processes; a single letter behind it chooses how they are started. */
static int arguments_take(int *argc, char **argv, struct am_master_config *config)
{
	int n = 0;

	if (!config->size) {
		config->size = *argc > 1 ? size_parse(argv[1]) : 0;
		n = 1;
		if (config->size < 1)
			return -EINVAL;
		if (!config->spawn && *argc > 2 && strlen(argv[2]) == 1 &&
		    isalpha((unsigned char)argv[2][0])) {
			config->spawn = am_spawn_find(argv[2][0]);
			if (!config->spawn)
				return -EINVAL;
			n = 2;
		}
		arguments_drop(argc, argv, n);
	}
	if (!config->spawn) {
		const char *name = am_env_get("SPAWNFN");

		config->spawn = am_spawn_find(name ? name[0] : 'S');
	}
	return config->spawn ? 0 : -EINVAL;
}

static void usage_tell(const char *program)
{
	const amudp_spawnfn_desc_t *d;

	fprintf(stderr, "usage: %s <number of processes> [letter] <arguments of the program>\n",
		program);
	for (d = AMUDP_Spawnfn_Desc; d->abbrev; d++)
		fprintf(stderr, "   %c  %s\n", d->abbrev, d->desc);
}

/* Comes back only when MASTERIP is wrong, which has been said then. */
static int console_become(struct am_master_config *config)
{
	bool local = config->spawn == AMUDP_SPMDLocalSpawn;

	if (am_address_of_console(local, &config->address) < 0)
		return AM_ERR_BAD_ARG;
	am_worker_forget();
	am_master_run(config);
}

static int master_start(int *argc, char ***argv, struct am_master_config *config)
{
	static char self[4096];
	ssize_t n;

	if (arguments_take(argc, *argv, config) < 0) {
		usage_tell((*argv)[0]);
		return AM_ERR_BAD_ARG;
	}
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n > 0)
		(*argv)[0] = self;
	config->argc = *argc;
	config->argv = *argv;
	return console_become(config);
}

/* A connection of ours that took the place of a closed one would get what the program prints. */
static void standard_streams_open(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int AMUDP_SPMDStartup(int *argc, char ***argv, int nproc, int networkdepth, amudp_spawnfn_t spawnfn,
		      uint64_t *networkpid, eb_t *eb, ep_t *ep)
{
	struct am_master_config config = { nproc, networkdepth, spawnfn, 0, NULL, 0 };
	int ret;

	if (am_job.ops)
		am_return_error(AM_ERR_RESOURCE, "once in a process");
	if (am_env_check() < 0)
		am_return_error(AM_ERR_BAD_ARG, "a variable of the environment is wrong");
	if (!argc || !argv || !eb || !ep || nproc < 0 || nproc > AMUDP_MAX_SPMDPROCS ||
	    networkdepth < 0 || networkdepth > AMUDP_MAX_NETWORKDEPTH)
		am_return_error(AM_ERR_BAD_ARG, "no place for an answer, or numbers out of range");
	standard_streams_open();
	if (am_worker_is())
		ret = am_worker_join(getenv("AMUDP_SLAVE_ARGS"));
	else if (am_pmix_is())
		ret = am_pmix_join();
	else
		return master_start(argc, argv, &config);
	if (ret < 0)
		AMUDP_FatalErr("cannot join the job at %s: %s",
			       am_pmix_is() && !am_worker_is() ? "the launcher's PMIx server"
							       : am_worker_console(),
			       strerror(-ret));
	return worker_start(networkdepth, networkpid, eb, ep);
}

int AMUDP_SPMDLaunch(int nproc, int networkdepth, amudp_spawnfn_t spawnfn, int argc, char **argv)
{
	struct am_master_config config = { nproc, networkdepth, spawnfn, argc, argv, 0 };

	if (am_env_check() < 0)
		am_return_error(AM_ERR_BAD_ARG, "a variable of the environment is wrong");
	if (nproc < 1 || nproc > AMUDP_MAX_SPMDPROCS || argc < 1 || !argv || networkdepth < 0 ||
	    networkdepth > AMUDP_MAX_NETWORKDEPTH)
		am_return_error(AM_ERR_BAD_ARG, "no program, or numbers out of range");
	standard_streams_open();
	if (!config.spawn && arguments_take(&argc, argv, &config) < 0)
		am_return_error(AM_ERR_BAD_ARG, "SPAWNFN names no spawn function");
	return console_become(&config);
}

int AMUDP_SPMDIsWorker(char **argv)
{
	return am_job.ops || am_worker_is() || am_pmix_is();
}

int AMUDP_SPMDNumProcs(void)
{
	if (!am_job.ops)
		AMUDP_FatalErr("AMUDP_SPMDNumProcs before AMUDP_SPMDStartup");
	return am_job.size;
}

int AMUDP_SPMDMyProc(void)
{
	if (!am_job.ops)
		AMUDP_FatalErr("AMUDP_SPMDMyProc before AMUDP_SPMDStartup");
	return am_job.rank;
}

int AMUDP_SPMDSetProc(int rank)
{
	if (rank < 0 || rank >= AMUDP_MAX_SPMDPROCS)
		am_return_error(AM_ERR_BAD_ARG, "no rank");
	if (am_job.ops && rank != am_job.rank)
		am_return_error(AM_ERR_RESOURCE, "before AMUDP_SPMDStartup");
	am_job.wanted = rank;
	return AM_OK;
}

int AMUDP_SPMDBarrier(void)
{
	if (!am_job.ops)
		am_return_error(AM_ERR_NOT_INIT, "AMUDP_SPMDStartup comes first");
	return am_job.ops->barrier() < 0 ? AM_ERR_RESOURCE : AM_OK;
}

int AMUDP_SPMDAllGather(void *source, void *dest, size_t len)
{
	if (!am_job.ops)
		am_return_error(AM_ERR_NOT_INIT, "AMUDP_SPMDStartup comes first");
	if (!source || !dest || !len || len > (1u << 30) / (size_t)am_job.size)
		am_return_error(AM_ERR_BAD_ARG, "nothing to gather, or too much");
	return am_job.ops->gather(source, dest, len) < 0 ? AM_ERR_RESOURCE : AM_OK;
}

int AMUDP_SPMDHandleControlTraffic(int *served)
{
	if (served)
		*served = 0;
	/* the console's words are read by a thread; what is left to do is to leave */
	am_bundle_interrupt_serve();
	return AM_OK;
}

int AMUDP_SPMDSetExitCallback(void (*fp)(int exitcode))
{
	am_job.exit_callback = fp;
	return AM_OK;
}

int AMUDP_SPMDExit(int exitcode)
{
	if (!am_job.ops)
		am_return_error(AM_ERR_NOT_INIT, "AMUDP_SPMDStartup comes first");
	am_job.ops->end(exitcode);
}

const char *AMUDP_check_env_prefix(const char *prefix)
{
	const char *at = am_env_console;
	size_t len = prefix ? strlen(prefix) : 0;
	char **e;

	if (!prefix)
		return NULL;
	for (; at && *at; at += strlen(at) + 1) {
		if (!strncmp(at, prefix, len))
			return at;
	}
	for (e = environ; !am_env_console && *e; e++) {
		if (!strncmp(*e, prefix, len))
			return *e;
	}
	return NULL;
}

const char *AMUDP_SPMDgetenvMaster(const char *keyname)
{
	if (!keyname)
		return NULL;
	return am_env_console ? am_env_console_get(keyname) : getenv(keyname);
}
