/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Linux promises of signals that come while a call on a stream socket is under way. To be run
 * by itself and under the launcher, as calls.c.
 */
#include "tests/e2e/programs/calls.h"

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

static void nap(int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&ts, &ts))
		;
}

static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void install(int sig, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO };

	sigaction(sig, &action, NULL);
}

/* --- somebody sends signals to a thread that sleeps, and later an octet --- */

struct sender {
	pthread_t to, thread;
	int tid;
	int sig, times, also; /* also: another signal, at the same time */
	int fd;		      /* gets an octet; -1: none */
	int connect;	      /* or somebody connects */
};

static bool asleep(int tid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		abort();
	fclose(file);
	return state == 'S';
}

/* It has nothing else to sleep for than the call */
static void until_asleep(int tid)
{
	for (int times = 0, tries = 0; times < 4 && tries < 2000; tries++) {
		times = asleep(tid) ? times + 1 : 0;
		nap(5);
	}
}

static void *sender_run(void *arg)
{
	struct sender *s = arg;

	until_asleep(s->tid);
	for (int i = 0; i < s->times; i++)
		pthread_sigqueue(s->to, s->sig, (union sigval){ .sival_int = i });
	if (s->also)
		pthread_kill(s->to, s->also);
	nap(40);
	if (s->fd >= 0 && write(s->fd, "x", 1) != 1)
		abort();
	if (s->connect) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		connect(fd, (struct sockaddr *)&laddr, sizeof(laddr));
		nap(40);
		close(fd);
	}
	return NULL;
}

static struct sender sender;

