/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Relocations of an object file. Symbols of .rodata, .data and .bss get the addresses at which
 * the program sees them; calls get their distance, or the id of the helper that the undefined
 * name means.
 *
 * Addresses of functions are refused: there are no calls through pointers. What is patched is
 * checked to be what the relocation says: a 64-bit constant, a call, or eight bytes of data.
 */
#include <string.h>

#include "bpf/elffile.h"

enum { RELOC_64_64 = 1, RELOC_ABS64 = 2, RELOC_64_32 = 10 };
enum { RELOCATIONS_MAX = 1 << 18 }; /* of all tables, which may be the same one */

struct target {
	enum elf_kind kind; /* ELF_OTHER: undefined */
	const char *name;
	uint64_t value; /* an address, or an instruction's number */
};

static int symbol_find(struct elf_file *f, uint64_t index, struct target *out)
{
	const struct elf_section *s;
	Elf64_Sym sym;

	if (!f->symbols || index >= f->symbols->head.sh_size / sizeof(sym))
		return elf_refuse(f, -ENOEXEC, "a relocation has no symbol");
	memcpy(&sym, f->bytes + f->symbols->head.sh_offset + index * sizeof(sym), sizeof(sym));
	s = elf_section_at(f, sym.st_shndx);
	*out = (struct target){ .name = elf_string(f, elf_section_at(f, f->symbols->head.sh_link),
						   sym.st_name) };
	if (sym.st_shndx == SHN_UNDEF)
		return 0;
	if (s && ELF64_ST_TYPE(sym.st_info) == STT_SECTION)
		out->name = s->name;
	if (!s || s->kind == ELF_OTHER || sym.st_value > s->head.sh_size)
		return elf_refuse(f, -ENOEXEC, "symbol %.64s is in no section of code or data",
				  out->name);
	out->kind = s->kind;
	if (s->kind == ELF_CODE)
		out->value = s->base + sym.st_value / 8;
	else
		out->value = s->base + sym.st_value +
			     (s->kind == ELF_DATA ? EBPF_DATA_ADDR : EBPF_CONSTANTS_ADDR);
	return 0;
}

static int refuse_symbol(struct elf_file *f, const struct target *to)
{
	if (to->kind == ELF_CODE)
		return elf_refuse(f, -ENOEXEC, "the address of a function is taken, in %.64s",
				  to->name);
	return elf_refuse(f, -ENOEXEC, "symbol %.64s is not defined", to->name);
}

static int constant_patch(struct elf_file *f, uint32_t pc, const struct target *to)
{
	struct ebpf_insn *in = &f->obj->insns[pc];
	uint64_t value;

	if (in->code != EBPF_LDDW || pc + 1 >= f->obj->count)
		return elf_refuse(f, -ENOEXEC, "a relocation of no 64-bit constant");
	if (to->kind == ELF_CODE || to->kind == ELF_OTHER)
		return refuse_symbol(f, to);
	value = to->value + (uint32_t)in[0].imm + ((uint64_t)(uint32_t)in[1].imm << 32);
	in[0].imm = (int32_t)value;
	in[1].imm = (int32_t)(value >> 32);
	return 0;
}

static int helper_patch(struct elf_file *f, struct ebpf_insn *in, const char *name)
{
	const struct ebpf_helpers *helpers = f->obj->helpers;

	for (size_t i = 0; helpers && i < helpers->count; i++)
		if (!strcmp(helpers->list[i].name, name)) {
			in->regs = EBPF_CALL_HELPER << 4;
			in->imm = (int32_t)helpers->list[i].id;
			return 0;
		}
	return elf_refuse(f, -ENOEXEC, "function %.64s is not defined, nor a helper", name);
}

/* clang leaves in imm what is to be added, counted from the next instruction */
static int call_patch(struct elf_file *f, uint32_t pc, const struct target *to)
{
	struct ebpf_insn *in = &f->obj->insns[pc];

	if (in->code != EBPF_CALL_CODE)
		return elf_refuse(f, -ENOEXEC, "a relocation of no call");
	if (to->kind == ELF_OTHER)
		return helper_patch(f, in, to->name);
	if (to->kind != ELF_CODE)
		return elf_refuse(f, -ENOEXEC, "a call of %.64s, which is no function", to->name);
	in->regs = EBPF_CALL_LOCAL << 4;
	in->imm = (int32_t)((int64_t)to->value + in->imm - (int64_t)pc);
	return 0;
}

static int data_patch(struct elf_file *f, uint8_t *at, const struct target *to)
{
	uint64_t value;

	if (to->kind == ELF_CODE || to->kind == ELF_OTHER)
		return refuse_symbol(f, to);
	memcpy(&value, at, sizeof(value));
	value += to->value;
	memcpy(at, &value, sizeof(value));
	return 0;
}

static int relocation_apply(struct elf_file *f, const struct elf_section *s, const Elf64_Rel *rel)
{
	uint32_t type = ELF64_R_TYPE(rel->r_info);
	struct target to = { 0 };
	int ret = symbol_find(f, ELF64_R_SYM(rel->r_info), &to);

	if (ret)
		return ret;
	if (rel->r_offset >= s->head.sh_size || s->head.sh_size - rel->r_offset < 8)
		return elf_refuse(f, -ENOEXEC, "a relocation lies outside of its section");
	if (s->kind == ELF_CODE && rel->r_offset % 8 == 0 && type == RELOC_64_64)
		return constant_patch(f, (uint32_t)(s->base + rel->r_offset / 8), &to);
	if (s->kind == ELF_CODE && rel->r_offset % 8 == 0 && type == RELOC_64_32)
		return call_patch(f, (uint32_t)(s->base + rel->r_offset / 8), &to);
	if (s->kind == ELF_CONSTANTS && type == RELOC_ABS64)
		return data_patch(f, f->obj->constants + s->base + rel->r_offset, &to);
	if (s->kind == ELF_DATA && type == RELOC_ABS64)
		return data_patch(f, f->obj->data + s->base + rel->r_offset, &to);
	return elf_refuse(f, -ENOEXEC, "a relocation of unknown type %u in %.64s", type, s->name);
}

static int table_apply(struct elf_file *f, const struct elf_section *table,
		       const struct elf_section *s)
{
	size_t count = table->head.sh_size / sizeof(Elf64_Rel);
	int ret = 0;

	if (table->head.sh_entsize != sizeof(Elf64_Rel))
		return elf_refuse(f, -ENOEXEC, "relocations of an unknown size");
	if (count > RELOCATIONS_MAX - f->relocations)
		return elf_refuse(f, -E2BIG, "more than %d relocations", RELOCATIONS_MAX);
	f->relocations += count;
	for (size_t i = 0; i < count && !ret; i++) {
		Elf64_Rel rel;

		memcpy(&rel, f->bytes + table->head.sh_offset + i * sizeof(rel), sizeof(rel));
		ret = relocation_apply(f, s, &rel);
	}
	return ret;
}

int elf_relocate(struct elf_file *f)
{
	int ret = 0;

	for (size_t i = 1; i < f->count && !ret; i++) {
		const struct elf_section *table = &f->sections[i];
		const struct elf_section *s = elf_section_at(f, table->head.sh_info);

		if (!s || s->kind == ELF_OTHER)
			continue;
		if (table->head.sh_type == SHT_REL)
			ret = table_apply(f, table, s);
		else if (table->head.sh_type == SHT_RELA)
			ret = elf_refuse(f, -ENOEXEC, "relocations with addends of their own");
	}
	return ret;
}
