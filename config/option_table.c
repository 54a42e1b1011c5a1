/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rows: what can be set, its limits, its default, and the sentences that docs/options.md and
 * warpsock.conf(5) print. An option that is not here does not exist; to change a page, change
 * its row and run `ninja docs`. Times are in nanoseconds, sizes in bytes.
 */
#include "base/bits.h"
#include "base/clock.h"
#include "config/option.h"
#include "config/rule.h"

#define KIB 1024ull
#define MIB (1024 * KIB)

static const struct config_option options[] = {
	[CONFIG_FILE] = {
		.name = "WARPSOCK_CONFIG",
		.type = CONFIG_TYPE_TEXT,
		.fallback = CONFIG_FILE_DEFAULT,
		.max = CONFIG_TEXT_MAX,
		.text = "The file with rules. The default file may be absent; one that is named "
			"here must be readable. An empty value means no file.",
	},
	[CONFIG_USE] = {
		.name = "WARPSOCK_USE",
		.type = CONFIG_TYPE_RULES,
		.fallback = "",
		.text = "Rules, separated by semicolons or newlines. They come before those of "
			"the file.",
	},
	[CONFIG_PROVIDER] = {
		.name = "WARPSOCK_PROVIDER",
		.type = CONFIG_TYPE_TEXT,
		.fallback = "auto",
		.min = 1,
		.max = CONFIG_PROVIDER_MAX,
		.text = "The RDMA provider that serves connections, where no rule names one. soft "
			"is software. verbs is an RDMA device where the route leads over one, "
			"else soft. Listeners are soft's and the device's; with iWARP they are "
			"the device's alone. auto is the same, but with iWARP listeners are "
			"soft's.",
	},
	[CONFIG_RING] = {
		.name = "WARPSOCK_RING",
		.type = CONFIG_TYPE_SIZE,
		.fallback = "512k",
		.min = 8 * KIB,
		.max = 64 * MIB,
		.text = "How many bytes a peer may write before the program has read them, made a "
			"power of two.",
	},
	[CONFIG_CREDITS] = {
		.name = "WARPSOCK_CREDITS",
		.type = CONFIG_TYPE_COUNT,
		.fallback = "384",
		.min = 32,
		.max = 32767,
		.text = "How many messages a peer may send before it is granted more. This is for "
			"peers under rsockets; another Warpsock goes by bytes alone.",
	},
	[CONFIG_CRC] = {
		.name = "WARPSOCK_CRC",
		.type = CONFIG_TYPE_SWITCH,
		.fallback = "on",
		.max = 1,
		.text = "Whether to ask for a CRC32c on each FPDU. It is used when either end "
			"asks for it (RFC 5044).",
	},
	[CONFIG_MARKERS] = {
		.name = "WARPSOCK_MARKERS",
		.type = CONFIG_TYPE_SWITCH,
		.fallback = "off",
		.max = 1,
		.text = "Whether to ask the peer for markers in what it sends (RFC 5044). They "
			"help only a receiver that places segments out of order.",
	},
	[CONFIG_SPIN] = {
		.name = "WARPSOCK_SPIN",
		.type = CONFIG_TYPE_TIME,
		.unit = "us",
		.fallback = "50",
		.max = BASE_NS_PER_S,
		.text = "How long a call that waits may spin: it looks for input itself before it "
			"sleeps in the kernel. It spins only where the last waits of the same "
			"socket, set or thread say that input comes soon, and not where another "
			"program wants the processor. 0 is never to spin.",
	},
	[CONFIG_TCP_SPIN] = {
		.name = "WARPSOCK_TCP_SPIN",
		.type = CONFIG_TYPE_SWITCH,
		.fallback = "off",
		.max = 1,
		.text = "Whether calls that wait on TCP sockets without DDP spin, too. It counts "
			"for input, and for sockets that the program has made or accepted itself; "
			"warpsock run --mode spin sets it.",
	},
	[CONFIG_GRACE] = {
		.name = "WARPSOCK_GRACE",
		.type = CONFIG_TYPE_TIME,
		.unit = "ms",
		.fallback = "auto",
		.max = 10 * BASE_NS_PER_S,
		.text = "How long a connection that was accepted in mode auto waits for the "
			"peer's MPA Request. After that the program may write, which makes the "
			"connection plain TCP. auto is 5 ms or two round trips, whichever is "
			"more, and at most 50 ms.",
	},
	[CONFIG_PROBE_TIMEOUT] = {
		.name = "WARPSOCK_PROBE_TIMEOUT",
		.type = CONFIG_TYPE_TIME,
		.unit = "ms",
		.fallback = "auto",
		.min = BASE_NS_PER_MS,
		.max = 60 * BASE_NS_PER_S,
		.text = "How long a program that connects in mode auto waits for the answer to "
			"its MPA Request. Then it falls back to plain TCP. auto is 50 ms or four "
			"round trips, whichever is more. Over RoCE or InfiniBand this also holds "
			"in mode on, with a second at least, before software serves.",
	},
	[CONFIG_FORGET_PLAIN] = {
		.name = "WARPSOCK_FORGET_PLAIN",
		.type = CONFIG_TYPE_TIME,
		.unit = "s",
		.fallback = "60",
		.min = BASE_NS_PER_S,
		.max = 86400 * BASE_NS_PER_S,
		.text = "How long a program in mode auto remembers that a peer did not speak MPA, "
			"and does not ask it again.",
	},
	[CONFIG_FORGET_DDP] = {
		.name = "WARPSOCK_FORGET_DDP",
		.type = CONFIG_TYPE_TIME,
		.unit = "s",
		.fallback = "3600",
		.min = BASE_NS_PER_S,
		.max = 86400 * BASE_NS_PER_S,
		.text = "How long a program in mode auto remembers that a peer spoke MPA, which is "
			"reason enough to ask it.",
	},
	[CONFIG_ASK] = {
		.name = "WARPSOCK_ASK",
		.type = CONFIG_TYPE_COUNT,
		.fallback = "5041",
		.max = 32767,
		.text = "The UDP port of the question whether a host has a listener for DDP. A "
			"program that connects in mode auto asks the peer's host, beside the "
			"connection. A program with such a listener answers for its host. Both "
			"hosts need the same port. 0 is neither to ask nor to answer.",
	},
	[CONFIG_PORT_MAPPER] = {
		.name = "WARPSOCK_PORT_MAPPER",
		.type = CONFIG_TYPE_TIME,
		.unit = "ms",
		.fallback = "0",
		.max = 10 * BASE_NS_PER_S,
		.text = "How long a connect by software waits for the port mapper of the peer's "
			"host (iwpmd, UDP port 3935). The mapper tells the TCP port of a device's "
			"listener. Without an answer the connect goes to the port that the "
			"program has named; in mode auto also when the other port leads nowhere. "
			"0 is not to ask. An answer, or its absence, is remembered for ten "
			"seconds. A connect that does not block waits for this, too. A signal "
			"does not end the wait; its handler runs afterwards. The socket is bound "
			"to an address and a port before it asks.",
	},
	[CONFIG_START] = {
		.name = "WARPSOCK_START",
		.type = CONFIG_TYPE_TIME,
		.unit = "ms",
		.fallback = "10s",
		.min = BASE_NS_PER_MS,
		.max = 3600 * BASE_NS_PER_S,
		.text = "How long the peer's MPA frame may take in mode on, counted from the TCP "
			"connection. A program that connects waits for the Reply, one that "
			"accepts for the Request. Then the connection is reset.",
	},
	[CONFIG_CONNECT] = {
		.name = "WARPSOCK_CONNECT",
		.type = CONFIG_TYPE_CHOICE,
		.fallback = "early",
		.words = "early strict",
		.text = "When a connect in mode on returns. early is with the MPA Reply, or "
			"without it after 50 ms or four round trips, whichever is more. TCP's "
			"connect does not wait for the peer's program either. Up to 64 KiB of "
			"writes are held until the Reply comes. strict is with the Reply alone, "
			"for programs that choose among addresses by connect. Over an RDMA device "
			"it is always strict.",
	},
	[CONFIG_LINGER] = {
		.name = "WARPSOCK_LINGER",
		.type = CONFIG_TYPE_TIME,
		.unit = "s",
		.fallback = "30",
		.max = 86400 * BASE_NS_PER_S,
		.text = "How long the end of a program waits until what it has written is "
			"delivered. While the program lives there is no such limit. A closed "
			"connection whose peer has everything, and does not close, is kept for "
			"this long, too.",
	},
	[CONFIG_RUNTIME_DIR] = {
		.name = "WARPSOCK_RUNTIME_DIR",
		.type = CONFIG_TYPE_TEXT,
		.fallback = "auto",
		.min = 1,
		.max = CONFIG_TEXT_MAX,
		.text = "The folder for the state of connections. It is on a tmpfs, the user's "
			"own and closed to others (mode 0700); it is made if there is none. auto "
			"is /dev/shm/warpsock-UID, where UID is the effective one. Processes that "
			"hand connections to each other need the same folder. Where it is not "
			"fit, connections belong to the process that made them and its forked "
			"children.",
	},
	[CONFIG_URING] = {
		.name = "WARPSOCK_URING",
		.type = CONFIG_TYPE_CHOICE,
		.fallback = "refuse",
		.words = "refuse allow",
		.text = "What io_uring_setup() returns in a program whose sockets a rule takes. "
			"refuse is EPERM, as in containers, and runtimes go on without a ring. "
			"allow gives the ring; connections that begin then stay on TCP, with the "
			"reason IO_URING.",
	},
	[CONFIG_CARRIER] = {
		.name = "WARPSOCK_CARRIER",
		.type = CONFIG_TYPE_CHOICE,
		.fallback = "tcp",
		.words = "tcp uring",
		.text = "How programs of the native API (libwarp) receive in software. tcp is a "
			"system call for each connection. uring is one call of io_uring for all "
			"that have input at the same time. Where liburing is missing, or the "
			"kernel gives no ring, it is tcp, and the log says why. A program's "
			"sockets do not use it, because several processes may have them.",
	},
	[CONFIG_LOG] = {
		.name = "WARPSOCK_LOG",
		.type = CONFIG_TYPE_CHOICE,
		.fallback = "warn",
		.words = "off err warn info debug",
		.text = "What is logged; each level includes those before it.",
	},
	[CONFIG_LOG_FILE] = {
		.name = "WARPSOCK_LOG_FILE",
		.type = CONFIG_TYPE_TEXT,
		.fallback = "",
		.max = CONFIG_TEXT_MAX,
		.text = "The absolute path of a file to append log lines to, instead of standard "
			"error.",
	},
	[CONFIG_REPORT] = {
		.name = "WARPSOCK_REPORT",
		.type = CONFIG_TYPE_TEXT,
		.fallback = "",
		.max = CONFIG_TEXT_MAX,
		.text = "The absolute path of a file for the report that the last process of a "
			"command writes when it ends. Where processes run as several users, make "
			"it before, with mode 0666.",
	},
	[CONFIG_RULES] = {
		.name = "WARPSOCK_RULES",
		.type = CONFIG_TYPE_RULES,
		.internal = true,
		.fallback = "",
		.text = "The table of all rules, made by the launcher for the interposer. It "
			"takes the place of every other source.",
	},
	[CONFIG_COMMAND] = {
		.name = "WARPSOCK_COMMAND",
		.type = CONFIG_TYPE_TEXT,
		.internal = true,
		.fallback = "",
		.max = CONFIG_TEXT_MAX,
		.text = "The command's own process and, behind a colon, the file of the counts of "
			"all of its processes, made by the launcher for the interposer.",
	},
	[CONFIG_SPIN_ALWAYS] = {
		.name = "WARPSOCK_SPIN_ALWAYS",
		.type = CONFIG_TYPE_SWITCH,
		.internal = true,
		.fallback = "off",
		.max = 1,
		.text = "Each wait spins, whatever speaks against it: for the project's own tests.",
	},
	[CONFIG_LONG] = {
		.name = "WARPSOCK_LONG",
		.type = CONFIG_TYPE_TEXT,
		.internal = true,
		.fallback = "",
		.max = 15,
		.text = "The project's own tests take ten times as long.",
	},
};
_Static_assert(base_array_size(options) == CONFIG_OPTIONS, "each option has a row");

const struct config_option *config_option_get(enum config_option_id id)
{
	return &options[id];
}
