/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Clients that do not keep to the protocol: no message and no operation of theirs may harm the
 * server, or anybody but themselves.
 */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <warp/rdma.h>

#include "active/wire.h"
#include "base/bits.h"
#include "base/sha256.h"
#include "tests/active/world.h"
#include "tests/tap.h"

enum { RECEIVES = 64, ROOM = 1 << 17 };

/* A connection on which anything can be sent */
struct raw {
	struct warp_device *dev;
	struct warp_pd *pd;
	struct warp_cq *cq;
	struct warp_qp *qp;
	struct warp_conn *conn;
	struct warp_mr *mr;
	uint8_t *out, *in; /* ROOM, and RECEIVES * ROOM */
};

static struct world w;
static unsigned int seed = 1;

static void need(bool good)
{
	if (!good)
		abort();
}

static void receive(struct raw *raw, unsigned int i)
{
	const struct warp_sge sg = { raw->in + (size_t)i * ROOM, ROOM, warp_mr_stag(raw->mr) };
	const struct warp_recv_wr wr = { .wr_id = i, .sg = &sg, .num_sge = 1 };

	warp_qp_post_recv(raw->qp, &wr, 1);
}

static void raw_open(struct raw *raw)
{
	struct warp_qp_attr attr = { .max_send_wr = 1024,
				     .max_recv_wr = RECEIVES,
				     .max_send_sge = 1,
				     .max_recv_sge = 1,
				     .max_inline = 128 };

	memset(raw, 0, sizeof(*raw));
	raw->out = calloc(RECEIVES + 1, ROOM);
	raw->in = raw->out + ROOM;
	need(raw->out && !warp_device_open(NULL, &raw->dev));
	need(!warp_pd_create(raw->dev, &raw->pd) && !warp_cq_create(raw->dev, 4096, &raw->cq));
	attr.send_cq = attr.recv_cq = raw->cq;
	need(!warp_qp_create(raw->pd, &attr, &raw->qp));
	need(!warp_mr_register(raw->pd, raw->out, (RECEIVES + 1) * (size_t)ROOM,
			       WARP_ACCESS_LOCAL_WRITE, &raw->mr));
	for (unsigned int i = 0; i < RECEIVES; i++)
		receive(raw, i);
	need(!warp_connect(raw->qp, (struct sockaddr *)&w.addr, sizeof(struct sockaddr_in), NULL,
			   &raw->conn));
	need(!warp_conn_wait(raw->conn, 10000));
}

static void raw_close(struct raw *raw)
{
	warp_conn_destroy(raw->conn);
	warp_qp_destroy(raw->qp);
	warp_mr_deregister(raw->mr);
	warp_cq_destroy(raw->cq);
	warp_pd_destroy(raw->pd);
	warp_device_close(raw->dev);
	free(raw->out);
}

static int raw_send(struct raw *raw, size_t len)
{
	const struct warp_sge sg = { raw->out, (uint32_t)len, warp_mr_stag(raw->mr) };
	const struct warp_send_wr wr = {
		.opcode = WARP_WR_SEND, .flags = WARP_SEND_SIGNALED, .sg = &sg, .num_sge = 1
	};

	return warp_qp_post_send(raw->qp, &wr, 1);
}

static void message_send(struct raw *raw, const struct active_message *m)
{
	int len = active_message_write(m, raw->out, ROOM);

	need(len > 0);
	raw_send(raw, (size_t)len);
}

/* The next message: its length, or a negative number when the connection is over */
static int raw_next(struct raw *raw, struct active_message *m)
{
	struct warp_wc wc;

	for (;;) {
		int n = warp_cq_poll(raw->cq, &wc, 1);

		if (!n && warp_cq_wait(raw->cq, 10000))
			return -ETIMEDOUT;
		if (!n)
			continue;
		if (wc.status != WARP_WC_SUCCESS)
			return -ECONNRESET;
		if (wc.opcode != WARP_WC_RECV)
			continue;
		need(!active_message_read(raw->in + wc.wr_id * ROOM, wc.byte_len, m));
		/* in turn: what was given is good until all others were filled again */
		receive(raw, (unsigned int)wc.wr_id);
		return (int)wc.byte_len;
	}
}

