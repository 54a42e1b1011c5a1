/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Starting a job of many processes that run one program, and their console. */
#ifndef WARP_AMUDP_SPMD_H
#define WARP_AMUDP_SPMD_H

#include "amudp.h"

#if defined(__cplusplus)
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Starts nproc workers with the variables of extra_env (NULL at its end); non-zero is success. */
typedef int (*amudp_spawnfn_t)(int nproc, int argc, char **argv, char **extra_env);

/*
 * In the first process: starts the job and never returns, for it is the job's console. In each
 * worker: returns with an endpoint on which translation i is rank i. nproc 0 takes the number
 * from argv[1], and a letter behind it names the spawn function.
 */
int AMUDP_SPMDStartup(int *argc, char ***argv, int nproc, int networkdepth, amudp_spawnfn_t spawnfn,
		      uint64_t *networkpid, eb_t *eb, ep_t *ep);

/*
 * Is the console of a job of another program, argv[0], and never returns when the arguments are
 * good: what amudprun does.
 */
int AMUDP_SPMDLaunch(int nproc, int networkdepth, amudp_spawnfn_t spawnfn, int argc, char **argv);

/*
 * Ends the whole job with this code. After 0 the other ranks go on to their own end, or to their
 * next poll, where they leave; any other code ends them at once.
 */
int AMUDP_SPMDExit(int exitcode);
int AMUDP_SPMDSetExitCallback(void (*fp)(int exitcode));
extern void (*AMUDP_SPMDkillmyprocess)(int exitcode);

int AMUDP_SPMDIsWorker(char **argv);
int AMUDP_SPMDNumProcs(void);
int AMUDP_SPMDMyProc(void);
/*
 * In a worker, before AMUDP_SPMDStartup: the rank that it is to have, which no other worker asks
 * for. Environment: AMUDP_SLAVE_RANK. In the console it means nothing.
 */
int AMUDP_SPMDSetProc(int rank);
int AMUDP_SPMDBarrier(void);
int AMUDP_SPMDAllGather(void *source, void *dest, size_t len);

/* The console process's environment as it was when the job began; NULL when unset. */
const char *AMUDP_SPMDgetenvMaster(const char *keyname);
/* The first variable there whose name begins so, as "NAME=value"; NULL when there is none. */
const char *AMUDP_check_env_prefix(const char *prefix);

/*
 * For a program that does not poll for long and has no messages to wait for: a job that another
 * rank has ended is left in this call, as AM_Poll would. Stores, unless NULL, how many messages
 * of the console it has served.
 */
int AMUDP_SPMDHandleControlTraffic(int *served);

int AMUDP_SPMDLocalSpawn(int nproc, int argc, char **argv, char **extra_env);
int AMUDP_SPMDSshSpawn(int nproc, int argc, char **argv, char **extra_env);
int AMUDP_SPMDCustomSpawn(int nproc, int argc, char **argv, char **extra_env);

typedef struct {
	char abbrev;
	const char *desc;
	amudp_spawnfn_t fnptr;
} amudp_spawnfn_desc_t;
/* The last entry has abbrev 0. */
extern const amudp_spawnfn_desc_t AMUDP_Spawnfn_Desc[];

#pragma GCC visibility pop
#if defined(__cplusplus)
}
#endif

/*
 * A program that is compiled with AMUDP_ENV_PREFIX=WORD reads WORD_X; one that is a part of GASNet
 * says so by its own macros.
 */
#if defined(AMX_ENV_PREFIX_STR)
#define AMUDP_W AMX_ENV_PREFIX_STR
#elif defined(AMUDP_ENV_PREFIX)
#define AMUDP_T(x) #x
#define AMUDP_TX(x) AMUDP_T(x)
#define AMUDP_W AMUDP_TX(AMUDP_ENV_PREFIX)
#elif defined(GASNET_DEBUG) || defined(GASNET_NDEBUG)
#define AMUDP_W "GASNET"
#endif
#ifdef AMUDP_W
#define AMUDP_SPMDStartup(argc, argv, nproc, depth, spawnfn, pid, eb, ep) \
	(AMUDP_SetEnvPrefix(AMUDP_W),                                     \
	 AMUDP_SPMDStartup(argc, argv, nproc, depth, spawnfn, pid, eb, ep))
#endif

#define AMX_SPMDStartup(pargc, pargv, depth, ppid, peb, pep) \
	AMUDP_SPMDStartup(pargc, pargv, 0, depth, NULL, ppid, peb, pep)
#define AMX_SPMDgetenvMaster AMUDP_SPMDgetenvMaster
#define AMX_SPMDBarrier AMUDP_SPMDBarrier
#define AMX_SPMDNumProcs AMUDP_SPMDNumProcs
#define AMX_SPMDMyProc AMUDP_SPMDMyProc
#define AMX_SPMDSetProc AMUDP_SPMDSetProc
#define AMX_SPMDExit AMUDP_SPMDExit
#define AMX_SPMDSetExitCallback AMUDP_SPMDSetExitCallback
#define AMX_SPMDkillmyprocess AMUDP_SPMDkillmyprocess
#define AMX_SPMDIsWorker AMUDP_SPMDIsWorker
#define AMX_SPMDAllGather AMUDP_SPMDAllGather
#define AMX_SPMDHandleControlTraffic AMUDP_SPMDHandleControlTraffic

#endif
