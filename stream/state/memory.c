/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of a stream: a cell of a slab, a file in the folder of its user that is mapped and at
 * once closed.
 *
 * The socket's cookie is the kernel's name of the socket, for as long as the machine runs, in
 * whatever process and at whatever number it turns up. The slab gets the cookie as one more name
 * when the connection is handed over; a process that comes to a socket without that searches all
 * slabs for the cookie. So a process finds the state without a descriptor or an environment that
 * would have to be handed on. What killed processes leave behind is swept.
 *
 * Where no file is to be had the memory has no name, and children by fork() alone share it.
 *
 * Nothing in it is believed. What says how the memory is laid out is judged once, when the
 * process comes to the stream, and it goes by its own copy from then on; the rest is judged where
 * it is read.
 */
#include "stream/state/memory.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/point.h"
#include "base/process.h"
#include "base/runfile.h"
#include "base/sockutil.h"
#include "rnic/rnic.h"
#include "stream/place.h"

/* Those that need no more than Writes and messages of four bytes */
#define FEATURES_SHORT STREAM_FEATURE_ABORT
/* Between two looks for what the dead have left, when a file is made; the same without room */
#define CLEAN (10 * BASE_NS_PER_S)
#define CLEAN_FULL BASE_NS_PER_S

static uint32_t chunk_of(uint32_t ring)
{
	return base_max(ring / (STREAM_CHUNKS - 1), STREAM_CHUNK_MIN);
}

/* --- how it was made --- */

static uint32_t ring_of(uint32_t wish)
{
	uint32_t want = wish ? wish : STREAM_RING, ring = STREAM_RING_MIN;

	while (ring < want && ring < STREAM_RING_MAX)
		ring *= 2;
	return ring;
}

static struct stream_made made_of(const struct stream_param *param, const struct rnic_ops *rnic)
{
	const struct conn_opts *opts = &param->opts;
	uint32_t ring = ring_of(opts->ring);
	struct stream_made made = {
		.flags = (param->initiator ? STREAM_INITIATOR : 0) |
			 (opts->mode == CONFIG_USE_DDP ? STREAM_ONLY : 0) |
			 (param->probe ? STREAM_PROBE : 0) | (opts->no_crc ? STREAM_NO_CRC : 0) |
			 (opts->markers ? STREAM_MARKERS : 0) | (opts->detour ? STREAM_DETOUR : 0),
		.ring = ring,
		.chunk = chunk_of(ring),
		.credits = opts->credits ? opts->credits : STREAM_CREDITS,
		.offered = (rnic->stream->native ? FEATURES_SHORT : STREAM_FEATURES) &
			   ~param->without,
		.slots = opts->maps,
		.start_rtts = param->start_rtts,
		.start_limit = param->start_limit,
		.decide_rtts = param->decide_rtts,
		.decide_limit = param->decide_limit,
		.decide_max = param->decide_max,
	};

	strncpy(made.provider, rnic->name, sizeof(made.provider) - 1);
	return made;
}

static bool made_is_sane(const struct stream_made *made)
{
	return base_is_pow2(made->ring) && made->ring >= STREAM_RING_MIN &&
	       made->ring <= STREAM_RING_MAX && made->chunk == chunk_of(made->ring) &&
	       made->credits && made->credits <= UINT16_MAX &&
	       !(made->offered & ~STREAM_FEATURES) && made->slots <= STREAM_SLOTS &&
	       memchr(made->provider, 0, sizeof(made->provider));
}

static const struct rnic_ops *provider_find(const char *name)
{
	const struct rnic_ops *rnic = rnic_find(name);

	return rnic && rnic->stream ? rnic : NULL;
}

static void made_take(struct stream *s, const struct stream_made *made, const struct rnic_ops *rnic)
{
	s->rnic = rnic->stream;
	s->provider = rnic->name;
	s->initiator = made->flags & STREAM_INITIATOR;
	s->only = made->flags & STREAM_ONLY;
	s->probe = made->flags & STREAM_PROBE;
	s->no_crc = made->flags & STREAM_NO_CRC;
	s->markers = made->flags & STREAM_MARKERS;
	s->detour = made->flags & STREAM_DETOUR;
	s->ring = made->ring;
	s->chunk = made->chunk;
	s->credits = (uint16_t)made->credits;
	s->offered = made->offered;
	s->slots = made->slots;
	s->start_rtts = made->start_rtts;
	s->start_limit = made->start_limit;
	s->decide_rtts = made->decide_rtts;
	s->decide_limit = made->decide_limit;
	s->decide_max = made->decide_max;
}