/* The server ends the connection, and does not answer anything more */
static bool ends(struct raw *raw)
{
	struct active_message m;
	int ret;

	do
		ret = raw_next(raw, &m);
	while (ret > 0);
	if (ret != -ECONNRESET)
		printf("# %s\n", strerror(-ret));
	return ret == -ECONNRESET;
}

static void hello(struct raw *raw)
{
	struct active_message m = { .type = ACTIVE_HELLO };

	message_send(raw, &m);
	need(raw_next(raw, &m) > 0 && m.type == ACTIVE_WELCOME);
}

/* --- what is sent ------------------------------------------------------------------------- */

static bool alive(void)
{
	struct warp_active_client *c = world_client(&w);
	struct warp_active_result r =
		world_run(&w, c, &(const struct world_call){ "sum", { 5 }, 1 });

	warp_active_disconnect(c);
	return r.code == WARP_ACTIVE_OK && r.value == 5;
}

static bool garbage(void)
{
	bool good = true;

	for (int i = 0; i < 40 && good; i++) {
		size_t len = (size_t)rand_r(&seed) % (i % 2 ? 40 : 17000);
		struct raw raw;

		raw_open(&raw);
		if (i % 4 > 1)
			hello(&raw);
		for (size_t j = 0; j < len; j++)
			raw.out[j] = (uint8_t)rand_r(&seed);
		if (i % 3 == 0 && len >= 16) { /* a good head */
			memcpy(raw.out, (uint8_t[4]){ 0xac, 1, (uint8_t)(1 + i % 5), 0 }, 4);
			base_put_be32(raw.out + 4, (uint32_t)len);
		}
		raw_send(&raw, len);
		good = ends(&raw);
		raw_close(&raw);
	}
	return good && world_stats(&w).broken >= 40 && alive();
}

static size_t run_write(uint8_t *to, const char *function, uint64_t id, uint32_t room)
{
	uint8_t hash[32];
	struct active_message m = { .type = ACTIVE_RUN, .id = id, .output_room = room };
	int len;

	warp_active_object_hash(w.object, hash);
	m.hash = hash;
	m.name = (struct active_span){ (const uint8_t *)function, strlen(function) };
	len = active_message_write(&m, to, ROOM);
	need(len > 0);
	return (size_t)len;
}

static bool out_of_turn(void)
{
	static const enum active_type types[] = { ACTIVE_CANCEL, ACTIVE_WELCOME, ACTIVE_RESULT,
						  ACTIVE_LOADED, ACTIVE_CANCEL_DONE };
	bool good = true;
	struct raw raw;

	for (size_t i = 0; i < 2 * base_array_size(types) && good; i++) {
		struct active_message m = { .type = types[i / 2], .window = 1 };

		if (m.type == ACTIVE_CANCEL && i % 2)
			continue; /* is good there */
		raw_open(&raw);
		if (i % 2)
			hello(&raw);
		message_send(&raw, &m);
		good = ends(&raw);
		raw_close(&raw);
	}
	raw_open(&raw); /* a run before HELLO; then HELLO twice */
	raw_send(&raw, run_write(raw.out, "sum", 1, 0));
	good = good && ends(&raw);
	raw_close(&raw);
	raw_open(&raw);
	hello(&raw);
	message_send(&raw, &(const struct active_message){ .type = ACTIVE_HELLO });
	good = good && ends(&raw);
	raw_close(&raw);
	return good && alive();
}

static bool wrong_lengths(void)
{
	bool good = true;

	for (int i = 0; i < 3 && good; i++) {
		struct raw raw;
		size_t len;

		raw_open(&raw);
		hello(&raw);
		len = run_write(raw.out, "sum", 1, 0);
		if (i < 2)
			base_put_be32(raw.out + 4, (uint32_t)len + (i ? 1 : -1u));
		else
			len = 17500; /* more than a receive of the server's takes */
		raw_send(&raw, len);
		good = ends(&raw);
		raw_close(&raw);
	}
	return good && alive();
}

