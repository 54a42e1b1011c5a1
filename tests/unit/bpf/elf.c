/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects as clang makes them of tests/bpf/programs: constants, data, relocations, calls, source
 * lines; and the same objects cut, changed and damaged, which must be refused or be as good as
 * others.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>

#include "both.h"

enum { FILE_MAX = 1 << 17 };

static uint64_t memory[64] __attribute__((aligned(64)));

static int sum(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	*result = arg[0] + arg[1] + arg[2] + arg[3] + arg[4];
	return 0;
}

static const struct ebpf_helper list[] = { { "sum", 11, 5, sum },
					   { "output", 1, 2, ebpf_helper_output } };
static const struct ebpf_helpers helpers = { list, base_array_size(list) };

static uint8_t *file_read(const char *name, size_t *len)
{
	uint8_t *bytes = malloc(FILE_MAX);
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.object", BPF_PROGRAMS, name);
	f = fopen(path, "r");
	cr_assert(f, "%s", path);
	*len = fread(bytes, 1, FILE_MAX, f);
	cr_assert(*len > 0 && *len < FILE_MAX);
	fclose(f);
	return bytes;
}

static struct ebpf_object *load(const char *name, unsigned int flags)
{
	struct ebpf_object *obj = NULL;
	struct ebpf_error err;
	size_t len;
	uint8_t *bytes = file_read(name, &len);

	cr_assert(!ebpf_object_load(bytes, len, &helpers, flags, &obj, &err), "%s", err.text);
	free(bytes);
	return obj;
}

static const char *refusal(const char *name)
{
	static struct ebpf_error err;
	struct ebpf_object *obj = NULL;
	size_t len;
	uint8_t *bytes = file_read(name, &len);

	cr_assert(ebpf_object_load(bytes, len, &helpers, 0, &obj, &err));
	free(bytes);
	return err.text;
}

static struct ebpf_result run_entry(const struct ebpf_object *obj, const char *name, uint64_t arg,
				    void *output)
{
	const struct ebpf_region region = { memory, 0x1000, sizeof(memory), 0, EBPF_MAY_READ };
	struct ebpf_params params = { .arg = { arg },
				      .regions = &region,
				      .count = 1,
				      .output = output,
				      .output_room = output ? 64 : 0 };

	cr_assert_not(ebpf_object_entry(obj, name, &params.entry), "%s", name);
	return both_run_one(obj, &params, BOTH_FUEL);
}

static void gives(const char *entry, uint64_t arg, uint64_t want)
{
	for (unsigned int flags = 0; flags < 2; flags++) {
		struct ebpf_object *obj = load("all", flags);

		for (int i = 0; i < 2;
		     i++) { /* the second run finds the data of the first no more */
			struct ebpf_result r = run_entry(obj, entry, arg, NULL);

			cr_assert_eq(r.status, EBPF_DONE, "%s: %s", entry,
				     ebpf_status_text(r.status));
			cr_assert_eq(r.value, want, "%s(%lu): %lu", entry, arg, r.value);
		}
		ebpf_object_destroy(obj);
	}
}

Test(bpf_elf, constants)
{
	gives("constants", 0, 3 + 'h');
	gives("constants", 5 | 1 << 3, 9 + 'e');
	gives("constants", 7 | 4 << 3, 6 + 'o');
}

Test(bpf_elf, data_and_bss)
{
	gives("data", 2, 42 + 7 + 9);
}

Test(bpf_elf, pointers_in_data)
{
	gives("pointers", 0, 7000 + 'a');
	gives("pointers", 1, 7000 + 'h');
}

Test(bpf_elf, calls)
{
	gives("calls", 5, 11 + 110);
	gives("shared_function", 5, 110);
	gives("another_section", 5, 111);
}

Test(bpf_elf, helpers_by_id_and_by_name)
{
	gives("helpers", 5, 9005);
}

Test(bpf_elf, arrays_on_the_stack)
{
	uint64_t counts[8] = { 0 };

	for (uint64_t i = 0; i < 100; i++)
		counts[i * 5 % 8] += i;
	gives("stack_array", 100, counts[3] * 1000 + counts[5]);
}

Test(bpf_elf, a_list_in_a_region)
{
	for (uint64_t i = 0; i < 10; i++) {
		memory[2 * i] = i < 9 ? 0x1000 + 16 * (i + 1) : 0;
		memory[2 * i + 1] = i;
	}
	gives("walk", 0x1000, 45);
	gives("walk", 0, 0);
}

Test(bpf_elf, output_of_constants)
{
	struct ebpf_object *obj = load("all", 0);
	char output[64];
	struct ebpf_result r = run_entry(obj, "says_hello", 0, output);

	cr_assert_eq(r.output, 6);
	cr_assert_str_eq(output, "hello");
	ebpf_object_destroy(obj);
}

