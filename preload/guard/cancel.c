/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The call that a thread is inside, and its cancellation, which is disabled there.
 */
#include "preload/guard/call.h"

__thread struct call *call_self;

/*
 * The kind first: glibc's handler of the signal asks for the kind alone, and would end a thread of
 * the asynchronous kind in the middle of us. It has its kind back last, since glibc's
 * pthread_setcancelstate() forgets the result of a thread that it ends.
 */
void call_cancel_hold(struct call *e)
{
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &e->cancel_type);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &e->cancel_state);
	e->cancel_off = true;
}

void call_cancel_release(struct call *e)
{
	e->cancel_off = false;
	pthread_setcancelstate(e->cancel_state, NULL);
	if (e->cancel_type != PTHREAD_CANCEL_DEFERRED)
		pthread_setcanceltype(e->cancel_type, NULL);
}
