/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The commands and their options: one table of a program (command_table.c is warpsock's), of which
 * getopt_long()'s list, the help, warpsock(1) and the completion of shells are made.
 */
#ifndef APPS_WARPSOCK_COMMAND_H
#define APPS_WARPSOCK_COMMAND_H

#include <stdbool.h>

#define COMMAND_FAILED 125 /* warpsock's own */
#define COMMAND_OPTIONS 12

struct command_option {
	const char *name; /* without the two dashes; NULL behind the last one */
	int letter;	  /* what command_next() says for it; a capital: it has no short form */
	const char *arg;  /* what the help calls its value; NULL: it has none */
	const char
		*words; /* values there may be, with blanks between them; "@file" a path; or NULL */
	const char *text; /* sentences */
};

struct command {
	const char *name;
	const char *args;  /* what follows the options; several forms on a line each */
	const char *words; /* what the first argument may be: "@command", "@option", "@reason", */
	/* "@program" or words */
	const char *summary;  /* a line */
	const char *text;     /* sentences; may be empty */
	const char *examples; /* lines; may be empty */
	bool leaves_rest;     /* what follows its first argument is another program's */
	const struct command_option options[COMMAND_OPTIONS];
	/* Its exit status. argv[0] is its name */
	int (*main)(int argc, char **argv);
};

/* The program that has the table */
struct command_program {
	const char *name;
	const char *about; /* what it does, a sentence */
	const char *begin; /* what to begin with; lines behind the list of commands */
	int failed;	   /* the exit status when a command line is wrong */
};
extern const struct command_program command_program;

/* NULL behind the last one */
const struct command *command_at(unsigned int i);
/* NULL: there is none of this name */
const struct command *command_find(const char *name);

/*
 * The next option's letter, -1 behind the last one, as getopt_long() with its optarg and optind.
 * --help prints the help and ends the process; an option that is none, or that lacks its value, is
 * named, and the process ends with command_program.failed.
 */
int command_next(const char *name, int argc, char **argv);
/* Says what is wrong with the arguments of a command, and where its help is; program.failed */
__attribute__((format(printf, 2, 3))) int command_wrong(const char *name, const char *fmt, ...);
/* The same of a name that is no command */
int command_unknown(const char *name);

/* Of one command; NULL: of all of them, a line each */
void command_help(const struct command *c);
/* Of the one that argv[optind] names, if one is there: the rest of a command "help" */
int command_help_of(int argc, char **argv);
/* Runs what the command line says: --help, --version, or a command. Its exit status */
int command_start(int argc, char **argv);
/* The table as JSON */
void command_json(void);

#endif
