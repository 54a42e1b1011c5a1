/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program in words: each function with its name, each source line where its instructions begin,
 * each instruction with its number, and behind jumps and calls the number that they lead to.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/activecc/activecc.h"

static const char *entry_name(const struct ebpf_object *obj, uint32_t pc)
{
	const char *name;
	uint32_t at;

	for (size_t i = 0; (name = ebpf_object_entry_name(obj, i)); i++)
		if (!ebpf_object_entry(obj, name, &at) && at == pc)
			return name;
	return NULL;
}

/* Functions that cannot be run are seen by the calls that lead to them */
static bool *functions_find(const struct ebpf_insn *insns, size_t count)
{
	bool *begins = calloc(count + 1, sizeof(*begins));

	for (size_t i = 0; begins && i < count; i++) {
		size_t to = i + 1 + (size_t)(ptrdiff_t)insns[i].imm;

		if (ebpf_is_local_call(&insns[i]) && to < count)
			begins[to] = true;
	}
	return begins;
}

static void line_print(const struct ebpf_object *obj, uint32_t pc, struct ebpf_line *last)
{
	struct ebpf_line line;

	ebpf_object_line(obj, pc, &line);
	if (!line.line || (line.line == last->line && !strcmp(line.file, last->file)))
		return;
	*last = line;
	printf("; %s:%u: %s\n", line.file, line.line, line.text + strspn(line.text, " \t"));
}

static void insn_print(const struct ebpf_insn *insns, size_t count, uint32_t pc)
{
	const struct ebpf_insn *in = &insns[pc];
	char text[64];

	ebpf_insn_text(in, &insns[pc + 1 < count ? pc + 1 : pc], text, sizeof(text));
	printf("%7" PRIu32 ": ", pc);
	if (ebpf_is_branch(in) || ebpf_is_goto(in))
		printf("%-40s to %" PRId64 "\n", text, (int64_t)pc + 1 + ebpf_distance(in));
	else if (ebpf_is_local_call(in))
		printf("%-40s to %" PRId64 "\n", text, (int64_t)pc + 1 + in->imm);
	else
		printf("%s\n", text);
}

void activecc_listing_print(const struct ebpf_object *obj)
{
	struct ebpf_line last = { "", "", 0, 0 };
	size_t count;
	const struct ebpf_insn *insns = ebpf_object_insns(obj, &count);
	bool *begins = functions_find(insns, count);

	for (uint32_t pc = 0; pc < count; pc++) {
		const char *name = entry_name(obj, pc);

		if (name || (begins && begins[pc]))
			printf("%s%s:\n", pc ? "\n" : "", name ? name : "(a function of its own)");
		line_print(obj, pc, &last);
		insn_print(insns, count, pc);
		pc += insns[pc].code == EBPF_LDDW;
	}
	free(begins);
}
