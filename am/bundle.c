/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bundles: endpoints that are polled and waited for together, and what makes AM_PAR safe.
 *
 * In AM_PAR one lock guards a bundle and all in it; it is dropped while a handler runs and while
 * a call sleeps. Each poll takes arrivals into a batch of its own, so that several threads may
 * run handlers of one endpoint at once. A thread that sleeps may be woken by an arrival that
 * another thread takes: it then finds nothing and sleeps again, which AM_WaitSema allows for by
 * counting messages.
 */
#include "am/bundle.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>

#include "am/env.h"
#include "am/gather.h"
#include "am/progress.h"
#include "am/queue.h"
#include "base/bits.h"
#include "base/clock.h"

#define IDLE_POLLS 256 /* empty polls, each time a process gives its processor away ... */
#define IDLE_POLLS_OVERSUBSCRIBED \
	8 /* ... and those before each of the rest, with too many processes */

bool am_oversubscribed;
void (*am_bundle_interrupt)(void);
int am_bundle_interrupt_fd = -1;

static struct base_list bundles = BASE_LIST_INIT(bundles);
static int bundle_count;
static pthread_mutex_t bundles_lock = PTHREAD_MUTEX_INITIALIZER;

/* What one thread sleeps on: sets stay with the bundle, as many as ever slept in it at once. */
struct am_wait_set {
	struct am_wait_set *next;
	nfds_t room;
	struct pollfd fds[];
};

static nfds_t descriptors_count(const struct amudp_eb *eb)
{
	const struct base_list *node;
	nfds_t n = 2; /* of a collective, of an interruption */

	for (node = eb->endpoints.next; node != &eb->endpoints; node = node->next)
		n += 2 * (nfds_t)base_list_entry(node, struct amudp_ep, node)->num_nics;
	return n;
}

static struct am_wait_set *wait_set_grow(struct am_wait_set *set, nfds_t room)
{
	struct am_wait_set *bigger = realloc(set, sizeof(*set) + room * sizeof(set->fds[0]));

	if (!bigger)
		return NULL;
	if (!set)
		bigger->next = NULL;
	bigger->room = room;
	return bigger;
}

/* One with room for all; NULL: no memory. */
static struct am_wait_set *wait_set_get(struct amudp_eb *eb)
{
	struct am_wait_set *set = eb->wait_sets;
	nfds_t room = descriptors_count(eb);

	if (!set || set->room < room)
		set = wait_set_grow(set, room);
	if (set)
		eb->wait_sets = set->next;
	return set;
}

static void wait_sets_free(struct amudp_eb *eb)
{
	struct am_wait_set *set;

	while ((set = eb->wait_sets)) {
		eb->wait_sets = set->next;
		free(set);
	}
}

int AM_AllocateBundle(int type, eb_t *endb)
{
	struct amudp_eb *eb;

	if (!am_init_count)
		am_return_error(AM_ERR_NOT_INIT, "AM_Init comes first");
	if (type < 0 || type >= AM_NUM_BUNDLE_MODES || !endb)
		am_return_error(AM_ERR_BAD_ARG, "AM_SEQ or AM_PAR, and a place for the answer");
	eb = calloc(1, sizeof(*eb));
	if (!eb)
		am_return_error(AM_ERR_RESOURCE, "no memory");
	eb->magic = AM_BUNDLE_MAGIC;
	eb->lock.on = type == AM_PAR;
	eb->event_mask = AM_NOEVENTS;
	eb->extra_fd = -1;
	base_list_init(&eb->endpoints);
	pthread_mutex_init(&eb->lock.mutex, NULL);
	pthread_mutex_lock(&bundles_lock);
	if (bundle_count == AMUDP_MAX_BUNDLES) {
		pthread_mutex_unlock(&bundles_lock);
		free(eb);
		am_return_error(AM_ERR_RESOURCE, "255 bundles");
	}
	bundle_count++;
	base_list_push_back(&bundles, &eb->node);
	pthread_mutex_unlock(&bundles_lock);
	*endb = eb;
	return AM_OK;
}

static void endpoint_put(struct amudp_ep *ep, struct amudp_eb *eb)
{
	am_lock_take(&eb->lock);
	ep->bundle = eb;
	ep->lock = &eb->lock;
	base_list_push_back(&eb->endpoints, &ep->node);
	am_lock_drop(&eb->lock);
}

