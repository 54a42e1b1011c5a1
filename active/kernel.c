/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The third door: programs of clients in this host's kernel, on regions in BPF arenas.
 *
 *	packet -> door -- key --> program of a client -> answer (XDP_TX)
 *	             \
 *	              anything else: the network
 *
 * A client asks for a place by its connection (INSTALL) and gets a key, which nobody can guess.
 * The key stands for the client, its code, and the regions with their rights; when the client goes,
 * its keys go. When the process dies the kernel takes everything away, for descriptors hold it.
 *
 * A program reaches one arena (active/kernel_arena.c). Invariant: its client may read all regions
 * that lie there.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "active/inside.h"
#include "active/kernel.h"
#include "active/kernel_arena.h"
#include "active/kernel_code.h"
#include "active/kernel_helper.h"
#include "active/kernel_link.h"
#include "active/session.h"
#include "base/bits.h"
#include "base/log.h"
#include "base/rand.h"
#include "bpfkernel/system.h"

enum {
	SIZE_MOST = 1 << 30,
	PROGRAMS_MOST = 1024,
};

/* A program of a client; session NULL, under the lock: the place is free */
struct place {
	struct active_session *session;
	struct active_arena *arena;
	unsigned int slot; /* of the arena's constants */
	uint8_t key[ACTIVE_WIRE_KEY];
	int fd;
	bool filling;	/* its program is not there yet */
	size_t account; /* the place of its client that came first; what they use together */
};

struct active_kernel {
	struct warp_active_kernel_attr attr; /* with the defaults filled in */
	struct sockaddr_in addr;
	struct active_arenas arenas;
	int socket, keys, programs, accounts, door;
	struct active_kernel_link link;
	struct active_kernel_count past; /* of arenas that are no more */
	struct active_kernel_account *account;
	pthread_mutex_t lock;	/* of arenas and places; behind server.lock */
	uint64_t closed, ended; /* places; and how many of them no run can have any more */
	struct place places[];
};

/* --- memory --------------------------------------------------------------------------------- */

/* A program that is there already would reach a region that its client may not read */
int active_kernel_memory(struct warp_active_region *r, unsigned int number)
{
	struct active_kernel *k = r->server->kernel;
	int ret;

	if (!k)
		return -ENOTCONN;
	pthread_mutex_lock(&k->lock);
	ret = active_arena_get(&k->arenas, r->client, number, &r->arena);
	if (!ret && r->arena->programs)
		ret = -EBUSY;
	if (!ret)
		ret = active_arena_region(&k->arenas, r->arena, r->size, &r->memory, &r->room);
	pthread_mutex_unlock(&k->lock);
	return ret;
}

/* --- a program ------------------------------------------------------------------------------ */

static const char no_memory[] = "the server has no memory for it";

struct making {
	struct active_kernel *k;
	struct active_task *task;
	size_t place;
	struct bpfkernel_window windows[BPFKERNEL_WINDOWS_MAX];
	size_t window_count;
	struct bpfkernel_library *library;
	char *why;
	size_t room;
};

static int refuse(struct making *m, int error, const char *text)
{
	snprintf(m->why, m->room, "%s", text);
	return error;
}

static void window_add(struct making *m, const struct bpfkernel_window *w)
{
	m->windows[m->window_count++] = *w;
}

/* Regions first, for they are what programs use most */
static int windows_fill(struct making *m)
{
	const struct active_call *call = &m->task->call;
	const uint8_t *arena = m->k->places[m->place].arena->memory.memory;

	if (call->count > BPFKERNEL_WINDOWS_MAX - 2)
		return refuse(m, -E2BIG, "too many regions for the kernel");
	for (size_t i = 0; i < call->count; i++) {
		const struct warp_active_region *r = call->views[i]->region;

		window_add(m, &(const struct bpfkernel_window){
				      (uintptr_t)r->memory, (uint32_t)r->size,
				      (uint32_t)(r->memory - arena),
				      call->rights[i] & ~(unsigned int)WARP_ACTIVE_RUN, 0, 0 });
	}
	window_add(m, &(const struct bpfkernel_window){
			      ACTIVE_ARGS_ADDR, ACTIVE_WIRE_DATA_MAX,
			      offsetof(struct active_kernel_block, args),
			      EBPF_MAY_READ | EBPF_MAY_WRITE, BPFKERNEL_IN_BLOCK,
			      offsetof(struct bpfkernel_block, args_len) });
	window_add(m, &(const struct bpfkernel_window){
			      BPFKERNEL_BLOCK_ADDR, offsetof(struct active_kernel_block, args), 0,
			      EBPF_MAY_READ | EBPF_MAY_WRITE,
			      BPFKERNEL_IN_BLOCK | BPFKERNEL_HELPERS, 0 });
	return 0;
}

