/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counts what a call on a socket that is not in DDP mode pays: pass LIBRARY. For each name of
 * class fd, after, took and msg: how many instructions of the library's were executed, and
 * whether one went backwards or into another function.
 *
 * A child makes the call; its parent lets it go one instruction after the other and looks where it
 * is.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

struct reach_call {
	const char *name, *kind;
	long (*call)(long fd);
};

extern const struct reach_call reach_calls[];

#define STEPS_MAX 200000

static struct {
	uintptr_t from, to; /* the library's code */
} text;

struct count {
	unsigned int inside;
	int straight; /* never backwards, never to another place of the library */
	int ended;
};

static int note_text(struct dl_phdr_info *info, size_t size, void *path)
{
	if (!strstr(info->dlpi_name, path))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		text.from = info->dlpi_addr + p->p_vaddr;
		text.to = text.from + p->p_memsz;
	}
	return 1;
}

static int is_inside(uintptr_t at)
{
	return at >= text.from && at < text.to;
}

/* The longest way that one instruction goes forward */
#define INSTRUCTION_MAX 15

static struct count follow(pid_t pid)
{
	struct count c = { 0, 1, 0 };
	uintptr_t last = 0;

	for (int i = 0; i < STEPS_MAX; i++) {
		struct user_regs_struct regs;
		int status;

		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) || waitpid(pid, &status, 0) != pid)
			return c;
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			c.ended = 1;
			return c;
		}
		/* Its own second stop, or libc's function did not like its arguments */
		if (WSTOPSIG(status) != SIGTRAP) {
			c.ended = 1;
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return c;
		}
		ptrace(PTRACE_GETREGS, pid, NULL, &regs);
		if (!is_inside(regs.rip))
			continue;
		c.inside++;
		if (last && (regs.rip <= last || regs.rip > last + 4 * INSTRUCTION_MAX))
			c.straight = 0;
		last = regs.rip;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return c;
}

static struct count measure(const struct reach_call *call, int fd)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		call->call(fd);
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return follow(pid);
}

static int is_short(const char *kind)
{
	static const char *const kinds[] = { "fd", "after", "took", "msg" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kind, kinds[i]))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	const struct reach_call *call;
	int fd;

	if (argc < 2 || !dl_iterate_phdr(note_text, argv[1]) || !text.to)
		return 2;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	for (call = reach_calls; call->name; call++) {
		struct count c;

		if (!is_short(call->kind))
			continue;
		fflush(stdout);
		c = measure(call, fd);
		printf("%s %u %s\n", call->name, c.inside,
		       !c.ended	    ? "endless"
		       : c.straight ? "straight"
				    : "around");
	}
	return 0;
}
