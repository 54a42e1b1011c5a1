/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The console of a job: docs/amudp.md, section 6.
 *
 * One loop over all connections, from the first worker's (job_boot.c) to the end of the last rank
 * (job_watch.c). Collectives wait until every rank has asked. Output is passed on to its end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "am/env.h"
#include "am/job_master.h"
#include "am/spawn.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/rand.h"

#define POLL_MS 50
#define STOPPED_NS BASE_NS_PER_S /* a turn that takes longer: we were not at work */
#define DESCRIPTORS_OWN 16	 /* the listener's, those of standard streams, ... */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = number;
}

/* A signal that is ignored when we begin, as SIGHUP under nohup, stays so. */
static void signal_take(int number)
{
	struct sigaction old;

	if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		signal(number, on_signal);
}

/* A command of the user's mostly has its own way to bring output home. */
static bool output_routed(const struct am_master_config *config)
{
	if (config->spawn == AMUDP_SPMDCustomSpawn)
		return am_env_bool("CSPAWN_ROUTE_OUTPUT", false);
	return am_env_bool("ROUTE_OUTPUT", true);
}

static void collective_answer(struct am_master *m, struct am_job_block *answer)
{
	int i;

	for (i = 0; i < m->config->size; i++) {
		struct am_rank *w = &m->workers[i];

		w->entered = false;
		w->channel[AM_JOB_COLLECTIVE].paused = false;
		am_channel_send(&w->channel[AM_JOB_COLLECTIVE], answer);
	}
	am_job_block_put(answer);
}

static int collective_take(struct am_master *m, int rank)
{
	struct am_rank *w = &m->workers[rank];
	struct am_channel *c = &w->channel[AM_JOB_COLLECTIVE];
	int ret = am_channel_read_head(c);

	if (ret == 0 && !w->entered) {
		ret = am_collective_enter(&m->collective, &c->head);
		w->entered = ret == 0;
	}
	return ret < 0 ? ret : am_channel_read_data(c, am_collective_place(&m->collective, rank));
}

/* It can meet the others no more; what it has said before goes first. */
static void collective_lost(struct am_master *m, int rank)
{
	struct am_rank *w = &m->workers[rank];

	am_channel_close(&w->channel[AM_JOB_COLLECTIVE]);
	if (!w->gone)
		am_watch_control(m, rank);
	if (!w->gone && !m->ending)
		am_watch_lost(m, rank);
}

static void collective_read(struct am_master *m, int rank)
{
	struct am_channel *c = &m->workers[rank].channel[AM_JOB_COLLECTIVE];
	int ret = collective_take(m, rank);
	struct am_job_block *answer;

	if (ret == -EAGAIN)
		return;
	if (ret == -EMSGSIZE || ret == -ENOMEM || ret == -EPROTO) {
		c->paused = true;
		am_console_say("rank %d calls a collective %s; the job ends", rank,
			       ret == -EPROTO	? "that the others do not"
			       : ret == -ENOMEM ? "for whose data there is no memory"
						: "of more than 1 GiB in all");
		am_watch_end(m, 1);
		return;
	}
	if (ret < 0) {
		collective_lost(m, rank);
		return;
	}
	/* until the others have come it has nothing to say */
	c->paused = true;
	answer = am_collective_leave(&m->collective);
	if (answer)
		collective_answer(m, answer);
}

static void channel_serve(struct am_master *m, int rank, int channel)
{
	struct am_channel *c = &m->workers[rank].channel[channel];

	if (c->waiting)
		am_channel_flush(c);
	else if (channel == AM_JOB_CONTROL)
		am_watch_control(m, rank);
	else
		collective_read(m, rank);
}

/* A rank whose output has made the others wait is served last in the next turn. */
static void output_serve(struct am_master *m, int rank, int channel)
{
	struct am_console *c = &m->workers[rank].console[channel - AM_JOB_STDOUT];

	if (!am_console_takes(c))
		return;
	am_console_forward(c);
	if (c->due)
		m->first = (rank + 1) % m->config->size;
}

static int poll_set(struct am_master *m)
{
	int i, c, n = 0;

	for (i = 0; i < m->joined; i++) {
		for (c = 0; c < m->channels; c++)
			m->fds[n++] = am_rank_poll(&m->workers[i], c);
	}
	for (i = 0; i < AM_CONSOLE_TARGETS; i++)
		m->fds[n++] = (struct pollfd){ am_console_waits(i), POLLOUT, 0 };
	return n + am_join_poll(&m->join, m->fds + n);
}

