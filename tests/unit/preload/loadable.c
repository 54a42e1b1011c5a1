/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which files load the interposer when they are executed.
 */
#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "preload/process/loadable.h"
#include "preload/rules/choose.h"
#include "preload/rules/report.h"

#if defined(__x86_64__)
#define LINKER "/lib64/ld-linux-x86-64.so.2"
#define MACHINE EM_X86_64
#define OTHER EM_AARCH64
#else
#define LINKER "/lib/ld-linux-aarch64.so.1"
#define MACHINE EM_AARCH64
#define OTHER EM_X86_64
#endif

/* What the user would be told */
static struct {
	bool wanted; /* by a rule */
	char name[64], file[64];
	enum config_loads why;
	unsigned int times;
} told;

bool choose_wants(const char *name)
{
	snprintf(told.name, sizeof(told.name), "%s", name ? name : "");
	return told.wanted;
}

void report_unloadable(const char *file, enum config_loads why)
{
	snprintf(told.file, sizeof(told.file), "%s", file);
	told.why = why;
	told.times++;
}

static char dir[] = "/tmp/warpsock-loadable-XXXXXX";

static void init(void)
{
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chmod(dir, 0755), 0);
	cr_assert_eq(chdir(dir), 0);
}

static void fini(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	cr_assert_eq(system(command), 0);
}

static void file_make(const char *name, const void *data, size_t len, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	cr_assert_eq(write(fd, data, len), (ssize_t)len);
	cr_assert_eq(fchmod(fd, mode), 0);
	close(fd);
}

static void text_make(const char *name, const char *text)
{
	file_make(name, text, strlen(text), 0755);
}

/* As much of a program as is looked at; NULL @linker: it is static */
static void elf_make(const char *name, int class, int machine, const char *linker, mode_t mode)
{
	struct {
		Elf64_Ehdr e;
		Elf64_Phdr ph[2];
		char linker[64];
	} file = { .e = { .e_ident = { 0x7f, 'E', 'L', 'F', (unsigned char)class, ELFDATA2LSB },
			  .e_type = ET_DYN,
			  .e_machine = (Elf64_Half)machine,
			  .e_phoff = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 2 },
		   .ph[0] = { .p_type = PT_LOAD } };

	if (linker) {
		strcpy(file.linker, linker);
		file.ph[1] = (Elf64_Phdr){ .p_type = PT_INTERP,
					   .p_offset = sizeof(file.e) + sizeof(file.ph),
					   .p_filesz = strlen(linker) + 1 };
	}
	file_make(name, &file, sizeof(file), mode);
}

static void program_make(const char *name, mode_t mode)
{
	elf_make(name, ELFCLASS64, MACHINE, LINKER, mode);
}

Test(loadable, programs, .init = init, .fini = fini)
{
	static const struct {
		const char *what;
		int class, machine;
		const char *linker;
		mode_t mode;
		enum loadable want;
	} rows[] = {
		{ "ours", ELFCLASS64, MACHINE, LINKER, 0755, LOADABLE_YES },
		{ "elsewhere", ELFCLASS64, MACHINE, "/opt/x" LINKER, 0755, LOADABLE_YES },
		{ "static", ELFCLASS64, MACHINE, NULL, 0755, LOADABLE_NO },
		{ "musl", ELFCLASS64, MACHINE, "/lib/ld-musl-x86_64.so.1", 0755, LOADABLE_BREAKS },
		{ "narrow", ELFCLASS32, MACHINE, LINKER, 0755, LOADABLE_NO },
		{ "other machine", ELFCLASS64, OTHER, LINKER, 0755, LOADABLE_NO },
		{ "no program", ELFCLASS64, MACHINE, LINKER, 0644, LOADABLE_NOTHING },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		elf_make("program", rows[i].class, rows[i].machine, rows[i].linker, rows[i].mode);
		cr_expect_eq(loadable_at(AT_FDCWD, "program", 0), rows[i].want, "%s", rows[i].what);
	}
	cr_expect_eq(loadable_at(AT_FDCWD, "/bin/true", 0), LOADABLE_YES);
	cr_expect_eq(loadable_at(AT_FDCWD, "missing", 0), LOADABLE_NOTHING);
	cr_expect_eq(loadable_at(AT_FDCWD, dir, 0), LOADABLE_NOTHING);
	cr_expect_eq(loadable_at(AT_FDCWD, "", 0), LOADABLE_NOTHING);
	cr_expect_eq(loadable_at(AT_FDCWD, NULL, 0), LOADABLE_NOTHING);
}

