/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Source lines of instructions, from an object's .BTF (its strings) and .BTF.ext (its line
 * table), as clang -g writes them. An object without them is as good; a damaged one is refused.
 *
 * Everything here is counted in a span, which knows how much of it is left.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "bpf/elffile.h"

enum { BTF_MAGIC = 0xeb9f, LINES_MAX = 1 << 18, HEADER_MIN = 24, RECORD_MIN = 16 };

struct span {
	const uint8_t *at;
	size_t len;
};

static struct span span_of(const struct elf_file *f, const struct elf_section *s)
{
	return (struct span){ f->bytes + s->head.sh_offset, s->head.sh_size };
}

/* The part of @s from @offset on; false if it is not all there */
static bool span_cut(struct span s, uint64_t offset, uint64_t len, struct span *out)
{
	if (offset > s.len || len > s.len - offset)
		return false;
	*out = (struct span){ s.at + offset, (size_t)len };
	return true;
}

static uint32_t word(struct span s, size_t i)
{
	return base_get_le32(s.at + 4 * i);
}

/* The header of .BTF or .BTF.ext; its offsets count from its end */
static bool header_read(struct span all, struct span *body)
{
	uint32_t size;

	if (all.len < HEADER_MIN || (word(all, 0) & 0xffff) != BTF_MAGIC)
		return false;
	size = word(all, 1);
	return size >= HEADER_MIN && size <= all.len && span_cut(all, size, all.len - size, body);
}

static int strings_read(struct elf_file *f, struct span btf)
{
	struct span body, strings;

	if (!header_read(btf, &body) || !span_cut(body, word(btf, 4), word(btf, 5), &strings))
		return elf_refuse(f, -ENOEXEC, ".BTF is damaged");
	f->obj->strings = malloc(strings.len + 1);
	if (!f->obj->strings)
		return -ENOMEM;
	memcpy(f->obj->strings, strings.at, strings.len);
	f->obj->strings[strings.len] = 0;
	f->obj->strings_size = strings.len;
	return 0;
}

static const char *string_at(const struct ebpf_object *obj, uint32_t at)
{
	return at < obj->strings_size ? obj->strings + at : "";
}

static int lines_add(struct elf_file *f, const struct elf_section *s, struct span records,
		     uint32_t size, uint32_t count)
{
	struct ebpf_object *obj = f->obj;
	struct ebpf_lineinfo *more;

	if (count > LINES_MAX - obj->line_count)
		return elf_refuse(f, -E2BIG, "more than %d source lines", LINES_MAX);
	if (!count) /* realloc() would free what is there */
		return 0;
	more = realloc(obj->lines, (obj->line_count + count) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	obj->lines = more;
	for (uint32_t i = 0; i < count; i++) {
		struct span r = { records.at + (size_t)i * size, size };
		uint32_t at = word(r, 0);

		if (at % 8 || at >= s->head.sh_size)
			return elf_refuse(f, -ENOEXEC, "a source line of no instruction");
		more[obj->line_count++] =
			(struct ebpf_lineinfo){ (uint32_t)s->base + at / 8, word(r, 1), word(r, 2),
						word(r, 3) >> 10, word(r, 3) & 1023 };
	}
	return 0;
}

/* The lines of one section: its name, their number, themselves. Returns what is behind it. */
static int section_lines_read(struct elf_file *f, struct span *table, uint32_t size)
{
	const struct elf_section *s;
	struct span records;

	if (table->len < 8 || !span_cut(*table, 8, (uint64_t)word(*table, 1) * size, &records))
		return elf_refuse(f, -ENOEXEC, "the line table of .BTF.ext is damaged");
	s = elf_section_named(f, string_at(f->obj, word(*table, 0)));
	if (!s || s->kind != ELF_CODE)
		return elf_refuse(f, -ENOEXEC, "source lines of an unknown section");
	span_cut(*table, 8 + records.len, table->len - 8 - records.len, table);
	return lines_add(f, s, records, size, (uint32_t)(records.len / size));
}

static int line_compare(const void *a, const void *b)
{
	const struct ebpf_lineinfo *x = a, *y = b;

	return (x->pc > y->pc) - (x->pc < y->pc);
}

int elf_lines_read(struct elf_file *f)
{
	const struct elf_section *btf = elf_section_named(f, ".BTF");
	const struct elf_section *ext = elf_section_named(f, ".BTF.ext");
	struct span all, body, table;
	uint32_t size;
	int ret;

	if (!btf || !ext || btf->head.sh_type != SHT_PROGBITS || ext->head.sh_type != SHT_PROGBITS)
		return 0;
	ret = strings_read(f, span_of(f, btf));
	if (ret)
		return ret;
	all = span_of(f, ext);
	if (!header_read(all, &body) || !span_cut(body, word(all, 4), word(all, 5), &table))
		return elf_refuse(f, -ENOEXEC, ".BTF.ext is damaged");
	if (table.len < 4)
		return 0;
	size = word(table, 0);
	if (size < RECORD_MIN || size % 4)
		return elf_refuse(f, -ENOEXEC, "source lines of an unknown size");
	span_cut(table, 4, table.len - 4, &table);
	/* A section has one part of the table, and is looked for by its name */
	for (size_t parts = 0; table.len && !ret; parts++)
		ret = parts < f->count ? section_lines_read(f, &table, size)
				       : elf_refuse(f, -E2BIG, "more line tables than sections");
	if (!ret && f->obj->line_count)
		qsort(f->obj->lines, f->obj->line_count, sizeof(*f->obj->lines), line_compare);
	return ret;
}

void ebpf_object_line(const struct ebpf_object *obj, uint32_t pc, struct ebpf_line *line)
{
	const struct ebpf_lineinfo *found = NULL;
	size_t low = 0, high = obj->line_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (obj->lines[middle].pc <= pc) {
			found = &obj->lines[middle];
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	*line = (struct ebpf_line){ "", "", 0, 0 };
	if (found)
		*line = (struct ebpf_line){ string_at(obj, found->file),
					    string_at(obj, found->text), found->line,
					    found->column };
}