static void send_later(int sig, int times, int also, int fd)
{
	sigset_t all, before;

	sender = (struct sender){ pthread_self(), 0, gettid(), sig, times, also, fd, 0 };
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_create(&sender.thread, NULL, sender_run, &sender);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void sent(void)
{
	pthread_join(sender.thread, NULL);
}

/* --- what a handler saw --- */

static volatile sig_atomic_t seen, value[64], inside, deepest;
static siginfo_t last_info;
static uintptr_t last_stack;
static sigset_t last_mask;

static void look(int sig, siginfo_t *info, void *context)
{
	int here;

	inside++;
	deepest = inside > deepest ? inside : deepest;
	last_info = *info;
	last_stack = (uintptr_t)&here;
	sigprocmask(SIG_BLOCK, NULL, &last_mask);
	value[seen % 64] = info->si_value.sival_int;
	nap(1);
	seen++;
	inside--;
}

static void look_reset(void)
{
	seen = inside = deepest = 0;
}

static bool blocked(int sig)
{
	sigset_t mask;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	return sigismember(&mask, sig);
}

/* --- restart or EINTR --- */

static bool restart(void)
{
	int fd[2];
	char c;

	need(pair(fd));
	install(SIGUSR1, look, SA_RESTART);
	look_reset();
	send_later(SIGUSR1, 1, 0, fd[1]);
	need(read(fd[0], &c, 1) == 1 && c == 'x' && seen == 1);
	sent();
	install(SIGUSR1, look, 0);
	send_later(SIGUSR1, 1, 0, fd[1]);
	need(read(fd[0], &c, 1) < 0 && errno == EINTR && seen == 2);
	sent();
	need(read(fd[0], &c, 1) == 1);
	done(fd);
	return true;
}

static bool restart_write(void)
{
	int fd[2];
	long sum;

	need(pair(fd));
	sum = stuff(fd[0]);
	need(sum > 0);
	install(SIGUSR1, look, 0);
	look_reset();
	send_later(SIGUSR1, 1, 0, -1);
	need(write(fd[0], "z", 1) < 0 && errno == EINTR && seen == 1);
	sent();
	done(fd);
	return true;
}

static bool timeout_interrupts(void)
{
	struct timeval tv = { .tv_sec = 20 };
	int fd[2];
	char c;

	need(pair(fd));
	install(SIGUSR1, look, SA_RESTART);
	look_reset();
	need(!setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	need(!setsockopt(fd[0], SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	send_later(SIGUSR1, 1, 0, -1);
	need(read(fd[0], &c, 1) < 0 && errno == EINTR && seen == 1);
	sent();
	need(stuff(fd[0]) > 0);
	send_later(SIGUSR1, 1, 0, -1);
	need(write(fd[0], "z", 1) < 0 && errno == EINTR && seen == 2);
	sent();
	done(fd);
	return true;
}

static bool waits_interrupt(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd[2], ep = epoll_create1(0);
	struct pollfd p;
	fd_set set;

	need(pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	install(SIGUSR1, look, SA_RESTART);
	look_reset();
	send_later(SIGUSR1, 1, 0, -1);
	p = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	need(poll(&p, 1, -1) < 0 && errno == EINTR && seen == 1);
	sent();
	send_later(SIGUSR1, 1, 0, -1);
	FD_ZERO(&set);
	FD_SET(fd[0], &set);
	need(select(fd[0] + 1, &set, NULL, NULL, NULL) < 0 && errno == EINTR && seen == 2);
	sent();
	send_later(SIGUSR1, 1, 0, -1);
	need(epoll_wait(ep, &e, 1, -1) < 0 && errno == EINTR && seen == 3);
	sent();
	done(fd);
	return !close(ep);
}

static bool accept_restarts(void)
{
	int fd;

	install(SIGUSR1, look, SA_RESTART);
	look_reset();
	send_later(SIGUSR1, 1, 0, -1);
	sender.connect = 1;
	fd = accept(lfd, NULL, NULL);
	need(fd >= 0 && seen == 1);
	sent();
	close(fd);
	install(SIGUSR1, look, 0);
	send_later(SIGUSR1, 1, 0, -1);
	need(accept(lfd, NULL, NULL) < 0 && errno == EINTR && seen == 2);
	sent();
	return true;
}

/* A listener whose queue is full lets connect() wait */
static bool connect_interrupts(void)
{
	struct sockaddr_in addr = laddr;
	socklen_t len = sizeof(addr);
	int full = socket(AF_INET, SOCK_STREAM, 0), fd[8];

	addr.sin_port = 0;
	need(!bind(full, (struct sockaddr *)&addr, len) && !listen(full, 0) &&
	     !getsockname(full, (struct sockaddr *)&addr, &len));
	for (int i = 0; i < 8; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM, 0);
		need(i == 7 || nonblock(fd[i]));
		if (i < 7)
			connect(fd[i], (struct sockaddr *)&addr, len);
	}
	install(SIGUSR1, look, 0);
	look_reset();
	send_later(SIGUSR1, 1, 0, -1);
	need(connect(fd[7], (struct sockaddr *)&addr, len) < 0 && errno == EINTR && seen == 1);
	sent();
	for (int i = 0; i < 8; i++)
		close(fd[i]);
	return !close(full);
}

/* --- how a handler is called --- */

static bool info_and_masks(void)
{
	struct sigaction action = { .sa_sigaction = look, .sa_flags = SA_SIGINFO | SA_RESTART };
	int fd[2];
	char c;

	need(pair(fd));
	look_reset();
	sigaddset(&action.sa_mask, SIGUSR2);
	need(!sigaction(SIGUSR1, &action, NULL));
	install(SIGUSR2, look, SA_RESTART);
	send_later(SIGUSR1, 1, SIGUSR2, fd[1]);
	need(read(fd[0], &c, 1) == 1 && seen == 2);
	sent();
	need(deepest == 1 && !blocked(SIGUSR1) && !blocked(SIGUSR2));
	send_later(SIGUSR1, 1, 0, fd[1]);
	need(read(fd[0], &c, 1) == 1 && seen == 3);
	sent();
	need(last_info.si_signo == SIGUSR1 && last_info.si_code == SI_QUEUE);
	need(last_info.si_pid == getpid() && last_info.si_value.sival_int == 0);
	need(sigismember(&last_mask, SIGUSR1) && sigismember(&last_mask, SIGUSR2));
	install(SIGUSR1, look, SA_RESTART | SA_NODEFER);
	send_later(SIGUSR1, 1, 0, fd[1]);
	need(read(fd[0], &c, 1) == 1 && seen == 4);
	sent();
	need(!sigismember(&last_mask, SIGUSR1) && !sigismember(&last_mask, SIGUSR2));
	done(fd);
	return true;
}

static bool real_time_order(void)
{
	int fd[2];
	char c;

	need(pair(fd));
	install(SIGRTMIN + 3, look, SA_RESTART);
	look_reset();
	send_later(SIGRTMIN + 3, 60, 0, fd[1]);
	need(read(fd[0], &c, 1) == 1);
	sent();
	need(seen == 60 && deepest == 1);
	for (int i = 0; i < 60; i++)
		need(value[i] == i);
	done(fd);
	return true;
}

static bool once_only(void)
{
	struct sigaction action;
	int fd[2];
	char c;

	need(pair(fd));
	install(SIGUSR1, look, SA_RESTART | (int)SA_RESETHAND);
	look_reset();
	send_later(SIGUSR1, 1, 0, fd[1]);
	need(read(fd[0], &c, 1) == 1 && seen == 1);
	sent();
	need(!sigaction(SIGUSR1, NULL, &action) && action.sa_handler == SIG_DFL);
	done(fd);
	return true;
}

static char alternate[65536];
static sigjmp_buf jump;

static bool on_alternate(void)
{
	return last_stack >= (uintptr_t)alternate &&
	       last_stack < (uintptr_t)alternate + sizeof(alternate);
}

static void look_and_jump(int sig, siginfo_t *info, void *context)
{
	look(sig, info, context);
	siglongjmp(jump, 1);
}

static bool alternate_stack(void)
{
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) }, now;
	int fd[2];
	char c;

	need(pair(fd) && !sigaltstack(&stack, NULL));
	install(SIGUSR1, look, SA_RESTART | SA_ONSTACK);
	install(SIGUSR2, look, SA_RESTART);
	look_reset();
	for (int i = 0; i < 2; i++) {
		send_later(SIGUSR1, 1, 0, fd[1]);
		need(read(fd[0], &c, 1) == 1 && seen == 1 + 2 * i && on_alternate());
		sent();
		send_later(SIGUSR2, 1, 0, fd[1]);
		need(read(fd[0], &c, 1) == 1 && seen == 2 + 2 * i && !on_alternate());
		sent();
	}
	install(SIGUSR1, look_and_jump, SA_RESTART | SA_ONSTACK);
	send_later(SIGUSR1, 1, 0, fd[1]);
	if (!sigsetjmp(jump, 1))
		need(read(fd[0], &c, 1) == -2);
	need(seen == 5 && on_alternate() && !blocked(SIGUSR1));
	sent();
	need(read(fd[0], &c, 1) == 1 && c == 'x');
	stack.ss_flags = SS_DISABLE;
	need(!sigaltstack(&stack, &now) && !(now.ss_flags & SS_ONSTACK));
	done(fd);
	return true;
}

static void block_usr2(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	sigaddset(&uc->uc_sigmask, SIGUSR2);
	seen++;
}

static bool context_mask(void)
{
	sigset_t set;
	int fd[2];
	char c;

	need(pair(fd));
	install(SIGUSR1, block_usr2, SA_RESTART);
	look_reset();
	send_later(SIGUSR1, 1, 0, fd[1]);
	need(read(fd[0], &c, 1) == 1 && seen == 1);
	sent();
	need(blocked(SIGUSR2) && !blocked(SIGUSR1));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	done(fd);
	return true;
}

/* --- asking --- */

static void plain(int sig)
{
	seen++;
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static bool what_was_installed(void)
{
	struct sigaction action = { .sa_sigaction = look, .sa_flags = SA_SIGINFO | SA_NODEFER },
			 old;

	need(!sigaction(SIGUSR1, &action, NULL) && !sigaction(SIGUSR1, NULL, &old));
	need(old.sa_sigaction == look && old.sa_flags & SA_SIGINFO && old.sa_flags & SA_NODEFER);
	need(signal(SIGUSR1, plain) == old.sa_handler);
	need(!sigaction(SIGUSR1, NULL, &old) && old.sa_handler == plain);
	need(!(old.sa_flags & SA_SIGINFO) && old.sa_flags & SA_RESTART);
	need(!siginterrupt(SIGUSR1, 1) && !sigaction(SIGUSR1, NULL, &old));
	need(old.sa_handler == plain && !(old.sa_flags & SA_RESTART));
	need(signal(SIGUSR1, SIG_IGN) == plain && signal(SIGUSR1, plain) == SIG_IGN);
	need(!sigaction(SIGUSR1, NULL, &old) && !(old.sa_flags & SA_RESTART));
	need(!siginterrupt(SIGUSR1, 0));
	need(sysv_signal(SIGUSR1, SIG_DFL) == plain && sysv_signal(SIGUSR1, plain) == SIG_DFL);
	need(!sigaction(SIGUSR1, NULL, &old) && old.sa_flags & (int)SA_RESETHAND);
	need(sigset(SIGUSR1, SIG_HOLD) == plain && blocked(SIGUSR1));
	need(sigset(SIGUSR1, plain) == SIG_HOLD && !blocked(SIGUSR1));
	need(sigset(SIGUSR1, SIG_DFL) == plain);
	need(signal(SIGKILL, plain) == SIG_ERR && errno == EINVAL);
	need(signal(1000, plain) == SIG_ERR && errno == EINVAL);
	need(sigaction(0, NULL, &old) < 0 && errno == EINVAL);
	return true;
}

/* --- masks of a wait --- */

static bool masks_of_waits(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	struct timespec some = { .tv_nsec = 30000000 };
	int fd[2], ep = epoll_create1(0);
	sigset_t usr1, none;
	struct pollfd p;
	fd_set set;

	need(pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	sigemptyset(&none);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	install(SIGUSR1, look, SA_RESTART);
	look_reset();
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	p = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	for (int i = 0; i < 3; i++) {
		raise(SIGUSR1);
		need(ppoll(&p, 1, &some, &usr1) == 0 && seen == 3 * i);
		need(ppoll(&p, 1, NULL, &none) < 0 && errno == EINTR && seen == 3 * i + 1);
		need(blocked(SIGUSR1) && ppoll(&p, 1, &some, &none) == 0);
		raise(SIGUSR1);
		FD_ZERO(&set);
		FD_SET(fd[0], &set);
		need(pselect(fd[0] + 1, &set, NULL, NULL, NULL, &none) < 0 && errno == EINTR);
		need(seen == 3 * i + 2 && blocked(SIGUSR1));
		raise(SIGUSR1);
		need(epoll_pwait(ep, &e, 1, 20, &usr1) == 0 && seen == 3 * i + 2);
		need(epoll_pwait(ep, &e, 1, -1, &none) < 0 && errno == EINTR);
		need(seen == 3 * i + 3 && blocked(SIGUSR1));
	}
	sigprocmask(SIG_UNBLOCK, &usr1, NULL);
	need(seen == 9);
	done(fd);
	return !close(ep);
}

static bool signals_as_octets(void)
{
	struct pollfd p[2];
	sigset_t usr1;
	int fd[2], sfd, sig;

	need(pair(fd));
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	sfd = signalfd(-1, &usr1, SFD_CLOEXEC);
	send_later(SIGUSR1, 1, 0, -1);
	p[0] = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	p[1] = (struct pollfd){ .fd = sfd, .events = POLLIN };
	need(poll(p, 2, 10000) == 1 && p[1].revents == POLLIN);
	sent();
	need(!sigwait(&usr1, &sig) && sig == SIGUSR1);
	sigprocmask(SIG_UNBLOCK, &usr1, NULL);
	close(sfd);
	done(fd);
	return true;
}

/* --- handlers that do something --- */

#define STORM_SECONDS 4

static int talk_fd;

static void jump_away(int sig, siginfo_t *info, void *context)
{
	seen++;
	siglongjmp(jump, 1);
}

static void alarm_in(int us)
{
	struct itimerval it = { .it_value.tv_usec = us };

	setitimer(ITIMER_REAL, &it, NULL);
}

/* Out of each kind of wait, again and again; then all goes on as if nothing had been */
static bool jumps(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	static char text[65536];
	volatile int files = 0;
	int fd[2], full[2], ep = epoll_create1(0);
	struct pollfd p;
	char c;

	need(pair(full) && stuff(full[0]) > 0 && pair(fd) &&
	     !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	install(SIGALRM, jump_away, 0);
	look_reset();
	p = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	for (volatile int i = 0; i < 300; i++) {
		if (i == 30)
			files = open_files();
		if (!sigsetjmp(jump, 1)) {
			alarm_in(300);
			if (i % 5 == 0)
				need(recv(fd[0], &c, 1, 0) == -2);
			if (i % 5 == 1)
				need(poll(&p, 1, -1) == -2);
			while (i % 5 == 2)
				need(write(full[0], text, sizeof(text)) > 0);
			if (i % 5 == 3)
				need(accept(lfd, NULL, NULL) == -2);
			need(epoll_wait(ep, &e, 1, -1) == -2);
		}
		need(seen == i + 1);
	}
	need(open_files() == files);
	need(write(fd[1], "j", 1) == 1 && epoll_wait(ep, &e, 1, 1000) == 1);
	need(read(fd[0], &c, 1) == 1 && c == 'j');
	need(write(fd[0], "k", 1) == 1 && read(fd[1], &c, 1) == 1 && c == 'k');
	close(fd[0]);
	need(read(fd[1], &c, 1) == 0);
	close(fd[1]);
	done(full);
	return !close(ep);
}

static volatile pid_t child;

static void fork_and_talk(int sig, siginfo_t *info, void *context)
{
	child = fork();
	if (!child)
		_exit(write(talk_fd, "c", 1) == 1 ? 0 : 1);
	seen++;
}

static bool fork_in_handler(void)
{
	int fd[2], status;
	char c;

	need(pair(fd));
	talk_fd = fd[1];
	install(SIGUSR1, fork_and_talk, SA_RESTART);
	look_reset();
	send_later(SIGUSR1, 1, 0, -1);
	need(read(fd[0], &c, 1) == 1 && c == 'c' && seen == 1);
	sent();
	need(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
	need(write(fd[1], "d", 1) == 1 && read(fd[0], &c, 1) == 1 && c == 'd');
	done(fd);
	return true;
}

/*
 * A handler that brings what the call waits for. It comes at any moment of the call, also just
 * before it sleeps; a call that slept on would do so for good.
 */
static void bring(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	if (write(talk_fd, "b", 1) == 1)
		seen++;
	errno = saved;
}

static bool moments(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd[2], ep = epoll_create1(0);
	double end = now() + STORM_SECONDS;
	unsigned int seed = 1;
	struct pollfd p;
	char c;

	need(pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	talk_fd = fd[1];
	install(SIGALRM, bring, SA_RESTART);
	look_reset();
	p = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	for (int i = 0; i < 30000 && now() < end; i++) {
		alarm_in(1 + rand_r(&seed) % 60);
		while (i % 3 == 1 && poll(&p, 1, -1) != 1)
			need(errno == EINTR);
		while (i % 3 == 2 && epoll_wait(ep, &e, 1, -1) != 1)
			need(errno == EINTR);
		need(read(fd[0], &c, 1) == 1 && c == 'b' && seen == i + 1);
	}
	done(fd);
	return !close(ep);
}

/* --- the storm --- */

#define STORM_OCTETS 2000000L
#define STORM_AHEAD 4096

/* The main flow's octets count up from 0 to 127, the handler's from 128 to 255 */
static volatile long told, heard;
static long got; /* of the main flow */

static void tell(int sig, siginfo_t *info, void *context)
{
	unsigned char c = (unsigned char)(0x80 | (told & 0x7f));
	int saved = errno;

	if (told - heard < STORM_AHEAD && write(talk_fd, &c, 1) == 1)
		told++;
	errno = saved;
}

static void *echo(void *arg)
{
	int fd = *(int *)arg;
	char buf[4096];
	ssize_t n, sent;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n; at += sent)
			if ((sent = write(fd, buf + at, (size_t)(n - at))) <= 0)
				return arg;
	return n || shutdown(fd, SHUT_WR) ? arg : NULL;
}

static bool storm_check(const unsigned char *p, ssize_t n)
{
	for (ssize_t i = 0; i < n; i++) {
		if (p[i] & 0x80)
			need((p[i] & 0x7f) == (heard++ & 0x7f));
		else
			need(p[i] == (got++ & 0x7f));
	}
	return true;
}

static bool storm_talk(int fd)
{
	unsigned char out[700], in[2000];
	double end = now() + STORM_SECONDS;
	long put = 0;

	while (got < STORM_OCTETS && now() < end) {
		size_t len = (size_t)(1 + put % 699);
		ssize_t n = 0;

		for (size_t i = 0; i < len; i++)
			out[i] = (unsigned char)((put + (long)i) & 0x7f);
		if (put < STORM_OCTETS && put - got < STORM_AHEAD) {
			n = write(fd, out, len);
			need(n > 0);
			put += n;
		}
		if (put > got) {
			n = read(fd, in, sizeof(in));
			need(n > 0 && storm_check(in, n));
		}
	}
	return true;
}

/* The same by epoll_wait(), with the socket non-blocking */
static bool storm_epoll(int fd)
{
	struct epoll_event e = { .events = EPOLLIN };
	int ep = epoll_create1(0);
	double end = now() + STORM_SECONDS;
	long put = 0;
	unsigned char out, in[2000];

	need(nonblock(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
	while (got < STORM_OCTETS / 20 && now() < end) {
		ssize_t n;

		out = put & 0x7f;
		if (put - got < STORM_AHEAD && write(fd, &out, 1) == 1)
			put++;
		need(epoll_wait(ep, &e, 1, 1000) >= 0 || errno == EINTR);
		while ((n = read(fd, in, sizeof(in))) > 0)
			need(storm_check(in, n));
		need(n < 0 && errno == EAGAIN);
	}
	need(!fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK));
	return !close(ep);
}

static bool storm_by(bool (*talk)(int fd))
{
	struct itimerval it = { { 0, 50 }, { 0, 50 } }, off = { 0 };
	sigset_t alarm, before;
	unsigned char in[2000];
	pthread_t thread;
	void *bad;
	int fd[2];

	need(pair(fd));
	told = heard = got = 0;
	talk_fd = fd[0];
	install(SIGALRM, tell, SA_RESTART);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, &before);
	need(!pthread_create(&thread, NULL, echo, &fd[1]));
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
	need(talk(fd[0]));
	setitimer(ITIMER_REAL, &off, NULL);
	need(!shutdown(fd[0], SHUT_WR));
	for (ssize_t n; (n = read(fd[0], in, sizeof(in)));)
		need(n > 0 && storm_check(in, n));
	need(!pthread_join(thread, &bad) && !bad);
	printf("# %ld of the handler's\n", told);
	need(told > 10 && told == heard);
	done(fd);
	return true;
}

static bool storm(void)
{
	return storm_by(storm_talk);
}

static bool storm_waiting(void)
{
	return storm_by(storm_epoll);
}

int main(void)
{
	static const struct call_case cases[] = {
		{ "read restarts, or not, as the handler has it", restart },
		{ "write is interrupted", restart_write },
		{ "a call with a time-out is not restarted", timeout_interrupts },
		{ "poll, select and epoll_wait are not restarted", waits_interrupt },
		{ "accept restarts, or not", accept_restarts },
		{ "connect is interrupted", connect_interrupts },
		{ "siginfo, sa_mask, SA_NODEFER", info_and_masks },
		{ "real-time signals keep their order", real_time_order },
		{ "SA_RESETHAND", once_only },
		{ "SA_ONSTACK, and a jump from there", alternate_stack },
		{ "the context's mask counts", context_mask },
		{ "what is installed can be asked", what_was_installed },
		{ "masks of ppoll, pselect, epoll_pwait", masks_of_waits },
		{ "signalfd and sigwait", signals_as_octets },
		{ "jumps out of handlers", jumps },
		{ "fork in a handler", fork_in_handler },
		{ "signals at each moment of a call", moments },
		{ "a signal each 50 us whose handler writes", storm },
		{ "the same while main waits in epoll_wait", storm_waiting },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
