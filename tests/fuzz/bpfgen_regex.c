/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Regular expressions from anybody, and texts. What is refused has a reason that can be printed;
 * of the rest the verifier takes the code, both engines do the same, nothing but the text is
 * read, and the three kinds of search agree on whether there is a match.
 *
 * The first byte has the flags, the second one says how many of the others are the expression.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "bpfgen/regex.h"
#include "tests/bpfgen/both.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 256 };
#define ADDR 0x20000u
#define SPAN 0x90000u

static struct both both;
static uint64_t span[2];

static void demand(bool good)
{
	if (!good)
		abort();
}

static void refused(int ret, const struct bpfgen_error *err, size_t len)
{
	demand(ret < 0 && err->text[0] && (err->at <= len || err->at == BPFGEN_NOWHERE));
	for (const char *p = err->text; *p; p++)
		demand(*p >= 0x20 && *p < 0x7f);
}

static uint64_t run(const char *entry, uint8_t *text, size_t len)
{
	const struct ebpf_region regions[] = {
		{ text, ADDR, base_max(len, (size_t)1), 0, EBPF_MAY_READ },
		{ span, SPAN, sizeof(span), 0, EBPF_MAY_WRITE },
	};
	const uint64_t arg[5] = { ADDR, len, SPAN };
	uint64_t value = 0;

	demand(!both_run(&both, entry, arg, regions, 2, &value));
	return value;
}

static void search(const struct bpfgen_code *c, const uint8_t *data, size_t len)
{
	uint8_t text[TEXT_MAX] __attribute__((aligned(64)));
	uint64_t end;

	len = base_min(len, sizeof(text));
	memcpy(text, data, len);
	demand(!both_open(&both, c));
	end = run("search", text, len);
	demand(run("find", text, len) == (end != UINT64_MAX));
	if (end != UINT64_MAX) {
		demand(end >= ADDR && end <= ADDR + len);
		demand(span[0] <= span[1] && span[1] <= len && span[0] <= end - ADDR);
	}
	if (end != UINT64_MAX && len && !memchr(text, '\n', len))
		demand(run("line", text, len) == ADDR);
	else
		run("line", text, len);
	both_close(&both);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bpfgen_regex *re = NULL;
	struct bpfgen_error err = { 0 };
	struct bpfgen_code *c;
	size_t len;
	int ret;

	if (size < 2)
		return 0;
	len = base_min((size_t)data[1], size - 2);
	ret = bpfgen_regex_parse((const char *)data + 2, len, data[0] & BPFGEN_ICASE, &re, &err);
	if (ret) {
		refused(ret, &err, len);
		return 0;
	}
	demand(!bpfgen_code_create(&c));
	ret = bpfgen_regex_search(re, c, bpfgen_label(c), "search", &err);
	ret = ret ? ret : bpfgen_regex_find(re, c, bpfgen_label(c), "find", &err);
	ret = ret ? ret : bpfgen_regex_line(re, c, bpfgen_label(c), "line", &err);
	ret = ret ? ret : bpfgen_code_finish(c, &err);
	if (ret)
		refused(ret, &err, len);
	else
		search(c, data + 2 + len, size - 2 - len);
	bpfgen_code_destroy(c);
	bpfgen_regex_destroy(re);
	return 0;
}
