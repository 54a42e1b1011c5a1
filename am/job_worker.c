/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A worker of our own console: docs/amudp.md, section 6.
 *
 * Four connections to the console: control, collectives, stdout, stderr. A thread waits on the
 * control connection and ends the process when the console says so or is gone; it costs nothing
 * until then, and no call of the program is needed for the job to end. An end with code 0 it only
 * passes on to the next thread that polls, so that a rank which is not done yet comes to its own
 * end, as long as am_job.exit_ns allows.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "am/bundle.h"
#include "am/env.h"
#include "am/job.h"
#include "am/job_address.h"
#include "am/job_wire.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"

#define CONNECT_SYNS 4 /* tries of TCP behind the first one: half a minute */

static struct sockaddr_in console;
static uint64_t secret;
static int control = -1, collective = -1;
static bool awaiting; /* an answer; atomic */
static pid_t joined;
static char *environment;
static char place[400] = "no console";

/* What is wrong with it */
static void __attribute__((format(printf, 1, 2))) place_add(const char *fmt, ...)
{
	size_t told = strlen(place);
	va_list args;

	va_start(args, fmt);
	vsnprintf(place + told, sizeof(place) - told, fmt, args);
	va_end(args);
}

const char *am_worker_console(void)
{
	return place;
}

bool am_worker_is(void)
{
	const char *args = getenv(AM_JOB_ENV_ARGS), *rank = getenv(AM_JOB_ENV_JOINED);

	return args && atoi(args) != 0 && (!rank || atoi(rank) == getpid());
}

void am_worker_forget(void)
{
	if (!getenv(AM_JOB_ENV_JOINED))
		return;
	unsetenv(AM_JOB_ENV_ARGS);
	unsetenv(AM_JOB_ENV_RANK);
	unsetenv(AM_JOB_ENV_JOINED);
}

/* A program that a rank starts inherits the variables, and is no worker; it may have a job. */
static int joined_mark(void)
{
	char pid[16];

	joined = getpid();
	snprintf(pid, sizeof(pid), "%d", (int)joined);
	return setenv(AM_JOB_ENV_JOINED, pid, 1) < 0 ? -errno : 0;
}

static int address_parse(const char *args)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *found;
	char host[256], port[16];
	int flag;

	if (sscanf(args, "%d,%255[^:]:%15[0-9]", &flag, host, port) != 3) {
		snprintf(place, sizeof(place), "%s=%s", AM_JOB_ENV_ARGS, args);
		return -EINVAL;
	}
	snprintf(place, sizeof(place), "%s:%s", host, port);
	if (getaddrinfo(host, port, &hints, &found) != 0)
		return -EHOSTUNREACH;
	memcpy(&console, found->ai_addr, sizeof(console));
	freeaddrinfo(found);
	return 0;
}

/* A signal of the program's timer ends the call, and not the connecting. */
static int console_connect(int fd)
{
	int syns = CONNECT_SYNS, error = 0;
	socklen_t len = sizeof(error);
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &syns, sizeof(syns));
	if (connect(fd, (struct sockaddr *)&console, sizeof(console)) == 0)
		return 0;
	if (errno != EINTR)
		return -errno;
	while (poll(&pfd, 1, -1) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 ? -errno : -error;
}

