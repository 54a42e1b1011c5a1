/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An object's life: read or assembled, verified, made machine code where that is possible, and
 * never changed again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/program.h"
#include "bpf/state.h"

int ebpf_helper_find(const struct ebpf_object *obj, int32_t id)
{
	for (size_t i = 0; obj->helpers && i < obj->helpers->count; i++)
		if (obj->helpers->list[i].id == (uint32_t)id)
			return (int)i;
	return -1;
}

/* What the object says is printed as it is, so nothing but printable ASCII may be left in it. */
static void printable(char *text)
{
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e)
			*text = *text == '\t' ? ' ' : '?';
}

int ebpf_refuse(const struct ebpf_object *obj, struct ebpf_error *err, int error, uint32_t pc,
		const char *format, ...)
{
	char reason[160], insn[64];
	struct ebpf_line line;
	va_list args;

	if (!err)
		return error;
	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	err->pc = pc;
	if (pc == EBPF_NO_PC) {
		snprintf(err->text, sizeof(err->text), "%s", reason);
	} else {
		ebpf_object_line(obj, pc, &line);
		ebpf_insn_text(&obj->insns[pc], &obj->insns[pc + 1 < obj->count ? pc + 1 : pc],
			       insn, sizeof(insn));
		snprintf(err->text, sizeof(err->text),
			 *line.file ? "%s; %u: %s; %.120s:%u: %.120s" : "%s; %u: %s", reason, pc,
			 insn, line.file, line.line, line.text + strspn(line.text, " \t"));
	}
	printable(err->text);
	return error;
}

/* Where nothing is called there is one stack frame to clear for a run. */
static uint32_t frames_needed(const struct ebpf_object *obj)
{
	for (uint32_t pc = 0; pc < obj->count; pc++)
		if (obj->facts[pc].reached && ebpf_is_local_call(&obj->insns[pc]))
			return EBPF_DEPTH_MAX;
	return 1;
}

static int verify(struct ebpf_object *obj, unsigned int flags, struct ebpf_error *err)
{
	int ret = ebpf_structure_check(obj, err);

	if (!ret)
		ret = ebpf_flow_check(obj, err);
	obj->frames = ret ? 0 : frames_needed(obj);
	if (!ret && !(flags & EBPF_LOAD_NO_JIT) && ebpf_jit_create(obj, &obj->jit) == -ENOMEM)
		ret = -ENOMEM;
	return ret;
}

static void error_begin(struct ebpf_error *err)
{
	if (err) {
		err->pc = EBPF_NO_PC;
		snprintf(err->text, sizeof(err->text), "out of memory");
	}
}

int ebpf_object_load(const void *elf, size_t len, const struct ebpf_helpers *helpers,
		     unsigned int flags, struct ebpf_object **out, struct ebpf_error *err)
{
	struct ebpf_object *obj = calloc(1, sizeof(*obj));
	int ret;

	error_begin(err);
	if (!obj)
		return -ENOMEM;
	obj->helpers = helpers;
	ret = ebpf_elf_read(obj, elf, len, err);
	if (!ret)
		ret = verify(obj, flags, err);
	if (ret)
		ebpf_object_destroy(obj);
	else
		*out = obj;
	return ret;
}

static int assemble(struct ebpf_object *obj, const struct ebpf_insn *insns, size_t count)
{
	obj->insns = calloc(count, sizeof(*insns));
	obj->facts = calloc(count, sizeof(*obj->facts));
	obj->entries = calloc(1, sizeof(*obj->entries));
	if (!obj->insns || !obj->facts || !obj->entries)
		return -ENOMEM;
	obj->entry_count = 1;
	obj->entries[0].name = strdup("main");
	memcpy(obj->insns, insns, count * sizeof(*insns));
	obj->count = (uint32_t)count;
	obj->facts[0].start = true;
	return obj->entries[0].name ? 0 : -ENOMEM;
}

int ebpf_object_assemble(const struct ebpf_insn *insns, size_t count,
			 const struct ebpf_helpers *helpers, unsigned int flags,
			 struct ebpf_object **out, struct ebpf_error *err)
{
	struct ebpf_object *obj;
	int ret;

	error_begin(err);
	if (!count)
		return ebpf_refuse(NULL, err, -EINVAL, EBPF_NO_PC, "there are no instructions");
	if (count > EBPF_INSNS_MAX)
		return ebpf_refuse(NULL, err, -E2BIG, EBPF_NO_PC, "more than %d instructions",
				   EBPF_INSNS_MAX);
	obj = calloc(1, sizeof(*obj));
	if (!obj)
		return -ENOMEM;
	obj->helpers = helpers;
	ret = assemble(obj, insns, count);
	if (!ret)
		ret = verify(obj, flags, err);
	if (ret)
		ebpf_object_destroy(obj);
	else
		*out = obj;
	return ret;
}

void ebpf_object_destroy(struct ebpf_object *obj)
{
	if (!obj)
		return;
	ebpf_jit_destroy(obj->jit);
	for (size_t i = 0; i < obj->entry_count; i++)
		free(obj->entries[i].name);
	free(obj->entries);
	free(obj->insns);
	free(obj->facts);
	free(obj->constants);
	free(obj->data);
	free(obj->lines);
	free(obj->strings);
	free(obj);
}

int ebpf_object_entry(const struct ebpf_object *obj, const char *name, uint32_t *pc)
{
	for (size_t i = 0; i < obj->entry_count; i++)
		if (!name || !strcmp(obj->entries[i].name, name)) {
			*pc = obj->entries[i].pc;
			return 0;
		}
	return -ENOENT;
}

const char *ebpf_object_entry_name(const struct ebpf_object *obj, size_t i)
{
	return i < obj->entry_count ? obj->entries[i].name : NULL;
}

bool ebpf_object_has_jit(const struct ebpf_object *obj)
{
	return obj->jit;
}

size_t ebpf_object_code_size(const struct ebpf_object *obj)
{
	return obj->jit ? ebpf_jit_size(obj->jit) : 0;
}

const struct ebpf_insn *ebpf_object_insns(const struct ebpf_object *obj, size_t *count)
{
	*count = obj->count;
	return obj->insns;
}
