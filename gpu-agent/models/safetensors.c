/* SPDX-License-Identifier: BSD-3-Clause */
#include "models/safetensors.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAFETENSORS_METADATA "__metadata__"

struct safetensors {
	json_t *header; /* owns the names and the metadata */
	size_t n;
	struct safetensors_tensor tensors[];
};

/* The caller's buffer for the error sentence. */
struct report {
	char *text;
	size_t size;
};

static const struct dtype {
	const char *name;
	uint64_t size;
} dtypes[] = {
	{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
	{"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
	{"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8},
};

/* Format the error. Parts of it come from the file, so unprintable bytes are replaced: they could
 * upset a terminal or a log. */
static int report_text(struct report *report, const char *format, va_list arguments)
{
	vsnprintf(report->text, report->size, format, arguments);
	for (char *c = report->text; *c != '\0'; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
	return -EINVAL;
}

__attribute__((format(printf, 2, 3))) static int report_file(struct report *report,
							     const char *format, ...)
{
	va_list arguments;
	int ret;

	va_start(arguments, format);
	ret = report_text(report, format, arguments);
	va_end(arguments);
	return ret;
}

__attribute__((format(printf, 3, 4))) static int
report_tensor(struct report *report, const char *name, const char *format, ...)
{
	char problem[160];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(problem, sizeof(problem), format, arguments);
	va_end(arguments);
	return report_file(report, "tensor '%.64s': %s", name, problem);
}

static uint64_t little_endian_u64(const uint8_t *bytes)
{
	uint64_t value = 0;

	for (int i = 7; i >= 0; i--)
		value = value << 8 | bytes[i];
	return value;
}

static int json_u64(const json_t *value, uint64_t *number)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return -EINVAL;
	*number = (uint64_t)json_integer_value(value);
	return 0;
}

static int tensor_shape(struct safetensors_tensor *tensor, const json_t *shape,
			struct report *report)
{
	uint64_t length;
	json_t *value;
	size_t i;

	if (!json_is_array(shape))
		return report_tensor(report, tensor->name, "shape is not a list");
	if (json_array_size(shape) > SAFETENSORS_RANK_MAX)
		return report_tensor(report, tensor->name,
				     "has %zu dimensions, at most %d are read",
				     json_array_size(shape), SAFETENSORS_RANK_MAX);
	tensor->rank = (uint32_t)json_array_size(shape);
	tensor->elements = 1;
	json_array_foreach (shape, i, value) {
		if (json_u64(value, &length) != 0)
			return report_tensor(report, tensor->name,
					     "shape has something that is not a length");
		if (__builtin_mul_overflow(tensor->elements, length, &tensor->elements))
			return report_tensor(report, tensor->name,
					     "shape overflows: its product exceeds 64 bits");
		tensor->shape[i] = length;
	}
	return 0;
}

static int tensor_bytes(struct safetensors_tensor *tensor, const json_t *offsets, uint64_t element,
			const uint8_t *data, uint64_t data_size, struct report *report)
{
	uint64_t begin, end, need;

	if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
	    json_u64(json_array_get(offsets, 0), &begin) != 0 ||
	    json_u64(json_array_get(offsets, 1), &end) != 0)
		return report_tensor(report, tensor->name, "data_offsets is not [begin, end]");
	if (begin > end || end > data_size)
		return report_tensor(report, tensor->name,
				     "data_offsets [%" PRIu64 ", %" PRIu64
				     "] leave the file's %" PRIu64 " data bytes",
				     begin, end, data_size);
	if (__builtin_mul_overflow(tensor->elements, element, &need) || need != end - begin)
		return report_tensor(report, tensor->name,
				     "data_offsets hold %" PRIu64
				     " bytes, which shape and dtype do not add up to",
				     end - begin);
	tensor->data = data + begin;
	tensor->size = end - begin;
	return 0;
}

static int tensor_parse(struct safetensors_tensor *tensor, const char *name, const json_t *entry,
			const uint8_t *data, uint64_t data_size, struct report *report)
{
	const char *dtype = json_string_value(json_object_get(entry, "dtype"));
	uint64_t element = 0;
	int ret;

	tensor->name = name;
	if (!json_is_object(entry))
		return report_tensor(report, name, "its entry is not an object");
	for (size_t i = 0; dtype != NULL && i < sizeof(dtypes) / sizeof(dtypes[0]); i++)
		if (strcmp(dtypes[i].name, dtype) == 0)
			element = dtypes[i].size;
	if (element == 0)
		return report_tensor(report, name, "dtype is missing or unknown");
	tensor->dtype = dtype;
	ret = tensor_shape(tensor, json_object_get(entry, "shape"), report);
	if (ret != 0)
		return ret;
	return tensor_bytes(tensor, json_object_get(entry, "data_offsets"), element, data,
			    data_size, report);
}

static int by_place(const void *a, const void *b)
{
	const struct safetensors_tensor *x = a, *y = b;

	if (x->data != y->data)
		return x->data < y->data ? -1 : 1;
	return (x->size > y->size) - (x->size < y->size);
}

/* Check that tensors follow each other to the end: the format allows neither overlaps nor holes. */
static int check_layout(struct safetensors *file, const uint8_t *data, uint64_t data_size,
			struct report *report)
{
	const uint8_t *expected = data;

	qsort(file->tensors, file->n, sizeof(file->tensors[0]), by_place);
	for (size_t i = 0; i < file->n; i++) {
		const struct safetensors_tensor *tensor = &file->tensors[i];

		if (tensor->data < expected)
			return report_tensor(report, tensor->name, "overlaps the tensor before it");
		if (tensor->data > expected)
			return report_tensor(report, tensor->name,
					     "bytes before it belong to no tensor");
		expected += tensor->size;
	}
	if (expected != data + data_size)
		return report_file(report, "bytes after the last tensor belong to none");
	return 0;
}

static int check_metadata(const json_t *metadata, struct report *report)
{
	const char *key;
	json_t *value;

	if (!json_is_object(metadata))
		return report_file(report, SAFETENSORS_METADATA " is not an object");
	json_object_foreach ((json_t *)metadata, key, value) {
		if (!json_is_string(value))
			return report_file(report,
					   SAFETENSORS_METADATA " has a value that is not text");
	}
	return 0;
}

static int parse_tensors(struct safetensors *file, const uint8_t *data, uint64_t data_size,
			 struct report *report)
{
	const char *name;
	json_t *entry;
	int ret;

	json_object_foreach (file->header, name, entry) {
		if (strcmp(name, SAFETENSORS_METADATA) == 0)
			ret = check_metadata(entry, report);
		else
			ret = tensor_parse(&file->tensors[file->n++], name, entry, data, data_size,
					   report);
		if (ret != 0)
			return ret;
	}
	return check_layout(file, data, data_size, report);
}

static int parse_header(const uint8_t *bytes, size_t size, json_t **header, struct report *report)
{
	json_error_t problem;
	uint64_t length;

	if (size < 8)
		return report_file(report, "the file has %zu bytes, too short for a header", size);
	length = little_endian_u64(bytes);
	if (length > SAFETENSORS_HEADER_MAX || length > size - 8)
		return report_file(report, "the header claims %" PRIu64 " bytes, the file has %zu",
				   length, size);
	*header = json_loadb((const char *)bytes + 8, length, JSON_REJECT_DUPLICATES, &problem);
	if (*header == NULL)
		return report_file(report, "the header is not JSON: %s at byte %d", problem.text,
				   problem.position);
	if (!json_is_object(*header)) {
		json_decref(*header);
		return report_file(report, "the header is not a JSON object");
	}
	return 0;
}

int safetensors_parse(const void *bytes, size_t size, struct safetensors **result, char *error,
		      size_t error_size)
{
	struct report report = {error, error_size};
	struct safetensors *file;
	uint64_t header_end;
	json_t *header;
	int ret;

	ret = parse_header(bytes, size, &header, &report);
	if (ret != 0)
		return ret;
	header_end = 8 + little_endian_u64(bytes);
	file = calloc(1, sizeof(*file) + json_object_size(header) * sizeof(file->tensors[0]));
	if (file == NULL) {
		report_file(&report, "out of memory");
		json_decref(header);
		return -ENOMEM;
	}
	file->header = header;
	ret = parse_tensors(file, (const uint8_t *)bytes + header_end, size - header_end, &report);
	if (ret != 0) {
		safetensors_destroy(file);
		return ret;
	}
	*result = file;
	return 0;
}

void safetensors_destroy(struct safetensors *file)
{
	if (file == NULL)
		return;
	json_decref(file->header);
	free(file);
}

const struct safetensors_tensor *safetensors_at(const struct safetensors *file, size_t index)
{
	return index < file->n ? &file->tensors[index] : NULL;
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *file, const char *name)
{
	for (size_t i = 0; i < file->n; i++)
		if (strcmp(file->tensors[i].name, name) == 0)
			return &file->tensors[i];
	return NULL;
}

const char *safetensors_metadata(const struct safetensors *file, const char *key)
{
	return json_string_value(
		json_object_get(json_object_get(file->header, SAFETENSORS_METADATA), key));
}
