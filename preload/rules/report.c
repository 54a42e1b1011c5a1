/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the user is told: a line for a connection, and the report at the end.
 *
 * The processes of a command count in memory that they share, a file of /dev/shm that `warpsock
 * run` made, so that what a killed one has counted is not lost, and that lines of a kind are not
 * more than one a second of the whole command. A process without that file counts for itself.
 * Each process that ends adds what has been counted to the report, under a lock on its file: that
 * of --report, or the text in the file of /dev/shm. A file that holds something else is left alone.
 * So the command's own process, which ends last as a rule, knows whether any connection of the
 * command was on DDP. It removes the file of /dev/shm; a process that ends later keeps its counts
 * to itself then.
 *
 * Programs close their standard error before they end. The command's own process keeps a
 * descriptor for its last line from its first plain connection on.
 */
#include "preload/rules/report.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/map.h"
#include "base/quiet.h"
#include "base/runfile.h"
#include "config/report.h"
#include "preload/guard/sandbox.h"
#include "preload/guard/spin.h"
#include "preload/table/internal.h"
#include "stream/stream.h"

static struct config_tally own, *tally = &own; /* or the command's */

/* The file of the command */
static struct {
	char path[CONFIG_TEXT_MAX + 1];	  /* of the report; empty: none */
	char counts[CONFIG_TEXT_MAX + 1]; /* of what its processes share; empty: none */
	bool asked;    /* for the report, by --report or WARPSOCK_REPORT: else it is removed */
	pid_t command; /* the command's own process; 0: each is its own */
	int errors;    /* its standard error, for the last line; -1 */
} file = { .errors = -1 };

/* It is the user's own, and as long as a launcher of this version has made it */
static void tally_map(void)
{
	int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	int fd = file.counts[0] ? (int)syscall(SYS_openat, AT_FDCWD, file.counts, flags) : -1;
	struct stat st;
	void *p;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    st.st_size == (off_t)CONFIG_TALLY_SIZE &&
	    !base_map_create_file(fd, CONFIG_TALLY_SIZE, &p)) {
		/* A launcher before this one may have left holes */
		if (base_runfile_reserve(p, CONFIG_TALLY_SIZE))
			base_map_destroy(p, CONFIG_TALLY_SIZE);
		else
			tally = (struct config_tally *)((char *)p + CONFIG_TALLY_AT);
	}
	base_fd_close(fd);
}

void report_init(const struct config *c)
{
	char *path;

	file.command = (pid_t)strtol(c->command, &path, 10);
	file.asked = c->report[0];
	snprintf(file.counts, sizeof(file.counts), "%s", path + (*path == ':'));
	snprintf(file.path, sizeof(file.path), "%s", file.asked ? c->report : file.counts);
	tally_map();
}

/* --- lines: not more than one of a kind in a second --- */

static const struct {
	enum base_log_level level;
	const char *what;
} kinds[CONFIG_LINES] = {
	[CONFIG_LINE_UP] = { BASE_LOG_INFO, "connections on DDP" },
	[CONFIG_LINE_PLAIN] = { BASE_LOG_INFO, "connections on TCP" },
	[CONFIG_LINE_FAILED] = { BASE_LOG_WARN, "connections that failed" },
	[CONFIG_LINE_UNLOADABLE] = { BASE_LOG_WARN, "programs that cannot be interposed" },
};

/* Those of this kind that had no line of their own */
static void left_out_tell(enum config_line kind)
{
	uint32_t n = __atomic_exchange_n(&tally->lines[kind].left_out, 0, __ATOMIC_RELAXED);

	if (n)
		base_log(kinds[kind].level, "lines left out, of %s: %u", kinds[kind].what, n);
}

/* Another processor, or another time namespace, may be ahead */
static bool is_recent(uint64_t told, uint64_t now)
{
	return told && (now - told < BASE_NS_PER_S || told - now < BASE_NS_PER_S);
}

