/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What each call refuses, as far as arguments.c does not get there, and how that is told.
 */
#include "pair.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "include/warp/amudp_spmd.h"

#define TOO_MANY (AMUDP_MAX_SPMDPROCS + 1)

enum { QUESTION = 1, ANSWER, NOBODY = 99 };

static int answers, questions, returned;

static int spawn_none(int nproc, int argc, char **argv, char **extra_env)
{
	return 0;
}

static void on_answer(void *token)
{
	answers++;
}

static int start(char **argv, int argc, int nproc, int depth, amudp_spawnfn_t spawn)
{
	uint64_t pid;
	eb_t eb;
	ep_t ep;

	return AMUDP_SPMDStartup(&argc, &argv, nproc, depth, spawn, &pid, &eb, &ep);
}

Test(errors, before_the_job)
{
	int n = 0;

	cr_expect_eq(AMUDP_SPMDBarrier(), AM_ERR_NOT_INIT);
	cr_expect_eq(AMUDP_SPMDAllGather(&n, &n, sizeof(n)), AM_ERR_NOT_INIT);
	cr_expect_eq(AMUDP_SPMDExit(0), AM_ERR_NOT_INIT);
	cr_expect_eq(AMUDP_SPMDSetExitCallback(NULL), AM_OK);
	cr_expect_eq(AMUDP_SPMDIsWorker(NULL), 0);
	cr_expect_null(AMUDP_SPMDgetenvMaster(NULL));
	cr_expect_null(AMUDP_SPMDgetenvMaster("NOT_SET_ANYWHERE"));
	cr_expect_str_eq(AMUDP_SPMDgetenvMaster("PATH"), getenv("PATH"));
}

Test(errors, no_size_before_the_job, .signal = SIGABRT)
{
	AMUDP_SPMDNumProcs();
}

Test(errors, no_rank_before_the_job, .signal = SIGABRT)
{
	AMUDP_SPMDMyProc();
}

Test(errors, a_job_that_cannot_start)
{
	char *argv[] = { "program", NULL, NULL, NULL }, **list = argv;
	uint64_t pid;
	int argc = 1;
	eb_t eb;
	ep_t ep;

	cr_expect_eq(start(argv, 1, -1, 0, spawn_none), AM_ERR_BAD_ARG);
	cr_expect_eq(start(argv, 1, TOO_MANY, 0, spawn_none), AM_ERR_BAD_ARG);
	cr_expect_eq(start(argv, 1, 2, -1, spawn_none), AM_ERR_BAD_ARG);
	cr_expect_eq(start(argv, 1, 2, AMUDP_MAX_NETWORKDEPTH + 1, spawn_none), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_SPMDStartup(NULL, &list, 2, 0, spawn_none, &pid, &eb, &ep),
		     AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_SPMDStartup(&argc, NULL, 2, 0, spawn_none, &pid, &eb, &ep),
		     AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_SPMDStartup(&argc, &list, 2, 0, spawn_none, &pid, NULL, &ep),
		     AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_SPMDStartup(&argc, &list, 2, 0, spawn_none, &pid, &eb, NULL),
		     AM_ERR_BAD_ARG);
	cr_expect_eq(start(argv, 1, 0, 0, spawn_none), AM_ERR_BAD_ARG, "no number");
	argv[1] = "0";
	cr_expect_eq(start(argv, 2, 0, 0, spawn_none), AM_ERR_BAD_ARG, "no processes");
	argv[1] = "2";
	argv[2] = "X";
	cr_expect_eq(start(argv, 3, 0, 0, NULL), AM_ERR_BAD_ARG, "a letter of nothing");
	setenv("SPAWNFN", "Q", 1);
	cr_expect_eq(start(argv, 2, 0, 0, NULL), AM_ERR_BAD_ARG, "a variable of nothing");
}

Test(errors, a_launch_that_cannot_be)
{
	char *argv[] = { "program", NULL };

	cr_expect_eq(AMUDP_SPMDLaunch(0, 0, spawn_none, 1, argv), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_SPMDLaunch(TOO_MANY, 0, spawn_none, 1, argv), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_SPMDLaunch(2, -1, spawn_none, 1, argv), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_SPMDLaunch(2, AMUDP_MAX_NETWORKDEPTH + 1, spawn_none, 1, argv),
		     AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_SPMDLaunch(2, 0, spawn_none, 0, argv), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_SPMDLaunch(2, 0, spawn_none, 1, NULL), AM_ERR_BAD_ARG);
	setenv("SPAWNFN", "Q", 1);
	cr_expect_eq(AMUDP_SPMDLaunch(2, 0, NULL, 1, argv), AM_ERR_BAD_ARG);
}

