/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The steps of a script, whoever carries them out: see script.h. The first step that fails ends
 * the program, and says which it was.
 */
#include "script.h"

#include <endian.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "wire/rsockets.h"
#include "wire/stream_ext.h"

uint8_t *script_out, *script_in[SCRIPT_RECEIVES], *script_memory;
unsigned int script_out_size, script_buffer_size = 65536, script_memory_size = 65536;
unsigned int script_pieces = 1, script_scatter = 1, script_ird = 4, script_ord = 4;
unsigned int script_receives = SCRIPT_RECEIVES;
bool script_readable = true, script_writable = true, script_apart, script_no_rtr;

static bool initiator, any, torn;
static unsigned int private_len;
static uint8_t private_data[512];
static struct script_where peer;

int script_wrong(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return 1;
}

/*
 * Octet i of the pattern is i * 7 + (i >> 8) + (i >> 16) + kind: different from kind to kind, so
 * that one is not taken for the other. Each 256 are some octets of multiples, and are filled and
 * compared together, for under emulation 100 MiB one by one take longer than to send them.
 */
#define ROW 256U
static uint8_t multiples[2 * ROW];

static const uint8_t *row(unsigned int at, uint8_t kind)
{
	uint8_t begin = (uint8_t)((at >> 8) + (at >> 16) + kind);

	if (!multiples[1])
		for (unsigned int i = 0; i < 2 * ROW; i++)
			multiples[i] = (uint8_t)(i * 7);
	return multiples + (uint8_t)(begin * 183); /* 7 * 183 is 1 modulo 256 */
}

static void fill(uint8_t *p, unsigned int len, uint8_t kind)
{
	for (unsigned int at = 0; at < len; at += ROW)
		memcpy(p + at, row(at, kind), MIN(len - at, ROW));
}

static int compare(const uint8_t *p, unsigned int len, uint8_t kind)
{
	for (unsigned int at = 0; at < len; at += ROW) {
		const uint8_t *want = row(at, kind);
		unsigned int n = MIN(len - at, ROW), i = 0;

		if (!memcmp(p + at, want, n))
			continue;
		while (p[at + i] == want[i])
			i++;
		return script_wrong("octet %u of %u is %#x", at + i, len, p[at + i]);
	}
	return 0;
}

/* --- start-up ----------------------------------------------------------------------------- */

/* What is in the peer's memory without being written is the pattern of 'm'. */
static int take_memory(void)
{
	if (script_out)
		return 0;
	script_out_size = MAX(script_memory_size, script_buffer_size);
	script_out = calloc(1, script_out_size);
	script_memory = calloc(1, script_memory_size);
	for (unsigned int i = 0; i < script_receives; i++)
		script_in[i] = calloc(1, script_buffer_size);
	if (!script_out || !script_memory || !script_in[script_receives - 1])
		return script_wrong("no memory");
	fill(script_memory, script_memory_size, 'm');
	return 0;
}

static int step_memory(char **arg)
{
	script_memory_size = (unsigned int)atoi(arg[0]);
	return 0;
}

static int step_buffer(char **arg)
{
	script_buffer_size = (unsigned int)atoi(arg[0]);
	return 0;
}

static int step_receives(char **arg)
{
	script_receives = (unsigned int)atoi(arg[0]);
	if (script_receives > 0 && script_receives <= SCRIPT_RECEIVES)
		return 0;
	return script_wrong("receives");
}

static int step_apart(char **arg)
{
	script_apart = true;
	return 0;
}

static int step_rights(char **arg)
{
	script_readable = strchr(arg[0], 'r');
	script_writable = strchr(arg[0], 'w');
	return 0;
}

static int step_depth(char **arg)
{
	script_ird = (unsigned int)atoi(arg[0]);
	script_ord = (unsigned int)atoi(arg[1]);
	return 0;
}

static int step_no_rtr(char **arg)
{
	script_no_rtr = true;
	return 0;
}

static int step_listen(char **arg)
{
	return take_memory() || script_ops.listen(arg[0], arg[1]);
}

