/* SPDX-License-Identifier: BSD-3-Clause */
#include "description.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "worker_limits.h"

static const struct {
	const char *name;
	unsigned int bytes;
} datatypes[DATATYPES] = {
	[DATATYPE_BOOL] = {"BOOL", 1},     [DATATYPE_UINT8] = {"UINT8", 1},
	[DATATYPE_UINT16] = {"UINT16", 2}, [DATATYPE_UINT32] = {"UINT32", 4},
	[DATATYPE_UINT64] = {"UINT64", 8}, [DATATYPE_INT8] = {"INT8", 1},
	[DATATYPE_INT16] = {"INT16", 2},   [DATATYPE_INT32] = {"INT32", 4},
	[DATATYPE_INT64] = {"INT64", 8},   [DATATYPE_FP16] = {"FP16", 2},
	[DATATYPE_FP32] = {"FP32", 4},     [DATATYPE_FP64] = {"FP64", 8},
	[DATATYPE_BF16] = {"BF16", 2},     [DATATYPE_BYTES] = {"BYTES", 4},
};

const char *workers_datatype_name(enum datatype datatype)
{
	return (unsigned int)datatype < DATATYPES ? datatypes[datatype].name : "unknown";
}

enum datatype workers_datatype_find(const char *name)
{
	for (unsigned int i = 0; i < DATATYPES; i++)
		if (strcmp(datatypes[i].name, name) == 0)
			return (enum datatype)i;
	return DATATYPES;
}

unsigned int workers_datatype_bytes(enum datatype datatype)
{
	return (unsigned int)datatype < DATATYPES ? datatypes[datatype].bytes : 0;
}

/* The inputs or the outputs of a description. */
struct side {
	const char *field, *one;
	const struct model_tensor *tensor;
	unsigned int n;
};

static void description_sides(const struct model_description *d, struct side side[2])
{
	side[0] = (struct side){"inputs", "input", d->input, d->n_inputs};
	side[1] = (struct side){"outputs", "output", d->output, d->n_outputs};
}

static bool description_fail(char *error, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static bool description_fail(char *error, size_t size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error, size, format, arguments);
	va_end(arguments);
	return false;
}

static bool description_version_char(int c)
{
	return isalnum(c) || c == '.' || c == '_' || c == '-';
}

static bool description_name_char(int c)
{
	return isgraph(c);
}

/* Check that <text> ends within <size> bytes and has allowed characters only. */
static bool description_text_is_valid(const char *text, size_t size, bool (*allowed)(int c))
{
	size_t length = strnlen(text, size);

	for (size_t i = 0; i < length; i++)
		if (!allowed((unsigned char)text[i]))
			return false;
	return length < size;
}

/* Free dimensions beside the batch. */
static unsigned int tensor_free(const struct model_tensor *t, bool batch)
{
	unsigned int n = 0;

	for (unsigned int i = batch; i < t->rank; i++)
		n += t->shape[i] == DESCRIPTION_FREE;
	return n;
}

struct description_bytes workers_tensor_bytes(const struct model_tensor *t, bool batch)
{
	uint64_t bytes = workers_datatype_bytes(t->datatype);

	if (tensor_free(t, batch) > 0)
		return (struct description_bytes){0, false};
	/* Dimensions have 31 bits: a product that is too large is kept from wrapping. */
	for (unsigned int i = batch; i < t->rank && bytes <= WORKER_BYTES_MAX; i++)
		bytes *= (uint64_t)t->shape[i];
	return (struct description_bytes){bytes, t->datatype != DATATYPE_BYTES};
}

static struct description_bytes side_bytes(const struct model_tensor *t, unsigned int n, bool batch)
{
	struct description_bytes sum = {0, true};

	for (unsigned int i = 0; i < n; i++) {
		struct description_bytes one = workers_tensor_bytes(&t[i], batch);

		sum.least += one.least;
		sum.fixed = sum.fixed && one.fixed;
	}
	return sum;
}

struct description_bytes workers_description_request(const struct model_description *d)
{
	return side_bytes(d->input, d->n_inputs, d->batch);
}

struct description_bytes workers_description_reply(const struct model_description *d)
{
	return side_bytes(d->output, d->n_outputs, d->batch);
}