Test(loadable, cut_short, .init = init, .fini = fini)
{
	program_make("program", 0755);
	for (off_t len = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr) + 4; len > 0; len -= 4) {
		cr_assert_eq(truncate("program", len), 0);
		cr_expect_eq(loadable_at(AT_FDCWD, "program", 0), LOADABLE_NO, "%ld octets",
			     (long)len);
	}
}

Test(loadable, scripts, .init = init, .fini = fini)
{
	static const struct {
		const char *text;
		enum loadable want;
	} rows[] = {
		{ "#!/bin/sh\n", LOADABLE_YES },
		{ "#! /bin/sh -e\n", LOADABLE_YES },
		{ "#!\t/bin/sh", LOADABLE_YES },
		{ "#!./static\n", LOADABLE_NO },
		{ "#!./script-of-static -x\n", LOADABLE_NO },
		{ "#!/no/such/thing\n", LOADABLE_NOTHING },
		{ "#! \n/bin/sh", LOADABLE_NOTHING },
		{ "#!./itself\n", LOADABLE_NOTHING },
		{ "echo hi\n", LOADABLE_NO }, /* or ENOEXEC: the kernel may know it */
		{ "", LOADABLE_NO },
	};

	elf_make("static", ELFCLASS64, MACHINE, NULL, 0755);
	text_make("script-of-static", "#!./static\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		text_make("itself", rows[i].text);
		cr_expect_eq(loadable_at(AT_FDCWD, "itself", 0), rows[i].want, "%s", rows[i].text);
	}
}

Test(loadable, scripts_of_scripts, .init = init, .fini = fini)
{
	char name[8], text[32] = "#!/bin/sh\n";

	for (int i = 1; i <= 6; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		text_make(name, text);
		snprintf(text, sizeof(text), "#!%s/s%d\n", ".", i);
		cr_expect_eq(loadable_at(AT_FDCWD, name, 0),
			     i <= 5 ? LOADABLE_YES : LOADABLE_NOTHING, "%d deep", i);
	}
}

Test(loadable, as_execvp_finds_it, .init = init, .fini = fini)
{
	setenv("PATH", "/nowhere::/usr/bin", 1);
	cr_expect_eq(loadable_find("true"), LOADABLE_YES);
	cr_expect_eq(loadable_find("no-such-program"), LOADABLE_NOTHING);
	cr_expect_eq(loadable_find(""), LOADABLE_NOTHING);
	cr_expect_eq(loadable_find(NULL), LOADABLE_NOTHING);
	elf_make("true", ELFCLASS64, MACHINE, NULL, 0644);
	cr_expect_eq(loadable_find("true"), LOADABLE_YES, "what cannot be run is passed over");
	elf_make("true", ELFCLASS64, MACHINE, NULL, 0755);
	cr_expect_eq(loadable_find("true"), LOADABLE_NO, "this folder comes first");
	cr_expect_eq(loadable_find("/bin/true"), LOADABLE_YES);
	text_make("words", "echo hi\n");
	cr_expect_eq(loadable_find("words"), LOADABLE_YES, "by the shell");
	cr_expect_eq(loadable_find("./words"), LOADABLE_YES);
	unsetenv("PATH");
	cr_expect_eq(loadable_find("true"), LOADABLE_YES);
}

Test(loadable, by_descriptor, .init = init, .fini = fini)
{
	int there, fd;

	program_make("program", 0755);
	there = open(dir, O_RDONLY | O_DIRECTORY);
	fd = open("program", O_PATH | O_CLOEXEC);
	cr_assert_eq(symlink("program", "link"), 0);
	cr_assert_eq(chdir("/"), 0);
	cr_expect_eq(loadable_at(there, "program", 0), LOADABLE_YES);
	cr_expect_eq(loadable_at(fd, "", AT_EMPTY_PATH), LOADABLE_YES);
	cr_expect_eq(loadable_at(fd, "", 0), LOADABLE_NOTHING);
	cr_expect_eq(loadable_at(there, "link", 0), LOADABLE_YES);
	cr_expect_eq(loadable_at(there, "link", AT_SYMLINK_NOFOLLOW), LOADABLE_NOTHING);
	close(fd);
	close(there);
}

