/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Streams used by several threads at once: readers and writers at both ends of one connection, and
 * an end that is shut while they are inside. Run also under ThreadSanitizer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "stream/stream.h"
#include "tests/tap.h"

enum { SECONDS = 100, MOST = 4 };

static struct stream *ends[2];
static atomic_long sent[2], got[2], sums[2][2]; /* by the end that sent */
static atomic_long each;
static atomic_int broken;
static time_t begin;

static bool is_late(void)
{
	return time(NULL) - begin > SECONDS;
}

static void tcp(int fd[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&a, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&a, &len) ||
	    connect(fd[0], (struct sockaddr *)&a, len))
		exit(1);
	fd[1] = accept(listener, NULL, NULL);
	close(listener);
}

static void open_ends(uint32_t without)
{
	struct stream_param param = { .opts = { .mode = CONFIG_USE_DDP, .ring = 65536 },
				      .without = without };
	int fd[2];

	tcp(fd);
	for (int i = 0; i < 2; i++) {
		param.initiator = !i;
		if (stream_attach(fd[i], &param, &ends[i]))
			exit(1);
		sent[i] = got[i] = sums[i][0] = sums[i][1] = 0;
	}
	while (!(stream_levels(ends[0], NULL) & stream_levels(ends[1], NULL) & STREAM_WRITABLE)) {
		stream_progress(ends[0]);
		stream_progress(ends[1]);
		if (is_late())
			exit(1);
	}
}

static void close_ends(void)
{
	for (int i = 0; i < 2; i++) {
		close(stream_fd(ends[i]));
		stream_destroy(ends[i]);
	}
}

/* Another thread may take in what this one waits for: nothing rings for it here, so it looks */
static void sleep_on(struct stream *s, unsigned int level)
{
	struct pollfd p = { .fd = stream_fd(s), .events = stream_wait_events(s, level) };

	poll(&p, 1, 1);
	stream_progress(s);
}

static void *writer(void *arg)
{
	int end = (int)(intptr_t)arg;
	char buf[3000];

	while (!is_late()) {
		long at = atomic_fetch_add(&sent[end], sizeof(buf));
		struct iovec iov = { buf, sizeof(buf) };

		if (at >= each)
			break;
		for (size_t i = 0; i < sizeof(buf); i++)
			sums[end][0] += buf[i] = (char)((at + (long)i) % 101);
		while (iov.iov_len && !is_late()) {
			ssize_t n = stream_send(ends[end], &iov, 1);

			if (n == -EAGAIN)
				sleep_on(ends[end], STREAM_WRITABLE);
			else if (n < 0)
				return NULL;
			iov.iov_base = (char *)iov.iov_base + (n > 0 ? n : 0);
			iov.iov_len -= (size_t)(n > 0 ? n : 0);
		}
	}
	return NULL;
}

static void *reader(void *arg)
{
	int end = (int)(intptr_t)arg, from = !end;
	char buf[5000];

	while (got[from] < each && !is_late()) {
		struct iovec iov = { buf, sizeof(buf) };
		ssize_t n = stream_recv(ends[end], &iov, 1, 0);

		if (n == -EAGAIN)
			sleep_on(ends[end], STREAM_READABLE);
		broken += n < 0 && n != -EAGAIN;
		if (n <= 0 && n != -EAGAIN)
			return NULL;
		for (ssize_t i = 0; i < n; i++)
			sums[from][1] += buf[i];
		got[from] += n > 0 ? n : 0;
	}
	return NULL;
}

static void *looker(void *arg)
{
	struct stream *s = ends[(intptr_t)arg];
	struct stream_edges edges;
	struct stream_stats stats;

	while ((got[0] < each || got[1] < each) && !is_late()) {
		stream_levels(s, &edges);
		stream_readable(s);
		stream_owes(s);
		stream_stats(s, &stats);
		broken += stats.broken;
		poll(NULL, 0, 1);
	}
	return NULL;
}

/* @n of each kind at each end */
static void start(pthread_t *threads, int *count, int n, void *(*fn)(void *))
{
	for (int i = 0; i < 2 * n; i++)
		if (pthread_create(&threads[(*count)++], NULL, fn, (void *)(intptr_t)(i % 2)))
			exit(1);
}

static void exchange(uint32_t without, int readers, int writers, const char *name)
{
	pthread_t threads[4 * MOST];
	int n = 0;

	each = 600 * 3000;
	open_ends(without);
	start(threads, &n, writers, writer);
	start(threads, &n, readers, reader);
	start(threads, &n, 1, looker);
	while (n)
		pthread_join(threads[--n], NULL);
	tap_case(got[0] == each && got[1] == each && sums[0][0] == sums[0][1] &&
			 sums[1][0] == sums[1][1],
		 name);
	close_ends();
}

/* A writer at each end, two readers, somebody who looks */
static int crowd(pthread_t *threads, uint32_t without)
{
	int n = 0;

	each = 1l << 40;
	broken = 0;
	open_ends(without);
	start(threads, &n, 1, writer);
	start(threads, &n, 2, reader);
	start(threads, &n, 1, looker);
	poll(NULL, 0, 50);
	return n;
}

/* What was sent arrives, then the end: no octet may follow the word that says it */
static bool shut_while_inside(uint32_t without)
{
	pthread_t threads[4 * MOST];
	int n = crowd(threads, without);

	stream_shutdown(ends[0], SHUT_RDWR);
	/* Those who look, the last ones, go last */
	for (int i = 0; i < n; i++) {
		if (i == n - 2)
			each = 0;
		pthread_join(threads[i], NULL);
	}
	close_ends();
	return !broken && !is_late();
}

static void close_while_inside(uint32_t without)
{
	pthread_t threads[4 * MOST];
	int n = crowd(threads, without);
	bool safe;

	stream_shutdown(ends[0], SHUT_RDWR);
	stream_close(ends[0]);
	for (int i = 0; i < 100 && stream_close_more(ends[0], &safe) == -EAGAIN; i++)
		poll(NULL, 0, 1);
	shutdown(stream_fd(ends[0]), SHUT_RDWR);
	each = 0;
	while (n)
		pthread_join(threads[--n], NULL);
	tap_case(!is_late(), "an end is closed under its readers and writers");
	close_ends();
}

int main(void)
{
	bool good = true;

	begin = time(NULL);
	exchange(0, 1, 1, "a reader and a writer at each end");
	exchange(0, 2, 2, "two readers and two writers at each end");
	exchange(UINT32_MAX, 1, 1, "a reader and a writer at each end, as with rsockets");
	exchange(UINT32_MAX, 2, 2, "two of each, as with rsockets");
	for (int i = 0; i < 40; i++)
		good &= shut_while_inside(i % 2 ? UINT32_MAX : 0);
	tap_case(good, "an end is shut under its readers and writers");
	close_while_inside(0);
	close_while_inside(UINT32_MAX);
	return tap_finish();
}
