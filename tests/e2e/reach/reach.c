/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls each name of wrap.list and says whether the interposer's function was entered:
 * reach LIBRARY [NAME...].
 *
 * In a child of its own for each name a breakpoint replaces the first instruction of the
 * library's function; the call is made as any program makes it, and either traps there or
 * not. So nothing happens that the call would do, and nobody's word is taken for it.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

struct reach_call {
	const char *name, *kind;
	long (*call)(long fd);
};

extern const struct reach_call reach_calls[];

#define REACHED 42
#define PASSED_BY 43

#ifndef __x86_64__
#error "the breakpoint is that of x86-64"
#endif
#define BREAKPOINT 0xcc

/* libc's own, since the library's may bear a breakpoint */
static struct {
	pid_t (*fork)(void);
	int (*sigaction)(int sig, const struct sigaction *action, struct sigaction *old);
	void (*exit)(int status);
} own;
static uintptr_t breakpoint;

static void on_trap(int sig, siginfo_t *info, void *ctx)
{
	ucontext_t *uc = ctx;

	own.exit((uintptr_t)uc->uc_mcontext.gregs[REG_RIP] == breakpoint + 1 ? REACHED : PASSED_BY);
}

static void in_child(const struct reach_call *call)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = (char *)(breakpoint & ~(page - 1));

	own.sigaction(SIGTRAP, &action, NULL);
	if (mprotect(at, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC))
		own.exit(1);
	*(unsigned char *)breakpoint = BREAKPOINT;
	call->call(-1);
	own.exit(PASSED_BY);
}

/* Where the library has it; 0: not at all */
static uintptr_t find(void *lib, const char *path, const char *name)
{
	void *at = dlsym(lib, name);
	Dl_info info;

	if (!at || !dladdr(at, &info) || !strstr(info.dli_fname, path))
		return 0;
	return (uintptr_t)at;
}

static int is_reached(const struct reach_call *call)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = own.fork();
	if (!pid)
		in_child(call);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == REACHED;
}

/* All that are named on the command line, or simply all */
static int is_asked(int argc, char **argv, const char *name)
{
	for (int i = 2; i < argc; i++)
		if (!strcmp(argv[i], name))
			return 1;
	return argc == 2;
}

int main(int argc, char **argv)
{
	void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) : NULL;
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	const struct reach_call *call;

	if (argc < 2 || !libc)
		return 2;
	/* Without the library there is no place to break at, and each call is asked for libc's */
	if (!lib)
		lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	own.fork = dlsym(libc, "fork");
	own.sigaction = dlsym(libc, "sigaction");
	own.exit = dlsym(libc, "_exit");
	for (call = reach_calls; call->name; call++) {
		if (!is_asked(argc, argv, call->name))
			continue;
		breakpoint = lib ? find(lib, argv[1], call->name) : 0;
		printf("%s %s\n", call->name,
		       !breakpoint	  ? "missing"
		       : is_reached(call) ? "reached"
					  : "passed by");
	}
	return 0;
}
