/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A whole object as x86-64 code: the way in and out, blocks and their fuel, jumps, calls, and the
 * places where a run may stop.
 *
 * Fuel is taken for a block at once, at its beginning; a block that cannot be paid is left to the
 * interpreter, and so is what follows a stop in its middle, which gets back what was not executed.
 * The code has no indirect jump or call but the one into a helper and the returns.
 */
#include <stddef.h>
#include <stdlib.h>

#include "bpf/jit.h"

static int list_grow(void **list, size_t *room, size_t count, size_t size)
{
	size_t more = *room ? *room * 2 : 64;
	void *grown;

	if (count < *room)
		return 0;
	grown = realloc(*list, more * size);
	if (!grown)
		return -ENOMEM;
	*list = grown;
	*room = more;
	return 0;
}

static void link_add(struct jit_making *m, struct jit_links *links, size_t at, uint32_t to,
		     uint32_t refund)
{
	void *list = links->list;

	if (list_grow(&list, &links->room, links->count, sizeof(*links->list))) {
		m->c.failed = true;
		return;
	}
	links->list = list;
	links->list[links->count++] = (struct jit_link){ at, to, refund };
}

void jit_exit(struct jit_making *m, unsigned int condition, const struct jit_site *site)
{
	void *list = m->jit->sites;

	if (list_grow(&list, &m->sites_room, m->jit->site_count, sizeof(*site))) {
		m->c.failed = true;
		return;
	}
	m->jit->sites = list;
	m->jit->sites[m->jit->site_count] = *site;
	link_add(m, &m->exits, x86_jump(&m->c, condition), m->jit->site_count++, 0);
}

/*
 * --- where ways meet
 * ---------------------------------------------------------------------------
 */

static bool held_same(const struct jit_held *a, const struct jit_held *b)
{
	return a->valid && b->valid && a->base == b->base && a->rights == b->rights &&
	       a->lo == b->lo && a->hi == b->hi && a->org == b->org;
}

static void meeting_arrive(struct jit_making *m, uint32_t pc)
{
	struct jit_meeting *meeting = &m->meetings[pc];

	if (meeting->seen++)
		meeting->differ |= !held_same(&meeting->held, &m->held);
	meeting->held = m->held;
}

/* Code here is reached by jumps that were all seen, with the same held, or nothing is held. */
static void meeting_begin(struct jit_making *m, uint32_t pc)
{
	const struct jit_meeting *meeting = &m->meetings[pc];

	if (m->obj->facts[pc].start || meeting->seen != meeting->expected || meeting->differ ||
	    (meeting->seen && !held_same(&meeting->held, &m->held)))
		m->held.valid = false;
}

static void meetings_expect(struct jit_making *m)
{
	for (uint32_t pc = 0; pc < m->obj->count; pc++) {
		const struct ebpf_insn *in = &m->obj->insns[pc];

		if (m->obj->facts[pc].reached && (ebpf_is_branch(in) || ebpf_is_goto(in)))
			m->meetings[pc + 1 + (uint32_t)ebpf_distance(in)].expected++;
	}
}

/* A jump to an instruction; fuel that was taken for what is jumped over is given back. */
static void jump_to(struct jit_making *m, unsigned int condition, uint32_t pc, uint32_t refund)
{
	size_t at = x86_jump(&m->c, condition);

	meeting_arrive(m, pc);
	link_add(m, refund ? &m->refunds : &m->jumps, at, pc, refund);
}

/* Behind all code: gives fuel back, and goes on where the jump was to lead */
static void refunds_put(struct jit_making *m)
{
	for (size_t i = 0; i < m->refunds.count; i++) {
		const struct jit_link *link = &m->refunds.list[i];

		x86_link_here(&m->c, link->at);
		x86_group_imm(&m->c, true, 0, JIT_FUEL, (int32_t)link->refund);
		link_add(m, &m->jumps, x86_jump(&m->c, X86_ALWAYS), link->to, 0);
	}
}

