/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The summary at exit: one line of JSON, two levels, numbers only. What several processes write
 * is added up under a lock on the file; a file that holds something else is left alone.
 */
#include "preload/report.h"

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

#define REPORT_MAX 1024

enum number {
	SOFTWARE,
	KERNEL,
	VERBS,
	TCP,
	PEER_UNKNOWN,
	PEER_PLAIN,
	BYTES_TX,
	BYTES_RX,
	FPDUS_TX,
	FPDUS_RX,
	ERRORS,
	NUMBERS,
};

/* In the order of the text; no section: the number stands by itself */
static const struct row {
	const char *section, *key;
	bool rare; /* not shown when it is nought */
} rows[NUMBERS] = {
	[SOFTWARE] = { "connections", "software", false },
	[KERNEL] = { "connections", "kernel", false },
	[VERBS] = { "connections", "verbs", false },
	[TCP] = { "connections", "tcp", false },
	[PEER_UNKNOWN] = { "fallbacks", "peer-unknown", true },
	[PEER_PLAIN] = { "fallbacks", "peer-plain", true },
	[BYTES_TX] = { "bytes", "tx", false },
	[BYTES_RX] = { "bytes", "rx", false },
	[FPDUS_TX] = { "fpdus", "tx", false },
	[FPDUS_RX] = { "fpdus", "rx", false },
	[ERRORS] = { "", "errors", false },
};

static struct {
	pthread_mutex_t lock;
	unsigned long long n[NUMBERS];
} sums = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void add(enum number which, unsigned long long n)
{
	pthread_mutex_lock(&sums.lock);
	sums.n[which] += n;
	pthread_mutex_unlock(&sums.lock);
}

void report_stream(struct stream *s)
{
	struct stream_stats stats;

	s->ops->stats(s, &stats);
	if (!stats.last)
		return;
	add(SOFTWARE, stats.opened);
	add(BYTES_TX, stats.tx_octets);
	add(BYTES_RX, stats.rx_octets);
	add(FPDUS_TX, stats.tx_fpdus);
	add(FPDUS_RX, stats.rx_fpdus);
	add(ERRORS, stats.broken);
}

void report_plain(const char *reason)
{
	add(TCP, 1);
	for (unsigned int i = 0; i < NUMBERS; i++)
		if (!strcmp(rows[i].key, reason))
			add((enum number)i, 1);
}

void report_reset(void)
{
	pthread_mutex_init(&sums.lock, NULL);
	memset(sums.n, 0, sizeof(sums.n));
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

static void section_put(struct text *t, const char *section, const unsigned long long *n)
{
	bool first = true;

	append(t, "%s\"%s\": {", t->len > 1 ? ", " : "", section);
	for (unsigned int i = 0; i < NUMBERS; i++) {
		if (strcmp(rows[i].section, section) || (rows[i].rare && !n[i]))
			continue;
		append(t, "%s\"%s\": %llu", first ? "" : ", ", rows[i].key, n[i]);
		first = false;
	}
	append(t, "}");
}

static void text_put(struct text *t, const unsigned long long *n)
{
	const char *section = "";

	append(t, "{");
	for (unsigned int i = 0; i < NUMBERS; i++) {
		if (!rows[i].section[0])
			append(t, ", \"%s\": %llu", rows[i].key, n[i]);
		else if (strcmp(rows[i].section, section))
			section_put(t, rows[i].section, n);
		section = rows[i].section;
	}
	append(t, "}\n");
}

static unsigned long long value_find(const char *text, const struct row *row)
{
	char key[32];
	const char *at = row->section[0] ? strstr(text, row->section) : text;

	snprintf(key, sizeof(key), "\"%s\": ", row->key);
	at = at ? strstr(at, key) : NULL;
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* Adds what is in the file: false when that is something else */
static bool earlier_add(int fd, unsigned long long *n)
{
	static const char begin[] = "{\"connections\": {\"software\": ";
	char text[REPORT_MAX] = "";
	long len = syscall(SYS_pread64, fd, text, sizeof(text) - 1, 0);

	if (len <= 0)
		return len == 0;
	if (strncmp(text, begin, strlen(begin)))
		return false;
	for (unsigned int i = 0; i < NUMBERS; i++)
		n[i] += value_find(text, &rows[i]);
	return true;
}

void report_write(const char *path)
{
	unsigned long long n[NUMBERS];
	struct text text = { .len = 0 };
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0 || syscall(SYS_flock, fd, LOCK_EX) < 0) {
		base_warn("the report cannot be written to %s: %s", path, strerror(errno));
		base_fd_close(fd);
		return;
	}
	memcpy(n, sums.n, sizeof(n));
	if (earlier_add(fd, n)) {
		text_put(&text, n);
		syscall(SYS_pwrite64, fd, text.octets, text.len, 0);
	} else {
		base_warn("%s holds something else and is left as it is", path);
	}
	base_fd_close(fd);
}
