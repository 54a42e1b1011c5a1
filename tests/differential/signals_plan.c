/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A seed becomes a scene. Scenes are such that Linux says the same each time: signals come before
 * the call, or when it sleeps, one after the other; who sends the next waits until the thread
 * sleeps again or is back from the call.
 */
#include <stdio.h>

#include "signals.h"

static uint64_t state;

uint32_t scene_random(uint32_t below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % below;
}

bool kind_waits(enum kind kind)
{
	return kind >= KIND_POLL;
}

bool kind_has_mask(enum kind kind)
{
	return kind == KIND_PPOLL || kind == KIND_PSELECT || kind == KIND_EPOLL_PWAIT ||
	       kind == KIND_EPOLL_PWAIT2;
}

/* Those with a mask are most of them; connect() and full connections take their time */
static enum kind kind_make(void)
{
	static const enum kind masked[] = { KIND_PPOLL, KIND_PSELECT, KIND_EPOLL_PWAIT,
					    KIND_EPOLL_PWAIT2 };
	enum kind kind;

	if (scene_random(2))
		return masked[scene_random(4)];
	kind = (enum kind)scene_random(KINDS);
	if (kind == KIND_CONNECT && scene_random(3))
		kind = KIND_READ;
	return kind;
}

/* A wait in a handler must not see a signal that comes at no certain moment */
static void action_make(struct action *a, enum ending ending)
{
	a->flags = (scene_random(2) ? SA_RESTART : 0) | (scene_random(6) ? 0 : SA_NODEFER);
	a->mask = scene_random(2) ? scene_random(ALL + 1) : 0;
	a->deed = scene_random(2) ? DEED_NONE : (enum deed)scene_random(DEEDS);
	if (ending == END_BOTH && (a->deed == DEED_POLL || a->deed == DEED_PPOLL))
		a->deed = DEED_NONE;
}

/* Few have a time-out, for it has to be waited for; a connection that is full none */
static enum ending ending_make(enum kind kind)
{
	enum ending ending = (enum ending)scene_random(ENDINGS);

	if (ending == END_TIMEOUT && (kind == KIND_CONNECT || scene_random(3)))
		return END_RELEASE;
	if (ending == END_BOTH && (kind == KIND_CONNECT || kind == KIND_SEND || kind == KIND_WRITE))
		return END_RELEASE;
	if (ending == END_READY && !kind_waits(kind))
		return END_RELEASE;
	return ending;
}

void scene_make(struct scene *s, uint64_t seed)
{
	*s = (struct scene){ 0 };
	state = seed * 0x9e3779b97f4a7c15ull + 1;
	for (int i = 0; i < 4; i++)
		scene_random(2);
	s->kind = kind_make();
	s->ending = ending_make(s->kind);
	s->own = scene_random(ALL + 1);
	s->mask = kind_has_mask(s->kind) ? scene_random(NO_MASK + 1) : NO_MASK;
	s->early = scene_random(2) ? scene_random(ALL + 1) : 0;
	s->steps = scene_random(STEPS + 1);
	for (unsigned int i = 0; i < s->steps; i++)
		s->step[i] = scene_random(SIGNALS);
	s->process = scene_random(2);
	s->limit = scene_random(3);
	for (int i = 0; i < SIGNALS; i++)
		action_make(&s->action[i], s->ending);
	/* One that was ready has returned before anything else comes */
	if (s->ending == END_READY)
		s->steps = 0;
	if (s->ending == END_BOTH && !s->steps)
		s->steps = 1;
}

void scene_say(const struct scene *s)
{
	static const char *const kinds[] = { "recv",	   "read",	  "readv",	 "recvmsg",
					     "send",	   "write",	  "accept",	 "connect",
					     "poll",	   "ppoll",	  "select",	 "pselect",
					     "epoll_wait", "epoll_pwait", "epoll_pwait2" };
	static const char *const endings[] = { "release", "timeout", "both", "ready" };

	printf("%s %s own %u mask %u early %u steps", kinds[s->kind], endings[s->ending], s->own,
	       s->mask, s->early);
	for (unsigned int i = 0; i < s->steps; i++)
		printf(" %u", s->step[i]);
	printf("%s limit %u actions", s->process ? " process" : "", s->limit);
	for (int i = 0; i < SIGNALS; i++)
		printf(" %s%s%u/%d", s->action[i].flags & SA_RESTART ? "r" : "",
		       s->action[i].flags & SA_NODEFER ? "n" : "", s->action[i].mask,
		       s->action[i].deed);
}
