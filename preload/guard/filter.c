/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The machine of seccomp's filters: classic BPF over struct seccomp_data, as
 * Documentation/userspace-api/seccomp_filter.rst of Linux has it.
 *
 * It is asked which calls a sandbox leaves, before it stands and without making any. Jumps go
 * forward only, so a run is no longer than the program; what the kernel would refuse to load
 * is answered as if it killed.
 */
#include "preload/guard/filter.h"

#include <stddef.h>
#include <string.h>

struct machine {
	__u32 a, x;
	__u32 mem[BPF_MEMWORDS];
	const struct seccomp_data *call;
	bool looks;
	bool bad;
};

static __u32 word_load(struct machine *m, __u32 at)
{
	__u32 word;

	if (at % sizeof(word) || at > sizeof(*m->call) - sizeof(word)) {
		m->bad = true;
		return 0;
	}
	m->looks |= at >= offsetof(struct seccomp_data, args);
	memcpy(&word, (const char *)m->call + at, sizeof(word));
	return word;
}

static __u32 *mem_of(struct machine *m, __u32 at)
{
	m->bad |= at >= BPF_MEMWORDS;
	return &m->mem[at % BPF_MEMWORDS];
}

static __u32 load(struct machine *m, const struct sock_filter *i)
{
	switch (BPF_MODE(i->code)) {
	case BPF_ABS:
		return word_load(m, i->k);
	case BPF_LEN:
		return sizeof(*m->call);
	case BPF_IMM:
		return i->k;
	case BPF_MEM:
		return *mem_of(m, i->k);
	default:
		m->bad = true;
		return 0;
	}
}

static __u32 operand(const struct machine *m, const struct sock_filter *i)
{
	return BPF_SRC(i->code) == BPF_X ? m->x : i->k;
}

static void divide(struct machine *m, __u32 by)
{
	if (by)
		m->a /= by;
	else
		m->bad = true;
}

static void calculate(struct machine *m, const struct sock_filter *i)
{
	__u32 b = operand(m, i);

	switch (BPF_OP(i->code)) {
	case BPF_ADD:
		m->a += b;
		break;
	case BPF_SUB:
		m->a -= b;
		break;
	case BPF_MUL:
		m->a *= b;
		break;
	case BPF_DIV:
		divide(m, b);
		break;
	case BPF_AND:
		m->a &= b;
		break;
	case BPF_OR:
		m->a |= b;
		break;
	case BPF_XOR:
		m->a ^= b;
		break;
	case BPF_LSH:
		m->a = b < 32 ? m->a << b : 0;
		break;
	case BPF_RSH:
		m->a = b < 32 ? m->a >> b : 0;
		break;
	case BPF_NEG:
		m->a = -m->a;
		break;
	default:
		m->bad = true;
	}
}

/* How many instructions to pass over */
static __u32 jump(struct machine *m, const struct sock_filter *i)
{
	__u32 b = operand(m, i);

	switch (BPF_OP(i->code)) {
	case BPF_JA:
		return i->k;
	case BPF_JEQ:
		return m->a == b ? i->jt : i->jf;
	case BPF_JGT:
		return m->a > b ? i->jt : i->jf;
	case BPF_JGE:
		return m->a >= b ? i->jt : i->jf;
	case BPF_JSET:
		return m->a & b ? i->jt : i->jf;
	default:
		m->bad = true;
		return 0;
	}
}

/* All but RET: how many instructions to pass over */
static __u32 step(struct machine *m, const struct sock_filter *i)
{
	switch (BPF_CLASS(i->code)) {
	case BPF_LD:
		m->a = load(m, i);
		return 0;
	case BPF_LDX:
		m->x = load(m, i);
		return 0;
	case BPF_ST:
		*mem_of(m, i->k) = m->a;
		return 0;
	case BPF_STX:
		*mem_of(m, i->k) = m->x;
		return 0;
	case BPF_ALU:
		calculate(m, i);
		return 0;
	case BPF_JMP:
		return jump(m, i);
	default: /* BPF_MISC */
		if (BPF_MISCOP(i->code) == BPF_TXA)
			m->a = m->x;
		else
			m->x = m->a;
		return 0;
	}
}

__u32 filter_run(const struct sock_filter *program, unsigned int n, const struct seccomp_data *call,
		 bool *looks)
{
	struct machine m = { .call = call };
	__u32 answer = SECCOMP_RET_KILL_PROCESS;

	for (size_t at = 0; at < n && !m.bad; at++) {
		const struct sock_filter *i = &program[at];

		if (BPF_CLASS(i->code) == BPF_RET) {
			answer = BPF_RVAL(i->code) == BPF_A ? m.a : i->k;
			break;
		}
		at += step(&m, i);
	}
	*looks = m.looks;
	return m.bad ? SECCOMP_RET_KILL_PROCESS : answer;
}

bool filter_lets(__u32 answer)
{
	switch (answer & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ALLOW:
	case SECCOMP_RET_LOG:
	case SECCOMP_RET_TRACE:
	case SECCOMP_RET_USER_NOTIF:
		return true;
	default:
		return false;
	}
}
