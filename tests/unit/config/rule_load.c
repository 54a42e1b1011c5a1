/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sources of rules, their order, and what happens when one of them is bad or not there.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "rules_text.h"

static struct config_rules rules;
static struct config_error err;
static char path[] = "/tmp/warpsock-rules-XXXXXX";
static char got[4096];

static void file_begin(void)
{
	close(mkstemp(path));
}

static void file_end(void)
{
	unlink(path);
}

TestSuite(rule_load, .init = file_begin, .fini = file_end);

static void file_write(const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	cr_assert_eq(write(fd, text, len), (ssize_t)len);
	close(fd);
}

static void file_set(const char *text)
{
	file_write(text, strlen(text));
}

static const char *table(void)
{
	return rules_write(&rules, got, sizeof(got));
}

Test(rule_load, command_then_environment_then_file)
{
	static const char *const use[] = { "tcp * a *:1", "use ddp * b *:2; tcp * c *:3" };
	struct config_sources sources = {
		.use = use,
		.uses = 2,
		.environment = "auto * d *:4\nuse tcp * e *:5",
		.file = path,
	};

	file_set("# file\nuse ddp * f *:6\n");
	cr_assert_eq(config_rules_load(&rules, &sources, &err), 0, "%s", err.text);
	cr_assert_str_eq(table(), "use tcp * a *:1\nuse ddp * b *:2\nuse tcp * c *:3\n"
				  "use auto * d *:4\nuse tcp * e *:5\nuse ddp * f *:6");
	sources.all = 1;
	sources.all_transport = CONFIG_USE_DDP;
	cr_assert_eq(config_rules_load(&rules, &sources, &err), 0);
	cr_assert_str_eq(table(), "use tcp * a *:1\nuse ddp * b *:2\nuse tcp * c *:3\n"
				  "use ddp * * *:*\n"
				  "use auto * d *:4\nuse tcp * e *:5\nuse ddp * f *:6");
}

Test(rule_load, all_says_what_mode_says)
{
	static const struct {
		const char *mode;
		const char *want;
	} modes[] = {
		{ "on", "use ddp * * *:*" },
		{ "auto", "use auto * * *:*" },
	};
	struct config_sources sources = { .all = 1, .file = "" };

	for (size_t i = 0; i < base_array_size(modes); i++) {
		cr_assert_eq(config_mode_parse(modes[i].mode, &sources.all_transport), 0);
		cr_assert_eq(config_rules_load(&rules, &sources, &err), 0);
		cr_expect_str_eq(table(), modes[i].want);
	}
	sources.all_transport = CONFIG_USE_TCP;
	cr_expect_eq(config_mode_parse("On", &sources.all_transport), -EINVAL);
	cr_expect_eq(config_mode_parse("", &sources.all_transport), -EINVAL);
	cr_expect_eq(sources.all_transport, CONFIG_USE_TCP);
}

static const struct {
	const char *use[2];
	const char *environment;
	const char *file;
	const char *want;
} bad[] = {
	{ { "tcp * a *:1", "tcp * a *:x" },
	  NULL,
	  "",
	  "--use:2:11: expected a port or *, got \"x\"" },
	{ { "tcp * a *:1", "" },
	  "tcp * a *:1;\nudp",
	  "",
	  "WARPSOCK_USE:2:1: expected ddp, auto or tcp, got \"udp\"" },
	{ { "", "" },
	  NULL,
	  "use tcp * a *:1\n\nuse tcp * a 1:1",
	  "FILE:3:13: expected an IPv4 address, an IPv6 address in [ ], or *, got \"1\"" },
	/* of several, the first */
	{ { "x", "y" }, "z", "w", "--use:1:1: expected ddp, auto or tcp, got \"x\"" },
};

Test(rule_load, one_bad_source_and_no_rule_is_used)
{
	for (size_t i = 0; i < base_array_size(bad); i++) {
		struct config_sources sources = {
			.use = bad[i].use,
			.uses = 2,
			.environment = bad[i].environment,
			.file = path,
		};
		const char *want = bad[i].want;
		bool in_file = !strncmp(want, "FILE", 4);
		size_t skip = in_file ? strlen(path) : 0;

		file_set(bad[i].file);
		cr_expect_eq(config_rules_load(&rules, &sources, &err), -EINVAL);
		cr_expect_eq(strncmp(err.text, path, skip), 0);
		cr_expect_str_eq(err.text + skip, in_file ? want + 4 : want);
		cr_expect_null(config_rule_next(&rules, NULL));
	}
}

Test(rule_load, a_file_that_is_named_must_be_there)
{
	struct config_sources sources = { .file = "/nonexistent/warpsock.conf" };

	cr_expect_eq(config_rules_load(&rules, &sources, &err), -ENOENT);
	cr_expect_str_eq(err.text, "/nonexistent/warpsock.conf: cannot be read: "
				   "No such file or directory");
	sources.file = "/";
	cr_expect_eq(config_rules_load(&rules, &sources, &err), -EISDIR);
	cr_expect_str_eq(err.text, "/: cannot be read: Is a directory");
	sources.file = "";
	cr_expect_eq(config_rules_load(&rules, &sources, &err), 0);
}

Test(rule_load, the_largest_file)
{
	struct config_sources sources = { .file = path };
	char *text = malloc(CONFIG_FILE_MAX + 1);

	memset(text, '\n', CONFIG_FILE_MAX + 1);
	memcpy(text + CONFIG_FILE_MAX - 15, "use ddp * x *:1", 15);
	file_write(text, CONFIG_FILE_MAX);
	cr_expect_eq(config_rules_load(&rules, &sources, &err), 0, "%s", err.text);
	cr_expect_str_eq(table(), "use ddp * x *:1");
	file_write(text, CONFIG_FILE_MAX + 1);
	cr_expect_eq(config_rules_load(&rules, &sources, &err), -EFBIG);
	cr_expect_null(config_rule_next(&rules, NULL));
	free(text);
}

