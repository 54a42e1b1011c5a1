/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every message macro, each form with 0 to 16 arguments: how many arrive, which values in which
 * order, and the data where they belong. Compiled as gnu99 and as C++, run as "macros N L" with
 * two ranks or more; each rank asks the next one. "macros N L poll" waits by AM_Poll.
 *
 * The callback before a handler is told how many arguments a message has. The first is its number,
 * from which the others follow; that of a message without arguments is 0.
 */
#include <amudp.h>
#include <amudp_spmd.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 24, PLACES = 32 };
enum { REQUEST_SHORT = 1, REQUEST_MEDIUM, REQUEST_LONG, ANSWER_SHORT, ANSWER_MEDIUM, ANSWER_LONG };

/* a program's arguments are seldom int32_t: the macros cast them */
#define ARG(n, i) ((long long)(n)*1000 + (i))
#define ARGS_1(n) ARG(n, 0)
#define ARGS_2(n) ARGS_1(n), ARG(n, 1)
#define ARGS_3(n) ARGS_2(n), ARG(n, 2)
#define ARGS_4(n) ARGS_3(n), ARG(n, 3)
#define ARGS_5(n) ARGS_4(n), ARG(n, 4)
#define ARGS_6(n) ARGS_5(n), ARG(n, 5)
#define ARGS_7(n) ARGS_6(n), ARG(n, 6)
#define ARGS_8(n) ARGS_7(n), ARG(n, 7)
#define ARGS_9(n) ARGS_8(n), ARG(n, 8)
#define ARGS_10(n) ARGS_9(n), ARG(n, 9)
#define ARGS_11(n) ARGS_10(n), ARG(n, 10)
#define ARGS_12(n) ARGS_11(n), ARG(n, 11)
#define ARGS_13(n) ARGS_12(n), ARG(n, 12)
#define ARGS_14(n) ARGS_13(n), ARG(n, 13)
#define ARGS_15(n) ARGS_14(n), ARG(n, 14)
#define ARGS_16(n) ARGS_15(n), ARG(n, 15)
#define EACH(x) \
	x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) x(15) x(16)

#define FIFTEEN                                                                                   \
	int a1, int a2, int a3, int a4, int a5, int a6, int a7, int a8, int a9, int a10, int a11, \
		int a12, int a13, int a14, int a15
#define ALL                                                                          \
	{                                                                            \
		a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15 \
	}

static int wrong, answers, arrived, polls;
static eb_t eb;
static ep_t ep;
static char segment[2 * PLACES * LENGTH];

static void say(const char *what, int n)
{
	wrong++;
	printf("%s with %d arguments\n", what, n);
}

static char *octets(int n)
{
	static char data[LENGTH];

	memset(data, 'a' + n, sizeof(data));
	return data;
}

/* Where the data of n arguments go, there and in answers. */
static uintptr_t place(int n)
{
	return (uintptr_t)n * LENGTH;
}

static void before(amudp_category_t category, int request, int handler, void *token, void *buf,
		   size_t n, int numargs, uint32_t *args)
{
	arrived = numargs;
}

static void check_args(const char *what, const int *args)
{
	int i;

	for (i = 0; i < 16; i++) {
		if (args[i] != (i < arrived ? (int)ARG(arrived, i) : 0)) {
			say(what, arrived);
			return;
		}
	}
}

static void check_data(const char *what, const void *buf, int n)
{
	if (n != LENGTH || memcmp(buf, octets(arrived), LENGTH))
		say(what, arrived);
}

/* Wiped when seen, so that the next message has to bring its own. */
static void check_place(const char *what, void *buf, int n)
{
	check_data(what, buf, n);
	if (buf != segment + place(arrived))
		say("another place", arrived);
	memset(buf, 0, (size_t)n);
}

/* The replies of as many arguments as the request had, by its macro. */
#define REPLY(n) \
	case n:  \
		return AM_Reply##n(token, ANSWER_SHORT, ARGS_##n(n));
