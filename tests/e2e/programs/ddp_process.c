/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What DDP sockets do not do that TCP does, of descriptors and processes: each fails before
 * anything is lost. Under the launcher only (docs/limits.md).
 */
#include "tests/e2e/programs/calls.h"

#include <linux/seccomp.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <warp/ddp.h>

extern char **environ;

static bool refused(void)
{
	return errno == EOPNOTSUPP;
}

/* --- exec --- */

/* A file that only seems to be a program: what was the process's own has ended, the rest goes on */
static bool exec_of_no_program(void)
{
	char path[] = "/tmp/warpsock-process-XXXXXX";
	int fd[2], file = mkstemp(path), own;
	pid_t pid;

	need(pair(fd) && write(file, "nothing\n", 8) == 8 && !fchmod(file, 0755) && !close(file));
	need(!fcntl(fd[0], F_SETFD, FD_CLOEXEC) && !fcntl(fd[1], F_SETFD, FD_CLOEXEC));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		execve(path, (char *[]){ path, NULL }, environ);
		own = socket(AF_INET, SOCK_STREAM, 0);
		if (errno != ENOEXEC || connect(own, (struct sockaddr *)&laddr, sizeof(laddr)))
			_exit(1);
		exit(write(own, "after", 5) != 5);
	}
	own = accept(lfd, NULL, NULL);
	need(recv(own, (char[5]){ 0 }, 5, MSG_WAITALL) == 5 && read(own, (char[1]){ 0 }, 1) == 0);
	need(in_child(pid) && talk(fd[0], fd[1]));
	unlink(path);
	close(own);
	done(fd);
	return true;
}

/* Is number @fd open in a program that is started by...? */
static char *look_for(int fd)
{
	static char text[64];

	snprintf(text, sizeof(text), "test ! -e /proc/self/fd/%d", fd);
	return text;
}

struct flag {
	int fd, told, go;
	bool well;
};

/* While the shell runs, which waits for this */
static void *change_flag(void *arg)
{
	struct flag *f = arg;
	char c;

	f->well = read(f->told, &c, 1) == 1 && fcntl(f->fd, F_GETFD) == 0 &&
		  !fcntl(f->fd, F_SETFD, FD_CLOEXEC) && fcntl(f->fd, F_GETFD) == FD_CLOEXEC &&
		  !fcntl(f->fd, F_SETFD, 0) && fcntl(f->fd, F_GETFD) == 0 &&
		  !ioctl(f->fd, FIOCLEX) && dup3(f->fd, 77, O_CLOEXEC) == 77;
	return write(f->go, "\n", 1) == 1 ? arg : NULL;
}

/* What another thread says of the flag meanwhile holds */
static bool flag_changed(const int fd[2])
{
	struct flag flag = { .fd = fd[0] };
	int told[2], go[2];
	pthread_t thread;
	void *done;

	need(!pipe(told) && !pipe(go) && dup2(told[1], 8) == 8 && dup2(go[0], 9) == 9);
	need(dup2(fd[0], 77) == 77);
	flag.told = told[0];
	flag.go = go[1];
	need(!pthread_create(&thread, NULL, change_flag, &flag));
	need(!system("echo x >&8; read y <&9"));
	need(!pthread_join(thread, &done) && done && flag.well);
	need(fcntl(fd[0], F_GETFD) == FD_CLOEXEC && fcntl(77, F_GETFD) == FD_CLOEXEC);
	return !close(77) && !fcntl(fd[0], F_SETFD, 0);
}

/* Where states have no folder, nobody but a relay could go on with a connection */
static int hidden_from_shells(void)
{
	int fd[2];

	if (!pair(fd) || system(look_for(fd[0])) || pclose(popen(look_for(fd[0]), "r")))
		return 1;
	if (fcntl(fd[0], F_GETFD) & FD_CLOEXEC || !flag_changed(fd))
		return 1;
	return !talk(fd[0], fd[1]);
}

