/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads an ELF object as clang -target bpf makes it: finds the sections of code, constants and
 * data, puts those of a kind behind one another, and takes the functions from the symbol table.
 *
 * The file may come from anybody. Invariants: the header of each section is checked, with the
 * bounds of its contents, before any is used (section_read); a string is used only if it ends
 * inside of its table; nothing points into the file when ebpf_elf_read() returns.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "bpf/elffile.h"

enum { MACHINE_BPF = 247, SECTIONS_MAX = 4096, ENTRIES_MAX = 4096 };
/* Tables may lie over one another, and strings too: what is looked at again and again is short */
enum { STRING_MAX = 4096, SECTION_NAME_MAX = 255 };

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "objects are in the host's byte order");

const char *elf_string(const struct elf_file *f, const struct elf_section *table, uint64_t at)
{
	const char *s;
	size_t most;

	if (!table || table->head.sh_type != SHT_STRTAB || at >= table->head.sh_size)
		return "";
	s = (const char *)f->bytes + table->head.sh_offset + at;
	most = base_min(table->head.sh_size - at, (Elf64_Xword)STRING_MAX);
	return memchr(s, 0, most) ? s : "";
}

const struct elf_section *elf_section_at(const struct elf_file *f, uint64_t index)
{
	return index && index < f->count && index < SHN_LORESERVE ? &f->sections[index] : NULL;
}

const struct elf_section *elf_section_named(const struct elf_file *f, const char *name)
{
	for (size_t i = 1; i < f->count; i++)
		if (!strcmp(f->sections[i].name, name))
			return &f->sections[i];
	return NULL;
}

static enum elf_kind kind_of(const Elf64_Shdr *head)
{
	bool bits = head->sh_type == SHT_PROGBITS || head->sh_type == SHT_NOBITS;

	if (!bits || !(head->sh_flags & SHF_ALLOC) || !head->sh_size)
		return ELF_OTHER;
	if (head->sh_flags & SHF_EXECINSTR)
		return ELF_CODE;
	return head->sh_flags & SHF_WRITE ? ELF_DATA : ELF_CONSTANTS;
}

static int section_read(struct elf_file *f, const uint8_t *at, struct elf_section *s)
{
	memcpy(&s->head, at, sizeof(s->head));
	s->name = "";
	s->kind = kind_of(&s->head);
	if (s->head.sh_type != SHT_NOBITS && s->head.sh_type != SHT_NULL &&
	    (s->head.sh_offset > f->len || s->head.sh_size > f->len - s->head.sh_offset))
		return elf_refuse(f, -ENOEXEC, "a section lies outside of the file");
	if (s->kind == ELF_CODE && (s->head.sh_size % 8 || s->head.sh_type != SHT_PROGBITS))
		return elf_refuse(f, -ENOEXEC, "a section of code holds no whole instructions");
	if (s->kind != ELF_OTHER && s->head.sh_addralign > 4096)
		return elf_refuse(f, -ENOEXEC, "a section wants more alignment than 4096");
	return 0;
}

static int header_check(struct elf_file *f, Elf64_Ehdr *eh)
{
	static const uint8_t ident[] = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT };

	if (f->len < sizeof(*eh) || memcmp(f->bytes, ident, sizeof(ident)))
		return elf_refuse(f, -ENOEXEC, "not a little-endian ELF object of 64 bits");
	memcpy(eh, f->bytes, sizeof(*eh));
	if (eh->e_machine != MACHINE_BPF || eh->e_type != ET_REL)
		return elf_refuse(f, -ENOEXEC, "not an object of clang -target bpf");
	if (!eh->e_shnum || eh->e_shnum > SECTIONS_MAX || eh->e_shentsize != sizeof(Elf64_Shdr) ||
	    eh->e_shoff > f->len || eh->e_shnum * sizeof(Elf64_Shdr) > f->len - eh->e_shoff)
		return elf_refuse(f, -ENOEXEC, "the table of sections lies outside of the file");
	return 0;
}

static int sections_read(struct elf_file *f)
{
	const struct elf_section *names;
	Elf64_Ehdr eh;
	int ret = header_check(f, &eh);

	if (ret)
		return ret;
	f->sections = calloc(eh.e_shnum, sizeof(*f->sections));
	if (!f->sections)
		return -ENOMEM;
	f->count = eh.e_shnum;
	for (size_t i = 0; i < f->count && !ret; i++)
		ret = section_read(f, f->bytes + eh.e_shoff + i * sizeof(Elf64_Shdr),
				   &f->sections[i]);
	if (ret)
		return ret;
	names = elf_section_at(f, eh.e_shstrndx);
	for (size_t i = 1; i < f->count; i++) {
		f->sections[i].name = elf_string(f, names, f->sections[i].head.sh_name);
		if (strlen(f->sections[i].name) > SECTION_NAME_MAX)
			return elf_refuse(f, -E2BIG, "a section has a name of more than %d bytes",
					  SECTION_NAME_MAX);
		if (f->sections[i].head.sh_type == SHT_SYMTAB && !f->symbols)
			f->symbols = &f->sections[i];
	}
	if (f->symbols && f->symbols->head.sh_entsize != sizeof(Elf64_Sym))
		return elf_refuse(f, -ENOEXEC, "symbols of an unknown size");
	return 0;
}

