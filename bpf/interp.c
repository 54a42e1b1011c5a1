/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interpreter: one instruction after another, each memory access looked up among the regions.
 *
 * It relies on the verifier for structure only (opcodes, registers, jumps), not for what values
 * are. It is the judge of everything that is exceptional: machine code that meets a limit, the
 * last of the fuel or an error hands over to it, so that both engines give the same result to the
 * last detail.
 */
#include <stddef.h>
#include <string.h>

#include "bpf/program.h"
#include "bpf/state.h"

enum { GOES_ON = EBPF_STOPPED + 1 };

static int fail(struct ebpf_run *run, enum ebpf_status status)
{
	run->over = true;
	run->result.status = status;
	return (int)status;
}

static int fail_memory(struct ebpf_run *run, enum ebpf_status status, uint64_t addr, uint64_t len,
		       unsigned int rights)
{
	run->result.addr = addr;
	run->result.len = len;
	run->result.rights = rights;
	return fail(run, status);
}

static uint64_t loaded(const struct ebpf_insn *in, const void *at)
{
	bool extended = ebpf_mode(in) == EBPF_MEMSX;
	uint64_t v = 0;

	switch (ebpf_bytes(in)) {
	case 1:
		memcpy(&v, at, 1);
		return extended ? (uint64_t)(int8_t)v : v;
	case 2:
		memcpy(&v, at, 2);
		return extended ? (uint64_t)(int16_t)v : v;
	case 4:
		memcpy(&v, at, 4);
		return extended ? (uint64_t)(int32_t)v : v;
	}
	memcpy(&v, at, 8);
	return v;
}

static void store(void *at, unsigned int bytes, uint64_t v)
{
	switch (bytes) {
	case 1:
		memcpy(at, &v, 1);
		break;
	case 2:
		memcpy(at, &v, 2);
		break;
	case 4:
		memcpy(at, &v, 4);
		break;
	default:
		memcpy(at, &v, 8);
	}
}

static unsigned int rights_of(const struct ebpf_insn *in)
{
	if (ebpf_class(in) == EBPF_LDX)
		return EBPF_MAY_READ;
	return ebpf_is_atomic(in) ? EBPF_MAY_ATOMIC : EBPF_MAY_WRITE;
}

static int memory_step(struct ebpf_run *run, const struct ebpf_insn *in)
{
	uint64_t addr = run->reg[ebpf_base(in)] + (uint64_t)in->off;
	unsigned int bytes = ebpf_bytes(in);
	void *at = NULL;
	enum ebpf_status status = ebpf_memory_find(run, addr, bytes, rights_of(in), &at);

	if (status == EBPF_DONE && ebpf_is_atomic(in) && addr % bytes)
		status = EBPF_ALIGN;
	if (status != EBPF_DONE)
		return fail_memory(run, status, addr, bytes, rights_of(in));
	if (ebpf_class(in) == EBPF_LDX)
		run->reg[ebpf_dst(in)] = loaded(in, at);
	else if (ebpf_is_atomic(in))
		ebpf_atomic(in, at, run->reg);
	else
		store(at, bytes,
		      ebpf_class(in) == EBPF_ST ? (uint64_t)in->imm : run->reg[ebpf_src(in)]);
	run->pc++;
	return GOES_ON;
}

int ebpf_helper_call(struct ebpf_run *run, uint32_t index)
{
	uint64_t result = 0;
	int ret = run->obj->helpers->list[index].call(run, &run->reg[1], &result);

	if (ret < 0) {
		run->result.error = ret;
		return fail(run, EBPF_HELPER);
	}
	run->reg[0] = result;
	return 0;
}

static int call_step(struct ebpf_run *run, const struct ebpf_insn *in)
{
	struct ebpf_frame *frame = run->frame;

	if (!ebpf_is_local_call(in)) {
		if (ebpf_helper_call(run, (uint32_t)ebpf_helper_find(run->obj, in->imm)))
			return (int)run->result.status;
		run->pc++;
		return GOES_ON;
	}
	if (frame == run->frame_end)
		return fail(run, EBPF_DEPTH);
	memcpy(frame->saved, &run->reg[6], sizeof(frame->saved));
	frame->back = run->pc + 1;
	run->frame++;
	run->reg[EBPF_FP] += EBPF_FRAME_SIZE;
	run->pc += 1 + (uint32_t)in->imm;
	return GOES_ON;
}

static int exit_step(struct ebpf_run *run)
{
	if (run->frame == run->frames) {
		run->result.value = run->reg[0];
		return fail(run, EBPF_DONE);
	}
	run->frame--;
	memcpy(&run->reg[6], run->frame->saved, sizeof(run->frame->saved));
	run->reg[EBPF_FP] -= EBPF_FRAME_SIZE;
	run->pc = (uint32_t)run->frame->back;
	return GOES_ON;
}

static int jump_step(struct ebpf_run *run, const struct ebpf_insn *in, uint64_t src)
{
	if (in->code == EBPF_CALL_CODE)
		return call_step(run, in);
	if (in->code == EBPF_EXIT_CODE)
		return exit_step(run);
	if (ebpf_is_goto(in) || ebpf_taken(in, run->reg[ebpf_dst(in)], src))
		run->pc += (uint32_t)ebpf_distance(in);
	run->pc++;
	return GOES_ON;
}

static int insn_step(struct ebpf_run *run)
{
	const struct ebpf_insn *in = &run->obj->insns[run->pc];
	uint64_t src = in->code & EBPF_X ? run->reg[ebpf_src(in)] : (uint64_t)in->imm;

	if (ebpf_is_alu(in)) {
		run->reg[ebpf_dst(in)] = ebpf_alu(in, run->reg[ebpf_dst(in)], src);
		run->pc++;
		return GOES_ON;
	}
	if (ebpf_is_jump(in))
		return jump_step(run, in, src);
	if (ebpf_is_memory(in))
		return memory_step(run, in);
	run->reg[ebpf_dst(in)] = (uint32_t)in[0].imm | (uint64_t)(uint32_t)in[1].imm << 32;
	run->pc += 2;
	return GOES_ON;
}

int ebpf_interpret(struct ebpf_run *run, const uint32_t *stops)
{
	int ret;

	do {
		if (!run->fuel)
			return EBPF_FUEL;
		run->fuel--;
		ret = insn_step(run);
	} while (ret == GOES_ON && !(stops && stops[run->pc]));
	return ret == GOES_ON ? EBPF_STOPPED : ret;
}
