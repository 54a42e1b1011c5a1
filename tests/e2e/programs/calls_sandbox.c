/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections of a process that confines itself by seccomp filters: octets pass, in both
 * directions and from either end, by the calls that the filter leaves. As calls.c, for the kernel's
 * TCP and for Warpsock.
 *
 *	parent, free  --- connection ---  child, confined; it echoes
 *
 * A call that the filter does not know ends the child, by SIGSYS; or it is named first, where the
 * filter says so.
 */
#include "tests/e2e/programs/calls.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define OCTETS (6 << 20)
#define PIECE 50000

/* Those that sshd 9.2 leaves to who speaks before its user is known, of x86-64 and aarch64 */
static const short sshd[] = {
	SYS_brk,      SYS_clock_gettime, SYS_close,   SYS_exit,		  SYS_exit_group,
	SYS_futex,    SYS_geteuid,	 SYS_getpgid, SYS_getpid,	  SYS_getrandom,
	SYS_gettid,   SYS_gettimeofday,	 SYS_getuid,  SYS_madvise,	  SYS_mmap,
	SYS_mprotect, SYS_mremap,	 SYS_munmap,  SYS_nanosleep,	  SYS_clock_nanosleep,
	SYS_ppoll,    SYS_pselect6,	 SYS_read,    SYS_rt_sigprocmask, SYS_shutdown,
	SYS_write,    SYS_writev,
#ifdef SYS_poll
	SYS_poll,     SYS_select,	 SYS_time,
#endif
};

/* As few as a program can live by that has such a connection */
static const short few[] = {
	SYS_read, SYS_write, SYS_futex, SYS_exit_group,
#ifdef SYS_poll
	SYS_poll,
#else
	SYS_ppoll,
#endif
};

/* What an ordinary server has, with everything that a connection is made of */
static const short wide[] = {
	SYS_read,	SYS_write,	 SYS_futex,	      SYS_exit_group,
	SYS_ppoll,	SYS_sendmsg,	 SYS_recvmsg,	      SYS_recvfrom,
	SYS_getsockopt, SYS_setsockopt,	 SYS_fcntl,	      SYS_ioctl,
	SYS_accept,	SYS_accept4,	 SYS_close,	      SYS_mmap,
	SYS_munmap,	SYS_getsockname, SYS_getrandom,	      SYS_shutdown,
	SYS_connect,	SYS_socket,	 SYS_clone,	      SYS_clone3,
	SYS_gettid,	SYS_getpid,	 SYS_eventfd2,	      SYS_rt_sigprocmask,
	SYS_mprotect,	SYS_rseq,	 SYS_set_robust_list, SYS_madvise,
	SYS_brk,	SYS_bind,	 SYS_rt_sigaction,    SYS_exit,
	SYS_openat,	SYS_prlimit64,
#ifdef SYS_poll
	SYS_poll,
#endif
};

struct sandbox {
	const short *calls;
	size_t n;
	__u32 answer; /* to all others */
	bool by_syscall, no_files;
};

#define ENOUGH 512

/* @code with the numbers' jumps */
static struct sock_filter code(__u16 op, __u32 k, __u8 jt, __u8 jf)
{
	return (struct sock_filter){ op, jt, jf, k };
}