static bool without_folder(const char *what)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		setenv("WARPSOCK_RUNTIME_DIR", "/proc/nowhere", 1);
		execl("/proc/self/exe", what, NULL);
		_exit(2);
	}
	return in_child(pid);
}

static bool hidden(void)
{
	return without_folder("hidden");
}

/* One that ends in its linker, which has not come to us; what was written arrives nevertheless */
static bool shell_in_vain(void)
{
	static char data[400000];
	char dir[] = "/tmp/warpsock-libc-XXXXXX", path[sizeof(dir) + 16];
	int fd[2], status;
	FILE *p;

	need(mkdtemp(dir) && pair(fd));
	snprintf(path, sizeof(path), "%s/libc.so.6", dir);
	close(open(path, O_CREAT | O_WRONLY, 0700));
	setenv("LD_LIBRARY_PATH", dir, 1);
	p = popen("exec 2>&1; echo no", "r");
	status = p ? pclose(p) : -1;
	unsetenv("LD_LIBRARY_PATH");
	unlink(path);
	rmdir(dir);
	need(WIFEXITED(status) && WEXITSTATUS(status) == 127);
	need(write(fd[0], data, sizeof(data)) == sizeof(data) && !close(fd[0]));
	need(drain(fd[1], sizeof(data)) && at_end(fd[1]));
	close(fd[1]);
	return true;
}

/* --- descriptors --- */

/* --- what cannot be handed over --- */

/* Is standard input of @pid a local socket? */
static bool has_local_input(pid_t pid)
{
	char path[64], link[64] = "", line[512];
	bool found = false;
	FILE *list;

	snprintf(path, sizeof(path), "/proc/%d/fd/0", (int)pid);
	need(readlink(path, link, sizeof(link) - 1) > 0 &&
	     sscanf(link, "socket:[%[0-9]", path) == 1);
	list = fopen("/proc/net/unix", "r");
	while (list && fgets(line, sizeof(line), list))
		found |= strstr(line, path) != NULL;
	fclose(list);
	return found;
}

/* Nothing can be loaded into a program that is linked statically; a relay has its connection */
static bool relayed(void)
{
	char path[4096] = "", buf[4];
	int fd[2];
	pid_t pid;

	need(readlink("/proc/self/exe", path, sizeof(path) - 8) > 0 && pair(fd));
	strcpy(strrchr(path, '/') + 1, "copy");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(fd[1], 0);
		dup2(fd[1], 1);
		closefrom(3);
		execl(path, path, NULL);
		_exit(2);
	}
	close(fd[1]);
	need(write(fd[0], "ping", 4) == 4 && recv(fd[0], buf, 4, MSG_WAITALL) == 4);
	need(has_local_input(pid) && !close(fd[0]));
	return in_child(pid);
}

