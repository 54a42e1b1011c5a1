/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The code around a body: it names the arena, and gives the one block.
 */
#include "kernel_engine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PLACE_CONSTANTS = 0x80000, MAP_FD = 1, PASS = 2 };

int kernel_engine_open(struct kernel_engine *k)
{
	int ret;

	memset(k, 0, sizeof(*k));
	ret = bpfkernel_arena_create(KERNEL_ARENA, &k->arena);
	if (ret)
		return ret;
	ret = bpfkernel_arena_fill(&k->arena, 0, KERNEL_ARENA);
	if (!ret)
		ret = bpfkernel_library_create(&k->library);
	if (!ret)
		ret = bpfkernel_library_add(k->library, 1, BPFKERNEL_OUTPUT, NULL, 0);
	if (ret) {
		kernel_engine_close(k);
		return ret;
	}
	k->block = (void *)(k->arena.memory + KERNEL_PLACE_BLOCK);
	k->windows[k->window_count++] = (struct bpfkernel_window){
		BPFKERNEL_BLOCK_ADDR,		sizeof(struct bpfkernel_block) + KERNEL_OUTPUT, 0,
		EBPF_MAY_READ | EBPF_MAY_WRITE, BPFKERNEL_IN_BLOCK | BPFKERNEL_HELPERS,		0
	};
	return 0;
}

void kernel_engine_close(struct kernel_engine *k)
{
	bpfkernel_library_destroy(k->library);
	bpfkernel_arena_destroy(&k->arena);
}

void kernel_engine_window(struct kernel_engine *k, uint64_t addr, uint32_t place, uint32_t size,
			  unsigned int rights)
{
	k->windows[k->window_count++] =
		(struct bpfkernel_window){ addr, size, place, rights, 0, 0 };
}

static int code_make(struct kernel_engine *k, const struct bpfkernel_params *params,
		     struct bpfgen_code *c)
{
	struct bpfgen_error wrong = { 0 };
	struct ebpf_error err;
	int ret;

	bpfgen_function(c, bpfgen_label(c), "main");
	bpfgen_insn(c, (struct ebpf_insn){ EBPF_LDDW, MAP_FD << 4, 0, k->arena.fd });
	bpfgen_insn(c, (struct ebpf_insn){ 0 });
	bpfgen_constant(c, 1, (uintptr_t)k->block);
	ret = bpfkernel_emit(c, params, &err);
	if (ret) {
		snprintf(k->text, sizeof(k->text), "%s", err.text);
		return ret;
	}
	bpfgen_alu_imm(c, EBPF_MOV, 0, PASS);
	bpfgen_exit(c);
	ret = bpfgen_code_finish(c, &wrong);
	if (ret)
		snprintf(k->text, sizeof(k->text), "%s", wrong.text);
	return ret;
}

static size_t helpers_gather(struct kernel_engine *k, struct bpfkernel_helper *out)
{
	size_t count;
	const struct bpfkernel_helper *list = bpfkernel_library_helpers(k->library, &count);

	memcpy(out, list, count * sizeof(*out));
	memcpy(out + count, k->extra, k->extra_count * sizeof(*out));
	return count + k->extra_count;
}

int kernel_engine_load(struct kernel_engine *k, const struct ebpf_object *object, uint32_t entry)
{
	struct bpfkernel_helper helpers[BPFKERNEL_HELPERS_MAX];
	struct bpfkernel_params params = { .object = object,
					   .entry = entry,
					   .arena = (uintptr_t)k->arena.memory,
					   .windows = k->windows,
					   .window_count = k->window_count,
					   .constants = PLACE_CONSTANTS };
	size_t constants_size, size, count;
	const struct ebpf_insn *insns;
	struct bpfgen_code *c;
	int ret;

	bpfkernel_data_copy(object, NULL, &constants_size, &size);
	if (size > KERNEL_ARENA - PLACE_CONSTANTS)
		return -E2BIG;
	bpfkernel_data_copy(object, k->arena.memory + PLACE_CONSTANTS, &constants_size, &size);
	params.data = PLACE_CONSTANTS + (uint32_t)constants_size;
	params.helpers = helpers;
	params.helper_count = helpers_gather(k, helpers);
	ret = bpfgen_code_create(&c);
	if (ret)
		return ret;
	ret = code_make(k, &params, c);
	if (!ret) {
		insns = bpfgen_code_insns(c, &count);
		ret = bpfkernel_program_load("test", insns, count, k->text, sizeof(k->text));
	}
	bpfgen_code_destroy(c);
	return ret;
}

int kernel_engine_run(struct kernel_engine *k, int fd, const uint64_t arg[5], uint64_t fuel,
		      unsigned int repeat, uint32_t *ns)
{
	static const uint8_t packet[64];
	struct bpfkernel_test test = { .in = packet, .in_len = sizeof(packet), .repeat = repeat };
	int ret;

	memset(k->block, 0, offsetof(struct bpfkernel_block, stack));
	memset((uint8_t *)k->block + sizeof(*k->block), 0, KERNEL_OUTPUT);
	memcpy(k->block->arg, arg, sizeof(k->block->arg));
	memcpy(k->block->own, k->own, sizeof(k->own));
	k->block->fuel = fuel;
	k->block->output_room = KERNEL_OUTPUT;
	ret = bpfkernel_program_test(fd, &test);
	if (ns)
		*ns = test.ns;
	return ret ? ret : test.verdict == PASS ? 0 : -EPROTO;
}

struct ebpf_result kernel_engine_result(const struct kernel_engine *k)
{
	const struct bpfkernel_block *b = k->block;

	return (struct ebpf_result){ .status = (enum ebpf_status)b->status,
				     .pc = b->pc,
				     .value = b->value,
				     .addr = b->addr,
				     .len = b->len,
				     .rights = b->rights,
				     .fuel = b->fuel,
				     .output = b->output };
}