Test(errors, a_spawn_function_that_fails, .exit_code = 1)
{
	char *argv[] = { "program", NULL };

	start(argv, 1, 2, 0, spawn_none);
}

Test(errors, translations)
{
	struct pair p;
	en_t name;
	tag_t tag;
	int i;

	pair_open(&p, AM_SEQ);
	cr_expect_eq(AM_Map(NULL, 0, p.name[1], 1), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_MapAny(NULL, &i, p.name[1], 1), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_MapAny(p.ep[0], NULL, p.name[1], 1), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_UnMap(NULL, 0), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_UnMap(p.ep[0], -1), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_UnMap(p.ep[0], 256), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_SetNumTranslations(NULL, 1), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_SetNumTranslations(p.ep[0], 2), AM_OK);
	cr_expect_eq(AM_GetTranslationTag(p.ep[0], 1, &tag), AM_ERR_RESOURCE);
	cr_expect_eq(AM_GetTranslationName(p.ep[0], 1, &name), AM_ERR_RESOURCE);
	cr_expect_eq(AMUDP_SetTranslationTag(p.ep[0], 1, 7), AM_ERR_RESOURCE);
	cr_expect_eq(AM_MapAny(p.ep[0], &i, p.name[1], 1), AM_OK);
	cr_expect_eq(AM_MapAny(p.ep[0], &i, p.name[1], 1), AM_OK);
	i = -7;
	cr_expect_eq(AM_MapAny(p.ep[0], &i, p.name[1], 1), AM_ERR_RESOURCE, "the table is full");
	cr_expect_eq(i, -7, "an answer is written only on success");
	cr_expect_eq(AM_GetTranslationTag(p.ep[0], 1, NULL), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetTranslationTag(p.ep[0], 2, &tag), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetTranslationTag(NULL, 1, &tag), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetTranslationName(p.ep[0], 1, NULL), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetTranslationName(p.ep[0], -1, &name), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetTranslationName(NULL, 1, &name), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_SetTranslationTag(p.ep[0], 2, 7), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_SetTranslationTag(NULL, 1, 7), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetTranslationInuse(NULL, 1), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetNumTranslations(p.ep[0], NULL), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetNumTranslations(NULL, &i), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_SetExpectedResources(NULL, 1, 1), AM_ERR_BAD_ARG);
	pair_close(&p);
}

Test(errors, endpoints)
{
	amudp_stats_t stats;
	amudp_xstats_t xstats;
	handler_t handler;
	struct pair p;
	uintptr_t length;
	void *segment;
	en_t name;
	tag_t tag;
	ep_t ep;
	int n;

	pair_open(&p, AM_SEQ);
	cr_expect_eq(AM_GetNumHandlers(p.ep[0], NULL), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetNumHandlers(NULL, &n), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_SetNumHandlers(p.ep[0], 0), AM_ERR_RESOURCE);
	cr_expect_eq(AM_SetNumHandlers(p.ep[0], -1), AM_ERR_RESOURCE);
	cr_expect_eq(AM_SetNumHandlers(NULL, 8), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetNumHandlers(p.ep[0], &n), AM_OK);
	cr_expect_eq(n, 256, "a refusal changes nothing");
	cr_expect_eq(AM_SetHandler(NULL, 5, on_answer), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_SetHandlerAny(NULL, &handler, on_answer), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_SetHandlerAny(p.ep[0], &handler, NULL), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetSeg(p.ep[0], &segment, NULL), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetSeg(NULL, &segment, &length), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_SetSeg(NULL, NULL, 0), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetTag(NULL, &tag), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_SetJobNonce(NULL, 4), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_Flush(NULL), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_SetBatch(NULL, 1), AM_ERR_BAD_ARG);
	cr_expect_null(AMUDP_GetNic(NULL));
	cr_expect_eq(AMUDP_GetEndpointStatistics(p.ep[0], NULL), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_ResetEndpointStatistics(NULL), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_GetEndpointExtendedStatistics(p.ep[0], NULL), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_GetEndpointExtendedStatistics(NULL, &xstats), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_AggregateStatistics(&stats, NULL), AM_ERR_BAD_ARG);
	cr_expect_null(AMUDP_DumpStatistics(NULL, NULL, 1));
	cr_expect_eq(AM_GetEventMask(NULL, &n), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_SetEventMask(NULL, AM_NOTEMPTY), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_SetEventMask(p.eb[0], -1), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_MoveEndpoint(NULL, p.eb[0], p.eb[1]), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_MoveEndpoint(p.ep[0], NULL, p.eb[1]), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_MoveEndpoint(p.ep[0], p.eb[0], NULL), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_AllocateEndpoint(NULL, &ep, &name), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_AllocateEndpoint(p.eb[0], &ep, NULL), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_SetUDPInterface(inet_addr("192.0.2.1")), AM_OK);
	cr_expect_eq(AM_AllocateEndpoint(p.eb[0], &ep, &name), AM_ERR_RESOURCE, "not our address");
	pair_close(&p);
}