static bool more_than_the_window(void)
{
	struct raw raw;
	size_t len;
	bool good;

	raw_open(&raw);
	hello(&raw);
	len = run_write(raw.out, "spin", 1, 0);
	for (int i = 0; i < 200; i++)
		raw_send(&raw, len);
	good = ends(&raw);
	raw_close(&raw);
	return good && alive();
}

static bool answer_is(struct raw *raw, enum active_type type, enum active_code code)
{
	struct active_message m;

	if (raw_next(raw, &m) > 0 && m.type == type && m.code == code)
		return true;
	printf("# type 0x%x, code %u: %.*s\n", m.type, m.code, (int)m.text.len, m.text.at);
	return false;
}

static void part_send(struct raw *raw, uint64_t id, uint32_t size, uint32_t offset, uint32_t len)
{
	static const uint8_t bytes[16384];
	uint8_t hash[32];

	base_sha256(bytes, sizeof(bytes), hash);
	message_send(raw, &(const struct active_message){ .type = ACTIVE_LOAD,
							  .id = id,
							  .hash = hash,
							  .size = size,
							  .offset = offset,
							  .part = { bytes, len } });
}

static bool parts(void)
{
	struct raw raw;
	bool good;

	raw_open(&raw);
	hello(&raw);
	part_send(&raw, 1, 1000, 500, 10); /* of nothing */
	good = answer_is(&raw, ACTIVE_LOADED, ACTIVE_MALFORMED);
	part_send(&raw, 1, 1000, 0, 500);
	good = good && answer_is(&raw, ACTIVE_LOADED, ACTIVE_OK);
	part_send(&raw, 1, 1000, 501, 10); /* a gap */
	good = good && answer_is(&raw, ACTIVE_LOADED, ACTIVE_MALFORMED);
	part_send(&raw, 2, 1000, 500, 10); /* of another */
	good = good && answer_is(&raw, ACTIVE_LOADED, ACTIVE_MALFORMED);
	part_send(&raw, 1, 900, 500, 10); /* another size */
	good = good && answer_is(&raw, ACTIVE_LOADED, ACTIVE_MALFORMED);
	part_send(&raw, 1, 1000, 500, 500); /* the rest, and it has another hash */
	good = good && answer_is(&raw, ACTIVE_LOADED, ACTIVE_MALFORMED);
	part_send(&raw, 3, 32 << 20, 0, 500);
	good = good && answer_is(&raw, ACTIVE_LOADED, ACTIVE_REFUSED);
	part_send(&raw, 4, 16384, 0, 16384); /* its hash is right, and it is no object */
	good = good && answer_is(&raw, ACTIVE_LOADED, ACTIVE_REFUSED);
	raw_close(&raw);
	return good && alive();
}

/* What has come of objects that never end is bounded, for all clients together */
static bool unfinished(void)
{
	enum { CLIENTS = 8, MOST = 400000 };
	const struct warp_active_server_attr attr = { .cache = MOST };
	struct raw raw[CLIENTS];
	int taken = 0, busy = 0;
	struct world old = w;

	world_spawn(&w, &attr);
	for (int i = 0; i < CLIENTS; i++) {
		struct active_message m = { 0 };

		raw_open(&raw[i]);
		hello(&raw[i]);
		for (uint32_t part = 0; part < 5 && m.code == ACTIVE_OK; part++) {
			part_send(&raw[i], 1, 1 << 20, part * 16384, 16384);
			need(raw_next(&raw[i], &m) > 0);
		}
		taken += m.code == ACTIVE_OK;
		busy += m.code == ACTIVE_BUSY;
	}
	for (int i = 0; i < CLIENTS; i++)
		raw_close(&raw[i]);
	printf("# %d kept, %d refused\n", taken, busy);
	usleep(300000); /* what they had is free again */
	taken = taken && taken < CLIENTS && taken + busy == CLIENTS && alive();
	world_close(&w);
	w = old;
	return taken;
}