/* As a shell's <(...) gives it: octets come piecemeal, and the size is not known before */
Test(rule_load, a_pipe_is_a_file)
{
	struct config_sources sources = { 0 };
	char name[32];
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	cr_assert_eq(write(fds[1], "use ddp * x *:1", 15), 15);
	close(fds[1]);
	snprintf(name, sizeof(name), "/dev/fd/%d", fds[0]);
	sources.file = name;
	cr_assert_eq(config_rules_load(&rules, &sources, &err), 0, "%s", err.text);
	cr_assert_str_eq(table(), "use ddp * x *:1");
}

Test(rule_load, leaves_no_descriptor)
{
	struct config_sources sources = { .file = path };
	int next = dup(0);

	close(next);
	file_set("use ddp * x *:1");
	cr_assert_eq(config_rules_load(&rules, &sources, &err), 0);
	file_set("use");
	cr_assert_eq(config_rules_load(&rules, &sources, &err), -EINVAL);
	cr_assert_eq(dup(0), next);
}

Test(rule_load, sources_from_the_environment)
{
	struct config_sources sources;

	setenv("WARPSOCK_USE", "ddp * x *:1", 1);
	setenv("WARPSOCK_CONFIG", path, 1);
	file_set("use tcp * * *:*");
	config_sources_init(&sources);
	cr_assert_eq(config_rules_load(&rules, &sources, &err), 0);
	cr_assert_str_eq(table(), "use ddp * x *:1\nuse tcp * * *:*");
	unsetenv("WARPSOCK_USE");
	unsetenv("WARPSOCK_CONFIG");
	config_sources_init(&sources);
	cr_expect_null(sources.environment);
	cr_expect_null(sources.file);
	cr_expect_eq(sources.uses + (unsigned int)sources.all, 0);
}

/* Nothing there is no error, but only for the default file */
Test(rule_load, the_default_file_may_be_absent)
{
	struct config_sources sources = { 0 };

	if (!access(CONFIG_FILE_DEFAULT, F_OK))
		cr_skip_test("/etc/warpsock.conf is there");
	cr_assert_eq(config_rules_load(&rules, &sources, &err), 0);
	cr_assert_null(config_rule_next(&rules, NULL));
}

Test(rule_load, a_table_left_by_a_launcher_goes_before_all)
{
	struct config_sources sources = { .environment = "auto * a *:1", .file = "" };
	static char encoded[CONFIG_RULES_TEXT_MAX];

	cr_assert_eq(config_rules_load(&rules, &sources, &err), 0);
	cr_assert_eq(config_rules_encode(&rules, encoded, sizeof(encoded)), 0);
	setenv("WARPSOCK_USE", "ddp * b *:2", 1);
	setenv("WARPSOCK_CONFIG", "", 1);
	unsetenv("WARPSOCK_RULES");
	cr_assert_eq(config_rules_inherit(&rules, NULL, &err), 0);
	cr_expect_str_eq(table(), "use ddp * b *:2");
	setenv("WARPSOCK_RULES", encoded, 1);
	cr_assert_eq(config_rules_inherit(&rules, NULL, &err), 0);
	cr_expect_str_eq(table(), "use auto * a *:1");
	setenv("WARPSOCK_RULES", encoded + 4, 1);
	cr_expect_eq(config_rules_inherit(&rules, NULL, &err), -EINVAL);
	cr_expect_str_eq(err.text, "WARPSOCK_RULES: expected a table as warpsock run makes it");
	cr_expect_str_eq(table(), "");
}

static unsigned int mistakes;
static char all_of_them[2048];

static void mistake_note(const struct config_error *mistake)
{
	mistakes++;
	snprintf(all_of_them + strlen(all_of_them), sizeof(all_of_them) - strlen(all_of_them),
		 "%s\n", mistake->text);
}

Test(rule_load, all_mistakes)
{
	static const char *const use[] = { "ddp * * *:*", "dpd * * *:*" };
	struct config_sources sources = {
		.use = use,
		.uses = 2,
		.environment = "auto client\ntcp both * *:* # ; none\nddp * * *:*",
		.file = path,
		.mistake = mistake_note,
	};
	char wanted[2048];

	file_set("use ddp * * *:1\nddp * * *:2; use ddp * * *:x\nuse tcp * * *:3\n\nuse\n");
	cr_expect_eq(config_rules_load(&rules, &sources, &err), -EINVAL);
	snprintf(wanted, sizeof(wanted),
		 "--use:2:1: expected ddp, auto or tcp, got \"dpd\"\n"
		 "WARPSOCK_USE:1:12: expected a program or a pattern, got the end of the rule\n"
		 "WARPSOCK_USE:2:5: expected client, server or *, got \"both\"\n"
		 "%s:2:1: expected use, got \"ddp\"\n"
		 "%s:2:28: expected a port or *, got \"x\"\n"
		 "%s:5:4: expected ddp, auto or tcp, got the end of the rule\n",
		 path, path, path);
	cr_expect_str_eq(all_of_them, wanted, "%s", all_of_them);
	cr_expect_str_eq(table(), "", "no rule of any source holds");
}

Test(rule_load, a_file_that_cannot_be_read_among_mistakes)
{
	static const char *const use[] = { "x" };
	struct config_sources sources = {
		.use = use, .uses = 1, .file = "/nowhere/at/all", .mistake = mistake_note
	};

	cr_expect_lt(config_rules_load(&rules, &sources, &err), 0);
	cr_expect_eq(mistakes, 2, "%s", all_of_them);
}