static int channel_open(uint32_t channel, uint32_t rank)
{
	struct am_job_hello hello = { htobe32(AM_JOB_MAGIC), htobe32(channel), htobe64(secret),
				      htobe32(rank), htobe32((uint32_t)getpid()) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, ret;

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	ret = console_connect(fd);
	if (ret == 0)
		ret = am_job_write(fd, &hello, sizeof(hello));
	if (ret < 0) {
		close(fd);
		return ret;
	}
	return fd;
}

/* The address of WORKERIP; else the one by which the console is reached. */
static int address_choose(void)
{
	struct sockaddr_in self;
	socklen_t len = sizeof(self);

	if (getsockname(control, (struct sockaddr *)&self, &len) == 0)
		am_job.address = self.sin_addr.s_addr;
	return am_address_of_worker(&am_job.address);
}

static int boot_receive(bool *route)
{
	struct am_job_message m;
	struct am_job_boot boot;
	int ret = am_job_receive(control, &m);

	if (ret < 0)
		return ret;
	/* it has been ended before all had come */
	if (m.kind == AM_JOB_EXIT)
		am_job_leave((int)m.value);
	if (m.kind != AM_JOB_BOOT || m.length < sizeof(boot))
		return -EPROTO;
	ret = am_job_read(control, &boot, sizeof(boot));
	m.length -= (uint32_t)sizeof(boot);
	environment = calloc(1, m.length + 2);
	if (!environment)
		return -ENOMEM;
	if (ret == 0)
		ret = am_job_read(control, environment, m.length);
	if (ret < 0)
		return ret;
	am_env_console = environment;
	am_job.rank = (int)be32toh(boot.rank);
	am_job.size = (int)be32toh(boot.size);
	am_job.depth = (int)be32toh(boot.depth);
	am_job.id = be64toh(boot.id);
	am_job.nonce = be64toh(boot.nonce);
	*route = be32toh(boot.route) != 0;
	return am_job.size > 0 && am_job.size <= AMUDP_MAX_SPMDPROCS && am_job.rank >= 0 &&
			       am_job.rank < am_job.size
		       ? 0
		       : -EPROTO;
}

static int output_route(uint32_t channel, int target, FILE *stream)
{
	size_t size = am_job_line_size();
	int fd = channel_open(channel, (uint32_t)am_job.rank);

	if (fd < 0)
		return fd;
	fflush(stream);
	dup2(fd, target);
	close(fd);
	/* Log lines go where standard error is now */
	base_log_init();
	/* without memory of ours libc makes it as long as it likes; it is the stream's for good */
	if (size)
		setvbuf(stream, malloc(size), _IOLBF, size);
	else
		setvbuf(stream, NULL, _IONBF, 0);
	return 0;
}

/* What the console says: the code; 1 when it is gone. */
static int end_receive(void)
{
	struct am_job_message m;

	return am_job_receive(control, &m) < 0 || m.kind != AM_JOB_EXIT ? 1 : (int)m.value;
}

/* An answer that is there came before the end: the program goes on behind its collective call. */
static void leave_well(void)
{
	if (!__atomic_load_n(&awaiting, __ATOMIC_ACQUIRE) || !am_job_readable(collective))
		am_job_leave(0);
}

/* False: nothing came until the time was over. */
static bool control_wait(uint64_t ns)
{
	struct pollfd pfd = { .fd = control, .events = POLLIN };
	uint64_t now = base_now(), until = ns == BASE_NEVER ? ns : now + ns;

	for (; now < until; now = base_now()) {
		if (poll(&pfd, 1, (int)base_min((until - now) / BASE_NS_PER_MS + 1, 1000u)) > 0)
			return true;
	}
	return false;
}

/* The end comes from the console: because a rank called AMUDP_SPMDExit, died, or it is gone. */
static void *control_watch(void *unused)
{
	int code = end_receive();

	if (code == 0) {
		am_job_end_heard(leave_well);
		code = control_wait(am_job.exit_ns) ? end_receive() : 0;
	}
	am_job_leave(code);
}

static int watch_start(void)
{
	sigset_t all, old;
	pthread_t thread;
	int ret;

	/* the program's signals are for its own threads */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&thread, NULL, control_watch, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret == 0)
		pthread_detach(thread);
	else
		place_add(" without a thread that waits for its end");
	return -ret;
}

/* One answer of the console, with length bytes; the bundle is polled meanwhile. */
static int answer_take(uint32_t kind, void *dest, size_t length)
{
	struct am_job_message m;
	int ret;

	__atomic_store_n(&awaiting, true, __ATOMIC_RELEASE);
	am_job_wait_fd(collective);
	__atomic_store_n(&awaiting, false, __ATOMIC_RELEASE);
	ret = am_job_receive(collective, &m);
	if (ret == 0 && (m.kind != kind || m.length != length))
		ret = -EPROTO;
	return ret == 0 && length ? am_job_read(collective, dest, length) : ret;
}

