/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The third door: programs of clients in this host's kernel, on regions in one BPF arena.
 *
 *	packet -> door -- key --> program of a client -> answer (XDP_TX)
 *	             \
 *	              anything else: the network
 *
 * A client asks for a place by its connection (INSTALL) and gets a key, which nobody can guess.
 * The key stands for the client, its code, and the regions with their rights; when the client goes,
 * its keys go. When the process dies the kernel takes everything away, for descriptors hold it.
 *
 * The arena has the regions, then a block for each processor, which one run at a time uses, then
 * constants for each place.
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
#include <sys/socket.h>
#include <unistd.h>

#include "active/inside.h"
#include "active/kernel.h"
#include "active/kernel_code.h"
#include "active/kernel_helper.h"
#include "active/session.h"
#include "base/bits.h"
#include "base/log.h"
#include "base/rand.h"
#include "bpfkernel/system.h"

enum {
	DATA_ROOM = 16384, /* of the constants of one program */
	SIZE_MOST = 1 << 30,
	PROGRAMS_MOST = 1024,
	PAGE = 4096,
};

/* A program of a client; session NULL, under the lock: the place is free */
struct place {
	struct active_session *session;
	uint8_t key[ACTIVE_WIRE_KEY];
	int fd;
};

struct active_kernel {
	struct warp_active_kernel_attr attr; /* with the defaults filled in */
	struct sockaddr_in addr;
	struct bpfkernel_arena arena;
	size_t used; /* of the arena, by regions */
	size_t blocks;
	unsigned int block_count;
	int socket, keys, programs, door, link;
	pthread_mutex_t lock; /* of used, and of whose places are; behind server.lock */
	struct place places[];
};

/* --- memory --------------------------------------------------------------------------------- */

static size_t place_data(const struct active_kernel *k, size_t place)
{
	return k->blocks +
	       base_align_up(k->block_count * sizeof(struct active_kernel_block), PAGE) +
	       place * DATA_ROOM;
}

int active_kernel_memory(struct warp_active_server *server, size_t size, uint8_t **out)
{
	struct active_kernel *k = server->kernel;
	int ret = 0;

	if (!k)
		return -ENOTCONN;
	pthread_mutex_lock(&k->lock);
	if (size > k->blocks - k->used)
		ret = -ENOMEM;
	else
		*out = k->arena.memory + k->used;
	if (!ret)
		k->used = base_min(base_align_up(k->used + size, PAGE), k->blocks);
	pthread_mutex_unlock(&k->lock);
	return ret;
}

/* --- a program ------------------------------------------------------------------------------ */

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
	const uint8_t *arena = m->k->arena.memory;

	if (call->count > BPFKERNEL_WINDOWS_MAX - 2)
		return refuse(m, -E2BIG, "too many regions for the kernel");
	for (size_t i = 0; i < call->count; i++) {
		const struct warp_active_region *r = call->views[i]->region;

		if (!(r->flags & WARP_ACTIVE_IN_KERNEL)) {
			snprintf(m->why, m->room, "region %s is not in the kernel", r->name);
			return -EOPNOTSUPP;
		}
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
	return ret ? refuse(m, -ENOMEM, "the server has no memory for it") : 0;
}

static int code_write(struct making *m, struct bpfgen_code *c)
{
	struct active_kernel *k = m->k;
	const struct ebpf_object *object = active_object_program(m->task->object);
	struct active_kernel_program p = {
		.params = { .object = object,
			    .entry = m->task->entry,
			    .arena = (uintptr_t)k->arena.memory,
			    .windows = m->windows,
			    .window_count = m->window_count,
			    .constants = (uint32_t)place_data(k, m->place) },
		.arena = k->arena.fd,
		.blocks = (uintptr_t)k->arena.memory + k->blocks,
		.block_count = k->block_count,
		.args_addr = ACTIVE_ARGS_ADDR,
		.fuel = k->attr.fuel,
	};
	size_t constants_size, size;
	struct ebpf_error err;
	int ret;

	bpfkernel_data_copy(object, NULL, &constants_size, &size);
	if (size > DATA_ROOM)
		return refuse(m, -E2BIG, "more data and constants than the kernel has room for");
	bpfkernel_data_copy(object, k->arena.memory + p.params.constants, &constants_size, &size);
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
		ret = refuse(m, -ENOMEM, "the server has no memory for it");
	if (!ret)
		ret = code_write(m, c);
	if (!ret) {
		insns = bpfgen_code_insns(c, &count);
		ret = bpfkernel_program_load(insns, count, m->why, m->room);
	}
	bpfgen_code_destroy(c);
	bpfkernel_library_destroy(m->library);
	return ret;
}