/* --- validity ----------------------------------------------------------------------------------
 */

static bool tensor_shape_is_valid(const struct side *s, unsigned int i, bool batch, char *error,
				  size_t size)
{
	const struct model_tensor *t = &s->tensor[i];

	if (t->rank > DESCRIPTION_RANK_MAX)
		return description_fail(error, size, "%s[%u].shape: %u dimensions; use at most %d",
					s->field, i, t->rank, DESCRIPTION_RANK_MAX);
	if (batch && (t->rank == 0 || t->shape[0] != DESCRIPTION_FREE))
		return description_fail(
			error, size, "%s[%u].shape: the first dimension is the batch; make it %d",
			s->field, i, DESCRIPTION_FREE);
	for (unsigned int k = 0; k < t->rank; k++)
		if (t->shape[k] != DESCRIPTION_FREE && t->shape[k] < 1)
			return description_fail(
				error, size,
				"%s[%u].shape[%u]: %d; use 1 or more, or %d for a free dimension",
				s->field, i, k, t->shape[k], DESCRIPTION_FREE);
	if (workers_tensor_bytes(t, batch).least > WORKER_BYTES_MAX)
		return description_fail(error, size, "%s[%u].shape: more than %u bytes", s->field,
					i, WORKER_BYTES_MAX);
	return true;
}

static bool tensor_is_valid(const struct side *s, unsigned int i, bool batch, char *error,
			    size_t size)
{
	const struct model_tensor *t = &s->tensor[i];

	if (t->name[0] == '\0' ||
	    !description_text_is_valid(t->name, sizeof(t->name), description_name_char))
		return description_fail(
			error, size,
			"%s[%u].name: use 1 to %d printable ASCII characters without spaces",
			s->field, i, DESCRIPTION_NAME_MAX - 1);
	for (unsigned int k = 0; k < i; k++)
		if (strcmp(s->tensor[k].name, t->name) == 0)
			return description_fail(error, size,
						"%s[%u].name: '%s' is the name of "
						"%s[%u], too; use another",
						s->field, i, t->name, s->field, k);
	if ((unsigned int)t->datatype >= DATATYPES)
		return description_fail(error, size,
					"%s[%u].datatype: unknown; use BOOL, UINT8 to UINT64, INT8 "
					"to INT64, FP16, FP32, FP64, BF16 or BYTES",
					s->field, i);
	return tensor_shape_is_valid(s, i, batch, error, size);
}

static bool side_is_valid(const struct side *s, bool batch, char *error, size_t size)
{
	if (s->n < 1 || s->n > DESCRIPTION_TENSORS_MAX)
		return description_fail(error, size, "%s: %u tensors; use 1 to %d", s->field, s->n,
					DESCRIPTION_TENSORS_MAX);
	for (unsigned int i = 0; i < s->n; i++)
		if (!tensor_is_valid(s, i, batch, error, size))
			return false;
	if (side_bytes(s->tensor, s->n, batch).least > WORKER_BYTES_MAX)
		return description_fail(error, size, "%s: together more than %u bytes", s->field,
					WORKER_BYTES_MAX);
	return true;
}

/* A reply says only how long it is, and the shapes of its tensors must follow from that. */
static bool outputs_are_told_by_length(const struct side *s, bool batch, char *error, size_t size)
{
	for (unsigned int i = 0; i < s->n; i++) {
		unsigned int n = tensor_free(&s->tensor[i], batch);

		if (n > 0 && i + 1 < s->n)
			return description_fail(
				error, size,
				"%s[%u].shape: only the last output may have a free "
				"dimension%s, as a reply's length alone tells it",
				s->field, i, batch ? " beside the batch" : "");
		if (n > 1)
			return description_fail(error, size,
						"%s[%u].shape: %u free dimensions%s; use one at "
						"most, as a reply's length alone tells it",
						s->field, i, n, batch ? " beside the batch" : "");
	}
	return true;
}