/* True: now it is the turn of a line of this kind, of one caller alone */
static bool may_tell(enum config_line kind)
{
	uint64_t now = base_now(), told;

	if (!base_log_on(kinds[kind].level))
		return false;
	told = __atomic_load_n(&tally->lines[kind].told, __ATOMIC_RELAXED);
	if (is_recent(told, now) ||
	    !__atomic_compare_exchange_n(&tally->lines[kind].told, &told, now, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		__atomic_add_fetch(&tally->lines[kind].left_out, 1, __ATOMIC_RELAXED);
		return false;
	}
	left_out_tell(kind);
	return true;
}

/* 127.0.0.1:80 or [::1]:80 */
static void peer_format(const struct sockaddr *peer, char out[CONFIG_REPORT_PEER])
{
	char text[INET6_ADDRSTRLEN];
	struct sockaddr_in6 a;
	bool four;

	memcpy(&a, peer, base_address_len(peer));
	base_address_unmap(&a);
	four = base_address_is_four(&a);
	inet_ntop(four ? AF_INET : AF_INET6,
		  four ? (void *)&((struct sockaddr_in *)&a)->sin_addr : (void *)&a.sin6_addr, text,
		  sizeof(text));
	snprintf(out, CONFIG_REPORT_PEER, four ? "%s:%u" : "[%s]:%u", text,
		 ntohs(base_address_port(&a)));
}

/* SO_PEERNAME has an answer while TCP still connects, too, but none for more than the address */
static bool peer_get(int fd, struct sockaddr_in6 *out, sa_family_t family, socklen_t len)
{
	return !syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERNAME, out, &len) &&
	       out->sin6_family == family;
}

/* "?": it has none */
static void peer_of(int fd, char out[CONFIG_REPORT_PEER])
{
	struct sockaddr_in6 peer = { .sin6_family = AF_UNSPEC };
	int saved = errno;

	if (peer_get(fd, &peer, AF_INET, sizeof(struct sockaddr_in)) ||
	    peer_get(fd, &peer, AF_INET6, sizeof(peer)))
		peer_format((struct sockaddr *)&peer, out);
	else
		snprintf(out, CONFIG_REPORT_PEER, "?");
	errno = saved;
}

#define WHY_MAX 384

/* "NAME: what it means. What to do." */
static const char *why_format(unsigned int reason, char out[WHY_MAX])
{
	const char *advice = config_reason_advice(reason);

	snprintf(out, WHY_MAX, "%s: %s%s%s", config_reason_name(reason), config_reason_text(reason),
		 *advice ? " " : "", advice);
	return out;
}

void report_up(const struct sockaddr *peer, bool accepted, const struct stream_info *info)
{
	char text[CONFIG_REPORT_PEER] = "?";

	if (!may_tell(CONFIG_LINE_UP))
		return;
	if (peer)
		peer_format(peer, text);
	base_info("%s is on DDP: as %s, provider %s, %s, MPA revision %u", text,
		  accepted ? "server" : "client", info->provider, info->crc ? "CRC" : "no CRC",
		  info->mpa_rev);
}

static void failed_tell(const char *peer, enum config_reason reason)
{
	char why[WHY_MAX];

	base_warn("%s: the connection failed in mode on: %s", peer, why_format(reason, why));
}

void report_failed(int fd, enum config_reason reason)
{
	char peer[CONFIG_REPORT_PEER];

	if (!may_tell(CONFIG_LINE_FAILED))
		return;
	peer_of(fd, peer);
	failed_tell(peer, reason);
}

void report_failed_at(const struct sockaddr *peer, enum config_reason reason)
{
	char text[CONFIG_REPORT_PEER];

	if (!may_tell(CONFIG_LINE_FAILED))
		return;
	peer_format(peer, text);
	failed_tell(text, reason);
}

/* --- counts --- */

static void add(enum config_report_number number, unsigned long long n)
{
	__atomic_add_fetch(&tally->sums.n[number], n, __ATOMIC_RELAXED);
}

