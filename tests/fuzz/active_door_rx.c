/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames at the door in the kernel, by BPF_PROG_TEST_RUN. A second reading of docs/active-wire.md
 * tells which frames are requests, and what is answered; all others leave as they came. Nothing of
 * a run stays in its block.
 *
 * The first octet of the input chooses: what follows is a frame, or changes to a request that is
 * good, as positions and octets.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "active/kernel_arena.h"
#include "active/kernel_code.h"
#include "active/kernel_helper.h"
#include "base/bits.h"
#include "tests/bpf/assemble.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	FRAME_MIN = 14, /* that the kernel takes for a test */
	FRAME_MAX = 2048,
	IP = 14,
	UDP = 34,
	ASK = 42,
	DATA = ASK + sizeof(struct active_wire_ask),
	PASS = 2,
	TX = 3,
	PORT = 7300,
	ADDR = 0x0a4d0002,
	FUEL = 1000,
	SKIPPED = 3, /* tests/fuzz/run.sh */
};

static const uint8_t key[ACTIVE_WIRE_KEY] = "a key of sixteen";
static struct active_arenas arenas;
static struct active_arena *arena;
static int door;

static void demand(bool good)
{
	if (!good)
		abort();
}

/* --- the door, and one program: its arguments are its output -------------------------------- */

static int program_load(struct bpfgen_code *c)
{
	char text[400] = "";
	size_t count;
	const struct ebpf_insn *insns = bpfgen_code_insns(c, &count);
	int fd = bpfkernel_program_load("fuzz", insns, count, text, sizeof(text));

	bpfgen_code_destroy(c);
	if (fd < 0)
		fprintf(stderr, "%s\n", text);
	demand(fd >= 0);
	return fd;
}

static struct ebpf_object *object_make(void)
{
	static const struct ebpf_insn echo[] = { CALL(WARP_ACTIVE_HELPER_OUTPUT), EXIT };
	static const struct ebpf_helper list[] = { { "output", WARP_ACTIVE_HELPER_OUTPUT, 2,
						     ebpf_helper_output } };
	static const struct ebpf_helpers helpers = { list, 1 };
	struct ebpf_object *object;
	struct ebpf_error err;

	demand(!ebpf_object_assemble(echo, base_array_size(echo), &helpers, 0, &object, &err));
	return object;
}

static int program_make(struct bpfkernel_library *library, const struct ebpf_object *object)
{
	const struct bpfkernel_window windows[] = {
		{ ACTIVE_ARGS_ADDR, ACTIVE_WIRE_DATA_MAX,
		  offsetof(struct active_kernel_block, args), EBPF_MAY_READ | EBPF_MAY_WRITE,
		  BPFKERNEL_IN_BLOCK, offsetof(struct bpfkernel_block, args_len) },
		{ BPFKERNEL_BLOCK_ADDR, offsetof(struct active_kernel_block, args), 0,
		  EBPF_MAY_READ | EBPF_MAY_WRITE, BPFKERNEL_IN_BLOCK | BPFKERNEL_HELPERS, 0 },
	};
	struct active_kernel_program p = {
		.params = { .object = object,
			    .arena = (uintptr_t)arena->memory.memory,
			    .windows = windows,
			    .window_count = base_array_size(windows) },
		.arena = arena->memory.fd,
		.blocks = (uintptr_t)active_arena_blocks(arena),
		.block_count = arenas.processors,
		.args_addr = ACTIVE_ARGS_ADDR,
		.fuel = FUEL,
	};
	struct bpfgen_code *c;
	struct ebpf_error err;

	p.params.helpers = bpfkernel_library_helpers(library, &p.params.helper_count);
	demand(!bpfgen_code_create(&c) && !active_kernel_program_write(c, &p, &err));
	return program_load(c);
}

