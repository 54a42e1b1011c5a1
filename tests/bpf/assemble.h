/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_BPF_ASSEMBLE_H
#define TESTS_BPF_ASSEMBLE_H

/* Instructions as initialisers: { MOV(1, 5), ALU64X(EBPF_ADD, 0, 1), EXIT } */

#include "bpf/insn.h"

#define INSN(code, dst, src, off, imm)                                                         \
	{                                                                                      \
		(uint8_t)(code), (uint8_t)((src) << 4 | (dst)), (int16_t)(off), (int32_t)(imm) \
	}
#define ALU64K(op, dst, imm) INSN(EBPF_ALU64 | (op), dst, 0, 0, imm)
#define ALU64X(op, dst, src) INSN(EBPF_ALU64 | (op) | EBPF_X, dst, src, 0, 0)
#define ALU32K(op, dst, imm) INSN(EBPF_ALU | (op), dst, 0, 0, imm)
#define ALU32X(op, dst, src) INSN(EBPF_ALU | (op) | EBPF_X, dst, src, 0, 0)
#define MOV(dst, imm) ALU64K(EBPF_MOV, dst, imm)
#define MOVX(dst, src) ALU64X(EBPF_MOV, dst, src)
#define ADD(dst, imm) ALU64K(EBPF_ADD, dst, imm)
/* Two slots */
#define LDDW(dst, v) \
	INSN(EBPF_LDDW, dst, 0, 0, (uint32_t)(uint64_t)(v)), INSN(0, 0, 0, 0, (uint64_t)(v) >> 32)
#define LDX(size, dst, src, off) INSN(EBPF_LDX | EBPF_MEM | (size), dst, src, off, 0)
#define LDSX(size, dst, src, off) INSN(EBPF_LDX | EBPF_MEMSX | (size), dst, src, off, 0)
#define ST(size, dst, off, imm) INSN(EBPF_ST | EBPF_MEM | (size), dst, 0, off, imm)
#define STX(size, dst, src, off) INSN(EBPF_STX | EBPF_MEM | (size), dst, src, off, 0)
#define ATOMIC(size, op, dst, src, off) INSN(EBPF_STX | EBPF_ATOMIC | (size), dst, src, off, op)
#define JK(op, dst, imm, off) INSN(EBPF_JMP | (op), dst, 0, off, imm)
#define JX(op, dst, src, off) INSN(EBPF_JMP | (op) | EBPF_X, dst, src, off, 0)
#define J32K(op, dst, imm, off) INSN(EBPF_JMP32 | (op), dst, 0, off, imm)
#define J32X(op, dst, src, off) INSN(EBPF_JMP32 | (op) | EBPF_X, dst, src, off, 0)
#define JA(off) INSN(EBPF_JA_CODE, 0, 0, off, 0)
#define GOTOL(distance) INSN(EBPF_GOTOL_CODE, 0, 0, 0, distance)
#define CALL(id) INSN(EBPF_CALL_CODE, 0, EBPF_CALL_HELPER, 0, id)
#define CALL_LOCAL(distance) INSN(EBPF_CALL_CODE, 0, EBPF_CALL_LOCAL, 0, distance)
#define EXIT INSN(EBPF_EXIT_CODE, 0, 0, 0, 0)

#endif