/*
 * Where the folder has little left, bytes lie elsewhere, if other processes need not find them. A
 * process that may make few system calls only believes that the memory is there
 */
static int part_reserve(void *p, size_t len)
{
	if (base_process_confined())
		return 0;
	if (!stream_place_is_scarce() && !base_runfile_reserve(p, len))
		return 0;
	stream_part_move(p);
	return base_runfile_reserve(p, len);
}

static int mem_reserve(const struct rnic_stream_mem *mem, void *p, size_t len)
{
	stream_block_note(base_container_of(mem, struct stream, mem), p);
	return part_reserve(p, len);
}

static void memory_take(struct stream *s)
{
	s->mem = (struct rnic_stream_mem){
		.state = s->state->rnic,
		.rest_take = stream_tx_rest_take,
		.reserve = s->is_file ? mem_reserve : NULL,
	};
}

/* --- a new one --- */

static void local_init(struct stream *s, int fd, const struct stream_param *param)
{
	s->fd = fd;
	s->carrier = -1;
	s->apart_limit = base_max(param->apart_limit, BASE_NS_PER_S);
	s->changed = param->changed;
	s->may_probe = param->may_probe;
	s->probed = param->probed;
	s->urgent = param->urgent;
	s->ctx = param->ctx;
	s->slot = -1;
}

/*
 * A stream that was here before, on the same socket, is history: that has connected again. Of most
 * sockets the caller knows that there was none
 */
static void older_forget(const struct stream *s, const struct stream_param *param)
{
	struct stream *older = param->older ? param->older : NULL;
	char path[BASE_RUNFILE_PATH];

	if (older && older->cookie == s->cookie)
		base_store(&older->state->closer, base_process_self().pid);
	if (!param->fresh && !stream_place_path(path, s->slab->place, s->cookie))
		stream_name_replace(path, s->cookie);
}

/* What the dead have left goes, and is promised to nobody. True: there may be room now */
static bool clean(const struct stream_slab_kind *kind, uint64_t pause)
{
	bool some = stream_place_clean(kind->place, pause);

	return (some || pause == CLEAN_FULL) && (stream_promises_count(kind->place) || some);
}

/* For one connection more; @kept: by a file that is there, and has nobody's */
static int room_ask(const struct stream_slab_kind *kind, bool kept)
{
	int (*ask)(struct stream_place, uint32_t) = kept ? stream_promise_fits
							 : stream_promise_room;
	int err = ask(kind->place, kind->chunk);

	if (err == -ENOSPC && clean(kind, CLEAN_FULL))
		err = ask(kind->place, kind->chunk);
	return err;
}

/* A cell of a file that has others, or of a kept one. -ENOENT: there is none */
static int file_join(const struct stream_slab_kind *kind, struct stream **out)
{
	bool alone;
	int err = stream_slab_take(kind, out, &alone);

	if (err)
		return err;
	err = room_ask(kind, alone);
	if (err)
		stream_slab_put(*out);
	return err;
}

static int file_try(const struct stream_slab_kind *kind, struct stream **out)
{
	int err = file_join(kind, out);

	if (err == -ENOENT) {
		err = room_ask(kind, false);
		if (err)
			return err;
		clean(kind, CLEAN);
		err = stream_slab_create(kind, out);
	}
	BASE_POINT(stream_memory_made);
	return err;
}

static int file_create(const struct stream_slab_kind *kind, struct stream **out)
{
	int err = stream_place_prepare(kind->place, true);

	if (!err)
		err = file_try(kind, out);
	if (err != -ENOENT)
		return err;
	stream_place_lost(kind->place);
	stream_promises_forget(kind->place);
	return file_try(kind, out);
}

/*
 * The cell is to be written to; of a file that is full that would be SIGBUS. Its memory stays as
 * long as the file
 */
static int cell_reserve(struct stream *s)
{
	int err = stream_slab_is_used(s) ? 0 : part_reserve(s->state, sizeof(*s->state));

	if (err)
		stream_slab_put(s);
	else
		stream_slab_use(s);
	return err;
}