/* --- places --------------------------------------------------------------------------------- */

/* A free place, which is the session's from now on; or -EBUSY */
static int place_take(struct active_kernel *k, struct active_session *s)
{
	unsigned int of_session = 0;
	int place = -EBUSY;

	pthread_mutex_lock(&k->lock);
	for (unsigned int i = 0; i < k->attr.programs; i++) {
		of_session += k->places[i].session == s;
		if (!k->places[i].session)
			place = (int)i;
	}
	place = of_session < k->attr.each ? place : -EBUSY;
	if (place >= 0)
		k->places[place] = (struct place){ .session = s, .fd = -1 };
	pthread_mutex_unlock(&k->lock);
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

/* Under the lock */
static void place_close(struct active_kernel *k, uint32_t i)
{
	bpfkernel_map_remove(k->keys, k->places[i].key);
	bpfkernel_map_remove(k->programs, &i);
	if (k->places[i].fd >= 0)
		close(k->places[i].fd);
	k->places[i].session = NULL;
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
	int ret;

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
	place = place_take(k, task->session);
	if (place < 0)
		return refuse(&m, place, "too many programs are in the kernel");
	m.place = (size_t)place;
	ret = place_fill(&m);
	if (ret) {
		pthread_mutex_lock(&k->lock);
		place_close(k, (uint32_t)place);
		pthread_mutex_unlock(&k->lock);
	}
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
	pthread_mutex_unlock(&k->lock);
}

/* --- the door ------------------------------------------------------------------------------- */

static bool attr_good(const struct warp_active_kernel_attr *a)
{
	const struct sockaddr_in *in = (const void *)a->addr;

	return a->interface && in && a->len >= sizeof(*in) && in->sin_family == AF_INET &&
	       in->sin_port && in->sin_addr.s_addr != htonl(INADDR_ANY) && a->size <= SIZE_MOST &&
	       a->programs <= PROGRAMS_MOST && a->fuel <= INT64_MAX &&
	       !(a->flags & ~(unsigned int)WARP_ACTIVE_GENERIC);
}

static void attr_fill(struct warp_active_kernel_attr *a)
{
	a->size = base_align_up(a->size ? a->size : 16 << 20, PAGE);
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

static int arena_make(struct active_kernel *k)
{
	long processors = sysconf(_SC_NPROCESSORS_CONF);

	k->block_count = processors < 1 ? 1 : (unsigned int)processors;
	k->blocks = k->attr.size;
	return bpfkernel_arena_create(place_data(k, k->attr.programs), &k->arena);
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
	door = (struct active_kernel_door){ k->addr.sin_addr.s_addr, k->addr.sin_port, k->keys,
					    k->programs };
	ret = bpfgen_code_create(&c);
	if (ret)
		return ret;
	ret = active_kernel_door_write(c, &door);
	if (!ret) {
		insns = bpfgen_code_insns(c, &count);
		k->door = bpfkernel_program_load(insns, count, why, sizeof(why));
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
	k->link = -EOPNOTSUPP;
	if (!(k->attr.flags & WARP_ACTIVE_GENERIC) && !is_pair(k))
		k->link = bpfkernel_attach(k->door, interface, true);
	if (k->link < 0)
		k->link = bpfkernel_attach(k->door, interface, false);
	return base_min(k->link, 0);
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
	int ret = interface ? port_take(k) : -ENODEV;

	if (!ret && is_real_time())
		ret = -EOPNOTSUPP;
	if (!ret)
		ret = arena_make(k);
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
	k->socket = k->keys = k->programs = k->door = k->link = -1;
	k->arena.fd = -1;
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
	const int fds[] = { k->link, k->door, k->programs, k->keys, k->socket };

	for (size_t i = 0; i < base_array_size(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (k->arena.fd >= 0)
		bpfkernel_arena_destroy(&k->arena);
	pthread_mutex_destroy(&k->lock);
	free(k);
}
