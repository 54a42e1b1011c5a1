/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which processes have a stream open.
 *
 * The table lies in the state and is changed without a lock, slot by slot, each by
 * compare-and-swap of one word that holds kind and process. A process that dies leaves its slot;
 * whoever needs to know looks for itself whether the holder lives, and clears the slots of the
 * dead. What another process writes there can make an end come too early or not at all, and no
 * more.
 *
 * Who is to come has a slot without a name: of a fork() or a spawn until the child or its parent
 * has given one, in flight until somebody adopts. Slots of one kind are alike, so it does not
 * matter who takes which.
 *
 * A process that finds no slot is counted in the overflow. One that dies there is never found
 * out, and then nobody writes the last DISCONNECT: the end is TCP's own FIN.
 */
#include "stream/state/holder.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/point.h"
#include "base/process.h"
#include "stream/state/host.h"

/* A child that neither it nor its parent has named by then will not come */
#define NAMELESS_LIMIT (10 * BASE_NS_PER_S)
/* Nor one who is sent a descriptor */
#define FLIGHT_LIMIT (24 * 3600 * BASE_NS_PER_S)

static uint64_t who_of(enum stream_holder_kind kind, uint32_t pid)
{
	return (uint64_t)kind << 32 | pid;
}

static enum stream_holder_kind kind_of(uint64_t who)
{
	return (enum stream_holder_kind)(who >> 32);
}

static bool who_set(struct stream_holder *h, uint64_t before, uint64_t after)
{
	return __atomic_compare_exchange_n(&h->who, &before, after, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

static void count(struct stream_state *st, uint32_t n)
{
	__atomic_add_fetch(&st->holders, n, __ATOMIC_SEQ_CST);
}

/* --- the dead --- */

static bool is_younger(uint64_t since, uint64_t limit)
{
	uint64_t now = base_process_clock();

	return !since || since > now || now - since < limit;
}

static bool lives(const struct stream_holder *h, uint64_t who)
{
	struct base_process p = { (uint32_t)who, base_load(&h->space) };
	uint64_t since = base_load(&h->since);

	switch (kind_of(who)) {
	case STREAM_HOLDER_LIVE:
		return base_process_lives(p, since);
	case STREAM_HOLDER_FORK:
	case STREAM_HOLDER_SPAWN:
		return is_younger(since, NAMELESS_LIMIT);
	case STREAM_HOLDER_FLIGHT:
		return is_younger(since, FLIGHT_LIMIT);
	default:
		return false;
	}
}

/* The slot of who was there is free; false: it was another's already */
static bool clear(struct stream_state *st, struct stream_holder *h, uint64_t who)
{
	uint64_t busy = who_of(STREAM_HOLDER_BUSY, base_process_self().pid);

	if (!who_set(h, who, busy))
		return false;
	BASE_POINT(stream_holder_clearing);
	base_store(&h->since, 0);
	base_store(&h->wakeup, 0);
	base_store(&h->asleep, 0);
	base_store(&h->who, 0);
	if (kind_of(who) != STREAM_HOLDER_BUSY)
		count(st, -1u);
	return true;
}

/* Who died while it cleared a slot leaves it to the next one */
static bool is_free(struct stream_state *st, struct stream_holder *h, uint64_t who)
{
	struct base_process p = { (uint32_t)who, base_process_self().space };

	if (!who)
		return true;
	if (kind_of(who) == STREAM_HOLDER_BUSY && base_process_lives(p, 0))
		return false;
	return !lives(h, who) && clear(st, h, who);
}

/* Who has it besides @own and those of kind @but */
static bool any_but(struct stream_state *st, int own, enum stream_holder_kind but)
{
	bool found = base_load(&st->overflow);

	for (int i = 0; i < STREAM_HOLDERS; i++) {
		struct stream_holder *h = &st->holder[i];
		uint64_t who = __atomic_load_n(&h->who, __ATOMIC_SEQ_CST);

		if (i == own || !who)
			continue;
		if (lives(h, who))
			found |= kind_of(who) != but;
		else
			is_free(st, h, who);
	}
	return found;
}

bool stream_holder_lives(struct stream_holder *holders)
{
	for (int i = 0; i < STREAM_HOLDERS; i++) {
		uint64_t who = base_load(&holders[i].who);

		if (who && lives(&holders[i], who))
			return true;
	}
	return false;
}

bool stream_holder_any(struct stream_state *st)
{
	return any_but(st, -1, STREAM_HOLDER_NONE);
}

bool stream_holder_others(struct stream *s)
{
	return any_but(s->state, base_load(&s->slot), STREAM_HOLDER_NONE);
}

bool stream_holder_may(const void *ctx, uint32_t space)
{
	const struct stream_state *st = ctx;

	for (int i = 0; i < STREAM_HOLDERS; i++) {
		const struct stream_holder *h = &st->holder[i];

		if (kind_of(base_load(&h->who)) == STREAM_HOLDER_LIVE &&
		    (base_load(&h->space) & BASE_LOCK_SPACE) == space)
			return true;
	}
	return false;
}

/* --- entering and leaving --- */

static void stamp(struct stream_holder *h, uint32_t space)
{
	base_store(&h->space, space);
	base_store(&h->since, base_process_clock());
}

/* A free slot is this one's now; of the dead only when no other is left */
static int slot_take(struct stream_state *st, uint64_t who)
{
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < STREAM_HOLDERS; i++) {
			struct stream_holder *h = &st->holder[i];
			uint64_t was = base_load(&h->who);

			if ((was && (!round || !is_free(st, h, was))) || !who_set(h, 0, who))
				continue;
			stamp(h, base_process_self().space);
			return i;
		}
	}
	return -1;
}