static void worker_serve(struct am_master *m, int rank, const struct pollfd *fds)
{
	int c;

	/* output before the end, so that a rank's last lines are printed */
	for (c = m->channels - 1; c >= 0; c--) {
		/* what was served before can have closed it, or begun to write where it would */
		if (fds[c].revents && fds[c].fd == am_rank_poll(&m->workers[rank], c).fd) {
			if (c < AM_JOB_STDOUT)
				channel_serve(m, rank, c);
			else
				output_serve(m, rank, c);
		}
	}
}

/* The time that the reader of our output takes, or that we were stopped, is not the ranks'. */
static void output_resume(struct am_master *m, uint64_t since)
{
	bool waits = false;
	uint64_t took;
	int i;

	for (i = 0; i < AM_CONSOLE_TARGETS; i++) {
		waits |= am_console_waits(i) >= 0;
		am_console_resume(i);
	}
	took = base_now() - since;
	if ((waits || took > STOPPED_NS) && m->ending && m->end_at != BASE_NEVER)
		m->end_at += took;
}

static void master_serve(struct am_master *m)
{
	int joined = m->joined, first = m->first, i, n = poll_set(m);
	uint64_t since = base_now();
	bool any = poll(m->fds, (nfds_t)n, POLL_MS) > 0;

	output_resume(m, since);
	for (i = 0; any && i < joined; i++) {
		int rank = (first + i) % joined;

		worker_serve(m, rank, m->fds + (ptrdiff_t)rank * m->channels);
	}
	if (any)
		am_watch_admit(m);
}

/*
 * For all connections of all workers, and those that have not said the secret yet. poll() takes no
 * more than there may be, either.
 */
static rlim_t descriptors_needed(const struct am_master *m)
{
	return (rlim_t)m->config->size * (rlim_t)m->channels + AM_JOIN_PENDING + DESCRIPTORS_OWN;
}

static void __attribute__((noreturn)) master_exit(int code)
{
	am_console_drain();
	exit(code);
}

static void descriptors_check(const struct am_master *m)
{
	rlim_t needed = descriptors_needed(m);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || needed <= limit.rlim_max)
		return;
	am_console_say("the console of a job of %d ranks needs %llu descriptors, and the limit is "
		       "%llu: "
		       "ulimit -Hn",
		       m->config->size, (unsigned long long)needed,
		       (unsigned long long)limit.rlim_max);
	master_exit(1);
}

/* Only once the workers are started: their limit is as it was. */
static void descriptors_raise(const struct am_master *m)
{
	rlim_t needed = descriptors_needed(m);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || needed <= limit.rlim_cur)
		return;
	limit.rlim_cur = needed;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void master_init(struct am_master *m)
{
	int size = m->config->size;

	m->channels = output_routed(m->config) ? AM_JOB_CHANNELS : AM_JOB_STDOUT;
	m->parts = am_job_line_size() == 0;
	m->workers = calloc((size_t)size, sizeof(*m->workers));
	m->fds = calloc((size_t)size * (size_t)m->channels + AM_CONSOLE_TARGETS + AM_JOIN_POLLED,
			sizeof(*m->fds));
	m->collective.size = size;
	if (am_job_end_prepare() < 0 || !m->workers || !m->fds ||
	    base_rand_u64(&m->join.secret) < 0 || base_rand_u64(&m->nonce) < 0)
		AMUDP_FatalErr("no memory for %d workers", size);
	am_console_init(&interrupted);
	signal_take(SIGINT);
	signal_take(SIGTERM);
	signal_take(SIGHUP);
	/* how a process ended is told only to who does not ignore it */
	signal(SIGCHLD, SIG_DFL);
}

void am_master_run(const struct am_master_config *config)
{
	struct am_master m = { .config = config };
	bool spawned;
	int ret;

	master_init(&m);
	descriptors_check(&m);
	ret = am_join_open(&m.join, config->address);
	if (ret < 0)
		AMUDP_FatalErr("the console cannot listen: %s", strerror(-ret));
	m.id = (uint64_t)ntohl(m.join.name.sin_addr.s_addr) << 32 | ((uint32_t)getpid() & 0xFFFF);
	atexit(am_spawn_end);
	spawned = am_boot_spawn(&m);
	/* only now: the workers would have it so, too */
	signal(SIGPIPE, SIG_IGN);
	if (!spawned) {
		am_console_say("the workers cannot be started");
		am_spawn_cancel();
		master_exit(1);
	}
	descriptors_raise(&m);
	while (!m.ending || (am_watch_anyone_left(&m) && base_now() < m.end_at)) {
		master_serve(&m);
		am_watch_look(&m);
		am_boot_missing_tell(&m);
		if (interrupted)
			am_watch_exit(&m, 128 + interrupted);
	}
	if (!m.booted)
		am_spawn_cancel();
	am_watch_kill(&m);
	am_console_drain();
	if (!m.code && am_console_failed())
		m.code = 1;
	master_exit(m.code & 0xFF);
}
