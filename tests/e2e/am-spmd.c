/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A job that its program starts by itself, with a number and a spawn function of its own, and what
 * its ranks may rely on: MASTERIP=ADDRESS am_spmd FILE. Ranks count barriers in the file, which
 * all of them map.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "am/endpoint.h"
#include "base/clock.h"
#include "include/warp/amudp_spmd.h"

enum { RANKS = 3, DEPTH = 5, BARRIERS = 30, LONGEST = 300000 };

#define EXPECT(what) expect(what, __LINE__, #what)

static int wrong;

static void expect(bool good, int line, const char *what)
{
	if (good)
		return;
	wrong++;
	printf("line %d: not %s\n", line, what);
}

/* Nothing is taken from the arguments, and nothing but extra_env makes a worker. */
static int spawn(int nproc, int argc, char **argv, char **extra_env)
{
	int i, j;

	printf("the spawn function: %d workers, %d arguments\n", nproc, argc);
	fflush(stdout);
	for (i = 0; i < nproc; i++) {
		if (fork() > 0)
			continue;
		for (j = 0; extra_env[j]; j++)
			putenv(extra_env[j]);
		execv(argv[0], argv);
		_exit(127);
	}
	return 1;
}

static int spawn_nothing(int nproc, int argc, char **argv, char **extra_env)
{
	return 0;
}

/* Tags are of the console's address, its process and the rank. */
static void tags_check(ep_t ep, uint64_t pid)
{
	tag_t tag = 0;
	int i;

	EXPECT(pid >> 32 == ntohl(inet_addr(getenv("MASTERIP"))));
	EXPECT((pid & 0xFFFFFFFF) == ((uint32_t)getppid() & 0xFFFF));
	EXPECT(AM_GetTag(ep, &tag) == AM_OK);
	EXPECT(tag == (pid | (uint64_t)AMUDP_SPMDMyProc() << 16));
	for (i = 0; i < RANKS; i++) {
		EXPECT(AM_GetTranslationTag(ep, i, &tag) == AM_OK);
		EXPECT(tag == (pid | (uint64_t)i << 16));
	}
	EXPECT(AM_GetTranslationInuse(ep, RANKS) == AM_ERR_RESOURCE);
}

/* All have come to a barrier before one leaves it; a different one is late each time. */
static void barriers_check(eb_t eb, const char *path)
{
	int fd = open(path, O_RDWR), me = AMUDP_SPMDMyProc(), round, i;
	int *came = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (came == MAP_FAILED) {
		expect(false, __LINE__, path);
		return;
	}
	for (round = 1; round <= BARRIERS; round++) {
		uint64_t late = base_now() + (round % RANKS == me ? 2 * BASE_NS_PER_MS : 0);

		while (base_now() < late)
			AM_Poll(eb);
		__atomic_store_n(&came[me], round, __ATOMIC_SEQ_CST);
		EXPECT(AMUDP_SPMDBarrier() == AM_OK);
		for (i = 0; i < RANKS; i++)
			EXPECT(__atomic_load_n(&came[i], __ATOMIC_SEQ_CST) >= round);
	}
	munmap(came, 4096);
	close(fd);
}

static void gathers_check(void)
{
	static const size_t lengths[] = { 1, 7, 4096, 65001, LONGEST };
	static uint8_t own[LONGEST], all[RANKS * LONGEST];
	size_t i, k, n;
	int bad = 0;

	for (k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
		n = lengths[k];
		for (i = 0; i < n; i++)
			own[i] = (uint8_t)(i * 13 + i / 251 + (size_t)AMUDP_SPMDMyProc() * 77);
		memset(all, 0, sizeof(all));
		EXPECT(AMUDP_SPMDAllGather(own, all, n) == AM_OK);
		for (i = 0; i < RANKS * n; i++)
			bad += all[i] != (uint8_t)(i % n * 13 + i % n / 251 + i / n * 77);
		EXPECT(bad == 0);
	}
}

/* One number for all ranks, which nobody can guess: the script compares those of two jobs. */
static void nonce_check(ep_t ep)
{
	uint64_t all[RANKS];
	int i;

	EXPECT(ep->nonce >> 32 != 0);
	EXPECT(AMUDP_SPMDAllGather(&ep->nonce, all, sizeof(all[0])) == AM_OK);
	for (i = 0; i < RANKS; i++)
		EXPECT(all[i] == ep->nonce);
	if (AMUDP_SPMDMyProc() == 0)
		printf("nonce %016llx\n", (unsigned long long)ep->nonce);
}

int main(int argc, char **argv)
{
	uint64_t pid = 0;
	eb_t eb;
	ep_t ep;

	if (AMUDP_SPMDStartup(&argc, &argv, RANKS, DEPTH, argc == 2 ? spawn : spawn_nothing, &pid,
			      &eb, &ep) != AM_OK)
		return 1;
	EXPECT(argc == 2 && !argv[2]);
	EXPECT(AMUDP_SPMDNumProcs() == RANKS);
	EXPECT(ep->depth == DEPTH);
	EXPECT(!strncmp(getenv("AMUDP_SLAVE_ARGS"), "2,", 2)); /* AMUDP_SilentMode is not set */
	tags_check(ep, pid);
	nonce_check(ep);
	barriers_check(eb, argv[1]);
	gathers_check();
	printf("rank %d: %d wrong\n", AMUDP_SPMDMyProc(), wrong);
	AMUDP_SPMDBarrier();
	AMUDP_SPMDExit(wrong ? 1 : 0);
}
