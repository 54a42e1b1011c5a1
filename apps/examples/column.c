/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-column: questions about records in a server's memory, by code that the client makes of them
 * (bpfgen/). The program runs at the server; or here, when all records have been read by RDMA.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warp/active_bpf.h>

#include "active_app.h"
#include "bpf/run.h"
#include "bpfgen/query.h"
#include "record.h"

enum { PART = 65536, OUTPUT = BPFGEN_TOP_MAX * sizeof(struct bpfgen_top) };

_Static_assert((int)BPFGEN_OUTPUT == (int)WARP_ACTIVE_HELPER_OUTPUT, "the same helper");

static struct active_common common = { .port = 7181 };
static unsigned long repeat, alone, most = 10;
static const char *where;
static struct active_app app;

static int complain_of(const char *text, const struct bpfgen_error *err)
{
	fprintf(stderr, "warp-column: %s: %s\n", text, err->text);
	return APP_USAGE;
}

/* --- server: a file's content -------------------------------------------------------------- */

static FILE *file;
static size_t file_size;

static void file_fill(void *memory)
{
	if (fread(memory, 1, file_size, file) != file_size)
		fprintf(stderr, "warp-column: the file became shorter\n");
}

static int serve(char **words)
{
	struct warp_active_region_attr attr = { .name = "column",
						.rights = WARP_ACTIVE_READ | WARP_ACTIVE_RUN };
	char what[40];
	long size;
	int ret;

	file = fopen(words[0], "re");
	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0)
		return active_app_complain(&app, words[0], -errno);
	rewind(file);
	if (!size)
		return active_app_complain(&app, words[0], -ENODATA);
	attr.size = file_size = (size_t)size;
	snprintf(what, sizeof(what), "%zu bytes", file_size);
	ret = active_app_serve(&app, &attr, file_fill, what);
	fclose(file);
	return ret;
}

/* --- client: the question becomes code ----------------------------------------------------- */

struct side {
	struct active_end end;
	bool top;
	struct bpfgen_layout *layout;
	struct bpfgen_expr *value, *where;
	struct bpfgen_code *code;
	struct {
		struct bpfgen_range range;
		struct bpfgen_top table[BPFGEN_TOP_MAX];
	} args;
	union {
		uint8_t bytes[OUTPUT];
		struct bpfgen_top top[BPFGEN_TOP_MAX];
		struct bpfgen_aggregate aggregate;
	} output;
	size_t output_len;
	uint8_t *records; /* of a region that was read */
	size_t room;
};

static int question_read(struct side *s, char **words)
{
	struct bpfgen_error err;

	if (bpfgen_layout_parse(words[0], &s->layout, &err))
		return complain_of(words[0], &err);
	if (bpfgen_expr_parse(words[1], s->layout, &s->value, &err))
		return complain_of(words[1], &err);
	if (where && bpfgen_expr_parse(where, s->layout, &s->where, &err))
		return complain_of(where, &err);
	if (s->top ? bpfgen_query_top(s->value, s->where, (unsigned int)most, &s->code, &err)
		   : bpfgen_query_aggregate(s->value, s->where, &s->code, &err))
		return complain_of(words[1], &err);
	return APP_OK;
}

static void question_free(struct side *s)
{
	bpfgen_code_destroy(s->code);
	bpfgen_expr_destroy(s->value);
	bpfgen_expr_destroy(s->where);
	bpfgen_layout_destroy(s->layout);
	free(s->records);
}

/* All whole records */
static size_t args_fill(struct side *s)
{
	const struct warp_active_region_info *region = &s->end.region;
	uint32_t record = s->layout->size;

	s->args.range = (struct bpfgen_range){ region->addr, region->size / record * record, 0 };
	return sizeof(s->args.range) + (s->top ? most * sizeof(struct bpfgen_top) : 0);
}

static int at_server(struct side *s)
{
	struct warp_active_result result;
	size_t len = args_fill(s);
	int ret = active_end_run(&s->end, "main", WARP_ACTIVE_READ, &s->args, len, &s->output,
				 sizeof(s->output), &result);

	s->output_len = result.output;
	return ret ? ret : (int64_t)result.value < 0 ? (int)(int64_t)result.value : 0;
}

/* --- client: the records come here --------------------------------------------------------- */

static int bytes_read(struct side *s, uint64_t offset, void *to, size_t len)
{
	const struct warp_active_access read = { .op = WARP_ACTIVE_OP_READ,
						 .region = s->end.region.number,
						 .offset = offset,
						 .buffer = to,
						 .len = len };
	struct warp_active_result result;

	return active_end_access(&s->end, &read, &result);
}

static int records_read(struct side *s)
{
	size_t size = s->end.region.size;
	int ret = 0;

	if (!s->records)
		s->records = aligned_alloc(64, (size + 63) / 64 * 64);
	if (!s->records)
		return -ENOMEM;
	for (size_t at = 0; at < size && !ret; at += PART)
		ret = bytes_read(s, at, s->records + at, size - at < PART ? size - at : PART);
	return ret;
}

