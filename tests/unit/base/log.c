/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The log, judged by what arrives in its file or on standard error.
 */
#include "base/log.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"

static char path[] = "/tmp/warpsock-log-XXXXXX";
static char text[4096];

static void log_to_file(void)
{
	close(mkstemp(path));
	setenv("WARPSOCK_LOG_FILE", path, 1);
}

static void log_file_remove(void)
{
	unlink(path);
}

static const char *logged(void)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	cr_assert_geq(n, 0);
	text[n] = 0;
	close(fd);
	return text;
}

TestSuite(log, .init = log_to_file, .fini = log_file_remove);

static const struct {
	const char *env;
	const char *want;
} rows[] = {
	{ "off", "" },	     { "err", "e" }, { "warn", "ew" },	   { "info", "ewi" },
	{ "debug", "ewid" }, { NULL, "ew" }, { "nonsense", "ew" },
};

/* The first letters of the levels of the lines in the file. */
static void letters(char *out)
{
	for (const char *at = logged(); *at; at = strchr(at, '\n') + 1)
		*out++ = strstr(at, "] ")[2];
	*out = 0;
}

Test(log, levels)
{
	for (size_t i = 0; i < base_array_size(rows); i++) {
		char got[8];

		cr_assert_eq(truncate(path, 0), 0);
		if (rows[i].env)
			setenv("WARPSOCK_LOG", rows[i].env, 1);
		else
			unsetenv("WARPSOCK_LOG");
		base_log_init();
		base_err("1");
		base_warn("2");
		base_info("3");
		base_debug("4");
		letters(got);
		cr_expect_str_eq(got, rows[i].want, "row %zu: %s", i, got);
	}
}

Test(log, line_has_the_form_promised)
{
	char want[64];

	base_log_init();
	base_err("port %d is %s", 7, "taken");
	snprintf(want, sizeof(want), "warpsock[%d] err: port 7 is taken\n", getpid());
	cr_assert_str_eq(logged(), want);
}

Test(log, off_evaluates_no_argument)
{
	int n = 0;

	base_log_init();
	base_debug("%d", ++n);
	cr_assert_eq(n, 0);
	base_err("%d", ++n);
	cr_assert_eq(n, 1);
}

Test(log, keeps_errno)
{
	base_log_init();
	errno = ENOTCONN;
	base_err("kept");
	cr_assert_eq(errno, ENOTCONN);
	cr_assert_not_null(strstr(logged(), "kept"));
	setenv("WARPSOCK_LOG_FILE", "/nonexistent/file", 1);
	base_log_init();
	base_err("lost");
	cr_assert_eq(errno, ENOTCONN);
}

/* Around the limit: the line that just fits, and those that are cut. */
Test(log, long_lines_are_cut_and_marked)
{
	char filler[BASE_LOG_LINE_MAX * 2];
	int head = snprintf(NULL, 0, "warpsock[%d] err: ", getpid());

	base_log_init();
	memset(filler, 'x', sizeof(filler));
	for (int over = -1; over < 200; over++) {
		int n = BASE_LOG_LINE_MAX - 1 - head + over;
		size_t want = BASE_LOG_LINE_MAX - (over < 0);

		cr_assert_eq(truncate(path, 0), 0);
		base_log_each(BASE_LOG_ERR, "%.*s", n, filler);
		cr_assert_eq(strlen(logged()), want, "over %d", over);
		cr_assert_eq(text[want - 1], '\n');
		cr_assert_eq(!strcmp(text + want - 4, "...\n"), over > 0, "over %d", over);
	}
}

Test(log, goes_to_standard_error_without_a_file)
{
	int fds[2];
	ssize_t n;

	cr_assert_eq(pipe(fds), 0);
	dup2(fds[1], STDERR_FILENO);
	unsetenv("WARPSOCK_LOG_FILE");
	base_log_init();
	base_err("here");
	n = read(fds[0], text, sizeof(text) - 1);
	cr_assert_gt(n, 0);
	text[n] = 0;
	cr_assert_not_null(strstr(text, "err: here\n"));
}