static long pass_on(int to, int fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		size_t align;
	} control = { { 0 } };
	struct iovec iov = { "x", 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.room,
			      .msg_controllen = sizeof(control.room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(to, &msg, 0);
}

static int take_over(int from)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		size_t align;
	} control = { { 0 } };
	struct iovec iov = { (char[1]){ 0 }, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.room,
			      .msg_controllen = sizeof(control.room) };
	int fd = -1;

	if (recvmsg(from, &msg, 0) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* A local connection to a process of another user's, which does @work with it */
static int reach_nobody(int (*work)(int), pid_t *pid)
{
	int local = socket(AF_UNIX, SOCK_STREAM, 0), ends[2];
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(name);

	if (pipe(ends) || bind(local, (struct sockaddr *)&name, sizeof(sa_family_t)) ||
	    getsockname(local, (struct sockaddr *)&name, &len))
		return -1;
	fflush(stdout);
	*pid = fork();
	if (!*pid) {
		if (setuid(65534) || listen(local, 1) || write(ends[1], "l", 1) != 1)
			_exit(1);
		_exit(work(accept(local, NULL, NULL)));
	}
	close(local);
	local = socket(AF_UNIX, SOCK_STREAM, 0);
	if (read(ends[0], (char[1]){ 0 }, 1) != 1 || connect(local, (struct sockaddr *)&name, len))
		return -1;
	done(ends);
	return local;
}

static int gets_nothing(int local)
{
	return read(local, (char[1]){ 0 }, 1) != 0;
}

/* Where the socket says whose process is there, the message is refused */
static bool passed_to_nobody(void)
{
	int fd[2], local;
	pid_t pid;

	if (getuid())
		return tap_skip("only root becomes another user");
	need(pair(fd));
	local = reach_nobody(gets_nothing, &pid);
	need(local >= 0);
	need(pass_on(local, fd[0]) < 0 && errno == EACCES && talk(fd[0], fd[1]));
	close(local);
	done(fd);
	return in_child(pid);
}

static int answers(int local)
{
	int fd = take_over(local);

	return fd < 0 || recv(fd, (char[4]){ 0 }, 4, MSG_WAITALL) != 4 || write(fd, "pong", 4) != 4;
}

/* A server in mode auto, and a peer that has not asked */
static bool plain_pair(int fd[2])
{
	int mode = DDP_MODE_AUTO, off = DDP_MODE_OFF, listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);

	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	need(!setsockopt(listener, SOL_DDP, DDP_MODE, &mode, sizeof(mode)) &&
	     !setsockopt(fd[0], SOL_DDP, DDP_MODE, &off, sizeof(off)));
	need(!bind(listener, (struct sockaddr *)&addr, len) && !listen(listener, 1) &&
	     !getsockname(listener, (struct sockaddr *)&addr, &len) &&
	     !connect(fd[0], (struct sockaddr *)&addr, len));
	fd[1] = accept(listener, NULL, NULL);
	close(listener);
	return fd[1] >= 0;
}

static unsigned int reason_of(int fd)
{
	struct ddp_info info = { .reason = DDP_REASON_NONE };
	socklen_t len = sizeof(info);

	getsockopt(fd, SOL_DDP, DDP_INFO, &info, &len);
	return info.reason;
}

/* Then there is no DDP that would have to be handed over */
static bool plain_to_nobody(void)
{
	int fd[2], local;
	char buf[4];
	pid_t pid;

	if (getuid())
		return tap_skip("only root becomes another user");
	need(plain_pair(fd));
	local = reach_nobody(answers, &pid);
	need(local >= 0 && pass_on(local, fd[1]) == 1);
	need(reason_of(fd[1]) == DDP_REASON_GRACE_EXPIRED && !close(fd[1]));
	need(write(fd[0], "ping", 4) == 4 && recv(fd[0], buf, 4, MSG_WAITALL) == 4 &&
	     !memcmp(buf, "pong", 4) && at_end(fd[0]));
	close(local);
	close(fd[0]);
	return in_child(pid);
}

static int plain_by_message(void)
{
	int fd[2], local[2];

	if (!plain_pair(fd) || socketpair(AF_UNIX, SOCK_STREAM, 0, local))
		return 1;
	return pass_on(local[0], fd[1]) != 1 || reason_of(fd[1]) != DDP_REASON_GRACE_EXPIRED;
}

static bool plain_without_folder(void)
{
	return without_folder("plain");
}

/* Where it does not, the receiver's copy is of no use, and does no harm */
static bool received_by_nobody(void)
{
	int fd[2], local[2], got;
	pid_t pid;

	if (getuid())
		return tap_skip("only root becomes another user");
	need(pair(fd) && !socketpair(AF_UNIX, SOCK_STREAM, 0, local));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		done(fd);
		got = setuid(65534) ? -1 : take_over(local[1]);
		signal(SIGPIPE, SIG_IGN);
		if (got < 0 || send(got, "plain", 5, 0) >= 0 || errno != EPIPE)
			_exit(1);
		_exit(reason_of(got) != DDP_REASON_OTHER_USER ||
		      !(read(got, (char[1]){ 0 }, 1) < 0 && errno == ENOTCONN));
	}
	need(pass_on(local[0], fd[0]) == 1 && in_child(pid) && talk(fd[0], fd[1]));
	done(local);
	done(fd);
	return true;
}

