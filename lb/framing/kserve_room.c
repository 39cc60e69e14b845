/* SPDX-License-Identifier: BSD-3-Clause */
#include "framing/kserve_room.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "grpc/status.h"

/* A reader that reads on keeps its place. */
#define ROOM_PROGRESS 65536
/* A client may have so many when few are left. */
#define ROOM_FEW_READERS 1
#define ROOM_FEW_ASKED   32
/* Work that wants most of a turn may come behind this part of it: the rest of its request, for
 * example. */
#define ROOM_BEFORE 4
/* Bytes of text that take as long as to begin a request and to end it: some us. */
#define ROOM_ASK_COST 128

size_t kserve_room_bytes(uint32_t readers, uint32_t asked, uint32_t layouts)
{
	return sizeof(struct kserve_room) + readers * sizeof(struct kserve_reader) +
	       asked * sizeof(struct kserve_asked) + layouts * sizeof(struct kserve_layout);
}

void kserve_room_init(struct kserve_room *room, uint32_t readers, uint32_t asked, uint32_t layouts)
{
	struct kserve_reader *reader = (struct kserve_reader *)(room + 1);
	struct kserve_asked *a = (struct kserve_asked *)(reader + readers);
	struct kserve_layout *layout = (struct kserve_layout *)(a + asked);

	memset(room, 0, sizeof(*room));
	TAILQ_INIT(&room->readers);
	TAILQ_INIT(&room->free_readers);
	room->n_readers = room->n_free_readers = room->readers_max = readers;
	room->n_asked = room->n_free_asked = room->asked_max = asked;
	room->share = &room->all;
	for (uint32_t i = 0; i < readers; i++) {
		reader[i].room = room;
		TAILQ_INSERT_TAIL(&room->free_readers, &reader[i], entry);
	}
	for (uint32_t i = 0; i < asked; i++) {
		a[i].next = room->free_asked;
		room->free_asked = &a[i];
	}
	for (uint32_t i = 0; i < KSERVE_WATCHES; i++) {
		room->watch[i].next = room->free_watch;
		room->free_watch = &room->watch[i];
	}
	for (uint32_t i = 0; i < layouts; i++) {
		layout[i].next = room->free_layout;
		room->free_layout = &layout[i];
	}
}

bool kserve_room_may_take_reader(const struct kserve_room *room)
{
	return room->n_free_readers > 0 && room->share->readers < room->readers_max &&
	       (!kserve_room_readers_are_short(room) || room->share->readers < ROOM_FEW_READERS);
}

bool kserve_room_may_ask(const struct kserve_room *room)
{
	return room->n_free_asked > 0 && room->share->asked < room->asked_max &&
	       (!kserve_room_is_short(room) || room->share->asked < ROOM_FEW_ASKED);
}

bool kserve_room_may_refuse(const struct kserve_room *room)
{
	return room->n_free_asked > 0 && room->share->asked < room->asked_max + room->asked_max / 4;
}

bool kserve_room_may_work(struct kserve_room *room, uint32_t work)
{
	int32_t most = room->text_turn - room->text_turn / ROOM_BEFORE;
	int32_t least = work < (uint32_t)most ? (int32_t)work : most;

	if (room->text_left + room->text_kept >= least)
		return true;
	room->text_waits = true;
	room->text_kept += room->text_left;
	room->text_left = 0;
	return false;
}

bool kserve_room_ready(const struct kserve_room *room, const struct stream *s)
{
	if (room->text_left <= 0)
		return false;
	return kserve_room_is_inside(s) ||
	       (kserve_room_may_ask(room) && (s->own != NULL || kserve_room_may_take_reader(room)));
}

/* No head is read before the body in front of it, so it is the youngest. */
struct kserve_asked *kserve_room_asked(const struct stream *s)
{
	struct kserve_asked *a = s->open;

	return a != NULL && a->reading ? a : NULL;
}

bool kserve_room_is_inside(const struct stream *s)
{
	return kserve_room_asked(s) != NULL;
}

static void room_begin(struct kserve_room *room, struct kserve_reader *r)
{
	r->owner = room->owner;
	r->share = room->share;
	r->since_ms = room->now_ms;
	r->progress = 0;
	r->reading = KSERVE_READS_HEAD;
	r->ahead = 0;
	r->begun = false;
	r->asked = NULL;
	r->rows = 0;
	r->row_most = 0;
	r->known = r->seen = 0;
	r->held_from = r->held_to = r->held_bytes = 0;
}

struct kserve_reader *kserve_room_take_reader(struct kserve_room *room)
{
	struct kserve_reader *r = TAILQ_FIRST(&room->free_readers);