/* Not an address of this machine: the endpoint stays where it is, and works. */
Test(errors, a_move_to_nowhere)
{
	struct pair p;

	pair_open(&p, AM_SEQ);
	pair_map(&p, 4);
	cr_expect_eq(AMUDP_MigrateEndpoint(p.ep[1], inet_addr("192.0.2.1")), AM_ERR_RESOURCE);
	cr_expect_null(p.ep[1]->leaving);
	cr_expect_eq(p.ep[1]->num_nics, 1);
	cr_expect_eq(AMUDP_MigrateEndpoint(p.ep[1], inet_addr("127.0.0.2")), AM_OK,
		     "it is not on the way");
	cr_expect_eq(AMUDP_TakeName(NULL, p.name[0]), AM_ERR_BAD_ARG);
	pair_close(&p);
}

static void tokens(void *token)
{
	char other = 0;
	en_t name;
	tag_t tag;
	ep_t ep;
	int id;

	cr_expect_eq(AM_GetSourceEndpoint(token, NULL), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetSourceEndpoint(NULL, &name), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetDestEndpoint(token, NULL), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetDestEndpoint(NULL, &ep), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetMsgTag(token, NULL), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetMsgTag(NULL, &tag), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetMsgTag(&other, &tag), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_GetSourceId(token, NULL), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_GetSourceId(NULL, &id), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_GetSourceId(&other, &id), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_GetSourceId(token, &id), AM_OK);
}

/* A reply that is refused is no reply: a good one may follow. */
static void on_question(void *token)
{
	char data[4] = { 0 };

	tokens(token);
	cr_expect_eq(AMUDP_Reply(token, ANSWER, 17), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_Reply(token, ANSWER, -1), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_ReplyI(token, ANSWER, data, 4, 17), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_ReplyXfer(token, ANSWER, data, 4, 0, 17), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_ReplyI0(token, ANSWER, NULL, 4), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_ReplyI0(token, ANSWER, data, -1), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_ReplyXfer0(token, 0, ANSWER, NULL, 4), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_ReplyXfer0(token, 0, ANSWER, data, AMUDP_MaxXfer() + 1), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_Reply0(token, ANSWER), AM_OK);
	questions++;
}

static void on_returned(int status, op_t opcode, void *token)
{
	returned++;
}

Test(errors, inside_a_handler)
{
	struct pair p;

	pair_open(&p, AM_SEQ);
	AM_SetHandler(p.ep[1], QUESTION, on_question);
	AM_SetHandler(p.ep[0], ANSWER, on_answer);
	pair_map(&p, 4);
	cr_assert_eq(AM_Request0(p.ep[0], 0, QUESTION), AM_OK);
	pair_until(&p, answers == 1);
	cr_expect_eq(questions, 1);
	pair_close(&p);
}

Test(errors, more_of_requests)
{
	struct pair p;
	char data[8];

	pair_open(&p, AM_SEQ);
	pair_map(&p, 4);
	cr_expect_eq(AMUDP_RequestI(p.ep[0], 0, 1, data, 8, 17), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_RequestXfer(p.ep[0], 0, 1, data, 8, 0, 0, 17), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_GetXfer(p.ep[0], 0, 0, 1, 0, 8, 0, 17), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_RequestXfer0(p.ep[0], 0, 0, 1, NULL, 8), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_RequestXfer0(p.ep[0], 0, 0, 1, data, -1), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetXfer0(p.ep[0], 0, 0, 1, 0, -1), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetXfer0(p.ep[0], 0, 0, 1, 0, AMUDP_MaxXfer() + 1), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_GetXfer0((ep_t)NULL, 0, 0, 1, 0, 8), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_RequestI0((ep_t)NULL, 0, 1, data, 8), AM_ERR_BAD_ARG);
	cr_expect_eq(AM_RequestXferAsync0((ep_t)NULL, 0, 0, 1, data, 8), AM_ERR_BAD_ARG);
	pair_close(&p);
}