static void stats_add(const struct stream_stats *stats)
{
	add(stats->device ? CONFIG_REPORT_VERBS : CONFIG_REPORT_SOFTWARE, stats->opened);
	add(CONFIG_REPORT_BYTES_TX, stats->tx_octets);
	add(CONFIG_REPORT_BYTES_RX, stats->rx_octets);
	add(CONFIG_REPORT_FPDUS_TX, stats->tx_fpdus);
	add(CONFIG_REPORT_FPDUS_RX, stats->rx_fpdus);
	add(CONFIG_REPORT_ERRORS, stats->broken);
}

void report_reason(enum config_reason reason, unsigned int n)
{
	config_report_reason(&tally->sums, reason, n);
}

void report_stream(const struct stream_stats *stats, enum config_reason why)
{
	add(CONFIG_REPORT_ERRORS, stats->failed);
	if (stats->last)
		stats_add(stats);
	if (stats->failed)
		report_reason(why, 1);
}

static bool is_command(void)
{
	return !file.command || file.command == (pid_t)syscall(SYS_getpid);
}

static void errors_keep(void)
{
	int none = -1, fd;

	if (__atomic_load_n(&file.errors, __ATOMIC_ACQUIRE) >= 0 || !is_command() ||
	    base_log_fd != STDERR_FILENO || __atomic_load_n(&sandbox_on, __ATOMIC_ACQUIRE))
		return;
	fd = internal_dup(STDERR_FILENO);
	if (fd >= 0 && !__atomic_compare_exchange_n(&file.errors, &none, fd, false,
						    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		internal_close(fd);
}

static bool is_wanted(enum config_reason reason)
{
	return reason == CONFIG_REASON_RULE_TCP || reason == CONFIG_REASON_MODE_OFF;
}

/* The first one alone */
static void peer_keep(const char peer[CONFIG_REPORT_PEER], enum config_reason reason)
{
	uint32_t none = CONFIG_TALLY_NO_PEER;

	if (!__atomic_compare_exchange_n(&tally->peer, &none, CONFIG_TALLY_WRITES_PEER, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	memcpy(tally->sums.peer, peer, sizeof(tally->sums.peer));
	tally->sums.why = reason;
	/* Pairs with config_tally_read() */
	__atomic_store_n(&tally->peer, CONFIG_TALLY_PEER, __ATOMIC_RELEASE);
}

void report_plain(int fd, enum config_reason reason)
{
	bool line = may_tell(CONFIG_LINE_PLAIN), first = !is_wanted(reason);
	char peer[CONFIG_REPORT_PEER] = "";

	add(CONFIG_REPORT_TCP, 1);
	report_reason(reason, 1);
	if (first)
		errors_keep();
	first &= !__atomic_load_n(&tally->peer, __ATOMIC_RELAXED);
	if (first || line)
		peer_of(fd, peer);
	if (first)
		peer_keep(peer, reason);
	if (line)
		base_info("%s is plain TCP: %s: %s", peer, config_reason_name(reason),
			  config_reason_text(reason));
}

void report_reset(void)
{
	memset(&own.sums, 0, sizeof(own.sums));
	own.peer = CONFIG_TALLY_NO_PEER;
	for (enum config_line kind = 0; kind < CONFIG_LINES; kind++)
		own.lines[kind].left_out = 0;
	spin_forget();
	internal_close(file.errors);
	file.errors = -1;
}

/* --- the file --- */

/* A program that may write no more to files is not ended for our writing */
static void file_put(int fd, const struct config_report *r)
{
	char text[CONFIG_REPORT_MAX];
	size_t len = config_report_format(r, text);
	struct base_quiet q;
	bool quiet = base_quiet_begin(&q);
	int err = syscall(SYS_pwrite64, fd, text, len, 0) < 0 ? errno : 0;

	if (quiet)
		base_quiet_end(&q, err == EFBIG);
	if (err)
		base_warn("the report cannot be written: %s", strerror(err));
}

/* A process that a sandbox forbids to open files has no report of its own */
static void unwritten(int err)
{
	if (!file.asked)
		base_debug("no counts are added to %s: %s", file.path, strerror(err));
	else if (err == EPERM)
		base_info("no report is written to %s: %s", file.path, strerror(err));
	else
		base_warn("the report cannot be written to %s: %s", file.path, strerror(err));
}

/* Locked; negative: it was told why. Nobody makes one again that its command has removed */
static int file_open(void)
{
	int flags = O_RDWR | O_CLOEXEC | (file.asked ? O_CREAT : O_NOFOLLOW);
	int fd = (int)syscall(SYS_openat, AT_FDCWD, file.path, flags, 0644);
	int err = fd < 0 ? -errno : config_report_lock(fd);

	if (!err)
		return fd;
	unwritten(-err);
	base_fd_close(fd);
	return -1;
}

/* What is in the file: false, and told, when that is something else */
static bool file_get(int fd, struct config_report *r)
{
	char text[CONFIG_REPORT_MAX] = "";

	if (syscall(SYS_pread64, fd, text, sizeof(text) - 1, 0) >= 0 &&
	    !config_report_parse(r, text))
		return true;
	base_warn("%s is no report, and is left as it is", file.path);
	return false;
}

/* A sandbox may end the process for it, which is too much for counts that nobody asked for */
static bool has_file(void)
{
	return file.path[0] && (file.asked || !__atomic_load_n(&sandbox_on, __ATOMIC_ACQUIRE));
}

/* What has been counted is added to what the file has, which *@all is then; false: no file */
static bool file_add(struct config_report *all)
{
	int fd = has_file() ? file_open() : -1;
	bool got = fd >= 0 && file_get(fd, all);
	struct config_report more;

	if (got) {
		config_tally_read(tally, true, &more);
		config_report_add(all, &more);
		file_put(fd, all);
	}
	base_fd_close(fd);
	return got;
}

/* --- the end --- */

static void all_plain_tell(const struct config_report *r)
{
	unsigned long long tcp = r->n[CONFIG_REPORT_TCP];
	char why[WHY_MAX];

	if (!tcp || !r->peer[0] || r->n[CONFIG_REPORT_SOFTWARE] || r->n[CONFIG_REPORT_VERBS])
		return;
	/* The program may have closed it; a log file has a path */
	if (file.errors >= 0 && syscall(SYS_fcntl, STDERR_FILENO, F_GETFD) < 0)
		__atomic_store_n(&base_log_fd, file.errors, __ATOMIC_RELAXED);
	base_warn("all connections of this command stayed on TCP (%llu); the first one, %s: %s",
		  tcp, r->peer, why_format(r->why, why));
}

_Static_assert(CONFIG_REPORT_NUMBERS - CONFIG_REPORT_WAITS == SPIN_FATES, "each fate of a wait has "
									  "a number");

static void waits_add(void)
{
	for (unsigned int i = 0; i < SPIN_FATES; i++)
		add(CONFIG_REPORT_WAITS + i, spin_count((enum spin_fate)i));
	spin_forget();
}

/* Nobody ends behind this process that would tell what was left out */
static bool is_last(void)
{
	return is_command() || tally == &own || __atomic_load_n(&tally->over, __ATOMIC_RELAXED);
}

void report_end(bool last)
{
	struct config_report all;
	bool added;

	waits_add();
	added = file_add(&all);
	if (!last || !is_last())
		return;
	for (enum config_line kind = 0; kind < CONFIG_LINES; kind++)
		left_out_tell(kind);
	if (!is_command())
		return;
	__atomic_store_n(&tally->over, 1, __ATOMIC_RELAXED);
	if (!added)
		config_tally_read(tally, false, &all);
	all_plain_tell(&all);
	/* A launcher that waits for us reads it first */
	if (file.counts[0] && (!file.asked || strcmp(file.path, file.counts) != 0))
		syscall(SYS_unlinkat, AT_FDCWD, file.counts, 0);
}

/* --- programs without the interposer --- */

void report_unloadable(const char *path, enum config_loads why)
{
	add(CONFIG_REPORT_NOT_INTERPOSED, 1);
	if (may_tell(CONFIG_LINE_UNLOADABLE))
		base_warn("%s %s: its sockets stay on TCP", path, config_loads_text(why));
}