static int step_connect(char **arg)
{
	initiator = true;
	return take_memory() || script_ops.connect(arg[0], arg[1], private_data, private_len);
}

static int step_private(char **arg)
{
	private_len = (unsigned int)atoi(arg[0]);
	fill(private_data, MIN(private_len, sizeof(private_data)), 'p');
	return 0;
}

static int step_private_is(char **arg)
{
	unsigned int len = 0, want = (unsigned int)atoi(arg[0]);
	const void *p = script_ops.private_data(&len);

	if (len != want)
		return script_wrong("the peer's private data has %u octets", len);
	return compare(p, len, 'p');
}

/* The ring and the SGL in it are nowhere: a peer that writes to them ends the connection. */
static int step_stream(char **arg)
{
	struct rs_conn_data cd = { .version = RS_VERSION,
				   .flags = RS_CONN_IOMAP,
				   .credits = htobe16(384),
				   .target_sgl = { htobe64(4096), htobe32(0x100), htobe32(2) },
				   .data_buf = { htobe64(8192), htobe32(0x100), htobe32(65536) } };

	private_len = (unsigned int)atoi(arg[0]);
	memset(private_data, 0, sizeof(private_data));
	memcpy(private_data, &cd, sizeof(cd));
	return private_len >= sizeof(cd) ? 0 : script_wrong("too short");
}

/* Features that are none, and a value of a type that is none */
static int step_stream_block(char **arg)
{
	struct stream_ext_head head = { STREAM_EXT_MAGIC, STREAM_EXT_VERSION, 0, 0 };
	struct stream_ext_tlv features = { STREAM_EXT_FEATURES, 4 }, filler = { 200, 0 };
	uint8_t *p = private_data + RS_CONN_DATA_LEN;
	unsigned int values = sizeof(features) + features.length, room;

	if (step_stream(arg) || private_len < RS_CONN_DATA_LEN + sizeof(head) + values)
		return script_wrong("too short");
	room = MIN(private_len - RS_CONN_DATA_LEN, STREAM_EXT_MAX) - sizeof(head) - values;
	memcpy(p + sizeof(head), &features, sizeof(features));
	if (room >= sizeof(filler)) {
		filler.length = (uint8_t)(room - sizeof(filler));
		memcpy(p + sizeof(head) + values, &filler, sizeof(filler));
		values += room;
	}
	head.length = htobe16((uint16_t)values);
	memcpy(p, &head, sizeof(head));
	return 0;
}

static int step_stream_is(char **arg)
{
	unsigned int len = 0;
	const uint8_t *p = script_ops.private_data(&len);

	if (len != (unsigned int)atoi(arg[0]) || p[0] != RS_VERSION)
		return script_wrong("the peer's private data has %u octets", len);
	if (len > RS_CONN_DATA_LEN && memcmp(p + RS_CONN_DATA_LEN, STREAM_EXT_MAGIC, 4) != 0)
		return script_wrong("the peer's private data has no block");
	return 0;
}

static int step_accept(char **arg)
{
	return script_ops.accept(private_data, private_len);
}

static int step_try_accept(char **arg)
{
	step_accept(arg);
	return 0;
}

static int step_reject(char **arg)
{
	return script_ops.reject(private_data, private_len);
}

static int step_refused(char **arg)
{
	return script_ops.refused();
}

/* --- work --------------------------------------------------------------------------------- */

static int tell(void)
{
	struct script_where here = script_ops.where();

	memcpy(script_out, &here, sizeof(here));
	return script_ops.post(SCRIPT_SEND, sizeof(here), 0, 0, 1);
}

static int hear(void)
{
	unsigned int slot, len;

	if (script_ops.receive(&slot, &len))
		return 1;
	memcpy(&peer, script_in[slot], sizeof(peer));
	return script_ops.receive_again(slot);
}

static int step_swap(char **arg)
{
	return initiator ? tell() || hear() : hear() || tell();
}

