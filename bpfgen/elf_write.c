/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finished code as an ELF file, as small as a loader takes it: the header, the code, symbols, the
 * strings of both tables of names, the table of sections. Functions without a name are local
 * symbols, which a symbol table has before the global ones.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "bpfgen/inside.h"

enum { MACHINE_BPF = 247 };
enum section { SECTION_NONE, SECTION_TEXT, SECTION_SYMBOLS, SECTION_STRINGS, SECTIONS };

static const char section_names[] = "\0.text\0.symtab\0.strtab";
enum { NAME_TEXT = 1, NAME_SYMTAB = 7, NAME_STRTAB = 15 };

struct file {
	size_t symbols, strings, sections, len; /* offsets */
	size_t symbol_count, local_count;
	uint8_t *bytes;
};

static void file_plan(const struct bpfgen_code *c, struct file *f)
{
	size_t names = sizeof(section_names);

	f->symbol_count = c->entry_count + 1;
	f->local_count = 1;
	for (size_t i = 0; i < c->entry_count; i++) {
		names += strlen(c->entries[i].name) + 1;
		f->local_count += !*c->entries[i].name;
	}
	f->symbols = sizeof(Elf64_Ehdr) + c->insn_count * sizeof(struct ebpf_insn);
	f->strings = f->symbols + f->symbol_count * sizeof(Elf64_Sym);
	f->sections = base_align_up(f->strings + names, 8);
	f->len = f->sections + SECTIONS * sizeof(Elf64_Shdr);
}

static void header_write(struct file *f)
{
	Elf64_Ehdr eh = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_REL,
		.e_machine = MACHINE_BPF,
		.e_version = EV_CURRENT,
		.e_shoff = f->sections,
		.e_ehsize = sizeof(eh),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTIONS,
		.e_shstrndx = SECTION_STRINGS,
	};

	memcpy(f->bytes, &eh, sizeof(eh));
}

static void symbols_write(const struct bpfgen_code *c, struct file *f)
{
	Elf64_Sym *local = (Elf64_Sym *)(f->bytes + f->symbols) + 1;
	Elf64_Sym *global = (Elf64_Sym *)(f->bytes + f->symbols) + f->local_count;
	char *names = (char *)f->bytes + f->strings, *name = names + sizeof(section_names);

	memcpy(names, section_names, sizeof(section_names));
	for (size_t i = 0; i < c->entry_count; i++) {
		const struct bpfgen_entry *e = &c->entries[i];
		unsigned int binding = *e->name ? STB_GLOBAL : STB_LOCAL;
		Elf64_Sym sym = { .st_name = (Elf64_Word)(name - names),
				  .st_info = ELF64_ST_INFO(binding, STT_FUNC),
				  .st_shndx = SECTION_TEXT,
				  .st_value = bpfgen_entry_pc(c, e) * sizeof(struct ebpf_insn) };

		memcpy(*e->name ? global++ : local++, &sym, sizeof(sym));
		memcpy(name, e->name, strlen(e->name) + 1);
		name += strlen(e->name) + 1;
	}
}

static void sections_write(const struct bpfgen_code *c, struct file *f)
{
	Elf64_Shdr list[SECTIONS] = {
		[SECTION_TEXT] = { .sh_name = NAME_TEXT,
				   .sh_type = SHT_PROGBITS,
				   .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				   .sh_offset = sizeof(Elf64_Ehdr),
				   .sh_size = c->insn_count * sizeof(struct ebpf_insn),
				   .sh_addralign = 8 },
		[SECTION_SYMBOLS] = { .sh_name = NAME_SYMTAB,
				      .sh_type = SHT_SYMTAB,
				      .sh_offset = f->symbols,
				      .sh_size = f->symbol_count * sizeof(Elf64_Sym),
				      .sh_link = SECTION_STRINGS,
				      .sh_info = (Elf64_Word)f->local_count,
				      .sh_addralign = 8,
				      .sh_entsize = sizeof(Elf64_Sym) },
		[SECTION_STRINGS] = { .sh_name = NAME_STRTAB,
				      .sh_type = SHT_STRTAB,
				      .sh_offset = f->strings,
				      .sh_size = f->sections - f->strings,
				      .sh_addralign = 1 },
	};

	memcpy(f->bytes + f->sections, list, sizeof(list));
}

int bpfgen_code_elf(const struct bpfgen_code *c, void **elf, size_t *len)
{
	struct file f = { 0 };

	if (!c->insns || c->error)
		return -EINVAL;
	file_plan(c, &f);
	f.bytes = calloc(1, f.len);
	if (!f.bytes)
		return -ENOMEM;
	header_write(&f);
	memcpy(f.bytes + sizeof(Elf64_Ehdr), c->insns, c->insn_count * sizeof(*c->insns));
	symbols_write(c, &f);
	sections_write(c, &f);
	*elf = f.bytes;
	*len = f.len;
	return 0;
}

int bpfgen_code_object(const struct bpfgen_code *c, const struct ebpf_helpers *helpers,
		       unsigned int flags, struct ebpf_object **out, struct ebpf_error *err)
{
	size_t len = 0;
	void *elf = NULL;
	int ret = bpfgen_code_elf(c, &elf, &len);

	if (!ret)
		ret = ebpf_object_load(elf, len, helpers, flags, out, err);
	free(elf);
	return ret;
}
