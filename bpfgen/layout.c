/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layouts of records as text: a type and a name for each field, with a semicolon between.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "bpfgen/expr.h"

enum { NAME_MAX_ = 63 };

static const struct {
	const char *name;
	enum bpfgen_type type;
	bool big_endian, counted;
	uint32_t length;
} types[] = {
	{ "u8", BPFGEN_U8, false, false, 1 },	 { "u16", BPFGEN_U16, false, false, 2 },
	{ "u32", BPFGEN_U32, false, false, 4 },	 { "u64", BPFGEN_U64, false, false, 8 },
	{ "s8", BPFGEN_S8, false, false, 1 },	 { "s16", BPFGEN_S16, false, false, 2 },
	{ "s32", BPFGEN_S32, false, false, 4 },	 { "s64", BPFGEN_S64, false, false, 8 },
	{ "be16", BPFGEN_U16, true, false, 2 },	 { "be32", BPFGEN_U32, true, false, 4 },
	{ "be64", BPFGEN_U64, true, false, 8 },	 { "sbe16", BPFGEN_S16, true, false, 2 },
	{ "sbe32", BPFGEN_S32, true, false, 4 }, { "sbe64", BPFGEN_S64, true, false, 8 },
	{ "text", BPFGEN_TEXT, false, true, 1 }, { "pad", BPFGEN_PAD, false, true, 1 },
};

/* A layout with room for its fields and their names */
struct parsed {
	struct bpfgen_layout layout;
	struct bpfgen_field fields[BPFGEN_FIELDS_MAX];
	char names[BPFGEN_FIELDS_MAX][NAME_MAX_ + 1];
};

struct reader {
	const char *text, *at;
	struct bpfgen_error *err;
};

#define refuse(r, ...) bpfgen_refuse((r)->err, -EINVAL, (size_t)((r)->at - (r)->text), __VA_ARGS__)
#define too_large(r, ...) \
	bpfgen_refuse((r)->err, -E2BIG, (size_t)((r)->at - (r)->text), __VA_ARGS__)

static void blank_skip(struct reader *r)
{
	while (isspace((unsigned char)*r->at))
		r->at++;
}

static size_t word_length(const char *at)
{
	size_t n = 0;

	if (!isdigit((unsigned char)*at))
		while (isalnum((unsigned char)at[n]) || at[n] == '_')
			n++;
	return n;
}

/* [N], behind text and pad */
static int count_read(struct reader *r, uint32_t *length)
{
	unsigned long n = 0;

	blank_skip(r);
	if (*r->at != '[')
		return refuse(r, "a number of bytes in [ ] is needed");
	r->at++;
	if (!isdigit((unsigned char)*r->at))
		return refuse(r, "a number is needed in [ ]");
	for (; isdigit((unsigned char)*r->at); r->at++) {
		n = n * 10 + (unsigned long)(*r->at - '0');
		if (n > BPFGEN_RECORD_MAX)
			return too_large(r, "a record has at most %d bytes", BPFGEN_RECORD_MAX);
	}
	if (*r->at != ']')
		return refuse(r, "a [ without its ]");
	r->at++;
	*length = (uint32_t)n;
	return n ? 0 : refuse(r, "a field without bytes");
}

static int type_read(struct reader *r, struct bpfgen_field *f)
{
	size_t n = word_length(r->at);

	for (size_t i = 0; i < base_array_size(types); i++)
		if (n == strlen(types[i].name) && !memcmp(r->at, types[i].name, n)) {
			f->type = types[i].type;
			f->big_endian = types[i].big_endian;
			f->length = types[i].length;
			r->at += n;
			return types[i].counted ? count_read(r, &f->length) : 0;
		}
	return refuse(r, "%s", n ? "an unknown type" : "a type is needed");
}

static int name_read(struct reader *r, const struct parsed *p, char name[NAME_MAX_ + 1])
{
	size_t n;

	blank_skip(r);
	n = word_length(r->at);
	if (!n || n > NAME_MAX_)
		return refuse(r, "a name of 1 to %d bytes is needed", NAME_MAX_);
	snprintf(name, NAME_MAX_ + 1, "%.*s", (int)n, r->at);
	for (size_t i = 0; i < p->layout.count; i++)
		if (!strcmp(p->fields[i].name, name))
			return refuse(r, "two fields are called %s", name);
	r->at += n;
	return 0;
}

static int field_read(struct reader *r, struct parsed *p)
{
	struct bpfgen_field f = { .name = "", .offset = p->layout.size };
	int ret = type_read(r, &f);

	if (ret)
		return ret;
	if (f.length > BPFGEN_RECORD_MAX - p->layout.size)
		return too_large(r, "a record has at most %d bytes", BPFGEN_RECORD_MAX);
	p->layout.size += f.length;
	if (f.type == BPFGEN_PAD)
		return 0;
	if (p->layout.count == BPFGEN_FIELDS_MAX)
		return too_large(r, "a record has at most %d fields", BPFGEN_FIELDS_MAX);
	f.name = p->names[p->layout.count];
	ret = name_read(r, p, p->names[p->layout.count]);
	if (!ret)
		p->fields[p->layout.count++] = f;
	return ret;
}

static int fields_read(struct reader *r, struct parsed *p)
{
	int ret = 0;

	for (blank_skip(r); *r->at && !ret; blank_skip(r)) {
		ret = field_read(r, p);
		blank_skip(r);
		if (!ret && *r->at && *r->at++ != ';') {
			r->at--;
			ret = refuse(r, "a semicolon is needed between fields");
		}
	}
	if (!ret && !p->layout.size)
		ret = refuse(r, "a layout without fields");
	return ret;
}

int bpfgen_layout_parse(const char *text, struct bpfgen_layout **out, struct bpfgen_error *err)
{
	struct parsed *p = calloc(1, sizeof(*p));
	struct reader r = { text, text, err };
	int ret;

	if (!p)
		return bpfgen_refuse(err, -ENOMEM, BPFGEN_NOWHERE, "out of memory");
	p->layout.fields = p->fields;
	ret = fields_read(&r, p);
	if (ret)
		free(p);
	else
		*out = &p->layout;
	return ret;
}

void bpfgen_layout_destroy(struct bpfgen_layout *layout)
{
	free(layout);
}
