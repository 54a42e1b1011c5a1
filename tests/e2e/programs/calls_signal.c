/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Linux promises of signals that come while a call on a stream socket is under way. To be run
 * by itself and under the launcher, as calls.c.
 */
#include "tests/e2e/programs/calls_signal.h"

#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <ucontext.h>

/* --- what a handler saw --- */

static volatile sig_atomic_t value[64], inside, deepest;
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

/* A mask that was the program's during a poll is not what it is later */
static bool mask_of_before(void)
{
	struct timespec some = { .tv_nsec = 10000000 };
	struct pollfd p = { .events = POLLIN };
	sigset_t none, usr1;
	int fd[2];
	char c;

	need(pair(fd));
	install(SIGUSR1, look, 0);
	look_reset();
	sigemptyset(&none);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	p.fd = fd[0];
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	need(ppoll(&p, 1, &some, &none) == 0);
	sigprocmask(SIG_UNBLOCK, &usr1, NULL);
	send_later(SIGUSR1, 1, 0, -1);
	need(read(fd[0], &c, 1) < 0 && errno == EINTR && seen == 1);
	sent();
	need(!blocked(SIGUSR1));
	done(fd);
	return true;
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
		{ "a mask of before", mask_of_before },
		{ "signalfd and sigwait", signals_as_octets },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
