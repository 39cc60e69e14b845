/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "canary.h"
#include "loop/link_memory.h"
#include "rnic/send_queue.h"
#include "runtime/clock.h"

#define CANARY_KEY   1
#define CANARY_QPN   1
#define CANARY_PAUSE 50000 /* ns between two looks for the reply: a GPU wakes nobody */
/* Bytes of all replies. Larger sizes of batches than this has room for are not tried. */
#define CANARY_REPLIES_MAX ((uint64_t)256 << 20)

struct canary {
	const struct agent_setup *setup;
	struct agent_model_sample sample;
	bool may_fail; /* zeros that the model need not take */
	uint32_t slots;
	struct link_memory memory;
	struct send_queue queue;
	struct agent_link link;
	struct sleeper sleeper;
	struct agent_loop *loop;
	uint64_t position;
	char *why;
	size_t size;
};

/* --- NaN ---------------------------------------------------------------------------------------
 */

/* Is the number of <datatype> at <at> NaN? */
static bool canary_is_nan(enum datatype datatype, const uint8_t *at)
{
	uint16_t half;
	float single;
	double twice;

	switch (datatype) {
	case DATATYPE_FP16:
		memcpy(&half, at, sizeof(half));
		return (half & 0x7fff) > 0x7c00;
	case DATATYPE_BF16:
		memcpy(&half, at, sizeof(half));
		return (half & 0x7fff) > 0x7f80;
	case DATATYPE_FP32:
		memcpy(&single, at, sizeof(single));
		return single != single;
	case DATATYPE_FP64:
		memcpy(&twice, at, sizeof(twice));
		return twice != twice;
	default:
		return false;
	}
}

/* Elements of a row of <t>, or 0: a dimension is free. */
static uint64_t canary_elements(const struct model_tensor *t, bool batch)
{
	uint64_t n = 1;

	for (unsigned int i = batch ? 1 : 0; i < t->rank; i++)
		n *= t->shape[i] == DESCRIPTION_FREE ? 0 : (uint64_t)t->shape[i];
	return t->datatype == DATATYPE_BYTES ? 0 : n;
}

const char *canary_nan(const struct model_description *d, const uint8_t *bytes, uint32_t length)
{
	uint64_t at = 0;

	for (unsigned int i = 0; i < d->n_outputs; i++) {
		const struct model_tensor *t = &d->output[i];
		uint64_t n = canary_elements(t, d->batch),
			 each = workers_datatype_bytes(t->datatype);

		if (n == 0 || at + n * each > length)
			return NULL;
		for (uint64_t k = 0; k < n; k++, at += each)
			if (canary_is_nan(t->datatype, bytes + at))
				return t->name;
	}
	return NULL;
}

/* --- the link ----------------------------------------------------------------------------------
 */

static uint32_t canary_power(uint32_t n)
{
	uint32_t power = RING_SLOTS_MIN;

	while (power < n)
		power *= 2;
	return power;
}

static int canary_make_link(struct canary *c)
{
	const struct agent_model_shape *shape = &c->setup->model.shape;
	uint64_t room;

	c->slots = canary_power(shape->max_batch < 128 ? shape->max_batch : 128);
	while (c->slots > RING_SLOTS_MIN &&
	       (uint64_t)c->slots * shape->max_reply > CANARY_REPLIES_MAX)
		c->slots /= 2;
	room = link_memory_room(c->slots, shape->max_request,
				link_memory_least_mb(shape->max_request));
	if (link_memory_create(&c->memory, c->slots, shape->max_request, shape->max_reply, room) <
		    0 ||
	    send_queue_create(&c->queue, 4 * c->slots) < 0 || sleeper_init(&c->sleeper) < 0) {
		snprintf(c->why, c->size, "no memory for the canary");
		return -ENOMEM;
	}
	c->queue.qpn = CANARY_QPN;
	c->link = (struct agent_link){
		.descriptors = (const void *)(uintptr_t)c->memory.descriptors,
		.payloads = (const void *)(uintptr_t)c->memory.payloads,
		.cancels = (const void *)(uintptr_t)c->memory.cancels,
		.slot_count = c->slots,
		.stride = c->memory.stride,
		.room_at = c->memory.room_at,
		.room = c->memory.room,
		.replies = (void *)(uintptr_t)c->memory.replies,
		.reply_address = c->memory.replies,
		.reply_stride = c->memory.reply_stride,
		.lkey = CANARY_KEY,
		.remote_rkey = CANARY_KEY,
		.chunk = c->memory.reply_stride,
		.queue = send_queue_view(&c->queue),
	};
	return 0;
}