static int door_make(int program)
{
	struct active_kernel_door d = { .addr = htonl(ADDR), .port = htons(PORT) };
	struct bpfgen_code *c;
	const uint32_t first = 0;

	d.keys = bpfkernel_keys_create(ACTIVE_WIRE_KEY, 1);
	d.programs = bpfkernel_programs_create(1);
	demand(d.keys >= 0 && d.programs >= 0);
	demand(!bpfkernel_map_set(d.programs, &first, (uint32_t)program) &&
	       !bpfkernel_map_set(d.keys, key, first));
	demand(!bpfgen_code_create(&c) && !active_kernel_door_write(c, &d));
	return program_load(c);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct bpfkernel_library *library;
	struct ebpf_object *object;
	int ret;

	active_arenas_init(&arenas, 4096, 1);
	ret = active_arena_get(&arenas, NULL, 0, &arena);
	if (ret == -EPERM || ret == -EOPNOTSUPP) {
		fprintf(stderr, "no BPF arena: %s\n", strerror(-ret));
		_exit(SKIPPED);
	}
	demand(!ret);
	demand(!bpfkernel_library_create(&library));
	demand(!bpfkernel_library_add(library, WARP_ACTIVE_HELPER_OUTPUT, BPFKERNEL_OUTPUT, NULL,
				      0));
	object = object_make();
	door = door_make(program_make(library, object));
	ebpf_object_destroy(object);
	bpfkernel_library_destroy(library);
	return 0;
}

/* --- the second reading ----------------------------------------------------------------------- */

static uint32_t ones_sum(const uint8_t *at, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? at[i] : (uint32_t)at[i] << 8;
	return sum;
}

static bool checksum_good(const uint8_t *frame, size_t len)
{
	uint32_t sum = ones_sum(frame + UDP, len - UDP) + ones_sum(frame + IP + 12, 8) +
		       IPPROTO_UDP + (uint32_t)(len - UDP);

	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff && base_get_be16(frame + UDP + 6);
}

static bool is_ip_udp(const uint8_t *f, size_t len)
{
	return len >= DATA && base_get_be16(f + 12) == 0x0800 && f[IP] == 0x45 &&
	       !(base_get_be16(f + IP + 6) & 0x3fff) && f[IP + 9] == IPPROTO_UDP &&
	       base_get_be32(f + IP + 16) == ADDR && base_get_be16(f + UDP + 2) == PORT &&
	       base_get_be16(f + IP + 2) == len - IP && base_get_be16(f + UDP + 4) == len - UDP;
}

static bool is_request(const uint8_t *f, size_t len)
{
	const struct active_wire_ask *ask = (const void *)(f + ASK);
	size_t data = len - DATA;

	return is_ip_udp(f, len) && data <= ACTIVE_WIRE_DATA_MAX && data % 8 == 0 &&
	       ask->magic == ACTIVE_WIRE_MAGIC && ask->version == ACTIVE_WIRE_VERSION &&
	       ask->type == ACTIVE_ASK && !ask->zero && !memcmp(ask->key, key, sizeof(key)) &&
	       base_get_be32(&ask->args) <= data && base_get_be32(&ask->output) <= data;
}

static void heads_check(const uint8_t *in, const uint8_t *out)
{
	demand(!memcmp(out, in + 6, 6) && !memcmp(out + 6, in, 6) &&
	       !memcmp(out + 12, in + 12, 14));
	demand(!memcmp(out + IP + 12, in + IP + 16, 4) && !memcmp(out + IP + 16, in + IP + 12, 4));
	demand(!memcmp(out + UDP, in + UDP + 2, 2) && !memcmp(out + UDP + 2, in + UDP, 2));
	demand(!memcmp(out + UDP + 4, in + UDP + 4, 2));
}

