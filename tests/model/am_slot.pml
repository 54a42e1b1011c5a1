/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One slot of the request protocol (docs/amudp-wire.md, section 5) over a network that loses,
 * duplicates and reorders: a requester that may also give up, and a replier.
 *
 * Shown for every interleaving of MESSAGES requests with at most CAPACITY packets under way each
 * way: no request runs twice or after it was answered, no reply runs twice, no reply runs for a
 * request that did not run, and a request that the requester was told is done has run. With
 *
 *	GIVE_UP	a request may be returned; it then runs at most once, and never after a later one
 *		of its slot
 *	REFUSES	the replier may refuse a request, which then never runs, and the requester a reply,
 *		of which the replier's handler 0 then hears exactly once before the slot goes on
 *	RENEWS	the replier may be replaced by one that knows nothing (section 9): that runs each
 *		request at most once, and none whose answer had come. Packets name the
 *		incarnation that they are for from the beginning, as they do from the first answer on
 *
 * A question (ASK) does what a copy of the request would, but that it never runs one, and ABSENT
 * only chooses when the next copy goes: so they need no place here.
 *
 * Sequence numbers do not wrap here: on the wire they have 16 bits, and a packet would have to
 * survive 32768 uses of its slot to be mistaken. Each of these leaves out one thing, and must fail:
 *
 *	ONE_BIT		a number of one bit: reordering makes an old duplicate look new
 *	TOLD_AGAIN	the replier does not keep that its reply was refused
 *	UNNAMED		packets do not tell which incarnation of the replier they are for
 *	BELATED		an answer of a predecessor is taken
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

#ifdef RENEWS
#define LIVES 2
#else
#define LIVES 1
#endif
#ifdef UNNAMED
#define IS_MINE(inc) true
#else
#define IS_MINE(inc) ((inc) == life)
#endif
#ifdef BELATED
#define IS_STALE(inc) false
#else
#define IS_STALE(inc) ((inc) < known)
#endif

/*
 * The network holds a set of packets: [AT(seq, life)] is how many copies of it are under way to or
 * from this incarnation of the replier.
 */
#define AT(seq, life) ((seq) + (MESSAGES + 1) * (life))
#define PACKETS (LIVES * (MESSAGES + 1))

byte request_net[PACKETS];
byte reply_net[PACKETS]; /* or a refusal of the request */
byte requests_under_way, replies_under_way;
#ifdef REFUSES
byte refusal_net[MESSAGES + 1]; /* of a reply, among the requests */
byte ack_net[MESSAGES + 1];	/* for that, among the replies */
#endif

byte life;  /* incarnation of the replier */
byte known; /* ... that the requester believes in */

byte ran[MESSAGES + 1]; /* in this life */
byte ran_before[MESSAGES + 1];
byte answered[MESSAGES + 1];
byte last_run;
bool returned[MESSAGES + 1];
bool denied[MESSAGES + 1]; /* the answer is a refusal */
byte told[MESSAGES + 1];   /* handler 0 of the replier, that its reply was refused */

inline any(seq, inc)
{
	select (seq : 1 .. MESSAGES);
#ifdef RENEWS
	select (inc : 0 .. 1)
#else
	inc = 0
#endif
}

inline put(copies, under_way)
{
	if
	:: under_way < CAPACITY ->
		copies++;
		under_way++
	:: else -> skip /* lost */
	fi
}

inline get(copies, under_way)
{
	copies--;
	under_way--
}

