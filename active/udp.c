/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The second door: the protocol of the prototype of 2010, by UDP, for one region. Whoever reaches
 * the port can do everything to the region; SECURITY.md says what that means.
 *
 * One thread answers. Programs run in turns between the datagrams, so that one that loops holds up
 * nobody; the prototype stood still then. An answer goes to where its request came from, and
 * nothing is kept of anybody: a request that is sent again is done again.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "active/inside.h"
#include "active/udp_wire.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"

enum {
	PROGRAMS = 16, /* under way at once */
	CODES = 256,   /* objects that are known by their MD5, the last ones */
	TURN = 100000, /* instructions; a sixteenth where there is no JIT */
	IDLE_MS = 200,
	NICE = 10,
	ARGS_MAX = ACTIVE_UDP_MAX / 4,
};

struct code {
	uint8_t md5[BASE_MD5_SIZE], sha[BASE_SHA256_SIZE];
	bool used;
};

struct program {
	struct sockaddr_storage peer;
	socklen_t peer_len;
	struct active_object *object; /* NULL: the place is free */
	struct ebpf_run *run;
	struct active_call call;
	uint64_t fuel, due;
	size_t args_len;
	uint32_t args[ARGS_MAX] __attribute__((aligned(8)));
	uint8_t output[ACTIVE_WIRE_OUTPUT_MAX / 2]; /* leaves room for a value and a text */
};

struct active_udp {
	struct warp_active_server *server;
	struct active_view view;
	uint8_t *memory;
	uint64_t size, heap_used;
	int fd;
	pthread_t thread;
	bool runs, stop; /* stop: atomic */
	unsigned int busy, next_code;
	struct code codes[CODES];
	struct sockaddr_storage peer; /* of the request at hand */
	socklen_t peer_len;
	struct program programs[PROGRAMS];
	uint8_t in[ACTIVE_UDP_MAX + 1], out[ACTIVE_UDP_MAX];
	uint32_t words[ACTIVE_UDP_WORDS_MAX];
};

/* --- answers ------------------------------------------------------------------------------ */

static void reply(struct active_udp *u, const struct sockaddr_storage *peer, socklen_t peer_len,
		  const struct active_udp_answer *answer)
{
	int len = active_udp_write(answer, u->out);

	/* What is lost is asked for again */
	if (len > 0)
		sendto(u->fd, u->out, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL,
		       (const struct sockaddr *)peer, peer_len);
}

static void reply_words(struct active_udp *u, enum active_udp_error error, const uint32_t *words,
			size_t count)
{
	const struct active_udp_answer answer = { error, words, count, { NULL, 0 } };

	reply(u, &u->peer, u->peer_len, &answer);
}

static void reply_text(struct active_udp *u, const struct sockaddr_storage *peer,
		       socklen_t peer_len, enum active_udp_error error, uint32_t word,
		       const char *text)
{
	const struct active_udp_answer answer = {
		error, &word, 1, { text ? (const uint8_t *)text : NULL, text ? strlen(text) : 0 }
	};

	reply(u, peer, peer_len, &answer);
}

/* --- memory: words are little-endian there, whatever the host's order is ------------------ */

static bool inside(const struct active_udp *u, uint64_t addr, uint64_t len)
{
	return addr <= u->size && len <= u->size - addr;
}

static void read_words(struct active_udp *u, const struct active_udp_request *r)
{
	if (r->count > ACTIVE_UDP_WORDS_MAX || !inside(u, r->addr, (uint64_t)r->count * 4)) {
		reply_words(u, ACTIVE_UDP_BOUNDS, NULL, 0);
		return;
	}
	for (uint32_t i = 0; i < r->count; i++)
		u->words[i] = base_get_le32(u->memory + r->addr + (size_t)i * 4);
	reply_words(u, ACTIVE_UDP_OK, u->words, r->count);
}

/* As the prototype does: word by word, until one lies outside */
static void write_words(struct active_udp *u, const struct active_udp_request *r)
{
	for (uint32_t i = 0; i < r->count; i++) {
		uint64_t at = r->addr + (uint64_t)i * 4;

		if (!inside(u, at, 4)) {
			reply_words(u, ACTIVE_UDP_BOUNDS, NULL, 0);
			return;
		}
		u->words[i] = base_get_le32(u->memory + at);
		base_put_le32(u->memory + at, base_get_be32(r->octets.at + (size_t)i * 4));
	}
	reply_words(u, ACTIVE_UDP_OK, u->words, r->count);
}

