/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The console of a job: docs/amudp.md, section 6.
 *
 * One loop over all connections. Workers join with the job's secret; when all are there each
 * gets its rank. Collectives wait until every worker has asked. The first worker to call
 * AMUDP_SPMDExit, or to die, ends the job: every worker is told, output is passed on to its end,
 * and stragglers are killed: 5 s later, or, where the code is 0 and workers may come to their own
 * end, after EXITTIMEOUT.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "am/console.h"
#include "am/env.h"
#include "am/job.h"
#include "am/job_collective.h"
#include "am/job_join.h"
#include "am/job_rank.h"
#include "am/spawn.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/rand.h"

#define END_GRACE_NS (5 * BASE_NS_PER_S)
#define REASON_WAIT_MS 500
#define POLL_MS 50
#define STOPPED_NS BASE_NS_PER_S	 /* a turn that takes longer: we were not at work */
#define PATIENCE_NS (10 * BASE_NS_PER_S) /* with workers that do not come, before it is said */
#define DESCRIPTORS_OWN 16		 /* the listener's, those of standard streams, ... */

struct master {
	const struct am_master_config *config;
	struct am_join join;
	uint64_t nonce;
	uint64_t id;
	struct am_rank *workers; /* by rank once all have joined, by arrival before */
	int joined;
	int first; /* is served first: the one behind whoever last kept the others waiting */
	struct am_collective collective;
	int channels; /* of a rank: without those of output where that does not come by us */
	bool parts;   /* of lines are passed on, and not only whole ones */
	bool booted;
	bool ending;
	bool all_gone; /* the ranks are, and the time for what they have left runs */
	int code;
	uint64_t end_at;
	uint64_t patience; /* until when nothing is said of workers that have not come */
	struct pollfd *fds;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = number;
}

/* What is ignored when we begin, as nohup has it for SIGHUP, stays so. */
static void signal_take(int number)
{
	struct sigaction old;

	if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		signal(number, on_signal);
}

static uint64_t end_limit(int code)
{
	if (code)
		return base_now() + END_GRACE_NS;
	return am_job.exit_ns == BASE_NEVER ? BASE_NEVER
					    : base_now() + am_job.exit_ns + END_GRACE_NS;
}

static struct am_job_block *block_create(uint32_t kind, uint32_t value, size_t length)
{
	struct am_job_block *b = am_job_block_create(kind, value, (uint32_t)length);

	if (!b)
		AMUDP_FatalErr("no memory for %zu octets to a rank", length);
	return b;
}

static void end_tell(struct master *m, int code)
{
	struct am_job_block *said = block_create(AM_JOB_EXIT, (uint32_t)code, 0);
	int i;

	m->ending = true;
	m->code = code;
	m->end_at = end_limit(code);
	for (i = 0; i < m->joined; i++)
		am_channel_send(&m->workers[i].channel[AM_JOB_CONTROL], said);
	am_job_block_put(said);
}

static void end_begin(struct master *m, int code)
{
	if (!m->ending)
		end_tell(m, code);
}

/* A rank or the user says so: while the ranks come to a good end, another code goes before it. */
static void end_demand(struct master *m, int code)
{
	if (!m->ending || (m->code == 0 && code))
		end_tell(m, code);
}

static int workers_spawn(struct master *m)
{
	char args[128], secret[64], ip[INET_ADDRSTRLEN];
	char *extra[] = { args, secret, NULL };

	inet_ntop(AF_INET, &m->join.name.sin_addr, ip, sizeof(ip));
	snprintf(args, sizeof(args), "%s=%d,%s:%u,%s", AM_JOB_ENV_ARGS, AMUDP_SilentMode ? 1 : 2,
		 ip, (unsigned int)ntohs(m->join.name.sin_port), ip);
	snprintf(secret, sizeof(secret), "%s=%llx", AM_JOB_ENV_SECRET,
		 (unsigned long long)m->join.secret);
	return m->config->spawn(m->config->size, m->config->argc, m->config->argv, extra);
}

