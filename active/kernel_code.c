/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The door in the kernel, as code for XDP: one program that looks at each packet, and one for each
 * program of a client, to which it goes on by the key.
 *
 * A packet is a request only if everything in it is as the door wants it: IPv4 without options and
 * fragments, to the one address and port, with nothing behind the datagram. Any other goes on to
 * the network. The answer is written over the request, so it is never longer, and goes back by
 * XDP_TX.
 *
 * The checksum is added up while the answer is written. In one's complement it does not matter in
 * which order of bytes that is done.
 */
#include "active/kernel_code.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>

enum {
	FROM_MAP = 1, /* kinds of a 64-bit constant */
	FROM_VALUE = 2,
	ELEMENT = 1, /* numbers of Linux's helpers */
	TAIL_CALL = 12,
	PROCESSOR = 8,
	COARSE_CLOCK = 160,
	DROP = 1,
	PASS = 2,
	TX = 3,
	HOST_DATA = 0, /* in struct xdp_md */
	HOST_DATA_END = 4,
};

/* Offsets in the packet */
enum {
	ETHER_DEST = 0,
	ETHER_SOURCE = 6,
	ETHER_TYPE = 12,
	IP_VERSION = 14,
	IP_LENGTH = 16,
	IP_FRAGMENT = 20,
	IP_PROTOCOL = 23,
	IP_SOURCE = 26,
	IP_DEST = 30,
	UDP_SOURCE = 34,
	UDP_DEST = 36,
	UDP_LENGTH = 38,
	UDP_CHECKSUM = 40,
	ASK = 42,
	DATA = ASK + sizeof(struct active_wire_ask),
};

_Static_assert(sizeof(struct active_wire_ask) == sizeof(struct active_wire_told), "same length");

#define ask_at(member) ((int16_t)(ASK + offsetof(struct active_wire_ask, member)))
#define told_at(member) ((int16_t)(ASK + offsetof(struct active_wire_told, member)))
#define block_at(member) ((int16_t)offsetof(struct bpfkernel_block, member))

#define FUEL_GIVEN block_at(own[ACTIVE_KERNEL_GIVEN])
#define account_at(member) ((int16_t)offsetof(struct active_kernel_account, member))

_Static_assert((int)EBPF_DONE == (int)ACTIVE_OK && (int)EBPF_DEPTH == (int)ACTIVE_DEPTH, "codes");

enum { WINDOWS_MOST = 1 << 20 }; /* that pay at once; and no product of them is too large */
enum { CONTEXT_SLOT = -8, BLOCK_SLOT = -16, KEY_SLOT = -16 };

static void map_constant(struct bpfgen_code *c, unsigned int dst, int fd)
{
	bpfgen_insn(c, (struct ebpf_insn){ EBPF_LDDW, (uint8_t)(FROM_MAP << 4 | dst), 0, fd });
	bpfgen_insn(c, (struct ebpf_insn){ 0 });
}

/* From or to the order of the network; @bits of the register */
static void swap(struct bpfgen_code *c, unsigned int reg, int bits)
{
	bpfgen_insn(c, (struct ebpf_insn){ EBPF_ALU | EBPF_END | EBPF_X, (uint8_t)reg, 0, bits });
}

static void narrow(struct bpfgen_code *c, unsigned int reg)
{
	bpfgen_insn(c, (struct ebpf_insn){ EBPF_ALU | EBPF_MOV | EBPF_X, (uint8_t)(reg << 4 | reg),
					   0, 0 });
}

/* Ends with @verdict unless there are @len bytes at r2; r3 is the end, r4 is changed */
static void packet_need(struct bpfgen_code *c, int32_t len, unsigned int other)
{
	bpfgen_alu(c, EBPF_MOV, 4, 2);
	bpfgen_alu_imm(c, EBPF_ADD, 4, len);
	bpfgen_if(c, EBPF_JGT, 4, 3, other);
}

/* r2 and r3 from the context in r6 */
static void packet_take(struct bpfgen_code *c, unsigned int other)
{
	bpfgen_load(c, EBPF_W, 2, 6, HOST_DATA);
	bpfgen_load(c, EBPF_W, 3, 6, HOST_DATA_END);
	packet_need(c, DATA, other);
}

