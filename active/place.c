/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client's program in the kernel of a server: datagrams out, answers in.
 *
 * Each request has an id of its own, so that an answer to one that was given up is not taken for
 * that of another. Nothing is sent again: a program may change what it finds.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "active/client.h"
#include "active/inside.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/rand.h"

_Static_assert((int)WARP_ACTIVE_PLACE_MAX == (int)ACTIVE_WIRE_DATA_MAX, "the same limit");

enum { DATAGRAM_MAX = sizeof(struct active_wire_ask) + ACTIVE_WIRE_DATA_MAX };

struct warp_active_place {
	int fd;
	uint8_t key[ACTIVE_WIRE_KEY];
	uint64_t id;
	uint64_t fuel; /* of a run; 0: what the server allows */
	unsigned int spin_us;
	struct warp_active_object *object;
	struct ebpf_object *program; /* the same for texts of errors, once there was one; or NULL */
	union {
		struct active_wire_ask ask;
		struct active_wire_told told;
		uint8_t octets[DATAGRAM_MAX];
	} out, in;
};

static int socket_open(const struct active_wire_place *w, int *out)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = w->port,
				    .sin_addr.s_addr = w->addr };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		ret = -errno;
		close(fd);
		return ret;
	}
	*out = fd;
	return 0;
}

static int place_open(const struct active_wire_place *w, const struct warp_active_run *run,
		      struct warp_active_place **out)
{
	struct warp_active_place *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return -ENOMEM;
	p->fd = -1;
	memcpy(p->key, w->key, sizeof(p->key));
	p->fuel = run->fuel;
	p->object = active_object_get(run->object);
	ret = base_rand_u64(&p->id);
	if (!ret)
		ret = socket_open(w, &p->fd);
	if (ret)
		warp_active_place_close(p);
	else
		*out = p;
	return ret;
}

int warp_active_install(struct warp_active_client *client, const struct warp_active_run *run,
			struct warp_active_place **out, struct warp_active_result *result)
{
	struct active_wire_place place;
	struct warp_active_run install;
	int ret;

	if (!run || !out || !result)
		return -EINVAL;
	install = *run;
	install.args = NULL;
	install.args_len = 0;
	install.output = &place;
	install.output_room = sizeof(place);
	ret = active_install(client, &install, result);
	if (ret || result->code != WARP_ACTIVE_OK)
		return ret;
	return result->output == sizeof(place) ? place_open(&place, run, out) : -EPROTO;
}

void warp_active_place_spin(struct warp_active_place *place, unsigned int spin_us)
{
	if (place)
		place->spin_us = spin_us;
}

void warp_active_place_close(struct warp_active_place *place)
{
	if (!place)
		return;
	if (place->fd >= 0)
		close(place->fd);
	active_object_put(place->object);
	ebpf_object_destroy(place->program);
	free(place);
}

/* --- a run ---------------------------------------------------------------------------------- */

static size_t ask_write(struct warp_active_place *p, const void *args, size_t args_len,
			size_t output_room)
{
	struct active_wire_ask *w = &p->out.ask;
	size_t data = base_align_up(base_max(args_len, output_room), 8);

	memset(&p->out, 0, sizeof(*w) + data);
	w->magic = ACTIVE_WIRE_MAGIC;
	w->version = ACTIVE_WIRE_VERSION;
	w->type = ACTIVE_ASK;
	base_put_be32(&w->args, (uint32_t)args_len);
	base_put_be64(&w->id, ++p->id);
	memcpy(w->key, p->key, sizeof(w->key));
	base_put_be64(&w->fuel, p->fuel);
	base_put_be32(&w->output, (uint32_t)output_room);
	if (args_len)
		memcpy(w + 1, args, args_len);
	return sizeof(*w) + data;
}

/* Whether it is the answer to what was asked last; other datagrams are not looked at */
static bool told_is_mine(const struct warp_active_place *p, ssize_t len)
{
	const struct active_wire_told *w = &p->in.told;

	return len >= (ssize_t)sizeof(*w) && w->magic == ACTIVE_WIRE_MAGIC &&
	       w->version == ACTIVE_WIRE_VERSION && w->type == ACTIVE_TOLD &&
	       base_get_be64(&w->id) == p->id && base_get_be32(&w->code) < ACTIVE_CODES &&
	       base_get_be32(&w->output) <= (size_t)len - sizeof(*w);
}

static int told_wait(struct warp_active_place *p, int timeout_ms)
{
	uint64_t now = base_now(), deadline = base_deadline_ms(timeout_ms);
	uint64_t until = now + (uint64_t)p->spin_us * 1000;

	for (;;) {
		ssize_t n = recv(p->fd, &p->in, sizeof(p->in), MSG_DONTWAIT);
		struct pollfd wait = { .fd = p->fd, .events = POLLIN };

		if (n >= 0 && told_is_mine(p, n))
			return 0;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		now = base_now();
		if (now >= deadline)
			return -ETIMEDOUT;
		if (n < 0 && now >= until)
			poll(&wait, 1, base_deadline_poll_ms(deadline, now));
	}
}

/* With the source line, as a server tells it */
static void program_text(struct warp_active_place *p, struct warp_active_result *result)
{
	const struct ebpf_result r = { .status = (enum ebpf_status)result->code,
				       .pc = result->pc,
				       .addr = result->addr,
				       .len = result->len,
				       .rights = result->rights };
	struct ebpf_error err;

	if (!p->program && ebpf_object_load(p->object->bytes, p->object->len, &active_helpers,
					    EBPF_LOAD_NO_JIT, &p->program, &err))
		return;
	ebpf_result_text(&r, p->program, result->text, sizeof(result->text));
}

static void told_text(struct warp_active_place *p, struct warp_active_result *result)
{
	const char *text = warp_active_code_text(result->code);

	if (result->code == WARP_ACTIVE_BUSY)
		text = "the client's rate is used up";
	strcpy(result->text, result->code == WARP_ACTIVE_OK ? "" : text);
	if (result->code > WARP_ACTIVE_OK && result->code <= WARP_ACTIVE_DEPTH)
		program_text(p, result);
}

static void told_read(struct warp_active_place *p, struct warp_active_result *result, void *output,
		      size_t output_room)
{
	const struct active_wire_told *w = &p->in.told;
	size_t given = base_get_be32(&w->output);

	result->code = (enum warp_active_code)base_get_be32(&w->code);
	result->value = base_get_be64(&w->value);
	result->fuel = base_get_be64(&w->fuel);
	result->pc = base_get_be32(&w->pc);
	result->addr = base_get_be64(&w->addr);
	result->len = base_get_be32(&w->len);
	result->rights = base_get_be32(&w->rights);
	result->output = base_min(given, output_room);
	if (result->output)
		memcpy(output, w + 1, result->output);
	told_text(p, result);
}

int warp_active_place_run(struct warp_active_place *place, const void *args, size_t args_len,
			  void *output, size_t output_room, int timeout_ms,
			  struct warp_active_result *result)
{
	size_t len;
	int ret;

	if (!place || !result || (!args && args_len) || (!output && output_room) ||
	    args_len > ACTIVE_WIRE_DATA_MAX || output_room > ACTIVE_WIRE_DATA_MAX)
		return -EINVAL;
	len = ask_write(place, args, args_len, output_room);
	if (send(place->fd, &place->out, len, 0) < 0)
		return -errno;
	ret = told_wait(place, timeout_ms);
	if (!ret)
		told_read(place, result, output, output_room);
	return ret;
}