/* Workers on this machine have inherited it; others get what the job asks for. */
static bool is_passed(const struct master *m, const char *entry)
{
	return m->config->spawn == AMUDP_SPMDLocalSpawn || am_env_passes(entry);
}

/* The environment as one block of strings; the caller frees it. */
static char *environment_copy(const struct master *m, size_t *length)
{
	char **e, *block, *at;

	*length = 1;
	for (e = environ; *e; e++)
		*length += is_passed(m, *e) ? strlen(*e) + 1 : 0;
	at = block = calloc(1, *length);
	for (e = environ; block && *e; e++)
		at = is_passed(m, *e) ? stpcpy(at, *e) + 1 : at;
	return block;
}

/* A command of the user's mostly has its own way to bring output home. */
static bool output_routed(const struct am_master_config *config)
{
	if (config->spawn == AMUDP_SPMDCustomSpawn)
		return am_env_bool("CSPAWN_ROUTE_OUTPUT", false);
	return am_env_bool("ROUTE_OUTPUT", true);
}

static void boot_send(struct master *m, int rank, const char *environment, size_t length)
{
	struct am_job_boot boot = { htobe32((uint32_t)rank),
				    htobe32((uint32_t)m->config->size),
				    htobe32((uint32_t)m->config->depth),
				    htobe32(m->channels > AM_JOB_STDOUT),
				    htobe64(m->id),
				    htobe64(m->nonce) };
	struct am_job_block *b = block_create(AM_JOB_BOOT, 0, sizeof(boot) + length);
	uint8_t *data = am_job_block_data(b);

	memcpy(data, &boot, sizeof(boot));
	memcpy(data + sizeof(boot), environment, length);
	am_channel_send(&m->workers[rank].channel[AM_JOB_CONTROL], b);
	am_job_block_put(b);
}

static void job_boot(struct master *m)
{
	size_t length;
	char *environment = environment_copy(m, &length);
	int i;

	am_spawn_end();
	am_ranks_assign(&m->workers, m->config->size);
	m->booted = true;
	for (i = 0; i < m->config->size; i++)
		boot_send(m, i, environment ? environment : "", environment ? length : 1);
	free(environment);
}

static bool is_of_this_host(int fd)
{
	struct sockaddr_in own = { 0 }, peer = { 0 };
	socklen_t len = sizeof(own);

	return getsockname(fd, (struct sockaddr *)&own, &len) == 0 &&
	       getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
	       own.sin_addr.s_addr == peer.sin_addr.s_addr;
}