int AM_AllocateEndpoint(eb_t bundle, ep_t *endp, en_t *endpoint_name)
{
	struct amudp_ep *ep;

	if (!am_init_count)
		am_return_error(AM_ERR_NOT_INIT, "AM_Init comes first");
	if (!am_bundle_valid(bundle) || !endp || !endpoint_name)
		am_return_error(AM_ERR_BAD_ARG, "no bundle or no place for the answer");
	if (am_env_check() < 0)
		am_return_error(AM_ERR_BAD_ARG, "a variable of the environment is wrong");
	if (am_endpoint_create(&ep) < 0)
		am_return_error(AM_ERR_RESOURCE, "no memory or no socket");
	endpoint_put(ep, bundle);
	*endp = ep;
	*endpoint_name = ep->name;
	return AM_OK;
}

int AM_FreeEndpoint(ep_t ea)
{
	struct amudp_eb *eb;

	if (!am_endpoint_valid(ea))
		am_return_error(AM_ERR_BAD_ARG, "no endpoint");
	eb = ea->bundle;
	am_lock_take(&eb->lock);
	if (ea->freed)
		ea->freed(ea);
	am_queue_flush(ea);
	base_list_remove(&ea->node);
	am_endpoint_destroy(ea);
	am_lock_drop(&eb->lock);
	return AM_OK;
}

int AM_MoveEndpoint(ep_t ea, eb_t from_bundle, eb_t to_bundle)
{
	if (!am_endpoint_valid(ea) || !am_bundle_valid(from_bundle) ||
	    !am_bundle_valid(to_bundle) || ea->bundle != from_bundle)
		am_return_error(AM_ERR_BAD_ARG, "not an endpoint of that bundle");
	am_lock_take(&from_bundle->lock);
	base_list_remove(&ea->node);
	am_lock_drop(&from_bundle->lock);
	endpoint_put(ea, to_bundle);
	return AM_OK;
}

int AM_FreeBundle(eb_t bundle)
{
	struct base_list *node, *next;

	if (!am_bundle_valid(bundle))
		am_return_error(AM_ERR_BAD_ARG, "no bundle");
	base_list_foreach(node, next, &bundle->endpoints)
		AM_FreeEndpoint(base_list_entry(node, struct amudp_ep, node));
	pthread_mutex_lock(&bundles_lock);
	base_list_remove(&bundle->node);
	bundle_count--;
	pthread_mutex_unlock(&bundles_lock);
	wait_sets_free(bundle);
	pthread_mutex_destroy(&bundle->lock.mutex);
	bundle->magic = 0;
	free(bundle);
	return AM_OK;
}

void am_bundles_free(void)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &bundles)
		AM_FreeBundle(base_list_entry(node, struct amudp_eb, node));
}

void am_bundle_interrupt_serve(void)
{
	/* with am_job_end_heard's store */
	void (*interrupt)(void) = __atomic_load_n(&am_bundle_interrupt, __ATOMIC_ACQUIRE);

	if (interrupt)
		interrupt();
}

int am_bundle_poll(struct amudp_eb *eb)
{
	struct base_list *node, *next;
	int messages = 0;

	if (__atomic_load_n(&am_bundle_interrupt, __ATOMIC_RELAXED)) {
		am_lock_drop(&eb->lock);
		am_bundle_interrupt_serve();
		am_lock_take(&eb->lock);
	}
	base_list_foreach(node, next, &eb->endpoints)
		messages += am_endpoint_poll(base_list_entry(node, struct amudp_ep, node));
	eb->idle = messages ? 0 : eb->idle + 1;
	return messages;
}

/* A yield that finds nobody takes as long as many polls of a driver past the kernel. */
static bool should_yield(const struct amudp_eb *eb)
{
	if (am_oversubscribed)
		return eb->idle > IDLE_POLLS_OVERSUBSCRIBED;
	return eb->idle && eb->idle % IDLE_POLLS == 0;
}

int AM_Poll(eb_t bundle)
{
	bool idle;

	if (!am_bundle_valid(bundle))
		am_return_error(AM_ERR_BAD_ARG, "no bundle");
	am_lock_take(&bundle->lock);
	am_bundle_poll(bundle);
	idle = should_yield(bundle);
	am_lock_drop(&bundle->lock);
	if (idle)
		sched_yield();
	return AM_OK;
}

/* What is held goes out before a sleep; returns when to wake up anyway. */
static uint64_t sleep_prepare(struct amudp_eb *eb)
{
	uint64_t deadline = BASE_NEVER;
	struct base_list *node, *next;

	base_list_foreach(node, next, &eb->endpoints) {
		struct amudp_ep *ep = base_list_entry(node, struct amudp_ep, node);

		am_gather_flush(ep);
		am_queue_flush(ep);
		ep->sleeps = true;
		ep->slept = ep->epoch;
		deadline = base_min(deadline, am_endpoint_deadline(ep));
	}
	return deadline;
}