static void verdict(struct bpfgen_code *c, int32_t what)
{
	bpfgen_alu_imm(c, EBPF_MOV, 0, what);
	bpfgen_exit(c);
}

/* --- the door ------------------------------------------------------------------------------- */

static void want(struct bpfgen_code *c, enum ebpf_size size, int16_t at, uint32_t value,
		 unsigned int pass)
{
	bpfgen_load(c, size, 4, 2, at);
	bpfgen_constant(c, 5, value);
	bpfgen_if(c, EBPF_JNE, 4, 5, pass);
}

/* All lengths agree, and the data is whole words */
static void lengths_check(struct bpfgen_code *c, unsigned int pass)
{
	enum { BEFORE = 28 /* IPv4's and UDP's heads */ };

	bpfgen_load(c, EBPF_H, 4, 2, IP_LENGTH);
	swap(c, 4, 16);
	bpfgen_load(c, EBPF_H, 5, 2, UDP_LENGTH);
	swap(c, 5, 16);
	bpfgen_alu_imm(c, EBPF_ADD, 5, 20);
	bpfgen_if(c, EBPF_JNE, 4, 5, pass);
	bpfgen_alu_imm(c, EBPF_ADD, 4, ASK - BEFORE);
	bpfgen_alu(c, EBPF_MOV, 5, 3);
	bpfgen_alu(c, EBPF_SUB, 5, 2);
	bpfgen_if(c, EBPF_JNE, 4, 5, pass);
	bpfgen_alu_imm(c, EBPF_SUB, 5, DATA);
	bpfgen_if_imm(c, EBPF_JGT, 5, ACTIVE_WIRE_DATA_MAX, pass);
	bpfgen_if_imm(c, EBPF_JSET, 5, 7, pass);
}

static uint32_t head_word(enum active_type type)
{
	const union {
		uint8_t octets[4];
		uint32_t word;
	} head = { { ACTIVE_WIRE_MAGIC, ACTIVE_WIRE_VERSION, (uint8_t)type, 0 } };

	return head.word;
}

static void key_look_up(struct bpfgen_code *c, const struct active_kernel_door *door,
			unsigned int pass)
{
	bpfgen_load(c, EBPF_DW, 4, 2, ask_at(key));
	bpfgen_store(c, EBPF_DW, EBPF_FP, KEY_SLOT, 4);
	bpfgen_load(c, EBPF_DW, 4, 2, ask_at(key) + 8);
	bpfgen_store(c, EBPF_DW, EBPF_FP, KEY_SLOT + 8, 4);
	map_constant(c, 1, door->keys);
	bpfgen_alu(c, EBPF_MOV, 2, EBPF_FP);
	bpfgen_alu_imm(c, EBPF_ADD, 2, KEY_SLOT);
	bpfgen_call_helper(c, ELEMENT);
	bpfgen_if_imm(c, EBPF_JEQ, 0, 0, pass);
	bpfgen_load(c, EBPF_W, 3, 0, 0);
	bpfgen_alu(c, EBPF_MOV, 1, 6);
	map_constant(c, 2, door->programs);
	bpfgen_call_helper(c, TAIL_CALL);
}

int active_kernel_door_write(struct bpfgen_code *c, const struct active_kernel_door *door)
{
	unsigned int pass = bpfgen_label(c);
	struct bpfgen_error err;

	bpfgen_function(c, bpfgen_label(c), "door");
	bpfgen_alu(c, EBPF_MOV, 6, 1);
	packet_take(c, pass);
	want(c, EBPF_H, ETHER_TYPE, htons(0x0800), pass);
	want(c, EBPF_B, IP_VERSION, 0x45, pass);
	bpfgen_load(c, EBPF_H, 4, 2, IP_FRAGMENT);
	bpfgen_if_imm(c, EBPF_JSET, 4, htons(0x3fff), pass);
	want(c, EBPF_B, IP_PROTOCOL, IPPROTO_UDP, pass);
	want(c, EBPF_W, IP_DEST, door->addr, pass);
	want(c, EBPF_H, UDP_DEST, door->port, pass);
	want(c, EBPF_W, ASK, head_word(ACTIVE_ASK), pass);
	lengths_check(c, pass);
	key_look_up(c, door, pass);
	bpfgen_here(c, pass);
	verdict(c, PASS);
	return bpfgen_code_finish(c, &err);
}