static void unnamed_say(int err)
{
	static bool said; /* atomic */

	if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		base_info("stream: no file for the state (%s): connections cannot be handed to "
			  "other programs",
			  strerror(-err));
}

static int file_begin(int fd, const struct stream_slab_kind *kind, struct stream **out)
{
	uint64_t cookie;
	struct stream *s;
	int err = base_sock_cookie(fd, &cookie);

	if (!err)
		err = file_create(kind, &s);
	if (err)
		return err;
	s->cookie = cookie;
	s->is_file = true;
	stream_slab_live(s);
	err = cell_reserve(s);
	if (!err)
		*out = s;
	return err;
}

/* Without a name */
static int memory_begin(struct stream_slab_kind kind, struct stream **out)
{
	bool alone;

	kind.place = (struct stream_place){ NULL, 0 };
	return stream_slab_take(&kind, out, &alone) ? stream_slab_create(&kind, out) : 0;
}

static int cell_create(int fd, const struct stream_slab_kind *kind, struct stream **out)
{
	int err = kind->place.dir ? file_begin(fd, kind, out) : -ENOENT;

	if (err && kind->place.dir)
		unnamed_say(err);
	return err ? memory_begin(*kind, out) : 0;
}

static void state_init(struct stream *s, const struct stream_made *made)
{
	struct stream_state *st = s->state;

	st->version = STREAM_VERSION;
	st->size = sizeof(*st);
	st->octets = s->slab->size;
	st->cookie = s->cookie;
	st->made = *made;
	base_lock_init(&st->rx_lock);
	base_lock_init(&st->tx_lock);
	st->stage = STREAM_CONNECTING;
	st->start_deadline = st->decide_deadline = BASE_NEVER;
	st->tx.granted = stream_half(s);
	st->tx.limit = s->credits;
	st->rx.message_first = STREAM_NO_MESSAGE;
	stream_chunks_init(&st->rx);
	/* Last: before, it is nothing to adopt */
	base_store(&st->magic, STREAM_MAGIC);
}

int stream_memory_create(int fd, const struct stream_param *param, struct stream **out)
{
	const char *provider = param->opts.provider;
	const struct rnic_ops *rnic = provider_find(provider[0] ? provider : NULL);
	struct stream_slab_kind kind = { .place = stream_place_of(param->dir) };
	struct stream_made made;
	struct stream *s;
	int err;

	if (!rnic || !rnic->stream->native != !param->native)
		return -ENODEV;
	made = made_of(param, rnic);
	kind.chunk = made.chunk;
	err = cell_create(fd, &kind, &s);
	if (err)
		return err;
	local_init(s, fd, param);
	if (s->is_file)
		older_forget(s, param);
	memory_take(s);
	made_take(s, &made, rnic);
	state_init(s, &made);
	s->state->hold = param->hold;
	if (param->native) {
		s->mem.native = param->native;
		s->carrier = param->native->fd;
		s->state->owner = base_process_self().pid;
	}
	stream_holder_enter(s);
	if (s->is_file && stream_slab_is_swept(s))
		s->is_file = false;
	*out = s;
	return 0;
}

int stream_memory_ask(uint32_t ring)
{
	const struct stream_slab_kind kind = { .chunk = chunk_of(ring_of(ring)) };

	return stream_slab_ready(&kind);
}

/* --- one that others have made --- */

static int judge(const struct stream *s, uint64_t cookie, struct stream_made *made)
{
	const struct stream_state *st = s->state;

	if (base_load(&st->magic) != STREAM_MAGIC || st->version != STREAM_VERSION ||
	    st->size != sizeof(*st) || st->octets != s->slab->size || st->cookie != cookie)
		return -EPROTO;
	*made = *(const volatile struct stream_made *)&st->made;
	return made_is_sane(made) && made->chunk == s->slab->chunk ? 0 : -EPROTO;
}

struct search {
	struct stream_place place;
	uint64_t cookie;
	struct stream *found;
	int error; /* why one of them could not be looked at */
};

static bool search_one(const char *path, void *ctx)
{
	struct search *search = ctx;
	int err = stream_slab_open(path, search->place, search->cookie, &search->found);

	if (err && err != -ENOENT && err != -EPROTO)
		search->error = err;
	return !err;
}