active proctype requester()
{
	byte n = 1;
	byte m, inc;
	bool refusing; /* the reply, until the replier knows */

	do
	:: n <= MESSAGES ->
		refusing = false;
		/* the first copy */
		atomic { request_net[AT(n, known)]++; requests_under_way++ };
		do
		:: requests_under_way < CAPACITY && !refusing ->
			/* again: time-out */
			atomic { request_net[AT(n, known)]++; requests_under_way++ }
		:: atomic {
			replies_under_way > 0 ->
			/* any reply may be next */
			any(m, inc);
			if
			:: reply_net[AT(m, inc)] > 0 ->
				get(reply_net[AT(m, inc)], replies_under_way);
				if
				:: IS_STALE(inc) || SEQ(m) != SEQ(n) || refusing ->
					skip /* of a predecessor, or of an earlier use of the slot */
				:: else ->
					if
					:: denied[n] ->
						assert(ran[n] == 0 && !returned[n]);
						returned[n] = true;
						break
					:: !denied[n] ->
						answered[n]++;
						assert(answered[n] == 1);
						assert(ran[n] + ran_before[n] > 0);
						break
#ifdef REFUSES
					:: !denied[n] -> refusing = true
#endif
					fi
				fi;
				if
				:: inc > known -> known = inc
				:: else
				fi
			:: else -> skip
			fi
		   }
#ifdef REFUSES
		:: requests_under_way < CAPACITY && refusing ->
			atomic { refusal_net[n]++; requests_under_way++ }
		:: atomic {
			replies_under_way > 0 ->
			select (m : 1 .. MESSAGES);
			if
			:: ack_net[m] > 0 ->
				get(ack_net[m], replies_under_way);
				if
				:: refusing && m == n ->
					assert(told[n] == 1 && answered[n] == 0);
					break
				:: else -> skip
				fi
			:: else -> skip
			fi
		   }
#endif
#ifdef RENEWS
		/* a RESET, or a request of its own, tells of the new one */
		:: known < life -> known = life
#endif
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
	byte seq = 0; /* of the last request that came */
	bool fresh = true;
	bool reply_refused;
	byte m, inc;

end:
	do
	:: atomic {
		requests_under_way > 0 ->
		any(m, inc);
		if
		:: request_net[AT(m, inc)] > 0 ->
			get(request_net[AT(m, inc)], requests_under_way);
			if
			:: !IS_MINE(inc) -> skip /* a predecessor's */
			:: IS_MINE(inc) && (fresh || NEWER(SEQ(m), seq)) ->
				fresh = false;
				seq = SEQ(m);
				reply_refused = false;
				assert(!denied[m] && !answered[m]);
				if
				:: true ->
					ran[m]++;
					assert(ran[m] == 1);
					assert(m > last_run);
					last_run = m
#ifdef REFUSES
				:: true -> denied[m] = true
#endif
				fi;
				put(reply_net[AT(m, life)], replies_under_way)
			:: IS_MINE(inc) && SEQ(m) == seq && !fresh ->
				/* the saved reply */
				put(reply_net[AT(m, life)], replies_under_way)
			:: else -> skip /* a straggler */
			fi
		:: else -> skip
		fi
	   }
#ifdef REFUSES
	:: atomic {
		requests_under_way > 0 ->
		select (m : 1 .. MESSAGES);
		if
		:: refusal_net[m] > 0 ->
			get(refusal_net[m], requests_under_way);
			put(ack_net[m], replies_under_way);
			if
			:: m == seq && !denied[m] && !reply_refused ->
#ifndef TOLD_AGAIN
				reply_refused = true;
#endif
				told[m]++;
				assert(told[m] == 1 && ran[m] == 1)
			:: else -> skip
			fi
		:: else -> skip
		fi
	   }
#endif
#ifdef RENEWS
	:: atomic {
		life == 0 ->
		life = 1;
		fresh = true;
		seq = 0;
		last_run = 0;
		for (m : 1 .. MESSAGES) {
			ran_before[m] = ran[m];
			ran[m] = 0
		}
	   }
#endif
	od
}

/* Loses and duplicates; order is free anyway. */
active proctype network()
{
	byte m, inc;

end:
	do
	:: atomic {
		any(m, inc);
		if
		:: request_net[AT(m, inc)] > 0 -> get(request_net[AT(m, inc)], requests_under_way)
		:: request_net[AT(m, inc)] > 0 -> put(request_net[AT(m, inc)], requests_under_way)
		:: reply_net[AT(m, inc)] > 0 -> get(reply_net[AT(m, inc)], replies_under_way)
		:: reply_net[AT(m, inc)] > 0 -> put(reply_net[AT(m, inc)], replies_under_way)
#ifdef REFUSES
		:: refusal_net[m] > 0 -> get(refusal_net[m], requests_under_way)
		:: refusal_net[m] > 0 -> put(refusal_net[m], requests_under_way)
		:: ack_net[m] > 0 -> get(ack_net[m], replies_under_way)
		:: ack_net[m] > 0 -> put(ack_net[m], replies_under_way)
#endif
		:: else -> skip
		fi
	   }
	od
}