/* --- the way in and out ----------------------------------------------------------------------- */

static const uint8_t kept[] = { X86_RBX, X86_RBP, X86_R12, X86_R13, X86_R14, X86_R15 };

static void push(struct x86 *c, unsigned int reg)
{
	if (reg & 8)
		x86_byte(c, 0x41);
	x86_byte(c, 0x50 | (reg & 7));
}

static void pop(struct x86 *c, unsigned int reg)
{
	if (reg & 8)
		x86_byte(c, 0x41);
	x86_byte(c, 0x58 | (reg & 7));
}

/*
 * Puts the return address of each active call on the processor's stack, as if all had been
 * made here
 */
static void frames_push(struct jit_making *m)
{
	struct x86 *c = &m->c;
	size_t again, done;

	x86_rm(c, X86_WIDE(0x8d), JIT_T1, JIT_RUN(frames));
	again = c->len;
	x86_rm(c, X86_WIDE(0x3b), JIT_T1, JIT_RUN(frame));
	done = x86_jump(c, X86_AE);
	x86_rm(c, X86_OP(0xff, false), 6,
	       (struct x86_mem){ JIT_T1, X86_NONE, offsetof(struct ebpf_frame, native) });
	x86_group_imm(c, true, 0, JIT_T1, sizeof(struct ebpf_frame));
	x86_link(c, x86_jump(c, X86_ALWAYS), again);
	x86_link_here(c, done);
}

/* void enter(struct ebpf_run *run): goes on at run->target */
static void enter_put(struct jit_making *m)
{
	struct x86 *c = &m->c;
	size_t ended;

	for (size_t i = 0; i < sizeof(kept); i++)
		push(c, kept[i]);
	x86_rm(c, X86_WIDE(0x8d), X86_RBX, (struct x86_mem){ X86_RDI, X86_NONE, JIT_BIAS });
	x86_store(c, JIT_RUN(native_sp), X86_RSP);
	ended = x86_jump(c,
			 X86_CALL); /* its return address is what the first function returns to */
	x86_store(c, JIT_REG(0), X86_RAX);
	x86_store(c, JIT_RUN(fuel), JIT_FUEL);
	x86_store_imm32(c, JIT_RUN(site), JIT_ENDED);
	m->leave = c->len;
	x86_load(c, X86_RSP, JIT_RUN(native_sp));
	for (size_t i = sizeof(kept); i--;)
		pop(c, kept[i]);
	x86_byte(c, 0xc3);
	x86_link_here(c, ended);
	frames_push(m);
	for (unsigned int i = 0; i < EBPF_FP; i++)
		x86_load(c, jit_reg(i), JIT_REG(i));
	x86_load(c, X86_RBP, JIT_RUN(host_frame));
	x86_load(c, JIT_FUEL, JIT_RUN(fuel));
	x86_rm(c, X86_OP(0xff, false), 4, JIT_RUN(target));
}

/* Behind all code: for each site its number, then to where everything is saved */
static void exits_put(struct jit_making *m)
{
	struct x86 *c = &m->c;
	size_t save = c->len;

	for (unsigned int i = 0; i < EBPF_FP; i++)
		x86_store(c, JIT_REG(i), jit_reg(i));
	x86_store(c, JIT_RUN(fuel), JIT_FUEL);
	x86_link(c, x86_jump(c, X86_ALWAYS), m->leave);
	for (size_t i = 0; i < m->exits.count; i++) {
		x86_link_here(c, m->exits.list[i].at);
		x86_store_imm32(c, JIT_RUN(site), m->exits.list[i].to);
		x86_link(c, x86_jump(c, X86_ALWAYS), save);
	}
}

/* --- calls ------------------------------------------------------------------------------------ */

static struct x86_mem frame_field(size_t field)
{
	return (struct x86_mem){ JIT_T1, X86_NONE, (int32_t)field };
}