#define REPLY_I(n) \
	case n:    \
		return AM_ReplyI##n(token, ANSWER_MEDIUM, octets(n), LENGTH, ARGS_##n(n));
#define REPLY_XFER(n)                                                                   \
	case n:                                                                         \
		return AM_ReplyXfer##n(token, place(n), ANSWER_LONG, octets(n), LENGTH, \
				       ARGS_##n(n));

static int reply(void *token, int n)
{
	switch (n) {
		EACH(REPLY)
	default:
		return AM_Reply0(token, ANSWER_SHORT);
	}
}

static int reply_i(void *token, int n)
{
	switch (n) {
		EACH(REPLY_I)
	default:
		return AM_ReplyI0(token, ANSWER_MEDIUM, octets(0), LENGTH);
	}
}

static int reply_xfer(void *token, int n)
{
	switch (n) {
		EACH(REPLY_XFER)
	default:
		return AM_ReplyXfer0(token, place(0), ANSWER_LONG, octets(0), LENGTH);
	}
}

static void on_short(void *token, int a0, FIFTEEN)
{
	int args[] = ALL;

	check_args("a short request", args);
	if (reply(token, arrived) != AM_OK)
		say("no short reply", arrived);
}

static void on_medium(void *token, void *buf, int n, int a0, FIFTEEN)
{
	int args[] = ALL;

	check_args("a medium request", args);
	check_data("the data of a medium request", buf, n);
	if (reply_i(token, arrived) != AM_OK)
		say("no medium reply", arrived);
}

static void on_long(void *token, void *buf, int n, int a0, FIFTEEN)
{
	int args[] = ALL;

	check_args("a long request", args);
	check_place("the data of a long request", buf, n);
	if (reply_xfer(token, arrived) != AM_OK)
		say("no long reply", arrived);
}

static void on_short_answer(void *token, int a0, FIFTEEN)
{
	int args[] = ALL;

	check_args("a short reply", args);
	answers++;
}

static void on_medium_answer(void *token, void *buf, int n, int a0, FIFTEEN)
{
	int args[] = ALL;

	check_args("a medium reply", args);
	check_data("the data of a medium reply", buf, n);
	answers++;
}

/* What was got lies where a reply's data would. */
static void on_long_answer(void *token, void *buf, int n, int a0, FIFTEEN)
{
	int args[] = ALL;

	check_args("a long reply or a get", args);
	check_place("the data of a long reply or a get", buf, n);
	answers++;
}

/* One after the other: the answer to each is told apart by its number of arguments. */
static void ask(const char *what, int n, int sent)
{
	int seen = answers;

	if (sent != AM_OK)
		say(what, n);
	while (sent == AM_OK && answers == seen) {
		if (polls)
			AM_Poll(eb);
		else
			AM_WaitSema(eb);
	}
	if (arrived != n)
		say(what, n);
}

