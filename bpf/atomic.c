/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Atomics of RFC 9669, section 5.3, of 32 and 64 bits. All are sequentially consistent, which is
 * more than the RFC asks of those without FETCH. Others may write to the same memory at any time.
 */
#include "bpf/state.h"

#define DEFINE_ATOMIC(bits)                                                                \
	static uint64_t atomic##bits(int32_t op, uint##bits##_t *at, uint##bits##_t value, \
				     uint##bits##_t expected)                              \
	{                                                                                  \
		switch (op & ~EBPF_FETCH) {                                                \
		case EBPF_ADD:                                                             \
			return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);            \
		case EBPF_OR:                                                              \
			return __atomic_fetch_or(at, value, __ATOMIC_SEQ_CST);             \
		case EBPF_AND:                                                             \
			return __atomic_fetch_and(at, value, __ATOMIC_SEQ_CST);            \
		case EBPF_XOR:                                                             \
			return __atomic_fetch_xor(at, value, __ATOMIC_SEQ_CST);            \
		case EBPF_XCHG & ~EBPF_FETCH:                                              \
			return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);           \
		}                                                                          \
		__atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_SEQ_CST, \
					    __ATOMIC_SEQ_CST);                             \
		return expected;                                                           \
	}

DEFINE_ATOMIC(32)
DEFINE_ATOMIC(64)

void ebpf_atomic(const struct ebpf_insn *in, void *at, uint64_t reg[EBPF_REGS])
{
	uint64_t value = reg[ebpf_src(in)], old;

	if (ebpf_bytes(in) == 8)
		old = atomic64(in->imm, at, value, reg[0]);
	else
		old = atomic32(in->imm, at, (uint32_t)value, (uint32_t)reg[0]);
	if (in->imm == (EBPF_CMPXCHG | EBPF_FETCH))
		reg[0] = old;
	else if (in->imm & EBPF_FETCH)
		reg[ebpf_src(in)] = old;
}