static int library_fill(struct making *m)
{
	const struct active_call *call = &m->task->call;
	uint64_t addrs[ACTIVE_WIRE_REGIONS_MAX], sizes[ACTIVE_WIRE_REGIONS_MAX];
	int ret = bpfkernel_library_create(&m->library);

	for (size_t i = 0; i < call->count; i++) {
		addrs[i] = (uintptr_t)call->views[i]->region->memory;
		sizes[i] = call->views[i]->region->size;
	}
	for (size_t i = 0; i < base_array_size(active_kernel_helpers) && !ret; i++) {
		const struct active_kernel_helper *h = &active_kernel_helpers[i];

		ret = bpfkernel_library_add(m->library, h->id, h->what,
					    h->id == WARP_ACTIVE_HELPER_REGION ? addrs : sizes,
					    call->count);
	}
	return ret ? refuse(m, -ENOMEM, no_memory) : 0;
}

static int code_write(struct making *m, struct bpfgen_code *c)
{
	struct active_kernel *k = m->k;
	const struct place *place = &k->places[m->place];
	const struct ebpf_object *object = active_object_program(m->task->object);
	uint8_t *arena = place->arena->memory.memory;
	struct active_kernel_program p = {
		.params = { .object = object,
			    .entry = m->task->entry,
			    .arena = (uintptr_t)arena,
			    .windows = m->windows,
			    .window_count = m->window_count },
		.arena = place->arena->memory.fd,
		.blocks = (uintptr_t)active_arena_blocks(place->arena),
		.block_count = k->arenas.processors,
		.args_addr = ACTIVE_ARGS_ADDR,
		.fuel = k->attr.fuel,
		.accounts = k->accounts,
		.account = (uint32_t)(place->account * sizeof(struct active_kernel_account)),
		.rate = k->attr.rate,
	};
	size_t constants_size, size;
	struct ebpf_error err;
	int ret;

	bpfkernel_data_copy(object, NULL, &constants_size, &size);
	if (size > ACTIVE_ARENA_CONSTANTS)
		return refuse(m, -E2BIG, "more data and constants than the kernel has room for");
	if (active_arena_constants(&k->arenas, place->arena, place->slot, &p.params.constants))
		return refuse(m, -ENOMEM, no_memory);
	bpfkernel_data_copy(object, arena + p.params.constants, &constants_size, &size);
	p.params.data = p.params.constants + (uint32_t)constants_size;
	p.params.helpers = bpfkernel_library_helpers(m->library, &p.params.helper_count);
	ret = active_kernel_program_write(c, &p, &err);
	return ret ? refuse(m, ret, err.text) : 0;
}

static int program_make(struct making *m)
{
	const struct ebpf_insn *insns;
	struct bpfgen_code *c = NULL;
	size_t count;
	int ret = windows_fill(m);

	if (!ret)
		ret = library_fill(m);
	if (!ret && bpfgen_code_create(&c))
		ret = refuse(m, -ENOMEM, no_memory);
	if (!ret)
		ret = code_write(m, c);
	if (!ret) {
		insns = bpfgen_code_insns(c, &count);
		ret = bpfkernel_program_load("warp_program", insns, count, m->why, m->room);
	}
	bpfgen_code_destroy(c);
	bpfkernel_library_destroy(m->library);
	return ret;
}

/* --- places --------------------------------------------------------------------------------- */

/* Under server.lock and the lock: of these regions no other one lies there */
static bool may_read(const struct active_session *s, const struct active_arena *arena,
		     const struct base_list *regions)
{
	struct base_list *at, *next;

	base_list_foreach(at, next, regions) {
		const struct warp_active_region *r =
			base_list_entry(at, struct warp_active_region, link);
		bool may = r->arena != arena;

		for (unsigned int i = 0; i < s->view_count && !may; i++)
			may = s->views[i].region == r && s->views[i].rights & WARP_ACTIVE_READ;
		if (!may)
			return false;
	}
	return true;
}

/* The one that the regions lie in; the client's own for a program that has none */
static int arena_choose(struct making *m, struct active_arena **out)
{
	const struct active_call *call = &m->task->call;
	const struct active_session *s = m->task->session;
	struct active_arena *arena = NULL;

	if (!call->count && active_arena_get(&m->k->arenas, s, 0, &arena))
		return refuse(m, -ENOMEM, no_memory);
	for (size_t i = 0; i < call->count; i++) {
		const struct warp_active_region *r = call->views[i]->region;

		if (!r->arena) {
			snprintf(m->why, m->room, "region %s is not in the kernel", r->name);
			return -EOPNOTSUPP;
		}
		if (arena && r->arena != arena)
			return refuse(m, -EOPNOTSUPP, "the regions are in several arenas");
		arena = r->arena;
	}
	if (!may_read(s, arena, &s->server->regions) || !may_read(s, arena, &s->own))
		return refuse(m, -EOPNOTSUPP,
			      "the arena has a region that the client may not read");
	*out = arena;
	return 0;
}

