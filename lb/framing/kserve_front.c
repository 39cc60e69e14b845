/* SPDX-License-Identifier: BSD-3-Clause */
#include "framing/kserve_front.h"

#include <string.h>

static uint32_t front_place(const struct kserve_asked *a, uint32_t length)
{
	uint64_t hash = (a->layout->number ^ (uint64_t)length << 32) * 0x9e3779b97f4a7c15;

	return (hash >> 32) % KSERVE_FRONT;
}

/* Those of requests with an id are not kept. */
const struct kserve_front *kserve_front_find(const struct kserve_front *table,
					   const struct kserve_asked *a, uint32_t length)
{
	const struct kserve_front *front = &table[front_place(a, length)];

	return !a->has_id && front->layout_number == a->layout->number && front->length == length
		       ? front
		       : NULL;
}

const struct kserve_front *kserve_front_make(struct kserve_front *table, const struct kserve_asked *a,
					   uint32_t length, const void *first, uint32_t n_first,
					   const void *second, uint32_t n_second, uint32_t date)
{
	struct kserve_front *front = a->has_id ? &a->room->front_once : &table[front_place(a, length)];

	if ((uint64_t)n_first + n_second > sizeof(front->text))
		return NULL;
	front->layout_number = a->layout->number;
	front->length = length;
	front->date = (uint16_t)date;
	front->head_length = (uint16_t)n_first;
	front->text_length = (uint16_t)(n_first + n_second);
	memcpy(front->text, first, n_first);
	memcpy(front->text + n_first, second, n_second);
	return front;
}

const struct kserve_front *kserve_front_http(const struct kserve_asked *a, uint32_t length,
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
	return kserve_front_make(a->room->front, a, length, head, n, json, n_json,
				(uint32_t)(date - head));
}

uint32_t kserve_front_write(const struct kserve_front *front, const char *date, uint8_t *at)
{
	memcpy(at, front->text, front->text_length);
	memcpy(at + front->date, date, HTTP_DATE_LENGTH);
	return front->text_length;
}
