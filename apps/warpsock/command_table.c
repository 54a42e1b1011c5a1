/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rows: each command with its options and the sentences that the help, warpsock(1) and
 * warpsock-bench(1) print. A command or an option that is not here does not exist. To change a
 * page, change its row and run `ninja docs`.
 */
#include <stddef.h>

#include "apps/bench/bench.h"
#include "apps/warpsock/command.h"
#include "apps/warpsock/launcher.h"

const struct command_program command_program = {
	.name = "warpsock",
	.about = "Runs programs with their TCP sockets over iWARP (RDMA over TCP), unchanged.",
	.begin = "To begin with, on two hosts:\n  warpsock run --all --verbose -- COMMAND [ARG..]",
	.failed = COMMAND_FAILED,
};

#define RULES_OPTIONS                                                                            \
	{ "use", 'u', "RULE", NULL,                                                              \
	  "A rule: ddp|auto|tcp client|server|* PROGRAM ADDRESS[/LENGTH]:PORT[-PORT]. May be "   \
	  "given several times; semicolons separate several rules in one argument." },           \
		{ "all", 'a', NULL, NULL,                                                        \
		  "After those, a rule for every TCP socket, connecting or accepted." },         \
	{                                                                                        \
		"mode", 'm', "MODE", "on auto spin",                                             \
			"What --all does. on: a connection uses DDP, or fails. auto: it uses "   \
			"DDP where the peer speaks it, and is plain TCP elsewhere; the default." \
			" spin: it is plain TCP, and calls that wait for input spin as those of" \
			" a connection on DDP do; the peer needs nothing of Warpsock."           \
	}

#define PROFILE_OPTION                                                                        \
	{                                                                                     \
		"profile", 'P', "NAME", "latency cpu throughput safe",                        \
			"A set of options under a name. A variable that is set overrides it." \
	}