static int message(enum script_op op, const char *len)
{
	unsigned int n = (unsigned int)atoi(len);

	fill(script_out, n, 's');
	return script_ops.post(op, n, be32toh(peer.stag), 0, 1);
}

static int step_pieces(char **arg)
{
	script_pieces = (unsigned int)atoi(arg[0]);
	return script_pieces > 0 && script_pieces <= SCRIPT_PIECES ? 0 : script_wrong("pieces");
}

static int step_scatter(char **arg)
{
	script_scatter = (unsigned int)atoi(arg[0]);
	return script_scatter > 0 && script_scatter <= SCRIPT_PIECES ? 0 : script_wrong("scatter");
}

static int step_send(char **arg)
{
	return message(SCRIPT_SEND, arg[0]);
}

static int step_send_se(char **arg)
{
	return message(SCRIPT_SEND_SE, arg[0]);
}

static int step_send_inv(char **arg)
{
	return message(SCRIPT_SEND_INV, arg[0]);
}

static int step_send_se_inv(char **arg)
{
	return message(SCRIPT_SEND_SE_INV, arg[0]);
}

static int step_invalidate(char **arg)
{
	return script_ops.post(SCRIPT_INVALIDATE, 0, be32toh(script_ops.where().stag), 0, 1);
}

static int step_got(char **arg)
{
	unsigned int slot, len;

	if (script_ops.receive(&slot, &len))
		return 1;
	if (len != (unsigned int)atoi(arg[0]))
		return script_wrong("a message of %u octets", len);
	return compare(script_in[slot], len, 's') || script_ops.receive_again(slot);
}

static int step_solicited(char **arg)
{
	return script_ops.solicited(true);
}

static int step_plain(char **arg)
{
	return script_ops.solicited(false);
}

static int step_write(char **arg)
{
	unsigned int n = (unsigned int)atoi(arg[0]);

	fill(script_out, n, 'w');
	return script_ops.post(SCRIPT_WRITE, n, be32toh(peer.stag), be64toh(peer.to), 1);
}

static int reads(unsigned int len, unsigned int times)
{
	memset(script_out, 0, script_out_size);
	return script_ops.post(SCRIPT_READ, len, be32toh(peer.stag), be64toh(peer.to), times) ||
	       compare(script_out, len, 'm');
}

static int step_read(char **arg)
{
	return reads((unsigned int)atoi(arg[0]), 1);
}

static int step_reads(char **arg)
{
	unsigned int n = (unsigned int)atoi(arg[0]);

	return n <= SCRIPT_REQUESTS ? reads(1000, n) : script_wrong("reads");
}

static int step_has(char **arg)
{
	return compare(script_memory, (unsigned int)atoi(arg[0]), 'w');
}

/* --- faults ------------------------------------------------------------------------------- */

/* Whether such a Write succeeds here is no matter; such a Read must not. */
static int astray(enum script_op op, uint32_t stag, uint64_t beyond)
{
	int ret = script_ops.post(op, 8, stag, be64toh(peer.to) + beyond, 1);

	return op == SCRIPT_READ && !ret ? script_wrong("the Read succeeded") : 0;
}

static int step_write_stag(char **arg)
{
	return astray(SCRIPT_WRITE, be32toh(peer.stag) ^ 0x5A5A5A00, 0);
}

static int step_write_end(char **arg)
{
	return astray(SCRIPT_WRITE, be32toh(peer.stag), script_memory_size - 7);
}

static int step_read_stag(char **arg)
{
	return astray(SCRIPT_READ, be32toh(peer.stag) ^ 0x5A5A5A00, 0);
}

static int step_read_end(char **arg)
{
	return astray(SCRIPT_READ, be32toh(peer.stag), script_memory_size - 7);
}

static int step_try_send(char **arg)
{
	message(SCRIPT_SEND, arg[0]);
	return 0;
}

static int step_try_write(char **arg)
{
	step_write(arg);
	return 0;
}

static int step_try_read(char **arg)
{
	step_read(arg);
	return 0;
}

