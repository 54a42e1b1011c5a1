/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Regions that a server exports, and what clients may do with them.
 *
 * Programs see a region at its address in this process, which is its tagged offset for RDMA too,
 * so a pointer that a program stores is good for one-sided operations as well.
 *
 * Memory of the server's own has room up to the next power of two, without access, and a page
 * behind that: the engine's check of an access is the quickest there, and a processor that guesses
 * wrong finds nothing (SECURITY.md).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "active/inside.h"
#include "active/kernel.h"
#include "base/bits.h"

_Static_assert((int)EBPF_MAY_READ == (int)WARP_ACTIVE_READ, "rights");
_Static_assert((int)EBPF_MAY_WRITE == (int)WARP_ACTIVE_WRITE, "rights");
_Static_assert((int)EBPF_MAY_ATOMIC == (int)WARP_ACTIVE_ATOMIC, "rights");
_Static_assert((int)ACTIVE_RIGHT_READ == (int)WARP_ACTIVE_READ, "rights");
_Static_assert((int)ACTIVE_RIGHT_WRITE == (int)WARP_ACTIVE_WRITE, "rights");
_Static_assert((int)ACTIVE_RIGHT_ATOMIC == (int)WARP_ACTIVE_ATOMIC, "rights");
_Static_assert((int)ACTIVE_RIGHT_RUN == (int)WARP_ACTIVE_RUN, "rights");

enum { RIGHTS = WARP_ACTIVE_READ | WARP_ACTIVE_WRITE | WARP_ACTIVE_ATOMIC | WARP_ACTIVE_RUN };
enum { FLAGS = WARP_ACTIVE_HEAP | WARP_ACTIVE_NO_RDMA | WARP_ACTIVE_IN_KERNEL };

static int memory_map(struct warp_active_region *r)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room = page;
	uint8_t *map;

	while (room < r->size)
		room *= 2;
	map = mmap(NULL, room + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		   0);
	if (map == MAP_FAILED)
		return -ENOMEM;
	if (mprotect(map, base_align_up(r->size, page), PROT_READ | PROT_WRITE)) {
		munmap(map, room + page);
		return -ENOMEM;
	}
	r->memory = map;
	r->room = room;
	r->mapped = room + page;
	return 0;
}

static int heap_make(struct warp_active_region *r, size_t offset)
{
	r->heap_offset = base_align_up(offset, ACTIVE_HEAP_UNIT);
	if (r->heap_offset < offset || r->heap_offset >= r->size)
		return -EINVAL;
	return active_heap_create(r->size - r->heap_offset, &r->heap);
}

static struct active_session *session_of(const struct warp_active_peer *peer)
{
	return peer ? (void *)peer->session : NULL;
}

static int region_create(struct warp_active_server *server,
			 const struct warp_active_region_attr *attr,
			 struct warp_active_region **out)
{
	struct warp_active_region *r = calloc(1, sizeof(*r));
	int ret = 0;

	if (!r)
		return -ENOMEM;
	base_list_init(&r->link);
	r->server = server;
	r->client = session_of(attr->peer);
	memcpy(r->name, attr->name, strlen(attr->name));
	r->memory = attr->memory;
	r->size = attr->size;
	r->rights = attr->rights;
	r->flags = attr->flags;
	/* Memory in the kernel cannot be given back, so it is the last */
	if (r->flags & WARP_ACTIVE_HEAP)
		ret = heap_make(r, attr->heap_offset);
	if (!ret && (r->flags & WARP_ACTIVE_IN_KERNEL))
		ret = active_kernel_memory(r, attr->arena);
	else if (!ret && !r->memory)
		ret = memory_map(r);
	if (ret)
		active_region_destroy(r);
	else
		*out = r;
	return ret;
}

void active_region_destroy(struct warp_active_region *r)
{
	base_list_remove(&r->link);
	active_heap_destroy(r->heap);
	if (r->mapped)
		munmap(r->memory, r->mapped);
	free(r);
}

static bool attr_good(const struct warp_active_region_attr *a)
{
	return a->name && strlen(a->name) <= ACTIVE_WIRE_NAME_MAX && a->size &&
	       a->size <= SIZE_MAX / 4 && !(a->rights & ~(unsigned int)RIGHTS) &&
	       !(a->flags & ~(unsigned int)FLAGS) &&
	       !(a->memory && (a->flags & WARP_ACTIVE_IN_KERNEL)) &&
	       !(a->arena && (a->peer || !(a->flags & WARP_ACTIVE_IN_KERNEL))) &&
	       !(a->peer && !a->peer->session) && (uintptr_t)a->memory + a->size >= a->size &&
	       (uintptr_t)a->memory + a->size < EBPF_OWN_ADDR;
}

