/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-active: the table of its commands and options, of which the command line and the help are
 * made. A command or an option that is not here does not exist.
 */
#include <getopt.h>

#include "apps/active/active.h"
#include "apps/warpsock/command.h"

const struct command_program command_program = {
	.name = "warp-active",
	.about = "Sends programs to servers of Active RDMA, and tries them on this host.",
	.begin = "To begin with:\n"
		 "  warp-list serve -a 127.0.0.1 &\n"
		 "  warp-active list --address 127.0.0.1",
	.failed = USAGE,
};

#define SERVER_OPTIONS                                                           \
	{ "address", 'a', "HOST", NULL, "The server." },                         \
		{ "port", 'p', "N", NULL, "Its TCP port; 7176." },               \
	{                                                                        \
		"token", 'k', "TEXT", NULL,                                      \
			"What the server may ask for before it admits a client." \
	}

#define RUN_OPTIONS                                                                         \
	{ "args", 'A', "FILE", "@file", "The program's arguments are the bytes of FILE." }, \
		{ "output", 'o', "FILE", "@file", "Write the program's output to FILE." },  \
	{                                                                                   \
		"fuel", 'f', "N", NULL, "End the program after so many instructions."       \
	}

#define FILE_OPTION                                                                              \
	{                                                                                        \
		"region", 'r', "NAME=FILE[@ADDRESS][:RIGHTS]", NULL,                             \
			"A region for the program: the content of FILE, at ADDRESS. RIGHTS are " \
			"of r, w and a, for atomics; all by default. The program's changes are " \
			"not written to FILE. May be given several times."                       \
	}

#define PROGRAM "OBJECT [FUNCTION [ARGUMENT..]]"
#define ARGUMENTS                                                                          \
	"An argument is a number of 64 bits, or the name of a region for its address, or " \
	"NAME+NUMBER. Without FUNCTION it is the object's first one."

static const struct command commands[] = {
	{
		.name = "load",
		.args = "OBJECT",
		.summary = "Send an object to a server, and have it verified there.",
		.text = "It prints the SHA-256 by which the server knows the object, or why the "
			"server refuses it.",
		.options = { SERVER_OPTIONS },
		.examples = "  warp-active load --address server walk.o\n",
		.main = load_main,
	},
	{
		.name = "run",
		.args = PROGRAM,
		.summary = "Run a program at a server.",
		.text = ARGUMENTS,
		.options = {
			SERVER_OPTIONS,
			{ "region", 'r', "NAME[:RIGHTS]", NULL,
			  "A region that the program may use, with these rights: r, w and a, for "
			  "atomics. All regions, with all rights, when none is named." },
			RUN_OPTIONS,
			{ "timeout", 't', "MS", NULL, "End it after so many milliseconds." },
			{ "in-kernel", 'X', NULL, NULL,
			  "Have it put into the server's kernel, and run it there. If that cannot "
			  "be, say why." },
		},
		.examples = "  warp-active run --address server walk.o walk list 64 0\n",
		.main = run_main,
	},
	{
		.name = "list",
		.args = "[OBJECT]",
		.summary = "List the regions of a server, or the instructions of an object.",
		.text = "Of a region: its number, rights, address, size and name; x is the right "
			"to run programs on it. Of an object: its functions with source lines.",
		.options = { SERVER_OPTIONS },
		.examples = "  warp-active list --address server\n"
			    "  warp-active list walk.o\n",
		.main = list_main,
	},
	{
		.name = "save",
		.args = "REGION FILE",
		.summary = "Write a region of a server to a file, for trace and bench.",
		.text = "It reads the region by RDMA, and prints the option that makes it a region "
			"there, at the same address.",
		.options = { SERVER_OPTIONS },
		.examples = "  warp-active save --address server list list.mem\n",
		.main = save_main,
	},
	{
		.name = "trace",
		.args = PROGRAM,
		.summary = "Run a program on this host, and show each instruction.",
		.text = "It shows source lines, instructions, and the registers that each "
			"instruction changed. Without --fuel it ends after 10000 instructions. "
			ARGUMENTS,
		.options = { FILE_OPTION, RUN_OPTIONS },
		.examples = "  warp-active trace --region list=list.mem@0x7f0012340000 walk.o walk "
			    "list 3 0\n",
		.main = trace_main,
	},
	{
		.name = "bench",
		.args = PROGRAM,
		.summary = "Measure a program on this host, with and without the JIT.",
		.text = "It prints the median time of a run. " ARGUMENTS,
		.options = {
			FILE_OPTION,
			RUN_OPTIONS,
			{ "times", 'n', "N", NULL, "Run it so often; 1000." },
		},
		.examples = "  warp-active bench --region list=list.mem@0x7f0012340000 walk.o walk "
			    "list 64 0\n",
		.main = bench_main,
	},
	{
		.name = "help",
		.args = "[COMMAND]",
		.summary = "Show all commands, or the help of one.",
		.text = "",
		.options = { { .name = NULL } },
		.examples = "",
		.main = help_main,
	},
};

const struct command *command_at(unsigned int i)
{
	return i < sizeof(commands) / sizeof(commands[0]) ? &commands[i] : NULL;
}

int help_main(int argc, char **argv)
{
	command_next("help", argc, argv);
	return command_help_of(argc, argv);
}

int main(int argc, char **argv)
{
	return command_start(argc, argv);
}