static int canary_start(struct canary *c)
{
	const struct agent_setup *setup = c->setup;
	struct agent_loop_params p = {
		.model = setup->model.model,
		.model_state = setup->model.state,
		.shape = setup->model.shape,
		.max_reply = setup->model.shape.max_reply,
		.max_batch = setup->model.shape.max_batch,
		.buckets = setup->model.buckets,
		.max_pieces = setup->model.shape.max_pieces,
		.heartbeat_ms = setup->options->heartbeat_ms,
		.hang_ms = setup->options->hang_ms + setup->options->max_run_ms,
		.n_links = 1,
		.links = &c->link,
		.sleeper = &c->sleeper,
		.gpu = setup->gpu,
	};

	c->loop = setup->loop->start(&p, c->why, c->size);
	return c->loop == NULL ? -EIO : 0;
}

/* Hand the loop <n> requests at once: it takes none before it sees the first one's mark. */
static void canary_ask(struct canary *c, uint32_t n)
{
	struct ring_descriptor *ring = (void *)(uintptr_t)c->memory.descriptors;
	uint8_t *payloads = (uint8_t *)(uintptr_t)c->memory.payloads;

	for (uint32_t i = n; i-- > 0;) {
		struct ring_descriptor *d = &ring[(c->position + i) & (c->slots - 1)];
		uint64_t at =
			c->memory.room > 0 ? c->memory.room_at : (uint64_t)i * c->memory.stride;

		if (c->sample.request != NULL)
			memcpy(payloads + at, c->sample.request, c->sample.request_length);
		d->slot = i;
		d->length = c->sample.request_length;
		d->payload = (uint32_t)(at / RING_ALIGNMENT);
		__atomic_store_n(&d->sequence, c->position + i + 1, __ATOMIC_RELEASE);
	}
	c->position += n;
	sleeper_wake(&c->sleeper);
}

/* The next reply that the loop posts, heartbeats left out. False: none until <end_ns>, or the loop
 * has ended; then <c->why> says it. */
static bool canary_take(struct canary *c, uint64_t end_ns, struct send_work *work)
{
	const struct timespec pause = {.tv_nsec = CANARY_PAUSE};
	struct send_queue *q = &c->queue;

	while (clock_now_ns() < end_ns) {
		if (c->setup->loop->failed(c->loop, c->why, c->size))
			return false;
		if (!send_queue_update(q)) {
			nanosleep(&pause, NULL);
			continue;
		}
		if (send_queue_read(q, &c->memory.sendable, CANARY_KEY, work) != 0) {
			snprintf(c->why, c->size, "the loop posts what no RNIC would send");
			return false;
		}
		send_queue_report(q, q->next++, MLX5_POST_CQE_OK, 0);
		if (!(work->imm & RING_IMM_HEARTBEAT))
			return true;
	}
	snprintf(c->why, c->size, "it has not answered within %u ms",
		 c->setup->options->hang_ms + c->setup->options->max_run_ms);
	return false;
}