/* --- a program: before it ------------------------------------------------------------------- */

/* r9 = the block of this processor, as the kernel's pointer; its number goes to the slot */
static void block_take(struct bpfgen_code *c, const struct active_kernel_program *p,
		       unsigned int pass)
{
	bpfgen_call_helper(c, PROCESSOR);
	bpfgen_if_imm(c, EBPF_JGE, 0, (int32_t)p->block_count, pass);
	bpfgen_alu_imm(c, EBPF_MUL, 0, sizeof(struct active_kernel_block));
	bpfgen_constant(c, 9, p->blocks);
	bpfgen_alu(c, EBPF_ADD, 9, 0);
	bpfgen_store(c, EBPF_DW, EBPF_FP, BLOCK_SLOT, 9);
	bpfkernel_cast(c, 9, 9);
}

/* r5 = the length of the arguments. Where the data has no room for it, it is no request */
static void lengths_take(struct bpfgen_code *c, unsigned int pass)
{
	bpfgen_load(c, EBPF_W, 5, 2, ask_at(args));
	swap(c, 5, 32);
	bpfgen_alu(c, EBPF_MOV, 4, 3);
	bpfgen_alu(c, EBPF_SUB, 4, 2);
	bpfgen_alu_imm(c, EBPF_SUB, 4, DATA);
	bpfgen_if(c, EBPF_JGT, 5, 4, pass);
	bpfgen_if_imm(c, EBPF_JGT, 4, ACTIVE_WIRE_DATA_MAX, pass);
	bpfgen_load(c, EBPF_W, 0, 2, ask_at(output));
	swap(c, 0, 32);
	bpfgen_if(c, EBPF_JGT, 0, 4, pass);
	bpfgen_store(c, EBPF_DW, 9, block_at(output_room), 0);
	bpfgen_store(c, EBPF_DW, 9, block_at(args_len), 5);
}

static void args_give(struct bpfgen_code *c, const struct active_kernel_program *p)
{
	bpfgen_constant(c, 4, p->args_addr);
	bpfgen_store(c, EBPF_DW, 9, block_at(arg), 4);
	bpfgen_store(c, EBPF_DW, 9, block_at(arg) + 8, 5);
}

static void fuel_take(struct bpfgen_code *c, uint64_t most)
{
	unsigned int less = bpfgen_label(c);

	bpfgen_load(c, EBPF_DW, 4, 2, ask_at(fuel));
	swap(c, 4, 64);
	bpfgen_constant(c, 0, most);
	bpfgen_alu(c, EBPF_MOV, 1, 4);
	bpfgen_alu_imm(c, EBPF_SUB, 1, 1); /* 0 is more than any other number then */
	bpfgen_if(c, EBPF_JLT, 1, 0, less);
	bpfgen_alu(c, EBPF_MOV, 4, 0);
	bpfgen_here(c, less);
	bpfgen_store(c, EBPF_DW, 9, block_at(fuel), 4);
	bpfgen_store(c, EBPF_DW, 9, FUEL_GIVEN, 4);
}

/* r1 = the client's account */
static void account_take(struct bpfgen_code *c, const struct active_kernel_program *p)
{
	bpfgen_insn(c, (struct ebpf_insn){ EBPF_LDDW, FROM_VALUE << 4 | 1, 0, p->accounts });
	bpfgen_insn(c, (struct ebpf_insn){ .imm = (int32_t)p->account });
}

/*
 * A new window: what those since then allow is taken off what was used. r0 is the window's number,
 * r1 the account, r2 the last one's; to @same if another processor was the first to see it
 */