/* Nobody knows of a message that it was thrown away unread: it counts as one to be received */
static bool dropped_on_the_way(void)
{
	static char data[400000];
	int fd[2], local[2], small = 4096, large = 1 << 18;

	need(!setsockopt(lfd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)));
	need(pair(fd) && !socketpair(AF_UNIX, SOCK_STREAM, 0, local));
	need(!setsockopt(lfd, SOL_SOCKET, SO_RCVBUF, &large, sizeof(large)));
	need(pass_on(local[0], fd[0]) == 1);
	done(local);
	need(write(fd[0], data, sizeof(data)) == sizeof(data) && !close(fd[0]));
	need(drain(fd[1], sizeof(data)) && at_end(fd[1]));
	close(fd[1]);
	return true;
}

static int register_region(int fd)
{
	static char memory[64];
	static uint32_t stag;
	struct ddp_reg_mr region = { .addr = (uintptr_t)memory,
				     .length = sizeof(memory),
				     .stag = (uintptr_t)&stag,
				     .access = DDP_ACCESS_REMOTE_WRITE };

	return setsockopt(fd, SOL_DDP, DDP_REG_MR, &region, sizeof(region));
}

/* Memory that is registered is this process's, and its connection goes nowhere else */
static bool with_a_region(void)
{
	char *argv[] = { "true", NULL };
	int fd[2], local[2];
	pid_t pid;

	need(pair(fd) && !socketpair(AF_UNIX, SOCK_STREAM, 0, local));
	need(!register_region(fd[1]));
	need(pass_on(local[0], fd[1]) < 0 && errno == EXDEV);
	need(execv("/bin/true", argv) < 0 && refused());
	need(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) == EOPNOTSUPP);
	need(talk(fd[0], fd[1]));
	/* Not with it, all of this goes */
	need(!fcntl(fd[1], F_SETFD, FD_CLOEXEC));
	need(!posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) && in_child(pid));
	need(pass_on(local[0], fd[0]) == 1 && talk(fd[0], fd[1]));
	done(local);
	done(fd);
	return true;
}

/* By fork() before anybody could say no, or on its way before it was another process's */
static bool not_the_owner(void)
{
	int fd[2], local[2], got;
	pid_t pid;

	need(pair(fd) && !socketpair(AF_UNIX, SOCK_STREAM, 0, local));
	need(pass_on(local[0], fd[1]) == 1);
	need(!register_region(fd[1]));
	need(reason_of(fd[1]) == DDP_REASON_NONE && reason_of(fd[0]) == DDP_REASON_NONE);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (reason_of(fd[1]) != DDP_REASON_NOT_OWNER || send(fd[1], "octets", 6, 0) >= 0 ||
		    errno != EXDEV)
			_exit(1);
		done(fd);
		got = take_over(local[1]);
		signal(SIGPIPE, SIG_IGN);
		_exit(got < 0 || reason_of(got) != DDP_REASON_NOT_OWNER ||
		      send(got, "plain", 5, 0) >= 0 || errno != EPIPE);
	}
	need(in_child(pid) && talk(fd[0], fd[1]));
	done(local);
	done(fd);
	return true;
}

static void *sleeper(void *arg)
{
	pause();
	return NULL;
}

static bool parted(void)
{
	pthread_t thread;
	int fd[2];

	need(pair(fd) && !pthread_create(&thread, NULL, sleeper, NULL));
	need(close_range(900, ~0u, CLOSE_RANGE_UNSHARE) < 0 && refused() && talk(fd[0], fd[1]));
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	done(fd);
	return true;
}

static bool too_few_to_duplicate(void)
{
	struct rlimit before, limit;
	int fd[2], next;

	need(pair(fd) && !getrlimit(RLIMIT_NOFILE, &before));
	next = dup(0);
	close(next);
	limit = (struct rlimit){ (rlim_t)next + 1, before.rlim_max };
	need(!setrlimit(RLIMIT_NOFILE, &limit));
	/* Since it was lowered, the streams have what they need; the listener has not */
	need(dup(lfd) < 0 && errno == EMFILE && dup(fd[0]) == next && !close(next));
	need(!setrlimit(RLIMIT_NOFILE, &before) && talk(fd[0], fd[1]));
	done(fd);
	return true;
}

