/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The greatest numbers that calls accept are good for what they promise. A transfer of 2^30 octets
 * is in tests/e2e/am.sh, for long runs.
 */
#include "pair.h"

enum { ASK = 1, ANSWER };

#define LAST (AMUDP_MAX_NUMTRANSLATIONS - 1)

static unsigned char asked[AMUDP_MAX_NETWORKDEPTH];
static int questions, answers, source, answerer;

static void on_ask(void *token, void *buf, int nbytes, int i)
{
	questions++;
	asked[i]++;
	AMUDP_GetSourceId(token, &source);
	AM_Reply0(token, ANSWER);
}

static void on_answer(void *token)
{
	answers++;
	AMUDP_GetSourceId(token, &answerer);
}

static void open_both(struct pair *p, int size, int index, int depth)
{
	int i;

	pair_open(p, AM_SEQ);
	for (i = 0; i < 2; i++) {
		pair_place(i);
		AM_SetHandler(p->ep[i], ASK, on_ask);
		AM_SetHandler(p->ep[i], ANSWER, on_answer);
		cr_assert_eq(AM_SetNumTranslations(p->ep[i], size), AM_OK);
		cr_assert_eq(AM_Map(p->ep[i], size, p->name[!i], PAIR_TAG), AM_ERR_BAD_ARG);
		cr_assert_eq(AM_Map(p->ep[i], index, p->name[!i], PAIR_TAG), AM_OK);
		cr_assert_eq(AM_SetExpectedResources(p->ep[i], 1, depth), AM_OK);
	}
}

/* The peer takes nothing in until all are under way; its window is known from its first answer. */
Test(limits, requests_outstanding)
{
	struct pair p;
	int n = 0;

	open_both(&p, 1, 0, AMUDP_MAX_NETWORKDEPTH);
	AM_RequestXfer1(p.ep[0], 0, 0, ASK, "octets", 7, 0);
	pair_until(&p, p.ep[0]->outstanding == 0);
	if (p.ep[0]->translations[0].peer->window < 2048 * AMUDP_MAX_NETWORKDEPTH)
		cr_skip_test("the kernel's buffers hold too little");
	while (AM_RequestXferAsync1(p.ep[0], 0, 0, ASK, "octets", 7, n) == AM_OK)
		n++;
	cr_assert_eq(n, AMUDP_MAX_NETWORKDEPTH, "%d", n);
	cr_assert_eq(questions, 1);
	pair_until(&p, p.ep[0]->outstanding == 0);
	cr_assert_eq(questions, 1 + AMUDP_MAX_NETWORKDEPTH);
	cr_assert_eq(answers, questions);
	for (n = 0; n < AMUDP_MAX_NETWORKDEPTH; n++)
		cr_assert_eq(asked[n], 1 + (n == 0), "question %d", n);
	pair_close(&p);
}

Test(limits, translations)
{
	struct pair p;
	en_t name;
	int n;

	open_both(&p, AMUDP_MAX_NUMTRANSLATIONS, LAST, 4);
	cr_assert_eq(AM_GetNumTranslations(p.ep[0], &n), AM_OK);
	cr_assert_eq(n, AMUDP_MAX_NUMTRANSLATIONS);
	cr_assert_eq(AM_GetTranslationInuse(p.ep[0], LAST), AM_OK);
	cr_assert_eq(AM_GetTranslationName(p.ep[0], LAST, &name), AM_OK);
	cr_assert_eq(name.sin_port, p.name[1].sin_port);
	cr_assert_eq(AM_RequestXfer1(p.ep[0], LAST, 0, ASK, "octets", 7, 0), AM_OK);
	pair_until(&p, answers == 1);
	cr_assert_eq(source, LAST);
	cr_assert_eq(answerer, LAST);
	cr_assert_eq(AM_RequestXfer1(p.ep[0], LAST + 1, 0, ASK, "octets", 7, 0), AM_ERR_BAD_ARG);
	pair_close(&p);
}