static void window_begin(struct bpfgen_code *c, uint64_t limit, unsigned int same)
{
	unsigned int few = bpfgen_label(c), less = bpfgen_label(c);

	bpfgen_alu(c, EBPF_MOV, 4, 0);
	bpfgen_alu(c, EBPF_MOV, 3, 0);
	bpfgen_alu(c, EBPF_SUB, 3, 2);
	bpfgen_alu(c, EBPF_MOV, 0, 2);
	bpfgen_insn(c, (struct ebpf_insn){ EBPF_STX | EBPF_ATOMIC | EBPF_DW, 4 << 4 | 1,
					   account_at(window), EBPF_CMPXCHG | EBPF_FETCH });
	bpfgen_if(c, EBPF_JNE, 0, 2, same);
	bpfgen_if_imm(c, EBPF_JLT, 3, WINDOWS_MOST, few);
	bpfgen_alu_imm(c, EBPF_MOV, 3, WINDOWS_MOST);
	bpfgen_here(c, few);
	bpfgen_constant(c, 4, limit);
	bpfgen_alu(c, EBPF_MUL, 3, 4);
	bpfgen_load(c, EBPF_DW, 2, 1, account_at(used));
	bpfgen_if(c, EBPF_JLE, 3, 2, less);
	bpfgen_alu(c, EBPF_MOV, 3, 2);
	bpfgen_here(c, less);
	bpfgen_insn(c, (struct ebpf_insn){ EBPF_ALU64 | EBPF_NEG, 3, 0, 0 });
	bpfgen_insn(c, (struct ebpf_insn){ EBPF_STX | EBPF_ATOMIC | EBPF_DW, 3 << 4 | 1,
					   account_at(used), EBPF_ADD });
}

/*
 * To @busy if the client has used what it may have up to this window. A run may go beyond that, one
 * on each processor; the windows behind it pay for what it did.
 */
static void rate_check(struct bpfgen_code *c, const struct active_kernel_program *p,
		       unsigned int busy)
{
	unsigned int same = bpfgen_label(c);
	uint64_t limit = (p->rate << ACTIVE_KERNEL_WINDOW) / 1000000000 + 1;

	if (!p->rate)
		return;
	bpfgen_call_helper(c, COARSE_CLOCK);
	bpfgen_alu_imm(c, EBPF_RSH, 0, ACTIVE_KERNEL_WINDOW);
	account_take(c, p);
	bpfgen_load(c, EBPF_DW, 2, 1, account_at(window));
	bpfgen_if(c, EBPF_JSLE, 0, 2, same);
	window_begin(c, limit, same);
	bpfgen_here(c, same);
	bpfgen_load(c, EBPF_DW, 2, 1, account_at(used));
	bpfgen_constant(c, 3, limit);
	bpfgen_if(c, EBPF_JGE, 2, 3, busy);
}

static void zero(struct bpfgen_code *c, unsigned int base, int16_t at)
{
	bpfgen_insn(c, (struct ebpf_insn){ EBPF_ST | EBPF_MEM | EBPF_DW, (uint8_t)base, at, 0 });
}

static void args_copy(struct bpfgen_code *c)
{
	unsigned int end = bpfgen_label(c);

	for (int i = 0; i < ACTIVE_WIRE_DATA_MAX; i += 8) {
		bpfgen_if_imm(c, EBPF_JLE, 5, i, end);
		packet_need(c, DATA + i + 8, end);
		bpfgen_load(c, EBPF_DW, 4, 2, (int16_t)(DATA + i));
		bpfgen_store(c, EBPF_DW, 9,
			     (int16_t)(offsetof(struct active_kernel_block, args) + (size_t)i), 4);
	}
	bpfgen_here(c, end);
}

/* --- a program: behind it. r9 is the block, r7 the sum, r8 the status ----------------------- */

/* Adds a number of 64 bits, which is lost */
static void sum(struct bpfgen_code *c, unsigned int reg)
{
	bpfgen_alu(c, EBPF_MOV, 5, reg);
	bpfgen_alu_imm(c, EBPF_RSH, 5, 32);
	bpfgen_alu(c, EBPF_ADD, 7, 5);
	narrow(c, reg);
	bpfgen_alu(c, EBPF_ADD, 7, reg);
}

static void exchange(struct bpfgen_code *c, enum ebpf_size size, int16_t a, int16_t b, bool count)
{
	bpfgen_load(c, size, 4, 2, a);
	bpfgen_load(c, size, 5, 2, b);
	bpfgen_store(c, size, 2, a, 5);
	bpfgen_store(c, size, 2, b, 4);
	if (!count)
		return;
	bpfgen_alu(c, EBPF_ADD, 7, 4);
	bpfgen_alu(c, EBPF_ADD, 7, 5);
}

