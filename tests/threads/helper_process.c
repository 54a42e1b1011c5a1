/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a process does beside its program, with the interposer inside, so that a sanitizer sees it:
 * helper processes, what lingers in one, and numbers that are hidden while a shell is started.
 * There is no folder for states here, so that they have to be.
 */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "preload/process/helper_process.h"
#include "tests/e2e/programs/calls.h"

#define SHELLS 40
#define NUMBERS 1024

/* What a helper process says of itself */
struct self {
	pid_t pid, session;
	int descriptors;
	bool handles, blocks, at_root, named;
};

struct meeting {
	int said, go;
};

/* The two that it is for */
static int meeting_next(void *ctx, int from)
{
	const struct meeting *m = ctx;
	int low = m->said < m->go ? m->said : m->go, high = m->said < m->go ? m->go : m->said;

	return from <= low ? low : from <= high ? high : -1;
}

static bool handles_any(void)
{
	struct sigaction action;

	for (int sig = 1; sig < SIGRTMAX; sig++)
		if (!sigaction(sig, NULL, &action) && action.sa_handler != SIG_DFL)
			return true;
	return false;
}

static bool blocks_any(void)
{
	sigset_t mask;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	for (int sig = 1; sig < SIGRTMAX; sig++)
		if (sigismember(&mask, sig) == 1)
			return true;
	return false;
}

static bool is_named(const char *wanted)
{
	char name[32] = "";
	int fd = open("/proc/self/comm", O_RDONLY);

	if (fd < 0 || read(fd, name, sizeof(name) - 1) < 0)
		return false;
	close(fd);
	return !strncmp(name, wanted, strlen(wanted));
}

/* Raw system calls, for nothing of its maker's threads is here */
static void apart(void *ctx)
{
	struct meeting *m = ctx;
	struct self self = { .pid = (pid_t)syscall(SYS_getpid) };
	char cwd[8] = "";

	helper_process_init("apart");
	helper_process_close_others(meeting_next, m);
	for (int fd = 0; fd < NUMBERS; fd++)
		self.descriptors += syscall(SYS_fcntl, fd, F_GETFD) >= 0;
	self.session = (pid_t)syscall(SYS_getsid, 0);
	self.handles = handles_any();
	self.blocks = blocks_any();
	self.at_root = syscall(SYS_getcwd, cwd, sizeof(cwd)) == 2;
	self.named = is_named("apart");
	syscall(SYS_write, m->said, &self, sizeof(self));
	syscall(SYS_read, m->go, cwd, 1);
	syscall(SYS_exit_group, 0);
}

static bool is_masked(int wanted)
{
	sigset_t mask;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	return sigismember(&mask, wanted) == 1 && sigismember(&mask, SIGTERM) == 0;
}

static bool childless(void)
{
	return waitpid(-1, NULL, __WALL | WNOHANG) < 0 && errno == ECHILD;
}

/* It has nothing of its maker's but what it is for, and is ended as any other process */
static bool made(void)
{
	int said[2], go[2];
	struct meeting m;
	struct self self;
	sigset_t some;

	signal(SIGUSR1, SIG_IGN);
	sigemptyset(&some);
	sigaddset(&some, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &some, NULL);
	need(!pipe(said) && !pipe(go));
	m = (struct meeting){ said[1], go[0] };
	need(!helper_process_create(apart, &m) && childless() && is_masked(SIGUSR2));
	close(said[1]);
	need(read(said[0], &self, sizeof(self)) == sizeof(self));
	need(self.descriptors == 2 && !self.handles && !self.blocks && self.at_root && self.named);
	need(self.session != self.pid && self.session != getsid(0));
	need(!kill(self.pid, SIGTERM) && read(said[0], &self, 1) == 0);
	pthread_sigmask(SIG_UNBLOCK, &some, NULL);
	close(said[0]);
	done(go);
	return true;
}

static void nothing(void *ctx)
{
	syscall(SYS_exit_group, 0);
}

#define LONELY 54321 /* a user who has no process */

/* What comes of making one where so many are allowed */
static int made_among(unsigned int processes)
{
	struct rlimit limit = { processes, processes };
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		syscall(SYS_setresuid, LONELY, LONELY, LONELY);
		syscall(SYS_prlimit64, 0, RLIMIT_NPROC, &limit, NULL);
		_exit(-helper_process_create(nothing, NULL));
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* Neither it, nor the one in the middle */
static bool unmade(void)
{
	need(made_among(1) == EAGAIN);
	/* Others have processes that nobody has counted */
	need(geteuid() || (made_among(2) == EAGAIN && !made_among(3)));
	return true;
}

/* The program is another one before anybody has read what it wrote */
static bool executed(void)
{
	int fd[2], amount[2];
	long sum = 0;
	pid_t pid;

	need(pair_narrow(fd) && !pipe(amount));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(fd[1]);
		sum = stuff(fd[0]);
		if (sum < 0 || write(amount[1], &sum, sizeof(sum)) < 0 || close(fd[0]))
			_exit(2);
		execl("/bin/true", "true", NULL);
		_exit(2);
	}
	close(fd[0]);
	need(read(amount[0], &sum, sizeof(sum)) == sizeof(sum) && sum > 0 && in_child(pid));
	need(drain(fd[1], sum) && at_end(fd[1]));
	close(fd[1]);
	done(amount);
	return true;
}

struct owner {
	int fd, last;
	bool stop; /* atomic */
};

/* What a thread says of its number's flag is what it is told of it, whatever is hidden meanwhile */
static void *change(void *arg)
{
	struct owner *o = arg;
	bool well = true;

	while (!__atomic_load_n(&o->stop, __ATOMIC_ACQUIRE)) {
		o->last = o->last ? 0 : FD_CLOEXEC;
		well &= !fcntl(o->fd, F_SETFD, o->last) && fcntl(o->fd, F_GETFD) == o->last;
	}
	return well ? arg : NULL;
}

static bool shells(void)
{
	pthread_t thread[2];
	struct owner owner[2];
	void *well;
	int fd[2];

	need(pair(fd));
	for (int i = 0; i < 2; i++) {
		owner[i] = (struct owner){ .fd = fd[i] };
		need(!pthread_create(&thread[i], NULL, change, &owner[i]));
	}
	for (int i = 0; i < SHELLS; i++)
		need(system("exit 3") == 3 << 8);
	for (int i = 0; i < 2; i++) {
		__atomic_store_n(&owner[i].stop, true, __ATOMIC_RELEASE);
		need(!pthread_join(thread[i], &well) && well);
		need(fcntl(fd[i], F_GETFD) == owner[i].last);
	}
	need(talk(fd[0], fd[1]));
	done(fd);
	return true;
}

int main(void)
{
	static const struct call_case cases[] = {
		{ "a helper process", made },
		{ "one that there is no room for", unmade },
		{ "what is closed is finished in one", executed },
		{ "numbers that threads use are hidden from shells", shells },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
