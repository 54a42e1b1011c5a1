/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command as a child, for a summary or a report that is to be printed when it has ended, by
 * whatever way.
 *
 * Signals of the terminal go to the child as they come, for both are in the foreground; those that
 * are sent to the launcher alone are passed on. It ends as its child has: with its exit
 * status, or by the same signal, so that a shell tells the same of it.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/warpsock/command.h"
#include "apps/warpsock/launcher.h"
#include "config/report.h"

static const int passed[] = { SIGHUP, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT };
static const int ignored[] = { SIGINT, SIGQUIT };

#define PASSED (sizeof(passed) / sizeof(passed[0]))
#define IGNORED (sizeof(ignored) / sizeof(ignored[0]))

static volatile sig_atomic_t child;

static void pass_on(int sig)
{
	int saved = errno;

	if (child > 0)
		kill(child, sig);
	errno = saved;
}

/* What the launcher itself was started with, for the child */
static struct sigaction before[PASSED + IGNORED];

static void signals_take(void)
{
	struct sigaction take = { .sa_handler = pass_on, .sa_flags = SA_RESTART };
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	for (size_t i = 0; i < PASSED; i++) {
		sigaction(passed[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN)
			sigaction(passed[i], &take, NULL);
	}
	for (size_t i = 0; i < IGNORED; i++)
		sigaction(ignored[i], &ignore, &before[PASSED + i]);
}

static void signals_return(void)
{
	for (size_t i = 0; i < PASSED; i++)
		sigaction(passed[i], &before[i], NULL);
	for (size_t i = 0; i < IGNORED; i++)
		sigaction(ignored[i], &before[PASSED + i], NULL);
}

__attribute__((noreturn)) static void become(char **argv, const char *shared)
{
	char command[PATH_MAX + 16];

	signals_return();
	snprintf(command, sizeof(command), "%d:%s", getpid(), shared);
	environment_option(CONFIG_COMMAND, command);
	execvp(argv[0], argv);
	fprintf(stderr, "warpsock: %s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			launcher_die("the command: %s", strerror(errno));
	return status;
}

/* With what processes have counted that were killed, or that go on */
static bool counts_read(const struct watch *w, struct config_tally *tally, struct config_report *r)
{
	struct config_report more = { .peer = "" };

	if (tally)
		config_tally_read(tally, true, &more);
	return counts_add(w->counts, &more, r);
}

static void reasons_put(FILE *out, const struct config_report *r)
{
	for (unsigned int i = 0; i < CONFIG_REPORT_REASONS; i++) {
		const struct config_reason_row *row = config_reason_at(i);

		if (r->reason[i])
			fprintf(out, "warpsock:   %llu %s: %s%s%s\n", r->reason[i], row->name,
				row->text, row->advice[0] ? " " : "", row->advice);
	}
}

static void summary_put(FILE *out, const struct config_report *r)
{
	const unsigned long long *n = r->n;
	unsigned long long ddp = n[CONFIG_REPORT_SOFTWARE] + n[CONFIG_REPORT_VERBS];

	fprintf(out,
		"warpsock: connections: %llu on DDP (%llu by software, %llu by a device), "
		"%llu on TCP, %llu failed or broken\n",
		ddp, n[CONFIG_REPORT_SOFTWARE], n[CONFIG_REPORT_VERBS], n[CONFIG_REPORT_TCP],
		n[CONFIG_REPORT_ERRORS]);
	if (ddp)
		fprintf(out, "warpsock: bytes over DDP: %llu sent, %llu received\n",
			n[CONFIG_REPORT_BYTES_TX], n[CONFIG_REPORT_BYTES_RX]);
	if (n[CONFIG_REPORT_NOT_INTERPOSED])
		fprintf(out, "warpsock: programs that could not be interposed: %llu\n",
			n[CONFIG_REPORT_NOT_INTERPOSED]);
	reasons_put(out, r);
}

/* Where poll() tells of room in a pipe, these many bytes find it */
#define PIECE 512
#define ROOM_WAIT_MS 1000

static void text_give(int fd, const char *text, size_t left)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };

	while (left && poll(&room, 1, ROOM_WAIT_MS) > 0 && room.revents == POLLOUT) {
		ssize_t n = write(fd, text, left < PIECE ? left : PIECE);

		if (n < 0)
			return;
		text += n;
		left -= (size_t)n;
	}
}

static void summary_give(const struct config_report *r)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return;
	summary_put(out, r);
	if (!fclose(out))
		text_give(STDERR_FILENO, text, n);
	free(text);
}

static void report_give(const char *text)
{
	if (fputs(text, stdout) < 0 || fflush(stdout))
		fprintf(stderr, "warpsock: the report: %s\n", strerror(errno));
}

/* As the child ended, without another core */
static int end_as(int status)
{
	static const struct rlimit none = { 0, 0 };

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	fflush(NULL);
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

static pid_t begin(char **argv, const struct watch *w)
{
	pid_t pid;

	signals_take();
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		launcher_die("%s: %s", argv[0], strerror(errno));
	if (!pid)
		become(argv, w->shared);
	return pid;
}

int watch_command(char **argv, const struct watch *w)
{
	struct config_tally *tally = counts_map(w->shared);
	char text[CONFIG_REPORT_MAX];
	struct config_report r;
	int status;

	child = begin(argv, w);
	status = wait_for(child);
	child = 0;
	signal(SIGPIPE, SIG_IGN);
	if (!counts_read(w, tally, &r)) {
		fprintf(stderr, "warpsock: the counts of the command %s%s\n",
			*w->counts ? "are gone: " : "could not be kept", w->counts);
		return end_as(status);
	}
	unlink(w->shared);
	config_report_format(&r, text);
	if (w->json)
		report_give(text);
	if (w->summary)
		summary_give(&r);
	return end_as(status);
}