static void local_call(struct jit_making *m, uint32_t pc)
{
	struct jit_site site = { .pc = pc, .refund = m->charged };
	struct x86 *c = &m->c;

	x86_load(c, JIT_T1, JIT_RUN(frame));
	x86_rm(c, X86_WIDE(0x3b), JIT_T1, JIT_RUN(frame_end));
	jit_exit(m, X86_AE, &site);
	for (unsigned int i = 0; i < 4; i++)
		x86_store(c, frame_field(8 * i), jit_reg(6 + i));
	x86_rm(c, X86_WIDE(0xc7), 0, frame_field(offsetof(struct ebpf_frame, back)));
	x86_word(c, pc + 1);
	x86_group_imm(c, true, 0, JIT_T1, sizeof(struct ebpf_frame));
	x86_store(c, JIT_RUN(frame), JIT_T1);
	x86_group_imm(c, true, 0, X86_RBP, EBPF_FRAME_SIZE);
	jump_to(m, X86_CALL, pc + 1 + (uint32_t)m->obj->insns[pc].imm, 0);
	m->jit->landing[pc] = (uint32_t)c->len;
	x86_load(c, JIT_T1, JIT_RUN(frame));
	x86_group_imm(c, true, 5, JIT_T1, sizeof(struct ebpf_frame));
	x86_store(c, JIT_RUN(frame), JIT_T1);
	for (unsigned int i = 0; i < 4; i++)
		x86_load(c, jit_reg(6 + i), frame_field(8 * i));
	x86_group_imm(c, true, 5, X86_RBP, EBPF_FRAME_SIZE);
}

/* r6 to r9, rbx and rbp survive a call by the rules of C. */
static void helper_call(struct jit_making *m, uint32_t pc)
{
	uint32_t index = (uint32_t)ebpf_helper_find(m->obj, m->obj->insns[pc].imm);
	int (*call)(struct ebpf_run *, uint32_t) = ebpf_helper_call;
	struct x86 *c = &m->c;
	size_t good;

	for (unsigned int i = 1; i <= 5; i++)
		x86_store(c, JIT_REG(i), jit_reg(i));
	x86_store(c, JIT_RUN(fuel), JIT_FUEL);
	x86_store_imm32(c, JIT_RUN(pc), pc);
	x86_store(c, JIT_RUN(scratch), X86_RSP);
	x86_group_imm(c, true, 4, X86_RSP, -16);
	x86_rm(c, X86_WIDE(0x8d), X86_RDI, JIT_AT(0));
	x86_mov_imm(c, X86_RSI, index);
	x86_mov_imm(c, X86_RAX, (uintptr_t)call);
	x86_rr(c, X86_OP(0xff, false), 2, X86_RAX);
	x86_load(c, X86_RSP, JIT_RUN(scratch));
	x86_rr(c, X86_OP(0x85, false), X86_RAX, X86_RAX);
	good = x86_jump(c, X86_E);
	x86_store_imm32(c, JIT_RUN(site), JIT_OVER);
	x86_link(c, x86_jump(c, X86_ALWAYS), m->leave);
	x86_link_here(c, good);
	x86_load(c, X86_RAX, JIT_REG(0));
	x86_load(c, JIT_FUEL, JIT_RUN(fuel));
}

/* --- instructions and blocks ------------------------------------------------------------------ */

static uint32_t insn_next(const struct ebpf_object *obj, uint32_t pc)
{
	return pc + 1 + (obj->insns[pc].code == EBPF_LDDW);
}

static uint32_t jump_target(const struct ebpf_object *obj, uint32_t pc)
{
	return pc + 1 + (uint32_t)ebpf_distance(&obj->insns[pc]);
}

/* The other way than by a jump leads to the end of the function */
static bool or_ends(const struct ebpf_object *obj, uint32_t pc)
{
	return obj->insns[pc + 1].code == EBPF_EXIT_CODE;
}

static bool ends_block(const struct ebpf_object *obj, uint32_t pc)
{
	const struct ebpf_insn *in = &obj->insns[pc];

	if (ebpf_is_jump(in) && (!ebpf_is_branch(in) || in->off < 0 || or_ends(obj, pc)))
		return true;
	return obj->facts[insn_next(obj, pc)].target;
}