/* Constants that no program of the arena has */
static unsigned int slot_find(const struct active_kernel *k, const struct active_arena *arena)
{
	bool taken[PROGRAMS_MOST] = { false };
	unsigned int slot = 0;

	for (unsigned int i = 0; i < k->attr.programs; i++)
		if (k->places[i].session && k->places[i].arena == arena)
			taken[k->places[i].slot] = true;
	while (taken[slot])
		slot++;
	return slot;
}

/* What a client has, and what is free */
struct census {
	unsigned int all_filling, filling, programs;
	int free, first; /* or -1 */
};

static struct census census_take(const struct active_kernel *k, const struct active_session *s)
{
	struct census c = { .free = -1, .first = -1 };

	for (unsigned int i = k->attr.programs; i--;) {
		const struct place *p = &k->places[i];

		c.all_filling += p->session && p->filling;
		c.filling += p->session == s && p->filling;
		c.programs += p->session == s;
		if (p->session == s)
			c.first = (int)i;
		else if (!p->session)
			c.free = (int)i;
	}
	return c;
}

/*
 * Linux's verifier may take seconds, and cannot be interrupted: a client has one program there, and
 * of several workers one is left for other programs.
 */
static bool may_fill(const struct making *m, const struct census *c)
{
	unsigned int workers = m->task->session->server->attr.workers;

	return !c->filling && c->all_filling < base_max(workers, 2u) - 1;
}

/* A free place, which is the session's from now on; or a negative errno */
static int place_find(struct making *m)
{
	struct active_session *s = m->task->session;
	struct active_kernel *k = m->k;
	struct census c = census_take(k, s);
	struct active_arena *arena;
	int ret;

	if (c.free < 0 || c.programs >= k->attr.each)
		return refuse(m, -EBUSY, "too many programs are in the kernel");
	if (!may_fill(m, &c))
		return refuse(m, -EBUSY, "another program is being put into the kernel");
	ret = arena_choose(m, &arena);
	if (ret)
		return ret;
	k->places[c.free] = (struct place){
		.session = s,
		.arena = arena,
		.slot = slot_find(k, arena),
		.fd = -1,
		.filling = true,
		.account = c.first < 0 ? (size_t)c.free : k->places[c.first].account,
	};
	arena->programs++;
	return c.free;
}

static int place_take(struct making *m)
{
	struct warp_active_server *server = m->task->session->server;
	int place;

	pthread_mutex_lock(&server->lock);
	pthread_mutex_lock(&m->k->lock);
	place = place_find(m);
	pthread_mutex_unlock(&m->k->lock);
	pthread_mutex_unlock(&server->lock);
	return place;
}

static int place_open(struct active_kernel *k, uint32_t i, int fd)
{
	struct place *p = &k->places[i];
	int ret = base_rand_fill(p->key, sizeof(p->key));

	if (!ret)
		ret = bpfkernel_map_set(k->programs, &i, (uint32_t)fd);
	if (!ret)
		ret = bpfkernel_map_set(k->keys, p->key, i);
	return ret;
}

static void arena_leave(struct active_kernel *k, struct active_arena *arena)
{
	if (arena)
		active_arena_count(&k->arenas, arena, &k->past);
	active_arena_destroy(arena);
}

/* Under the lock */
static void place_close(struct active_kernel *k, uint32_t i)
{
	struct active_arena *arena = k->places[i].arena;

	bpfkernel_map_remove(k->keys, k->places[i].key);
	bpfkernel_map_remove(k->programs, &i);
	if (k->places[i].fd >= 0)
		close(k->places[i].fd);
	k->places[i].session = NULL;
	k->closed++;
	/* A client's that has no regions was made for a program */
	if (!--arena->programs && !arena->used && arena->owner)
		arena_leave(k, arena);
}

/*
 * A run that found a key before it was removed may go on: in the constants of a place that is free
 * now, and with its account. The next one to have it comes when all such runs have ended.
 */
