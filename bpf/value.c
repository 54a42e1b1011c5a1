/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Values as the verifier sees them: intervals of numbers, and places in the own stack frame.
 *
 * An interval may be too wide, never too narrow. No memory check is left out because of an
 * interval; only an exact place in the frame or in the object's data is (flow.c), so a mistake
 * here could not open anything by being generous.
 */
#include "bpf/value.h"
#include "bpf/state.h"

/* Farther from the frame than any use of its address */
#define FAR (1ll << 31)

struct value value_number(int64_t lo, int64_t hi)
{
	return (struct value){ VALUE_NUMBER, lo, hi };
}

struct value value_any(void)
{
	return value_number(INT64_MIN, INT64_MAX);
}

bool value_is_exact(const struct value *v)
{
	return v->kind != VALUE_NONE && v->lo == v->hi;
}

bool value_same(const struct value *a, const struct value *b)
{
	return a->kind == b->kind && (a->kind == VALUE_NONE || (a->lo == b->lo && a->hi == b->hi));
}

struct value value_join(struct value a, struct value b)
{
	if (a.kind == VALUE_NONE || b.kind == VALUE_NONE)
		return (struct value){ VALUE_NONE, 0, 0 };
	if (a.kind != b.kind)
		return value_any();
	a.lo = a.lo < b.lo ? a.lo : b.lo;
	a.hi = a.hi > b.hi ? a.hi : b.hi;
	return a;
}

struct value value_widen(struct value old, struct value joined)
{
	bool frame = joined.kind == VALUE_FRAME;

	if (old.kind != joined.kind || joined.kind == VALUE_NONE)
		return joined;
	if (joined.lo < old.lo)
		joined.lo = frame ? -FAR : INT64_MIN;
	if (joined.hi > old.hi)
		joined.hi = frame ? FAR : INT64_MAX;
	return joined;
}

struct value value_loaded(unsigned int bytes, bool extended)
{
	int64_t half;

	if (bytes == 8)
		return value_any();
	half = 1ll << (bytes * 8 - 1);
	return extended ? value_number(-half, half - 1) : value_number(0, 2 * half - 1);
}

static struct value sum(struct value a, struct value b, enum value_kind kind)
{
	struct value v = { kind, 0, 0 };
	bool over = __builtin_add_overflow(a.lo, b.lo, &v.lo) ||
		    __builtin_add_overflow(a.hi, b.hi, &v.hi);

	if (over || (kind == VALUE_FRAME && (v.lo < -FAR || v.hi > FAR)))
		return value_any();
	return v;
}

static struct value difference(struct value a, struct value b, enum value_kind kind)
{
	if (b.lo == INT64_MIN)
		return value_any();
	return sum(a, value_number(-b.hi, -b.lo), kind);
}

/* Addition and subtraction of addresses in the frame; other arithmetic makes numbers of them. */
static struct value address_alu(const struct ebpf_insn *in, struct value dst, struct value src)
{
	bool wide = ebpf_class(in) == EBPF_ALU64, both = dst.kind == src.kind;

	if (wide && ebpf_op(in) == EBPF_ADD && !both)
		return sum(dst, src, VALUE_FRAME);
	if (wide && ebpf_op(in) == EBPF_SUB && !both && dst.kind == VALUE_FRAME)
		return difference(dst, src, VALUE_FRAME);
	return value_any();
}

static struct value moved(const struct ebpf_insn *in, struct value src)
{
	if (in->off)
		return ebpf_class(in) == EBPF_ALU64 ? value_loaded((unsigned int)in->off / 8, true)
						    : value_loaded(4, false);
	if (ebpf_class(in) == EBPF_ALU64)
		return src;
	if (src.kind == VALUE_NUMBER && src.lo >= 0 && src.hi <= UINT32_MAX)
		return src;
	return value_loaded(4, false);
}

static struct value wide_alu(const struct ebpf_insn *in, struct value dst, struct value src)
{
	bool exact = value_is_exact(&src);

	switch (ebpf_op(in)) {
	case EBPF_ADD:
		return sum(dst, src, VALUE_NUMBER);
	case EBPF_SUB:
		return difference(dst, src, VALUE_NUMBER);
	case EBPF_AND:
		return src.lo >= 0 ? value_number(0, src.hi) : value_any();
	case EBPF_RSH:
		if (exact && src.lo > 0 && src.lo < 64)
			return value_number(0, (int64_t)(UINT64_MAX >> src.lo));
		return value_any();
	case EBPF_MOD:
		return exact && src.lo > 0 && !in->off ? value_number(0, src.lo - 1) : value_any();
	}
	return value_any();
}

struct value value_alu(const struct ebpf_insn *in, struct value dst, struct value src)
{
	if (ebpf_op(in) == EBPF_MOV && (src.kind != VALUE_NUMBER || !value_is_exact(&src)))
		return moved(in, src);
	if (dst.kind == VALUE_FRAME || src.kind == VALUE_FRAME)
		return address_alu(in, dst, src);
	if ((ebpf_op(in) == EBPF_MOV || value_is_exact(&dst)) && value_is_exact(&src)) {
		uint64_t n = ebpf_alu(in, (uint64_t)dst.lo, (uint64_t)src.lo);

		return value_number((int64_t)n, (int64_t)n);
	}
	return ebpf_class(in) == EBPF_ALU64 ? wide_alu(in, dst, src) : value_loaded(4, false);
}
