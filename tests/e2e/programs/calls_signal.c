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
	/* One place is taken, by one of them */
	for (int i = 1; i < 8; i++)
		close(fd[i]);
	fd[7] = socket(AF_INET, SOCK_STREAM, 0);
	install(SIGUSR1, look, SA_RESTART);
	send_later(SIGUSR1, 1, 0, -1);
	sender.accept = full;
	need(!connect(fd[7], (struct sockaddr *)&addr, len) && seen == 2);
	sent();
	close(fd[0]);
	close(fd[7]);
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

/* --- four waits with a mask, by their number --- */

enum { PPOLL, PSELECT, PWAIT, PWAIT2, WAITS };

static int wait_fd, wait_set;

static int wait_by(int how, int ms, const sigset_t *mask)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L }, *limit = ms < 0 ? NULL : &ts;
	struct pollfd p = { .fd = wait_fd, .events = POLLIN };
	struct epoll_event e;
	fd_set set;

	FD_ZERO(&set);
	FD_SET(wait_fd, &set);
	switch (how) {
	case PPOLL:
		return ppoll(&p, 1, limit, mask);
	case PSELECT:
		return pselect(wait_fd + 1, &set, NULL, NULL, limit, mask);
	case PWAIT:
		return epoll_pwait(wait_set, &e, 1, ms, mask);
	default:
		return epoll_pwait2(wait_set, &e, 1, limit, mask);
	}
}

static bool wait_pair(int fd[2])
{
	struct epoll_event e = { .events = EPOLLIN };

	need(pair(fd));
	wait_fd = fd[0];
	wait_set = epoll_create1(EPOLL_CLOEXEC);
	return !epoll_ctl(wait_set, EPOLL_CTL_ADD, wait_fd, &e);
}

static sigset_t set_of(int first, int second, int third)
{
	int sig[] = { first, second, third };
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < 3; i++)
		if (sig[i])
			sigaddset(&set, sig[i]);
	return set;
}

/* The wait goes on to its time-out; the handler runs behind it, with the thread's mask */
static bool blocked_in_a_wait(void)
{
	sigset_t usr1 = set_of(SIGUSR1, 0, 0), full;
	int fd[2];

	need(wait_pair(fd));
	sigfillset(&full);
	for (int i = 0; i < 2 * WAITS; i++) {
		install(SIGUSR1, look, i & 1 ? SA_RESTART : 0);
		look_reset();
		send_later(SIGUSR1, 1, 0, -1);
		need(wait_by(i / 2, 400, i & 1 ? &full : &usr1) == 0 && seen == 1);
		need(!sigismember(&last_mask, SIGUSR2) && !blocked(SIGUSR1));
		sent();
	}
	close(wait_set);
	done(fd);
	return true;
}

/* What is ready goes before a signal that the mask lets through, and that stays pending */
static bool ready_and_pending(void)
{
	sigset_t usr1 = set_of(SIGUSR1, 0, 0), none = set_of(0, 0, 0);
	int fd[2];
	char c;

	need(wait_pair(fd));
	install(SIGUSR1, look, 0);
	for (int i = 0; i < WAITS; i++) {
		look_reset();
		sigprocmask(SIG_BLOCK, &usr1, NULL);
		raise(SIGUSR1);
		need(write(fd[1], "x", 1) == 1 && wait_by(PPOLL, -1, NULL) == 1);
		need(wait_by(i, -1, &none) == 1 && seen == 0);
		need(read(fd[0], &c, 1) == 1);
		if (i == PPOLL || i == PSELECT)
			need(wait_by(i, 0, &none) < 0 && errno == EINTR && seen == 1);
		else
			need(wait_by(i, 0, &none) == 0 && seen == 0);
		sigprocmask(SIG_UNBLOCK, &usr1, NULL);
		need(seen == 1);
	}
	close(wait_set);
	done(fd);
	return true;
}

static int order[8];
static sigset_t order_mask[8];

static void look_number(int sig, siginfo_t *info, void *context)
{
	sigprocmask(SIG_BLOCK, NULL, &order_mask[seen % 8]);
	order[seen++ % 8] = sig;
}

/* The kernel stacks their frames, so the last number runs first, whoever blocks them until when */
static bool several_at_once(void)
{
	const int sig[] = { SIGUSR1, SIGUSR2, SIGRTMIN + 2 };
	sigset_t all = set_of(SIGUSR1, SIGUSR2, SIGRTMIN + 2), none = set_of(0, 0, 0);
	int fd[2];

	need(wait_pair(fd));
	for (int i = 0; i < 3; i++)
		install(sig[i], look_number, 0);
	for (int i = 0; i < 2 * WAITS; i++) {
		look_reset();
		sigprocmask(i & 1 ? SIG_BLOCK : SIG_UNBLOCK, &all, NULL);
		if (i & 1) {
			for (int k = 0; k < 3; k++)
				raise(sig[k]);
			need(wait_by(i / 2, -1, &none) < 0 && errno == EINTR);
		} else {
			send_later(SIGUSR1, 1, SIGUSR2, -1);
			need(wait_by(i / 2, 300, &all) == 0);
			sent();
		}
		need(seen == (i & 1 ? 3 : 2));
		need(order[seen - 1] == SIGUSR1 && order[seen - 2] == SIGUSR2);
		need(sigismember(&order_mask[seen - 2], SIGUSR1) &&
		     !sigismember(&order_mask[seen - 1], SIGUSR2));
		sigprocmask(SIG_UNBLOCK, &all, NULL);
	}
	close(wait_set);
	done(fd);
	return true;
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
		{ "a signal that a wait's mask blocks", blocked_in_a_wait },
		{ "what is ready, and a signal that is pending", ready_and_pending },
		{ "several signals at once", several_at_once },
		{ "signalfd and sigwait", signals_as_octets },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
