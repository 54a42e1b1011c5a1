/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The documented interface, name by name: types, values, the signature of every function, and each
 * form of a message. Compiled as gnu99 and as C++, run as "interface N L" with two ranks or more;
 * "interface N L poll" waits by AM_Poll. A launcher is no console: then a rank's environment is its
 * own.
 */
#include <amudp.h>
#include <amudp_spmd.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPECT(what) expect((what) ? 1 : 0, __LINE__, #what)

enum { SHORT = 1, MEDIUM, LONG, REPLY_SHORT, REPLY_MEDIUM, REPLY_LONG, GOT, UNHEARD, NOWHERE = 99 };

static int wrong, replies, returned[8], polls;
static eb_t eb;
static ep_t ep;
static char octets[16] = "sixteen octets.";

static void expect(int good, int line, const char *what)
{
	if (good)
		return;
	wrong++;
	printf("line %d: not %s\n", line, what);
}

static void wait_some(void)
{
	EXPECT((polls ? AM_Poll(eb) : AM_WaitSema(eb)) == AM_OK);
}

/* A pointer to another type than the documented one does not compile. */
static void types(void)
{
	uint64_t tag = AM_ALL;
	uint8_t handler = 0;
	uint32_t node = 0;
	int op = 0;
	struct sockaddr_in name;
	tag_t *a = &tag;
	handler_t *b = &handler;
	amudp_node_t *c = &node;
	op_t *d = &op;
	en_t *e = &name;
	struct amudp_eb **f = &eb;
	struct amudp_ep **g = &ep;
	amx_stats_t *h = (amudp_stats_t *)NULL;
	amx_handler_fn_t *i = (amudp_handler_fn_t *)NULL;
	amudp_spawnfn_t j = AMUDP_SPMDLocalSpawn;

	EXPECT(a && b && c && d && e && f && g && !h && !i && j);
	EXPECT(sizeof(amudp_stats_t) == 320);
	EXPECT(amudp_Short == 0 && amudp_Medium == 1 && amudp_Long == 2);
	EXPECT(amudp_NumCategories == 3 && sizeof(amudp_category_t) == sizeof(int));
	EXPECT(AM_NOEVENTS == 0 && AM_NOTEMPTY == 1 && AM_NUMEVENTMASKS == 2);
	EXPECT(sizeof(amudp_eventmask_t) == sizeof(int));
	EXPECT(AM_SEQ == 0 && AM_PAR == 1 && AM_NUM_BUNDLE_MODES == 2);
	EXPECT(sizeof(amudp_bundle_mode_t) == sizeof(int));
}

static void values(void)
{
	uintptr_t length = 0;
	int n = 0;

	EXPECT(AM_ALL == 1 && AM_NONE == 0);
	EXPECT(AM_OK == 0 && AM_ERR_NOT_INIT == 1 && AM_ERR_BAD_ARG == 2);
	EXPECT(AM_ERR_RESOURCE == 3 && AM_ERR_NOT_SENT == 4 && AM_ERR_IN_USE == 5);
	EXPECT(EBADARGS == 1 && EBADENTRY == 2 && EBADTAG == 3 && EBADHANDLER == 4);
	EXPECT(EBADSEGOFF == 5 && EBADLENGTH == 6 && EBADENDPOINT == 7 && ECONGESTION == 8);
	EXPECT(EUNREACHABLE == 9 && EREPLYREJECTED == 10);
	EXPECT(AM_REQUEST_M == 1 && AM_REQUEST_IM == 2 && AM_REQUEST_XFER_M == 3);
	EXPECT(AM_REPLY_M == 4 && AM_REPLY_IM == 5 && AM_REPLY_XFER_M == 6);
	EXPECT(AM_MaxShort() == 16 && AM_MaxMedium() == 65000 && AM_MaxLong() == 65000);
	EXPECT(AM_MaxNumHandlers() == 256 && AMUDP_INIT_NUMTRANSLATIONS == 256);
	EXPECT(AM_MaxNumTranslations(&n) == AM_OK && n == 1 << 20);
	EXPECT(AM_MaxSegLength(&length) == AM_OK && length == (uintptr_t)-1);
	EXPECT(AMUDP_MAX_SEGLENGTH == length && AMUDP_MAX_BUNDLES == 255);
	EXPECT(AMUDP_MAX_NETWORKDEPTH == 1024 && AMUDP_DEFAULT_NETWORKDEPTH == 128);
	EXPECT(AMUDP_MAX_RECVDEPTH == 65534 && AMUDP_MAX_SPMDPROCS == 1 << 20);
	EXPECT(AM_GetNumHandlers(ep, &n) == AM_OK && n == 256);
	EXPECT(AM_SetNumHandlers(ep, 256) == AM_OK);
	EXPECT(AMX_initial_stats.RequestMinLatency == (uint64_t)-1);
	EXPECT(AMX_initial_stats.TotalBytesSent == 0);
}