/* Clients that have all memory for objects, and never end theirs, keep others out for a while */
static bool unfinished_for_long(void)
{
	enum { CLIENTS = 6, MS = 400 };
	const struct warp_active_server_attr attr = { .cache = 100000, .time_ms = MS };
	struct raw raw[CLIENTS];
	struct world old = w;
	bool good = true, late;

	world_spawn(&w, &attr);
	for (int i = 0; i < CLIENTS; i++) {
		raw_open(&raw[i]);
		hello(&raw[i]);
		part_send(&raw[i], 1, 1 << 20, 0, 16384);
		good = good && answer_is(&raw[i], ACTIVE_LOADED, ACTIVE_OK);
	}
	good = good && !alive();
	usleep(2 * MS * 1000);
	late = alive();
	/* It begins anew, for what the server had is gone */
	part_send(&raw[0], 1, 1 << 20, 16384, 16384);
	good = good && answer_is(&raw[0], ACTIVE_LOADED, ACTIVE_MALFORMED);
	for (int i = 0; i < CLIENTS; i++)
		raw_close(&raw[i]);
	world_close(&w);
	w = old;
	return good && late;
}

static bool cancels(void)
{
	struct raw raw;
	bool good = true;

	raw_open(&raw);
	hello(&raw);
	for (uint64_t i = 0; i < 100 && good; i++) {
		message_send(&raw,
			     &(const struct active_message){ .type = ACTIVE_CANCEL, .id = i });
		good = answer_is(&raw, ACTIVE_CANCEL_DONE, ACTIVE_OK);
	}
	raw_close(&raw);
	return good && alive();
}

/* Code that the server does not have, or not under this name */
static bool unknown_code(void)
{
	struct raw raw;
	size_t len;
	bool good;

	raw_open(&raw);
	hello(&raw);
	len = run_write(raw.out, "sum", 1, 0);
	raw.out[16] ^= 1; /* of the hash */
	raw_send(&raw, len);
	good = answer_is(&raw, ACTIVE_RESULT, ACTIVE_UNKNOWN);
	raw_send(&raw, run_write(raw.out, "sun", 1, 0));
	good = good && answer_is(&raw, ACTIVE_RESULT, ACTIVE_NO_FUNCTION);
	raw_close(&raw);
	return good && alive();
}

/* Three runs with the same id are three runs; cancelling the id ends all that are there */
static bool one_id_for_all(void)
{
	struct active_message m;
	int results = 0;
	struct raw raw;

	raw_open(&raw);
	hello(&raw);
	for (int i = 0; i < 3; i++)
		raw_send(&raw, run_write(raw.out, "spin", 7, 0));
	usleep(20000);
	message_send(&raw, &(const struct active_message){ .type = ACTIVE_CANCEL, .id = 7 });
	while (results < 3 && raw_next(&raw, &m) > 0)
		results += m.type == ACTIVE_RESULT && m.code == ACTIVE_CANCELLED;
	raw_close(&raw);
	return results == 3 && alive();
}

/* --- one-sided operations ----------------------------------------------------------------- */

static int operation(struct raw *raw, enum warp_wr_opcode opcode, uint32_t stag, uint64_t to,
		     uint32_t len)
{
	const struct warp_sge sg = { raw->out, len, warp_mr_stag(raw->mr) };
	const struct warp_send_wr wr = { .opcode = opcode,
					 .flags = WARP_SEND_SIGNALED,
					 .sg = &sg,
					 .num_sge = 1,
					 .remote_stag = stag,
					 .remote_to = to };
	struct warp_active_client *watch = world_client(&w);
	struct active_message m;
	int ret;

	warp_qp_post_send(raw->qp, &wr, 1);
	ret = raw_next(raw, &m);
	warp_active_disconnect(watch);
	return ret;
}

