/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the variables of the environment may say, in one table. A user who sets something else reads
 * the name as it was spelled, the value, and what it may be.
 *
 * MASTERIP and WORKERIP are checked by those who use them (job_address.c): what is good there
 * depends on the machine.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "am/env.h"
#include "base/bits.h"
#include "include/warp/amudp.h"
#include "include/wire/am.h"

#define ANY_NUMBER 1e18

enum kind { WHOLE, REAL, TRUTH, WORDS, ADDRESSES };

struct row {
	const char *name;
	enum kind kind;
	double low, high;
	const char *words; /* of WORDS: each between blanks */
};

static const struct row rows[] = {
	{ "NETWORKDEPTH", WHOLE, 1, AMUDP_MAX_NETWORKDEPTH, NULL },
	{ "SENDDEPTH", WHOLE, -1, INT_MAX, NULL },
	{ "RECVDEPTH", WHOLE, 0, AMUDP_MAX_RECVDEPTH, NULL },
	{ "REQUESTTIMEOUT_INITIAL", WHOLE, -1, ANY_NUMBER, NULL },
	{ "REQUESTTIMEOUT_MAX", WHOLE, -1, ANY_NUMBER, NULL },
	{ "REQUESTTIMEOUT_BACKOFF", WHOLE, 1, 1000, NULL },
	{ "BATCH", WHOLE, 0, INT_MAX, NULL },
	{ "SPIN", WHOLE, 0, 1e9, NULL },
	{ "MAX_PACKET", WHOLE, 0, AM_WIRE_MAX_DATAGRAM, NULL },
	{ "LINEBUFFERSZ", WHOLE, 0, 1 << 20, NULL },
	{ "EXITTIMEOUT", REAL, 0, 1e9, NULL },
	{ "FAULT_RATE", REAL, 0, 1, NULL },
	{ "FAULT_DUPLICATE", REAL, 0, 1, NULL },
	{ "FAULT_REORDER", REAL, 0, 1, NULL },
	{ "FAULT_DELAY", REAL, 0, 1, NULL },
	{ "FAULT_CORRUPT", REAL, 0, 1, NULL },
	{ "FAULT_DELAY_US", WHOLE, 0, 1e9, NULL },
	{ "FAULT_SEED", WHOLE, 0, UINT32_MAX, NULL },
	{ "SLAVE_RANK", WHOLE, 0, AMUDP_MAX_SPMDPROCS - 1, NULL },
	{ "CHECKSUM", WORDS, 0, 0, " auto yes no on off true false y n 1 0 " },
	{ "NIC", WORDS, 0, 0, " udp xdp " },
	{ "SPAWNFN", WORDS, 0, 0, " s l c " },
	{ "PATHS", ADDRESSES, 0, 0, NULL },
	{ "XDP_COPY", TRUTH, 0, 0, NULL },
	{ "XDP_GENERIC", TRUTH, 0, 0, NULL },
	{ "LIVE", TRUTH, 0, 0, NULL },
	{ "ROUTE_OUTPUT", TRUTH, 0, 0, NULL },
	{ "CSPAWN_ROUTE_OUTPUT", TRUTH, 0, 0, NULL },
	{ "FS_SYNC", TRUTH, 0, 0, NULL },
	{ "FREEZE", TRUTH, 0, 0, NULL },
};

static bool whole_good(const struct row *row, const char *value)
{
	char *end;
	long long n;

	errno = 0;
	n = strtoll(value, &end, 0);
	return !*end && !errno && (double)n >= row->low && (double)n <= row->high;
}

static bool real_good(const struct row *row, const char *value)
{
	char *end;
	double d = strtod(value, &end);

	/* a NaN is between no two numbers */
	return !*end && d >= row->low && d <= row->high;
}

static bool word_good(const struct row *row, const char *value)
{
	char word[32];

	if (strlen(value) > 8 || strchr(value, ' '))
		return false;
	snprintf(word, sizeof(word), " %s ", value);
	return strcasestr(row->words, word) != NULL;
}

static bool addresses_good(const char *value)
{
	char *copy = strdup(value), *save, *word;
	struct in_addr ip;
	bool good = copy != NULL;

	for (word = copy ? strtok_r(copy, " ,", &save) : NULL; word && good;
	     word = strtok_r(NULL, " ,", &save))
		good = inet_pton(AF_INET, word, &ip) == 1;
	free(copy);
	return good;
}

static bool value_good(const struct row *row, const char *value)
{
	switch (row->kind) {
	case WHOLE:
		return whole_good(row, value);
	case REAL:
		return real_good(row, value);
	case TRUTH:
		return am_env_truth(value) >= 0;
	case WORDS:
		return word_good(row, value);
	default:
		return addresses_good(value);
	}
}

static void range_say(const struct row *row, char *text, size_t size)
{
	switch (row->kind) {
	case WHOLE:
	case REAL:
		if (row->high >= ANY_NUMBER)
			snprintf(text, size, "a whole number of %.0f or more", row->low);
		else
			snprintf(text, size, "a %snumber from %.0f to %.0f",
				 row->kind == WHOLE ? "whole " : "", row->low, row->high);
		break;
	case TRUTH:
		snprintf(text, size, "yes or no");
		break;
	case WORDS:
		snprintf(text, size, "one of%.*s", (int)strlen(row->words) - 1, row->words);
		break;
	default:
		snprintf(text, size, "IPv4 addresses with blanks or commas between them");
	}
}

static void say(const char *name, const char *value, const char *range)
{
	fprintf(stderr, "*** AMUDP: %s=%s: the value must be %s\n", name, value, range);
}

int am_env_check(void)
{
	char spelled[AM_ENV_NAME_MAX], range[96];
	const char *value = am_env_prefix_wrong();
	size_t i;
	int ret = 0;

	if (value) {
		say("AMUDP_ENV_PREFIX", value, "1 to 31 letters, digits and underscores");
		ret = -EINVAL;
	}
	for (i = 0; i < base_array_size(rows); i++) {
		value = am_env_find(rows[i].name, spelled);
		if (!value || !*value || value_good(&rows[i], value))
			continue;
		range_say(&rows[i], range, sizeof(range));
		say(spelled, value, range);
		ret = -EINVAL;
	}
	return ret;
}

/* Variables with any value */
static const char *const free_names[] = {
	"MASTERIP",	  "WORKERIP",	"VERBOSEENV",	    "PASS_ENV", "SECRET_DIRECTORY",
	"SSH_SERVERS",	  "SSH_CMD",	"SSH_OPTIONS",	    "ENV_CMD",	"SSH_REMOTE_PATH",
	"CSPAWN_SERVERS", "CSPAWN_CMD", "CSPAWN_DIRECTORY",
};

bool am_env_is_ours(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < base_array_size(rows); i++) {
		if (strlen(rows[i].name) == len && !memcmp(rows[i].name, name, len))
			return true;
	}
	for (i = 0; i < base_array_size(free_names); i++) {
		if (strlen(free_names[i]) == len && !memcmp(free_names[i], name, len))
			return true;
	}
	return false;
}