static int enter(struct stream_state *st, enum stream_holder_kind kind)
{
	int slot = slot_take(st, who_of(kind, base_process_self().pid));

	count(st, 1);
	if (slot < 0)
		__atomic_add_fetch(&st->overflow, 1, __ATOMIC_SEQ_CST);
	return slot;
}

/* One without a slot goes; the number may be rubbish */
static void overflow_leave(struct stream_state *st)
{
	uint32_t n = base_load(&st->overflow);

	while (n && !__atomic_compare_exchange_n(&st->overflow, &n, n - 1, false, __ATOMIC_SEQ_CST,
						 __ATOMIC_ACQUIRE))
		;
	count(st, -1u);
}

/* Is the number in the slot one of this PID namespace? Perhaps, where that is not known */
static bool is_near(const struct stream_holder *h)
{
	uint32_t space = base_load(&h->space), own = base_process_self().space;

	return !space || !own || space == own;
}

/* A slot of this kind, if there is one: of @pid rather than another's (0: of nobody else's) */
static int slot_find(struct stream_state *st, enum stream_holder_kind kind, uint32_t pid,
		     bool others)
{
	int found = -1;

	for (int i = 0; i < STREAM_HOLDERS; i++) {
		uint64_t who = base_load(&st->holder[i].who);

		if (who == who_of(kind, pid) &&
		    (kind != STREAM_HOLDER_LIVE || is_near(&st->holder[i])))
			return i;
		if (others && kind_of(who) == kind)
			found = i;
	}
	return found;
}

/* A slot without a name becomes that of @pid: which one, -1: there is none; @others: anybody's */
static int claim(struct stream_state *st, enum stream_holder_kind kind, uint32_t maker,
		 uint32_t pid, bool others)
{
	int i;

	while ((i = slot_find(st, kind, maker, others)) >= 0) {
		struct stream_holder *h = &st->holder[i];
		uint64_t was = base_load(&h->who);

		if (kind_of(was) != kind)
			continue;
		/* Who comes may have been started after the slot was, and is no other for that */
		stamp(h, base_process_self().space);
		if (!who_set(h, was, who_of(STREAM_HOLDER_LIVE, pid)))
			continue;
		BASE_POINT(stream_holder_claimed);
		stamp(h, base_process_self().space);
		return i;
	}
	return -1;
}

/* Of this process, which is another program now, and has nothing to be rung by yet */
static void renew(struct stream_holder *h)
{
	stamp(h, base_process_self().space);
	base_store(&h->wakeup, 0);
	base_store(&h->asleep, 0);
}