/* Their signatures are those of the document, or this does not compile. */
static void functions(void)
{
	int (*none[])(void) = { AM_Init,	  AM_Startup,
				AM_Terminate,	  AMUDP_SPMDNumProcs,
				AMUDP_SPMDMyProc, AMUDP_SPMDBarrier };
	int (*of_bundle[])(eb_t) = { AM_FreeBundle, AM_WaitSema, AM_Poll };
	int (*of_endpoint[])(ep_t) = { AM_FreeEndpoint, AMUDP_ResetEndpointStatistics };
	int (*of_index[])(ep_t, int) = { AM_UnMap, AM_GetTranslationInuse, AM_SetNumTranslations };
	int (*of_stats[])(ep_t, amudp_stats_t *) = { AMUDP_GetEndpointStatistics };
	int (*a)(int, eb_t *) = AM_AllocateBundle;
	int (*b)(eb_t, ep_t *, en_t *) = AM_AllocateEndpoint;
	int (*c)(ep_t, eb_t, eb_t) = AM_MoveEndpoint;
	int (*d)(ep_t, void **, uintptr_t *) = AM_GetSeg;
	int (*e)(ep_t, void *, uintptr_t) = AM_SetSeg;
	int (*f)(ep_t, tag_t *) = AM_GetTag;
	int (*g)(ep_t, tag_t) = AM_SetTag;
	int (*h)(ep_t, int, en_t, tag_t) = AM_Map;
	int (*i)(ep_t, int *, en_t, tag_t) = AM_MapAny;
	int (*j)(ep_t, int, tag_t *) = AM_GetTranslationTag;
	int (*k)(ep_t, int, en_t *) = AM_GetTranslationName;
	int (*l)(ep_t, int *) = AM_GetNumTranslations;
	int (*m)(ep_t, int, int) = AM_SetExpectedResources;
	int (*n)(ep_t, handler_t, amudp_handler_fn_t) = _AM_SetHandler;
	int (*o)(ep_t, handler_t *, amudp_handler_fn_t) = _AM_SetHandlerAny;
	int (*p)(eb_t, int *) = AM_GetEventMask;
	int (*q)(eb_t, int) = AM_SetEventMask;
	int (*r)(void *, en_t *) = AM_GetSourceEndpoint;
	int (*s)(void *, ep_t *) = AM_GetDestEndpoint;
	int (*t)(void *, tag_t *) = AM_GetMsgTag;
	int (*u)(uint32_t) = AMUDP_SetUDPInterface;
	int (*v)(amudp_stats_t *, amudp_stats_t *) = AMX_AggregateStatistics;
	const char *(*w)(void *, amudp_stats_t *, int) = AMX_DumpStatistics;
	int (*x)(ep_t, AMUDP_preHandlerCallback_t, AMUDP_postHandlerCallback_t) =
		AMUDP_SetHandlerCallbacks;
	int (*y)(ep_t, int, tag_t) = AMX_SetTranslationTag;
	int (*z)(void *, int *) = AMUDP_GetSourceId;
	int (*exits[])(int) = { AMUDP_SPMDExit, AMX_SPMDExit };
	int (*callback)(void (*)(int)) = AMX_SPMDSetExitCallback;
	int (*gather)(void *, void *, size_t) = AMX_SPMDAllGather;
	const char *(*get)(const char *) = AMX_SPMDgetenvMaster;
	amudp_spawnfn_t spawns[] = { AMUDP_SPMDLocalSpawn, AMUDP_SPMDSshSpawn,
				     AMUDP_SPMDCustomSpawn };

	EXPECT(none[0] && of_bundle[0] && of_endpoint[0] && of_index[0] && of_stats[0]);
	EXPECT(a && b && c && d && e && f && g && h && i && j && k && l && m && n && o && p);
	EXPECT(q && r && s && t && u && v && w && x && y && z && exits[0] && callback);
	EXPECT(gather && get && spawns[0]);
}

