/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a run-time system that stands on AMUDP does with it, each call of it: GASNet's udp-conduit
 * calls these, in this order. It parses its own arguments, starts the job by a function of the
 * table, has all of memory as its segment, sends by the forms that take a va_list, and ends from
 * one rank while the others poll; or, with RUNTIME_RETURN, all return from main, and a handler of
 * exit() ends the job. Compiled as gnu99 and as C++: runtime N.
 */
#include <amudp_const.h>

/* Constants, and nothing else, have been named so far. */
#if defined(EBADTAG) || defined(INT32_MAX) || defined(AF_INET)
#error amudp_const.h brings more than constants
#endif
struct names_that_are_free {
	int tag_t, en_t, handler_t, op_t, eb_t, ep_t;
};

#include <amudp_spmd.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(AMX_DEBUG) || !defined(AMX_NDEBUG)
#error what GASNET_NDEBUG says is not passed on
#endif
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define EXPECT(what) expect((what) ? 1 : 0, __LINE__, #what)

/* What a conduit asserts when it starts. */
typedef char nodes_fit[AMUDP_MAX_NUMTRANSLATIONS <= AMUDP_MAX_SPMDPROCS ? 1 : -1];
typedef char handlers_fit[AMUDP_MAX_NUMHANDLERS >= 256 ? 1 : -1];
typedef char
	errors_fit[AM_ERR_NOT_INIT == 1 && AM_ERR_BAD_ARG == 2 && AM_ERR_RESOURCE == 3 ? 1 : -1];
typedef char segment_fits[AMUDP_MAX_SEGLENGTH == (uintptr_t)-1 ? 1 : -1];

enum { SHORT = 128, MEDIUM, LONG, SHORT_BACK = 200, MEDIUM_BACK, LONG_BACK, LENGTH = 20000 };

static eb_t bundle;
static ep_t endpoint;
static int wrong, me, nodes, answers, entered, left;
static unsigned char memory[2][LENGTH], back[LENGTH];
static const void *places[1024][3]; /* of each rank: memory[0], memory[1], back */

static void expect(int good, int line, const char *what)
{
	if (good)
		return;
	wrong++;
	printf("line %d: not %s\n", line, what);
}

static void on_exit_callback(int code)
{
	printf("rank %d: %d wrong\n", me, wrong + (code != 0));
}

static void on_kill(int code)
{
	_Exit(code);
}

static void on_enter(amudp_category_t category, int is_request, int handler, void *token, void *buf,
		     size_t nbytes, int numargs, uint32_t *args)
{
	entered++;
}

static void on_leave(amudp_category_t category, int is_request)
{
	left++;
}

static int request(int rank, handler_t handler, int numargs, ...)
{
	va_list list;
	int ret;

	va_start(list, numargs);
	ret = AMUDP_RequestVA(endpoint, (amudp_node_t)rank, handler, numargs, list);
	va_end(list);
	return ret;
}

static int request_medium(int rank, handler_t handler, void *from, size_t n, int numargs, ...)
{
	va_list list;
	int ret;

	va_start(list, numargs);
	ret = AMUDP_RequestIVA(endpoint, (amudp_node_t)rank, handler, from, n, numargs, list);
	va_end(list);
	return ret;
}

static int request_long(int rank, handler_t handler, void *from, size_t n, uintptr_t to,
			int numargs, ...)
{
	va_list list;
	int ret;

	va_start(list, numargs);
	ret = AMUDP_RequestXferVA(endpoint, (amudp_node_t)rank, handler, from, n, to, 0, numargs,
				  list);
	va_end(list);
	return ret;
}

static int reply(void *token, handler_t handler, int numargs, ...)
{
	va_list list;
	int ret;

	va_start(list, numargs);
	ret = AMUDP_ReplyVA(token, handler, numargs, list);
	va_end(list);
	return ret;
}

static int reply_medium(void *token, handler_t handler, void *from, size_t n, int numargs, ...)
{
	va_list list;
	int ret;

	va_start(list, numargs);
	ret = AMUDP_ReplyIVA(token, handler, from, n, numargs, list);
	va_end(list);
	return ret;
}

static int reply_long(void *token, handler_t handler, void *from, size_t n, uintptr_t to,
		      int numargs, ...)
{
	va_list list;
	int ret;

	va_start(list, numargs);
	ret = AMUDP_ReplyXferVA(token, handler, from, n, to, numargs, list);
	va_end(list);
	return ret;
}

static int source_of(void *token, handler_t handler, amx_category_t category)
{
	amx_category_t seen_category = amx_NumCategories;
	int id = -1, is_request = 0;
	handler_t seen = 0;

	EXPECT(AMX_GetSourceId(token, &id) == AM_OK && id >= 0 && id < nodes);
	EXPECT(AMX_GetTokenInfo(token, &seen, &seen_category, &is_request) == AM_OK);
	EXPECT(seen == handler && seen_category == category && is_request);
	return id;
}

static void on_short(void *token, int a, int b)
{
	source_of(token, SHORT, amx_Short);
	EXPECT(a == 3 && b == -4);
	EXPECT(reply(token, SHORT_BACK, 1, a + b) == AM_OK);
}

static void on_short_back(void *token, int a)
{
	EXPECT(a == -1);
	answers++;
}

static void on_medium(void *token, void *buf, int n, int a)
{
	source_of(token, MEDIUM, amx_Medium);
	EXPECT(n == a);
	EXPECT(reply_medium(token, MEDIUM_BACK, buf, (size_t)n, 1, n) == AM_OK);
}

static void on_medium_back(void *token, void *buf, int n, int a)
{
	EXPECT(n == a && memcmp(buf, memory[0], (size_t)n) == 0);
	answers++;
}

/* The offset is the place itself, here and at the one who asks. */
static void on_long(void *token, void *buf, int n, int a)
{
	int id = source_of(token, LONG, amx_Long);

	EXPECT(buf == (void *)memory[1] && n == a);
	EXPECT(reply_long(token, LONG_BACK, buf, (size_t)n, (uintptr_t)places[id][2], 1, n) ==
	       AM_OK);
}

static void on_long_back(void *token, void *buf, int n, int a)
{
	EXPECT(buf == (void *)back && n == a);
	answers++;
}

static void master(int *argc, char ***argv)
{
	const char *letter = getenv("GASNET_SPAWNFN");
	int i, n = *argc > 1 ? atoi((*argv)[1]) : 0;

	setenv("RUNTIME_RANKS", *argc > 1 ? (*argv)[1] : "", 1);
	for (i = 1; i < *argc; i++)
		(*argv)[i] = (*argv)[i + 1];
	(*argc)--;
	setenv("GASNET_SPAWNFN", letter ? letter : "L", 1);
	setenv("GASNET_MASTERIP", "127.0.0.1", 0);
	for (i = 0; AMUDP_Spawnfn_Desc[i].abbrev; i++) {
		if (AMUDP_Spawnfn_Desc[i].abbrev == getenv("GASNET_SPAWNFN")[0])
			break;
	}
	AMUDP_SPMDStartup(argc, argv, n, 0, AMUDP_Spawnfn_Desc[i].fnptr, NULL, &bundle, &endpoint);
	fprintf(stderr, "the console of the job came back\n");
	exit(1);
}

/* The last worker that was started is rank 0. */
static int rank_choose(void)
{
	int rank = atoi(getenv("RUNTIME_RANKS")) - 1 - atoi(getenv("AMUDP_SLAVE_RANK"));

	EXPECT(AMX_SPMDSetProc(-1) == AM_ERR_BAD_ARG);
	EXPECT(AMX_SPMDSetProc(AMUDP_MAX_SPMDPROCS) == AM_ERR_BAD_ARG);
	EXPECT(AMX_SPMDSetProc(rank) == AM_OK);
	return rank;
}

static void worker(int *argc, char ***argv)
{
	int rank = rank_choose();
	const char *(*get)(const char *) = &AMUDP_SPMDgetenvMaster;
	const char *first;
	uint64_t id = 0;
	en_t name;

	AMUDP_VerboseErrors = 1;
	EXPECT(AMX_VerboseErrors == 1);
	AMUDP_SPMDkillmyprocess = on_kill;
	EXPECT(AMUDP_SPMDStartup(argc, argv, 0, 0, NULL, &id, &bundle, &endpoint) == AM_OK);
	EXPECT(id != 0 && *argc == 1);
	me = AMX_SPMDMyProc();
	nodes = AMX_SPMDNumProcs();
	EXPECT(me == rank && AMUDP_SPMDSetProc(me) == AM_OK);
	EXPECT(AMUDP_SPMDSetProc(me + 1) == AM_ERR_RESOURCE);
	EXPECT(get("GASNET_SPAWNFN") && !strcmp(get("GASNET_SPAWNFN"), "L"));
	first = AMUDP_check_env_prefix("GASNET_SPAWN");
	EXPECT(first && !strcmp(first, "GASNET_SPAWNFN=L"));
	EXPECT(!AMUDP_check_env_prefix("GASNET_NO_SUCH") && !AMUDP_check_env_prefix(NULL));
	EXPECT(AMX_SPMDSetExitCallback(on_exit_callback) == AM_OK);
	EXPECT(AM_GetTranslationName(endpoint, me, &name) == AM_OK);
	EXPECT(AMX_enEqual(name, name) && name.sin_addr.s_addr);
	AMUDP_PoliteSync = 1;
}

/* The system's own exit, wherever a program of its user's comes to an end. */
static void on_exit_handler(void)
{
	AMUDP_SPMDExit(0);
}

static void attach(void)
{
	const void *own[3] = { memory[0], memory[1], back };
	int i;

	EXPECT(AM_SetHandler(endpoint, SHORT, on_short) == AM_OK);
	EXPECT(AM_SetHandler(endpoint, MEDIUM, on_medium) == AM_OK);
	EXPECT(AM_SetHandler(endpoint, LONG, on_long) == AM_OK);
	EXPECT(AM_SetHandler(endpoint, SHORT_BACK, on_short_back) == AM_OK);
	EXPECT(AM_SetHandler(endpoint, MEDIUM_BACK, on_medium_back) == AM_OK);
	EXPECT(AM_SetHandler(endpoint, LONG_BACK, on_long_back) == AM_OK);
	EXPECT(!getenv("RUNTIME_RETURN") || atexit(on_exit_handler) == 0);
	EXPECT(AMUDP_SetHandlerCallbacks(endpoint, on_enter, on_leave) == AM_OK);
	EXPECT(AM_SetSeg(endpoint, NULL, (uintptr_t)-1) == AM_OK);
	EXPECT(AMUDP_SPMDAllGather(own, places, sizeof(own)) == AM_OK);
	for (i = 0; i < LENGTH; i++)
		memory[0][i] = (unsigned char)(i * 31);
	EXPECT(AMX_SPMDBarrier() == AM_OK);
}

static void exchange(int rank)
{
	uintptr_t there = (uintptr_t)places[rank][1];
	int before = answers;

	memset(back, 0, sizeof(back));
	EXPECT(request(rank, SHORT, 2, 3, -4) == AM_OK);
	EXPECT(request_medium(rank, MEDIUM, memory[0], 512, 1, 512) == AM_OK);
	/* nothing, from a place that is none */
	EXPECT(request_medium(rank, MEDIUM, (void *)(uintptr_t)1, 0, 1, 0) == AM_OK);
	EXPECT(request_long(rank, LONG, memory[0], LENGTH, there, 1, LENGTH) == AM_OK);
	while (answers < before + 4) {
		EXPECT(AM_Poll(bundle) == AM_OK);
		EXPECT(AMUDP_SPMDHandleControlTraffic(NULL) == AM_OK);
	}
	EXPECT(memcmp(back, memory[0], LENGTH) == 0);
}

static void statistics(void)
{
	amudp_stats_t sum = AMUDP_initial_stats, own = AMUDP_initial_stats;
	amx_tick_t most;
	const char *text;

	EXPECT(AMUDP_GetEndpointStatistics(endpoint, &own) == AM_OK);
	EXPECT(AMUDP_AggregateStatistics(&sum, &own) == AM_OK);
	most = sum.RequestMaxLatency;
	EXPECT(nodes == 1 || (most > 0 && sum.RequestsSent[amudp_Long] > 0));
	text = AMUDP_DumpStatistics(NULL, &sum, 0);
	EXPECT(text && strstr(text, "Requests:"));
	EXPECT(AMUDP_ResetEndpointStatistics(endpoint) == AM_OK);
	EXPECT(entered > 0 && entered == left);
}

int main(int argc, char **argv)
{
	int i;

	EXPECT(!strcmp(TEXT(AMUDP_LIBRARY_VERSION), AMUDP_LIBRARY_VERSION_STR) && AMUDP);
	EXPECT(AM_MaxShort() == 16 && AM_MaxMedium() >= 512 && AM_MaxLong() >= LENGTH);
	if (!AMUDP_SPMDIsWorker(argv))
		master(&argc, &argv);
	worker(&argc, &argv);
	attach();
	for (i = 0; i < 20 * nodes; i++)
		exchange((me + i) % nodes);
	AMX_SPMDBarrier();
	statistics();
	AMX_SPMDBarrier();
	if (getenv("RUNTIME_RETURN"))
		return 0;
	if (me == 0)
		AMUDP_SPMDExit(0);
	for (;;)
		AM_Poll(bundle);
}