static int worker_gather(const void *source, void *dest, size_t len)
{
	int ret = am_job_send(collective, AM_JOB_GATHER, 0, source, (uint32_t)len);

	return ret < 0 ? ret : answer_take(AM_JOB_GATHER, dest, len * (size_t)am_job.size);
}

static int worker_barrier(void)
{
	int ret = am_job_send(collective, AM_JOB_BARRIER, 0, NULL, 0);

	return ret < 0 ? ret : answer_take(AM_JOB_BARRIER, NULL, 0);
}

/* The console answers to all, us too; meanwhile the others may still want replies of ours. */
static void __attribute__((noreturn)) worker_end(int code)
{
	fflush(stdout);
	fflush(stderr);
	am_job_send(control, AM_JOB_EXIT, (uint32_t)code, NULL, 0);
	/* a child of fork has no thread that waits for it, and must not poll for the rank */
	if (getpid() != joined)
		_exit(code);
	am_job_end_await();
}

static const struct am_job_ops worker_ops = {
	.gather = worker_gather,
	.barrier = worker_barrier,
	.end = worker_end,
};

/* One byte at a time: what is behind the line of standard input is the program's. */
static int line_read(int fd, char *hex, size_t size)
{
	size_t n = 0;

	while (n < size - 1 && read(fd, hex + n, 1) == 1 && hex[n] != '\n')
		n++;
	if (!n || hex[n] != '\n')
		return -ENODATA;
	hex[n] = 0;
	return 0;
}

/* A file that others could have written, or read, is none of our console's. */
static int secret_file_read(const char *path, char *hex, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), ret = -errno;
	struct stat st;

	if (fd < 0) {
		place_add(": the file of its secret, %s: %s: do all machines see it "
			  "(SECRET_DIRECTORY)",
			  path, strerror(errno));
		return ret;
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & (S_IRWXG | S_IRWXO))
		ret = -EPERM;
	else
		ret = line_read(fd, hex, size);
	close(fd);
	if (ret < 0)
		place_add(": the file of its secret, %s, is not this user's alone, or has none",
			  path);
	return ret;
}

static int secret_input_read(char *hex, size_t size)
{
	int ret = line_read(STDIN_FILENO, hex, size);

	if (ret < 0)
		place_add(" without its secret, which comes by standard input: does SSH_CMD pass "
			  "that on");
	return ret;
}

static int secret_take(void)
{
	const char *given = getenv(AM_JOB_ENV_SECRET);
	char line[AM_JOB_SECRET_MAX] = "";
	bool by_input = given && !strcmp(given, AM_JOB_BY_INPUT);
	bool by_file = given && given[0] == '/';
	int ret = 0;

	if (by_input)
		ret = secret_input_read(line, sizeof(line));
	if (by_file)
		ret = secret_file_read(given, line, sizeof(line));
	if (by_input || by_file)
		given = line;
	secret = ret == 0 && given ? strtoull(given, NULL, 16) : 0;
	unsetenv(AM_JOB_ENV_SECRET);
	return ret;
}

int am_worker_join(const char *args)
{
	bool route = true;
	int ret = address_parse(args);

	if (ret == 0)
		ret = secret_take();
	if (ret < 0)
		return ret;
	if (am_job.wanted < 0)
		am_job.wanted = (int)am_env_int("SLAVE_RANK", -1);
	control = channel_open(AM_JOB_CONTROL, (uint32_t)am_job.wanted);
	if (control < 0)
		return control;
	ret = boot_receive(&route);
	if (ret < 0)
		return ret;
	ret = address_choose();
	if (ret < 0)
		return ret;
	collective = channel_open(AM_JOB_COLLECTIVE, (uint32_t)am_job.rank);
	if (collective < 0)
		return collective;
	if (route)
		ret = output_route(AM_JOB_STDOUT, STDOUT_FILENO, stdout);
	if (route && ret == 0)
		ret = output_route(AM_JOB_STDERR, STDERR_FILENO, stderr);
	am_job.ops = &worker_ops;
	if (ret == 0)
		ret = joined_mark();
	if (ret == 0)
		ret = am_job_end_prepare();
	return ret < 0 ? ret : watch_start();
}