/* Every form that takes a va_list. */
#define WITH_LIST(name, params, ...)                       \
	static int name params                             \
	{                                                  \
		va_list list;                              \
		int ret;                                   \
                                                           \
		va_start(list, n);                         \
		ret = AMUDP_##name##VA(__VA_ARGS__, list); \
		va_end(list);                              \
		return ret;                                \
	}
WITH_LIST(Request, (ep_t e, amudp_node_t d, handler_t h, int n, ...), e, d, h, n)
WITH_LIST(RequestI, (ep_t e, amudp_node_t d, handler_t h, void *s, int b, int n, ...), e, d, h, s,
	  b, n)
WITH_LIST(RequestXfer,
	  (ep_t e, amudp_node_t d, handler_t h, void *s, int b, uintptr_t o, int a, int n, ...), e,
	  d, h, s, b, o, a, n)
WITH_LIST(Reply, (void *t, handler_t h, int n, ...), t, h, n)
WITH_LIST(ReplyI, (void *t, handler_t h, void *s, int b, int n, ...), t, h, s, b, n)
WITH_LIST(ReplyXfer, (void *t, handler_t h, void *s, int b, uintptr_t o, int n, ...), t, h, s, b, o,
	  n)
WITH_LIST(GetXfer,
	  (ep_t e, amudp_node_t d, uintptr_t so, handler_t h, uintptr_t o, int b, int a, int n,
	   ...),
	  e, d, so, h, o, b, a, n)

static void on_short(void *token, int form)
{
	if (form == UNHEARD) {
		EXPECT(AM_ReplyI0(token, NOWHERE, octets, 16) == AM_OK);
		return;
	}
	EXPECT((form ? Reply(token, REPLY_SHORT, 1, form)
		     : AMUDP_Reply(token, REPLY_SHORT, 1, form)) == AM_OK);
}

static void on_medium(void *token, void *buf, int n, int form)
{
	EXPECT(n == 16 && !memcmp(buf, octets, 16));
	EXPECT((form ? ReplyI(token, REPLY_MEDIUM, buf, n, 1, form)
		     : AMUDP_ReplyI(token, REPLY_MEDIUM, buf, n, 1, form)) == AM_OK);
}

static void on_long(void *token, void *buf, int n, int form)
{
	if (form == UNHEARD) {
		EXPECT(AM_ReplyXfer0(token, 0, NOWHERE, octets, 16) == AM_OK);
		return;
	}
	EXPECT(n == 16 && !memcmp(buf, octets, 16));
	EXPECT((form ? ReplyXfer(token, REPLY_LONG, octets, n, 64, 1, form)
		     : AMUDP_ReplyXfer(token, REPLY_LONG, octets, n, 64, 1, form)) == AM_OK);
}

static void on_reply_short(void *token, int form)
{
	EXPECT(token && (form == 0 || form == 1));
	replies++;
}

static void on_reply_data(void *token, void *buf, int n, int form)
{
	EXPECT(token && n == 16 && !memcmp(buf, octets, 16) && (form == 0 || form == 1));
	replies++;
}

static void on_returned(int status, op_t opcode, void *token)
{
	EXPECT(token && status == EBADHANDLER);
	returned[opcode]++;
}

static void handlers_set(void)
{
	handler_t any = 0;

	EXPECT(_AM_SetHandler(ep, 0, (amudp_handler_fn_t)on_returned) == AM_OK);
	EXPECT(AM_SetHandler(ep, SHORT, on_short) == AM_OK);
	EXPECT(AM_SetHandler(ep, MEDIUM, on_medium) == AM_OK);
	EXPECT(AM_SetHandler(ep, LONG, on_long) == AM_OK);
	EXPECT(AM_SetHandler(ep, REPLY_SHORT, on_reply_short) == AM_OK);
	EXPECT(AM_SetHandler(ep, REPLY_MEDIUM, on_reply_data) == AM_OK);
	EXPECT(AM_SetHandler(ep, REPLY_LONG, on_reply_data) == AM_OK);
	EXPECT(AM_SetHandler(ep, GOT, on_reply_data) == AM_OK);
	EXPECT(_AM_SetHandlerAny(ep, &any, (amudp_handler_fn_t)on_short) == AM_OK && any > GOT);
}

