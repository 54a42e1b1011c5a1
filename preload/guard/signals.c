/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The program's signal handlers.
 *
 * The kernel has our handler in place of each of the program's, with the program's mask and flags.
 * Outside of our calls it goes straight on to the program's. Inside, it notes the signal with its
 * siginfo, ends a sleep (preload/guard/intr_sleep.c), and blocks the signal until the call ends: so
 * one note for each number is enough, and more of a real-time signal wait in the kernel's queue, in
 * order and within its limits. At its end the handler runs as the kernel would have run it: with
 * the mask of then, on the alternate stack if it asked for that, with a context whose mask counts
 * when it returns.
 *
 * A fault of the thread's own is never put off: its context is the point of it. SIG_DFL and
 * SIG_IGN are the kernel's alone. Whatever else libc changes by itself (system(), SA_RESETHAND)
 * is in the kernel and asked for there; here is only which function stands behind ours.
 */
#include "preload/guard/signals.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/bits.h"
#include "preload/guard/call.h"
#include "preload/guard/sandbox.h"

static struct {
	void (*fn)(int sig, siginfo_t *info, void *context); /* atomic */
	bool info;					     /* the program set SA_SIGINFO */
	int flags;					     /* as it was installed */
	uint64_t mask;					     /* sa_mask */
} handlers[CALL_SIGNALS + 1];

static bool changing;	      /* atomic, a lock: one change at a time, with signals blocked */
static uint64_t interrupting; /* atomic: siginterrupt() was called for these */

static uint64_t bit_of(int sig)
{
	return 1ull << (sig - 1);
}

/* The standard ones, of which no two wait at once */
static const uint64_t standard = (1ull << 31) - 1;