Test(bpf_elf, entries)
{
	struct ebpf_object *obj = load("all", 0);
	uint32_t pc, first;
	size_t n = 0;

	while (ebpf_object_entry_name(obj, n))
		cr_assert_not(ebpf_object_entry(obj, ebpf_object_entry_name(obj, n++), &pc));
	cr_assert_eq(n, 10);
	cr_assert_eq(ebpf_object_entry(obj, "twice", &pc), -ENOENT);
	cr_assert_eq(ebpf_object_entry(obj, "", &pc), -ENOENT);
	cr_assert(!ebpf_object_entry(obj, NULL, &first) &&
		  !ebpf_object_entry(obj, ebpf_object_entry_name(obj, 0), &pc) && first == pc);
	cr_assert_eq(ebpf_object_has_jit(obj), ebpf_object_code_size(obj) > 0);
	ebpf_object_destroy(obj);
}

/* --- lines and messages ----------------------------------------------------------------------- */

Test(bpf_elf, a_result_names_the_source_line)
{
	struct ebpf_object *obj = load("wild", 0);
	struct ebpf_result r = run_entry(obj, "wild", 0x666000, NULL);
	struct ebpf_line line;
	char text[500];

	cr_assert_eq(r.status, EBPF_ADDRESS);
	cr_assert_eq(r.addr, 0x666010);
	ebpf_object_line(obj, r.pc, &line);
	cr_assert_eq(line.line, 10);
	cr_assert(strstr(line.file, "wild.bpf.c"));
	cr_assert(strstr(line.text, "v += at[2]; /* line 10 */"));
	ebpf_result_text(&r, obj, text, sizeof(text));
	cr_assert(strstr(text, "wild.bpf.c:10: v += at[2];") && strstr(text, "at 0x666010"), "%s",
		  text);
	ebpf_object_destroy(obj);
}

Test(bpf_elf, a_refusal_names_the_source_line)
{
	const char *text = refusal("refused");

	cr_assert(strstr(text, "a write to constants; ") && strstr(text, "refused.bpf.c:9: "
									 "*(volatile unsigned long "
									 "*)&constant = 6; "
									 "/* line 9 */"),
		  "%s", text);
}

Test(bpf_elf, what_the_loader_refuses)
{
	cr_assert_str_eq(refusal("address"), "the address of a function is taken, in .text");
	cr_assert_str_eq(refusal("undefined"), "function nobody is not defined, nor a helper");
}

/* --- damaged objects -------------------------------------------------------------------------- */

/* Loads it, and runs all its entries if it is taken: nothing may happen to us. */
static bool taken(const uint8_t *bytes, size_t len)
{
	struct ebpf_object *obj = NULL;
	struct ebpf_error err = { .text = "" };
	/* of exactly this length, for tools that watch the bounds */
	uint8_t *copy = malloc(len ? len : 1);
	int ret;

	memcpy(copy, bytes, len);
	ret = ebpf_object_load(copy, len, &helpers, 0, &obj, &err);
	free(copy);
	if (ret) {
		cr_assert_neq(err.text[0], 0);
		return false;
	}
	for (size_t i = 0; ebpf_object_entry_name(obj, i); i++) {
		struct ebpf_params params = { 0 };

		ebpf_object_entry(obj, ebpf_object_entry_name(obj, i), &params.entry);
		both_run_one(obj, &params, 1000);
	}
	ebpf_object_destroy(obj);
	return true;
}

Test(bpf_elf, cut_anywhere, .timeout = 60)
{
	size_t len;
	uint8_t *bytes = file_read("all", &len);

	cr_assert(taken(bytes, len));
	for (size_t cut = 0; cut < len; cut += cut < 256 || cut > len - 4096 ? 1 : 7)
		cr_assert_not(taken(bytes, cut), "%zu of %zu", cut, len);
	free(bytes);
}

Test(bpf_elf, every_byte_changed, .timeout = 60)
{
	static const uint8_t with[] = { 0xff, 0x80, 0x01 };
	size_t len;
	uint8_t *bytes = file_read("wild", &len);

	for (size_t i = 0; i < len; i++)
		for (size_t j = 0; j < sizeof(with); j++) {
			bytes[i] ^= with[j];
			taken(bytes, len);
			bytes[i] ^= with[j];
		}
	free(bytes);
}

/* Where a part of the section table begins in the file */
static Elf64_Shdr *section(uint8_t *bytes, const char *name)
{
	Elf64_Ehdr *eh = (void *)bytes;
	Elf64_Shdr *sh = (void *)(bytes + eh->e_shoff);

	for (unsigned int i = 0; i < eh->e_shnum; i++)
		if (!strcmp((char *)bytes + sh[eh->e_shstrndx].sh_offset + sh[i].sh_name, name))
			return &sh[i];
	cr_assert(false, "no section %s", name);
	return NULL;
}