/* Each form to the next rank: the function, its twin with a list, and the macro. */
static void messages(int next)
{
	EXPECT(AMUDP_Request(ep, next, SHORT, 1, 0) == AM_OK);
	EXPECT(Request(ep, next, SHORT, 1, 1) == AM_OK);
	EXPECT(AM_Request1(ep, next, SHORT, 0) == AM_OK);
	EXPECT(AMUDP_RequestI(ep, next, MEDIUM, octets, 16, 1, 0) == AM_OK);
	EXPECT(RequestI(ep, next, MEDIUM, octets, 16, 1, 1) == AM_OK);
	EXPECT(AM_RequestI1(ep, next, MEDIUM, octets, 16, 1) == AM_OK);
	EXPECT(AMUDP_RequestXfer(ep, next, LONG, octets, 16, 0, 0, 1, 0) == AM_OK);
	EXPECT(RequestXfer(ep, next, LONG, octets, 16, 0, 1, 1, 1) == AM_OK);
	EXPECT(AM_RequestXfer1(ep, next, 0, LONG, octets, 16, 0) == AM_OK);
	EXPECT(AM_RequestXferAsync1(ep, next, 0, LONG, octets, 16, 1) == AM_OK);
	while (replies < 10)
		wait_some();
	EXPECT(AMUDP_GetXfer(ep, next, 0, GOT, 128, 16, 0, 1, 0) == AM_OK);
	EXPECT(GetXfer(ep, next, 0, GOT, 128, 16, 1, 1, 1) == AM_OK);
	EXPECT(AM_GetXfer1(ep, next, 0, GOT, 128, 16, 0) == AM_OK);
	EXPECT(AM_GetXferAsync1(ep, next, 0, GOT, 128, 16, 0) == AM_OK);
	while (replies < 14)
		wait_some();
	EXPECT(replies == 14);
}

/* Nobody has handler 99: the sender is told, of a reply the one that replied. */
static void returns(int next)
{
	EXPECT(AM_Request0(ep, next, NOWHERE) == AM_OK);
	EXPECT(AM_RequestI0(ep, next, NOWHERE, octets, 16) == AM_OK);
	EXPECT(AM_RequestXfer0(ep, next, 0, NOWHERE, octets, 16) == AM_OK);
	EXPECT(AM_Request1(ep, next, SHORT, UNHEARD) == AM_OK);
	EXPECT(AM_RequestXfer1(ep, next, 0, LONG, octets, 16, UNHEARD) == AM_OK);
	while (!returned[AM_REQUEST_M] || !returned[AM_REQUEST_IM] ||
	       !returned[AM_REQUEST_XFER_M] || !returned[AM_REPLY_IM] || !returned[AM_REPLY_XFER_M])
		wait_some();
}

static void fatal(void)
{
	char text[128] = "";
	int fds[2], status = 0;
	pid_t pid;

	if (pipe(fds) < 0)
		return;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], 2);
		AMX_FatalErr("%s %d", "number", 7);
	}
	waitpid(pid, &status, 0);
	EXPECT(read(fds[0], text, sizeof(text) - 1) > 0);
	EXPECT(strstr(text, "*** FATAL ERROR") && strstr(text, "number 7\n"));
	EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == 6);
}

static int launched(void)
{
	return getenv("PMIX_RANK") ? 1 : 0;
}

/* What the console had, not what a rank has inherited of it and may have altered since. */
static void console_environment(void)
{
	const char *value;

	setenv("INTERFACE_OF_MASTER", "altered", 1);
	setenv("INTERFACE_OF_NOBODY", "of a rank", 1);
	value = AMX_SPMDgetenvMaster("INTERFACE_OF_MASTER");
	EXPECT(value && !strcmp(value, launched() ? "altered" : "put"));
	EXPECT((AMX_SPMDgetenvMaster("INTERFACE_OF_NOBODY") != NULL) == launched());
	unsetenv("INTERFACE_OF_MASTER");
	EXPECT((AMX_SPMDgetenvMaster("INTERFACE_OF_MASTER") == NULL) == launched());
	EXPECT(!AMX_SPMDgetenvMaster(NULL));
}