bool workers_description_is_valid(const struct model_description *d, char *error, size_t error_size)
{
	struct side side[2];

	description_sides(d, side);
	if (d->version[0] == '\0' ||
	    !description_text_is_valid(d->version, sizeof(d->version), description_version_char))
		return description_fail(error, error_size,
					"version: use 1 to %d letters, digits and ._-",
					DESCRIPTION_VERSION_MAX - 1);
	if (!description_text_is_valid(d->platform, sizeof(d->platform), description_name_char))
		return description_fail(error, error_size,
					"platform: use at most %d printable ASCII characters "
					"without spaces",
					DESCRIPTION_PLATFORM_MAX - 1);
	return side_is_valid(&side[0], d->batch, error, error_size) &&
	       side_is_valid(&side[1], d->batch, error, error_size) &&
	       outputs_are_told_by_length(&side[1], d->batch, error, error_size);
}

/* --- sizes -------------------------------------------------------------------------------------
 */

bool workers_description_fits(const struct model_description *d, uint32_t min_request,
			      uint32_t max_request, uint32_t max_reply, bool reply_cut, char *error,
			      size_t error_size)
{
	struct description_bytes in = workers_description_request(d);
	struct description_bytes out = workers_description_reply(d);
	unsigned int request = (unsigned int)in.least, reply = (unsigned int)out.least;

	if (in.fixed ? max_request != request : max_request < request)
		return description_fail(error, error_size,
					"max_request: %u bytes, and the inputs have %u%s",
					max_request, request, in.fixed ? "" : " or more");
	if (in.fixed ? min_request != request : min_request < request)
		return description_fail(error, error_size,
					"min_request: %u bytes, and the inputs have %u%s",
					min_request, request, in.fixed ? "" : " or more");
	if (out.fixed && max_reply > reply)
		return description_fail(error, error_size,
					"max_reply: %u bytes, and the outputs have %u", max_reply,
					reply);
	if (!reply_cut && max_reply < reply)
		return description_fail(error, error_size,
					"max_reply: %u bytes, and the outputs have %u%s", max_reply,
					reply, out.fixed ? "" : " or more");
	return true;
}

/* --- agreement ---------------------------------------------------------------------------------
 */

const char *workers_tensor_shape(const struct model_tensor *t, char *text)
{
	size_t at = 0;

	text[at++] = '[';
	for (unsigned int i = 0; i < t->rank && i < DESCRIPTION_RANK_MAX; i++)
		at += (size_t)sprintf(text + at, "%s%d", i > 0 ? "," : "", t->shape[i]);
	strcpy(text + at, "]");
	return text;
}

static bool tensors_agree(const struct side *s, const struct side *other, unsigned int i,
			  const char *whose, char *error, size_t size)
{
	const struct model_tensor *a = &s->tensor[i], *b = &other->tensor[i];
	char shape[2][DESCRIPTION_SHAPE_TEXT];

	if (strcmp(a->name, b->name) != 0)
		return description_fail(error, size, "%s[%u].name: '%s', and '%s' in %s", s->field,
					i, a->name, b->name, whose);
	if (a->datatype != b->datatype)
		return description_fail(error, size, "%s[%u].datatype: %s '%s' is %s, and %s in %s",
					s->field, i, s->one, a->name,
					workers_datatype_name(a->datatype),
					workers_datatype_name(b->datatype), whose);
	if (a->rank != b->rank || memcmp(a->shape, b->shape, a->rank * sizeof(a->shape[0])) != 0)
		return description_fail(error, size, "%s[%u].shape: %s '%s' has %s, and %s in %s",
					s->field, i, s->one, a->name,
					workers_tensor_shape(a, shape[0]),
					workers_tensor_shape(b, shape[1]), whose);
	return true;
}

bool workers_description_agrees(const struct model_description *d,
				const struct model_description *other, const char *whose,
				char *error, size_t error_size)
{
	struct side mine[2], others[2];

	description_sides(d, mine);
	description_sides(other, others);
	if (d->batch != other->batch)
		return description_fail(error, error_size, "batch: %s, and %s in %s",
					d->batch ? "true" : "false",
					other->batch ? "true" : "false", whose);
	for (unsigned int k = 0; k < 2; k++) {
		if (mine[k].n != others[k].n)
			return description_fail(error, error_size, "%s: %u, and %u in %s",
						mine[k].field, mine[k].n, others[k].n, whose);
		for (unsigned int i = 0; i < mine[k].n; i++)
			if (!tensors_agree(&mine[k], &others[k], i, whose, error, error_size))
				return false;
	}
	return true;
}
