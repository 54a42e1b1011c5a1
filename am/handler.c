/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Handlers: the table, the calls, and the tokens that handlers hold.
 *
 * Handlers run with the bundle's lock dropped, so that in AM_PAR several run at once. A token
 * lives on the stack of the call that runs its handler; those of a thread are chained, and a
 * token that is not in the chain is refused, whatever it points at. Programs register handlers
 * with more parameters than there are arguments, so all sixteen are always passed.
 */
#include "am/handler.h"

#include "am/lock.h"
#include "base/bits.h"

#define ALL_ARGS(a)                                                                              \
	(a)[0], (a)[1], (a)[2], (a)[3], (a)[4], (a)[5], (a)[6], (a)[7], (a)[8], (a)[9], (a)[10], \
		(a)[11], (a)[12], (a)[13], (a)[14], (a)[15]
#define INT_ARGS int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int

typedef void (*short_fn)(void *, INT_ARGS);
typedef void (*long_fn)(void *, void *, int, INT_ARGS);
typedef void (*returned_fn)(int, op_t, void *);

/* no call to find it: it is looked at in every poll that brings something */
static __thread struct am_token *tokens __attribute__((tls_model("initial-exec")));

struct am_token *am_token_check(void *token)
{
	struct am_token *t = tokens;

	while (t && t != token)
		t = t->next;
	return t;
}

static void token_push(struct am_token *token)
{
	token->next = tokens;
	tokens = token;
	am_lock_drop(token->ep->lock);
}

static void token_pop(struct am_token *token)
{
	am_lock_take(token->ep->lock);
	tokens = token->next;
}

void am_args_get(struct am_args *args, const struct am_frame *f)
{
	unsigned int i;

	for (i = 0; i < f->numargs; i++)
		args->v[i] = (int32_t)base_get_be32(f->args + 4 * i);
	for (; i < AMUDP_MAX_SHORT; i++)
		args->v[i] = 0;
}

void am_handler_run(struct am_token *token, const struct am_frame *f, const struct am_args *args,
		    uint8_t *buffer)
{
	struct amudp_ep *ep = token->ep;
	amudp_handler_fn_t fn = ep->handlers[f->handler];
	amudp_category_t category = (amudp_category_t)am_frame_category(f);
	AMUDP_postHandlerCallback_t post = ep->post;
	const int32_t *a = args->v;
	uint32_t words[AMUDP_MAX_SHORT];

	token->handler = f->handler;
	token->category = (uint8_t)category;
	token_push(token);
	if (ep->pre) {
		memcpy(words, a, sizeof(words));
		ep->pre(category, token->is_request, f->handler, token, buffer, f->nbytes,
			f->numargs, words);
	}
	if (category == amudp_Short)
		((short_fn)fn)(token, ALL_ARGS(a));
	else
		((long_fn)fn)(token, buffer, (int)f->nbytes, ALL_ARGS(a));
	if (post)
		post(category, token->is_request);
	token_pop(token);
}

static amudp_category_t category_of(int opcode)
{
	return opcode == AM_GET_XFER_M ? amudp_Long
				       : (amudp_category_t)((opcode - 1) % amudp_NumCategories);
}

void am_handler_return(struct am_token *token, int reason, int opcode)
{
	token->ep->stats.ReturnedMessages++;
	token->ep->messages++; /* who waits for one finds that this has run */
	token->handler = 0;
	token->category = (uint8_t)category_of(opcode);
	token_push(token);
	((returned_fn)token->ep->handlers[0])(reason, opcode, token);
	token_pop(token);
}

static bool tag_allows(const struct amudp_ep *ep, tag_t tag)
{
	return ep->tag == AM_ALL || (ep->tag != AM_NONE && ep->tag == tag);
}

static int range_refusal(const struct amudp_ep *ep, uint64_t offset, uint32_t nbytes)
{
	if (!ep->segment_len)
		return EBADSEGOFF;
	if (offset > ep->segment_len || nbytes > ep->segment_len - offset)
		return EBADLENGTH;
	return 0;
}

int am_frame_refusal(const struct amudp_ep *ep, const struct am_frame *f)
{
	bool request = f->type == AM_FRAME_REQUEST;

	/* a reply is known by its slot; a tag changed meanwhile must not cost the answer */
	if (request && !tag_allows(ep, f->tag))
		return EBADTAG;
	if (f->flags & AM_MESSAGE_GET)
		return range_refusal(ep, f->source_offset, f->nbytes);
	if (f->handler >= ep->num_handlers || !ep->handlers[f->handler] ||
	    (f->handler == 0 && request))
		return EBADHANDLER;
	if (am_frame_category(f) == amudp_Long)
		return range_refusal(ep, f->offset, f->nbytes);
	return 0;
}

