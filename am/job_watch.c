/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The end of a job at its console: which ranks have ended, and how, and what that means for the
 * others.
 *
 * The first rank to call AMUDP_SPMDExit, or to die, ends the job: every rank is told. Those that do
 * not end are killed: 5 s later, or, where the code is 0 and ranks may come to their own end, after
 * EXITTIMEOUT.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "am/job_master.h"
#include "am/spawn.h"
#include "base/bits.h"
#include "base/clock.h"

#define END_GRACE_NS (5 * BASE_NS_PER_S)
#define REASON_WAIT_MS 500

static uint64_t end_limit(int code)
{
	if (code)
		return base_now() + END_GRACE_NS;
	return am_job.exit_ns == BASE_NEVER ? BASE_NEVER
					    : base_now() + am_job.exit_ns + END_GRACE_NS;
}

static void end_send(struct am_master *m, int code)
{
	struct am_job_block *frame = am_master_block(AM_JOB_EXIT, (uint32_t)code, 0);
	int i;

	m->ending = true;
	m->code = code;
	m->end_at = end_limit(code);
	for (i = 0; i < m->joined; i++)
		am_channel_send(&m->workers[i].channel[AM_JOB_CONTROL], frame);
	am_job_block_put(frame);
}

void am_watch_end(struct am_master *m, int code)
{
	if (!m->ending)
		end_send(m, code);
}

void am_watch_exit(struct am_master *m, int code)
{
	if (!m->ending || (m->code == 0 && code))
		end_send(m, code);
}

void am_watch_admit(struct am_master *m)
{
	int ret = am_boot_arrivals(m);

	if (ret == 0 || m->ending)
		return;
	am_console_say("the console can take no connection: %s; the job ends", strerror(-ret));
	am_watch_end(m, 1);
}

/* How a process of ours ended, as a shell would say it; -1: not known. */
static int status_of(pid_t child, char *text, size_t size)
{
	int status, i;

	snprintf(text, size, "closed its connection");
	for (i = 0; child && i < REASON_WAIT_MS; i++) {
		pid_t got = waitpid(child, &status, WNOHANG);

		if (got > 0 && WIFSIGNALED(status)) {
			snprintf(text, size, "was killed by signal %d (%s)", WTERMSIG(status),
				 strsignal(WTERMSIG(status)));
			return 128 + WTERMSIG(status);
		}
		if (got > 0) {
			snprintf(text, size, "exited with code %d without AMUDP_SPMDExit",
				 WEXITSTATUS(status));
			return WEXITSTATUS(status);
		}
		usleep(1000);
	}
	return -1;
}

void am_watch_lost(struct am_master *m, int rank)
{
	struct am_rank *w = &m->workers[rank];
	char reason[128];
	int code;

	/* its output may wait to be accepted still; ranks are known from the boot on */
	if (m->booted)
		am_watch_admit(m);
	w->gone = true;
	/* one that lives ends when it is closed: that is not the reason */
	code = m->ending ? 0 : status_of(w->child, reason, sizeof(reason));
	am_channel_close(&w->channel[AM_JOB_CONTROL]);
	if (m->ending)
		return;
	if (m->booted)
		am_console_say("rank %d (process %u) %s; the job ends", rank, w->pid, reason);
	else
		am_console_say("a worker (process %u) %s before the job began", w->pid, reason);
	am_watch_end(m, code > 0 ? code : 1);
}

/* A rank's frame has no data here. */
void am_watch_control(struct am_master *m, int rank)
{
	struct am_channel *c = &m->workers[rank].channel[AM_JOB_CONTROL];
	int ret = am_channel_read_head(c);

	if (ret == 0)
		ret = c->head.length ? -EPROTO : am_channel_read_data(c, NULL);
	if (ret == 0 && c->head.kind == AM_JOB_EXIT)
		am_watch_exit(m, (int)c->head.value);
	if (ret < 0 && ret != -EAGAIN)
		am_watch_lost(m, rank);
}

/*
 * A child of a rank may keep the rank's connections open behind it, so their end is not all that
 * tells of the rank's.
 */
#define LAST_FRAMES 2 /* that a rank may have sent before it ended */

static void dead_check(struct am_master *m)
{
	siginfo_t info = { .si_pid = 0 };
	int i;

	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
		return;
	for (i = 0; i < m->joined; i++) {
		if (m->workers[i].child == info.si_pid && !m->workers[i].gone) {
			for (int n = 0; n < LAST_FRAMES && !m->workers[i].gone; n++)
				am_watch_control(m, i);
			if (!m->workers[i].gone)
				am_watch_lost(m, i);
			return;
		}
	}
	/* a launcher, or a rank whose end is known */
	waitpid(info.si_pid, NULL, WNOHANG);
}

/* Children that a spawn function started, until all workers have joined. */
static void children_check(struct am_master *m)
{
	int status, i;
	pid_t pid = waitpid(-1, &status, WNOHANG);

	/* a shell that becomes the console has had children of its own */
	if (pid <= 0 || !am_spawn_started(pid))
		return;
	for (i = 0; i < m->joined; i++) {
		if (m->workers[i].child == pid)
			break;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && i == m->joined &&
	    m->config->spawn != AMUDP_SPMDLocalSpawn)
		return; /* a launcher may end before its workers join */
	if (WIFSIGNALED(status))
		am_console_say("a worker was killed by signal %d before the job began",
			       WTERMSIG(status));
	else
		am_console_say("a worker ended with code %d before the job began",
			       WEXITSTATUS(status));
	am_watch_end(m, WIFSIGNALED(status)   ? 128 + WTERMSIG(status)
			: WEXITSTATUS(status) ? WEXITSTATUS(status)
					      : 1);
}

bool am_watch_anyone_left(const struct am_master *m)
{
	int i;

	for (i = 0; i < m->joined; i++) {
		const struct am_rank *w = &m->workers[i];

		if (am_rank_is_open(w, AM_JOB_CONTROL) || am_rank_is_open(w, AM_JOB_STDOUT) ||
		    am_rank_is_open(w, AM_JOB_STDERR))
			return true;
	}
	return false;
}

/* Once all are gone: what they have left behind, a child say, has a while for its output. */
static void gone_check(struct am_master *m)
{
	int i;

	for (i = 0; i < m->joined; i++) {
		if (!m->workers[i].gone)
			return;
	}
	if (!m->all_gone)
		m->end_at = base_min(m->end_at, base_now() + END_GRACE_NS);
	m->all_gone = true;
}

void am_watch_look(struct am_master *m)
{
	if (!m->booted && !m->ending)
		children_check(m);
	if (m->booted)
		dead_check(m);
	if (m->ending)
		gone_check(m);
}

void am_watch_kill(struct am_master *m)
{
	int i, status;

	for (i = 0; i < m->joined; i++) {
		pid_t child = m->workers[i].child;

		if (child && waitpid(child, &status, WNOHANG) == 0)
			kill(child, SIGKILL);
	}
}
