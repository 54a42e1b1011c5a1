/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls with arguments that make little sense, or none: addresses where nothing is, lengths and
 * numbers out of bounds, descriptors of the wrong kind.
 */
#include <dlfcn.h>
#include <limits.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/e2e/programs/same.h"

/* Addresses that a compiler must not know */
static char *volatile low = (char *)16, *volatile far = (char *)-4096;
static volatile int minus = -1;

static void put(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		same_say("put: %s", strerror(errno));
	same_sleep(5);
}

static int fresh(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

/* --- addresses where nothing is --- */

static void wild_polls(int fd[2])
{
	struct pollfd p = { fd[0], POLLIN, 0 };

	R(poll((struct pollfd *)low, 1, 0));
	R(poll((struct pollfd *)far, 1, 0));
	R(poll((struct pollfd *)far, 1000, 0));
	R(poll((struct pollfd *)low, 0, 0));
	R(ppoll((struct pollfd *)low, 1, &(struct timespec){ 0, 0 }, NULL));
	R(ppoll(&p, 1, &(struct timespec){ 0, 0 }, (sigset_t *)far));
	R(syscall(SYS_ppoll, &p, 1, low, NULL, _NSIG / 8));
	R(syscall(SYS_ppoll, &p, 1, &(struct timespec){ 0, -1 }, NULL, _NSIG / 8));
}

static void wild_selects(int fd[2])
{
	struct timeval none = { 0, 0 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd[0], &set);
	R(select(fd[0] + 1, (fd_set *)low, NULL, NULL, &none));
	R(select(fd[0] + 1, &set, (fd_set *)far, NULL, &none));
	R(select(fd[0] + 1, &set, NULL, (fd_set *)low, &none));
	R(FD_ISSET(fd[0], &set) != 0);
	R(select(0, (fd_set *)low, NULL, NULL, &none));
	R(select(minus, &set, NULL, NULL, &none));
	R(pselect(fd[0] + 1, &set, NULL, NULL, &(struct timespec){ 0, 0 }, (sigset_t *)far));
	R(syscall(SYS_pselect6, fd[0] + 1, &set, NULL, NULL, low, NULL));
}

/* No descriptor is that high, whatever the program says */
static void select_far(int fd[2])
{
	struct rlimit limit = { 1024, 1024 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct timeval none = { 0, 0 };
	char *map;
	fd_set *set;

	setrlimit(RLIMIT_NOFILE, &limit);
	map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(map + page, page, PROT_NONE);
	set = (fd_set *)(void *)(map + page - sizeof(*set));
	FD_ZERO(set);
	FD_SET(fd[0], set);
	put(fd[1], "x");
	same_wait(fd[0], POLLIN);
	R(select(INT_MAX, set, NULL, NULL, &none));
	R(FD_ISSET(fd[0], set) != 0);
	R(select(70000, set, NULL, NULL, &none));
}

static void wild_messages(int fd[2])
{
	char c[4];
	struct iovec iov = { c, 1 };
	struct mmsghdr m = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };
	struct sockaddr_in from;
	socklen_t len = (socklen_t)-1;

	put(fd[1], "abcdefgh");
	R(recvmmsg(fd[0], &m, 1, 0, (struct timespec *)low));
	R(recvmmsg(fd[0], &m, 1, 0, (struct timespec *)far));
	R(recvmmsg(fd[0], (struct mmsghdr *)low, 1, 0, NULL));
	R(sendmmsg(fd[0], (struct mmsghdr *)low, 1, 0));
	R(recvmsg(fd[0], (struct msghdr *)low, 0));
	R(sendmsg(fd[0], (struct msghdr *)far, 0));
	R(readv(fd[0], (struct iovec *)low, 1));
	R(writev(fd[0], (struct iovec *)far, 1));
	R(recvfrom(fd[0], c, 1, 0, (struct sockaddr *)&from, &len));
	R(recvfrom(fd[0], c, 1, 0, (struct sockaddr *)&from, (socklen_t *)low));
	R(recv(fd[0], c, 4, MSG_DONTWAIT));
	R(ioctl(fd[0], FIONREAD, low));
	R(ioctl(fd[0], SIOCOUTQ, far));
	R(getsockname(fd[0], (struct sockaddr *)&from, (socklen_t *)low));
	R(getpeername(fd[0], (struct sockaddr *)low, &(socklen_t){ 16 }));
	R(connect(fd[0], (struct sockaddr *)low, sizeof(from)));
	R(connect(fresh(), (struct sockaddr *)low, sizeof(from)));
	R(connect(fresh(), (struct sockaddr *)far, sizeof(from)));
	R(connect(fresh(), (struct sockaddr *)&same_addr, 1));
	R(connect(fresh(), (struct sockaddr *)&same_addr, 8));
	R(connect(fresh(), (struct sockaddr *)&same_addr, (socklen_t)minus));
	R(connect(fresh(), (struct sockaddr *)&same_addr, 1000));
	R(connect(fresh(), NULL, 0));
	R(sendto(fd[0], "x", 1, 0, (struct sockaddr *)low, 16));
}

/* --- what the bare system calls write --- */

static void raw_time(int fd[2])
{
	struct timespec ts = { 30, 0 };
	struct pollfd p = { fd[0], POLLIN, 0 };
	fd_set set;

	put(fd[1], "x");
	same_wait(fd[0], POLLIN);
	FD_ZERO(&set);
	FD_SET(fd[0], &set);
	R(syscall(SYS_pselect6, fd[0] + 1, &set, NULL, NULL, &ts, NULL));
	R(ts.tv_sec == 29 && ts.tv_nsec > 0);
	R(syscall(SYS_ppoll, &p, 1, &ts, NULL, _NSIG / 8));
	R(ts.tv_sec == 29 && ts.tv_nsec > 0);
	ts = (struct timespec){ 0, 20000000 };
	R(syscall(SYS_pselect6, 0, NULL, NULL, NULL, &ts, NULL));
	R(ts.tv_sec || ts.tv_nsec);
	p.events = POLLPRI;
	ts = (struct timespec){ 0, 20000000 };
	R(syscall(SYS_ppoll, &p, 1, &ts, NULL, _NSIG / 8));
	R(ts.tv_sec || ts.tv_nsec);
	ts = (struct timespec){ 5, 0 };
	R(ppoll(&p, 0, &(struct timespec){ 0, 0 }, NULL));
	p.events = POLLIN;
	R(ppoll(&p, 1, &ts, NULL));
	R(ts.tv_sec == 5 && !ts.tv_nsec);
}

/* --- pieces --- */

static void put_more(void *arg)
{
	put(*(int *)arg, "efghijk");
}

static void pieces(int fd[2])
{
	char a[2] = "", b[3] = "", c[8] = "";
	struct iovec in[5] = { { a, 2 }, { NULL, 0 }, { b, 3 }, { c, 0 }, { c, 4 } };
	struct msghdr msg = { .msg_iov = in, .msg_iovlen = 5, .msg_flags = 77 };

	put(fd[1], "abcd");
	same_later(30, put_more, &fd[1]);
	R(recvmsg(fd[0], &msg, MSG_WAITALL));
	SHOW(a, 2);
	SHOW(b, 3);
	SHOW(c, 4);
	R(msg.msg_flags);
	same_join();
	R(recvmsg(fd[0], &msg, MSG_DONTWAIT));
	SHOW(a, 2);
	in[1] = (struct iovec){ far, 0 };
	put(fd[1], "0123456789");
	R(recvmsg(fd[0], &msg, MSG_DONTWAIT));
	in[1] = (struct iovec){ c, (size_t)-1 };
	R(recvmsg(fd[0], &msg, MSG_DONTWAIT));
	R(sendmsg(fd[0], &msg, 0));
	R(readv(fd[0], in, 5));
	R(readv(fd[0], in, minus));
	R(writev(fd[0], in, minus));
	R(writev(fd[0], in, 0));
	R(readv(fd[0], in, 0));
	msg.msg_iovlen = 0;
	R(sendmsg(fd[0], &msg, 0));
	msg.msg_iovlen = IOV_MAX + 1;
	R(sendmsg(fd[0], &msg, 0));
	R(recvmsg(fd[0], &msg, MSG_DONTWAIT));
	msg.msg_iovlen = (size_t)-1;
	R(recvmsg(fd[0], &msg, MSG_DONTWAIT));
	R(recv(fd[0], c, 8, MSG_DONTWAIT));
}

/* --- sendfile() of what is no file --- */

static int opened(const char *name, int flags)
{
	return open(name, flags | O_CLOEXEC, 0600);
}

static void sendfiles(int fd[2])
{
	char name[] = "/tmp/warpsock-odd-XXXXXX", buf[64] = "";
	int pipes[2], file = mkstemp(name), dir = opened("/", O_RDONLY);
	off_t off;

	R(write(file, "0123456789", 10));
	R(pipe(pipes));
	R(write(pipes[1], "pipe", 4));
	R(sendfile(fd[0], pipes[0], NULL, 4));
	R(recv(fd[1], buf, 64, MSG_DONTWAIT));
	off = 0;
	R(sendfile(fd[0], pipes[0], &off, 4));
	R(sendfile(fd[0], dir, NULL, 4));
	R(sendfile(fd[0], opened("/dev/null", O_RDONLY), NULL, 4));
	R(sendfile(fd[0], opened("/dev/zero", O_RDONLY), NULL, 4));
	same_sleep(5);
	R(recv(fd[1], buf, 64, MSG_DONTWAIT));
	R(sendfile(fd[0], opened("/proc/self/comm", O_RDONLY), NULL, 64));
	same_sleep(5);
	R(recv(fd[1], buf, 64, MSG_DONTWAIT));
	R(sendfile(fd[0], opened(name, O_WRONLY), NULL, 4));
	R(sendfile(fd[0], opened(name, O_PATH), NULL, 4));
	R(sendfile(fd[0], minus, NULL, 4));
	R(sendfile(fd[0], fd[0], NULL, 4));
	off = -1;
	R(sendfile(fd[0], file, &off, 4));
	off = 10;
	R(sendfile(fd[0], file, &off, 4));
	off = 5;
	R(sendfile(fd[0], file, &off, 0));
	R(sendfile(fd[0], file, &off, (size_t)-1));
	R(off);
	off = 8;
	R(sendfile(fd[0], file, &off, SSIZE_MAX));
	R(off);
	R(lseek(file, 0, SEEK_CUR));
	R(sendfile(fresh(), file, NULL, 4));
	R(sendfile(same_listener, file, NULL, 4));
	R(sendfile(file, fd[0], NULL, 4));
	shutdown(fd[0], SHUT_WR);
	same_signals = 0;
	R(sendfile(fd[0], file, &(off_t){ 0 }, 4));
	R(same_signals);
	unlink(name);
}

/* --- descriptors of the wrong kind --- */

static void listener_moves(int fd[2])
{
	char c;
	int n = 0;

	R(read(same_listener, &c, 1));
	R(recv(same_listener, &c, 1, MSG_DONTWAIT));
	R(recv(same_listener, &c, 0, 0));
	same_signals = 0;
	R(write(same_listener, "x", 1));
	R(same_signals);
	R(ioctl(same_listener, FIONREAD, &n));
	R(ioctl(same_listener, SIOCOUTQ, &n));
	R(ioctl(same_listener, SIOCATMARK, &n));
	R(connect(same_listener, (struct sockaddr *)&same_addr, sizeof(same_addr)));
	R(accept(fd[0], NULL, NULL));
	R(accept(fd[1], NULL, NULL));
	R(accept(fresh(), NULL, NULL));
	R(accept4(same_listener, NULL, NULL, 77));
	R(listen(same_listener, 1));
	R(listen(same_listener, -1));
	R(listen(fd[0], 1));
	R(listen(fd[1], 1));
	R(bind(fd[0], (struct sockaddr *)&same_addr, sizeof(same_addr)));
	R(shutdown(fresh(), SHUT_RDWR));
	R(shutdown(same_listener, 7));
	R(shutdown(same_listener, SHUT_RD));
	R(accept(same_listener, NULL, NULL));
	R(listen(same_listener, 5));
	R(shutdown(same_listener, SHUT_WR));
	same_nonblock(same_listener);
	R(accept(same_listener, NULL, NULL));
}

static void shut_listener(void *arg)
{
	shutdown(same_listener, SHUT_RDWR);
}

static void listener_is_shut(int fd[2])
{
	struct pollfd p = { same_listener, POLLIN, 0 };

	same_later(30, shut_listener, NULL);
	R(accept(same_listener, NULL, NULL));
	same_join();
	R(poll(&p, 1, 0));
	R(p.revents);
}

static void fresh_calls(int fd[2])
{
	int s = fresh(), n = 5;
	char c;

	R(read(s, &c, 1));
	R(recv(s, &c, 0, 0));
	R(read(s, &c, 0));
	R(recv(s, &c, 1, MSG_OOB));
	R(recv(s, &c, 1, MSG_PEEK));
	same_signals = 0;
	R(write(s, "x", 1));
	R(send(s, "", 0, 0));
	R(write(s, "", 0));
	R(same_signals);
	R(ioctl(s, FIONREAD, &n));
	R(n);
	R(ioctl(s, SIOCOUTQ, &n));
	R(ioctl(s, SIOCATMARK, &n));
	R(n);
	R(getpeername(s, (struct sockaddr *)&same_addr, &(socklen_t){ 16 }));
	R(splice(s, NULL, 1, NULL, 1, 0) < 0);
}

/* What a socket is not */
static void no_file(int fd[2])
{
	struct stat st;
	char c;

	R(lseek(fd[0], 0, SEEK_SET));
	R(fsync(fd[0]));
	R(fdatasync(fd[0]));
	R(ftruncate(fd[0], 0));
	R(isatty(fd[0]));
	R(posix_fallocate(fd[0], 0, 1));
	R(pread(fd[0], &c, 1, 0));
	R(pwrite(fd[0], &c, 1, 0));
	R(readahead(fd[0], 0, 1));
	R(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd[0], 0) == MAP_FAILED ? -1 : 0);
	R(fstat(fd[0], &st) || !S_ISSOCK(st.st_mode));
	R(fchdir(fd[0]));
	R(syscall(SYS_getdents64, fd[0], &c, 1));
	R(sync_file_range(fd[0], 0, 0, 0));
	R(ioctl(fd[0], 0x1234, &c));
	R(fcntl(fd[0], 9999, 0));
	R(fcntl(fd[0], F_GETPIPE_SZ));
	R(fcntl(fd[0], F_DUPFD, -1));
	R(fcntl(fd[0], F_DUPFD, INT_MAX));
	R(dup2(fd[0], -1));
	R(dup2(fd[0], INT_MAX));
	R(dup3(fd[0], fd[0], 0));
	R(dup3(fd[0], fd[1], 1));
	R(close(-1));
}

