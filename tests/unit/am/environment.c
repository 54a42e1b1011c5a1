/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Variables of the environment: their names, what they may say, and what is said of a wrong one.
 */
#include "pair.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "am/env.h"
#include "am/job_address.h"

static FILE *told;
static int stderr_before;

static void said_begin(void)
{
	fflush(stderr);
	told = tmpfile();
	stderr_before = dup(2);
	dup2(fileno(told), 2);
}

/* What was said on standard error since; good until the next time. */
static const char *said_end(void)
{
	static char text[4096];
	size_t n;

	fflush(stderr);
	dup2(stderr_before, 2);
	close(stderr_before);
	rewind(told);
	n = fread(text, 1, sizeof(text) - 1, told);
	text[n] = 0;
	fclose(told);
	return text;
}

static void check_one(const char *name, const char *value, const char *must)
{
	char want[256];
	const char *said;
	int ret;

	setenv(name, value, 1);
	said_begin();
	ret = am_env_check();
	said = said_end();
	unsetenv(name);
	if (!must) {
		cr_expect_eq(ret, 0, "%s=%s", name, value);
		cr_expect_str_empty(said);
		return;
	}
	snprintf(want, sizeof(want), "*** AMUDP: %s=%s: the value must be %s\n", name, value, must);
	cr_expect_eq(ret, -EINVAL, "%s=%s", name, value);
	cr_expect_str_eq(said, want);
}

Test(environment, wrong_values)
{
	static const char share[] = "a number from 0 to 1", yes_no[] = "yes or no";

	check_one("FAULT_RATE", "x", share);
	check_one("AMUDP_FAULT_RATE", "7", share);
	check_one("FAULT_CORRUPT", "-0.1", share);
	check_one("FAULT_DELAY", "nan", share);
	check_one("NIC", "foo", "one of udp xdp");
	check_one("NIC", "udp xdp", "one of udp xdp");
	check_one("CHECKSUM", "maybe", "one of auto yes no on off true false y n 1 0");
	check_one("NETWORKDEPTH", "99999", "a whole number from 1 to 1024");
	check_one("NETWORKDEPTH", "0", "a whole number from 1 to 1024");
	check_one("NETWORKDEPTH", "12x", "a whole number from 1 to 1024");
	check_one("REQUESTTIMEOUT_MAX", "often", "a whole number of -1 or more");
	check_one("FAULT_SEED", "99999999999999999999", "a whole number from 0 to 4294967295");
	check_one("FS_SYNC", "perhaps", yes_no);
	check_one("SPAWNFN", "X", "one of s l c");
	check_one("PATHS", "10.0.0.1,10.0.0", "IPv4 addresses with blanks or commas between them");
	check_one("AMUDP_ENV_PREFIX", "a-b", "1 to 31 letters, digits and underscores");
	check_one("AMUDP_ENV_PREFIX", "x1234567890123456789012345678901",
		  "1 to 31 letters, digits and underscores");
}

Test(environment, good_values)
{
	check_one("FAULT_RATE", "0.5", NULL);
	check_one("FAULT_RATE", "1", NULL);
	check_one("FAULT_RATE", "", NULL);
	check_one("NIC", "UDP", NULL);
	check_one("CHECKSUM", "Auto", NULL);
	check_one("NETWORKDEPTH", "0x10", NULL);
	check_one("REQUESTTIMEOUT_MAX", "-1", NULL);
	check_one("FS_SYNC", "YES", NULL);
	check_one("SPAWNFN", "l", NULL);
	check_one("PATHS", "10.0.0.1, 10.0.0.2", NULL);
	check_one("AMUDP_ENV_PREFIX", "x123456789012345678901234567890", NULL);
	check_one("AMUDP_ENV_PREFIX", "A_b", NULL);
	check_one("AMUDP_ENV_PREFIX", "", NULL);
}

Test(environment, no_endpoint_under_a_wrong_value)
{
	const char *said;
	en_t name;
	eb_t eb;
	ep_t ep;
	int ret;

	AM_Init();
	AM_AllocateBundle(AM_SEQ, &eb);
	setenv("FAULT_RATE", "x", 1);
	setenv("AMUDP_SPIN", "fast", 1);
	said_begin();
	ret = AM_AllocateEndpoint(eb, &ep, &name);
	said = said_end();
	cr_expect_eq(ret, AM_ERR_BAD_ARG);
	cr_expect(strstr(said, "FAULT_RATE=x: "));
	cr_expect(strstr(said, "AMUDP_SPIN=fast: "));
	AM_Terminate();
}