void signals_block(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

void signals_restore(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

static void mask_swap(int how, uint64_t mask, uint64_t *before)
{
	syscall(SYS_rt_sigprocmask, how, &mask, before, sizeof(mask));
}

/* --- a signal comes --- */

static bool is_fault(int sig, const siginfo_t *info)
{
	switch (sig) {
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGTRAP:
	case SIGSYS:
		return info->si_code > 0;
	case SIGABRT: /* abort() of this process; one from outside is a signal as others */
		return info->si_code == SI_TKILL && info->si_pid == getpid();
	default:
		return false;
	}
}

/*
 * With SA_NODEFER the kernel may have made two frames of one number at once. The one below goes
 * back to the kernel, which has it blocked.
 */
static void note_keep(struct call *e, int sig, const siginfo_t *info, uint64_t mask)
{
	struct call_note *n = &e->note[sig - 1];

	if (e->noted & bit_of(sig)) {
		syscall(SYS_rt_tgsigqueueinfo, getpid(), e->tid, sig, info);
		return;
	}
	n->info = *info;
	n->handler = __atomic_load_n(&handlers[sig].fn, __ATOMIC_ACQUIRE);
	/* Without what other notes block only until the call ends */
	n->mask = (mask & ~e->blocked & ~e->swapped) | handlers[sig].mask;
	if (!(handlers[sig].flags & SA_NODEFER))
		n->mask |= bit_of(sig);
	n->order = e->notes++;
	e->noted |= bit_of(sig);
}

/*
 * That all are blocked here is for the notes of others that come in between: they would be
 * unblocked again by our return
 */
static void note(struct call *e, int sig, const siginfo_t *info, ucontext_t *context)
{
	int saved = errno;
	uint64_t after, mask;

	mask_swap(SIG_BLOCK, ~0ull, &mask);
	memcpy(&after, &context->uc_sigmask, sizeof(after));
	if (!(after & bit_of(sig)))
		e->blocked |= bit_of(sig);
	after |= e->blocked;
	memcpy(&context->uc_sigmask, &after, sizeof(after));
	note_keep(e, sig, info, mask);
	/* Pairs with intr_sleep_begin() in preload/guard/intr_sleep.c */
	__atomic_store_n(&e->sleep_left.tv_sec, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&e->sleep_left.tv_nsec, 0, __ATOMIC_RELAXED);
	base_recv_sleep_end(&e->sleep);
	errno = saved;
}

static void pass_on(int sig, siginfo_t *info, void *context)
{
	__atomic_load_n(&handlers[sig].fn, __ATOMIC_ACQUIRE)(sig, info, context);
}

/*
 * A fault inside, of a buffer that is none. The handler may jump away, and then nobody leaves: so
 * it runs as outside, and what is inside goes on if it returns.
 */
static void fault(struct call *e, int sig, siginfo_t *info, void *context)
{
	unsigned int depth = e->depth;
	uint64_t muted = e->muted, swapped = e->swapped;
	bool held = e->cancel_off;

	if (held)
		call_cancel_release(e);
	e->depth = 0;
	e->muted = e->swapped = 0;
	call_order();
	pass_on(sig, info, context);
	call_order();
	e->depth = depth;
	e->muted = muted;
	e->swapped = swapped;
	if (held)
		call_cancel_hold(e);
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	struct call *e = call_self;

	if (!e || !e->depth)
		pass_on(sig, info, context);
	else if (is_fault(sig, info))
		fault(e, sig, info, context);
	else
		note(e, sig, info, context);
}

/* --- at the end of the call --- */

struct run {
	struct call_note note;
	int sig;
	uint64_t mask;	/* while it runs */
	uint64_t after; /* when it returns */
	ucontext_t context;
};

static void run_here(struct run *r)
{
	uint64_t after;

	getcontext(&r->context);
	memcpy(&r->context.uc_sigmask, &r->after, sizeof(r->after));
	mask_swap(SIG_SETMASK, r->mask, NULL);
	r->note.handler(r->sig, &r->note.info, &r->context);
	memcpy(&after, &r->context.uc_sigmask, sizeof(after));
	mask_swap(SIG_SETMASK, after, NULL);
}

/* makecontext() gives its function integers */
static void on_stack(unsigned int high, unsigned int low)
{
	struct run *r = (struct run *)((uintptr_t)high << 32 | low);

	memcpy(&r->context.uc_sigmask, &r->after, sizeof(r->after));
	mask_swap(SIG_SETMASK, r->mask, NULL);
	r->note.handler(r->sig, &r->note.info, &r->context);
}

static void run_on(struct run *r, const stack_t *stack)
{
	ucontext_t there;

	getcontext(&there);
	there.uc_stack = *stack;
	there.uc_link = &r->context;
	sigfillset(&there.uc_sigmask);
	makecontext(&there, (void (*)(void))on_stack, 2, (unsigned int)((uintptr_t)r >> 32),
		    (unsigned int)(uintptr_t)r);
	swapcontext(&r->context, &there);
}

static bool stack_is_free(stack_t *stack)
{
	return !syscall(SYS_sigaltstack, NULL, stack) &&
	       !(stack->ss_flags & (SS_DISABLE | SS_ONSTACK));
}

/*
 * The others of the standard ones that wait go back to the kernel, blocked as they are: so they
 * are not lost in a handler that jumps away. Which.
 */
static uint64_t others_return(struct call *e, int sig)
{
	uint64_t left = e->noted & e->blocked & standard & ~bit_of(sig), gone = 0;

	while (left) {
		int other = __builtin_ctzll(left) + 1;

		left &= left - 1;
		if (!syscall(SYS_rt_tgsigqueueinfo, getpid(), e->tid, other,
			     &e->note[other - 1].info))
			gone |= bit_of(other);
	}
	return gone;
}

/* Does it let calls be restarted? */
static bool note_run(struct call *e, int sig)
{
	struct run r = { .note = e->note[sig - 1], .sig = sig };
	uint64_t over = others_return(e, sig) | bit_of(sig), muted = e->muted, before;
	struct sigaction action = { .sa_flags = handlers[sig].flags };
	stack_t stack;

	if (sandbox_may(SYS_rt_sigaction))
		libc.sigaction(sig, NULL, &action);
	mask_swap(SIG_BLOCK, over, &before);
	r.after = before & ~(over & e->blocked);
	e->noted &= ~over;
	e->blocked &= ~over;
	r.mask = r.note.mask | (over & ~bit_of(sig)) | e->noted;
	/* Those that are left are blocked while it runs: they do not end its own waits */
	e->muted |= e->noted;
	if (action.sa_flags & SA_ONSTACK && stack_is_free(&stack))
		run_on(&r, &stack);
	else
		run_here(&r);
	e->muted = muted;
	return action.sa_flags & SA_RESTART;
}

/*
 * The one that was taken first. Of signals that come at once the kernel calls the last handler
 * first, and so ours are noted in the order in which it would have run the program's
 */
static int note_first(const struct call *e)
{
	uint64_t left = e->noted & ~e->muted;
	int first = __builtin_ctzll(left) + 1;

	while (left &= left - 1) {
		int sig = __builtin_ctzll(left) + 1;

		if (e->note[sig - 1].order < e->note[first - 1].order)
			first = sig;
	}
	return first;
}

void signals_unmute(struct call *e)
{
	uint64_t mask = 0;

	if (!syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof(mask)))
		e->muted &= mask;
}

bool signals_deliver(struct call *e)
{
	int saved = errno;
	bool restart = true;

	if (e->noted & e->muted)
		signals_unmute(e);
	e->blocked &= ~e->kept;
	e->kept = 0;
	while (e->noted & ~e->muted)
		restart &= note_run(e, note_first(e));
	errno = saved;
	return restart;
}

void signals_after_fork(struct call *e)
{
	__atomic_store_n(&changing, false, __ATOMIC_RELEASE);
	if (!e)
		return;
	mask_swap(SIG_UNBLOCK, e->blocked & ~e->kept, NULL);
	e->noted = e->blocked = e->kept = e->muted = e->swapped = 0;
}

/* --- installing --- */

static bool is_function(const struct sigaction *action)
{
	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/* With signals blocked, under the lock. @ours: what the kernel gets; @before: what it had */
static int action_swap(int sig, const struct sigaction *action, struct sigaction *before)
{
	void (*fn)(int, siginfo_t *, void *) = handlers[sig].fn;
	bool info = handlers[sig].info;
	struct sigaction ours;
	int err;

	if (action)
		ours = *action;
	if (action && is_function(action)) {
		__atomic_store_n(&handlers[sig].fn, action->sa_sigaction, __ATOMIC_RELEASE);
		handlers[sig].info = action->sa_flags & SA_SIGINFO;
		handlers[sig].flags = action->sa_flags;
		memcpy(&handlers[sig].mask, &action->sa_mask, sizeof(handlers[sig].mask));
		ours.sa_sigaction = on_signal;
		ours.sa_flags |= SA_SIGINFO;
	}
	err = (int)libc_try(libc.sigaction(sig, action ? &ours : NULL, before));
	if (err || before->sa_sigaction != on_signal)
		return err;
	before->sa_sigaction = fn;
	before->sa_flags = info ? before->sa_flags : before->sa_flags & ~SA_SIGINFO;
	return 0;
}

static int action_change(int sig, const struct sigaction *action, struct sigaction *before)
{
	sigset_t mask;
	int err;

	if (sig < 1 || sig > CALL_SIGNALS)
		return -EINVAL;
	signals_block(&mask);
	while (__atomic_exchange_n(&changing, true, __ATOMIC_ACQUIRE))
		sched_yield();
	err = action_swap(sig, action, before);
	__atomic_store_n(&changing, false, __ATOMIC_RELEASE);
	signals_restore(&mask);
	return err;
}

long call_sigaction(int sig, const struct sigaction *action, struct sigaction *old)
{
	struct sigaction before;
	int err = action_change(sig, action, &before);

	if (!err && old)
		*old = before;
	return err;
}

long call___sigaction(int sig, const struct sigaction *action, struct sigaction *old)
{
	return call_sigaction(sig, action, old);
}

/* As signal() and its kin do: the handler of before */
static long handler_change(int sig, sighandler_t handler, int flags, bool itself)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags }, before;
	int err;

	if (handler == SIG_ERR || sig < 1 || sig > CALL_SIGNALS)
		return -EINVAL;
	if (itself)
		sigaddset(&action.sa_mask, sig);
	err = action_change(sig, &action, &before);
	return err ? err : (long)before.sa_handler;
}

