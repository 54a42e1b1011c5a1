/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One slot of the request protocol (docs/amudp-wire.md, section 5) over a network that loses,
 * duplicates and reorders: a requester that may also give up, and a replier.
 *
 * Shown for every interleaving of MESSAGES requests with at most CAPACITY packets under way each
 * way: no request runs twice, no reply runs twice, no reply runs for a request that did not run,
 * and a request that the requester was told is done has run. With GIVE_UP a request may be
 * returned; it then runs at most once, and never after a later one of its slot.
 *
 * A question (ASK) does what a copy of the request would, but that it never runs one, and ABSENT
 * only chooses when the next copy goes: so they need no place here.
 *
 * Sequence numbers do not wrap here: on the wire they have 16 bits, and a packet would have to
 * survive 32768 uses of its slot to be mistaken. -DONE_BIT models a one-bit number instead, for
 * which the check must fail: reordering makes an old duplicate look new.
 */
#ifndef MESSAGES
#define MESSAGES 3
#endif
#ifndef CAPACITY
#define CAPACITY 2
#endif

#ifdef ONE_BIT
#define SEQ(n) ((n) & 1)
#define NEWER(a, b) ((a) != (b))
#else
#define SEQ(n) (n)
#define NEWER(a, b) ((a) > (b))
#endif

/* The network holds a set of packets: [seq] is how many copies of it are under way. */
byte request_net[MESSAGES + 1];
byte reply_net[MESSAGES + 1];
byte requests_under_way, replies_under_way;

byte ran[MESSAGES + 1];
byte answered[MESSAGES + 1];
byte last_run;
bool returned[MESSAGES + 1];

active proctype requester()
{
	byte n = 1;
	byte m;

	do
	:: n <= MESSAGES ->
		/* the first copy */
		atomic { request_net[n]++; requests_under_way++ };
		do
		:: requests_under_way < CAPACITY ->
			atomic { request_net[n]++; requests_under_way++ } /* again: time-out */
		:: atomic {
			replies_under_way > 0 ->
			/* any reply may be next */
			select (m : 1 .. MESSAGES);
			if
			:: reply_net[m] > 0 ->
				reply_net[m]--;
				replies_under_way--;
				if
				:: SEQ(m) == SEQ(n) ->
					answered[n]++;
					assert(answered[n] == 1);
					assert(ran[n] == 1);
					break
				:: else -> skip /* an answer to an earlier use of the slot */
				fi
			:: else -> skip
			fi
		   }
#ifdef GIVE_UP
		:: returned[n] = true -> break
#endif
		od;
		n++
	:: else -> break
	od
}

active proctype replier()
{
	byte seq = 0; /* of the last request that ran */
	bool fresh = true;
	byte m;

end:
	do
	:: atomic {
		requests_under_way > 0 ->
		select (m : 1 .. MESSAGES);
		if
		:: request_net[m] > 0 ->
			request_net[m]--;
			requests_under_way--;
			if
			:: fresh || NEWER(SEQ(m), seq) ->
				fresh = false;
				seq = SEQ(m);
				ran[m]++;
				assert(ran[m] == 1);
				assert(m > last_run);
				last_run = m;
				if
				:: replies_under_way < CAPACITY ->
					reply_net[m]++;
					replies_under_way++
				:: else -> skip /* lost */
				fi
			:: SEQ(m) == seq && !fresh ->
				if
				:: replies_under_way < CAPACITY ->
					reply_net[m]++; /* the saved reply */
					replies_under_way++
				:: else -> skip
				fi
			:: else -> skip /* a straggler */
			fi
		:: else -> skip
		fi
	   }
	od
}

/* Loses and duplicates; order is free anyway. */
active proctype network()
{
	byte m;

end:
	do
	:: atomic {
		select (m : 1 .. MESSAGES);
		if
		:: request_net[m] > 0 -> request_net[m]--; requests_under_way--
		:: request_net[m] > 0 && requests_under_way < CAPACITY ->
			request_net[m]++;
			requests_under_way++
		:: reply_net[m] > 0 -> reply_net[m]--; replies_under_way--
		:: reply_net[m] > 0 && replies_under_way < CAPACITY ->
			reply_net[m]++;
			replies_under_way++
		:: else -> skip
		fi
	   }
	od
}