/* --- options --- */

static void short_get(int fd, int level, int name)
{
	for (int room = 0; room <= 5; room++) {
		unsigned char value[8];
		socklen_t len = (socklen_t)room;
		int err;

		memset(value, 0xee, sizeof(value));
		err = getsockopt(fd, level, name, value, &len);
		same_say("%d %d %d: %d %u %02x%02x%02x%02x%02x", level, name, room, err, len,
			 value[0], value[1], value[2], value[3], value[4]);
	}
	R(getsockopt(fd, level, name, &(int){ 0 }, &(socklen_t){ (socklen_t)minus }));
	R(getsockopt(fd, level, name, &(int){ 0 }, (socklen_t *)low));
	R(getsockopt(fd, level, name, far, &(socklen_t){ 4 }));
	R(setsockopt(fd, level, name, &(int){ 1 }, 3));
	R(setsockopt(fd, level, name, &(int){ 1 }, 0));
	R(setsockopt(fd, level, name, &(long){ 1 }, 8));
	R(setsockopt(fd, level, name, low, 4));
	R(setsockopt(fd, level, name, &(int){ 1 }, (socklen_t)minus));
}

static void short_options(int fd[2])
{
	short_get(fd[0], SOL_SOCKET, SO_ERROR);
	short_get(fd[0], SOL_SOCKET, SO_TYPE);
	short_get(fd[0], SOL_SOCKET, SO_KEEPALIVE);
	short_get(fd[0], SOL_SOCKET, SO_RCVLOWAT);
	short_get(fd[0], IPPROTO_TCP, TCP_NODELAY);
	short_get(fd[0], IPPROTO_TCP, TCP_CORK);
	short_get(fd[0], IPPROTO_TCP, TCP_FASTOPEN_CONNECT);
	short_get(fresh(), SOL_SOCKET, SO_RCVLOWAT);
	short_get(fresh(), IPPROTO_TCP, TCP_NODELAY);
	short_get(same_listener, IPPROTO_TCP, TCP_NODELAY);
}