static const char *refusal_of(uint8_t *bytes, size_t len)
{
	static struct ebpf_error err;
	struct ebpf_object *obj = NULL;

	cr_assert_eq(ebpf_object_load(bytes, len, &helpers, 0, &obj, &err) < 0, true, "taken");
	free(bytes);
	return err.text;
}

Test(bpf_elf, sections_that_lie)
{
	uint8_t *bytes;
	size_t len;

	bytes = file_read("all", &len);
	section(bytes, ".bss")->sh_size = UINT64_MAX;
	cr_assert_str_eq(refusal_of(bytes, len), "section .bss is too large");
	bytes = file_read("all", &len);
	section(bytes, ".bss")->sh_size = EBPF_DATA_MAX + 1;
	cr_assert_str_eq(refusal_of(bytes, len), "section .bss is too large");
	bytes = file_read("all", &len);
	section(bytes, ".rodata")->sh_size = len;
	cr_assert_str_eq(refusal_of(bytes, len), "a section lies outside of the file");
	bytes = file_read("all", &len);
	section(bytes, ".data")->sh_offset = UINT64_MAX - 4;
	cr_assert_str_eq(refusal_of(bytes, len), "a section lies outside of the file");
	bytes = file_read("all", &len);
	section(bytes, ".text")->sh_size--;
	cr_assert_str_eq(refusal_of(bytes, len), "a section of code holds no whole instructions");
	bytes = file_read("all", &len);
	section(bytes, ".rodata")->sh_addralign = 12;
	cr_assert_str_eq(refusal_of(bytes, len), "section .rodata is too large");
	bytes = file_read("all", &len);
	section(bytes, ".symtab")->sh_entsize = 7;
	cr_assert_str_eq(refusal_of(bytes, len), "symbols of an unknown size");
	bytes = file_read("all", &len);
	section(bytes, ".rel.text")->sh_type = SHT_RELA;
	cr_assert_str_eq(refusal_of(bytes, len), "relocations with addends of their own");
}

Test(bpf_elf, relocations_that_lie)
{
	uint8_t *bytes;
	Elf64_Rel *rel;
	size_t len;

	bytes = file_read("all", &len);
	rel = (void *)(bytes + section(bytes, ".rel.text")->sh_offset);
	rel->r_offset = section(bytes, ".text")->sh_size - 4;
	cr_assert_str_eq(refusal_of(bytes, len), "a relocation lies outside of its section");
	bytes = file_read("all", &len);
	rel = (void *)(bytes + section(bytes, ".rel.text")->sh_offset);
	rel->r_offset += 8;
	cr_assert_str_eq(refusal_of(bytes, len), "a relocation of no 64-bit constant");
	bytes = file_read("all", &len);
	rel = (void *)(bytes + section(bytes, ".rel.text")->sh_offset);
	rel->r_info = ELF64_R_INFO(100000, 1);
	cr_assert_str_eq(refusal_of(bytes, len), "a relocation has no symbol");
	bytes = file_read("all", &len);
	rel = (void *)(bytes + section(bytes, ".rel.text")->sh_offset);
	rel->r_info = ELF64_R_INFO(ELF64_R_SYM(rel->r_info), 99);
	cr_assert_str_eq(refusal_of(bytes, len), "a relocation of unknown type 99 in .text");
	bytes = file_read("all", &len);
	rel = (void *)(bytes + section(bytes, ".rel.data")->sh_offset);
	rel->r_offset = section(bytes, ".data")->sh_size - 7;
	cr_assert_str_eq(refusal_of(bytes, len), "a relocation lies outside of its section");
}

/* So many bytes more behind the file: where they begin */
static size_t append(uint8_t **bytes, size_t *len, size_t more)
{
	size_t at = (*len + 7) & ~(size_t)7;

	*bytes = realloc(*bytes, at + more);
	cr_assert(*bytes);
	memset(*bytes + *len, 0, at + more - *len);
	*len = at + more;
	return at;
}

/* The headers of all sections, with room for so many, behind the file */
static Elf64_Shdr *sections_move(uint8_t **bytes, size_t *len, uint16_t count)
{
	size_t at = append(bytes, len, count * sizeof(Elf64_Shdr));
	Elf64_Ehdr *eh = (void *)*bytes;

	memcpy(*bytes + at, *bytes + eh->e_shoff, eh->e_shnum * sizeof(Elf64_Shdr));
	eh->e_shoff = at;
	eh->e_shnum = count;
	return (void *)(*bytes + at);
}