/* Nobody takes NOBODY, and the sender has not said what is to happen then. */
Test(errors, a_returned_message_is_fatal_by_default, .signal = SIGABRT)
{
	struct pair p;

	pair_open(&p, AM_SEQ);
	pair_map(&p, 4);
	AM_Request0(p.ep[0], 0, NOBODY);
	pair_until(&p, false);
}

/* What the call or, in a process of its own, the end says on stderr. */
static const char *told(void (*say)(void), bool ends)
{
	static char text[512];
	int fd = memfd_create("told", 0), old = dup(STDERR_FILENO), status;
	pid_t pid;
	ssize_t n;

	dup2(fd, STDERR_FILENO);
	pid = ends ? fork() : -1;
	if (pid <= 0)
		say();
	if (pid == 0)
		_exit(0);
	if (pid > 0) {
		waitpid(pid, &status, 0);
		cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
	fflush(stderr);
	dup2(old, STDERR_FILENO);
	n = pread(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = 0;
	close(old);
	close(fd);
	return text;
}

static void refuse(void)
{
	AM_SetTag(NULL, 1);
}

static void refuse_resource(void)
{
	char *argv[] = { "program", NULL };

	AMUDP_SPMDBarrier();
	AMUDP_SPMDLaunch(0, 0, NULL, 1, argv);
}

static void fail(void)
{
	AMUDP_FatalErr("%s %d", "number", 7);
}

Test(errors, in_words)
{
	cr_expect_str_eq(told(refuse, false), "", "silent unless asked");
	AMUDP_VerboseErrors = 1;
	cr_expect_str_eq(told(refuse, false), "*: AM_SetTag returns AM_ERR_BAD_ARG: no endpoint\n");
	AMUDP_ProcessLabel = "rank 5";
	cr_expect_str_eq(told(refuse, false), "rank 5: AM_SetTag returns AM_ERR_BAD_ARG: no "
					      "endpoint\n");
	cr_expect_str_eq(told(refuse_resource, false), "rank 5: AMUDP_SPMDBarrier returns "
						       "AM_ERR_NOT_INIT: "
						       "AMUDP_SPMDStartup comes first\n"
						       "rank 5: AMUDP_SPMDLaunch returns "
						       "AM_ERR_BAD_ARG: "
						       "no program, or numbers out of range\n");
	cr_expect_str_eq(told(fail, true), "*** FATAL ERROR(rank 5): number 7\n");
}

/* Waits for a message to a peer that never answers; true if it slept. */
static bool waiting_sleeps(int polite)
{
	struct pair p;
	bool slept;

	setenv("AMUDP_SPIN", "20000000", 1);
	setenv("AMUDP_REQUESTTIMEOUT_INITIAL", "500", 1);
	setenv("AMUDP_REQUESTTIMEOUT_MAX", "1000", 1);
	AMUDP_PoliteSync = polite;
	returned = 0;
	pair_open(&p, AM_SEQ);
	AM_SetHandler(p.ep[0], 0, on_returned);
	pair_map(&p, 4);
	AM_SetEventMask(p.eb[0], AM_NOTEMPTY);
	cr_assert_eq(AM_Request0(p.ep[0], 0, QUESTION), AM_OK);
	cr_assert_eq(AM_WaitSema(p.eb[0]), AM_OK);
	cr_expect_eq(returned, 1);
	slept = p.ep[0]->slept != 0;
	pair_close(&p);
	return slept;
}

/*
 * One that spins sleeps, too, when another process ran on its processor in between. After a pause
 * this process is the next one's, for longer than a wait takes.
 */
Test(errors, polite_waits_sleep_at_once)
{
	uint64_t end = base_now() + 20 * BASE_NS_PER_S;
	bool slept = true;

	while (slept && base_now() < end) {
		slept = waiting_sleeps(0);
		usleep(2000);
	}
	cr_expect(!slept);
	for (int i = 0; i < 10; i++)
		cr_expect(waiting_sleeps(1));
}
