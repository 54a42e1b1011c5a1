/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What stands on a command line of warp-active: options, regions, arguments of programs. And what
 * is printed of a run.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warp/active.h>

#include "apps/active/active.h"
#include "apps/warpsock/command.h"

static const char letters[] = "rwax";
static const unsigned int rights[] = { WARP_ACTIVE_READ, WARP_ACTIVE_WRITE, WARP_ACTIVE_ATOMIC,
				       WARP_ACTIVE_RUN };

int complain(const char *what, const char *why)
{
	fprintf(stderr, "warp-active: %s: %s\n", what, why);
	return FAILED;
}

const char *rights_text(unsigned int of, char *text)
{
	char *to = text;

	for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++)
		if (of & rights[i])
			*to++ = letters[i];
	*to = 0;
	return text;
}

/* Decimal, or hexadecimal behind 0x; the word ends there */
static bool number_read(const char *word, uint64_t *out)
{
	char *end;

	errno = 0;
	if (!isdigit((unsigned char)*word))
		return false;
	*out = strtoull(word, &end, 0);
	return !*end && !errno;
}

static bool rights_read(const char *word, unsigned int *out)
{
	for (; *word; word++) {
		const char *letter = strchr("rwa", *word);

		if (!letter)
			return false;
		*out |= rights[letter - "rwa"];
	}
	return true;
}

/* NAME[=FILE[@ADDRESS]][:RIGHTS]; the name is the file's if there is none before the = */
static bool region_read(struct region_word *r, const char *word)
{
	char text[sizeof(r->file)], *colon, *equals, *at;

	*r = (struct region_word){ .rights = 0 };
	if (strlen(word) >= sizeof(text))
		return false;
	strcpy(text, word);
	colon = strrchr(text, ':');
	if (colon)
		*colon = 0;
	if (colon && !rights_read(colon + 1, &r->rights))
		return false;
	if (!colon)
		r->rights = WARP_ACTIVE_READ | WARP_ACTIVE_WRITE | WARP_ACTIVE_ATOMIC;
	equals = strchr(text, '=');
	if (equals) {
		at = strrchr(equals, '@');
		if (at && !number_read(at + 1, &r->addr))
			return false;
		if (at)
			*at = 0;
		strcpy(r->file, equals + 1);
		*equals = 0;
	}
	if (!*text || strlen(text) >= sizeof(r->name))
		return false;
	strcpy(r->name, text);
	return true;
}

static void region_add(struct given *g)
{
	if (g->region_count == REGIONS_MAX)
		exit(command_wrong(g->command, "more than %d regions", REGIONS_MAX));
	if (!region_read(&g->regions[g->region_count], optarg))
		exit(command_wrong(g->command, "%s is no region: NAME[=FILE[@ADDRESS]][:RIGHTS]",
				   optarg));
	g->region_count++;
}

static unsigned long number(const struct given *g, int letter, unsigned long least,
			    unsigned long most)
{
	uint64_t value;

	if (!number_read(optarg, &value) || value < least || value > most)
		exit(command_wrong(g->command, "%s is no value for -%c", optarg, letter));
	return value;
}

static void option_take(struct given *g, int letter)
{
	switch (letter) {
	case 'a':
		g->address = optarg;
		break;
	case 'p':
		g->port = number(g, letter, 1, 65535);
		break;
	case 'k':
		g->token = optarg;
		break;
	case 'r':
		region_add(g);
		break;
	case 'f':
		g->fuel = number(g, letter, 1, ~0ul);
		break;
	case 't':
		g->timeout_ms = number(g, letter, 1, 3600000);
		break;
	case 'X':
		g->in_kernel = true;
		break;
	case 'A':
		g->args_file = optarg;
		break;
	case 'o':
		g->output_file = optarg;
		break;
	default:
		g->times = number(g, letter, 1, 100000000);
	}
}

void given_read(struct given *g, int argc, char **argv, int words_least, int words_most)
{
	int letter, count;

	*g = (struct given){ .port = 7176, .command = argv[0] };
	while ((letter = command_next(argv[0], argc, argv)) != -1)
		option_take(g, letter);
	count = argc - optind;
	if (count < words_least)
		exit(command_wrong(argv[0], "something is missing"));
	if (count > words_most)
		exit(command_wrong(argv[0], "\"%s\" is too much", argv[optind + words_most]));
	if (count > 0)
		g->object = argv[optind];
	if (count > 1)
		g->function = argv[optind + 1];
	g->words = argv + optind + 2;
	g->word_count = count > 2 ? count - 2 : 0;
}

/* --- arguments of programs ---------------------------------------------------------------- */

/* A number, or the name of a region for its address, or NAME+NUMBER */
static bool word_read(const struct given *g, const char *word, uint64_t *out)
{
	size_t len = strcspn(word, "+");
	uint64_t offset = 0;

	if (number_read(word, out))
		return true;
	if (word[len] && !number_read(word + len + 1, &offset))
		return false;
	for (size_t i = 0; i < g->region_count; i++)
		if (strlen(g->regions[i].name) == len && !memcmp(g->regions[i].name, word, len)) {
			*out = g->regions[i].addr + offset;
			return true;
		}
	return false;
}

static int args_load(struct given *g)
{
	FILE *f = fopen(g->args_file, "re");

	if (!f)
		return complain(g->args_file, strerror(errno));
	g->args_len = fread(g->args, 1, sizeof(g->args), f);
	if (ferror(f) || fgetc(f) != EOF) {
		fclose(f);
		return complain(g->args_file, "more than 16384 bytes");
	}
	fclose(f);
	return DONE;
}

int args_fill(struct given *g)
{
	if (g->args_file)
		return g->word_count ? command_wrong(g->command, "arguments, and a file of them")
				     : args_load(g);
	if (g->word_count > WORDS_MAX)
		return command_wrong(g->command, "more than %d arguments", WORDS_MAX);
	for (int i = 0; i < g->word_count; i++)
		if (!word_read(g, g->words[i], &g->args[i]))
			return command_wrong(g->command, "%s is neither a number nor a region",
					     g->words[i]);
	g->args_len = (size_t)g->word_count * sizeof(g->args[0]);
	return DONE;
}

/* --- results ------------------------------------------------------------------------------ */

static bool is_text(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isprint(bytes[i]) && !isspace(bytes[i]))
			return false;
	return true;
}

static void output_print(const uint8_t *bytes, size_t len)
{
	printf("output of %zu bytes:\n", len);
	if (is_text(bytes, len)) {
		fwrite(bytes, 1, len, stdout);
		if (bytes[len - 1] != '\n')
			putchar('\n');
		return;
	}
	for (size_t i = 0; i < len; i++)
		printf(i % 16 == 15 || i + 1 == len ? "%02x\n" : "%02x ", bytes[i]);
}

int result_print(const struct given *g, uint64_t value, uint64_t fuel, const void *output,
		 size_t len)
{
	FILE *f;

	printf("value %" PRIu64 " (0x%" PRIx64 "), %" PRIu64 " instructions\n", value, value, fuel);
	if (!g->output_file) {
		if (len)
			output_print(output, len);
		return DONE;
	}
	f = fopen(g->output_file, "we");
	if (!f)
		return complain(g->output_file, strerror(errno));
	fwrite(output, 1, len, f);
	return fclose(f) ? complain(g->output_file, strerror(errno)) : DONE;
}
