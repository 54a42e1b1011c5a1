/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The summary at exit: one line of JSON, two levels, numbers only. What several processes write
 * is added up under a lock on the file; a file that holds something else is left alone.
 */
#include "preload/rules/report.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/quiet.h"
#include "stream/stream.h"

#define REPORT_MAX 4096

enum number {
	SOFTWARE,
	KERNEL,
	VERBS,
	TCP,
	BYTES_TX,
	BYTES_RX,
	FPDUS_TX,
	FPDUS_RX,
	ERRORS,
	NUMBERS,
};

#define X(name, number, group, text, advice) +1
enum { REASONS = CONFIG_REASON_LIST(X) };
#undef X

static const struct row {
	const char *section, *key;
} rows[NUMBERS] = {
	[SOFTWARE] = { "connections", "software" },
	[KERNEL] = { "connections", "kernel" },
	[VERBS] = { "connections", "verbs" },
	[TCP] = { "connections", "tcp" },
	[BYTES_TX] = { "bytes", "tx" },
	[BYTES_RX] = { "bytes", "rx" },
	[FPDUS_TX] = { "fpdus", "tx" },
	[FPDUS_RX] = { "fpdus", "rx" },
	[ERRORS] = { "", "errors" },
};

struct sums {
	unsigned long long n[NUMBERS];
	unsigned long long reason[REASONS]; /* by place in the list */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sums sums;

static void stats_add(const struct stream_stats *stats)
{
	sums.n[stats->device ? VERBS : SOFTWARE] += stats->opened;
	sums.n[BYTES_TX] += stats->tx_octets;
	sums.n[BYTES_RX] += stats->rx_octets;
	sums.n[FPDUS_TX] += stats->tx_fpdus;
	sums.n[FPDUS_RX] += stats->rx_fpdus;
	sums.n[ERRORS] += stats->broken;
}

static void reason_add(enum config_reason reason, unsigned int n)
{
	for (unsigned int i = 0; i < REASONS; i++)
		sums.reason[i] += config_reason_at(i)->number == reason ? n : 0;
}

void report_reason(enum config_reason reason, unsigned int n)
{
	pthread_mutex_lock(&lock);
	reason_add(reason, n);
	pthread_mutex_unlock(&lock);
}

void report_stream(const struct stream_stats *stats, enum config_reason why)
{
	pthread_mutex_lock(&lock);
	sums.n[ERRORS] += stats->failed;
	if (stats->last)
		stats_add(stats);
	if (stats->failed)
		reason_add(why, 1);
	pthread_mutex_unlock(&lock);
}

void report_plain(enum config_reason reason)
{
	pthread_mutex_lock(&lock);
	sums.n[TCP]++;
	reason_add(reason, 1);
	pthread_mutex_unlock(&lock);
}

void report_reset(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(&sums, 0, sizeof(sums));
}

struct text {
	char octets[REPORT_MAX];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void append(struct text *t, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(t->octets + t->len, sizeof(t->octets) - t->len, fmt, args);
	va_end(args);
	t->len = base_min(t->len + (size_t)base_max(n, 0), sizeof(t->octets) - 1);
}

static void section_put(struct text *t, const char *section, const struct sums *s)
{
	const char *comma = "";

	append(t, "%s\"%s\": {", t->len > 1 ? ", " : "", section);
	for (unsigned int i = 0; i < NUMBERS; i++) {
		if (strcmp(rows[i].section, section))
			continue;
		append(t, "%s\"%s\": %llu", comma, rows[i].key, s->n[i]);
		comma = ", ";
	}
	append(t, "}");
}

/* Only those that there are */
static void fallbacks_put(struct text *t, const struct sums *s)
{
	const char *comma = "";

	append(t, ", \"fallbacks\": {");
	for (unsigned int i = 0; i < REASONS; i++) {
		if (!s->reason[i])
			continue;
		append(t, "%s\"%s\": %llu", comma, config_reason_at(i)->name, s->reason[i]);
		comma = ", ";
	}
	append(t, "}");
}

static void text_put(struct text *t, const struct sums *s)
{
	append(t, "{");
	section_put(t, "connections", s);
	fallbacks_put(t, s);
	section_put(t, "bytes", s);
	section_put(t, "fpdus", s);
	append(t, ", \"errors\": %llu}\n", s->n[ERRORS]);
}

static unsigned long long value_find(const char *text, const char *section, const char *name)
{
	char key[64];
	const char *at = strstr(text, section);

	snprintf(key, sizeof(key), "\"%s\": ", name);
	at = at ? strstr(at, key) : NULL;
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* Adds what is in the file: false when that is something else */
static bool earlier_add(int fd, struct sums *s)
{
	static const char begin[] = "{\"connections\": {\"software\": ";
	char text[REPORT_MAX] = "";
	long len = syscall(SYS_pread64, fd, text, sizeof(text) - 1, 0);

	if (len <= 0)
		return len == 0;
	if (strncmp(text, begin, strlen(begin)))
		return false;
	for (unsigned int i = 0; i < NUMBERS; i++)
		s->n[i] += value_find(text, rows[i].section, rows[i].key);
	for (unsigned int i = 0; i < REASONS; i++)
		s->reason[i] += value_find(text, "fallbacks", config_reason_at(i)->name);
	return true;
}

/* A program that may write no more to files is not ended for our writing */
static void file_put(int fd, const struct text *t)
{
	struct base_quiet q;
	bool quiet = base_quiet_begin(&q);
	int err = syscall(SYS_pwrite64, fd, t->octets, t->len, 0) < 0 ? errno : 0;

	if (quiet)
		base_quiet_end(&q, err == EFBIG);
	if (err)
		base_warn("the report cannot be written: %s", strerror(err));
}

/* Whom a sandbox forbids to open files has no report of its own */
static void unwritten(const char *path, int err)
{
	if (err == EPERM)
		base_info("no report is written to %s: %s", path, strerror(err));
	else
		base_warn("the report cannot be written to %s: %s", path, strerror(err));
}

/* Others add to it for a moment. False: errno; a signal is no reason to give up */
static bool file_lock(int fd)
{
	while (syscall(SYS_flock, fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return false;
	return true;
}

void report_write(const char *path)
{
	struct text text = { .len = 0 };
	struct sums all;
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0 || !file_lock(fd)) {
		unwritten(path, errno);
		base_fd_close(fd);
		return;
	}
	pthread_mutex_lock(&lock);
	all = sums;
	pthread_mutex_unlock(&lock);
	if (earlier_add(fd, &all)) {
		text_put(&text, &all);
		file_put(fd, &text);
	} else {
		base_warn("%s holds something else and is left as it is", path);
	}
	base_fd_close(fd);
}