/* Less than nothing: calls do not wait, and getsockopt() does not tell */
static void never_waits(int fd[2])
{
	static char big[8 << 20];
	struct timeval never = { -1, 0 }, brief = { 0, 20000 }, tv = { 7, 7 };
	socklen_t len = sizeof(tv);
	int s = fresh(), peer;
	char c;

	R(setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &never, sizeof(never)));
	R(setsockopt(fd[0], SOL_SOCKET, SO_SNDTIMEO, &never, sizeof(never)));
	R(getsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &tv, &len));
	R(tv.tv_sec == 0 && tv.tv_usec == 0);
	R(recv(fd[0], &c, 1, 0));
	R(recv(fd[0], &c, 1, MSG_WAITALL | MSG_PEEK));
	R(send(fd[0], big, sizeof(big), 0) < (long)sizeof(big));
	R(setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &brief, 3));
	R(setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &brief, sizeof(brief)));
	R(recv(fd[0], &c, 1, 0));
	R(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &never, sizeof(never)));
	R(setsockopt(same_listener, SOL_SOCKET, SO_RCVTIMEO, &never, sizeof(never)));
	R(connect(s, (struct sockaddr *)&same_addr, sizeof(same_addr)));
	peer = accept(same_listener, NULL, NULL);
	R(recv(peer, &c, 1, 0));
	R(recv(s, &c, 1, 0));
}

