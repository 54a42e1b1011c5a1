/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Generated programs by two engines. A difference is printed with the program.
 *
 *	compare jit [FIRST [COUNT]]	interpreter against machine code, every detail
 *	compare kernel [FIRST [COUNT]]	machine code against BPF_PROG_TEST_RUN: the result
 *
 * By default a short row of seeds; with WARPSOCK_LONG in the environment ten million or a hundred
 * thousand.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engines.h"
#include "generate.h"

enum { SHORT_JIT = 60000, LONG_JIT = 10000000, SHORT_KERNEL = 2000, LONG_KERNEL = 100000 };

static struct ebpf_insn insns[GENERATED_MAX];

static void program_print(uint64_t seed, size_t count)
{
	char text[64];

	printf("# program %llu\n", (unsigned long long)seed);
	for (size_t i = 0; i < count; i++) {
		printf("# %4zu: %s\n", i,
		       ebpf_insn_text(&insns[i], &insns[i + 1], text, sizeof(text)));
		i += insns[i].code == EBPF_LDDW;
	}
}

static void end_print(const char *name, const struct engines_end *end)
{
	const struct ebpf_result *r = &end->result;

	printf("# %s: refused %d (%s), status %d, pc %u, value 0x%llx, address 0x%llx, fuel %llu\n",
	       name, end->refused, end->err.text, (int)r->status, r->pc,
	       (unsigned long long)r->value, (unsigned long long)r->addr,
	       (unsigned long long)r->fuel);
}

/* --- the two engines -------------------------------------------------------------------------- */

static bool jit_agrees(struct engines_end ends[2], uint64_t seed, uint64_t statuses[8])
{
	size_t count = generate(seed, GENERATE_FOR_ENGINES, insns);
	uint64_t slice = seed % 3 ? 2000 : 1 + seed % 37;
	const char *what;

	engines_run(&ends[0], insns, count, EBPF_LOAD_NO_JIT, seed, 2000, slice);
	engines_run(&ends[1], insns, count, 0, seed, 2000, slice);
	what = engines_differ(&ends[0], &ends[1]);
	statuses[ends[0].refused ? 7 : ends[0].result.status]++;
	if (!what)
		return true;
	printf("not ok 1 - the engines agree\n# different: %s\n", what);
	end_print("interpreter", &ends[0]);
	end_print("machine code", &ends[1]);
	program_print(seed, count);
	return false;
}

static int compare_jit(uint64_t first, uint64_t count)
{
	struct engines_end ends[2];
	uint64_t statuses[8] = { 0 };
	bool good = !engines_open(&ends[0]) && !engines_open(&ends[1]);

	puts("1..1");
	for (uint64_t seed = first; good && seed < first + count; seed++)
		good = jit_agrees(ends, seed, statuses);
	engines_close(&ends[0]);
	engines_close(&ends[1]);
	for (int i = 0; i < 7; i++) {
		printf("# %s: %llu\n", ebpf_status_text((enum ebpf_status)i),
		       (unsigned long long)statuses[i]);
		if (good && count >= SHORT_JIT && !statuses[i]) {
			puts("not ok 1 - some program comes to each end");
			good = false;
		}
	}
	if (good && statuses[7] > count / 8) {
		printf("not ok 1 - the verifier takes what is good\n# %llu refused\n",
		       (unsigned long long)statuses[7]);
		good = false;
	}
	if (good)
		printf("ok 1 - the engines agree on %llu programs\n", (unsigned long long)count);
	return !good;
}

/* --- the kernel ------------------------------------------------------------------------------- */

static long bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static int kernel_load(const struct ebpf_insn *program, size_t count, char *log, size_t room)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.insns = (uintptr_t)program;
	attr.insn_cnt = (uint32_t)count;
	attr.license = (uintptr_t) "GPL";
	attr.log_buf = (uintptr_t)log;
	attr.log_size = log ? (uint32_t)room : 0;
	attr.log_level = log != NULL;
	return (int)bpf(BPF_PROG_LOAD, &attr);
}

static int kernel_run(const struct ebpf_insn *program, size_t count, uint32_t *value)
{
	static uint8_t packet[64];
	union bpf_attr attr;
	int fd = kernel_load(program, count, NULL, 0), ret;

	if (fd < 0)
		return -errno;
	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = (uint32_t)fd;
	attr.test.data_in = (uintptr_t)packet;
	attr.test.data_size_in = sizeof(packet);
	ret = bpf(BPF_PROG_TEST_RUN, &attr) ? -errno : 0;
	*value = attr.test.retval;
	close(fd);
	return ret;
}

static int difference_say(const struct engines_end *end, uint64_t seed, size_t count, int ret,
			  uint32_t value)
{
	static char log[1 << 16];

	puts("not ok 1 - the kernel agrees");
	if (ret && kernel_load(insns, count, log, sizeof(log)) < 0)
		printf("# the kernel: %s\n# %.2000s\n", strerror(-ret),
		       log + (strlen(log) > 2000 ? strlen(log) - 2000 : 0));
	printf("# the kernel: 0x%x\n", value);
	end_print("ours", end);
	program_print(seed, count);
	return 1;
}

static int compare_kernel(uint64_t first, uint64_t count)
{
	static const struct ebpf_insn trivial[] = { { EBPF_ALU64 | EBPF_MOV, 0, 0, 0 },
						    { EBPF_EXIT_CODE, 0, 0, 0 } };
	struct engines_end end;
	uint32_t value = 0;
	int ret = kernel_run(trivial, 2, &value);

	puts("1..1");
	if (ret) {
		printf("ok 1 - the kernel agrees # SKIP the kernel does not allow bpf(2): %s\n",
		       strerror(-ret));
		return 0;
	}
	if (engines_open(&end))
		return 1;
	for (uint64_t seed = first; seed < first + count; seed++) {
		size_t n = generate(seed, GENERATE_FOR_KERNEL, insns);

		ret = kernel_run(insns, n, &value);
		engines_run(&end, insns, n, 0, seed, 4000, 4000);
		if (ret || end.result.status != EBPF_DONE || (uint32_t)end.result.value != value)
			return difference_say(&end, seed, n, ret, value);
	}
	printf("ok 1 - the kernel agrees on %llu programs\n", (unsigned long long)count);
	engines_close(&end);
	return 0;
}

int main(int argc, char **argv)
{
	const char *asked = getenv("WARPSOCK_LONG");
	bool whole = asked && *asked, kernel = argc > 1 && !strcmp(argv[1], "kernel");
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	uint64_t count = whole	  ? kernel ? LONG_KERNEL : LONG_JIT
			 : kernel ? SHORT_KERNEL
				  : SHORT_JIT;

	if (argc < 2) {
		fputs("usage: compare jit|kernel [FIRST [COUNT]]\n", stderr);
		return 2;
	}
	if (argc > 3)
		count = strtoull(argv[3], NULL, 0);
	return kernel ? compare_kernel(first, count) : compare_jit(first, count);
}