static bool confine(const struct sandbox *box)
{
	static struct sock_filter f[2 * ENOUGH];
	struct sock_fprog program = { 0, f };
	struct rlimit none = { 1, 1 };
	unsigned short n = 0;

	f[n++] = code(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	for (size_t i = 0; i < box->n; i++) {
		f[n++] = code(BPF_JMP | BPF_JEQ | BPF_K, (__u32)box->calls[i], 0, 1);
		f[n++] = code(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	}
	f[n++] = code(BPF_RET | BPF_K, box->answer, 0, 0);
	program.len = n;
	need(!box->no_files || !setrlimit(RLIMIT_NOFILE, &none));
	need(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	if (box->by_syscall)
		need(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
	else
		need(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	return true;
}

/* By write() alone, for stdio may want to know what it writes to */
static void named(int sig, siginfo_t *info, void *context)
{
	char line[] = "# the call 000\n";

	for (int i = 13, n = info->si_syscall; i > 10; i--, n /= 10)
		line[i] = (char)('0' + n % 10);
	(void)!write(1, line, sizeof(line) - 1);
	__builtin_trap();
}

/* A child that does something behind a filter: what came of it */
static bool confined(const struct sandbox *box, bool (*run)(int fd), const int fd[2], int end,
		     pid_t *pid)
{
	struct sigaction action = { .sa_sigaction = named, .sa_flags = SA_SIGINFO };

	fflush(stdout);
	*pid = fork();
	need(*pid >= 0);
	if (*pid)
		return true;
	if (fd)
		close(fd[!end]);
	signal(SIGPIPE, SIG_DFL);
	sigaction(SIGSYS, &action, NULL);
	if (!confine(box))
		_exit(2);
	_exit(run(fd ? fd[end] : -1) ? 0 : 1);
}

static bool ended_well(pid_t pid)
{
	int status = -1;

	need(waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status))
		printf("# signal %d\n", WTERMSIG(status));
	need(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return true;
}

static bool wait_ready(int fd, short events)
{
	struct pollfd p = { fd, events, 0 };

	need(poll(&p, 1, 60000) == 1);
	return true;
}

static bool write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t k = write(fd, p, n);

		if (k < 0 && errno == EAGAIN && wait_ready(fd, POLLOUT))
			continue;
		if (k <= 0)
			return false;
		p += k;
		n -= (size_t)k;
	}
	return true;
}

static bool echo(int fd)
{
	static char buf[PIECE];
	ssize_t n;

	for (;;) {
		n = read(fd, buf, sizeof(buf));
		if (n < 0 && errno == EAGAIN && wait_ready(fd, POLLIN))
			continue;
		if (n <= 0)
			return n == 0;
		if (!write_all(fd, buf, (size_t)n))
			return false;
	}
}

/* Polls although it might block */
static bool echo_polled(int fd)
{
	static char buf[PIECE];
	ssize_t n;

	for (;;) {
		need(wait_ready(fd, POLLIN));
		n = read(fd, buf, sizeof(buf));
		need(n >= 0);
		if (!n)
			return true;
		need(wait_ready(fd, POLLOUT) && write_all(fd, buf, (size_t)n));
	}
}

static unsigned char octet(size_t at)
{
	return (unsigned char)(at * 7 + at / 251);
}

/* As much as @fd takes of the octets from *@at on */
static bool send_some(int fd, size_t *at)
{
	static unsigned char buf[PIECE];
	size_t n = OCTETS - *at < PIECE ? OCTETS - *at : PIECE;
	ssize_t k;

	for (size_t i = 0; i < n; i++)
		buf[i] = octet(*at + i);
	k = send(fd, buf, n, MSG_DONTWAIT);
	need(k > 0 || errno == EAGAIN);
	*at += k > 0 ? (size_t)k : 0;
	if (*at == OCTETS)
		need(!shutdown(fd, SHUT_WR));
	return true;
}

static bool receive_some(int fd, size_t *at, bool *end)
{
	static unsigned char buf[PIECE];
	ssize_t k = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

	need(k >= 0 || errno == EAGAIN);
	for (ssize_t i = 0; i < k; i++)
		need(buf[i] == octet(*at + (size_t)i));
	*at += k > 0 ? (size_t)k : 0;
	*end = k == 0;
	return true;
}

/* Sends them all and takes them back, to the end */
static bool to_and_fro(int fd)
{
	size_t sent = 0, got = 0;
	bool end = false;

	while (!end) {
		struct pollfd p = { fd, POLLIN, 0 };

		p.events |= sent < OCTETS ? POLLOUT : 0;
		need(poll(&p, 1, 60000) == 1);
		need(!(p.revents & POLLOUT) || sent == OCTETS || send_some(fd, &sent));
		need(!(p.revents & ~POLLOUT) || receive_some(fd, &got, &end));
	}
	need(got == OCTETS);
	return true;
}

/* @end: which of the two ends the child has */
static bool run(const struct sandbox *box, int end, bool nonblocking, bool (*child)(int fd))
{
	int fd[2];
	pid_t pid;

	need(pair(fd) && (!nonblocking || nonblock(fd[end])));
	need(confined(box, child, fd, end, &pid));
	close(fd[end]);
	need(to_and_fro(fd[!end]));
	close(fd[!end]);
	return ended_well(pid);
}

#define BOX(list, to_others, ...)                                                        \
	{                                                                                \
		.calls = list, .n = sizeof(list) / sizeof(list[0]), .answer = to_others, \
		__VA_ARGS__                                                              \
	}

static bool as_sshd(void)
{
	static const struct sandbox named_first = BOX(sshd, SECCOMP_RET_TRAP, .no_files = true),
				    kills = BOX(sshd, SECCOMP_RET_KILL_PROCESS, .no_files = true);

	need(run(&named_first, 1, true, echo) && run(&named_first, 0, true, echo));
	return run(&kills, 1, true, echo) && run(&kills, 0, true, echo);
}

static bool as_sshd_blocking(void)
{
	static const struct sandbox named_first = BOX(sshd, SECCOMP_RET_TRAP, .no_files = true),
				    kills = BOX(sshd, SECCOMP_RET_KILL_PROCESS, .no_files = false);

	need(run(&named_first, 1, false, echo) && run(&named_first, 0, false, echo_polled));
	return run(&kills, 1, false, echo_polled) && run(&kills, 0, false, echo);
}

static bool with_few(void)
{
	static const struct sandbox named_first = BOX(few, SECCOMP_RET_TRAP, .by_syscall = true),
				    kills = BOX(few, SECCOMP_RET_KILL_PROCESS, .no_files = false);

	need(run(&named_first, 1, false, echo) && run(&named_first, 0, true, echo));
	return run(&kills, 1, true, echo_polled) && run(&kills, 0, false, echo);
}

/* The filter may also say no, and not kill */
static bool with_errors(void)
{
	static const struct sandbox says_no =
		BOX(sshd, SECCOMP_RET_ERRNO | EACCES, .no_files = false);

	return run(&says_no, 1, false, echo) && run(&says_no, 0, true, echo_polled);
}

/* The flag is the file's, and this process's too */
static bool flag_of_another(void)
{
	static const struct sandbox box = BOX(sshd, SECCOMP_RET_KILL_PROCESS, .no_files = false);
	int fd[2];
	pid_t pid;
	char c;

	need(pair(fd) && confined(&box, echo, fd, 1, &pid));
	need(write(fd[0], "x", 1) == 1 && read(fd[0], &c, 1) == 1 && c == 'x');
	need(!(fcntl(fd[1], F_GETFL) & O_NONBLOCK));
	close(fd[1]);
	close(fd[0]);
	return ended_well(pid);
}

/* A write to who has gone says EPIPE, and the signal comes for it, as it would */
static bool gone(int fd)
{
	char c;

	need(read(fd, &c, 1) == 0);
	for (int i = 0; i < 100; i++) {
		if (write(fd, "x", 1) < 0)
			return errno == EPIPE || errno == ECONNRESET;
		poll(NULL, 0, 10);
	}
	return false;
}

static bool gone_quietly(int fd)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return gone(fd);
}

static bool broken(void)
{
	static const struct sandbox box = BOX(sshd, SECCOMP_RET_KILL_PROCESS, .no_files = true);
	int fd[2], status;
	pid_t pid;

	need(pair(fd) && confined(&box, gone_quietly, fd, 1, &pid));
	done(fd);
	need(ended_well(pid));
	need(pair(fd) && confined(&box, gone, fd, 1, &pid));
	done(fd);
	need(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
	return true;
}

/* Only reads, and its grants go to who reads no more: no signal is the program's */
static bool only_reads(int fd)
{
	static char buf[PIECE];
	ssize_t n;

	do {
		n = read(fd, buf, sizeof(buf));
	} while (n > 0);
	return n == 0 || errno == ECONNRESET;
}

static bool reset_while_reading(void)
{
	static const struct sandbox box = BOX(sshd, SECCOMP_RET_KILL_PROCESS, .no_files = true);
	struct linger hard = { 1, 0 };
	int fd[2];
	pid_t pid;

	need(pair(fd) && confined(&box, only_reads, fd, 1, &pid));
	close(fd[1]);
	for (int i = 0; i < 40; i++)
		need(send(fd[0], (char[PIECE]){ 0 }, PIECE, 0) == PIECE);
	need(!setsockopt(fd[0], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)));
	close(fd[0]);
	return ended_well(pid);
}

/* The last one to have the connection says the end, and what it wrote arrives */
static bool last_words(int fd)
{
	static char buf[PIECE];

	for (int i = 0; i < 20; i++)
		if (!write_all(fd, buf, sizeof(buf)))
			return false;
	return !close(fd);
}

static bool closed_inside(void)
{
	static const struct sandbox box = BOX(sshd, SECCOMP_RET_KILL_PROCESS, .no_files = true);
	int fd[2];
	pid_t pid;
	char c;

	need(pair(fd) && confined(&box, last_words, fd, 1, &pid));
	close(fd[1]);
	need(drain(fd[0], 20L * PIECE) && read(fd[0], &c, 1) == 0);
	close(fd[0]);
	return ended_well(pid);
}

/* A filter that leaves all that there is need of */
static bool accepts(int fd)
{
	int own = accept(lfd, NULL, NULL);

	return own >= 0 && echo(own) && !close(own);
}

static bool wide_filter(void)
{
	static const struct sandbox box = BOX(wide, SECCOMP_RET_KILL_PROCESS, .no_files = false),
				    first = BOX(wide, SECCOMP_RET_TRAP, .no_files = false);
	int fd;
	pid_t pid;

	need(run(&first, 1, false, echo) && run(&box, 0, true, echo_polled));
	need(confined(&first, accepts, NULL, 0, &pid));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	need(!connect(fd, (struct sockaddr *)&laddr, sizeof(laddr)) && to_and_fro(fd));
	close(fd);
	return ended_well(pid);
}

/* A filter that the kernel does not take changes nothing */
static bool no_filter(void)
{
	struct sock_filter bad = code(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	struct sock_fprog none = { 0, &bad }, wild = { 1, (void *)16 };
	int fd[2];

	need(pair(fd));
	need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &none) < 0 && errno == EINVAL);
	need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &wild) < 0 && errno == EFAULT);
	need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) < 0 && errno == EFAULT);
	need(write(fd[0], "x", 1) == 1 && read(fd[1], (char[1]){ 0 }, 1) == 1);
	done(fd);
	return true;
}

int main(void)
{
	static const struct call_case cases[] = {
		{ "the filter of sshd", as_sshd },
		{ "the filter of sshd, a socket that blocks", as_sshd_blocking },
		{ "read, write, poll and futex", with_few },
		{ "a filter that answers with an error", with_errors },
		{ "a blocking socket stays one for its other process", flag_of_another },
		{ "writing to who has gone", broken },
		{ "a reset while it only reads", reset_while_reading },
		{ "closed by the confined process", closed_inside },
		{ "a filter that leaves enough", wide_filter },
		{ "a filter that is none", no_filter },
	};

	/* A confined child may not ask what it prints to */
	static char line[BUFSIZ];

	setvbuf(stdout, line, _IOLBF, sizeof(line));
	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