static int runs_wait(struct active_kernel *k)
{
	uint64_t closed;
	int ret = 0;
	bool wait;

	pthread_mutex_lock(&k->lock);
	closed = k->closed;
	wait = closed != k->ended;
	pthread_mutex_unlock(&k->lock);
	if (wait)
		ret = bpfkernel_wait();
	pthread_mutex_lock(&k->lock);
	if (!ret)
		k->ended = base_max(k->ended, closed);
	pthread_mutex_unlock(&k->lock);
	return ret;
}

static void place_tell(const struct active_kernel *k, const struct place *p, uint8_t *to)
{
	struct active_wire_place w = { .addr = k->addr.sin_addr.s_addr, .port = k->addr.sin_port };

	memcpy(w.key, p->key, sizeof(w.key));
	base_put_be64(&w.fuel, k->attr.fuel);
	memcpy(to, &w, sizeof(w));
}

/*
 * Without the lock, for Linux's verifier may take its time. The place is this task's: its session
 * ends when no task of it is under way.
 */
static int place_fill(struct making *m)
{
	struct active_kernel *k = m->k;
	struct place *p = &k->places[m->place];
	int ret = runs_wait(k);

	if (ret)
		return refuse(m, ret, strerror(-ret));
	if (p->account == m->place)
		k->account[m->place] = (struct active_kernel_account){ 0 };
	p->fd = program_make(m);
	if (p->fd < 0)
		return p->fd;
	ret = place_open(k, (uint32_t)m->place, p->fd);
	if (ret)
		return refuse(m, ret, strerror(-ret));
	place_tell(k, p, active_answer_output(m->task->session, (unsigned int)m->task->answer));
	return 0;
}

int active_kernel_install(struct active_task *task, char *why, size_t room)
{
	struct active_kernel *k = task->session->server->kernel;
	struct making m = { .k = k, .task = task, .why = why, .room = room };
	int place, ret;

	if (!k)
		return refuse(&m, -EOPNOTSUPP, "the server runs no programs in its kernel");
	if (task->m.output_room < sizeof(struct active_wire_place))
		return refuse(&m, -EINVAL, "no room for the answer");
	place = place_take(&m);
	if (place < 0)
		return place;
	m.place = (size_t)place;
	ret = place_fill(&m);
	pthread_mutex_lock(&k->lock);
	k->places[place].filling = false;
	if (ret)
		place_close(k, (uint32_t)place);
	pthread_mutex_unlock(&k->lock);
	return ret;
}

void active_kernel_leave(struct active_session *s)
{
	struct active_kernel *k = s->server->kernel;

	if (!k)
		return;
	pthread_mutex_lock(&k->lock);
	for (uint32_t i = 0; i < k->attr.programs; i++)
		if (k->places[i].session == s)
			place_close(k, i);
	arena_leave(k, active_arena_find(&k->arenas, s, 0));
	pthread_mutex_unlock(&k->lock);
}

void active_kernel_query(struct active_kernel *k, struct warp_active_stats *stats)
{
	struct active_kernel_count count;
	struct base_list *at, *next;

	pthread_mutex_lock(&k->lock);
	count = k->past;
	base_list_foreach(at, next, &k->arenas.list) {
		const struct active_arena *a = base_list_entry(at, struct active_arena, link);

		stats->kernel_programs += a->programs;
		active_arena_count(&k->arenas, a, &count);
	}
	pthread_mutex_unlock(&k->lock);
	stats->kernel_runs = count.runs;
	stats->kernel_fuel = count.fuel;
}

/* --- the door ------------------------------------------------------------------------------- */

static bool attr_good(const struct warp_active_kernel_attr *a)
{
	const struct sockaddr_in *in = (const void *)a->addr;

	return a->interface && in && a->len >= sizeof(*in) && in->sin_family == AF_INET &&
	       in->sin_port && in->sin_addr.s_addr != htonl(INADDR_ANY) && a->size <= SIZE_MOST &&
	       a->programs <= PROGRAMS_MOST && a->fuel <= INT64_MAX &&
	       a->rate <= INT64_MAX >> ACTIVE_KERNEL_WINDOW &&
	       !(a->flags & ~(unsigned int)WARP_ACTIVE_GENERIC);
}

static void attr_fill(struct warp_active_kernel_attr *a)
{
	a->size = a->size ? a->size : 16 << 20;
	a->programs = a->programs ? a->programs : 64;
	a->each = a->each ? a->each : 16;
	a->fuel = a->fuel ? a->fuel : 100000;
}

/*
 * The port is this process' while it lives. The socket hears itself alone, so what the door does
 * not take finds nobody, and its sender is told so.
 */
static int port_take(struct active_kernel *k)
{
	k->socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (k->socket < 0 || bind(k->socket, (struct sockaddr *)&k->addr, sizeof(k->addr)) ||
	    connect(k->socket, (struct sockaddr *)&k->addr, sizeof(k->addr)))
		return -errno;
	return 0;
}

