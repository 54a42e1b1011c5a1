/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Output of ranks on its way through the console, with a reader that takes little.
 */
#include "am/console.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define RANKS 2
#define PIPE_OCTETS 4096

static volatile sig_atomic_t number;
static struct am_console console[RANKS];
static int rank[RANKS], reader;

/*
 * Both targets are one pipe of one page, which has room as long as it is empty; the console takes
 * them for two files.
 */
static void setup(void)
{
	int fds[2], i;

	signal(SIGPIPE, SIG_IGN);
	cr_assert_eq(pipe(fds), 0);
	cr_assert_eq(fcntl(fds[1], F_SETPIPE_SZ, PIPE_OCTETS), PIPE_OCTETS);
	dup2(fds[1], STDOUT_FILENO);
	dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
	am_console_init(&number);
	dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	reader = fds[0];
	fcntl(reader, F_SETFL, O_NONBLOCK);
	for (i = 0; i < RANKS; i++) {
		cr_assert_eq(pipe(fds), 0);
		rank[i] = fds[1];
		am_console_open(&console[i], fds[0], AM_CONSOLE_STDOUT, false);
	}
}

TestSuite(console, .init = setup, .timeout = 20);

static void print(int i, const char *text)
{
	cr_assert_eq(write(rank[i], text, strlen(text)), (ssize_t)strlen(text));
	am_console_forward(&console[i]);
}

static void print_line(int i, char octet, size_t n)
{
	char text[8192];

	memset(text, octet, n);
	strcpy(text + n, "\n");
	print(i, text);
}

static void expect(const char *text)
{
	char got[8192];
	ssize_t n = read(reader, got, sizeof(got) - 1);

	got[n > 0 ? n : 0] = 0;
	cr_assert_str_eq(got, text);
}

static void expect_of(char octet, ssize_t n)
{
	char got[8192];
	ssize_t i;

	cr_assert_eq(read(reader, got, sizeof(got)), n);
	for (i = 0; i < n; i++)
		cr_assert(got[i] == octet || got[i] == '\n');
}

Test(console, whole_lines)
{
	print(0, "one\ntw");
	expect("one\n");
	print(0, "o");
	expect("");
	print(1, "1\n");
	expect("1\n");
	print(0, "\nthree\n");
	expect("two\nthree\n");
}

Test(console, parts_of_lines_if_the_user_wants_them)
{
	am_console_open(&console[0], console[0].in, AM_CONSOLE_STDOUT, true);
	print(0, "one\ntw");
	expect("one\ntw");
}

Test(console, the_last_line_has_no_end)
{
	print(0, "begun");
	cr_assert(am_console_left(&console[0]));
	close(rank[0]);
	am_console_forward(&console[0]);
	expect("begun");
	cr_assert_not(am_console_left(&console[0]));
	cr_assert_not(am_console_takes(&console[0]));
}

Test(console, a_line_that_is_too_long_comes_in_parts)
{
	char text[8192];
	ssize_t n, all = 0;

	memset(text, 'x', sizeof(text));
	cr_assert_eq(write(rank[0], text, sizeof(text)), (ssize_t)sizeof(text));
	am_console_forward(&console[0]);
	while ((n = read(reader, text, sizeof(text))) > 0) {
		all += n;
		am_console_resume(AM_CONSOLE_STDOUT);
	}
	cr_assert_eq(all, 8192);
}

Test(console, a_line_waits_and_is_not_broken)
{
	print_line(0, 'x', 6000);
	cr_assert_eq(am_console_waits(AM_CONSOLE_STDOUT), STDOUT_FILENO);
	cr_assert_eq(am_console_waits(AM_CONSOLE_STDERR), -1);
	cr_assert_not(am_console_takes(&console[1]), "nothing else is read that would go there");
	am_console_resume(AM_CONSOLE_STDOUT);
	cr_assert_eq(am_console_waits(AM_CONSOLE_STDOUT), STDOUT_FILENO);
	expect_of('x', 4096);
	am_console_resume(AM_CONSOLE_STDOUT);
	cr_assert_eq(am_console_waits(AM_CONSOLE_STDOUT), -1);
	cr_assert(am_console_takes(&console[1]));
	print(1, "after it\n");
	expect_of('x', 1905);
	am_console_resume(AM_CONSOLE_STDOUT);
	expect("after it\n");
}