/* Programs need regions that are apart, and clients know them by name */
static int region_compare(const struct warp_active_region *r, const char *name,
			  const uint8_t *memory, size_t size)
{
	if (!strcmp(r->name, name))
		return -EEXIST;
	if (memory && memory < r->memory + r->size && r->memory < memory + size)
		return -EINVAL;
	return 0;
}

/* Under server.lock */
static int place_check(struct warp_active_server *server, const struct warp_active_region_attr *a)
{
	struct base_list *at, *next;
	int ret = server->region_count < ACTIVE_REGIONS_MAX ? 0 : -E2BIG;

	base_list_foreach(at, next, &server->regions)
		if (!ret)
			ret = region_compare(base_list_entry(at, struct warp_active_region, link),
					     a->name, a->memory, a->size);
	return ret;
}

/* The same among the regions that the client has */
static int view_check(const struct active_session *s, const char *name, const uint8_t *memory,
		      size_t size)
{
	int ret = s->view_count < ACTIVE_REGIONS_MAX ? 0 : -E2BIG;

	for (unsigned int i = 0; i < s->view_count && !ret; i++)
		ret = region_compare(s->views[i].region, name, memory, size);
	return ret;
}

/* Under server.lock: for everybody, or for one client that has it from now on */
static int region_enter(struct warp_active_region *r, const struct warp_active_peer *peer)
{
	struct warp_active_server *server = r->server;

	if (peer) {
		base_list_push_back(&r->client->own, &r->link);
		return warp_active_grant(peer, r, r->rights);
	}
	base_list_push_back(&server->regions, &r->link);
	server->region_count++;
	return 0;
}

int warp_active_export(struct warp_active_server *server,
		       const struct warp_active_region_attr *attr, struct warp_active_region **out)
{
	const struct active_session *s;
	struct warp_active_region *r;
	int ret;

	if (!server || !attr || !out || !attr_good(attr))
		return -EINVAL;
	s = session_of(attr->peer);
	if (s && s->server != server)
		return -EINVAL;
	pthread_mutex_lock(&server->lock);
	ret = s ? view_check(s, attr->name, attr->memory, attr->size) : place_check(server, attr);
	if (!ret)
		ret = region_create(server, attr, &r);
	if (!ret) {
		ret = region_enter(r, attr->peer);
		if (ret)
			active_region_destroy(r);
		else
			*out = r;
	}
	pthread_mutex_unlock(&server->lock);
	return ret;
}

void *warp_active_region_memory(const struct warp_active_region *region)
{
	return region ? region->memory : NULL;
}

static int view_register(struct active_session *s, struct active_view *v)
{
	static const struct {
		unsigned int right, access;
	} rows[] = { { WARP_ACTIVE_READ, WARP_ACCESS_REMOTE_READ },
		     { WARP_ACTIVE_WRITE, WARP_ACCESS_REMOTE_WRITE | WARP_ACCESS_LOCAL_WRITE },
		     { WARP_ACTIVE_ATOMIC, WARP_ACCESS_REMOTE_ATOMIC | WARP_ACCESS_LOCAL_WRITE } };
	unsigned int access = 0;

	for (size_t i = 0; i < base_array_size(rows); i++)
		if (v->rights & rows[i].right)
			access |= rows[i].access;
	if (!access || (v->region->flags & WARP_ACTIVE_NO_RDMA))
		return 0;
	return warp_mr_register(s->pd, v->region->memory, v->region->size, access, &v->mr);
}

int warp_active_grant(const struct warp_active_peer *peer, struct warp_active_region *region,
		      unsigned int rights)
{
	struct active_session *s = session_of(peer);
	struct active_view *v;
	int ret;

	if (!s || !region || region->server != s->server || (rights & ~region->rights) ||
	    (region->client && region->client != s))
		return -EINVAL;
	ret = view_check(s, region->name, region->memory, region->size);
	if (ret)
		return ret;
	v = &s->views[s->view_count];
	*v = (struct active_view){ .region = region, .rights = rights };
	ret = view_register(s, v);
	if (ret)
		return ret;
	s->view_count++;
	s->may_run |= rights & WARP_ACTIVE_RUN;
	return 0;
}

struct ebpf_region active_region_ebpf(const struct active_view *view, unsigned int rights)
{
	const struct warp_active_region *r = view->region;

	return (struct ebpf_region){ .host = r->memory,
				     .addr = (uintptr_t)r->memory,
				     .size = r->size,
				     .room = r->room,
				     .rights = rights & ~(unsigned int)WARP_ACTIVE_RUN };
}
