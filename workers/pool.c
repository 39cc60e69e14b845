/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring.h"
#include "pool.h"

/* Lookups walk all places, which is cheap enough: the control thread makes only a few per
 * registration. */
struct worker_pool {
	unsigned int n; /* places in use so far: all before this one have or had a worker */
	struct worker place[WORKERS_MAX];
};

static const char *const state_names[WORKER_STATES] = {
	[WORKER_GONE] = "gone",     [WORKER_JOINING] = "joining", [WORKER_PROBING] = "probing",
	[WORKER_ACTIVE] = "active", [WORKER_SUSPECT] = "suspect", [WORKER_DRAINING] = "draining",
};

const char *worker_state_name(enum worker_state state)
{
	return (unsigned int)state < WORKER_STATES ? state_names[state] : "unknown";
}

struct worker_pool *workers_pool_create(void)
{
	struct worker_pool *pool = calloc(1, sizeof(*pool));

	if (pool == NULL)
		return NULL;
	for (unsigned int i = 0; i < WORKERS_MAX; i++)
		pool->place[i].number = i;
	return pool;
}

static void pool_drop_description(struct worker *worker)
{
	free((void *)(uintptr_t)worker->spec.description);
	worker->spec.description = NULL;
}

void workers_pool_destroy(struct worker_pool *pool)
{
	for (unsigned int i = 0; pool != NULL && i < pool->n; i++)
		pool_drop_description(&pool->place[i]);
	free(pool);
}

static bool spec_name_char(int c)
{
	return isalnum(c) || c == '.' || c == '_' || c == '-';
}

static bool spec_model_char(int c)
{
	return isgraph(c);
}

struct text_rule {
	const char *field;
	size_t offset;
	bool (*allowed)(int c);
	const char *alphabet;
};

static const struct text_rule text_rules[] = {
	{"name", offsetof(struct worker_spec, name), spec_name_char, "letters, digits and ._-"},
	{"model", offsetof(struct worker_spec, model), spec_model_char,
	 "printable ASCII characters without spaces"},
};

struct number_rule {
	const char *field;
	size_t offset;
	uint32_t min, max;
	bool power_of_two;
};

static const struct number_rule number_rules[] = {
	{"slots", offsetof(struct worker_spec, slots), RING_SLOTS_MIN, WORKER_SLOTS_MAX, true},
	{"max_request", offsetof(struct worker_spec, max_request), 1, WORKER_BYTES_MAX, false},
	{"min_request", offsetof(struct worker_spec, min_request), 0, WORKER_BYTES_MAX, false},
	{"max_reply", offsetof(struct worker_spec, max_reply), 1, WORKER_BYTES_MAX, false},
	{"max_batch", offsetof(struct worker_spec, max_batch), 1, RING_SLOTS_MAX, false},
	{"weight", offsetof(struct worker_spec, weight), 1, WORKER_WEIGHT_MAX, false},
	{"heartbeat_ms", offsetof(struct worker_spec, heartbeat_ms), 10, 60000, false},
	{"max_run_ms", offsetof(struct worker_spec, max_run_ms), 0, 600000, false},
};

static bool spec_text_is_valid(const struct worker_spec *spec, const struct text_rule *rule,
			       char *error, size_t error_size)
{
	const char *text = (const char *)spec + rule->offset;
	size_t length = strnlen(text, WORKER_NAME_MAX);

	if (length == 0) {
		snprintf(error, error_size, "%s is empty; use 1 to %d characters", rule->field,
			 WORKER_NAME_MAX - 1);
		return false;
	}
	if (length == WORKER_NAME_MAX) {
		snprintf(error, error_size, "%s is too long; use 1 to %d characters", rule->field,
			 WORKER_NAME_MAX - 1);
		return false;
	}
	for (size_t i = 0; i < length; i++) {
		/* The text is not echoed: it may contain anything. */
		if (!rule->allowed((unsigned char)text[i])) {
			snprintf(error, error_size,
				 "%s has a character that is not allowed; use %s", rule->field,
				 rule->alphabet);
			return false;
		}
	}
	return true;
}

static bool spec_number_is_valid(const struct worker_spec *spec, const struct number_rule *rule,
				 char *error, size_t error_size)
{
	uint32_t value;

	memcpy(&value, (const char *)spec + rule->offset, sizeof(value));
	if (value >= rule->min && value <= rule->max &&
	    (!rule->power_of_two || (value & (value - 1)) == 0))
		return true;
	snprintf(error, error_size, "%s is %u; use %s%u to %u", rule->field, value,
		 rule->power_of_two ? "a power of two from " : "", rule->min, rule->max);
	return false;
}