	if (!kserve_room_may_take_reader(room))
		return NULL;
	TAILQ_REMOVE(&room->free_readers, r, entry);
	TAILQ_INSERT_TAIL(&room->readers, r, entry);
	room->n_free_readers--;
	room_begin(room, r);
	r->share->readers++;
	return r;
}

void kserve_room_return_reader(struct kserve_reader *r)
{
	TAILQ_REMOVE(&r->room->readers, r, entry);
	TAILQ_INSERT_HEAD(&r->room->free_readers, r, entry);
	r->room->n_free_readers++;
	r->share->readers--;
}

void kserve_room_keep_reader(struct kserve_room *room, struct kserve_reader *r)
{
	if (r->progress < ROOM_PROGRESS)
		return;
	TAILQ_REMOVE(&room->readers, r, entry);
	TAILQ_INSERT_TAIL(&room->readers, r, entry);
	r->since_ms = room->now_ms;
	r->progress = 0;
}

struct kserve_reader *kserve_room_reader(struct kserve_room *room, struct stream *s)
{
	struct kserve_reader *r = s->own;

	if (r != NULL) {
		kserve_room_keep_reader(room, r);
		return r;
	}
	r = kserve_room_take_reader(room);
	if (r == NULL)
		return NULL;
	s->own = r;
	s->got = 1;
	return r;
}

/* --- what is remembered of requests --- */

struct kserve_asked *kserve_room_ask(struct kserve_room *room, struct stream *s)
{
	struct kserve_asked *a = room->free_asked;

	room->free_asked = a->next;
	room->n_free_asked--;
	room->text_left -= ROOM_ASK_COST;
	__builtin_prefetch(room->free_asked, 1);
	/* Nearly all of it may be out of the cache: what is behind is written when it is used. */
	memset(a, 0, offsetof(struct kserve_asked, body.range_of));
	a->error[0] = '\0';
	a->room = room;
	a->share = room->share;
	a->share->asked++;
	a->reading = true;
	a->next = s->open;
	s->open = a;
	return a;
}

struct kserve_watch *kserve_room_watch(struct kserve_asked *asked)
{
	struct kserve_watch *w = asked->room->free_watch;

	if (w == NULL || asked->share->watches >= KSERVE_WATCHES_OF_CLIENT)
		return NULL;
	asked->room->free_watch = w->next;
	asked->share->watches++;
	asked->watch = w;
	return w;
}

void kserve_room_end_watch(struct kserve_asked *asked)
{
	struct kserve_watch *w = asked->watch;

	if (w == NULL)
		return;
	asked->watch = NULL;
	asked->share->watches--;
	w->next = asked->room->free_watch;
	asked->room->free_watch = w;
}

void kserve_room_keep_id(struct kserve_asked *asked, const struct kserve_infer *infer)
{
	memcpy(asked->id, infer->id, infer->id_length);
	asked->id_length = infer->id_length;
	asked->has_id = infer->has_id;
}

void kserve_room_tell(const struct stream *s, const struct kserve_asked *asked, uint16_t status,
		      uint64_t bytes)
{
	struct kserve_told told;

	if (asked->room->tell == NULL)
		return;
	told = (struct kserve_told){
		.request = asked->number,
		.status = status,
		.service = asked->service,
		.bytes_in = asked->bytes_in,
		.bytes_out = bytes,
		.call = asked->endpoint,
		.id = asked->id,
		.id_length = asked->id_length,
		.is_grpc = asked->is_grpc,
		.has_service = asked->has_service,
		.has_id = asked->has_id,
	};
	asked->room->tell(asked->room, s, &told);
}

void kserve_room_lost(const struct stream *s)
{
	for (const struct kserve_asked *a = s->open; a != NULL; a = a->next)
		if (!a->answered)
			kserve_room_tell(s, a, a->is_grpc ? GRPC_CANCELLED : KSERVE_CLIENT_GONE, 0);
}

void kserve_room_forget(struct stream *s, struct kserve_asked *asked)
{
	struct kserve_room *room = asked->room;
	struct kserve_asked **at = (struct kserve_asked **)&s->open;

	while (*at != asked)
		at = &(*at)->next;
	*at = asked->next;
	if (asked->layout != NULL)
		kserve_layout_leave(room, asked->layout);
	kserve_room_end_watch(asked);
	asked->next = room->free_asked;
	room->free_asked = asked;
	room->n_free_asked++;
	asked->share->asked--;
}

void kserve_room_answered(struct stream *s, struct kserve_asked *asked)
{
	asked->answered = true;
	if (!asked->reading)
		kserve_room_forget(s, asked);
}

void kserve_room_was_read(struct stream *s, struct kserve_asked *asked)
{
	s->got = 0;
	asked->reading = false;
	if (asked->answered)
		kserve_room_forget(s, asked);
}

void kserve_room_give_reader(struct stream *s)
{
	struct kserve_reader *r = s->own;

	s->own = NULL;
	kserve_room_return_reader(r);
}

