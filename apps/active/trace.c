/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `warp-active trace`: a program by the interpreter, instruction by instruction, with its source
 * lines and with the registers that each instruction changed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "apps/active/local.h"

enum { FUEL = 10000, REGISTERS = 11, COLUMN = 38 };

struct trace {
	const struct ebpf_insn *insns;
	size_t count;
	uint64_t before[REGISTERS];
	struct ebpf_line line;
};

static void line_print(struct trace *t, const struct ebpf_object *object, uint32_t pc)
{
	struct ebpf_line line;

	ebpf_object_line(object, pc, &line);
	if (!line.line || (line.line == t->line.line && !strcmp(line.file, t->line.file)))
		return;
	t->line = line;
	printf("; %s:%u: %s\n", line.file, line.line, line.text + strspn(line.text, " \t"));
}

/* How many columns its text has */
static int insn_print(const struct trace *t, uint32_t pc)
{
	const struct ebpf_insn *in = &t->insns[pc];
	char text[64];

	ebpf_insn_text(in, &t->insns[pc + 1 < t->count ? pc + 1 : pc], text, sizeof(text));
	printf("%7" PRIu32 ": %s", pc, text);
	return (int)strlen(text);
}

/* Behind so many columns */
static void registers_print(struct trace *t, const struct ebpf_run *run, int columns)
{
	const uint64_t *now = ebpf_run_registers(run);

	for (int i = 0; i < REGISTERS; i++) {
		if (now[i] == t->before[i])
			continue;
		printf("%*sr%d = 0x%" PRIx64, columns < COLUMN ? COLUMN - columns : 2, "", i,
		       now[i]);
		columns = COLUMN;
	}
	putchar('\n');
	memcpy(t->before, now, sizeof(t->before));
}

static int end_print(const struct local *l, const struct given *g, const struct ebpf_result *r,
		     uint64_t used)
{
	char text[600];

	if (r->status == EBPF_DONE)
		return result_print(g, r->value, used, l->output, r->output);
	fflush(stdout);
	complain(g->object, ebpf_result_text(r, l->object, text, sizeof(text)));
	return REFUSED;
}

static int steps(struct local *l, const struct given *g)
{
	struct trace t = { .line = { .file = "", .text = "" } };
	uint64_t fuel = g->fuel ? g->fuel : FUEL, used = 0;
	struct ebpf_result r = { .status = EBPF_FUEL, .pc = l->params.entry };

	t.insns = ebpf_object_insns(l->object, &t.count);
	memcpy(t.before, ebpf_run_registers(l->run), sizeof(t.before));
	for (int i = 1; i < 3; i++)
		printf("r%d = 0x%" PRIx64 "%s", i, t.before[i], i == 1 ? ", " : "\n");
	while (r.status == EBPF_FUEL && used < fuel) {
		uint64_t turn = 1 + ebpf_run_owed(l->run);
		int columns;

		line_print(&t, l->object, r.pc);
		columns = insn_print(&t, r.pc);
		ebpf_run_continue(l->run, turn, &r);
		used += turn - r.fuel;
		registers_print(&t, l->run, columns);
	}
	return end_print(l, g, &r, used);
}

int trace_main(int argc, char **argv)
{
	static struct given g;
	static struct local l;
	int ret;

	given_read(&g, argc, argv, 1, WORDS_MAX + 2);
	ret = local_open(&l, &g, EBPF_LOAD_NO_JIT);
	if (!ret)
		ret = local_start(&l);
	if (!ret)
		ret = steps(&l, &g);
	local_close(&l, &g);
	return ret;
}
