/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The environment that a program gets which inherits a stream. The code under test is a library
 * here, as the interposer is: its own file is what LD_PRELOAD has to name.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/process/environment.h"

static char library[512]; /* what an environment without any gets */

/* In the child that each test is, before the test: the table is made of this environment */
static void init(void)
{
	static char *const none[] = { NULL };
	char *room;

	clearenv();
	setenv("WARPSOCK_USE", "all", 1);
	setenv("WARPSOCKET", "not ours", 1);
	setenv("WARPSOCK_LOG", "off", 1);
	environment_init();
	/* What a program makes of it later does not count */
	memset(getenv("WARPSOCK_USE"), 'x', 3);
	room = malloc(environment_room(none));
	cr_assert_not_null(room);
	strcpy(library, environment_make(room, none)[0]);
	free(room);
	cr_assert_eq(strncmp(library, "LD_PRELOAD=/", 12), 0, "%s", library);
}

static const char *name_of_library(void)
{
	return strrchr(library, '/') + 1;
}

static void expect(char **got, const char *const *want)
{
	size_t i = 0;

	for (; want[i]; i++) {
		cr_assert_not_null(got[i], "no %s", want[i]);
		cr_expect_str_eq(got[i], want[i]);
	}
	cr_expect_null(got[i]);
}

/* Until the next one */
static char **make(char *const *envp)
{
	static _Alignas(char *) char memory[65536];
	size_t room = environment_room(envp);

	cr_assert_leq(room, sizeof(memory));
	return room ? environment_make(memory, envp) : NULL;
}

Test(environment, what_is_lacking_is_put_in, .init = init)
{
	char *const some[] = { "A=1", "WARPSOCK_LOG=debug", "B=2", NULL };

	expect(make(NULL),
	       (const char *[]){ library, "WARPSOCK_USE=all", "WARPSOCK_LOG=off", NULL });
	expect(make(some), (const char *[]){ library, "A=1", "WARPSOCK_LOG=debug", "B=2",
					     "WARPSOCK_USE=all", NULL });
}

Test(environment, others_stay_preloaded, .init = init)
{
	char all[1024];
	char *const other[] = { "LD_PRELOAD=/lib/other.so", "A=1", NULL };

	snprintf(all, sizeof(all), "%s:/lib/other.so", library);
	expect(make(other),
	       (const char *[]){ all, "A=1", "WARPSOCK_USE=all", "WARPSOCK_LOG=off", NULL });
}

Test(environment, what_is_complete_stays, .init = init)
{
	char elsewhere[1024];
	char *whole[] = { "WARPSOCK_LOG=info", library, "WARPSOCK_USE=", NULL };

	cr_expect_null(make(whole));
	snprintf(elsewhere, sizeof(elsewhere), "LD_PRELOAD=/lib/a.so /b/%s:/c.so",
		 name_of_library());
	whole[1] = elsewhere;
	cr_expect_null(make(whole));
	snprintf(elsewhere, sizeof(elsewhere), "LD_PRELOAD=/b/%s.old", name_of_library());
	cr_expect_not_null(make(whole));
}

Test(environment, the_library_is_readable, .init = init)
{
	cr_expect(environment_library_readable());
}

/* For a program that fails with it; what else is preloaded stays */
Test(environment, without_the_library, .init = init)
{
	static _Alignas(char *) char memory[65536];
	char some[1024];
	char *envp[] = { "A=1", library, "WARPSOCK_LOG=info", NULL };

	cr_assert_leq(environment_bare_room(envp), sizeof(memory));
	expect(environment_bare(memory, envp),
	       (const char *[]){ "A=1", "WARPSOCK_LOG=info", NULL });
	snprintf(some, sizeof(some), "LD_PRELOAD=/a.so:/x/%s /b.so:%s", name_of_library(),
		 name_of_library());
	envp[1] = some;
	expect(environment_bare(memory, envp),
	       (const char *[]){ "A=1", "LD_PRELOAD=/a.so:/b.so", "WARPSOCK_LOG=info", NULL });
	envp[1] = "LD_PRELOAD=/a.so";
	cr_expect_eq(environment_bare_room(envp), 0, "it is not named");
	cr_expect_eq(environment_bare_room(envp + 2), 0, "nothing is preloaded");
	cr_expect_eq(environment_bare_room(NULL), 0);
}