static bool spec_key_char(int c)
{
	return spec_name_char(c) || c == '/';
}

static bool label_text_is_valid(const char *what, const char *text, size_t size,
				bool (*allowed)(int c), char *error, size_t error_size)
{
	size_t length = strnlen(text, size);

	if (length == 0 || length == size) {
		snprintf(error, error_size, "the %s of a label is %s; use 1 to %zu characters",
			 what, length == 0 ? "empty" : "too long", size - 1);
		return false;
	}
	for (size_t i = 0; i < length; i++) {
		if (!allowed((unsigned char)text[i])) {
			snprintf(error, error_size,
				 "the %s of a label has a character that is not allowed; use %s",
				 what,
				 allowed == spec_key_char ? "letters, digits and ._-/"
							  : "printable ASCII without spaces");
			return false;
		}
	}
	return true;
}

static bool spec_labels_are_valid(const struct worker_spec *spec, char *error, size_t error_size)
{
	if (spec->n_labels > WORKER_LABELS_MAX) {
		snprintf(error, error_size, "%u labels are too many; use at most %d",
			 spec->n_labels, WORKER_LABELS_MAX);
		return false;
	}
	for (unsigned int i = 0; i < spec->n_labels; i++) {
		const struct worker_label *label = &spec->label[i];

		if (!label_text_is_valid("key", label->key, sizeof(label->key), spec_key_char,
					 error, error_size) ||
		    !label_text_is_valid("value", label->value, sizeof(label->value),
					 spec_model_char, error, error_size))
			return false;
		for (unsigned int k = 0; k < i; k++) {
			if (strcmp(spec->label[k].key, label->key) == 0) {
				snprintf(error, error_size,
					 "label '%s' comes twice; use each key once", label->key);
				return false;
			}
		}
	}
	return true;
}

static bool spec_description_is_valid(const struct worker_spec *spec, char *error,
				      size_t error_size)
{
	char why[256];

	if (spec->description == NULL)
		return true;
	if (!workers_description_is_valid(spec->description, why, sizeof(why))) {
		snprintf(error, error_size, "description.%s", why);
		return false;
	}
	/* An agent whose services carry less than its model replies registers less. */
	if (!workers_description_fits(spec->description, spec->min_request, spec->max_request,
				      spec->max_reply, true, why, sizeof(why))) {
		snprintf(error, error_size, "%s; a description and its sizes must agree", why);
		return false;
	}
	return true;
}

bool workers_spec_is_valid(const struct worker_spec *spec, char *error, size_t error_size)
{
	for (size_t i = 0; i < sizeof(text_rules) / sizeof(text_rules[0]); i++)
		if (!spec_text_is_valid(spec, &text_rules[i], error, error_size))
			return false;
	for (size_t i = 0; i < sizeof(number_rules) / sizeof(number_rules[0]); i++)
		if (!spec_number_is_valid(spec, &number_rules[i], error, error_size))
			return false;
	if (spec->min_request > spec->max_request) {
		snprintf(error, error_size, "min_request is %u, more than max_request %u; use less",
			 spec->min_request, spec->max_request);
		return false;
	}
	return spec_labels_are_valid(spec, error, error_size) &&
	       spec_description_is_valid(spec, error, error_size);
}

bool workers_spec_agrees(const struct worker_pool *pool, const struct worker_spec *spec,
			 char *error, size_t error_size)
{
	char whose[WORKER_NAME_MAX + 16], why[256];

	for (unsigned int i = 0; spec->description != NULL && i < pool->n; i++) {
		const struct worker *other = &pool->place[i];

		if (other->state == WORKER_GONE || other->spec.description == NULL ||
		    strcmp(other->spec.model, spec->model) != 0 ||
		    strcmp(other->spec.name, spec->name) == 0)
			continue;
		snprintf(whose, sizeof(whose), "worker '%s'", other->spec.name);
		if (workers_description_agrees(spec->description, other->spec.description, whose,
					       why, sizeof(why)))
			continue;
		snprintf(error, error_size,
			 "description.%s of the same model; stop the workers with the other "
			 "tensors first, or give the model another name",
			 why);
		return false;
	}
	return true;
}

bool workers_name_is_valid(const char *name)
{
	size_t length = strnlen(name, WORKER_NAME_MAX);

	for (size_t i = 0; i < length; i++)
		if (!spec_name_char((unsigned char)name[i]))
			return false;
	return length > 0 && length < WORKER_NAME_MAX;
}