static void answer_check(const uint8_t *in, const uint8_t *out, size_t len)
{
	const struct active_wire_ask *ask = (const void *)(in + ASK);
	const struct active_wire_told *told = (const void *)(out + ASK);
	size_t args = base_get_be32(&ask->args), room = base_get_be32(&ask->output), got;
	uint64_t fuel = base_get_be64(&ask->fuel);

	heads_check(in, out);
	demand(checksum_good(out, len));
	demand(told->magic == ACTIVE_WIRE_MAGIC && told->version == ACTIVE_WIRE_VERSION &&
	       told->type == ACTIVE_TOLD && !told->zero && !told->zeros && told->id == ask->id);
	got = base_get_be32(&told->output);
	if (base_get_be32(&told->code) == ACTIVE_OK) {
		demand(base_get_be64(&told->value) == (args <= room ? args : (uint64_t)-E2BIG));
		demand(got == (args <= room ? args : 0) && !told->pc && !told->addr);
		demand(!memcmp(out + DATA, in + DATA, got));
		for (size_t i = DATA + got; i < len; i++)
			demand(!out[i]);
	} else {
		demand(base_get_be32(&told->code) == ACTIVE_FUEL && fuel && fuel < FUEL && !got);
		demand(base_get_be64(&told->fuel) > fuel);
	}
}

static void block_check(void)
{
	static const uint8_t zeros[sizeof(struct active_kernel_block)];

	for (unsigned int i = 0; i < arenas.processors; i++) {
		struct active_kernel_block *block = active_arena_blocks(arena) + i;

		memset(block->block.own, 0, sizeof(block->block.own)); /* what is counted */
		demand(!memcmp(block, zeros, sizeof(zeros)));
	}
}

static void frame_try(const uint8_t *in, size_t len)
{
	static uint8_t out[FRAME_MAX];
	struct bpfkernel_test test = {
		.in = in, .in_len = len, .out = out, .out_len = sizeof(out), .repeat = 1
	};

	demand(!bpfkernel_program_test(door, &test));
	demand(test.out_len == len);
	if (is_request(in, len)) {
		demand(test.verdict == TX);
		answer_check(in, out, len);
	} else {
		demand(test.verdict == PASS && !memcmp(in, out, len));
	}
	block_check();
}

/* --- inputs --------------------------------------------------------------------------------- */

/* With so many words of data; the first half of them are arguments */
static size_t request_make(uint8_t *f, size_t words)
{
	struct active_wire_ask *ask = (void *)(f + ASK);
	size_t data = words % (ACTIVE_WIRE_DATA_MAX / 8 + 2) * 8, len = DATA + data;

	memset(f, 0, len);
	for (size_t i = 0; i < data; i++)
		f[DATA + i] = (uint8_t)(i * 13 + 1);
	memcpy(f, "\2\0\0\0\0\1\2\0\0\0\0\2\x08", 13);
	f[IP] = 0x45;
	base_put_be16(f + IP + 2, (uint16_t)(len - IP));
	f[IP + 9] = IPPROTO_UDP;
	base_put_be32(f + IP + 12, ADDR - 1);
	base_put_be32(f + IP + 16, ADDR);
	base_put_be16(f + UDP, 40000);
	base_put_be16(f + UDP + 2, PORT);
	base_put_be16(f + UDP + 4, (uint16_t)(len - UDP));
	ask->magic = ACTIVE_WIRE_MAGIC;
	ask->version = ACTIVE_WIRE_VERSION;
	ask->type = ACTIVE_ASK;
	memcpy(ask->key, key, sizeof(key));
	base_put_be32(&ask->args, (uint32_t)(data / 2));
	base_put_be32(&ask->output, (uint32_t)(data / 2));
	return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t frame[FRAME_MAX];
	size_t len;

	if (size < 2)
		return 0;
	if (data[0] & 1) {
		len = base_min(size - 1, sizeof(frame));
		memcpy(frame, data + 1, len);
		if (len >= FRAME_MIN)
			frame_try(frame, len);
		return 0;
	}
	len = request_make(frame, data[1]);
	for (size_t i = 2; i + 2 < size; i += 3)
		frame[((size_t)data[i] << 8 | data[i + 1]) % len] = data[i + 2];
	frame_try(frame, len);
	return 0;
}
