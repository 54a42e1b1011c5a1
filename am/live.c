/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The live view: each endpoint keeps its counters in a small file that am-stat maps.
 *
 * The endpoint's own counters stay private and are copied here ten times a second, so that the
 * fast path writes nothing that others read. The serial number makes a torn copy visible.
 */
#include "am/live.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "am/endpoint.h"
#include "am/env.h"
#include "am/stats.h"
#include "base/clock.h"

#define UPDATE_NS (100 * BASE_NS_PER_MS)
#define READ_TRIES 100

uint32_t am_live_rank = UINT32_MAX;

/* A directory of ours that nobody else may write to. */
static bool directory_take(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return false;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & 022);
}

const char *am_live_directory(void)
{
	static char path[256];
	const char *run = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	/* what su has left of another user's is none of ours */
	if (run && *run == '/' && stat(run, &st) == 0 && st.st_uid == geteuid())
		snprintf(path, sizeof(path), "%s/warpsock", run);
	else
		snprintf(path, sizeof(path), "/tmp/warpsock-%u", (unsigned int)geteuid());
	if (!directory_take(path))
		path[0] = 0;
	return path;
}

static void path_of(const struct amudp_ep *ep, char *path, size_t size)
{
	snprintf(path, size, "%s/am-%d-%u", am_live_directory(), (int)getpid(),
		 (unsigned int)ntohs(ep->name.sin_port));
}

void am_live_publish(struct amudp_ep *ep)
{
	char path[300];
	void *p;
	int fd;

	ep->live_due = BASE_NEVER;
	if (!am_env_bool("LIVE", true) || !am_live_directory()[0])
		return;
	path_of(ep, path, sizeof(path));
	/* a file of the name is of a process that is gone, or of another PID namespace: not ours */
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	/*
	 * A reader takes the process of a file that is not locked for dead; so the file has no
	 * length before it is locked. Room that is missing later would be SIGBUS.
	 */
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 &&
	    posix_fallocate(fd, 0, sizeof(struct am_live)) == 0) {
		p = mmap(NULL, sizeof(struct am_live), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p != MAP_FAILED) {
			ep->live = p;
			ep->live_fd = fd;
			ep->live_due = 0;
			return;
		}
	}
	unlink(path);
	close(fd);
}

void am_live_unlink(const struct amudp_ep *ep)
{
	char path[300];

	if (!ep->live)
		return;
	path_of(ep, path, sizeof(path));
	unlink(path);
}

void am_live_unpublish(struct amudp_ep *ep)
{
	if (!ep->live)
		return;
	am_live_unlink(ep);
	munmap(ep->live, sizeof(*ep->live));
	close(ep->live_fd);
	ep->live = NULL;
}

static uint32_t count(const struct base_list *list)
{
	const struct base_list *node;
	uint32_t n = 0;

	for (node = list->next; node != list; node = node->next)
		n++;
	return n;
}

void am_live_update(struct amudp_ep *ep, uint64_t now)
{
	struct am_live *l = ep->live;

	if (now < ep->live_due || !l)
		return;
	ep->live_due = now + UPDATE_NS;
	__atomic_store_n(&l->serial, l->serial | 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE); /* with the reader's acquire */
	l->magic = AM_LIVE_MAGIC;
	l->pid = (uint32_t)getpid();
	l->rank = am_live_rank;
	l->address = ep->name.sin_addr.s_addr;
	l->port = ep->name.sin_port;
	l->depth = (uint16_t)ep->depth;
	l->outstanding = (uint32_t)ep->outstanding;
	l->peers = count(&ep->peers);
	l->time = now;
	l->stats = ep->stats;
	l->xstats = ep->xstats;
	__atomic_store_n(&l->serial, (l->serial | 1) + 1, __ATOMIC_RELEASE);
}

static int copy(int fd, struct am_live *out)
{
	const struct am_live *l = mmap(NULL, sizeof(*l), PROT_READ, MAP_SHARED, fd, 0);
	int i, ret = -EAGAIN;
	uint32_t serial;

	if (l == MAP_FAILED)
		return -errno;
	for (i = 0; i < READ_TRIES && ret < 0; i++) {
		serial = __atomic_load_n(&l->serial, __ATOMIC_ACQUIRE);
		memcpy(out, l, sizeof(*out));
		__atomic_thread_fence(__ATOMIC_ACQUIRE); /* with the writer's release */
		if (!(serial & 1) && serial == __atomic_load_n(&l->serial, __ATOMIC_RELAXED))
			ret = out->magic == AM_LIVE_MAGIC ? 0 : -EINVAL;
	}
	munmap((void *)l, sizeof(*l));
	return ret;
}

/*
 * A process that was killed leaves its file behind, and not its lock. Its number says less: it may
 * be of another PID namespace, or have gone to another process.
 */
static int read_or_remove(const char *path, struct am_live *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret = -EINVAL;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		st.st_size = 0;
	if (st.st_size >= (off_t)sizeof(*out))
		ret = copy(fd, out);
	if (st.st_size && flock(fd, LOCK_SH | LOCK_NB) == 0) {
		unlink(path);
		ret = -ESRCH;
	}
	close(fd);
	return ret;
}

static void line_print(FILE *to, const struct am_live *l)
{
	char rank[16] = "-", name[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &l->address, name, sizeof(name));
	if (l->rank != UINT32_MAX)
		snprintf(rank, sizeof(rank), "%u", l->rank);
	fprintf(to,
		"%7u %5s %15s:%-5u %6u %6u %11" PRIu64 " %11" PRIu64 " %8" PRIu64 " %8" PRIu64
		" %8" PRIu64 " %12" PRIu64 "\n",
		l->pid, rank, name, (unsigned int)ntohs(l->port), l->peers, l->outstanding,
		am_stats_total(l->stats.RequestsSent), am_stats_total(l->stats.RepliesSent),
		am_stats_total(l->stats.RequestsRetransmitted), l->xstats.NeedlessRetransmissions,
		l->stats.ReturnedMessages, l->stats.TotalBytesSent);
}

int AMUDP_DumpLive(void *fp)
{
	const char *directory = am_live_directory();
	DIR *dir = directory[0] ? opendir(directory) : NULL;
	FILE *to = fp ? fp : stdout;
	struct dirent *entry;
	struct am_live l;
	char path[600];
	int n = 0;

	fprintf(to, "%7s %5s %21s %6s %6s %11s %11s %8s %8s %8s %12s\n", "process", "rank",
		"endpoint", "peers", "open", "requests", "replies", "again", "needless", "returned",
		"bytes");
	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "am-", 3))
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		if (read_or_remove(path, &l) < 0)
			continue;
		line_print(to, &l);
		n++;
	}
	if (dir)
		closedir(dir);
	return n;
}
