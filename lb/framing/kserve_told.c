/* SPDX-License-Identifier: BSD-3-Clause */
#include "framing/kserve_told.h"

#include <string.h>

static uint32_t told_place(const struct kserve_asked *a, uint32_t length)
{
	uint64_t hash = (a->layout->number ^ (uint64_t)length << 32) * 0x9e3779b97f4a7c15;

	return (hash >> 32) % KSERVE_TOLD;
}

/* Those of requests with an id are not kept. */
const struct kserve_told *kserve_told_find(const struct kserve_told *table,
					   const struct kserve_asked *a, uint32_t length)
{
	const struct kserve_told *told = &table[told_place(a, length)];

	return !a->has_id && told->layout_number == a->layout->number && told->length == length
		       ? told
		       : NULL;
}

const struct kserve_told *kserve_told_make(struct kserve_told *table, const struct kserve_asked *a,
					   uint32_t length, const void *first, uint32_t n_first,
					   const void *second, uint32_t n_second, uint32_t date)
{
	struct kserve_told *told = a->has_id ? &a->room->told_once : &table[told_place(a, length)];

	if ((uint64_t)n_first + n_second > sizeof(told->text))
		return NULL;
	told->layout_number = a->layout->number;
	told->length = length;
	told->date = (uint16_t)date;
	told->text_length = (uint16_t)(n_first + n_second);
	memcpy(told->text, first, n_first);
	memcpy(told->text + n_first, second, n_second);
	return told;
}

const struct kserve_told *kserve_told_http(const struct kserve_asked *a, uint32_t length,
					   const struct kserve_answer *answer)
{
	static const char no_date[HTTP_DATE_LENGTH + 1] = "-----------------------------";
	char head[HTTP_RESPONSE_MAX], *date, *json = (char *)a->room->scratch;
	const uint8_t *nothing = NULL;
	struct kserve_writer w = {0};
	struct http_response response = {.status = 200,
					 .body = HTTP_LENGTH,
					 .type = HTTP_OCTETS,
					 .minor = 1,
					 .keep_alive = true,
					 .has_json_length = true,
					 .date = no_date};
	uint32_t n_json, n;

	n_json = kserve_answer_write(answer, &w, &nothing, nothing, json, KSERVE_DOCUMENT);
	response.json_length = n_json;
	response.length = (uint64_t)n_json + length;
	n = http_response_write(&response, head);
	date = memmem(head, n, no_date, HTTP_DATE_LENGTH);
	if (!w.done || date == NULL)
		return NULL;
	return kserve_told_make(a->room->told, a, length, head, n, json, n_json,
				(uint32_t)(date - head));
}

uint32_t kserve_told_write(const struct kserve_told *told, const char *date, uint8_t *at)
{
	memcpy(at, told->text, told->text_length);
	memcpy(at + told->date, date, HTTP_DATE_LENGTH);
	return told->text_length;
}