static int as_nobody(const char *path, bool whole)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (whole ? setgid(65534) || setuid(65534) : seteuid(65534))
			_exit(99);
		_exit(loadable_at(AT_FDCWD, path, 0));
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(loadable, privileges, .init = init, .fini = fini)
{
	/* cap_net_bind_service, effective */
	static const unsigned char caps[20] = { 1, 0, 0, 2, 0, 4 };

	if (getuid())
		cr_skip_test("only root can give a file away");
	program_make("program", 04755);
	cr_expect_eq(loadable_at(AT_FDCWD, "program", 0), LOADABLE_YES, "its user is ours");
	cr_assert_eq(chown("program", 1, 1), 0);
	cr_assert_eq(chmod("program", 04755), 0);
	cr_expect_eq(loadable_at(AT_FDCWD, "program", 0), LOADABLE_NO, "setuid");
	cr_assert_eq(chmod("program", 02755), 0);
	cr_expect_eq(loadable_at(AT_FDCWD, "program", 0), LOADABLE_NO, "setgid");
	cr_assert_eq(chmod("program", 02745), 0);
	cr_expect_eq(loadable_at(AT_FDCWD, "program", 0), LOADABLE_YES, "no setgid without g+x");
	cr_assert_eq(chmod("program", 0755), 0);
	if (setxattr("program", "security.capability", caps, sizeof(caps), 0))
		return;
	cr_expect_eq(loadable_at(AT_FDCWD, "program", 0), LOADABLE_YES, "root has them anyway");
	cr_expect_eq(as_nobody("program", true), LOADABLE_NO, "capabilities");
}

Test(loadable, of_another_user, .init = init, .fini = fini)
{
	if (getuid())
		cr_skip_test("only root can become somebody else");
	program_make("program", 0755);
	program_make("unreadable", 0711);
	text_make("script", "#!./program\n");
	cr_assert_eq(chmod("script", 04755), 0);
	cr_assert_eq(chown("script", 1, 1), 0);
	cr_expect_eq(loadable_at(AT_FDCWD, "script", 0), LOADABLE_YES, "no setuid for scripts");
	/* Each in a child, which does not come back from there */
	cr_expect_eq(as_nobody("program", false), LOADABLE_NO, "effective, and not real");
	cr_expect_eq(as_nobody("program", true), LOADABLE_YES);
	cr_expect_eq(as_nobody("unreadable", true), LOADABLE_NO);
}

/* A table of names is all that is looked at */
static void go_make(const char *name, const char *sections, size_t len)
{
	struct {
		Elf64_Ehdr e;
		Elf64_Phdr ph;
		char linker[64];
		Elf64_Shdr sh;
		char names[64];
	} file = { .e = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
			  .e_type = ET_EXEC,
			  .e_machine = MACHINE,
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 1,
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = 1 },
		   .linker = LINKER };

	file.e.e_phoff = (size_t)((char *)&file.ph - (char *)&file);
	file.e.e_shoff = (size_t)((char *)&file.sh - (char *)&file);
	file.ph = (Elf64_Phdr){ .p_type = PT_INTERP,
				.p_offset = (size_t)((char *)file.linker - (char *)&file),
				.p_filesz = sizeof(LINKER) };
	file.sh.sh_offset = (size_t)((char *)file.names - (char *)&file);
	file.sh.sh_size = len;
	memcpy(file.names, sections, len);
	file_make(name, &file, sizeof(file), 0755);
}

Test(loadable, go, .init = init, .fini = fini)
{
	static const char go[] = "\0.text\0.go.buildinfo", other[] = "\0.text\0.go.buildinfos",
			  inner[] = "\0.text.go.buildinfo";

	go_make("program", go, sizeof(go));
	cr_expect_eq(loadable_at(AT_FDCWD, "program", 0), LOADABLE_NO);
	cr_expect_eq(config_loads_at(AT_FDCWD, "program", 0), CONFIG_LOADS_GO);
	go_make("program", other, sizeof(other));
	cr_expect_eq(loadable_at(AT_FDCWD, "program", 0), LOADABLE_YES, "a longer name");
	go_make("program", inner, sizeof(inner));
	cr_expect_eq(loadable_at(AT_FDCWD, "program", 0), LOADABLE_YES, "another beginning");
	go_make("program", go, sizeof(go) - 1);
	cr_expect_eq(loadable_at(AT_FDCWD, "program", 0), LOADABLE_YES, "cut short");
}

/* Of what runs without the interposer, if a rule is for it */
Test(loadable, the_user_is_told, .init = init, .fini = fini)
{
	elf_make("static", ELFCLASS64, MACHINE, NULL, 0755);
	text_make("words", "echo hi\n");
	loadable_at(AT_FDCWD, "./static", 0);
	cr_expect_eq(told.times, 0, "no rule is for it");
	cr_expect_str_eq(told.name, "static");
	told.wanted = true;
	loadable_at(AT_FDCWD, "./static", 0);
	cr_expect_eq(told.times, 1);
	cr_expect_str_eq(told.file, "./static");
	cr_expect_eq(told.why, CONFIG_LOADS_STATIC);
	loadable_at(AT_FDCWD, "/bin/true", 0);
	loadable_at(AT_FDCWD, "missing", 0);
	loadable_at(AT_FDCWD, "words", 0);
	cr_expect_eq(told.times, 1, "what loads, what there is not, what may be no program");
}
