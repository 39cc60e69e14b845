/* SPDX-License-Identifier: BSD-3-Clause */
/* Heads of HTTP/1.1 responses. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "http/response.h"

static const char *written(struct http_response r)
{
	static char text[HTTP_RESPONSE_MAX + 1];
	uint32_t n = http_response_write(&r, text);

	cr_assert(n <= HTTP_RESPONSE_MAX);
	text[n] = '\0';
	return text;
}

Test(lb_http_response, heads)
{
	cr_assert_str_eq(
		written((struct http_response){.status = 200,
					       .body = HTTP_LENGTH,
					       .type = HTTP_JSON,
					       .minor = 1,
					       .keep_alive = true,
					       .length = 17}),
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 17\r\n\r\n");
	cr_assert_str_eq(
		written((struct http_response){.status = 200,
					       .body = HTTP_CHUNKED,
					       .type = HTTP_OCTETS,
					       .minor = 1,
					       .keep_alive = true,
					       .has_json_length = true,
					       .json_length = 120}),
		"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
		"Transfer-Encoding: chunked\r\nInference-Header-Content-Length: 120\r\n\r\n");
	cr_assert_str_eq(
		written((struct http_response){
			.status = 503, .body = HTTP_LENGTH, .minor = 1, .retry_after_s = 1}),
		"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n"
		"Connection: close\r\n\r\n");
}

Test(lb_http_response, heads_with_rare_fields)
{
	cr_assert_str_eq(written((struct http_response){.status = 405,
							.body = HTTP_LENGTH,
							.minor = 0,
							.keep_alive = true,
							.allow = "GET, HEAD"}),
			 "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n"
			 "Allow: GET, HEAD\r\nConnection: keep-alive\r\n\r\n");
	cr_assert_str_eq(
		written((struct http_response){.status = 415, .minor = 1, .keep_alive = true}),
		"HTTP/1.1 415 Unsupported Media Type\r\nAccept-Encoding: identity\r\n\r\n");
	cr_assert_str_eq(written((struct http_response){.status = 200,
							.body = HTTP_TO_CLOSE,
							.type = HTTP_EVENTS,
							.date = "Thu, 01 Jan 1970 00:00:00 GMT"}),
			 "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
			 "Content-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
			 "Connection: close\r\n\r\n");
}

Test(lb_http_response, the_longest_head_fits)
{
	for (uint16_t status = 100; status < 600; status++) {
		written((struct http_response){.status = status,
					       .body = HTTP_LENGTH,
					       .type = HTTP_EVENTS,
					       .keep_alive = true,
					       .has_json_length = true,
					       .length = UINT64_MAX,
					       .json_length = UINT64_MAX,
					       .retry_after_s = UINT32_MAX,
					       .allow = "GET, HEAD, POST, PUT, DELETE, PA",
					       .date = "Thu, 01 Jan 1970 00:00:00 GMT"});
	}
}

Test(lb_http_response, statuses_have_reasons)
{
	static const uint16_t statuses[] = {200, 400, 404, 405, 408, 411, 413, 414,
					    415, 417, 431, 500, 501, 503, 504, 505};

	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		cr_assert_neq(http_reason(statuses[i])[0], '\0', "%u", statuses[i]);
	cr_assert_str_eq(http_reason(299), "");
}

Test(lb_http_response, dates_are_those_of_the_library)
{
	char text[HTTP_DATE_LENGTH + 1] = "", want[64];

	/* Up to the year 2200, in steps that meet every day and all times of day. */
	for (time_t t = 0; t < 7258118400; t += 75611) {
		struct tm tm;

		gmtime_r(&t, &tm);
		strftime(want, sizeof(want), "%a, %d %b %Y %H:%M:%S GMT", &tm);
		http_date_write((uint64_t)t, text);
		cr_assert_str_eq(text, want);
	}
}
