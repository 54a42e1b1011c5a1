/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a connected socket in DDP mode is to the calls of a program: the stream protocol of rsockets
 * over the stream front of an RDMA provider.
 * Nothing here sleeps, sets errno or raises a signal; who has to wait polls stream_wait_fd() for
 * stream_wait_events() and calls progress. Threads may share a stream; processes, its state.
 */
#ifndef STREAM_STREAM_H
#define STREAM_STREAM_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/recv_sleep.h"
#include "stream/job.h"
#include "stream/local.h"
#include "stream/param.h"

/* What to wait on; asked about nothing, a descriptor may say all the same that it has ended */
int stream_wait_fd(const struct stream *s);
struct pollfd stream_pollfd(struct stream *s, unsigned int wanted);

/* Streams of this process that have such a deadline; and around fork(): none is made meanwhile */
unsigned int stream_starting(void);
void stream_before_fork(void);
void stream_after_fork(bool child);

/* A new connection over @fd, which stays the caller's; takes param->native over */
int stream_attach(int fd, const struct stream_param *param, struct stream **out);
/*
 * The stream that other processes have made over this socket, or this one before it
 * executed its program; of @param only dir, search, changed and ctx count. Takes the place
 * that share() or named() left for it. Once in a process. -ENOENT: there is none; -EACCES:
 * it is another user's; -EPROTO: what is there cannot be believed; -EXDEV: its memory and
 * one-sided operations are another process's; -ENODEV: its provider is not here.
 */
int stream_adopt(int fd, const struct stream_param *param, struct stream **out);
/*
 * Can a process that does not have this one's memory go on with it? What it needs is in
 * the state. No byte moves, for the caller may have other descriptors than the stream
 * knows of. 0; -EOPNOTSUPP: its state has no name; -EACCES: it is another user's than this
 * process's by now; -EXDEV: one-sided operations.
 */
int stream_hand_over(struct stream *s);
/*
 * STREAM_EXEC_RECORD bytes of the state, zeros at first, for what the stream's user has to
 * know of it in the next process. Others may write to them: to be judged when read.
 */
void *stream_exec_record(struct stream *s);
/*
 * Takes in what is there and hands out what is due. 0 open, -EAGAIN starting, -ENOMSG
 * the peer speaks plain TCP and nothing was consumed, or a probe came to nothing and the
 * socket has connected again; or the errno that start-up failed with.
 */
int stream_progress(struct stream *s);
/*
 * Passive side, not @only: the program has something to say before the peer has. Where
 * there is no Request yet, -EAGAIN: the program's bytes are TCP's from now on and the
 * caller's to send, and if a Request still comes, the connection is reset. Else
 * -EALREADY: start-up is under way or over.
 */
int stream_speak_plain(struct stream *s);
/* Passive side, of a device: 0, a Request with no answer yet is refused; or -EALREADY */
int stream_decline(struct stream *s);
/*
 * Bytes taken or given, 0 the end (recv), -EAGAIN, or -errno. MSG_PEEK, MSG_TRUNC and
 * STREAM_STOP of @flags: with that -ESTALE when the urgent byte is next, else it is
 * passed over, or with set_inline() taken like others.
 */
ssize_t stream_send(struct stream *s, const struct iovec *iov, int n);
ssize_t stream_recv(struct stream *s, const struct iovec *iov, int n, int flags);
/* As send, and the last byte is urgent, or -EOPNOTSUPP. The one that came: 1, -errno */
ssize_t stream_urgent_send(struct stream *s, const struct iovec *iov, int n);
int stream_urgent_recv(struct stream *s, uint8_t *octet, int flags);
void stream_set_inline(struct stream *s, bool on);
/* May one come? Then somebody must call progress for who is to have SIGURG */
bool stream_urgent_may(struct stream *s);
/* enum stream_level; never blocks, may be out of date when it returns */
unsigned int stream_levels(struct stream *s, struct stream_edges *edges);
/* What to poll the descriptor for so that one of the levels @wanted may come */
short stream_wait_events(struct stream *s, unsigned int wanted);
/* When to call progress again even though nothing came; BASE_NEVER */
uint64_t stream_wait_deadline(struct stream *s);
bool stream_more(struct stream *s); /* progress() stopped at its bound: to be called again */
/* Progress that sleeps in recvmsg(): the only thread that has it. False: it did not */
bool stream_sleep(struct stream *s, struct base_recv_sleep *sleep);
size_t stream_readable(struct stream *s);
int stream_take_error(struct stream *s);
void stream_give_error(struct stream *s, int err); /* one that was taken, and not told */
size_t stream_lowat(struct stream *s);		   /* SO_RCVLOWAT, at first the socket's */
void stream_set_lowat(struct stream *s, size_t octets);
int stream_shutdown(struct stream *s, int how);
/*
 * The program's last descriptor of this process goes. 0: nothing is left to do,
 * -EAGAIN: call close_more, after what wait_events says; -ENOMSG: the peer speaks plain
 * TCP, and what is held is still to go. Who opened it in another process keeps it.
 */