/* Nobody has announced that others come to it: it is looked for in all files */
static int file_search(struct stream_place place, uint64_t cookie, struct stream **out)
{
	struct search search = { .place = place, .cookie = cookie };
	int found = stream_place_slabs(place, search_one, &search);

	if (found < 0)
		return found;
	if (!found)
		return search.error ? search.error : -ENOENT;
	*out = search.found;
	return 0;
}

static int file_adopt(struct stream_place place, uint64_t cookie, bool search, struct stream **out)
{
	char path[BASE_RUNFILE_PATH];
	int err = stream_place_path(path, place, cookie), found;

	if (!err)
		err = stream_slab_open(path, place, cookie, out);
	/* The name may still be that of an older connection of the socket */
	if (!search || (err != -ENOENT && err != -EPROTO))
		return err;
	found = file_search(place, cookie, out);
	return found == -ENOENT ? err : found;
}

/*
 * It may have been closed meanwhile, and its cell be another connection's: who gives that out again
 * has closed it before it looks whether the cell is shared
 */
static int cell_enter(struct stream *s, uint64_t cookie)
{
	bool closed;

	stream_slab_share(s);
	stream_holder_enter(s);
	closed = __atomic_load_n(&s->slab->at->closed, __ATOMIC_SEQ_CST);
	if (!closed && !__atomic_load_n(&s->state->closer, __ATOMIC_SEQ_CST) &&
	    base_once(s->state->cookie) == cookie)
		return 0;
	stream_holder_leave(s);
	return closed ? -ESTALE : -ENOENT;
}

static int adopt(struct stream *s, uint64_t cookie, struct stream_made *made,
		 const struct rnic_ops **rnic)
{
	int err = judge(s, cookie, made);

	*rnic = err ? NULL : provider_find(made->provider);
	if (!err && !*rnic)
		err = -ENODEV;
	if (!err && base_load(&s->state->owner))
		err = -EXDEV;
	return err ? err : cell_enter(s, cookie);
}

int stream_memory_adopt(int fd, const struct stream_param *param, struct stream **out)
{
	struct stream_place place = stream_place_of(param->dir);
	const struct rnic_ops *rnic;
	struct stream_made made;
	uint64_t cookie;
	struct stream *s;
	int err = base_sock_cookie(fd, &cookie);

	if (err || !param->dir)
		return -ENOENT;
	/* A folder that is not fit for it says nothing of the socket */
	if (stream_place_prepare(place, false))
		return -ENOENT;
	err = file_adopt(place, cookie, param->search, &s);
	if (err)
		return err;
	s->cookie = cookie;
	local_init(s, fd, param);
	s->is_file = true;
	memory_take(s);
	err = adopt(s, cookie, &made, &rnic);
	if (err) {
		base_warn("stream: the state of a connection cannot be used here: %d", err);
		stream_slab_put(s);
		return err;
	}
	made_take(s, &made, rnic);
	*out = s;
	return 0;
}

/* --- its end --- */

void stream_memory_unname(struct stream *s)
{
	if (!s->is_file)
		return;
	s->is_file = false;
	s->state->cookie = 0;
	stream_name_unlink(s);
}

/* Is this the last one who leaves? */
static bool is_last(struct stream *s)
{
	uint32_t nobody = 0;

	/* A device's connection is of use to nobody but its owner */
	if (s->mem.native ? stream_is_foreign(s) : stream_holder_others(s))
		return false;
	/* Two may have left at once, and seen nobody else */
	return __atomic_compare_exchange_n(&s->state->closer, &nobody, base_process_self().pid,
					   false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

bool stream_memory_leave(struct stream *s)
{
	bool last;

	if (s->disowned || __atomic_exchange_n(&s->left, true, __ATOMIC_ACQ_REL))
		return false;
	stream_holder_leave(s);
	last = is_last(s);
	if (last)
		BASE_POINT(stream_rsock_leaving);
	if (last && s->is_file)
		stream_name_unlink(s);
	stream_slab_leave(s, last);
	return last;
}

void stream_memory_destroy(struct stream *s, bool last)
{
	if (last || !base_load(&s->state->common))
		stream_blocks_end(s);
	stream_slab_put(s);
}
