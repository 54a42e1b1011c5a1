/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ACTIVE_H
#define APPS_ACTIVE_H

/* What the commands of warp-active share. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses of every command */
enum { DONE, REFUSED, USAGE, FAILED };

enum { WORDS_MAX = 2048, REGIONS_MAX = 63, OUTPUT_MAX = 65536 };

/* A region as a command line names it: NAME[=FILE[@ADDRESS]][:RIGHTS] */
struct region_word {
	char name[256], file[4096];
	uint64_t addr; /* 0: anywhere */
	unsigned int rights;
	size_t size;	 /* filled in when it is there, */
	void *memory;	 /* on this host */
	uint32_t number; /* and at a server */
};

/* What the options of all commands said */
struct given {
	const char *address, *token, *args_file, *output_file;
	bool in_kernel;
	unsigned long port, fuel, timeout_ms, times;
	struct region_word regions[REGIONS_MAX];
	size_t region_count;
	/* OBJECT [FUNCTION [ARGUMENT..]] */
	const char *object, *function;
	char **words;
	int word_count;
	uint64_t args[WORDS_MAX]; /* what the program gets, */
	size_t args_len;	  /* when args_fill() has been called */
	const char *command;
};

/* --- words.c ------------------------------------------------------------------------------- */

/* Reads options and words of the command argv[0], which ends the process when they are wrong */
void given_read(struct given *g, int argc, char **argv, int words_least, int words_most);
/* The program's arguments, when the addresses of regions are known: 0, or a status */
int args_fill(struct given *g);
/* Says what is wrong: FAILED */
int complain(const char *what, const char *why);
/* Value, output and fuel of a run that was good */
int result_print(const struct given *g, uint64_t value, uint64_t fuel, const void *output,
		 size_t len);
/* "rwa", as many as there are; @text has room for 5 */
const char *rights_text(unsigned int rights, char *text);

/* --- commands: remote.c, trace.c, bench.c -------------------------------------------------- */

int load_main(int argc, char **argv);
int run_main(int argc, char **argv);
int list_main(int argc, char **argv);
int save_main(int argc, char **argv);
int trace_main(int argc, char **argv);
int bench_main(int argc, char **argv);
int help_main(int argc, char **argv);

#endif