static const struct command commands[] = {
	{
		.name = "run",
		.args = "[--] COMMAND [ARG..]",
		.leaves_rest = true,
		.words = "@program",
		.summary = "Run a command with its TCP sockets over iWARP, as rules say.",
		.text = "Rules come from the command line, then from WARPSOCK_USE, then from "
			"/etc/warpsock.conf or the file of WARPSOCK_CONFIG. The first rule that "
			"matches a socket decides.",
		.options = {
			RULES_OPTIONS,
			PROFILE_OPTION,
			{ "provider", 'O', "NAME", "auto soft verbs",
			  "The RDMA provider, as WARPSOCK_PROVIDER names it." },
			{ "report", 'r', "FILE", "@file",
			  "Write what the command's processes did to FILE when they end, as a "
			  "line of JSON; - is standard output." },
			{ "verbose", 'v', NULL, NULL,
			  "Log a line for each connection, and print a summary to standard error "
			  "when the command ends. The command is a child of warpsock then." },
		},
		.examples = "  warpsock run --all -- redis-server --port 7000\n"
			    "  warpsock run --use 'auto client * 10.1.0.0/16:*' -- make deploy\n",
		.main = run_main,
	},
	{
		.name = "check",
		.args = "HOST:PORT",
		.words = NULL,
		.summary = "Ask a server whether it speaks DDP.",
		.text = "It connects as a program in mode on does, tells what was agreed on and "
			"the round trip, or the reason why there is no DDP, and closes the "
			"connection. A server that speaks DDP accepts a connection without data; "
			"a plain server reads an MPA Request, which it does not know. The exit "
			"status is 0 if the server speaks DDP, else 1.",
		.options = {
			{ "timeout", 't', "TIME", NULL,
			  "How long to wait for an answer, as 500ms or 3s, which is the default." },
		},
		.examples = "  warpsock check 10.1.2.3:7000\n"
			    "  warpsock check [::1]:80\n",
		.main = check_main,
	},
	{
		.name = "rules",
		.args = "",
		.words = NULL,
		.summary = "Show the rules in force, by source, in the order in which they decide.",
		.text = "A rule behind one that matches all that it could match is marked: it "
			"never decides. Below warpsock run it shows the rules of that command.",
		.options = { RULES_OPTIONS },
		.examples = "",
		.main = rules_main,
	},
	{
		.name = "explain",
		.args = "client|server PROGRAM ADDRESS:PORT\n[CODE]",
		.words = "@reason",
		.summary = "Tell which rule decides about a socket, or what a reason code means.",
		.text = "The address is the peer's for client, and the socket's own for server. "
			"CODE is a name in any case, a number or an errno, as PEER_NOT_MPA, 100 or "
			"ECONNREFUSED; without one all are listed.",
		.options = { RULES_OPTIONS },
		.examples = "  warpsock explain --all client curl 10.1.2.3:80\n"
			    "  warpsock explain PROBE_TIMEOUT\n",
		.main = explain_main,
	},
	{
		.name = "options",
		.args = "[NAME]",
		.words = "@option",
		.summary = "Show every option with its value and where it comes from.",
		.text = "Of one option it tells what it does and which values it may have. NAME "
			"may lack WARPSOCK_ and be in lower case.",
		.options = { PROFILE_OPTION },
		.examples = "  warpsock options spin\n",
		.main = options_main,
	},
	{
		.name = "doctor",
		.args = "[PROGRAM]",
		.words = "@program",
		.summary = "Tell what of this host serves DDP, and what is in its way.",
		.text = "It shows RDMA devices, limits and the folder of connections; of PROGRAM "
			"it tells whether it can be interposed. A line with ! is a trouble, and "
			"the exit status is 1 then. It changes nothing.",
		.options = {
			{ "root", 'R', "FOLDER", "@file",
			  "Look at files below FOLDER in place of the host's, and open no "
			  "device." },
		},
		.examples = "  warpsock doctor ping\n",
		.main = doctor_main,
	},
	{
		.name = "bench",
		.args = "pingpong|stream|rdma-write|rdma-read",
		.words = "pingpong stream rdma-write rdma-read",
		.summary = "Measure DDP and plain TCP in turns, over loopback.",
		.text = "",
		.options = {
			{ "json", 'J', NULL, NULL, "Print the results as JSON." },
			{ "size", 's', "N", NULL,
			  "Bytes of a message, up to 1 GiB; 64 for pingpong, 1 MiB for the "
			  "others." },
			{ "count", 'n', "N", NULL,
			  "A run ends after so many messages, or when its time is over." },
			{ "seconds", 't', "N", NULL, "Seconds of a run at most, up to 60; 1." },
			{ "rounds", 'r', "N", NULL, "Runs over each of the two, up to 99; 5." },
			{ "spin", 'S', NULL, NULL,
			  "Both ends look for input again and again; each needs a processor of "
			  "its own." },
			{ "block", 'B', NULL, NULL,
			  "Both ends sleep until there is input; the default." },
			{ "cpus", 'C', "A,B", NULL,
			  "Processors of server and client; otherwise the first two that may be "
			  "used." },
			{ "no-crc", 'X', NULL, NULL, "Ask for FPDUs without CRC." },
			{ "report", 'F', "FILE", "@file",
			  "Keep the interposer's report of the runs over DDP; the native API makes "
			  "none." },
		},
		.examples = "",
		.main = bench_main,
	},
	{
		.name = "completion",
		.args = "bash|zsh|fish",
		.words = "bash zsh fish",
		.summary = "Print the completion of a shell for warpsock.",
		.text = "An installed warpsock has put it where the shells look for it.",
		.options = { { .name = NULL } },
		.examples = "  source <(warpsock completion bash)\n",
		.main = completion_main,
	},
	{
		.name = "help",
		.args = "[COMMAND]",
		.words = "@command",
		.summary = "Show all commands, or the help of one.",
		.text = "",
		.options = {
			{ "json", 'J', NULL, NULL,
			  "All of them as JSON, for programs that make pages of it." },
		},
		.examples = "",
		.main = help_main,
	},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

const struct command *command_at(unsigned int i)
{
	return i < COMMANDS ? &commands[i] : NULL;
}