static void flags_and_dup(int fd[2])
{
	int other = dup(fd[0]), on = 1, off = 0;
	struct f_owner_ex ex = { F_OWNER_PID, 0 };
	char c;

	R(ioctl(other, FIONBIO, &on));
	R((fcntl(fd[0], F_GETFL) & O_NONBLOCK) != 0);
	R(recv(fd[0], &c, 1, 0));
	R(fcntl(fd[0], F_SETFL, fcntl(fd[0], F_GETFL) & ~O_NONBLOCK));
	R((fcntl(other, F_GETFL) & O_NONBLOCK) != 0);
	R(ioctl(fd[0], FIONBIO, low));
	R(ioctl(fd[0], FIONBIO, &off));
	R(fcntl(fd[0], F_SETFL, O_APPEND | O_ASYNC | O_NONBLOCK));
	R(fcntl(other, F_GETFL));
	R(fcntl(other, F_SETFL, 0));
	R(fcntl(fd[0], F_GETFL));
	R(fcntl(fd[0], F_SETOWN, getpid()));
	R(fcntl(other, F_GETOWN) == getpid());
	R(fcntl(other, F_SETSIG, SIGUSR1));
	R(fcntl(fd[0], F_GETSIG));
	R(fcntl(fd[0], F_SETSIG, 100));
	R(fcntl(fd[0], F_GETOWN_EX, &ex));
	R(ex.type == F_OWNER_PID && ex.pid == getpid());
	R(ioctl(fd[0], FIOCLEX));
	R(fcntl(fd[0], F_GETFD));
	R(fcntl(other, F_GETFD));
	R(fcntl(fd[0], F_SETFD, 0));
	R(close(other));
}