/* Returns the number of descriptors; poll() passes a negative one over. */
static nfds_t wait_set_fill(const struct amudp_eb *eb, struct pollfd *fds)
{
	const struct base_list *node;
	nfds_t n = 0;
	int i;

	for (node = eb->endpoints.next; node != &eb->endpoints; node = node->next) {
		const struct amudp_ep *ep = base_list_entry(node, struct amudp_ep, node);

		for (i = 0; i < ep->num_nics; i++) {
			fds[n++] = (struct pollfd){ .fd = ep->nics[i]->wait_fd, .events = POLLIN };
			fds[n++] = (struct pollfd){ .fd = ep->nics[i]->also_fd, .events = POLLIN };
		}
	}
	fds[n++] = (struct pollfd){ .fd = eb->extra_fd, .events = POLLIN };
	fds[n++] = (struct pollfd){ .fd = am_bundle_interrupt_fd, .events = POLLIN };
	return n;
}

static void bundle_sleep(struct amudp_eb *eb)
{
	uint64_t left = base_deadline_left(sleep_prepare(eb), base_now());
	struct am_wait_set *set = wait_set_get(eb);
	struct timespec ts;
	nfds_t n = 0;

	/* without a set nothing wakes us: look again soon */
	left = base_min(left, set ? BASE_NS_PER_S : BASE_NS_PER_MS);
	if (set)
		n = wait_set_fill(eb, set->fds);
	ts = (struct timespec){ (time_t)(left / BASE_NS_PER_S), (long)(left % BASE_NS_PER_S) };
	am_lock_drop(&eb->lock);
	ppoll(set ? set->fds : NULL, n, &ts, NULL);
	am_lock_take(&eb->lock);
	if (set) {
		set->next = eb->wait_sets;
		eb->wait_sets = set;
	}
}

static uint64_t spin_length(const struct amudp_eb *eb)
{
	struct base_list *first = base_list_first(&eb->endpoints);

	if (AMUDP_PoliteSync || am_oversubscribed || !first)
		return 0;
	return base_list_entry(first, struct amudp_ep, node)->options.spin;
}

#define SPIN_OVER 1 /* this wait sleeps whenever there is nothing */

void am_bundle_wait(struct amudp_eb *eb, uint64_t *spin_until)
{
	uint64_t now;

	if (am_bundle_poll(eb) > 0) {
		if (*spin_until > SPIN_OVER)
			am_spin_paid(&eb->spin);
		*spin_until = 0;
		return;
	}
	now = base_now();
	if (!*spin_until)
		*spin_until = base_max(am_spin_begin(&eb->spin, now, spin_length(eb)),
				       (uint64_t)SPIN_OVER);
	else if (*spin_until > SPIN_OVER && !am_spin_goes_on(&eb->spin, *spin_until, now))
		*spin_until = SPIN_OVER;
	if (*spin_until == SPIN_OVER)
		bundle_sleep(eb);
}

int AM_GetEventMask(eb_t eb, int *mask)
{
	if (!am_bundle_valid(eb) || !mask)
		am_return_error(AM_ERR_BAD_ARG, "no bundle or no place for the answer");
	*mask = eb->event_mask;
	return AM_OK;
}

int AM_SetEventMask(eb_t eb, int mask)
{
	if (!am_bundle_valid(eb) || mask < 0 || mask >= AM_NUMEVENTMASKS)
		am_return_error(AM_ERR_BAD_ARG, "AM_NOEVENTS or AM_NOTEMPTY");
	eb->event_mask = mask;
	return AM_OK;
}

static uint64_t messages_of(const struct amudp_eb *eb)
{
	struct base_list *node, *next;
	uint64_t n = 0;

	base_list_foreach(node, next, &eb->endpoints)
		n += base_list_entry(node, struct amudp_ep, node)->messages;
	return n;
}

int AM_WaitSema(eb_t eb)
{
	uint64_t spin = 0, before;

	if (!am_bundle_valid(eb))
		am_return_error(AM_ERR_BAD_ARG, "no bundle");
	if (eb->event_mask == AM_NOEVENTS)
		AMUDP_FatalErr("AM_WaitSema would wait for ever: the event mask is AM_NOEVENTS");
	am_lock_take(&eb->lock);
	before = messages_of(eb);
	while (messages_of(eb) == before)
		am_bundle_wait(eb, &spin);
	am_lock_drop(&eb->lock);
	return AM_OK;
}
