/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How processes wake each other (stream/sleep.c, preload/sock/others.c): MOVERS processes take in octets
 * for a process with two waiters, a thread that sleeps in a call of its own and an epoll set, which
 * looks only at what it was told of. Both sleep on the process's one bell, too, and on what their
 * own process wakes them by.
 *
 * Shown for every interleaving: nobody sleeps for ever beside octets that wait to be taken, and the
 * bell is never rung without need, so a waiter that is busy costs one message at most.
 *
 * That each step is seen by all in one order is what the full fences are for. Each of the variants
 * leaves out one thing, and must fail:
 *
 *	NOT_TOLD	who hears the bell sees to itself alone
 *	FORGETS		an await takes away that it was rung, and does not tell
 *	AWAITS_ONCE	who hears the bell does not await anew
 *	NEW_UNTOLD	a first await does not tell who may have looked before it
 */
#ifndef OCTETS
#define OCTETS 2
#endif
#ifndef MOVERS
#define MOVERS 2
#endif
#define ALL (OCTETS * MOVERS)

byte there, taken;
bool wants, rung; /* the process's flags in the stream's state */
bool bell;	  /* a message in its queue */
bool thread_told, set_told;
byte rings;

inline tell()
{
	thread_told = true;
	set_told = true
}

/* Others are to ring, once; who takes away that they have tells the watchers */
inline await(was_rung, was_new)
{
	d_step { was_rung = rung; was_new = !wants; wants = true; rung = false };
	if
#ifndef FORGETS
	:: was_rung -> tell()
#endif
#ifndef NEW_UNTOLD
	:: was_new && !was_rung -> tell()
#endif
	:: else
	fi
}

inline hear(was_rung, was_new)
{
	bell = false;
#if defined(NOT_TOLD)
	skip
#elif defined(AWAITS_ONCE)
	rung = false;
	tell()
#else
	await(was_rung, was_new)
#endif
}

inline take(got)
{
	d_step {
		got = there > taken;
		if
		:: got -> taken++
		:: else
		fi
	}
}

active [MOVERS] proctype mover()
{
	byte i;
	bool ring;

	do
	:: i < OCTETS ->
		there++;
		d_step { ring = wants; wants = false; rung = rung || ring };
		if
		:: ring -> rings++; bell = true
		:: else
		fi;
		i++
	:: else -> break
	od
}

/* It wants one octet, and goes then */
active proctype thread()
{
	bool got, a, b;

	do
	:: got -> break
	:: !got && taken == ALL -> break
	:: !got && taken < ALL ->
		await(a, b);
		take(got);
		if
		:: !got ->
			(bell || thread_told || taken == ALL);
			thread_told = false;
			if
			:: bell -> hear(a, b)
			:: else
			fi
		:: else
		fi
	od
}

/* Another thread, which saw first that others have come, and awaits all that is watched */
active proctype settler()
{
	bool a, b;

	await(a, b)
}

/* It has looked once, perhaps before anybody awaited, and looks when it is told again */
active proctype set()
{
	bool got = true, a, b;

	do
	:: got -> take(got)
	:: !got && taken == ALL -> break
	:: !got && taken < ALL ->
		(bell || set_told || taken == ALL);
		if
		:: bell -> hear(a, b)
		:: else
		fi;
		if
		:: set_told -> set_told = false; got = true
		:: else
		fi
	od
}
