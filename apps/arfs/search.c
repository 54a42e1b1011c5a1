/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-grep and warp-find: lines and files of an ARFS, found at the server. What is sent is code
 * that was made of the pattern or the condition, with a walk through the tree; what comes back is
 * what was found. Which of both it is the name of the program says.
 */
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warp/active.h>

#include "apps/examples/endpoint.h"
#include "client.h"
#include "walk.h"
#include "walk_code.h"

enum status { FOUND, NONE, USAGE, FAILED };
enum { ROOM = 65536, TRIES = 4 };

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
	ret = walk_code_make(re, NULL, elf, len, &err);
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
		ret = walk_code_make(NULL, where, elf, len, &err);
	bpfgen_expr_destroy(where);
	bpfgen_layout_destroy(layout);
	return ret ? wrong_at(options.where ? options.where : "find", &err) : FOUND;
}

/* --- a walk --- */

static struct walk_args args;
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

/* Prints what came; the state for the next run goes to the arguments. -EPROTO: it is none */
static int hits_take(const char *from, size_t len)
{
	size_t at = 0;

	while (len - at >= sizeof(struct walk_hit)) {
		const struct walk_hit *hit = (const void *)(from + at);
		const char *bytes = from + at + sizeof(*hit);

		if (hit->len > len - at - sizeof(*hit))
			return -EPROTO;
		if (hit->kind == WALK_STATE && hit->len == sizeof(args.state)) {
			memcpy(&args.state, bytes, sizeof(args.state));
		} else if (hit->kind == WALK_LINE_HIT) {
			line_print(hit, bytes);
			found++;
		} else if (hit->kind == WALK_PATH_HIT && hit->len < sizeof(path)) {
			memcpy(path, bytes, hit->len);
			path[hit->len] = 0;
			if (!greps && puts(path) >= 0)
				found++;
		} else {
			return -EPROTO;
		}
		at += (sizeof(*hit) + hit->len + 7) & ~(size_t)7;
	}
	return 0;
}

/* One run, with the lock if others change too much: 1 there is more, 0, or an error */
static int run_once(struct client *c, const struct warp_active_object *object, char *output)
{
	struct walk_args now = args;
	struct warp_active_run run = { .object = object,
				       .function = "main",
				       .args = &now,
				       .args_len = sizeof(now),
				       .output = output,
				       .output_room = ROOM };
	struct warp_active_result result;
	int ret = -EAGAIN;

	for (int i = 0; i < 2 * TRIES && ret == -EAGAIN; i++) {
		now.locked = i >= TRIES;
		ret = client_run(c, &run, WARP_ACTIVE_READ | (now.locked ? WARP_ACTIVE_WRITE : 0u),
				 &result);
		if (!ret && result.code != WARP_ACTIVE_OK)
			return complain("the server", result.text), -EPROTO;
		ret = ret ? ret : (int)(int64_t)result.value;
	}
	if (ret >= 0 && hits_take(output, result.output))
		return -EPROTO;
	return ret;
}

/* The directory that @where names becomes the walk's first level */
static int start_at(struct client *c, const char *where)
{
	struct arfs_attr a = { .node = ARFS_ROOT };
	char part[ARFS_NAME_MAX + 1];
	size_t len;
	int ret = 0;

	for (where += strspn(where, "/"); *where && !ret; where += len + strspn(where + len, "/")) {
		len = strcspn(where, "/");
		if (len > ARFS_NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(part, where, len);
		part[len] = 0;
		ret = client_lookup(c, a.node, part, &a);
		if (!ret && args.state.level[0].path_len + len + 1 > WALK_PATH - 300)
			ret = -ENAMETOOLONG;
		if (ret)
			return ret;
		memcpy(args.state.path + args.state.level[0].path_len, part, len);
		args.state.path[args.state.level[0].path_len + len] = '/';
		args.state.level[0].path_len += (uint32_t)len + 1;
	}
	ret = client_getattr(c, a.node, &a);
	if (!ret && a.mode >> 12 != 4)
		ret = -ENOTDIR;
	args.state.level[0].inode = (uint32_t)a.node;
	args.state.depth = 1;
	return ret;
}

static int walk(struct client *c, const struct warp_active_object *object, const char *where)
{
	char *output = malloc(ROOM);
	int ret = output ? start_at(c, where) : -ENOMEM;

	args.room = ROOM;
	args.lines = greps;
	if (!ret)
		ret = 1;
	while (ret == 1)
		ret = run_once(c, object, output);
	free(output);
	if (ret)
		return complain(where, strerror(-ret));
	return found ? FOUND : NONE;
}

static int search(const void *elf, size_t len, const char *where)
{
	struct warp_active_object *object;
	struct client *c;
	int ret = client_open(&options.client, &c);

	if (ret)
		return complain(options.host, strerror(-ret));
	ret = warp_active_object_create(elf, len, &object);
	if (!ret) {
		ret = walk(c, object, where);
		warp_active_object_destroy(object);
	} else {
		ret = complain("code", strerror(-ret));
	}
	client_close(c);
	return ret;
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