static int step_fails(char **arg)
{
	return script_ops.ended(SCRIPT_FAILED);
}

static int step_over(char **arg)
{
	return script_ops.ended(SCRIPT_ANYHOW);
}

static int step_any(char **arg)
{
	any = true;
	return 0;
}

static int step_torn(char **arg)
{
	torn = true;
	return 0;
}

static int step_sleep(char **arg)
{
	return usleep((unsigned int)atoi(arg[0]) * 1000);
}

static int step_mark(char **arg)
{
	FILE *f = fopen(arg[0], "w");

	return f ? fclose(f) : script_wrong("%s cannot be made", arg[0]);
}

static int step_kill(char **arg)
{
	return kill(getpid(), SIGKILL);
}

static int step_leave(char **arg)
{
	_exit(0);
}

static int step_terminate(char **arg)
{
	return script_ops.terminated((uint32_t)strtoul(arg[0], NULL, 0));
}

static int step_close(char **arg)
{
	return script_ops.close();
}

static int step_closed(char **arg)
{
	return script_ops.ended(SCRIPT_IN_ORDER);
}

static const struct step {
	const char *name;
	int args;
	int (*run)(char **arg);
} steps[] = {
	{ "listen", 2, step_listen },
	{ "connect", 2, step_connect },
	{ "memory", 1, step_memory },
	{ "buffer", 1, step_buffer },
	{ "receives", 1, step_receives },
	{ "apart", 0, step_apart },
	{ "depth", 2, step_depth },
	{ "no-rtr", 0, step_no_rtr },
	{ "private", 1, step_private },
	{ "private-is", 1, step_private_is },
	{ "stream", 1, step_stream },
	{ "stream-block", 1, step_stream_block },
	{ "stream-is", 1, step_stream_is },
	{ "accept", 0, step_accept },
	{ "try-accept", 0, step_try_accept },
	{ "reject", 0, step_reject },
	{ "refused", 0, step_refused },
	{ "swap", 0, step_swap },
	{ "send", 1, step_send },
	{ "pieces", 1, step_pieces },
	{ "send-se", 1, step_send_se },
	{ "send-inv", 1, step_send_inv },
	{ "send-se-inv", 1, step_send_se_inv },
	{ "invalidate", 0, step_invalidate },
	{ "scatter", 1, step_scatter },
	{ "got", 1, step_got },
	{ "solicited", 0, step_solicited },
	{ "plain", 0, step_plain },
	{ "write", 1, step_write },
	{ "read", 1, step_read },
	{ "reads", 1, step_reads },
	{ "has", 1, step_has },
	{ "write-stag", 0, step_write_stag },
	{ "write-end", 0, step_write_end },
	{ "read-stag", 0, step_read_stag },
	{ "read-end", 0, step_read_end },
	{ "rights", 1, step_rights },
	{ "try-send", 1, step_try_send },
	{ "try-write", 1, step_try_write },
	{ "try-read", 1, step_try_read },
	{ "fails", 0, step_fails },
	{ "over", 0, step_over },
	{ "any", 0, step_any },
	{ "torn", 0, step_torn },
	{ "sleep", 1, step_sleep },
	{ "mark", 1, step_mark },
	{ "kill", 0, step_kill },
	{ "leave", 0, step_leave },
	{ "terminate", 1, step_terminate },
	{ "close", 0, step_close },
	{ "closed", 0, step_closed },
};

static const struct step *find(const char *name)
{
	for (unsigned int i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (!strcmp(steps[i].name, name))
			return &steps[i];
	return NULL;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc;) {
		const struct step *s = find(argv[i]);

		if (!s || i + s->args >= argc)
			return script_wrong("no such step: %s", argv[i]);
		if (s->run(argv + i + 1)) {
			script_wrong("step %d, %s, failed", i, s->name);
			return torn ? script_ops.ended(SCRIPT_FAILED) : !any;
		}
		i += 1 + s->args;
	}
	return 0;
}