static int run_here(struct side *s, struct ebpf_object *object)
{
	size_t len = args_fill(s);
	const struct ebpf_region regions[] = {
		{ s->records, s->args.range.addr, s->end.region.size, 0, EBPF_MAY_READ },
		{ &s->args, 0x1000, len, 0, EBPF_MAY_READ | EBPF_MAY_WRITE },
	};
	const struct ebpf_params params = { .arg = { 0x1000, len },
					    .regions = regions,
					    .count = 2,
					    .output = &s->output,
					    .output_room = sizeof(s->output) };
	struct ebpf_result result = { .status = EBPF_HELPER };
	struct ebpf_run *run;
	int ret = ebpf_run_create(&run);

	if (ret)
		return ret;
	ret = ebpf_run_start(run, object, &params);
	if (!ret)
		ebpf_run_continue(run, ~0ull, &result);
	s->output_len = result.output;
	ebpf_run_destroy(run);
	return ret ? ret : result.status == EBPF_DONE ? 0 : -EPROTO;
}

static int one_sided(struct side *s)
{
	static const struct ebpf_helper list[] = { { "output", BPFGEN_OUTPUT, 2,
						     ebpf_helper_output } };
	static const struct ebpf_helpers helpers = { list, 1 };
	struct ebpf_object *object;
	struct ebpf_error err;
	int ret = records_read(s);

	if (!ret)
		ret = bpfgen_code_object(s->code, &helpers, 0, &object, &err);
	if (ret)
		return ret;
	ret = run_here(s, object);
	ebpf_object_destroy(object);
	return ret;
}

static int once(void *arg)
{
	struct side *s = arg;

	return alone ? one_sided(s) : at_server(s);
}

/* --- what is printed ------------------------------------------------------------------------ */

static void value_print(const struct side *s, uint64_t value)
{
	printf(bpfgen_expr_is_signed(s->value) ? "%" PRId64 : "%" PRIu64, value);
}

/* The records of the greatest values, which stand in the output */
static int top_print(struct side *s)
{
	uint8_t *record = malloc(s->layout->size);
	int ret = record ? 0 : -ENOMEM;

	for (size_t i = 0; i < s->output_len / sizeof(struct bpfgen_top) && !ret; i++) {
		ret = bytes_read(s, s->output.top[i].offset, record, s->layout->size);
		if (ret)
			break;
		value_print(s, s->output.top[i].value);
		record_print(s->layout, record);
		putchar('\n');
	}
	free(record);
	return ret;
}

static void aggregate_print(const struct side *s)
{
	const struct bpfgen_aggregate *a = &s->output.aggregate;

	printf("%" PRIu64 " records", a->count);
	if (a->count) {
		printf(", sum ");
		value_print(s, a->sum);
		printf(", least ");
		value_print(s, a->least);
		printf(", greatest ");
		value_print(s, a->greatest);
	}
	putchar('\n');
}

/* Once more without a clock, while the connection is there */
static int timed_and_printed(void *arg)
{
	struct side *s = arg;
	double us = 0;
	int ret = active_end_time(once, s, repeat, &us);

	if (ret)
		return ret;
	if (s->top)
		ret = top_print(s);
	else
		aggregate_print(s);
	if (repeat && !ret)
		printf("%s, %.1f us\n", alone ? "one-sided" : "active", us);
	return ret;
}

static int ask(char **words, bool top)
{
	static struct side s;
	void *elf = NULL;
	size_t len = 0;
	double none;
	int ret;

	s.top = top;
	ret = question_read(&s, words);
	if (!ret && bpfgen_code_elf(s.code, &elf, &len))
		ret = active_app_complain(&app, "code", -ENOMEM);
	app.object = elf;
	app.object_end = app.object + len;
	if (!ret)
		ret = active_app_ask(&app, &s.end, "column", timed_and_printed, &s, 0, &none);
	free(elf);
	question_free(&s);
	return ret;
}

static int top(char **words)
{
	return ask(words, true);
}

static int sum(char **words)
{
	return ask(words, false);
}

/* --- command line ------------------------------------------------------------------------- */

static const struct active_verb verbs[] = {
	{ "serve", "FILE", 1, serve },
	{ "top", "LAYOUT EXPRESSION", 2, top },
	{ "sum", "LAYOUT EXPRESSION", 2, sum },
	{ 0 },
};

static const struct active_option options[] = {
	{ 'k', "COUNT", "so many records, those with the greatest values (10)", &most, 1,
	  BPFGEN_TOP_MAX, NULL },
	{ 'w', "CONDITION", "only records for which this is true", NULL, 0, 0, &where },
	{ '1', NULL, "one-sided: read all records, and look for them here", &alone, 0, 0, NULL },
	{ 'r', "TIMES", "do it so often more, and tell the median time", &repeat, 1, 10000000,
	  NULL },
	{ 0 },
};

static struct active_app app = { "warp-column", &common, verbs, options, NULL, NULL, NULL };

int main(int argc, char **argv)
{
	return active_app_main(&app, argc, argv);
}