/* A number that is open, and that nobody can close, is one of our own */
static bool our_own(void)
{
	struct rlimit limit;
	int fd[2], found = 0;

	need(pair(fd) && dup(fd[0]) >= 0 && !getrlimit(RLIMIT_NOFILE, &limit));
	for (int i = 500; i < (int)limit.rlim_cur && i < 70000; i++) {
		if (fcntl(i, F_GETFD) < 0)
			continue;
		need(close(i) < 0 && errno == EBADF && fcntl(i, F_GETFD) == FD_CLOEXEC);
		need(dup(i) < 0 && errno == EBADF);
		need(dup2(0, i) < 0 && errno == EBUSY);
		found++;
	}
	need(found && talk(fd[0], fd[1]));
	done(fd);
	return true;
}

/* Nobody can finish for a process that is killed: what arrives is a part from the beginning */
static bool killed(void)
{
	static unsigned char data[300000];
	int fd, status;
	pid_t pid;
	ssize_t n;
	size_t sum = 0;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		connect(fd, (struct sockaddr *)&laddr, sizeof(laddr));
		for (size_t i = 0; i < sizeof(data); i++)
			data[i] = (unsigned char)(i * 7 + i / 1000);
		if (write(fd, data, sizeof(data)) > 0)
			raise(SIGKILL);
		_exit(1);
	}
	fd = accept(lfd, NULL, NULL);
	while ((n = recv(fd, data, 5000, 0)) > 0)
		for (ssize_t i = 0; i < n; i++, sum++)
			need(data[i] == (unsigned char)(sum * 7 + sum / 1000));
	need(n == 0 || errno == ECONNRESET);
	need(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && sum <= sizeof(data));
	close(fd);
	return true;
}

/* It is fork(): its child would return into what its parent still needs */
static bool vfork_by_number(void)
{
	int fd[2], status;
	long pid;

	need(pair(fd));
	fflush(stdout);
	pid = syscall(SYS_vfork);
	if (!pid)
		_exit(close(fd[1]) || write(fd[0], "child", 5) != 5);
	need(pid > 0 && !close(fd[0]) && drain(fd[1], 5) && at_end(fd[1]));
	need(waitpid((pid_t)pid, &status, 0) == pid && !status);
	close(fd[1]);
	return true;
}

static bool strict(void)
{
	int fd[2];

	need(pair(fd));
	need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) < 0 && refused() && talk(fd[0], fd[1]));
	done(fd);
	return true;
}

int main(int argc, char **argv)
{
	static const struct call_case cases[] = {
		{ "exec of what is no program", exec_of_no_program },
		{ "system, popen without a folder for states", hidden },
		{ "a shell that cannot begin", shell_in_vain },
		{ "a program that cannot load us", relayed },
		{ "passed to another user's process", passed_to_nobody },
		{ "a plain peer's, passed to another user's process", plain_to_nobody },
		{ "a plain peer's, passed without a folder for states", plain_without_folder },
		{ "received by another user's process", received_by_nobody },
		{ "a message that nobody receives", dropped_on_the_way },
		{ "registered memory, exec and SCM_RIGHTS", with_a_region },
		{ "a connection of another process's", not_the_owner },
		{ "CLOSE_RANGE_UNSHARE beside threads", parted },
		{ "dup when one number is left", too_few_to_duplicate },
		{ "descriptors of our own", our_own },
		{ "SIGKILL", killed },
		{ "strict seccomp", strict },
		{ "vfork() by its number", vfork_by_number },
	};

	if (!strcmp(argv[0], "hidden")) {
		setup();
		return hidden_from_shells();
	}
	if (!strcmp(argv[0], "plain"))
		return plain_by_message();
	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
