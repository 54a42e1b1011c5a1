/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How processes wake each other (stream/sleep.c, preload/sock/others.c): MOVERS processes take in octets
 * for a process with two waiters, a thread that sleeps in a call of its own and an epoll set, which
 * looks only at what it was told of. Both sleep on the process's one wakeup fd, too, and on what their
 * own process wakes them by.
 *
 * Shown for every interleaving: nobody sleeps for ever beside octets that wait to be taken, and the
 * wakeup is never sent without need, so a waiter that is busy costs one message at most.
 *
 * That each step is seen by all in one order is what the full fences are for. Each of the variants
 * leaves out one thing, and must fail:
 *
 *	NOT_TOLD	who hears of a wakeup sees to itself alone
 *	FORGETS		an await takes away that it was woken, and does not tell
 *	AWAITS_ONCE	who hears of a wakeup does not await anew
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
bool wants, woken; /* the process's flags in the stream's state */
bool wakeup;	  /* a message in its queue */
bool thread_told, set_told;
byte wakeups;

inline tell()
{
	thread_told = true;
	set_told = true
}

/* Others are to wake, once; who takes away that they have tells the watchers */
inline await(was_woken, was_new)
{
	d_step { was_woken = woken; was_new = !wants; wants = true; woken = false };
	if
#ifndef FORGETS
	:: was_woken -> tell()
#endif
#ifndef NEW_UNTOLD
	:: was_new && !was_woken -> tell()
#endif
	:: else
	fi
}

inline hear(was_woken, was_new)
{
	wakeup = false;
#if defined(NOT_TOLD)
	skip
#elif defined(AWAITS_ONCE)
	woken = false;
	tell()
#else
	await(was_woken, was_new)
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
	bool wakes;

	do
	:: i < OCTETS ->
		there++;
		d_step { wakes = wants; wants = false; woken = woken || wakes };
		if
		:: wakes -> wakeups++; wakeup = true
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
			(wakeup || thread_told || taken == ALL);
			thread_told = false;
			if
			:: wakeup -> hear(a, b)
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
		(wakeup || set_told || taken == ALL);
		if
		:: wakeup -> hear(a, b)
		:: else
		fi;
		if
		:: set_told -> set_told = false; got = true
		:: else
		fi
	od
}