static void count(struct bpfgen_code *c, int16_t at, unsigned int reg)
{
	bpfgen_load(c, EBPF_DW, 5, 9, at);
	bpfgen_alu(c, EBPF_ADD, 5, reg);
	bpfgen_store(c, EBPF_DW, 9, at, 5);
}

/* One run, and its fuel; the block is this processor's, the client's account is not */
static void run_count(struct bpfgen_code *c, const struct active_kernel_program *p)
{
	bpfgen_alu_imm(c, EBPF_MOV, 4, 1);
	count(c, block_at(own[ACTIVE_KERNEL_RUNS]), 4);
	bpfgen_load(c, EBPF_DW, 4, 9, FUEL_GIVEN);
	bpfgen_load(c, EBPF_DW, 5, 9, block_at(fuel));
	bpfgen_alu(c, EBPF_SUB, 4, 5);
	count(c, block_at(own[ACTIVE_KERNEL_FUEL]), 4);
	if (!p->rate)
		return;
	account_take(c, p);
	bpfgen_insn(c, (struct ebpf_insn){ EBPF_STX | EBPF_ATOMIC | EBPF_DW, 4 << 4 | 1,
					   account_at(used), EBPF_ADD });
}

static void heads_turn(struct bpfgen_code *c)
{
	bpfgen_constant(c, 7, htons(IPPROTO_UDP));
	exchange(c, EBPF_W, ETHER_DEST, ETHER_SOURCE, false);
	exchange(c, EBPF_H, ETHER_DEST + 4, ETHER_SOURCE + 4, false);
	exchange(c, EBPF_W, IP_SOURCE, IP_DEST, true);
	exchange(c, EBPF_H, UDP_SOURCE, UDP_DEST, true);
	/* As a field, and in the pseudo header */
	bpfgen_load(c, EBPF_H, 4, 2, UDP_LENGTH);
	bpfgen_alu(c, EBPF_ADD, 7, 4);
	bpfgen_alu(c, EBPF_ADD, 7, 4);
}

/* r4 becomes a field of the answer */
static void field(struct bpfgen_code *c, enum ebpf_size size, int16_t at)
{
	swap(c, 4, size == EBPF_W ? 32 : 64);
	bpfgen_store(c, size, 2, at, 4);
	sum(c, 4);
}

static void field_of_block(struct bpfgen_code *c, enum ebpf_size size, int16_t from, int16_t at)
{
	bpfgen_load(c, size, 4, 9, from);
	field(c, size, at);
}

static void told_write(struct bpfgen_code *c)
{
	bpfgen_constant(c, 4, head_word(ACTIVE_TOLD));
	bpfgen_store(c, EBPF_W, 2, ASK, 4);
	sum(c, 4);
	field_of_block(c, EBPF_W, block_at(output), told_at(output));
	bpfgen_load(c, EBPF_DW, 4, 2, told_at(id));
	sum(c, 4);
	bpfgen_alu(c, EBPF_MOV, 4, 8);
	field(c, EBPF_W, told_at(code));
	field_of_block(c, EBPF_W, block_at(pc), told_at(pc));
	field_of_block(c, EBPF_DW, block_at(value), told_at(value));
	field_of_block(c, EBPF_DW, block_at(addr), told_at(addr));
	bpfgen_load(c, EBPF_DW, 4, 9, FUEL_GIVEN);
	bpfgen_load(c, EBPF_DW, 5, 9, block_at(fuel));
	bpfgen_alu(c, EBPF_SUB, 4, 5);
	field(c, EBPF_DW, told_at(fuel));
	field_of_block(c, EBPF_W, block_at(len), told_at(len));
	field_of_block(c, EBPF_W, block_at(rights), told_at(rights));
	zero(c, 2, told_at(zeros));
}

/* Up to the packet's end; nothing of it stays for the next run */
static void output_copy(struct bpfgen_code *c)
{
	unsigned int end = bpfgen_label(c);

	for (int i = 0; i < ACTIVE_WIRE_DATA_MAX; i += 8) {
		int16_t from = (int16_t)(offsetof(struct active_kernel_block, output) + (size_t)i);

		packet_need(c, DATA + i + 8, end);
		bpfgen_load(c, EBPF_DW, 4, 9, from);
		zero(c, 9, from);
		bpfgen_store(c, EBPF_DW, 2, (int16_t)(DATA + i), 4);
		sum(c, 4);
	}
	bpfgen_here(c, end);
}