long call_signal(int sig, sighandler_t handler)
{
	uint64_t set = __atomic_load_n(&interrupting, __ATOMIC_RELAXED);
	bool interrupts = sig >= 1 && sig <= CALL_SIGNALS && set & bit_of(sig);

	return handler_change(sig, handler, interrupts ? 0 : SA_RESTART, true);
}

long call_bsd_signal(int sig, sighandler_t handler)
{
	return call_signal(sig, handler);
}

long call_ssignal(int sig, sighandler_t handler)
{
	return call_signal(sig, handler);
}

long call_sysv_signal(int sig, sighandler_t handler)
{
	return handler_change(sig, handler, (int)SA_RESETHAND | SA_NODEFER, false);
}

long call___sysv_signal(int sig, sighandler_t handler)
{
	return call_sysv_signal(sig, handler);
}

long call_siginterrupt(int sig, int interrupts)
{
	struct sigaction action;
	int err = action_change(sig, NULL, &action);

	if (err)
		return err;
	if (interrupts) {
		__atomic_or_fetch(&interrupting, bit_of(sig), __ATOMIC_RELAXED);
		action.sa_flags &= ~SA_RESTART;
	} else {
		__atomic_and_fetch(&interrupting, ~bit_of(sig), __ATOMIC_RELAXED);
		action.sa_flags |= SA_RESTART;
	}
	return action_change(sig, &action, &action);
}

long call_sigset(int sig, sighandler_t handler)
{
	bool hold = handler == SIG_HOLD;
	struct sigaction action = { .sa_handler = handler }, before;
	sigset_t set, mask;
	int err;

	if (handler == SIG_ERR)
		return -EINVAL;
	err = action_change(sig, hold ? NULL : &action, &before);
	if (err)
		return err;
	sigemptyset(&set);
	sigaddset(&set, sig);
	pthread_sigmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, &mask);
	return (long)(sigismember(&mask, sig) ? SIG_HOLD : before.sa_handler);
}

void signals_init(void)
{
	struct sigaction action, before;

	for (int sig = 1; sig <= CALL_SIGNALS; sig++)
		if (!libc.sigaction(sig, NULL, &action) && is_function(&action) &&
		    action.sa_sigaction != on_signal)
			action_change(sig, &action, &before);
}