/* --- the fortified forms --- */

extern ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);
extern ssize_t __recv_chk(int fd, void *buf, size_t len, size_t room, int flags);
extern ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags,
			      struct sockaddr *from, socklen_t *fromlen);
extern int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room);
extern int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		       const sigset_t *mask, size_t room);

static void fortified_once(int which, int fd, size_t n)
{
	struct pollfd p[2] = { { fd, POLLIN, 0 }, { -1, 0, 0 } };
	struct timespec none = { 0, 0 };
	char buf[8] = "";
	long r = 0;

	if (which == 0)
		r = __read_chk(fd, buf, n, 2);
	else if (which == 1)
		r = __recv_chk(fd, buf, n, 2, MSG_PEEK);
	else if (which == 2)
		r = __recvfrom_chk(fd, buf, n, 2, MSG_PEEK, NULL, NULL);
	else if (which == 3)
		r = __poll_chk(p, n - 1, 0, sizeof(p[0]));
	else
		r = __ppoll_chk(p, n - 1, &none, NULL, sizeof(p[0]));
	same_say("fortified %d: %ld", which, r);
}

static void fortified(int fd[2])
{
	put(fd[1], "0123456789");
	for (int which = 0; which < 5; which++)
		fortified_once(which, fd[0], 2);
	for (int which = 0; which < 5; which++) {
		int status = -1;
		pid_t pid = fork();

		if (!pid) {
			struct rlimit none = { 0, 0 };

			setrlimit(RLIMIT_CORE, &none);
			fortified_once(which, fd[0], 3);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		same_say("overflow %d: signal %d", which,
			 WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	}
}

/* As a runtime does that makes its system calls itself: libc's function, and no other's */
static void closed_raw(int fd[2])
{
	long (*raw)(long n, ...);
	char buf[8] = "";
	int file;

	*(void **)&raw = dlsym(dlopen("libc.so.6", RTLD_LAZY), "syscall");
	R(raw(SYS_close, fd[0]));
	file = open("/proc/self/exe", O_RDONLY);
	R(file == fd[0]);
	R(read(file, buf, 1));
	R(lseek(file, 0, SEEK_CUR));
	R(close(file));
	file = open("/proc/self/exe", O_RDONLY);
	R(read(file, buf, 1));
}

/* A file beside this program's */
static void *beside(const char *name, int how)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *end;

	if (n < 0)
		return NULL;
	path[n] = '\0';
	end = strrchr(path, '/') + 1;
	snprintf(end, sizeof(path) - (size_t)(end - path), "%s", name);
	return dlopen(path, how);
}

/* Its calls do not pass through names of ours: it reads what is in the kernel */
static void plugin_reads(int fd[2])
{
	void *plugin = beside("libdeepbind.so", RTLD_NOW | RTLD_DEEPBIND);
	ssize_t (*get)(int fd, void *p, size_t n) = NULL;
	char buf[5] = "";

	if (plugin)
		*(void **)&get = dlsym(plugin, "deepbind_read");
	put(fd[0], "hello");
	if (get && get(fd[1], buf, sizeof(buf)) == sizeof(buf))
		same_say(memcmp(buf, "hello", sizeof(buf)) ? "frames" : "bytes");
}

static int getfd(pid_t of, int fd)
{
	int process = (int)syscall(SYS_pidfd_open, of, 0);
	int got = (int)syscall(SYS_pidfd_getfd, process, fd, 0);

	close(process);
	return got;
}

/* Where nobody may do so (Yama) by what it has */
static void speak_by_taken(int fd)
{
	int taken = getfd(getppid(), fd);
	char c;

	if (taken >= 0 && (recv(taken, &c, 1, MSG_DONTWAIT) != -1 || errno != EAGAIN))
		_exit(1);
	put(taken < 0 ? fd : taken, "from a stranger");
	_exit(0);
}

static void taken_by_pidfd(int fd[2])
{
	int more = getfd(getpid(), fd[1]), status = 0;
	char buf[16];
	pid_t pid;

	same_say("one more: %d", more >= 0);
	put(fd[0], "one");
	R(recv(more, buf, 3, MSG_WAITALL));
	SHOW(buf, 3);
	put(more, "two");
	R(recv(fd[0], buf, 3, MSG_WAITALL));
	SHOW(buf, 3);
	R(close(more));
	pid = fork();
	if (!pid)
		speak_by_taken(fd[1]);
	R(recv(fd[0], buf, 15, MSG_WAITALL));
	SHOW(buf, 15);
	waitpid(pid, &status, 0);
	R(status);
	put(fd[0], "end");
	R(recv(fd[1], buf, 3, MSG_WAITALL));
}

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		SAME("poll with addresses that are none", wild_polls),
		SAME("select with addresses that are none", wild_selects),
		SAME("select beyond what there may be", select_far),
		SAME("messages and names with addresses that are none", wild_messages),
		SAME("what is left of the time, by system call", raw_time),
		SAME("pieces, empty, wild and too many", pieces),
		SAME("sendfile of what is no file", sendfiles),
		SAME("a listener used as a connection, and the other way round", listener_moves),
		SAME("a listener is shut", listener_is_shut),
		SAME("calls on a new socket", fresh_calls),
		SAME("what a socket is not", no_file),
		SAME("options and short buffers", short_options),
		SAME("time-outs of less than nothing", never_waits),
		SAME("flags and owners, by a duplicate", flags_and_dup),
		SAME("fortified calls", fortified),
		SAME("descriptors by pidfd_getfd()", taken_by_pidfd),
		DIFFERS("a plug-in of RTLD_DEEPBIND reads", plugin_reads, "frames\n"),
		DIFFERS("a number is closed by a system call of its own", closed_raw,
			"raw(SYS_close, fd[0]): 0\n"
			"file == fd[0]: 1\n"
			"read(file, buf, 1): -1 ECONNRESET\n"
			"lseek(file, 0, SEEK_CUR): 0\n"
			"close(file): 0\n"
			"read(file, buf, 1): 1\n"),
	};

	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