/* Nothing of the run stays in its block; the body and output_copy() have done their part of it */
static void block_clear(struct bpfgen_code *c)
{
	static const int16_t words[] = {
		block_at(arg),	       block_at(arg) + 8,  block_at(fuel), block_at(value),
		block_at(addr),	       block_at(pc),	   block_at(len),  block_at(output),
		block_at(output_room), block_at(args_len), FUEL_GIVEN
	};
	unsigned int end = bpfgen_label(c);

	_Static_assert(block_at(status) == block_at(pc) + 4 &&
			       block_at(rights) == block_at(len) + 4,
		       "words of two");
	bpfgen_load(c, EBPF_DW, 5, 9, block_at(args_len));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		zero(c, 9, words[i]);
	for (size_t i = 0; i < ACTIVE_WIRE_DATA_MAX; i += 8) {
		bpfgen_if_imm(c, EBPF_JLE, 5, (int32_t)i, end);
		zero(c, 9, (int16_t)(offsetof(struct active_kernel_block, args) + i));
	}
	bpfgen_here(c, end);
}

static void checksum_write(struct bpfgen_code *c)
{
	unsigned int done = bpfgen_label(c);

	/* 42 bits at most, then 33, then 18, then 17, then 16 */
	for (int i = 0; i < 4; i++) {
		bpfgen_alu(c, EBPF_MOV, 4, 7);
		bpfgen_alu_imm(c, EBPF_RSH, 4, i ? 16 : 32);
		if (i)
			bpfgen_alu_imm(c, EBPF_AND, 7, 0xffff);
		else
			narrow(c, 7);
		bpfgen_alu(c, EBPF_ADD, 7, 4);
	}
	bpfgen_alu_imm(c, EBPF_XOR, 7, 0xffff);
	bpfgen_if_imm(c, EBPF_JNE, 7, 0, done);
	bpfgen_alu_imm(c, EBPF_MOV, 7, 0xffff); /* 0 says that there is none */
	bpfgen_here(c, done);
	bpfgen_store(c, EBPF_H, 2, UDP_CHECKSUM, 7);
}

int active_kernel_program_write(struct bpfgen_code *c, const struct active_kernel_program *p,
				struct ebpf_error *err)
{
	unsigned int pass = bpfgen_label(c), drop = bpfgen_label(c), busy = bpfgen_label(c);
	unsigned int answer = bpfgen_label(c);
	struct bpfgen_error wrong = { 0 };
	int ret;

	bpfgen_function(c, bpfgen_label(c), "program");
	bpfgen_alu(c, EBPF_MOV, 6, 1);
	bpfgen_store(c, EBPF_DW, EBPF_FP, CONTEXT_SLOT, 6);
	map_constant(c, 7, p->arena); /* by this Linux knows which arena pointers are of */
	block_take(c, p, pass);
	rate_check(c, p, busy);
	packet_take(c, pass);
	lengths_take(c, pass);
	fuel_take(c, p->fuel);
	args_give(c, p);
	args_copy(c);
	bpfgen_load(c, EBPF_DW, 1, EBPF_FP, BLOCK_SLOT);
	ret = bpfkernel_emit(c, &p->params, err);
	if (ret)
		return ret;
	bpfgen_alu(c, EBPF_MOV, 9, 1);
	bpfgen_alu(c, EBPF_MOV, 8, 0);
	run_count(c, p);
	bpfgen_here(c, answer);
	bpfgen_load(c, EBPF_DW, 6, EBPF_FP, CONTEXT_SLOT);
	packet_take(c, drop);
	heads_turn(c);
	told_write(c);
	output_copy(c);
	checksum_write(c);
	block_clear(c);
	verdict(c, TX);
	if (p->rate) {
		bpfgen_here(c, busy);
		bpfgen_alu_imm(c, EBPF_MOV, 8, ACTIVE_BUSY);
		bpfgen_goto(c, answer);
	}
	bpfgen_here(c, drop);
	verdict(c, DROP);
	bpfgen_here(c, pass);
	verdict(c, PASS);
	ret = bpfgen_code_finish(c, &wrong);
	if (ret)
		snprintf(err->text, sizeof(err->text), "%s", wrong.text);
	return ret;
}
