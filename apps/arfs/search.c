/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-grep and warp-find: lines and files of an ARFS, found at the server. What is sent is code
 * that was made of the pattern or the condition, with a walk through the tree; what comes back is
 * what was found. Which of both it is the name of the program says.
 */
#include <getopt.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warp/active.h>

#include "apps/examples/endpoint.h"
#include "walk_client.h"
#include "walk_code.h"

enum status { FOUND, NONE, USAGE, FAILED };

static struct {
	struct client_attr client;
	const char *host, *where;
	unsigned long port, spin_us, icase, names, count;
} options = { .port = 7190 };

static const char *name;
static bool greps;
static unsigned long found;

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", name, what, why);
	return FAILED;
}

static void usage(FILE *to)
{
	fprintf(to,
		greps ? "usage: %s -a ADDRESS [OPTION..] PATTERN [PATH]\n"
			"  -i            small and capital letters are the same\n"
			"  -l            only the names of files\n"
			"  -n            with the offset of each line\n"
		      : "usage: %s -a ADDRESS [OPTION..] [PATH]\n"
			"  -w CONDITION  only files for which this is true: an expression of "
			"mode,\n"
			"                nlink, uid, gid, size, atime, mtime, ctime, name\n",
		name);
	fputs("  -a ADDRESS    the server\n"
	      "  -p PORT       its TCP port (7190)\n"
	      "  -s US         look for answers so long before sleeping (0)\n"
	      "  -h, --help    this text;  --version\n"
	      "exit status: 0 found, 1 nothing was found, 2 usage, 3 failed\n",
	      to);
}

static int wrong(const char *text)
{
	fprintf(stderr, "%s: %s\n", name, text);
	usage(stderr);
	return USAGE;
}

/* --- code --- */

static int wrong_at(const char *text, const struct bpfgen_error *err)
{
	fprintf(stderr, "%s: %s: %s\n", name, text, err->text);
	return USAGE;
}

static int grep_code(const char *pattern, void **elf, size_t *len)
{
	struct bpfgen_regex *re;
	struct bpfgen_error err = { 0 };
	int ret = bpfgen_regex_parse(pattern, strlen(pattern), options.icase ? BPFGEN_ICASE : 0,
				     &re, &err);

	if (ret)
		return wrong_at(pattern, &err);
	ret = walk_code_make(&(struct walk_question){ .re = re }, elf, len, &err);
	bpfgen_regex_destroy(re);
	return ret ? wrong_at(pattern, &err) : FOUND;
}

static int find_code(void **elf, size_t *len)
{
	struct bpfgen_layout *layout;
	struct bpfgen_expr *where = NULL;
	struct bpfgen_error err = { 0 };
	int ret = bpfgen_layout_parse(WALK_LAYOUT, &layout, &err);

	if (ret)
		return wrong_at(WALK_LAYOUT, &err);
	if (options.where)
		ret = bpfgen_expr_parse(options.where, layout, &where, &err);
	if (!ret)
		ret = walk_code_make(&(struct walk_question){ .where = where }, elf, len, &err);
	bpfgen_expr_destroy(where);
	bpfgen_layout_destroy(layout);
	return ret ? wrong_at(options.where ? options.where : "find", &err) : FOUND;
}

/* --- a walk --- */

static char path[WALK_PATH + 1], told[WALK_PATH + 1];

static void line_print(const struct walk_hit *hit, const char *line)
{
	if (options.names) {
		if (strcmp(told, path))
			puts(path);
		strcpy(told, path);
		return;
	}
	if (options.count)
		printf("%s:%llu:", path, (unsigned long long)hit->offset);
	else
		printf("%s:", path);
	fwrite(line, 1, hit->len, stdout);
	putchar('\n');
}

/* Prints what came */
static bool hit_take(const struct walk_hit *hit, const char *bytes)
{
	if (hit->kind == WALK_LINE_HIT) {
		line_print(hit, bytes);
		found++;
		return true;
	}
	if (hit->kind != WALK_PATH_HIT || hit->len >= sizeof(path))
		return false;
	memcpy(path, bytes, hit->len);
	path[hit->len] = 0;
	if (!greps && puts(path) >= 0)
		found++;
	return true;
}

static int search(const void *elf, size_t len, const char *where)
{
	static struct walk w;

	w.name = name;
	w.client = options.client;
	w.host = options.host;
	w.take = hit_take;
	w.args.mode = greps ? WALK_TEXT : WALK_FILES;
	if (walk_all(&w, elf, len, where))
		return FAILED;
	return found ? FOUND : NONE;
}

/* --- command line --- */

static int option_take(int letter)
{
	switch (letter) {
	case 'a':
		options.host = optarg;
		return FOUND;
	case 'p':
		return endpoint_number(optarg, 0, 65535, &options.port) ? wrong("no port") : FOUND;
	case 's':
		return endpoint_number(optarg, 0, 1000000, &options.spin_us) ? wrong("no time")
									     : FOUND;
	case 'w':
		options.where = optarg;
		return FOUND;
	case 'i':
		options.icase = 1;
		return FOUND;
	case 'l':
		options.names = 1;
		return FOUND;
	case 'n':
		options.count = 1;
		return FOUND;
	default:
		return wrong("no such option");
	}
}

static int words_take(int argc, char **argv)
{
	int first = optind + greps, ret;
	const char *where = first < argc ? argv[first] : "/";
	void *elf = NULL;
	size_t len;

	if (!options.host)
		return wrong("-a is needed");
	if (argc < first || argc > first + 1)
		return wrong(argc < first ? "a pattern is needed" : "too many words");
	ret = endpoint_resolve(options.host, (uint16_t)options.port, &options.client.addr);
	if (ret) {
		complain(options.host, gai_strerror(ret));
		return USAGE;
	}
	options.client.spin_us = (unsigned int)options.spin_us;
	ret = greps ? grep_code(argv[optind], &elf, &len) : find_code(&elf, &len);
	if (!ret)
		ret = search(elf, len, where);
	free(elf);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct option names[] = { { "help", no_argument, NULL, 'h' },
					       { "version", no_argument, NULL, 'V' },
					       { 0 } };
	int letter, ret = FOUND;

	name = SEARCH_NAME;
	greps = !strcmp(name, "warp-grep");
	while (!ret && (letter = getopt_long(argc, argv, greps ? "a:p:s:ilnh" : "a:p:s:w:h", names,
					     NULL)) != -1) {
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