/* The process numbers of other hosts say nothing: one of our own may have the same. */
static pid_t child_of(const struct master *m, int fd, const struct am_job_hello *hello)
{
	amudp_spawnfn_t spawn = m->config->spawn;
	bool here = (spawn != AMUDP_SPMDSshSpawn && spawn != AMUDP_SPMDCustomSpawn) ||
		    is_of_this_host(fd);
	siginfo_t info;

	if (here && waitid(P_PID, (id_t)hello->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
		return (pid_t)hello->pid;
	return 0;
}

static void worker_join(struct master *m, int fd, const struct am_job_hello *hello)
{
	struct am_rank *w = &m->workers[m->joined];

	if (m->joined == m->config->size || m->ending) {
		close(fd);
		return;
	}
	am_rank_init(w, fd, hello);
	w->child = child_of(m, fd, hello);
	m->joined++;
	if (m->joined == m->config->size)
		job_boot(m);
}

static void channel_join(struct master *m, int fd, const struct am_job_hello *hello)
{
	if (!m->booted || hello->rank >= (uint32_t)m->config->size ||
	    hello->channel >= (uint32_t)m->channels ||
	    !am_rank_may_join(&m->workers[hello->rank], hello->channel))
		close(fd);
	else
		am_rank_join(&m->workers[hello->rank], hello->channel, fd, m->parts);
}

/* The rest wait for the next turn. */
static void arrivals_serve(struct master *m)
{
	struct am_job_hello hello;
	int i, fd = 0;

	for (i = 0; i < AM_JOIN_PENDING && fd >= 0; i++) {
		fd = am_join_next(&m->join, &hello);
		if (fd >= 0 && hello.channel == AM_JOB_CONTROL)
			worker_join(m, fd, &hello);
		else if (fd >= 0)
			channel_join(m, fd, &hello);
	}
	if (fd < 0 && fd != -EAGAIN && !m->ending) {
		am_console_say("the console can take no connection: %s; the job ends",
			       strerror(-fd));
		end_begin(m, 1);
	}
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

static void worker_lost(struct master *m, int rank)
{
	struct am_rank *w = &m->workers[rank];
	char reason[128];
	int code;

	/* its output may wait to be accepted still; workers are sorted at boot */
	if (m->booted)
		arrivals_serve(m);
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
	end_begin(m, code > 0 ? code : 1);
}

/* A rank's word has no data. */
static void control_read(struct master *m, int rank)
{
	struct am_channel *c = &m->workers[rank].channel[AM_JOB_CONTROL];
	int ret = am_channel_read_head(c);

	if (ret == 0)
		ret = c->head.length ? -EPROTO : am_channel_read_data(c, NULL);
	if (ret == 0 && c->head.kind == AM_JOB_EXIT)
		end_demand(m, (int)c->head.value);
	if (ret < 0 && ret != -EAGAIN)
		worker_lost(m, rank);
}

static void collective_answer(struct master *m, struct am_job_block *answer)
{
	int i;

	for (i = 0; i < m->config->size; i++) {
		struct am_rank *w = &m->workers[i];

		w->entered = false;
		w->channel[AM_JOB_COLLECTIVE].deaf = false;
		am_channel_send(&w->channel[AM_JOB_COLLECTIVE], answer);
	}
	am_job_block_put(answer);
}

static int collective_take(struct master *m, int rank)
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
static void collective_lost(struct master *m, int rank)
{
	struct am_rank *w = &m->workers[rank];

	am_channel_close(&w->channel[AM_JOB_COLLECTIVE]);
	if (!w->gone)
		control_read(m, rank);
	if (!w->gone && !m->ending)
		worker_lost(m, rank);
}

static void collective_read(struct master *m, int rank)
{
	struct am_channel *c = &m->workers[rank].channel[AM_JOB_COLLECTIVE];
	int ret = collective_take(m, rank);
	struct am_job_block *answer;

	if (ret == -EAGAIN)
		return;
	if (ret == -EMSGSIZE || ret == -ENOMEM || ret == -EPROTO) {
		c->deaf = true;
		am_console_say("rank %d calls a collective %s; the job ends", rank,
			       ret == -EPROTO	? "that the others do not"
			       : ret == -ENOMEM ? "for whose data there is no memory"
						: "of more than 1 GiB in all");
		end_begin(m, 1);
		return;
	}
	if (ret < 0) {
		collective_lost(m, rank);
		return;
	}
	/* until the others have come it has nothing to say */
	c->deaf = true;
	answer = am_collective_leave(&m->collective);
	if (answer)
		collective_answer(m, answer);
}

static void channel_serve(struct master *m, int rank, int channel)
{
	struct am_channel *c = &m->workers[rank].channel[channel];

	if (c->waiting)
		am_channel_flush(c);
	else if (channel == AM_JOB_CONTROL)
		control_read(m, rank);
	else
		collective_read(m, rank);
}

/* Who keeps the others waiting has had its turn. */
static void output_serve(struct master *m, int rank, int channel)
{
	struct am_console *c = &m->workers[rank].console[channel - AM_JOB_STDOUT];

	if (!am_console_takes(c))
		return;
	am_console_forward(c);
	if (c->due)
		m->first = (rank + 1) % m->config->size;
}

/*
 * A child of a rank may keep the rank's connections open behind it, so their end is not all that
 * tells of the rank's.
 */
#define LAST_WORDS 2 /* that a rank says before it ends */

static void dead_check(struct master *m)
{
	siginfo_t info = { .si_pid = 0 };
	int i;

	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
		return;
	for (i = 0; i < m->joined; i++) {
		if (m->workers[i].child == info.si_pid && !m->workers[i].gone) {
			for (int n = 0; n < LAST_WORDS && !m->workers[i].gone; n++)
				control_read(m, i);
			if (!m->workers[i].gone)
				worker_lost(m, i);
			return;
		}
	}
	/* a launcher, or a rank whose end is known */
	waitpid(info.si_pid, NULL, WNOHANG);
}

/* Those that a spawn function started, until all have joined. */
static void children_check(struct master *m)
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
	end_begin(m, WIFSIGNALED(status)   ? 128 + WTERMSIG(status)
		     : WEXITSTATUS(status) ? WEXITSTATUS(status)
					   : 1);
}

/* True while somebody may still have something to say. */
static bool anyone_left(const struct master *m)
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

/* Once all are gone: what they have left behind, a child say, has a while for its last words. */
static void gone_check(struct master *m)
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

/* Those that did not end when told; only processes that are children of ours. */
static void stragglers_kill(struct master *m)
{
	int i, status;

	for (i = 0; i < m->joined; i++) {
		pid_t child = m->workers[i].child;

		if (child && waitpid(child, &status, WNOHANG) == 0)
			kill(child, SIGKILL);
	}
}

static int poll_set(struct master *m)
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

static void worker_serve(struct master *m, int rank, const struct pollfd *fds)
{
	int c;

	/* output before the end, so that last words are heard */
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
static void output_resume(struct master *m, uint64_t since)
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

static void master_serve(struct master *m)
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
		arrivals_serve(m);
}

/*
 * What all connections of all workers need, and the strangers' whom the console lets wait. poll()
 * takes no more than there may be, either.
 */
static rlim_t descriptors_needed(const struct master *m)
{
	return (rlim_t)m->config->size * (rlim_t)m->channels + AM_JOIN_PENDING + DESCRIPTORS_OWN;
}

static void __attribute__((noreturn)) master_exit(int code)
{
	am_console_drain();
	exit(code);
}

static void descriptors_check(const struct master *m)
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
static void descriptors_raise(const struct master *m)
{
	rlim_t needed = descriptors_needed(m);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || needed <= limit.rlim_cur)
		return;
	limit.rlim_cur = needed;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Once: a firewall, or a launcher that waits, would keep the user waiting for nothing. */
static void missing_tell(struct master *m)
{
	char ip[INET_ADDRSTRLEN];

	if (m->booted || m->ending || base_now() < m->patience)
		return;
	m->patience = BASE_NEVER;
	inet_ntop(AF_INET, &m->join.name.sin_addr, ip, sizeof(ip));
	am_console_say("%d of %d workers have joined at %s:%u in %d s; the console waits for the "
		       "others",
		       m->joined, m->config->size, ip, (unsigned int)ntohs(m->join.name.sin_port),
		       (int)(PATIENCE_NS / BASE_NS_PER_S));
}

static void master_init(struct master *m)
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
	struct master m = { .config = config };
	int ret, spawned;

	master_init(&m);
	descriptors_check(&m);
	ret = am_join_open(&m.join, config->address);
	if (ret < 0)
		AMUDP_FatalErr("the console cannot listen: %s", strerror(-ret));
	m.id = (uint64_t)ntohl(m.join.name.sin_addr.s_addr) << 32 | ((uint32_t)getpid() & 0xFFFF);
	atexit(am_spawn_end);
	spawned = workers_spawn(&m);
	/* only now: the workers would have it so, too */
	signal(SIGPIPE, SIG_IGN);
	if (!spawned) {
		am_console_say("the workers cannot be started");
		am_spawn_cancel();
		master_exit(1);
	}
	descriptors_raise(&m);
	m.patience = base_now() + PATIENCE_NS;
	while (!m.ending || (anyone_left(&m) && base_now() < m.end_at)) {
		master_serve(&m);
		if (!m.booted && !m.ending)
			children_check(&m);
		if (m.booted)
			dead_check(&m);
		if (m.ending)
			gone_check(&m);
		missing_tell(&m);
		if (interrupted)
			end_demand(&m, 128 + interrupted);
	}
	if (!m.booted)
		am_spawn_cancel();
	stragglers_kill(&m);
	am_console_drain();
	if (!m.code && am_console_failed())
		m.code = 1;
	master_exit(m.code & 0xFF);
}
