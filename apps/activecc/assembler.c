/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Source lines for programs in assembler: .BTF and .BTF.ext, as clang makes them of C.
 *
 * The source is assembled twice. The first object tells which line each instruction comes from
 * (dwarf.c). Then a source is assembled that includes the first one, and has both sections behind
 * it. An object without source lines is as good, so whatever is missing here is no error.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/activecc/activecc.h"
#include "apps/activecc/dwarf.h"

enum { BTF_MAGIC = 0xeb9f, BTF_VERSION = 1, HEADER = 24, RECORD = 16, NAME_ROOM = 256 };

/* Bytes that grow, of one section */
struct bytes {
	FILE *to;
	char *at;
	size_t len;
};

struct tables {
	struct bytes strings, lines;
	const struct dwarf_lines *rows;
	const void *elf;
	size_t elf_len;
	char *source;	   /* its lines, each ended by a NUL */
	char **line;	   /* where they begin; number 1 is line[1] */
	uint32_t *offsets; /* of their texts among the strings; 0: not there yet */
	size_t line_count;
};

static bool bytes_open(struct bytes *b)
{
	b->to = open_memstream(&b->at, &b->len);
	return b->to;
}

static void bytes_close(struct bytes *b)
{
	if (b->to)
		fclose(b->to);
	b->to = NULL;
}

static void word(struct bytes *b, uint32_t value)
{
	fwrite(&value, sizeof(value), 1, b->to);
}

/* Where the string is, which is new */
static uint32_t string(struct tables *t, const char *text)
{
	uint32_t at;

	fflush(t->strings.to);
	at = (uint32_t)t->strings.len;
	fwrite(text, 1, strlen(text) + 1, t->strings.to);
	return at;
}

/* Parts the text of the source, which is @len long and has one byte more, into lines */
static bool source_split(struct tables *t, size_t len)
{
	char *at = t->source, *end = t->source + len, *newline;

	*end = 0;
	for (size_t i = 0; i < len; i++)
		t->line_count += at[i] == '\n';
	t->line = calloc(t->line_count + 3, sizeof(*t->line));
	t->offsets = calloc(t->line_count + 3, sizeof(*t->offsets));
	if (!t->line || !t->offsets)
		return false;
	for (size_t n = 1; at < end; n++, at = newline + 1) {
		newline = memchr(at, '\n', (size_t)(end - at));
		newline = newline ? newline : end;
		*newline = 0;
		t->line[n] = at;
	}
	return true;
}

static uint32_t line_text(struct tables *t, uint32_t line)
{
	if (!t->line[line])
		return 0;
	if (!t->offsets[line])
		t->offsets[line] = string(t, t->line[line]);
	return t->offsets[line];
}

/* The rows from number @i on that are of one section; returns how many these are */
static size_t section_write(struct tables *t, size_t i, uint32_t file)
{
	const struct dwarf_row *rows = t->rows->rows + i;
	char name[NAME_ROOM];
	size_t n = 1;

	while (i + n < t->rows->count && rows[n].section == rows->section)
		n++;
	if (!dwarf_section_name(t->elf, t->elf_len, rows->section, name, sizeof(name)))
		return n;
	word(&t->lines, string(t, name));
	word(&t->lines, (uint32_t)n);
	for (size_t j = 0; j < n; j++) {
		word(&t->lines, rows[j].addr);
		bool known = rows[j].line && rows[j].line <= t->line_count + 1;

		word(&t->lines, known ? file : 0);
		word(&t->lines, known ? line_text(t, rows[j].line) : 0);
		word(&t->lines, known ? rows[j].line << 10 : 0);
	}
	return n;
}

static void tables_write(struct tables *t, const char *path)
{
	uint32_t file;

	string(t, "");
	file = string(t, path);
	word(&t->lines, RECORD);
	for (size_t i = 0; i < t->rows->count;)
		i += section_write(t, i, file);
	bytes_close(&t->strings);
	bytes_close(&t->lines);
}

static void section_print(FILE *f, const char *name, const uint32_t *head, const struct bytes *b)
{
	fprintf(f, "\t.section %s,\"\",@progbits\n", name);
	for (unsigned int i = 0; i < HEADER / 4; i++)
		fprintf(f, "\t.long %u\n", head[i]);
	for (size_t i = 0; i < b->len; i++)
		fprintf(f, i % 16 ? ",%u" : "\n\t.byte %u", (unsigned int)(uint8_t)b->at[i]);
	fputc('\n', f);
}

/* A source that includes @path and has the sections behind it */
static bool wrapper_print(const struct tables *t, const char *path, bool preprocessed,
			  const char *to)
{
	const uint32_t btf[] = { BTF_MAGIC | BTF_VERSION << 16, HEADER, 0, 0, 0,
				 (uint32_t)t->strings.len };
	const uint32_t ext[] = { BTF_MAGIC | BTF_VERSION << 16, HEADER, 0, 0, 0,
				 (uint32_t)t->lines.len };
	FILE *f = fopen(to, "we");

	if (!f)
		return false;
	fprintf(f, preprocessed ? "#include \"%s\"\n" : "\t.include \"%s\"\n", path);
	section_print(f, ".BTF", btf, &t->strings);
	section_print(f, ".BTF.ext", ext, &t->lines);
	return !fclose(f);
}

bool activecc_assembler_wrap(const struct activecc_options *opt, const void *elf, size_t len,
			     char *source, size_t source_len, const char *to)
{
	bool preprocessed = opt->input[strlen(opt->input) - 1] == 'S', good;
	struct dwarf_lines rows;
	struct tables t = { .rows = &rows, .elf = elf, .elf_len = len, .source = source };
	char path[PATH_MAX];

	/*
	 * A name that would need escapes is not worth them. Of what .include brings clang gives
	 * the lines as if they were this file's; #include is no such trouble.
	 */
	if (!realpath(opt->input, path) || strpbrk(path, "\"\\\n") ||
	    memmem(source, source_len, ".include", 8) || !dwarf_lines_read(&rows, elf, len))
		return false;
	good = source_split(&t, source_len) && bytes_open(&t.strings) && bytes_open(&t.lines);
	if (good)
		tables_write(&t, path);
	good = good && t.strings.at && t.lines.at && wrapper_print(&t, path, preprocessed, to);
	bytes_close(&t.strings);
	bytes_close(&t.lines);
	free(t.strings.at);
	free(t.lines.at);
	free(t.line);
	free(t.offsets);
	dwarf_lines_free(&rows);
	return good;
}