int stream_close(struct stream *s);
/* The same: the peer's end has come, or it is gone; *@safe: all we sent is acknowledged */
int stream_close_more(struct stream *s, bool *safe);
bool stream_only_end_left(struct stream *s); /* closed; all but the end is acknowledged */
/*
 * One process more will have it: before fork(), posix_spawn() or sendmsg(), once for each
 * copy that leaves. Where that failed, or a flight came to a process that had the stream
 * already, unshare() as well.
 */
void stream_share(struct stream *s, enum stream_share how);
void stream_unshare(struct stream *s, enum stream_share how);
void stream_joined(struct stream *s); /* the child of a fork() is what was shared last */
/*
 * In the parent, of a fork() or a spawn: that is the child, if it has not said so itself.
 * Who is named and ends counts no more.
 */
void stream_named(struct stream *s, uint32_t pid);
/*
 * No other thread is in the middle of something, or gets there before @on is taken back:
 * this process is about to be replaced by a program, and its threads with it
 */
void stream_rest(struct stream *s, bool on);
void stream_left(struct stream *s, uint32_t pid); /* by exec of a program that has none of us */
bool stream_shared(struct stream *s); /* by others: a quick look, which may count dead ones */
bool stream_alone(struct stream *s);  /* nobody else has it: certain, and slow */
/*
 * For who waits, before a look at levels: from now on, who moves an edge in another process
 * writes to @wakeup, once; 0: nobody can. enum stream_await of what came before. For who
 * has moved one: the wakeup fds to write to, @max of them at most; and that one could not
 * be woken.
 */
unsigned int stream_await(struct stream *s, uint64_t wakeup);
unsigned int stream_sleepers(struct stream *s, uint64_t *wakeups, unsigned int max);
void stream_unheard(struct stream *s, uint64_t wakeup);
/*
 * Of a probe that came to nothing: bytes that were taken meanwhile, where they are, and
 * how many there are up to an urgent one; 0: none is
 */
size_t stream_held(struct stream *s, const void **out, size_t *urgent);
void stream_disown(struct stream *s); /* it is another process's, and not counted here */
/* Closed: a program may adopt it, and close it again; or not after all. -EOPNOTSUPP */
int stream_linger_handoff(struct stream *s, bool on);
/* Of what was accepted, or is due, something has not left: somebody must call progress */
bool stream_owes(struct stream *s);
/* Nobody works by the number of before when it returns: that may be another file's soon */
void stream_set_fd(struct stream *s, int fd);
void stream_stats(struct stream *s, struct stream_stats *stats);
void stream_info(struct stream *s, struct stream_info *info);
/*
 * User messages, in the order of the stream; as send and recv, and -EOPNOTSUPP: the peer
 * has none. -EMSGSIZE: longer than there is room at the peer. message_recv: bytes
 * given, and the message's length into *@len; -ENODATA: what comes next is no message.
 * Where one does, recv says -EBADMSG.
 */
int stream_message_send(struct stream *s, const void *p, size_t len);
ssize_t stream_message_recv(struct stream *s, const struct iovec *iov, int n, int flags,
			    size_t *len);
/*
 * One-sided operations, from the process alone that used them first (-EXDEV). They leave
 * in their order, before what is sent later. -ENOBUFS: take completions first. complete:
 * the oldest, when it is over; -EAGAIN.
 */
int stream_region_add(struct stream *s, void *addr, size_t len, unsigned int access,
		      uint32_t *stag);
int stream_region_remove(struct stream *s, uint32_t stag);
/*
 * The same with a peer of rsockets: memory that it may write to by @offset; post() with
 * @mapped writes to its own. Errors as warp/ddp.h has them; -EAGAIN: for STREAM_WRITABLE
 */
int stream_map(struct stream *s, void *addr, size_t len, uint64_t offset);
int stream_unmap(struct stream *s, const void *addr, size_t len);
int stream_post(struct stream *s, const struct stream_job *job);
int stream_complete(struct stream *s, struct stream_completion *out);
/* Has it memory that the peer may use at any time? Then somebody must call progress */
bool stream_serves(struct stream *s);
void stream_destroy(struct stream *s);
/* This process has it no more, though a call on it may last: before stream_destroy() */
void stream_leave(struct stream *s);

#endif