/* 0, or -EIO: the reply is not what it should be. */
static int canary_check(struct canary *c, const struct send_work *work)
{
	const struct ring_reply *reply = (const void *)(uintptr_t)work->local;
	const uint8_t *bytes = (const uint8_t *)(reply + 1);
	const struct loaded_model *m = &c->setup->model;
	uint32_t status = ring_imm_status(work->imm);
	const char *nan;

	if (status != RING_OK && c->may_fail) {
		snprintf(c->why, c->size,
			 "it refuses %u bytes of zeros; with sample() it has a canary of its own",
			 c->sample.request_length);
		return 0;
	}
	if (status != RING_OK) {
		snprintf(c->why, c->size, "it fails (status %u of ring.h)", status);
		return -EIO;
	}
	nan = m->described ? canary_nan(&m->description, bytes, reply->length) : NULL;
	if (nan != NULL) {
		snprintf(c->why, c->size, "its output '%s' is NaN", nan);
		return -EIO;
	}
	if (c->sample.reply != NULL && (reply->length != c->sample.reply_length ||
					memcmp(bytes, c->sample.reply, reply->length) != 0)) {
		snprintf(c->why, c->size, "it answers its sample otherwise than it should");
		return -EIO;
	}
	return 0;
}

/* One batch of <n> requests. */
static int canary_batch(struct canary *c, uint32_t n)
{
	const struct agent_options *o = c->setup->options;
	uint64_t end_ns = clock_now_ns() + (o->hang_ms + o->max_run_ms) * 1000000ull;
	struct send_work work;
	int ret = 0;

	canary_ask(c, n);
	for (uint32_t i = 0; i < n && ret == 0; i++) {
		if (!canary_take(c, end_ns, &work))
			return -ETIMEDOUT;
		ret = canary_check(c, &work);
	}
	return ret;
}

static void canary_choose_sample(struct canary *c)
{
	const struct loaded_model *m = &c->setup->model;
	const struct agent_model_shape *shape = &m->shape;

	if (m->model->abi >= MODEL_BUCKETS_ABI && m->model->sample != NULL)
		m->model->sample(m->state, &c->sample);
	if (c->sample.request != NULL)
		return;
	c->may_fail = !m->described || shape->min_request != shape->max_request;
	c->sample.request_length =
		shape->min_request > 0 || shape->max_request == 0 ? shape->min_request : 1;
}

static int canary_run(struct canary *c)
{
	const struct agent_buckets *b = &c->setup->model.buckets;
	const struct agent_model_shape *shape = &c->setup->model.shape;
	bool steps = agent_model_steps(c->setup->model.model);
	int ret = canary_make_link(c);

	canary_choose_sample(c);
	if (ret == 0 && (c->sample.request_length < shape->min_request ||
			 c->sample.request_length > shape->max_request)) {
		snprintf(c->why, c->size, "its sample has %u bytes; requests have %u to %u",
			 c->sample.request_length, shape->min_request, shape->max_request);
		ret = -EINVAL;
	}
	if (ret == 0)
		ret = canary_start(c);
	/* The smallest batch that a size is chosen for. Of a reply in pieces the first one will do.
	 */
	for (uint32_t i = 0, n = 1; ret == 0 && i < b->n && n <= c->slots; n = b->rows[i++] + 1)
		if (i == 0 || !steps)
			ret = canary_batch(c, n);
	return ret;
}

int agent_canary(const struct agent_setup *setup, char *why, size_t size)
{
	struct canary *c = calloc(1, sizeof(*c));
	int ret;

	why[0] = '\0';
	if (c == NULL) {
		snprintf(why, size, "no memory for the canary");
		return -ENOMEM;
	}
	c->setup = setup;
	c->why = why;
	c->size = size;
	ret = canary_run(c);
	/* A loop that hangs cannot be stopped, nor may its memory be freed: the process ends. */
	if (ret == -ETIMEDOUT)
		return ret;
	setup->loop->stop(c->loop);
	link_memory_destroy(&c->memory);
	send_queue_destroy(&c->queue);
	sleeper_fini(&c->sleeper);
	free(c);
	return ret;
}