void kserve_room_release(struct stream *s)
{
	if (s->own != NULL)
		kserve_room_give_reader(s);
	while (s->open != NULL)
		kserve_room_forget(s, s->open);
}

/* --- models --- */

static void layout_tensor(struct kserve_tensor *to, const struct model_tensor *from, bool batch)
{
	static const uint8_t types[DATATYPES] = {
		[DATATYPE_BOOL] = KSERVE_BOOL,     [DATATYPE_UINT8] = KSERVE_UINT8,
		[DATATYPE_UINT16] = KSERVE_UINT16, [DATATYPE_UINT32] = KSERVE_UINT32,
		[DATATYPE_UINT64] = KSERVE_UINT64, [DATATYPE_INT8] = KSERVE_INT8,
		[DATATYPE_INT16] = KSERVE_INT16,   [DATATYPE_INT32] = KSERVE_INT32,
		[DATATYPE_INT64] = KSERVE_INT64,   [DATATYPE_FP16] = KSERVE_FP16,
		[DATATYPE_FP32] = KSERVE_FP32,     [DATATYPE_FP64] = KSERVE_FP64,
		[DATATYPE_BF16] = KSERVE_BF16,     [DATATYPE_BYTES] = KSERVE_BYTES,
	};

	snprintf(to->name, sizeof(to->name), "%s", from->name);
	to->type = types[from->datatype];
	to->dims = (uint8_t)(from->rank - batch);
	for (unsigned int i = 0; i < to->dims; i++)
		to->shape[i] = from->shape[i + batch];
}

/* Has one of them rows that may differ in length? */
static bool layout_has_bytes(const struct model_tensor *tensors, unsigned int n)
{
	bool has = false;

	for (unsigned int i = 0; i < n; i++)
		has |= tensors[i].datatype == DATATYPE_BYTES;
	return has;
}

/* Rows of a client's batch become requests of their own. */
static uint32_t layout_rows(const struct model_description *d, uint32_t max_rows, bool alone)
{
	if (!d->batch)
		return 0;
	if (alone || max_rows == 0)
		return 1;
	return max_rows < KSERVE_ROWS_MAX ? max_rows : KSERVE_ROWS_MAX;
}

static void layout_model(struct kserve_model *m, const char *name,
			 const struct model_description *d, uint32_t max_rows)
{
	memset(m, 0, sizeof(*m));
	snprintf(m->name, sizeof(m->name), "%s", name);
	snprintf(m->version[0], sizeof(m->version[0]), "%.*s", KSERVE_VERSION_MAX - 1, d->version);
	snprintf(m->platform, sizeof(m->platform), "%s", d->platform);
	m->versions = d->version[0] != '\0';
	m->rows_differ = d->batch && layout_has_bytes(d->input, d->n_inputs);
	m->rows_alone = d->batch && d->n_outputs > 1 && layout_has_bytes(d->output, d->n_outputs);
	m->max_batch = layout_rows(d, max_rows, m->rows_alone);
	m->inputs = (uint8_t)d->n_inputs;
	m->outputs = (uint8_t)d->n_outputs;
	for (unsigned int i = 0; i < d->n_inputs; i++)
		layout_tensor(&m->input[i], &d->input[i], d->batch);
	for (unsigned int i = 0; i < d->n_outputs; i++)
		layout_tensor(&m->output[i], &d->output[i], d->batch);
}

struct kserve_layout *kserve_layout_of(struct kserve_room *room, const char *name,
				       const struct model_description *description,
				       uint32_t max_rows)
{
	struct kserve_layout *layout = room->free_layout;

	if (layout == NULL)
		return NULL;
	room->free_layout = layout->next;
	layout->users = 1;
	layout->number = ++room->layouts;
	layout->description = *description;
	layout->max_rows = max_rows;
	layout_model(&layout->model, name, description, max_rows);
	return layout;
}

void kserve_layout_leave(struct kserve_room *room, struct kserve_layout *layout)
{
	if (--layout->users > 0)
		return;
	layout->next = room->free_layout;
	room->free_layout = layout;
}

/* --- services --- */

struct kserve_model *kserve_room_known(struct kserve_room *room)
{
	struct kserve_model *m = &room->counted;

	snprintf(m->name, sizeof(m->name), "%s", room->model);
	m->versions = 0;
	if (room->layout != NULL) {
		m->versions = room->layout->model.versions;
		memcpy(m->version, room->layout->model.version, sizeof(m->version));
	}
	m->ready = room->serving;
	return m;
}

bool kserve_room_all_serve(struct kserve_room *room)
{
	bool all = true;

	kserve_room_rewind(room);
	do
		all &= room->serving;
	while (room->next(room));
	return all;
}