static void job(char **argv)
{
	int me = AMX_SPMDMyProc(), n = AMX_SPMDNumProcs(), i;
	int *all = (int *)calloc((size_t)n, sizeof(int));
	const amudp_spawnfn_desc_t *d;

	EXPECT(AMX_SPMDIsWorker(argv) == 1);
	/* as main() asks for silence */
	EXPECT(launched() || !strncmp(getenv("AMUDP_SLAVE_ARGS"), "1,", 2));
	console_environment();
	EXPECT(AMX_SPMDAllGather(&me, all, sizeof(me)) == AM_OK);
	for (i = 0; i < n; i++)
		EXPECT(all[i] == i);
	free(all);
	for (i = 0, d = AMUDP_Spawnfn_Desc; d->abbrev; d++)
		i += d->fnptr == (d->abbrev == 'S'   ? AMUDP_SPMDSshSpawn
				  : d->abbrev == 'L' ? AMUDP_SPMDLocalSpawn
						     : AMUDP_SPMDCustomSpawn);
	EXPECT(i == 3 && d - AMUDP_Spawnfn_Desc == 3);
}

/* What a job refuses that runs already. */
static void refusals(int argc, char **argv)
{
	uint64_t pid;
	eb_t other_eb;
	ep_t other_ep;
	int n = 0;

	EXPECT(AMX_SPMDStartup(&argc, &argv, 64, &pid, &other_eb, &other_ep) == AM_ERR_RESOURCE);
	EXPECT(AMX_SPMDAllGather(NULL, &n, sizeof(n)) == AM_ERR_BAD_ARG);
	EXPECT(AMX_SPMDAllGather(&n, NULL, sizeof(n)) == AM_ERR_BAD_ARG);
	EXPECT(AMX_SPMDAllGather(&n, &n, 0) == AM_ERR_BAD_ARG);
	EXPECT(AMX_SPMDAllGather(&n, &n, (size_t)1 << 30) == AM_ERR_BAD_ARG);
}

static void leave(int code)
{
	printf("rank %d leaves by its own way\n", AMX_SPMDMyProc());
	fflush(stdout);
	_exit(code);
}

int main(int argc, char **argv)
{
	static char segment[256], variable[] = "INTERFACE_OF_MASTER=put";
	amudp_stats_t sum = AMUDP_initial_stats, stats;
	uint64_t networkpid = 0;

	if (!launched() && !getenv("AMUDP_SLAVE_ARGS")) {
		putenv(variable);
		setenv("PASS_ENV", "INTERFACE_*", 1);
		EXPECT(AMX_SPMDIsWorker(argv) == 0);
	}
	AMUDP_SilentMode = 1;
	if (AMX_SPMDStartup(&argc, &argv, 64, &networkpid, &eb, &ep) != AM_OK)
		return 1;
	polls = argc > 1 && !strcmp(argv[1], "poll");
	AMUDP_ProcessLabel = "interface";
	AMX_SPMDkillmyprocess = leave;
	types();
	values();
	functions();
	job(argv);
	refusals(argc, argv);
	fatal();
	handlers_set();
	memcpy(segment, octets, sizeof(octets));
	EXPECT(AM_SetSeg(ep, segment, sizeof(segment)) == AM_OK);
	EXPECT(AM_SetEventMask(eb, AM_NOTEMPTY) == AM_OK);
	EXPECT(AMX_SPMDBarrier() == AM_OK);
	messages((AMX_SPMDMyProc() + 1) % AMX_SPMDNumProcs());
	AMUDP_PoliteSync = 1;
	returns((AMX_SPMDMyProc() + 1) % AMX_SPMDNumProcs());
	EXPECT(AMX_GetEndpointStatistics(ep, &stats) == AM_OK);
	EXPECT(AMX_AggregateStatistics(&sum, &stats) == AM_OK);
	EXPECT(sum.RequestsSent[amudp_Short] == 5 && sum.ReturnedMessages >= 5);
	AMX_VerboseErrors = 1;
	EXPECT(AM_SetTag(NULL, 1) == AM_ERR_BAD_ARG); /* which is told on stderr */
	printf("rank %d: %d wrong\n", AMX_SPMDMyProc(), wrong);
	AMX_SPMDBarrier();
	AMX_SPMDExit(wrong ? 1 : 0);
}
