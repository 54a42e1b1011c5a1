/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The beginning of a job at its console: workers are started and join, and when all are there each
 * gets its rank, the nonce and its variables.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "am/env.h"
#include "am/job_master.h"
#include "am/spawn.h"
#include "base/bits.h"
#include "base/clock.h"

#define MISSING_NS (10 * BASE_NS_PER_S) /* until workers that have not joined are reported */

struct am_job_block *am_master_block(uint32_t kind, uint32_t value, size_t length)
{
	struct am_job_block *b = am_job_block_create(kind, value, (uint32_t)length);

	if (!b)
		AMUDP_FatalErr("no memory for %zu bytes to a rank", length);
	return b;
}

bool am_boot_spawn(struct am_master *m)
{
	char args[128], secret[64], ip[INET_ADDRSTRLEN];
	char *extra[] = { args, secret, NULL };
	bool spawned;

	inet_ntop(AF_INET, &m->join.name.sin_addr, ip, sizeof(ip));
	snprintf(args, sizeof(args), "%s=%d,%s:%u,%s", AM_JOB_ENV_ARGS, AMUDP_SilentMode ? 1 : 2,
		 ip, (unsigned int)ntohs(m->join.name.sin_port), ip);
	snprintf(secret, sizeof(secret), "%s=%llx", AM_JOB_ENV_SECRET,
		 (unsigned long long)m->join.secret);
	spawned = m->config->spawn(m->config->size, m->config->argc, m->config->argv, extra) != 0;
	m->missing_at = base_now() + MISSING_NS;
	return spawned;
}

/* Workers on this machine have inherited it; others get what the job asks for. */
static bool is_passed(const struct am_master *m, const char *entry)
{
	return m->config->spawn == AMUDP_SPMDLocalSpawn || am_env_passes(entry);
}

/* The environment as one block of strings; the caller frees it. */
static char *environment_copy(const struct am_master *m, size_t *length)
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

static void boot_send(struct am_master *m, int rank, const char *environment, size_t length)
{
	struct am_job_boot boot = { htobe32((uint32_t)rank),
				    htobe32((uint32_t)m->config->size),
				    htobe32((uint32_t)m->config->depth),
				    htobe32(m->channels > AM_JOB_STDOUT),
				    htobe64(m->id),
				    htobe64(m->nonce) };
	struct am_job_block *b = am_master_block(AM_JOB_BOOT, 0, sizeof(boot) + length);
	uint8_t *data = am_job_block_data(b);

	memcpy(data, &boot, sizeof(boot));
	memcpy(data + sizeof(boot), environment, length);
	am_channel_send(&m->workers[rank].channel[AM_JOB_CONTROL], b);
	am_job_block_put(b);
}

static void boot_all(struct am_master *m)
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
static pid_t child_of(const struct am_master *m, int fd, const struct am_job_hello *hello)
{
	amudp_spawnfn_t spawn = m->config->spawn;
	bool here = (spawn != AMUDP_SPMDSshSpawn && spawn != AMUDP_SPMDCustomSpawn) ||
		    is_of_this_host(fd);
	siginfo_t info;

	if (here && waitid(P_PID, (id_t)hello->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
		return (pid_t)hello->pid;
	return 0;
}

static void worker_join(struct am_master *m, int fd, const struct am_job_hello *hello)
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
		boot_all(m);
}

static void channel_join(struct am_master *m, int fd, const struct am_job_hello *hello)
{
	if (!m->booted || hello->rank >= (uint32_t)m->config->size ||
	    hello->channel >= (uint32_t)m->channels ||
	    !am_rank_may_join(&m->workers[hello->rank], hello->channel))
		close(fd);
	else
		am_rank_join(&m->workers[hello->rank], hello->channel, fd, m->parts);
}

int am_boot_arrivals(struct am_master *m)
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
	return fd < 0 && fd != -EAGAIN ? fd : 0;
}

/* Once: a firewall, or a launcher that waits, would keep the user waiting for nothing. */
void am_boot_missing_tell(struct am_master *m)
{
	char ip[INET_ADDRSTRLEN];

	if (m->booted || m->ending || base_now() < m->missing_at)
		return;
	m->missing_at = BASE_NEVER;
	inet_ntop(AF_INET, &m->join.name.sin_addr, ip, sizeof(ip));
	am_console_say("%d of %d workers have joined at %s:%u in %d s; the console waits for the "
		       "others",
		       m->joined, m->config->size, ip, (unsigned int)ntohs(m->join.name.sin_port),
		       (int)(MISSING_NS / BASE_NS_PER_S));
}