Test(environment, the_word_before_names)
{
	setenv("SPIN", "1", 1);
	setenv("GASNET_SPIN", "4", 1);
	cr_expect_eq(am_env_int("SPIN", 9), 1);
	setenv("AMUDP_SPIN", "2", 1);
	cr_expect_eq(am_env_int("SPIN", 9), 2);
	cr_expect_str_eq(am_env_name("SPIN"), "AMUDP_SPIN");
	setenv("AMUDP_ENV_PREFIX", "GASNET", 1);
	cr_expect_eq(am_env_int("SPIN", 9), 4);
	cr_expect_str_eq(am_env_name("SPIN"), "GASNET_SPIN");
	setenv("UPC_SPIN", "5", 1);
	cr_expect_eq(AMUDP_SetEnvPrefix("UPC"), AM_OK);
	cr_expect_eq(am_env_int("SPIN", 9), 5);
	unsetenv("UPC_SPIN");
	cr_expect_eq(am_env_int("SPIN", 9), 2);
	cr_expect_eq(AMUDP_SetEnvPrefix("A=B"), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_SetEnvPrefix(""), AM_ERR_BAD_ARG);
	cr_expect_eq(AMUDP_SetEnvPrefix(NULL), AM_ERR_BAD_ARG);
	cr_expect_eq(am_env_int("SPIN", 9), 2);
}

/* A worker's own goes before the console's, whatever word is before it. */
Test(environment, the_word_before_names_of_the_console)
{
	am_env_console = "GASNET_SPIN=4\0AMUDP_SPIN=2\0";
	cr_expect_eq(am_env_int("SPIN", 9), 2);
	AMUDP_SetEnvPrefix("GASNET");
	cr_expect_eq(am_env_int("SPIN", 9), 4);
	setenv("SPIN", "1", 1);
	cr_expect_eq(am_env_int("SPIN", 9), 1);
}

static int worker_at(const char *value, uint32_t *address)
{
	int ret;

	setenv("WORKERIP", value, 1);
	*address = inet_addr("192.0.2.7");
	said_begin();
	ret = am_address_of_worker(address);
	said_end();
	return ret;
}

Test(environment, address_of_a_worker)
{
	static const struct {
		const char *value, *address;
	} rows[] = {
		{ "", "192.0.2.7" },
		{ "127.0.0.1", "127.0.0.1" },
		{ "127.0.0.9", "127.0.0.9" },
		{ "127.0.0.0/8", "127.0.0.1" },
		{ "127.0.0.1/32", "127.0.0.1" },
		{ "240.0.0.1", NULL },
		{ "240.0.0.0/24", NULL },
		{ "127.0.0.1/", NULL },
		{ "127.0.0.1/33", NULL },
		{ "127.0.0.1/x", NULL },
		{ "localhost", NULL },
	};
	uint32_t address;
	size_t i;
	int ret;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ret = worker_at(rows[i].value, &address);
		cr_expect_eq(ret == 0, rows[i].address != NULL, "%s: %d", rows[i].value, ret);
		if (rows[i].address)
			cr_expect_eq(address, inet_addr(rows[i].address), "%s", rows[i].value);
	}
}

Test(environment, address_of_the_console)
{
	uint32_t address = 0;
	const char *said;
	int ret;

	cr_expect_eq(am_address_of_console(true, &address), 0);
	cr_expect_eq(address, htonl(INADDR_LOOPBACK));
	setenv("MASTERIP", "127.0.0.4", 1);
	cr_expect_eq(am_address_of_console(true, &address), 0);
	cr_expect_eq(address, inet_addr("127.0.0.4"));
	setenv("MASTERIP", "localhost", 1);
	cr_expect_eq(am_address_of_console(true, &address), 0);
	cr_expect_eq(address, htonl(INADDR_LOOPBACK));
	setenv("MASTERIP", "no.such.host.invalid", 1);
	said_begin();
	ret = am_address_of_console(true, &address);
	said = said_end();
	cr_expect_lt(ret, 0);
	cr_expect(strstr(said, "*** AMUDP: MASTERIP=no.such.host.invalid: the value must be an "
			       "IPv4 address, or a name that has one: "),
		  "%s", said);
}