/* 8 million, of a file of some 300 KiB */
Test(bpf_elf, relocations_that_are_read_again)
{
	enum { SECTIONS = 4000, RELS = 2000 };
	size_t len, at, old;
	uint8_t *bytes = file_read("all", &len);
	Elf64_Shdr *all, from;
	Elf64_Rel rel;

	memcpy(&rel, bytes + section(bytes, ".rel.text")->sh_offset, sizeof(rel));
	at = append(&bytes, &len, RELS * sizeof(rel));
	for (size_t i = 0; i < RELS; i++)
		memcpy(bytes + at + i * sizeof(rel), &rel, sizeof(rel));
	from = *section(bytes, ".rel.text");
	from.sh_offset = at;
	from.sh_size = RELS * sizeof(rel);
	old = ((Elf64_Ehdr *)bytes)->e_shnum;
	all = sections_move(&bytes, &len, SECTIONS);
	for (size_t i = old; i < SECTIONS; i++)
		all[i] = from;
	cr_assert_str_eq(refusal_of(bytes, len), "more than 262144 relocations");
}

/* The object with so many parts of its line table, each of no line at all, of a section of code */
static uint8_t *with_parts(size_t parts, size_t *len)
{
	uint8_t *bytes = file_read("all", len);
	size_t old = section(bytes, ".BTF.ext")->sh_offset, at;
	uint32_t *head = (void *)(bytes + old), name;
	Elf64_Shdr *section_of;

	memcpy(&name, bytes + old + head[1] + head[4] + 4, sizeof(name));
	at = append(&bytes, len, 28 + parts * 8);
	head = (void *)(bytes + at);
	head[0] = 0xeb9f | 1 << 16;
	head[1] = 24;
	head[5] = (uint32_t)(4 + parts * 8);
	head[6] = 16;
	for (size_t i = 0; i < parts; i++)
		head[7 + 2 * i] = name;
	section_of = section(bytes, ".BTF.ext");
	section_of->sh_offset = at;
	section_of->sh_size = 28 + parts * 8;
	return bytes;
}

Test(bpf_elf, line_tables_without_lines)
{
	struct ebpf_object *obj = NULL;
	struct ebpf_error err;
	size_t len;
	uint8_t *bytes;

	for (size_t parts = 0; parts < 6; parts++) {
		bytes = with_parts(parts, &len);
		cr_assert_not(ebpf_object_load(bytes, len, &helpers, 0, &obj, &err), "%s",
			      err.text);
		ebpf_object_destroy(obj);
		free(bytes);
	}
	bytes = with_parts(5000, &len);
	cr_assert_str_eq(refusal_of(bytes, len), "more line tables than sections");
}

Test(bpf_elf, names_of_sections_that_are_long)
{
	size_t len, at;
	uint8_t *bytes = file_read("all", &len);
	Elf64_Shdr *all, *one;

	at = append(&bytes, &len, 4096);
	memset(bytes + at, 'x', 300);
	all = sections_move(&bytes, &len, ((Elf64_Ehdr *)bytes)->e_shnum);
	one = &all[((Elf64_Ehdr *)bytes)->e_shstrndx];
	one->sh_offset = at;
	one->sh_size = 4096;
	for (size_t i = 1; i < ((Elf64_Ehdr *)bytes)->e_shnum; i++)
		all[i].sh_name = 0;
	cr_assert_str_eq(refusal_of(bytes, len), "a section has a name of more than 255 bytes");
}

Test(bpf_elf, other_files)
{
	struct ebpf_object *obj = NULL;
	struct ebpf_error err;
	size_t len;
	uint8_t *bytes = file_read("all", &len);

	((Elf64_Ehdr *)bytes)->e_machine = EM_X86_64;
	cr_assert_eq(ebpf_object_load(bytes, len, NULL, 0, &obj, &err), -ENOEXEC);
	cr_assert_str_eq(err.text, "not an object of clang -target bpf");
	cr_assert_eq(ebpf_object_load("#!/bin/sh", 9, NULL, 0, &obj, &err), -ENOEXEC);
	cr_assert_str_eq(err.text, "not a little-endian ELF object of 64 bits");
	cr_assert_eq(ebpf_object_load(NULL, 0, NULL, 0, &obj, NULL), -ENOEXEC);
	free(bytes);
}

Test(bpf_elf, without_line_information)
{
	struct ebpf_object *obj = NULL;
	struct ebpf_error err;
	struct ebpf_line line;
	size_t len;
	uint8_t *bytes = file_read("wild", &len);

	section(bytes, ".BTF.ext")->sh_type = SHT_NULL;
	cr_assert_not(ebpf_object_load(bytes, len, NULL, 0, &obj, &err));
	ebpf_object_line(obj, 1, &line);
	cr_assert_eq(line.file[0], 0);
	ebpf_object_destroy(obj);
	free(bytes);
}
