/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Expressions and layouts from anybody. What is refused has a reason that can be printed; of the
 * rest the verifier takes the code, both engines do the same, and nothing but the record is read.
 */
#include <stdlib.h>
#include <string.h>

#include "bpfgen/expr.h"
#include "tests/bpfgen/both.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ADDR 0x20000u

static struct both both;
static struct bpfgen_layout *fixed;

static void demand(bool good)
{
	if (!good)
		abort();
}

static void refused(int ret, const struct bpfgen_error *err)
{
	demand(ret < 0 && err->text[0]);
	for (const char *p = err->text; *p; p++)
		demand(*p >= 0x20 && *p < 0x7f);
}

static void run(const struct bpfgen_code *c, uint32_t size)
{
	static uint8_t record[BPFGEN_RECORD_MAX] __attribute__((aligned(64)));
	const struct ebpf_region region = { record, ADDR, size, 0, EBPF_MAY_READ };
	const uint64_t arg[5] = { ADDR };
	uint64_t value;

	for (uint32_t i = 0; i < size; i++)
		record[i] = (uint8_t)(i * 37 + 'a');
	demand(!both_open(&both, c));
	demand(!both_run(&both, "main", arg, &region, 1, &value));
	both_close(&both);
}

static void expr_try(const char *text, const struct bpfgen_layout *layout)
{
	struct bpfgen_error err = { 0 };
	struct bpfgen_expr *e = NULL;
	struct bpfgen_code *c;
	int ret = bpfgen_expr_parse(text, layout, &e, &err);

	if (ret) {
		refused(ret, &err);
		return;
	}
	demand(!bpfgen_code_create(&c));
	bpfgen_function(c, bpfgen_label(c), "main");
	bpfgen_alu(c, EBPF_MOV, 6, 1);
	bpfgen_expr_value(e, c, 6);
	bpfgen_exit(c);
	ret = bpfgen_expr_functions(e, c, &err);
	ret = ret ? ret : bpfgen_code_finish(c, &err);
	if (ret)
		refused(ret, &err);
	else
		run(c, bpfgen_expr_record(e));
	bpfgen_code_destroy(c);
	bpfgen_expr_destroy(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bpfgen_layout *other = NULL;
	struct bpfgen_error err = { 0 };
	char *text = malloc(size + 1);
	int ret;

	memcpy(text, data, size);
	text[size] = 0;
	if (!fixed)
		demand(!bpfgen_layout_parse("u32 price; s32 qty; s8 a; u64 big; be16 be; sbe64 se; "
					    "text[7] name; pad[3]",
					    &fixed, &err));
	expr_try(text, fixed);
	ret = bpfgen_layout_parse(text, &other, &err);
	if (ret)
		refused(ret, &err);
	else
		expr_try("1", other);
	bpfgen_layout_destroy(other);
	free(text);
	return 0;
}