#define FROM(n) (PLACES * LENGTH + place(n))
#define ASK(n)                                                                                    \
	ask("Request", n, AM_Request##n(ep, next, REQUEST_SHORT, ARGS_##n(n)));                   \
	ask("RequestI", n,                                                                        \
	    AM_RequestI##n(ep, next, REQUEST_MEDIUM, octets(n), LENGTH, ARGS_##n(n)));            \
	ask("RequestXfer", n,                                                                     \
	    AM_RequestXfer##n(ep, next, place(n), REQUEST_LONG, octets(n), LENGTH, ARGS_##n(n))); \
	ask("RequestXferAsync", n,                                                                \
	    AM_RequestXferAsync##n(ep, next, place(n), REQUEST_LONG, octets(n), LENGTH,           \
				   ARGS_##n(n)));                                                 \
	ask("GetXfer", n,                                                                         \
	    AM_GetXfer##n(ep, next, FROM(n), ANSWER_LONG, place(n), LENGTH, ARGS_##n(n)));        \
	ask("GetXferAsync", n,                                                                    \
	    AM_GetXferAsync##n(ep, next, FROM(n), ANSWER_LONG, place(n), LENGTH, ARGS_##n(n)));

static void ask_all(int next)
{
	ask("Request", 0, AM_Request0(ep, next, REQUEST_SHORT));
	ask("RequestI", 0, AM_RequestI0(ep, next, REQUEST_MEDIUM, octets(0), LENGTH));
	ask("RequestXfer", 0, AM_RequestXfer0(ep, next, place(0), REQUEST_LONG, octets(0), LENGTH));
	ask("RequestXferAsync", 0,
	    AM_RequestXferAsync0(ep, next, place(0), REQUEST_LONG, octets(0), LENGTH));
	ask("GetXfer", 0, AM_GetXfer0(ep, next, FROM(0), ANSWER_LONG, place(0), LENGTH));
	ask("GetXferAsync", 0, AM_GetXferAsync0(ep, next, FROM(0), ANSWER_LONG, place(0), LENGTH));
	EACH(ASK)
}

/* Which transfers and gets are the asynchronous ones, as what they expand to is told. */
#undef AMUDP_QX
#undef AMUDP_G
#define AMUDP_QX(ep, d, o, h, s, n, async, ...) (async)
#define AMUDP_G(ep, d, so, h, o, n, async, ...) (async)
#define CHECK_ASYNC(n)                                                 \
	if (AM_RequestXfer##n(ep, 0, 0, 0, 0, 0, ARGS_##n(n)) ||       \
	    AM_GetXfer##n(ep, 0, 0, 0, 0, 0, ARGS_##n(n)))             \
		say("asynchronous", n);                                \
	if (!AM_RequestXferAsync##n(ep, 0, 0, 0, 0, 0, ARGS_##n(n)) || \
	    !AM_GetXferAsync##n(ep, 0, 0, 0, 0, 0, ARGS_##n(n)))       \
		say("not asynchronous", n);

static void check_async(void)
{
	if (AM_RequestXfer0(ep, 0, 0, 0, 0, 0) || AM_GetXfer0(ep, 0, 0, 0, 0, 0))
		say("asynchronous", 0);
	if (!AM_RequestXferAsync0(ep, 0, 0, 0, 0, 0) || !AM_GetXferAsync0(ep, 0, 0, 0, 0, 0))
		say("not asynchronous", 0);
	EACH(CHECK_ASYNC)
}

int main(int argc, char **argv)
{
	uint64_t networkpid;
	int n;

	if (AMX_SPMDStartup(&argc, &argv, 0, &networkpid, &eb, &ep) != AM_OK)
		return 1;
	polls = argc > 1 && !strcmp(argv[1], "poll");
	AM_SetHandler(ep, REQUEST_SHORT, on_short);
	AM_SetHandler(ep, REQUEST_MEDIUM, on_medium);
	AM_SetHandler(ep, REQUEST_LONG, on_long);
	AM_SetHandler(ep, ANSWER_SHORT, on_short_answer);
	AM_SetHandler(ep, ANSWER_MEDIUM, on_medium_answer);
	AM_SetHandler(ep, ANSWER_LONG, on_long_answer);
	AMUDP_SetHandlerCallbacks(ep, before, NULL);
	for (n = 0; n <= 16; n++)
		memcpy(segment + FROM(n), octets(n), LENGTH);
	AM_SetSeg(ep, segment, sizeof(segment));
	AM_SetEventMask(eb, AM_NOTEMPTY);
	check_async();
	AMX_SPMDBarrier();
	/* one rank after the other, for what arrived last is one thing then */
	for (n = 0; n < AMX_SPMDNumProcs(); n++) {
		if (n == AMX_SPMDMyProc())
			ask_all((n + 1) % AMX_SPMDNumProcs());
		AMX_SPMDBarrier();
	}
	printf("rank %d: %d answers, %d wrong\n", AMX_SPMDMyProc(), answers, wrong);
	AMX_SPMDBarrier();
	AMX_SPMDExit(wrong ? 1 : 0);
}