Test(console, a_rank_that_has_ended_is_there_until_its_last_words_are_out)
{
	print_line(0, 'x', 4000);
	print_line(0, 'y', 200);
	close(rank[0]);
	cr_assert(am_console_left(&console[0]));
	expect_of('x', 4001);
	am_console_resume(AM_CONSOLE_STDOUT);
	expect_of('y', 201);
	am_console_forward(&console[0]);
	cr_assert_not(am_console_left(&console[0]));
}

Test(console, its_own_words_are_lines_too)
{
	console[0].target = AM_CONSOLE_STDERR;
	am_console_say("rank %d is here", 3);
	expect("*** AMUDP: rank 3 is here\n");
	print_line(0, 'x', 6000);
	am_console_say("and %s", "gone");
	cr_assert_eq(console[0].due, 1905);
	expect_of('x', 4096);
	am_console_resume(AM_CONSOLE_STDERR);
	cr_assert_eq(am_console_waits(AM_CONSOLE_STDERR), STDERR_FILENO);
	expect_of('x', 1905);
	am_console_drain();
	expect("*** AMUDP: and gone\n");
}

Test(console, a_reader_has_a_while_after_the_signal)
{
	uint64_t begun = base_now();

	print_line(0, 'x', 6000);
	am_console_resume(AM_CONSOLE_STDOUT);
	cr_assert(console[0].due);
	number = SIGTERM;
	am_console_drain();
	cr_assert_geq(base_now() - begun, BASE_NS_PER_S);
	cr_assert_leq(base_now() - begun, 4 * BASE_NS_PER_S);
	cr_assert_not(console[0].due);
	cr_assert_not(am_console_failed(), "nothing went wrong");
	/* and once it is over nothing waits, but what can be taken is */
	print(1, "more\n");
	expect_of('x', 4096);
	print(1, "at last\n");
	expect("at last\n");
}

/* As with 2>&1: a line of the one is not broken by a line of the other. */
Test(console, both_targets_are_one_file)
{
	am_console_init(&number);
	print_line(0, 'x', 6000);
	console[1].target = AM_CONSOLE_STDERR;
	cr_assert_not(am_console_takes(&console[1]));
	am_console_say("in between");
	expect_of('x', 4096);
	am_console_resume(AM_CONSOLE_STDOUT);
	am_console_resume(AM_CONSOLE_STDERR);
	expect_of('x', 1905);
	cr_assert(am_console_takes(&console[1]) == false, "what the console says comes first");
	am_console_drain();
	expect("*** AMUDP: in between\n");
	print(1, "after it\n");
	expect("after it\n");
}

Test(console, a_reader_that_has_left)
{
	close(reader);
	print(0, "for nobody\n");
	cr_assert_not(console[0].due);
	cr_assert_not(am_console_failed());
	cr_assert(am_console_takes(&console[1]));
}

Test(console, output_without_room)
{
	int full = open("/dev/full", O_WRONLY);

	dup2(full, STDOUT_FILENO);
	print(0, "for the device\n");
	cr_assert_not(console[0].due);
	cr_assert(am_console_failed());
	expect("*** AMUDP: output of the job is lost, the console cannot write it: No space left "
	       "on device\n");
	print(0, "again\n");
	expect("");
	dup2(full, STDERR_FILENO);
	am_console_say("nobody can hear this");
	cr_assert_eq(am_console_waits(AM_CONSOLE_STDERR), -1);
}
