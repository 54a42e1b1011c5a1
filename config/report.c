/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The text of a report: an object of objects of numbers, and the first peer that was not on DDP.
 *
 * Readers look for keys and take what they find, so that a report of another version adds up as
 * far as both know its keys. What is written is made anew from the numbers.
 */
#include "config/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"

static const struct row {
	const char *section, *key;
} rows[CONFIG_REPORT_NUMBERS] = {
	[CONFIG_REPORT_SOFTWARE] = { "connections", "software" },
	[CONFIG_REPORT_KERNEL] = { "connections", "kernel" },
	[CONFIG_REPORT_VERBS] = { "connections", "verbs" },
	[CONFIG_REPORT_TCP] = { "connections", "tcp" },
	[CONFIG_REPORT_BYTES_TX] = { "bytes", "tx" },
	[CONFIG_REPORT_BYTES_RX] = { "bytes", "rx" },
	[CONFIG_REPORT_FPDUS_TX] = { "fpdus", "tx" },
	[CONFIG_REPORT_FPDUS_RX] = { "fpdus", "rx" },
	[CONFIG_REPORT_NOT_INTERPOSED] = { "programs", "not_interposed" },
	[CONFIG_REPORT_ERRORS] = { "", "errors" },
	[CONFIG_REPORT_WAITS] = { "waits", "unlikely" },
	{ "waits", "alone" },
	{ "waits", "urgent" },
	{ "waits", "quota" },
	{ "waits", "busy" },
	{ "waits", "peer_here" },
	{ "waits", "taken" },
	{ "waits", "found" },
	{ "waits", "ended" },
	{ "waits", "gap" },
	{ "waits", "moved" },
};

void config_report_reason(struct config_report *r, enum config_reason reason, unsigned int n)
{
	for (unsigned int i = 0; i < CONFIG_REPORT_REASONS; i++)
		if (config_reason_at(i)->number == reason)
			__atomic_add_fetch(&r->reason[i], n, __ATOMIC_RELAXED);
}

void config_report_add(struct config_report *to, const struct config_report *newer)
{
	for (unsigned int i = 0; i < CONFIG_REPORT_NUMBERS; i++)
		to->n[i] += newer->n[i];
	for (unsigned int i = 0; i < CONFIG_REPORT_REASONS; i++)
		to->reason[i] += newer->reason[i];
	if (to->peer[0])
		return;
	memcpy(to->peer, newer->peer, sizeof(to->peer));
	to->why = newer->why;
}

static unsigned long long number_read(unsigned long long *n, bool take)
{
	return take ? __atomic_exchange_n(n, 0, __ATOMIC_RELAXED)
		    : __atomic_load_n(n, __ATOMIC_RELAXED);
}

/* The peer stays: the report takes the first one that it is given */
void config_tally_read(struct config_tally *t, bool take, struct config_report *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned int i = 0; i < CONFIG_REPORT_NUMBERS; i++)
		out->n[i] = number_read(&t->sums.n[i], take);
	for (unsigned int i = 0; i < CONFIG_REPORT_REASONS; i++)
		out->reason[i] = number_read(&t->sums.reason[i], take);
	/* Pairs with the release of the process that has written it */
	if (__atomic_load_n(&t->peer, __ATOMIC_ACQUIRE) != CONFIG_TALLY_PEER)
		return;
	snprintf(out->peer, sizeof(out->peer), "%.*s", CONFIG_REPORT_PEER - 1, t->sums.peer);
	out->why = t->sums.why;
}

/* --- to text --- */

struct text {
	char *octets;
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void append(struct text *t, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(t->octets + t->len, CONFIG_REPORT_MAX - t->len, fmt, args);
	va_end(args);
	t->len = base_min(t->len + (size_t)base_max(n, 0), (size_t)CONFIG_REPORT_MAX - 1);
}

static void section_put(struct text *t, const char *section, const struct config_report *r)
{
	const char *comma = "";

	append(t, "%s\"%s\": {", t->len > 1 ? ", " : "", section);
	for (unsigned int i = 0; i < CONFIG_REPORT_NUMBERS; i++) {
		if (strcmp(rows[i].section, section))
			continue;
		append(t, "%s\"%s\": %llu", comma, rows[i].key, r->n[i]);
		comma = ", ";
	}
	append(t, "}");
}

/* Only those that there are */
static void fallbacks_put(struct text *t, const struct config_report *r)
{
	const char *comma = "";

	append(t, ", \"fallbacks\": {");
	for (unsigned int i = 0; i < CONFIG_REPORT_REASONS; i++) {
		if (!r->reason[i])
			continue;
		append(t, "%s\"%s\": %llu", comma, config_reason_at(i)->name, r->reason[i]);
		comma = ", ";
	}
	append(t, "}");
}

size_t config_report_format(const struct config_report *r, char out[CONFIG_REPORT_MAX])
{
	struct text t = { .octets = out };

	append(&t, "{");
	section_put(&t, "connections", r);
	fallbacks_put(&t, r);
	section_put(&t, "bytes", r);
	section_put(&t, "fpdus", r);
	section_put(&t, "programs", r);
	section_put(&t, "waits", r);
	if (r->peer[0])
		append(&t, ", \"first\": {\"peer\": \"%s\", \"why\": %u}", r->peer, r->why);
	append(&t, ", \"errors\": %llu}\n", r->n[CONFIG_REPORT_ERRORS]);
	return t.len;
}

/* --- from text --- */

static const char *value_at(const char *text, const char *section, const char *name)
{
	char key[64];
	const char *at = strstr(text, section);

	snprintf(key, sizeof(key), "\"%s\": ", name);
	at = at ? strstr(at, key) : NULL;
	return at ? at + strlen(key) : NULL;
}

static unsigned long long number_at(const char *text, const char *section, const char *name)
{
	const char *at = value_at(text, section, name);

	return at ? strtoull(at, NULL, 10) : 0;
}

/* A character that no address has is no part of it: it may come to stand in a log */
static void peer_parse(struct config_report *r, const char *text)
{
	const char *at = value_at(text, "\"first\": ", "peer");
	size_t n = at && *at == '"' ? strspn(at + 1, "0123456789abcdef.:[]") : 0;

	if (!n || n >= sizeof(r->peer) || at[1 + n] != '"')
		return;
	memcpy(r->peer, at + 1, n);
	r->peer[n] = '\0';
	r->why = (unsigned int)number_at(text, "\"first\": ", "why");
}

int config_report_parse(struct config_report *r, const char *text)
{
	static const char begin[] = "{\"connections\": {\"software\": ";

	memset(r, 0, sizeof(*r));
	if (!*text)
		return 0;
	if (strncmp(text, begin, strlen(begin)))
		return -EINVAL;
	for (unsigned int i = 0; i < CONFIG_REPORT_NUMBERS; i++)
		r->n[i] = number_at(text, rows[i].section, rows[i].key);
	for (unsigned int i = 0; i < CONFIG_REPORT_REASONS; i++)
		r->reason[i] = number_at(text, "fallbacks", config_reason_at(i)->name);
	peer_parse(r, text);
	return 0;
}

/* --- the file --- */

#define LOCK_TIMEOUT (2 * BASE_NS_PER_S)
#define LOCK_PAUSE_NS 5000000

int config_report_lock(int fd)
{
	const struct timespec pause = { 0, LOCK_PAUSE_NS };
	uint64_t until = base_now() + LOCK_TIMEOUT;

	while (syscall(SYS_flock, fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || base_now() >= until)
			return -errno;
		syscall(SYS_nanosleep, &pause, NULL);
	}
	return 0;
}