/* A place that waits for who comes in, or a new one */
void stream_holder_enter(struct stream *s)
{
	static const enum stream_holder_kind kinds[] = { STREAM_HOLDER_SPAWN, STREAM_HOLDER_FLIGHT,
							 STREAM_HOLDER_FORK };
	struct stream_state *st = s->state;
	uint32_t pid = base_process_self().pid;
	int slot = slot_find(st, STREAM_HOLDER_LIVE, pid, false);

	if (slot >= 0)
		renew(&st->holder[slot]);
	for (unsigned int i = 0; slot < 0 && i < sizeof(kinds) / sizeof(*kinds); i++)
		slot = claim(st, kinds[i], 0, pid, true);
	if (slot < 0)
		slot = enter(st, STREAM_HOLDER_LIVE);
	base_store(&s->slot, slot);
}

bool stream_holder_flight(struct stream *s)
{
	return slot_find(s->state, STREAM_HOLDER_FLIGHT, 0, true) >= 0 &&
	       !any_but(s->state, base_load(&s->slot), STREAM_HOLDER_FLIGHT);
}

static void leave(struct stream_state *st, uint64_t who)
{
	for (int i = 0; i < STREAM_HOLDERS; i++)
		if (base_load(&st->holder[i].who) == who && is_near(&st->holder[i]))
			clear(st, &st->holder[i], who);
}

/* Its parent may have named it when it had just come by itself: then it has two */
void stream_holder_leave(struct stream *s)
{
	struct stream_state *st = s->state;
	uint64_t me = who_of(STREAM_HOLDER_LIVE, base_process_self().pid);

	if (__atomic_exchange_n(&s->slot, -1, __ATOMIC_ACQ_REL) < 0)
		overflow_leave(st);
	leave(st, me);
}

void stream_holder_drop(struct stream_state *st, enum stream_holder_kind kind)
{
	uint32_t pid = base_process_self().pid;
	int i;

	while ((i = slot_find(st, kind, pid, true)) >= 0) {
		uint64_t was = base_load(&st->holder[i].who);

		if (kind_of(was) == kind && clear(st, &st->holder[i], was))
			return;
	}
	overflow_leave(st);
}

/* --- whom the program lets have it --- */

static const enum stream_holder_kind shares[] = {
	[STREAM_SHARE_FORK] = STREAM_HOLDER_FORK,
	[STREAM_SHARE_SPAWN] = STREAM_HOLDER_SPAWN,
	[STREAM_SHARE_FLIGHT] = STREAM_HOLDER_FLIGHT,
};

void stream_holder_expect(struct stream *s, enum stream_share how)
{
	enter(s->state, shares[how]);
}

void stream_unshare(struct stream *s, enum stream_share how)
{
	stream_holder_drop(s->state, shares[how]);
}

/* The parent may have named it already; else its own is one of those that wait */
void stream_joined(struct stream *s)
{
	uint32_t pid = base_process_self().pid;
	int slot = slot_find(s->state, STREAM_HOLDER_LIVE, pid, false);

	if (slot < 0)
		slot = claim(s->state, STREAM_HOLDER_FORK, (uint32_t)getppid(), pid, true);
	if (slot < 0 && !base_load(&s->state->overflow))
		slot = enter(s->state, STREAM_HOLDER_LIVE);
	base_store(&s->slot, slot);
	base_store(&s->probe_error, 0); /* what its parent has found, its parent deals with */
}

/* The child may have come and gone: then a slot that is left is another's */
void stream_named(struct stream *s, uint32_t pid)
{
	struct stream_state *st = s->state;
	uint32_t self = base_process_self().pid;

	if (slot_find(st, STREAM_HOLDER_LIVE, pid, false) >= 0)
		return;
	if (claim(st, STREAM_HOLDER_FORK, self, pid, false) < 0)
		claim(st, STREAM_HOLDER_SPAWN, self, pid, false);
}

void stream_left(struct stream *s, uint32_t pid)
{
	leave(s->state, who_of(STREAM_HOLDER_LIVE, pid));
}

bool stream_shared(struct stream *s)
{
	return base_load(&s->state->holders) > 1;
}

bool stream_alone(struct stream *s)
{
	return !stream_holder_others(s);
}

/* --- those whose it is alone --- */

bool stream_is_anothers(const struct stream *s)
{
	uint32_t owner = base_load(&s->state->owner);

	return owner && owner != (uint32_t)syscall(SYS_getpid);
}

bool stream_is_foreign(const struct stream *s)
{
	/* Closed here while another process has it: what fails here must not break it there */
	return __atomic_load_n(&s->fd, __ATOMIC_ACQUIRE) < 0 || stream_is_anothers(s);
}