/*
 * What is paid at once: up to where a jump leads, and past branches forward, for most of those
 * are not taken. A branch that most likely is taken ends it: one backward, so that a loop has
 * nothing to give back, and one around the function's end.
 *
 * From each instruction on, and from the last to the first: many blocks may lead to one, and what
 * each of them pays must not take the time to go through it.
 */
static void blocks_measure(struct jit_making *m)
{
	for (uint32_t pc = m->obj->count; pc--;) {
		struct jit_block *b = &m->blocks[pc];

		*b = (struct jit_block){ 1, pc };
		if (m->obj->facts[pc].reached && !ends_block(m->obj, pc)) {
			*b = m->blocks[insn_next(m->obj, pc)];
			b->length++;
		}
	}
}

static const struct ebpf_insn *last_of(const struct jit_making *m, uint32_t begin)
{
	return &m->obj->insns[m->blocks[begin].last];
}

/* Whether the block ends by a branch that most likely leads elsewhere */
static bool leads_on(const struct jit_making *m, uint32_t begin)
{
	const struct ebpf_insn *in = last_of(m, begin);
	uint32_t last = m->blocks[begin].last;

	if (!ebpf_is_branch(in))
		return false;
	return in->off < 0 ? jump_target(m->obj, last) != begin : or_ends(m->obj, last);
}

/*
 * A block that ends by a goto pays for the one that follows, too, unless that does the same: the
 * goto leads behind that one's payment. What is paid so, or 0
 */
static uint32_t goto_pays(const struct jit_making *m, uint32_t begin)
{
	uint32_t to = jump_target(m->obj, m->blocks[begin].last);

	return ebpf_is_goto(last_of(m, to)) || leads_on(m, to) ? 0 : m->blocks[to].length;
}

/*
 * In the same way a block pays ahead that ends by a branch which leads on, and gives it back where
 * the branch is not taken. The one that follows may end by a goto, and pay for that, but not by
 * such a branch: so payments end, in a loop, too
 */
static uint32_t branch_pays(const struct jit_making *m, uint32_t begin)
{
	uint32_t to = jump_target(m->obj, m->blocks[begin].last);

	if (!leads_on(m, begin) || leads_on(m, to))
		return 0;
	return m->blocks[to].length + (ebpf_is_goto(last_of(m, to)) ? goto_pays(m, to) : 0);
}

static uint32_t pays_ahead(const struct jit_making *m, uint32_t begin)
{
	if (ebpf_is_goto(last_of(m, begin)))
		return goto_pays(m, begin);
	return ebpf_is_branch(last_of(m, begin)) ? branch_pays(m, begin) : 0;
}

/* A jump behind the payment of where it leads, for that was made */
static void jump_paid(struct jit_making *m, unsigned int condition, uint32_t to)
{
	size_t at = x86_jump(&m->c, condition);

	meeting_arrive(m, to);
	link_add(m, &m->paid_jumps, at, to, 0);
}

/* @ahead: what was paid for where it leads; 0: nothing, or it does not end its block */
static void branch(struct jit_making *m, uint32_t pc, uint32_t ahead)
{
	static const uint8_t condition[16] = {
		[EBPF_JEQ >> 4] = X86_E,   [EBPF_JGT >> 4] = X86_A,   [EBPF_JGE >> 4] = X86_AE,
		[EBPF_JSET >> 4] = X86_NE, [EBPF_JNE >> 4] = X86_NE,  [EBPF_JSGT >> 4] = X86_G,
		[EBPF_JSGE >> 4] = X86_GE, [EBPF_JLT >> 4] = X86_B,   [EBPF_JLE >> 4] = X86_BE,
		[EBPF_JSLT >> 4] = X86_L,  [EBPF_JSLE >> 4] = X86_LE,
	};
	const struct ebpf_insn *in = &m->obj->insns[pc];

	jit_compare(m, in);
	if (!ahead) {
		jump_to(m, condition[in->code >> 4], jump_target(m->obj, pc), m->charged - 1);
		return;
	}
	jump_paid(m, condition[in->code >> 4], jump_target(m->obj, pc));
	x86_group_imm(&m->c, true, 0, JIT_FUEL, (int32_t)ahead);
	m->charged = 1; /* of the branch itself */
}