/* Where this section goes in the memory of its kind, which grows by it; false over @most */
static bool section_place(struct elf_section *s, size_t *size, size_t most)
{
	size_t at = base_align_up(*size, base_max(s->head.sh_addralign, (Elf64_Xword)8));

	if (s->head.sh_addralign && !base_is_pow2(s->head.sh_addralign))
		return false;
	if (at > most || s->head.sh_size > most - at)
		return false;
	s->base = at;
	*size = at + s->head.sh_size;
	return true;
}

static int sections_place(struct elf_file *f)
{
	struct ebpf_object *obj = f->obj;

	for (size_t i = 1; i < f->count; i++) {
		struct elf_section *s = &f->sections[i];
		bool good = true;

		if (s->kind == ELF_CODE) {
			s->base = obj->count;
			good = s->head.sh_size / 8 <= EBPF_INSNS_MAX - obj->count;
			obj->count += good ? (uint32_t)(s->head.sh_size / 8) : 0;
		} else if (s->kind == ELF_CONSTANTS) {
			good = section_place(s, &obj->constants_size, EBPF_CONSTANTS_MAX);
		} else if (s->kind == ELF_DATA) {
			good = section_place(s, &obj->data_size, EBPF_DATA_MAX);
		}
		if (!good)
			return elf_refuse(f, -E2BIG, "section %.64s is too large", s->name);
	}
	return obj->count ? 0 : elf_refuse(f, -ENOEXEC, "the object holds no code");
}

static void contents_copy(struct elf_file *f)
{
	struct ebpf_object *obj = f->obj;

	for (size_t i = 1; i < f->count; i++) {
		const struct elf_section *s = &f->sections[i];
		uint8_t *to[] = { [ELF_CODE] = (uint8_t *)(obj->insns + s->base),
				  [ELF_CONSTANTS] = obj->constants + s->base,
				  [ELF_DATA] = obj->data + s->base };

		if (s->kind != ELF_OTHER && s->head.sh_type != SHT_NOBITS)
			memcpy(to[s->kind], f->bytes + s->head.sh_offset, s->head.sh_size);
	}
}

static int contents_read(struct elf_file *f)
{
	struct ebpf_object *obj = f->obj;
	int ret = sections_place(f);

	if (ret)
		return ret;
	obj->insns = calloc(obj->count, sizeof(*obj->insns));
	obj->facts = calloc(obj->count, sizeof(*obj->facts));
	obj->constants = calloc(1, obj->constants_size + 1);
	obj->data = calloc(1, obj->data_size + 1);
	if (!obj->insns || !obj->facts || !obj->constants || !obj->data)
		return -ENOMEM;
	contents_copy(f);
	return 0;
}

static int entry_add(struct elf_file *f, const char *name, uint32_t pc)
{
	struct ebpf_object *obj = f->obj;
	struct ebpf_entry *more;

	if (obj->entry_count == ENTRIES_MAX)
		return elf_refuse(f, -E2BIG, "more than %d functions", ENTRIES_MAX);
	more = realloc(obj->entries, (obj->entry_count + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	obj->entries = more;
	more[obj->entry_count] = (struct ebpf_entry){ strndup(name, 255), pc };
	if (!more[obj->entry_count].name)
		return -ENOMEM;
	obj->entry_count++;
	return 0;
}

/* Each function begins somewhere; a global one that is not hidden can be run */
static int function_read(struct elf_file *f, const Elf64_Sym *sym)
{
	const struct elf_section *s = elf_section_at(f, sym->st_shndx);
	const struct elf_section *names = elf_section_at(f, f->symbols->head.sh_link);
	uint32_t pc;

	if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || !s || s->kind != ELF_CODE)
		return 0;
	if (sym->st_value % 8 || sym->st_value >= s->head.sh_size)
		return elf_refuse(f, -ENOEXEC, "a function lies outside of its section");
	pc = (uint32_t)(s->base + sym->st_value / 8);
	f->obj->facts[pc].start = true;
	if (ELF64_ST_BIND(sym->st_info) == STB_LOCAL ||
	    ELF64_ST_VISIBILITY(sym->st_other) == STV_HIDDEN)
		return 0;
	return entry_add(f, elf_string(f, names, sym->st_name), pc);
}

static int functions_read(struct elf_file *f)
{
	size_t count = f->symbols ? f->symbols->head.sh_size / sizeof(Elf64_Sym) : 0;
	int ret = 0;

	for (size_t i = 1; i < f->count; i++)
		if (f->sections[i].kind == ELF_CODE)
			f->obj->facts[f->sections[i].base].start = true;
	for (size_t i = 1; i < count && !ret; i++) {
		Elf64_Sym sym;

		memcpy(&sym, f->bytes + f->symbols->head.sh_offset + i * sizeof(sym), sizeof(sym));
		ret = function_read(f, &sym);
	}
	if (!ret && !f->obj->entry_count)
		ret = elf_refuse(f, -ENOEXEC, "the object has no global function");
	return ret;
}

int ebpf_elf_read(struct ebpf_object *obj, const void *elf, size_t len, struct ebpf_error *err)
{
	struct elf_file f = { .bytes = elf, .len = len, .obj = obj, .err = err };
	int ret = sections_read(&f);

	if (!ret)
		ret = contents_read(&f);
	if (!ret)
		ret = functions_read(&f);
	if (!ret)
		ret = elf_lines_read(&f);
	if (!ret)
		ret = elf_relocate(&f);
	free(f.sections);
	return ret;
}