static void swap_word(struct active_udp *u, const struct active_udp_request *r)
{
	uint32_t test = htole32(r->test), done;

	if (!inside(u, r->addr, 4)) {
		reply_words(u, ACTIVE_UDP_BOUNDS, &r->addr, 1);
		return;
	}
	if (r->addr % 4) {
		reply_words(u, ACTIVE_UDP_ERROR, &r->addr, 1);
		return;
	}
	/* Pairs with atomics of programs, of RDMA, and of other threads here */
	done = __atomic_compare_exchange_n((uint32_t *)(void *)(u->memory + r->addr), &test,
					   htole32(r->value), false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
	reply_words(u, ACTIVE_UDP_OK, &done, 1);
}

static void read_bytes(struct active_udp *u, const struct active_udp_request *r)
{
	const struct active_udp_answer answer = { .bytes = { u->memory + r->addr, r->count } };

	if (r->count > ACTIVE_UDP_BYTES_MAX || !inside(u, r->addr, r->count))
		reply_words(u, ACTIVE_UDP_BOUNDS, NULL, 0);
	else
		reply(u, &u->peer, u->peer_len, &answer);
}

static void write_bytes(struct active_udp *u, const struct active_udp_request *r)
{
	uint64_t room = r->addr < u->size ? u->size - r->addr : 0;
	size_t len = base_min((uint64_t)r->count, room);

	if (len)
		memcpy(u->memory + r->addr, r->octets.at, len);
	reply_words(u, len < r->count ? ACTIVE_UDP_BOUNDS : ACTIVE_UDP_OK, NULL, 0);
}

/* --- code --------------------------------------------------------------------------------- */

static struct code *code_find(struct active_udp *u, const uint8_t *md5)
{
	for (unsigned int i = 0; i < CODES; i++)
		if (u->codes[i].used && !memcmp(u->codes[i].md5, md5, BASE_MD5_SIZE))
			return &u->codes[i];
	return NULL;
}

static void code_load(struct active_udp *u, const struct active_udp_request *r)
{
	struct active_object *object;
	struct code code = { .used = true }, *known;
	struct ebpf_error err = { .text = "the server has no memory for it" };

	base_md5(r->octets.at, r->octets.len, code.md5);
	base_sha256(r->octets.at, r->octets.len, code.sha);
	if (active_cache_load(u->server->cache, code.sha, r->octets.at, r->octets.len, &object,
			      &err)) {
		reply_text(u, &u->peer, u->peer_len, ACTIVE_UDP_ERROR, 0, err.text);
		return;
	}
	active_cache_put(u->server->cache, object);
	known = code_find(u, code.md5);
	*(known ? known : &u->codes[u->next_code++ % CODES]) = code;
	active_count(u->server, loads, 1);
	reply_words(u, ACTIVE_UDP_OK, (const uint32_t[]){ 1 }, 1);
}

static struct program *program_place(struct active_udp *u)
{
	for (unsigned int i = 0; i < PROGRAMS; i++)
		if (!u->programs[i].object)
			return &u->programs[i];
	return NULL;
}

/* Its function execute, as of the prototype's classes, or the first one */
static int program_start(struct active_udp *u, struct program *p)
{
	const struct ebpf_object *obj = active_object_program(p->object);
	struct ebpf_region regions[2] = { active_region_ebpf(&u->view, u->view.rights) };
	struct ebpf_params params = { .regions = regions,
				      .count = 1,
				      .output = p->output,
				      .output_room = sizeof(p->output),
				      .cookie = &p->call };

	if (ebpf_object_entry(obj, "execute", &params.entry))
		ebpf_object_entry(obj, NULL, &params.entry);
	params.arg[0] = ACTIVE_ARGS_ADDR;
	params.arg[1] = p->args_len;
	if (params.arg[1])
		regions[params.count++] =
			(struct ebpf_region){ .host = p->args,
					      .addr = ACTIVE_ARGS_ADDR,
					      .size = params.arg[1],
					      .rights = EBPF_MAY_READ | EBPF_MAY_WRITE };
	return ebpf_run_start(p->run, obj, &params);
}

static void program_fill(struct active_udp *u, struct program *p,
			 const struct active_udp_request *r)
{
	p->peer = u->peer;
	p->peer_len = u->peer_len;
	p->fuel = u->server->attr.fuel;
	p->due = base_now() + (uint64_t)u->server->attr.time_ms * BASE_NS_PER_MS;
	p->call.views[0] = &u->view;
	p->call.rights[0] = u->view.rights;
	p->call.count = 1;
	p->call.heap_used = &u->heap_used;
	p->call.heap_max = u->server->attr.heap_max;
	for (uint32_t i = 0; i < r->count; i++)
		p->args[i] = base_get_be32(r->octets.at + (size_t)i * 4);
	p->args_len = (size_t)r->count * 4;
}

static void program_run(struct active_udp *u, const struct active_udp_request *r)
{
	struct program *p = program_place(u);
	struct code *code = code_find(u, r->hash);
	struct active_object *object = NULL;

	if (code)
		object = active_cache_get(u->server->cache, code->sha);
	if (!object) {
		reply_text(u, &u->peer, u->peer_len, ACTIVE_UDP_ERROR, UINT32_MAX, NULL);
		return;
	}
	if (!p || (!p->run && ebpf_run_create(&p->run))) {
		active_cache_put(u->server->cache, object);
		reply_text(u, &u->peer, u->peer_len, ACTIVE_UDP_ERROR, UINT32_MAX,
			   "too many programs are under way");
		return;
	}
	p->object = object;
	program_fill(u, p, r);
	u->busy++;
	if (program_start(u, p)) {
		reply_text(u, &u->peer, u->peer_len, ACTIVE_UDP_ERROR, UINT32_MAX, "no memory");
		active_cache_put(u->server->cache, object);
		p->object = NULL;
		u->busy--;
	}
}

static enum active_udp_error error_of(enum ebpf_status status)
{
	switch (status) {
	case EBPF_DONE:
		return ACTIVE_UDP_OK;
	case EBPF_FUEL:
		return ACTIVE_UDP_TIME;
	case EBPF_ADDRESS:
	case EBPF_RIGHTS:
		return ACTIVE_UDP_BOUNDS;
	default:
		return ACTIVE_UDP_ERROR;
	}
}

/* The value is an array of one word; or the output is, in words of the host's order */
static void program_answer(struct active_udp *u, struct program *p, const struct ebpf_result *r)
{
	struct active_udp_answer answer = { .words = u->words, .word_count = 1 };
	char text[512];

	if (r->status != EBPF_DONE) {
		ebpf_result_text(r, active_object_program(p->object), text, sizeof(text));
		reply_text(u, &p->peer, p->peer_len, error_of(r->status), UINT32_MAX, text);
		return;
	}
	u->words[0] = (uint32_t)r->value;
	if (r->output) {
		memcpy(u->words, p->output, r->output);
		answer.word_count = r->output / 4;
	}
	reply(u, &p->peer, p->peer_len, &answer);
}

static void program_turn(struct active_udp *u, struct program *p)
{
	bool jit = ebpf_object_has_jit(active_object_program(p->object));
	uint64_t turn = base_min((uint64_t)(jit ? TURN : TURN / 16), p->fuel);
	struct ebpf_result r;

	ebpf_run_continue(p->run, turn, &r);
	p->fuel -= turn - r.fuel;
	active_count(u->server, fuel, turn - r.fuel);
	if (r.status == EBPF_FUEL && p->fuel && base_now() < p->due)
		return;
	active_locks_break(&p->call);
	active_count(u->server, runs, 1);
	program_answer(u, p, &r);
	active_cache_put(u->server->cache, p->object);
	p->object = NULL;
	u->busy--;
}

/* --- the thread --------------------------------------------------------------------------- */

static void request_take(struct active_udp *u, size_t len)
{
	struct active_udp_request r;

	if (active_udp_read(u->in, len, &r)) {
		reply_words(u, ACTIVE_UDP_ERROR, NULL, 0);
		return;
	}
	switch (r.op) {
	case ACTIVE_UDP_READ:
		read_words(u, &r);
		break;
	case ACTIVE_UDP_WRITE:
		write_words(u, &r);
		break;
	case ACTIVE_UDP_CAS:
		swap_word(u, &r);
		break;
	case ACTIVE_UDP_RUN:
		program_run(u, &r);
		break;
	case ACTIVE_UDP_LOAD:
		code_load(u, &r);
		break;
	case ACTIVE_UDP_READ_BYTES:
		read_bytes(u, &r);
		break;
	case ACTIVE_UDP_WRITE_BYTES:
		write_bytes(u, &r);
		break;
	}
}

static void *answer_all(void *arg)
{
	struct active_udp *u = arg;
	struct pollfd p = { .fd = u->fd, .events = POLLIN };

	/* Linux: of this thread alone */
	setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	while (!__atomic_load_n(&u->stop, __ATOMIC_ACQUIRE)) { /* pairs with active_udp_destroy() */
		ssize_t n = -1;

		u->peer_len = sizeof(u->peer);
		if (poll(&p, 1, u->busy ? 0 : IDLE_MS) > 0)
			n = recvfrom(u->fd, u->in, sizeof(u->in), MSG_DONTWAIT,
				     (struct sockaddr *)&u->peer, &u->peer_len);
		if (n >= 0)
			request_take(u, (size_t)n);
		for (unsigned int i = 0; u->busy && i < PROGRAMS; i++)
			if (u->programs[i].object)
				program_turn(u, &u->programs[i]);
	}
	return NULL;
}

static int socket_open(const struct sockaddr *addr, socklen_t len, int *out)
{
	int fd = socket(addr->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -errno;
	if (bind(fd, addr, len)) {
		ret = -errno;
		close(fd);
		return ret;
	}
	*out = fd;
	return 0;
}

/* One address of the host's: this door is not to stand open to all networks by accident */
static bool is_one_address(const struct sockaddr *addr, socklen_t len)
{
	const struct sockaddr_in *in = (const void *)addr;
	const struct sockaddr_in6 *in6 = (const void *)addr;

	if (addr->sa_family == AF_INET && len >= sizeof(*in))
		return in->sin_addr.s_addr != htonl(INADDR_ANY);
	return addr->sa_family == AF_INET6 && len >= sizeof(*in6) &&
	       !IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
}

static int udp_create(struct warp_active_server *server, struct warp_active_region *region,
		      const struct sockaddr *addr, socklen_t len, struct active_udp **out)
{
	struct active_udp *u = calloc(1, sizeof(*u));
	int ret;

	if (!u)
		return -ENOMEM;
	u->server = server;
	u->view = (struct active_view){ .region = region, .rights = region->rights };
	u->memory = region->memory;
	u->size = base_min(region->size, (size_t)1 << 32);
	u->fd = -1;
	ret = socket_open(addr, len, &u->fd);
	if (!ret) {
		ret = -pthread_create(&u->thread, NULL, answer_all, u);
		if (ret)
			base_err("active: no thread to serve with: %s", strerror(-ret));
	}
	u->runs = !ret;
	if (ret)
		active_udp_destroy(u);
	else
		*out = u;
	return ret;
}

int warp_active_udp_serve(struct warp_active_server *server, struct warp_active_region *region,
			  const struct sockaddr *addr, socklen_t len)
{
	uint32_t free_from = 0;
	int ret;

	if (!server || !region || !addr || region->server != server || region->client ||
	    region->size < 4 || (region->rights & 15) != 15 || (uintptr_t)region->memory % 4 ||
	    !is_one_address(addr, len))
		return -EINVAL;
	if (server->udp)
		return -EALREADY;
	/* Where the next memory can be had, which the prototype's clients move by CAS */
	__atomic_compare_exchange_n((uint32_t *)(void *)region->memory, &free_from, htole32(4),
				    false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	ret = udp_create(server, region, addr, len, &server->udp);
	if (!ret)
		base_log(BASE_LOG_WARN,
			 "active: region %s is open to whoever reaches the UDP port, without "
			 "protection",
			 region->name);
	return ret;
}

int warp_active_udp_addr(const struct warp_active_server *server, struct sockaddr_storage *addr)
{
	socklen_t len = sizeof(*addr);

	if (!server || !addr)
		return -EINVAL;
	if (!server->udp)
		return -ENOTCONN;
	return getsockname(server->udp->fd, (struct sockaddr *)addr, &len) ? -errno : 0;
}

void active_udp_destroy(struct active_udp *u)
{
	if (!u)
		return;
	__atomic_store_n(&u->stop, true, __ATOMIC_RELEASE); /* pairs with answer_all() */
	if (u->runs)
		pthread_join(u->thread, NULL);
	for (unsigned int i = 0; i < PROGRAMS; i++) {
		if (u->programs[i].object)
			active_cache_put(u->server->cache, u->programs[i].object);
		ebpf_run_destroy(u->programs[i].run);
	}
	if (u->fd >= 0)
		close(u->fd);
	free(u);
}