static size_t accounts_size(const struct active_kernel *k)
{
	return k->attr.programs * sizeof(struct active_kernel_account);
}

static int door_make(struct active_kernel *k)
{
	const struct ebpf_insn *insns;
	struct active_kernel_door door;
	struct bpfgen_code *c;
	char why[256];
	size_t count;
	int ret;

	k->keys = bpfkernel_keys_create(ACTIVE_WIRE_KEY, k->attr.programs);
	if (k->keys < 0)
		return k->keys;
	k->programs = bpfkernel_programs_create(k->attr.programs);
	if (k->programs < 0)
		return k->programs;
	k->accounts = bpfkernel_memory_create(accounts_size(k));
	if (k->accounts < 0)
		return k->accounts;
	k->account = bpfkernel_memory_map(k->accounts, accounts_size(k));
	if (!k->account)
		return -ENOMEM;
	door = (struct active_kernel_door){ k->addr.sin_addr.s_addr, k->addr.sin_port, k->keys,
					    k->programs };
	ret = bpfgen_code_create(&c);
	if (ret)
		return ret;
	ret = active_kernel_door_write(c, &door);
	if (!ret) {
		insns = bpfgen_code_insns(c, &count);
		k->door = bpfkernel_program_load("warp_door", insns, count, why, sizeof(why));
		ret = base_min(k->door, 0);
		if (ret)
			base_err("active: the door in the kernel: %s", why);
	}
	bpfgen_code_destroy(c);
	return ret;
}

/*
 * A pair of virtual interfaces runs a program in its driver, but what that sends is lost unless
 * the other one has a program, too.
 */
static bool is_pair(const struct active_kernel *k)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq request = { .ifr_data = (void *)&info };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", k->attr.interface);
	return !ioctl(k->socket, SIOCETHTOOL, &request) && !strcmp(info.driver, "veth");
}

static int door_attach(struct active_kernel *k, unsigned int interface)
{
	int ret = -EOPNOTSUPP;

	if (!(k->attr.flags & WARP_ACTIVE_GENERIC) && !is_pair(k))
		ret = active_kernel_link_open(&k->link, k->door, interface, true);
	if (ret)
		ret = active_kernel_link_open(&k->link, k->door, interface, false);
	/* A program at the driver is in the way of one that is not */
	return ret == -EEXIST ? -EBUSY : ret;
}

/*
 * A block is one run's, for nothing else runs on the processor meanwhile. A kernel for real time
 * may put one packet aside for another one.
 */
static bool is_real_time(void)
{
	return !access("/sys/kernel/realtime", F_OK);
}

static int kernel_open(struct active_kernel *k)
{
	unsigned int interface = if_nametoindex(k->attr.interface);
	struct active_arena *arena;
	int ret = interface ? port_take(k) : -ENODEV;

	if (!ret && is_real_time())
		ret = -EOPNOTSUPP;
	if (!ret)
		ret = active_arena_get(&k->arenas, NULL, 0, &arena);
	if (!ret)
		ret = door_make(k);
	return ret ? ret : door_attach(k, interface);
}

int warp_active_kernel_serve(struct warp_active_server *server,
			     const struct warp_active_kernel_attr *attr)
{
	struct warp_active_kernel_attr filled;
	struct active_kernel *k;
	int ret;

	if (!server || !attr || !attr_good(attr))
		return -EINVAL;
	if (server->kernel)
		return -EALREADY;
	filled = *attr;
	attr_fill(&filled);
	k = calloc(1, sizeof(*k) + filled.programs * sizeof(k->places[0]));
	if (!k)
		return -ENOMEM;
	k->attr = filled;
	memcpy(&k->addr, attr->addr, sizeof(k->addr));
	k->socket = k->keys = k->programs = k->accounts = k->door = k->link.fd = -1;
	active_arenas_init(&k->arenas, filled.size, filled.programs);
	pthread_mutex_init(&k->lock, NULL);
	ret = kernel_open(k);
	if (ret)
		active_kernel_destroy(k);
	else
		server->kernel = k;
	return ret;
}

void active_kernel_destroy(struct active_kernel *k)
{
	if (!k)
		return;
	const int fds[] = { k->door, k->programs, k->accounts, k->keys, k->socket };

	active_kernel_link_close(&k->link);
	for (size_t i = 0; i < base_array_size(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (k->account)
		munmap(k->account, accounts_size(k));
	active_arenas_uninit(&k->arenas);
	pthread_mutex_destroy(&k->lock);
	free(k);
}