int AM_GetNumHandlers(ep_t ea, int *n)
{
	if (!am_endpoint_valid(ea) || !n)
		am_return_error(AM_ERR_BAD_ARG, "no endpoint or no place for the answer");
	*n = ea->num_handlers;
	return AM_OK;
}

int AM_SetNumHandlers(ep_t ea, int n)
{
	int i;

	if (!am_endpoint_valid(ea))
		am_return_error(AM_ERR_BAD_ARG, "no endpoint");
	if (n < 1 || n > AMUDP_MAX_NUMHANDLERS)
		am_return_error(AM_ERR_RESOURCE, "1 to 256 handlers");
	for (i = n; i < ea->num_handlers; i++)
		ea->handlers[i] = NULL;
	ea->num_handlers = n;
	return AM_OK;
}

int _AM_SetHandler(ep_t ea, handler_t handler, amudp_handler_fn_t function)
{
	if (!am_endpoint_valid(ea) || !function)
		am_return_error(AM_ERR_BAD_ARG, "no endpoint or no function");
	if (handler >= ea->num_handlers)
		am_return_error(AM_ERR_BAD_ARG, "the table is smaller");
	ea->handlers[handler] = function;
	return AM_OK;
}

int _AM_SetHandlerAny(ep_t ea, handler_t *handler, amudp_handler_fn_t function)
{
	int i;

	if (!am_endpoint_valid(ea) || !function || !handler)
		am_return_error(AM_ERR_BAD_ARG, "no endpoint, function or place for the answer");
	for (i = 1; i < ea->num_handlers && ea->handlers[i]; i++)
		continue;
	if (i == ea->num_handlers)
		am_return_error(AM_ERR_RESOURCE, "all handlers are in use");
	ea->handlers[i] = function;
	*handler = (handler_t)i;
	return AM_OK;
}

int AMUDP_SetHandlerCallbacks(ep_t ep, AMUDP_preHandlerCallback_t preHandlerCallback,
			      AMUDP_postHandlerCallback_t postHandlerCallback)
{
	if (!am_endpoint_valid(ep))
		am_return_error(AM_ERR_BAD_ARG, "no endpoint");
	ep->pre = preHandlerCallback;
	ep->post = postHandlerCallback;
	return AM_OK;
}

int AM_GetSourceEndpoint(void *token, en_t *name)
{
	struct am_token *t = am_token_check(token);

	if (!t || !name)
		am_return_error(AM_ERR_BAD_ARG, "not the token of a running handler");
	*name = t->source;
	return AM_OK;
}

int AM_GetDestEndpoint(void *token, ep_t *endp)
{
	struct am_token *t = am_token_check(token);

	if (!t || !endp)
		am_return_error(AM_ERR_BAD_ARG, "not the token of a running handler");
	*endp = t->ep;
	return AM_OK;
}

int AM_GetMsgTag(void *token, tag_t *tag)
{
	struct am_token *t = am_token_check(token);

	if (!t || !tag)
		am_return_error(AM_ERR_BAD_ARG, "not the token of a running handler");
	*tag = t->tag;
	return AM_OK;
}

int AMUDP_GetTokenInfo(void *token, handler_t *handler, amudp_category_t *category, int *isrequest)
{
	struct am_token *t = am_token_check(token);

	if (!t || !handler || !category || !isrequest)
		am_return_error(AM_ERR_BAD_ARG, "not the token of a running handler");
	*handler = t->handler;
	*category = (amudp_category_t)t->category;
	*isrequest = t->is_request;
	return AM_OK;
}

int AMUDP_enEqual(en_t a, en_t b)
{
	return a.sin_family == b.sin_family && a.sin_port == b.sin_port &&
	       a.sin_addr.s_addr == b.sin_addr.s_addr;
}

int AMUDP_GetSourceId(void *token, int *srcid)
{
	struct am_token *t = am_token_check(token);

	if (!t || !srcid)
		am_return_error(AM_ERR_BAD_ARG, "not the token of a running handler");
	*srcid = t->source_index;
	return AM_OK;
}