Test(log, appends_and_leaves_no_descriptor)
{
	int next = dup(0);

	close(next);
	base_log_init();
	base_err("one");
	base_err("two");
	cr_assert_eq(dup(0), next);
	cr_assert_not_null(strstr(logged(), "one\n"));
	cr_assert_not_null(strstr(logged(), "two\n"));
}

/* Standard error is @fd from the beginning */
static void log_to(int fd)
{
	dup2(fd, STDERR_FILENO);
	unsetenv("WARPSOCK_LOG_FILE");
	base_log_init();
}

/* All that is there, of a descriptor that does not block */
static size_t drained(int fd)
{
	size_t sum = 0;
	ssize_t n;

	while ((n = read(fd, text, sizeof(text) - 1)) > 0) {
		text[n] = 0;
		sum += (size_t)n;
	}
	return sum;
}

/* What nobody reads, and what would make each write() wait */
static void lines_into(int out, int in)
{
	log_to(out);
	alarm(20);
	for (int i = 0; i < 20000; i++)
		base_log_each(BASE_LOG_ERR, "line %d", i);
	fcntl(in, F_SETFL, O_NONBLOCK);
	cr_assert_gt(drained(in), 1000);
	base_err("there is room again");
	drained(in);
	cr_assert_not_null(strstr(text, " lines were lost: there was no room for them\n"), "%s",
			   text);
	cr_assert_not_null(strstr(text, "err: there is room again\n"));
	alarm(0);
}

Test(log, a_pipe_that_nobody_reads)
{
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	lines_into(fds[1], fds[0]);
}

Test(log, a_socket_that_nobody_reads)
{
	int fds[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	lines_into(fds[1], fds[0]);
}

Test(log, a_named_pipe_that_nobody_reads)
{
	char name[64];

	snprintf(name, sizeof(name), "%s.pipe", path);
	cr_assert_eq(mkfifo(name, 0600), 0);
	setenv("WARPSOCK_LOG_FILE", name, 1);
	base_log_init();
	alarm(20);
	base_err("nobody is there");
	alarm(0);
	unlink(name);
}

/* A program that has closed descriptor 2, and opens its data */
Test(log, another_file_at_descriptor_2_is_not_written_to)
{
	int fds[2], before;
	struct stat st;

	cr_assert_eq(pipe(fds), 0);
	log_to(fds[1]);
	before = dup(STDERR_FILENO);
	cr_assert_neq(dup2(open(path, O_RDWR), STDERR_FILENO), -1);
	base_err("among the records");
	cr_assert_eq(fstat(STDERR_FILENO, &st), 0);
	cr_expect_eq(st.st_size, 0);
	close(STDERR_FILENO);
	base_err("nowhere");
	dup2(before, STDERR_FILENO);
	base_err("as before");
	cr_assert_gt(read(fds[0], text, sizeof(text) - 1), 0);
	cr_assert_not_null(strstr(text, "as before\n"));
	cr_assert_null(strstr(text, "nowhere"));
}

static void hundred_lines(void)
{
	for (int i = 0; i < 100; i++)
		base_warn("number %d", i);
}

/* One place in the code has so many lines a second, and others theirs */
Test(log, a_burst_is_cut_and_counted)
{
	char want[64];

	unsetenv("WARPSOCK_LOG");
	base_log_init();
	hundred_lines();
	base_warn("another place");
	snprintf(want, sizeof(want), "number %d\n", BASE_LOG_BURST - 1);
	cr_assert_not_null(strstr(logged(), want));
	snprintf(want, sizeof(want), "number %d\n", BASE_LOG_BURST);
	cr_assert_null(strstr(text, want));
	cr_assert_not_null(strstr(text, "another place\n"));
	usleep(1100000);
	hundred_lines();
	snprintf(want, sizeof(want), "%d lines like the next one were left out\n",
		 100 - BASE_LOG_BURST);
	cr_assert_not_null(strstr(logged(), want));
}