static void jump(struct jit_making *m, uint32_t pc)
{
	const struct ebpf_insn *in = &m->obj->insns[pc];

	if (ebpf_is_branch(in)) {
		branch(m, pc, pc == m->blocks[m->block].last ? m->charged - 1 : 0);
		return;
	}
	if (ebpf_is_goto(in)) {
		if (m->charged > 1)
			jump_paid(m, X86_ALWAYS, jump_target(m->obj, pc));
		else
			jump_to(m, X86_ALWAYS, jump_target(m->obj, pc), 0);
		m->held.valid = false;
		m->charged = 1; /* of the goto itself */
		return;
	}
	m->held.valid = false;
	if (ebpf_is_local_call(in)) {
		local_call(m, pc);
	} else if (in->code == EBPF_CALL_CODE) {
		helper_call(m, pc);
	} else {
		x86_store_imm32(&m->c, JIT_RUN(pc), pc);
		x86_byte(&m->c, 0xc3);
	}
}

static void block_begin(struct jit_making *m, uint32_t pc)
{
	uint32_t n = m->blocks[pc].length + pays_ahead(m, pc);
	struct jit_site site = { .pc = pc };

	if (m->obj->facts[pc].target)
		meeting_begin(m, pc);
	m->begin[pc] = (uint32_t)m->c.len;
	m->jit->entry[pc] = m->held.valid ? 0 : m->begin[pc];
	m->block = pc;
	site.refund = n;
	x86_group_imm(&m->c, true, 5, JIT_FUEL, (int32_t)n);
	jit_exit(m, X86_B, &site);
	m->paid[pc] = (uint32_t)m->c.len;
	m->charged = n;
}

static void sum_put(struct jit_making *m, const struct ebpf_insn *in)
{
	jit_sum(m, in);
	jit_held_update(m, in);
	m->charged -= 2;
}

/* Where the next one is */
static uint32_t insn_put(struct jit_making *m, uint32_t pc)
{
	const struct ebpf_insn *in = &m->obj->insns[pc];

	if (!m->charged || m->obj->facts[pc].target)
		block_begin(m, pc);
	if (jit_is_sum(m->obj, pc)) {
		sum_put(m, in);
		return pc + 2;
	}
	if (ebpf_is_alu(in))
		jit_alu(m, in);
	else if (ebpf_is_jump(in))
		jump(m, pc);
	else if (ebpf_is_memory(in))
		jit_memory(m, pc);
	else
		x86_mov_imm(&m->c, jit_reg(ebpf_dst(in)),
			    (uint32_t)in[0].imm | (uint64_t)(uint32_t)in[1].imm << 32);
	jit_held_update(m, in);
	m->charged--;
	return insn_next(m->obj, pc);
}

int jit_compile(struct jit_making *m)
{
	blocks_measure(m);
	enter_put(m);
	meetings_expect(m);
	for (uint32_t pc = 0; pc < m->obj->count;) {
		if (m->obj->facts[pc].reached) {
			pc = insn_put(m, pc);
			continue;
		}
		m->charged = 0;
		pc = insn_next(m->obj, pc);
	}
	refunds_put(m);
	for (size_t i = 0; i < m->jumps.count; i++)
		x86_link(&m->c, m->jumps.list[i].at, m->begin[m->jumps.list[i].to]);
	for (size_t i = 0; i < m->paid_jumps.count; i++)
		x86_link(&m->c, m->paid_jumps.list[i].at, m->paid[m->paid_jumps.list[i].to]);
	exits_put(m);
	return m->c.failed ? -ENOMEM : 0;
}
