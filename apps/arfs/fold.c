/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-sum and warp-top: a value of each record in files of an ARFS, or of each file, added up or
 * the greatest ones picked out at the server. What is sent is code that was made of the expression
 * and the condition. Which of both it is the name of the program says.
 */
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warp/active.h>

#include "apps/examples/endpoint.h"
#include "apps/examples/record.h"
#include "walk_client.h"
#include "walk_code.h"

enum status { FOUND, NONE, USAGE, FAILED };

static struct {
	const char *layout, *where;
	unsigned long port, spin_us, most;
} options = { .port = 7190, .most = 10 };

static const char *name;
static bool tops;
static struct walk walk;
static struct bpfgen_layout *layout;
static struct bpfgen_expr *value, *where;

static void usage(FILE *to)
{
	fprintf(to,
		"usage: %s -a ADDRESS [OPTION..] EXPRESSION [PATH]\n"
		"  -l LAYOUT     of the records in files, as \"u32 id; s64 price\". Without it "
		"each\n"
		"                file is a record: mode, nlink, uid, gid, size, atime, mtime, "
		"ctime,\n"
		"                name\n"
		"  -w CONDITION  only records for which this is true\n",
		name);
	if (tops)
		fputs("  -k COUNT      how many of the greatest, up to 100 (10)\n", to);
	fputs("  -a ADDRESS    the server\n"
	      "  -p PORT       its TCP port (7190)\n"
	      "  -s US         look for answers so long before sleeping (0)\n"
	      "  -h, --help    this text;  --version\n"
	      "exit status: 0 found, 1 there is no record, 2 usage, 3 failed\n",
	      to);
}

static int wrong(const char *text)
{
	fprintf(stderr, "%s: %s\n", name, text);
	usage(stderr);
	return USAGE;
}

static int wrong_at(const char *text, const struct bpfgen_error *err)
{
	fprintf(stderr, "%s: %s: %s\n", name, text, err->text);
	return USAGE;
}

/* --- the greatest ones ------------------------------------------------------------------------ */

/* A record that came; the list is in order, the greatest first */
struct row {
	uint64_t key, offset;
	char *path;
	uint8_t *record;
};

static struct row rows[WALK_TOP_MAX + 1];
static size_t row_count;

static void row_free(struct row *r)
{
	free(r->path);
	free(r->record);
}

/* Behind those that are as great, for these came before */
static void row_enter(const struct row *r)
{
	size_t i = row_count++;

	for (; i && rows[i - 1].key < r->key; i--)
		rows[i] = rows[i - 1];
	rows[i] = *r;
	if (row_count > options.most)
		row_free(&rows[--row_count]);
}

static bool row_take(const struct walk_hit *hit, const char *bytes)
{
	struct walk_row w;
	struct row r = { .offset = hit->offset };

	if (hit->kind != WALK_ROW_HIT || hit->len < sizeof(w))
		return false;
	memcpy(&w, bytes, sizeof(w));
	if (w.path_len > WALK_PATH || w.record_len != layout->size ||
	    hit->len != sizeof(w) + w.path_len + w.record_len)
		return false;
	r.key = w.value ^ walk.args.state.fold.bias;
	r.path = strndup(bytes + sizeof(w), w.path_len);
	r.record = malloc(w.record_len);
	if (!r.path || !r.record) {
		row_free(&r);
		return false;
	}
	memcpy(r.record, bytes + sizeof(w) + w.path_len, w.record_len);
	row_enter(&r);
	return true;
}

/* --- what is printed ------------------------------------------------------------------------ */

static void value_print(uint64_t n)
{
	printf(bpfgen_expr_is_signed(value) ? "%" PRId64 : "%" PRIu64, n);
}

static int top_print(void)
{
	for (size_t i = 0; i < row_count; i++) {
		value_print(rows[i].key ^ walk.args.state.fold.bias);
		printf("  %s", rows[i].path);
		if (options.layout) {
			printf(":%" PRIu64, rows[i].offset);
			record_print(layout, rows[i].record);
		}
		putchar('\n');
		row_free(&rows[i]);
	}
	return row_count ? FOUND : NONE;
}