static bool name_is_free(struct worker_pool *pool, const struct worker_spec *spec, char *error,
			 size_t error_size)
{
	const struct worker *other = workers_find(pool, spec->name);

	if (other == NULL)
		return true;
	if (other->spec.instance == spec->instance)
		snprintf(error, error_size,
			 "name '%s' is registered already by this agent; "
			 "end that registration before a new one",
			 spec->name);
	else
		snprintf(error, error_size,
			 "name '%s' is in use by another live agent; "
			 "use another name or stop that agent",
			 spec->name);
	return false;
}

/*
 * The place that the name had before if it is free, else the lowest free one; NULL: none is free.
 */
static struct worker *free_place(struct worker_pool *pool, const char *name)
{
	struct worker *lowest = NULL;

	for (unsigned int i = 0; i < pool->n; i++) {
		struct worker *place = &pool->place[i];

		if (place->state != WORKER_GONE)
			continue;
		if (strcmp(place->spec.name, name) == 0)
			return place;
		if (lowest == NULL)
			lowest = place;
	}
	if (lowest == NULL && pool->n < WORKERS_MAX)
		lowest = &pool->place[pool->n++];
	return lowest;
}

struct worker *workers_register(struct worker_pool *pool, const struct worker_spec *spec,
				char *error, size_t error_size)
{
	struct model_description *description = NULL;
	struct worker *worker;
	uint16_t number, generation;

	if (!workers_spec_is_valid(spec, error, error_size) ||
	    !name_is_free(pool, spec, error, error_size))
		return NULL;
	if (spec->description != NULL) {
		description = malloc(sizeof(*description));
		if (description == NULL) {
			snprintf(error, error_size, "no memory for the model's description");
			return NULL;
		}
		*description = *spec->description;
	}
	worker = free_place(pool, spec->name);
	if (worker == NULL) {
		free(description);
		snprintf(error, error_size,
			 "all %d places for workers are taken; remove one or use another "
			 "load balancer",
			 WORKERS_MAX);
		return NULL;
	}
	number = worker->number;
	generation = worker->generation + 1;
	memset(worker, 0, sizeof(*worker));
	worker->spec = *spec;
	worker->spec.description = description;
	worker->state = WORKER_JOINING;
	worker->number = number;
	worker->generation = generation != 0 ? generation : 1;
	worker->own_weight = spec->weight;
	return worker;
}

void workers_remove(struct worker_pool *pool, struct worker *worker)
{
	/* The rest stays readable for reports until the place is taken again. */
	pool_drop_description(worker);
	worker->state = WORKER_GONE;
	worker->ready = false;
	worker->owner = NULL;
}

struct worker *workers_find(struct worker_pool *pool, const char *name)
{
	for (struct worker *w = workers_next(pool, NULL); w != NULL; w = workers_next(pool, w))
		if (strcmp(w->spec.name, name) == 0)
			return w;
	return NULL;
}

const struct worker *workers_find_gone(const struct worker_pool *pool, const char *name)
{
	for (unsigned int i = 0; i < pool->n; i++)
		if (pool->place[i].state == WORKER_GONE &&
		    strcmp(pool->place[i].spec.name, name) == 0)
			return &pool->place[i];
	return NULL;
}

struct worker *workers_get(struct worker_pool *pool, unsigned int number)
{
	if (number >= WORKERS_MAX || pool->place[number].state == WORKER_GONE)
		return NULL;
	return &pool->place[number];
}

struct worker *workers_next(struct worker_pool *pool, const struct worker *worker)
{
	for (unsigned int i = worker == NULL ? 0 : worker->number + 1; i < pool->n; i++)
		if (pool->place[i].state != WORKER_GONE)
			return &pool->place[i];
	return NULL;
}

uint32_t workers_weight(const struct worker *worker)
{
	uint32_t share = worker->share;

	if (share == 0 || share > WORKER_SHARE_FULL)
		share = WORKER_SHARE_FULL;
	return worker->spec.weight * share;
}

uint16_t workers_slow_start_share(uint64_t age_ms, uint32_t slow_start_ms)
{
	const uint64_t first = WORKER_SHARE_FULL / 10;

	if (age_ms >= slow_start_ms)
		return WORKER_SHARE_FULL;
	return (uint16_t)(first + (WORKER_SHARE_FULL - first) * age_ms / slow_start_ms);
}

const char *workers_label(const struct worker *worker, const char *key)
{
	for (unsigned int i = 0; i < worker->spec.n_labels; i++)
		if (strcmp(worker->spec.label[i].key, key) == 0)
			return worker->spec.label[i].value;
	return NULL;
}

unsigned int workers_count(const struct worker_pool *pool, enum worker_state state)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < WORKERS_MAX; i++)
		n += pool->place[i].state == state;
	return n;
}
