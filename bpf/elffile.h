/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_ELFFILE_H
#define BPF_ELFFILE_H

/*
 * An object file while it is read. Nothing of it is used before its place in the file is
 * checked.
 */

#include <elf.h>

#include "bpf/program.h"

enum elf_kind { ELF_OTHER, ELF_CODE, ELF_CONSTANTS, ELF_DATA };

struct elf_section {
	Elf64_Shdr head;
	enum elf_kind kind;
	uint64_t base; /* of code in instructions, of others in bytes, among those of its kind */
	const char *name;
};

struct elf_file {
	const uint8_t *bytes;
	size_t len;
	struct elf_section *sections;
	size_t count;
	const struct elf_section *symbols;
	size_t relocations; /* that were read */
	struct ebpf_object *obj;
	struct ebpf_error *err;
};

#define elf_refuse(f, error, ...) ebpf_refuse((f)->obj, (f)->err, error, EBPF_NO_PC, __VA_ARGS__)

/* bpf/elf.c; @at of a string table, "" for what is outside */
const char *elf_string(const struct elf_file *f, const struct elf_section *table, uint64_t at);
/* NULL for an index that has no section, the reserved ones included */
const struct elf_section *elf_section_at(const struct elf_file *f, uint64_t index);
const struct elf_section *elf_section_named(const struct elf_file *f, const char *name);
/* bpf/relocate.c */
int elf_relocate(struct elf_file *f);
/* bpf/lines.c */
int elf_lines_read(struct elf_file *f);

#endif
