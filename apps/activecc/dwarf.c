/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Source lines of an assembled object, from the line program that clang -g writes for it (DWARF 5,
 * section 6.2). The loader knows source lines from .BTF.ext only, which clang makes for C alone;
 * assembler.c turns one into the other.
 *
 * Everything that is read lies in a span, and reading behind its end gives 0 and marks it damaged.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "apps/activecc/dwarf.h"

struct span {
	const uint8_t *begin, *at, *end;
	bool damaged;
};

struct file {
	const uint8_t *bytes;
	size_t len;
	Elf64_Ehdr head;
	const char *names; /* of sections; they end inside of the file */
	size_t names_size;
	Elf64_Shdr lines, relocations, symbols; /* sh_size is 0 for one that is not there */
};

/* What the line program changes, and what it never changes */
struct machine {
	uint64_t addr;
	uint64_t line; /* what is below 0 has wrapped, and counts as none */
	uint64_t file;
	uint32_t section;
	int line_base;
	unsigned int line_range, opcode_base, unit;
	uint8_t operands[256]; /* of the standard opcodes */
};

/* --- reading ---------------------------------------------------------------------------------- */

static uint64_t number(struct span *s, unsigned int bytes)
{
	uint64_t value = 0;

	if ((size_t)(s->end - s->at) < bytes) {
		s->damaged = true;
		s->at = s->end;
		return 0;
	}
	memcpy(&value, s->at, bytes);
	s->at += bytes;
	return value;
}

static void skip(struct span *s, uint64_t bytes)
{
	if ((uint64_t)(s->end - s->at) < bytes) {
		s->damaged = true;
		s->at = s->end;
	} else {
		s->at += bytes;
	}
}

/* LEB128; *shift: behind its last bit */
static uint64_t leb(struct span *s, unsigned int *shift)
{
	uint64_t value = 0, byte;

	*shift = 0;
	do {
		byte = number(s, 1);
		if (*shift < 64)
			value |= (byte & 0x7f) << *shift;
		*shift += 7;
	} while (byte & 0x80);
	return value;
}

static uint64_t unsigned_read(struct span *s)
{
	unsigned int shift;

	return leb(s, &shift);
}

static int64_t signed_read(struct span *s)
{
	unsigned int shift;
	uint64_t value = leb(s, &shift);

	if (shift < 64 && value >> (shift - 1) & 1)
		value |= UINT64_MAX << shift;
	return (int64_t)value;
}

/* --- sections --------------------------------------------------------------------------------- */

/* One without bytes in the file counts as empty */
static bool section_at(const struct file *f, size_t i, Elf64_Shdr *sh)
{
	if (i >= f->head.e_shnum)
		return false;
	memcpy(sh, f->bytes + f->head.e_shoff + i * sizeof(*sh), sizeof(*sh));
	if (sh->sh_type == SHT_NOBITS)
		sh->sh_size = sh->sh_offset = 0;
	return sh->sh_offset <= f->len && sh->sh_size <= f->len - sh->sh_offset;
}

static const char *section_name(const struct file *f, const Elf64_Shdr *sh)
{
	return sh->sh_name < f->names_size ? f->names + sh->sh_name : "";
}

static bool file_open(struct file *f, const void *elf, size_t len)
{
	Elf64_Shdr names, sh;

	*f = (struct file){ .bytes = elf, .len = len };
	if (len < sizeof(f->head))
		return false;
	memcpy(&f->head, elf, sizeof(f->head));
	if (f->head.e_shoff > len || f->head.e_shnum > (len - f->head.e_shoff) / sizeof(sh) ||
	    !section_at(f, f->head.e_shstrndx, &names) || !names.sh_size)
		return false;
	f->names = (const char *)f->bytes + names.sh_offset;
	f->names_size = names.sh_size;
	if (f->names[f->names_size - 1])
		return false;
	for (size_t i = 1; i < f->head.e_shnum; i++) {
		if (!section_at(f, i, &sh))
			return false;
		if (!strcmp(section_name(f, &sh), ".BTF"))
			return false; /* it has source lines that the loader knows */
		if (!strcmp(section_name(f, &sh), ".debug_line"))
			f->lines = sh;
		else if (!strcmp(section_name(f, &sh), ".rel.debug_line"))
			f->relocations = sh;
		else if (sh.sh_type == SHT_SYMTAB)
			f->symbols = sh;
	}
	return f->lines.sh_size;
}

/* The section whose address stands at this offset of the line program; 0: none is known */
static uint32_t section_of(const struct file *f, uint64_t offset)
{
	for (size_t i = 0; i < f->relocations.sh_size / sizeof(Elf64_Rel); i++) {
		Elf64_Rel rel;
		Elf64_Sym sym;

		memcpy(&rel, f->bytes + f->relocations.sh_offset + i * sizeof(rel), sizeof(rel));
		if (rel.r_offset != offset ||
		    ELF64_R_SYM(rel.r_info) >= f->symbols.sh_size / sizeof(sym))
			continue;
		memcpy(&sym,
		       f->bytes + f->symbols.sh_offset + ELF64_R_SYM(rel.r_info) * sizeof(sym),
		       sizeof(sym));
		return sym.st_shndx;
	}
	return 0;
}