static int sum_print(void)
{
	const struct walk_fold *f = &walk.args.state.fold;

	printf("%" PRIu64 " records", f->count);
	if (f->count) {
		printf(", sum ");
		value_print(f->sum);
		printf(", least ");
		value_print(f->least ^ f->bias);
		printf(", greatest ");
		value_print(f->greatest ^ f->bias);
	}
	putchar('\n');
	return f->count ? FOUND : NONE;
}

/* --- the question ----------------------------------------------------------------------------- */

static int question_read(const char *text)
{
	const char *records = options.layout ? options.layout : WALK_LAYOUT;
	struct bpfgen_error err;

	if (bpfgen_layout_parse(records, &layout, &err))
		return wrong_at(records, &err);
	if (layout->size > WALK_RECORD_MAX)
		return wrong("records have 4,096 bytes at most");
	if (bpfgen_expr_parse(text, layout, &value, &err))
		return wrong_at(text, &err);
	if (options.where && bpfgen_expr_parse(options.where, layout, &where, &err))
		return wrong_at(options.where, &err);
	return FOUND;
}

static int question_ask(const char *text, const char *path)
{
	const struct walk_question q = { .value = value, .where = where };
	struct walk_fold *f = &walk.args.state.fold;
	struct bpfgen_error err = { 0 };
	void *elf = NULL;
	size_t len;
	int ret;

	if (walk_code_make(&q, &elf, &len, &err))
		return wrong_at(text, &err);
	walk.name = name;
	walk.take = row_take;
	walk.args.mode = options.layout ? WALK_FOLD_RECORDS : WALK_FOLD_FILES;
	walk.args.record_size = layout->size;
	f->bias = bpfgen_expr_is_signed(value) ? 1ull << 63 : 0;
	f->least = UINT64_MAX;
	f->top = tops ? (uint32_t)options.most : 0;
	ret = walk_all(&walk, elf, len, path) ? FAILED : tops ? top_print() : sum_print();
	free(elf);
	return ret;
}

/* --- command line --- */

static int option_take(int letter)
{
	switch (letter) {
	case 'a':
		walk.host = optarg;
		return FOUND;
	case 'p':
		return endpoint_number(optarg, 0, 65535, &options.port) ? wrong("no port") : FOUND;
	case 's':
		return endpoint_number(optarg, 0, 1000000, &options.spin_us) ? wrong("no time")
									     : FOUND;
	case 'k':
		return endpoint_number(optarg, 1, WALK_TOP_MAX, &options.most) ? wrong("no count")
									       : FOUND;
	case 'l':
		options.layout = optarg;
		return FOUND;
	case 'w':
		options.where = optarg;
		return FOUND;
	default:
		return wrong("no such option");
	}
}

static int words_take(int argc, char **argv)
{
	int ret;

	if (!walk.host)
		return wrong("-a is needed");
	if (optind == argc || argc > optind + 2)
		return wrong(optind == argc ? "an expression is needed" : "too many words");
	ret = endpoint_resolve(walk.host, (uint16_t)options.port, &walk.client.addr);
	if (ret) {
		fprintf(stderr, "%s: %s: %s\n", name, walk.host, gai_strerror(ret));
		return USAGE;
	}
	walk.client.spin_us = (unsigned int)options.spin_us;
	ret = question_read(argv[optind]);
	if (!ret)
		ret = question_ask(argv[optind], optind + 1 < argc ? argv[optind + 1] : "/");
	bpfgen_expr_destroy(value);
	bpfgen_expr_destroy(where);
	bpfgen_layout_destroy(layout);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct option names[] = { { "help", no_argument, NULL, 'h' },
					       { "version", no_argument, NULL, 'V' },
					       { 0 } };
	int letter, ret = FOUND;

	name = FOLD_NAME;
	tops = !strcmp(name, "warp-top");
	while (!ret && (letter = getopt_long(argc, argv, tops ? "a:p:s:l:w:k:h" : "a:p:s:l:w:h",
					     names, NULL)) != -1) {
		if (letter == 'h')
			usage(stdout);
		if (letter == 'V')
			printf("%s %s\n", name, warp_version());
		if (letter == 'h' || letter == 'V')
			return FOUND;
		ret = option_take(letter);
	}
	return ret ? ret : words_take(argc, argv);
}