/* Another client's STag, a right that the region does not have, and what lies outside of it */
static bool foreign_memory(void)
{
	struct warp_active_client *c = world_client(&w);
	struct warp_active_region_info table = world_region(c, WORLD_TABLE);
	uint64_t before = 1, after = 2;
	bool good = true;

	need(!world_access(c, WARP_ACTIVE_OP_READ, WORLD_TABLE, 0, &before, 8));
	for (int i = 0; i < 5 && good; i++) {
		struct warp_active_region_info own[2];
		struct active_message m = { .type = ACTIVE_HELLO };
		struct active_region_info info;
		struct raw raw;

		raw_open(&raw);
		message_send(&raw, &m);
		need(raw_next(&raw, &m) > 0 && m.type == ACTIVE_WELCOME);
		for (int j = 0; j < 3; j++) {
			need(active_region_next(&m.regions, &info));
			own[j == 2].stag = info.stag;
			own[j == 2].addr = info.addr;
			if (!j)
				own[0].size = 0;
		}
		memset(raw.out, 0xee, 64);
		if (i == 0)
			good = operation(&raw, WARP_WR_WRITE, table.stag, table.addr, 8) < 0;
		else if (i == 1)
			good = operation(&raw, WARP_WR_READ, table.stag, table.addr, 8) < 0;
		else if (i == 2) /* the constants */
			good = operation(&raw, WARP_WR_WRITE, own[1].stag, own[1].addr, 8) < 0;
		else if (i == 3)
			good = operation(&raw, WARP_WR_FETCH_ADD, own[1].stag, own[1].addr, 8) < 0;
		else
			good = operation(&raw, WARP_WR_READ, own[1].stag, own[1].addr + 4095, 8) <
			       0;
		if (!good)
			printf("# number %d was taken\n", i);
		raw_close(&raw);
	}
	need(!world_access(c, WARP_ACTIVE_OP_READ, WORLD_TABLE, 0, &after, 8));
	good = good && before == after;
	need(!world_access(c, WARP_ACTIVE_OP_READ, WORLD_CONSTANTS, 0, &after, 8));
	good = good && after == 0x1111111111111111;
	warp_active_disconnect(c);
	return good && alive();
}

/* --- one that does not take its answers --------------------------------------------------- */

static void deaf_client(void)
{
	struct raw raw;

	raw_open(&raw);
	hello(&raw);
	for (uint64_t i = 0; i < 16; i++)
		raw_send(&raw, run_write(raw.out, "flood", i, 65536));
	for (;;)
		pause();
}

static bool does_not_listen(void)
{
	pid_t pids[10];
	bool good = true;

	for (int i = 0; i < 10; i++) {
		pids[i] = fork();
		if (!pids[i])
			deaf_client();
	}
	usleep(100000);
	for (int i = 0; i < 10; i++)
		kill(pids[i], SIGSTOP);
	for (int i = 0; i < 20; i++)
		good = good && alive();
	for (int i = 0; i < 10; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	return good;
}

static bool nobody(const struct warp_active_stats *stats)
{
	return !stats->clients;
}

int main(int argc, char **argv)
{
	bool good;

	world_main(argc, argv);
	world_spawn(&w, NULL);
	tap_case(alive(), "the server serves");
	tap_case(garbage(), "garbage");
	tap_case(out_of_turn(), "messages out of turn");
	tap_case(wrong_lengths(), "wrong lengths");
	tap_case(more_than_the_window(), "more runs than the window has");
	tap_case(parts(), "parts of objects that do not fit");
	tap_case(unfinished(), "objects that never end");
	tap_case(unfinished_for_long(), "objects that never end, and another one");
	tap_case(cancels(), "cancels of nothing");
	tap_case(unknown_code(), "code that is not known");
	tap_case(one_id_for_all(), "one id for several runs");
	tap_case(foreign_memory(), "memory of others");
	tap_case(does_not_listen(), "clients that do not take their answers");
	good = world_until(&w, nobody, 10000);
	tap_case(good, "nothing of them is left");
	world_close(&w);
	return tap_finish();
}