/* --- the line program ------------------------------------------------------------------------- */

static bool row_add(struct dwarf_lines *lines, const struct machine *m)
{
	struct dwarf_row row = { m->section, (uint32_t)m->addr,
				 m->file || m->line > UINT32_MAX ? 0 : (uint32_t)m->line };
	struct dwarf_row *last = lines->count ? &lines->rows[lines->count - 1] : NULL, *more;

	if (!m->section)
		return true;
	if (last && last->section == row.section && last->addr == row.addr) {
		*last = row;
		return true;
	}
	more = realloc(lines->rows, (lines->count + 1) * sizeof(*more));
	if (!more)
		return false;
	lines->rows = more;
	more[lines->count++] = row;
	return true;
}

static void extended(const struct file *f, struct span *s, struct machine *m)
{
	uint64_t len = unsigned_read(s);
	const uint8_t *begin = s->at;
	uint8_t opcode = (uint8_t)number(s, 1);

	if (opcode == 1) { /* the end of a sequence */
		m->addr = 0;
		m->line = m->file = 1;
		m->section = 0;
	} else if (opcode == 2) { /* the address */
		m->section = section_of(f, (uint64_t)(s->at - s->begin));
		m->addr = number(s, 8);
	}
	if ((uint64_t)(s->at - begin) <= len)
		skip(s, len - (uint64_t)(s->at - begin));
	else
		s->damaged = true;
}

static void standard(struct span *s, struct machine *m, uint8_t opcode)
{
	switch (opcode) {
	case 2:
		m->addr += unsigned_read(s) * m->unit;
		break;
	case 3:
		m->line += (uint64_t)signed_read(s);
		break;
	case 4:
		m->file = unsigned_read(s);
		break;
	case 8:
		m->addr += (uint64_t)((255 - m->opcode_base) / m->line_range) * m->unit;
		break;
	case 9:
		m->addr += number(s, 2);
		break;
	default:
		for (unsigned int i = 0; i < m->operands[opcode]; i++)
			unsigned_read(s);
	}
}

static bool program_run(const struct file *f, struct span *s, struct machine *m,
			struct dwarf_lines *lines)
{
	bool good = true;

	while (good && s->at < s->end && !s->damaged) {
		uint8_t opcode = (uint8_t)number(s, 1);

		if (opcode >= m->opcode_base) {
			unsigned int step = opcode - m->opcode_base;

			m->addr += (uint64_t)(step / m->line_range) * m->unit;
			m->line += (uint64_t)(int64_t)m->line_base + step % m->line_range;
			good = row_add(lines, m);
		} else if (opcode == 1) {
			good = row_add(lines, m);
		} else if (opcode) {
			standard(s, m, opcode);
		} else {
			extended(f, s, m);
		}
	}
	return good && !s->damaged;
}

/* The head of a unit's program; @s is then at the program itself */
static bool head_read(struct span *s, struct machine *m)
{
	uint64_t version = number(s, 2), len;
	const uint8_t *begin;

	*m = (struct machine){ .line = 1, .file = 1 };
	if (version != 5)
		return false;
	number(s, 2); /* sizes of an address and of a segment */
	len = number(s, 4);
	begin = s->at;
	m->unit = (unsigned int)number(s, 1);
	number(s, 2);
	m->line_base = (int8_t)number(s, 1);
	m->line_range = (unsigned int)number(s, 1);
	m->opcode_base = (unsigned int)number(s, 1);
	for (unsigned int i = 1; i < m->opcode_base; i++)
		m->operands[i] = (uint8_t)number(s, 1);
	if (!m->line_range || !m->opcode_base || len < (uint64_t)(s->at - begin))
		return false;
	skip(s, len - (uint64_t)(s->at - begin));
	return !s->damaged;
}

bool dwarf_lines_read(struct dwarf_lines *lines, const void *elf, size_t len)
{
	struct file f;
	struct span all, unit;
	struct machine m;
	bool good = file_open(&f, elf, len);

	*lines = (struct dwarf_lines){ 0 };
	if (!good)
		return false;
	all.begin = all.at = f.bytes + f.lines.sh_offset;
	all.end = all.begin + f.lines.sh_size;
	all.damaged = false;
	while (good && all.at < all.end) {
		uint64_t size = number(&all, 4);

		unit = all;
		skip(&all, size);
		unit.end = all.at;
		good = !all.damaged && head_read(&unit, &m) && program_run(&f, &unit, &m, lines);
	}
	if (!good)
		dwarf_lines_free(lines);
	return good && lines->count;
}

void dwarf_lines_free(struct dwarf_lines *lines)
{
	free(lines->rows);
	*lines = (struct dwarf_lines){ 0 };
}

bool dwarf_section_name(const void *elf, size_t len, uint32_t section, char *name, size_t room)
{
	struct file f;
	Elf64_Shdr sh;

	if (!file_open(&f, elf, len) || !section_at(&f, section, &sh) ||
	    strlen(section_name(&f, &sh)) >= room)
		return false;
	strcpy(name, section_name(&f, &sh));
	return true;
}
