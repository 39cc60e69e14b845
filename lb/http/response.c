/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "http/response.h"

static const struct {
	uint16_t status;
	const char *reason;
} reasons[] = {
	{200, "OK"},
	{204, "No Content"},
	{400, "Bad Request"},
	{401, "Unauthorized"},
	{403, "Forbidden"},
	{404, "Not Found"},
	{405, "Method Not Allowed"},
	{408, "Request Timeout"},
	{411, "Length Required"},
	{413, "Content Too Large"},
	{414, "URI Too Long"},
	{415, "Unsupported Media Type"},
	{417, "Expectation Failed"},
	{429, "Too Many Requests"},
	{431, "Request Header Fields Too Large"},
	{499, "Client Closed Request"},
	{500, "Internal Server Error"},
	{501, "Not Implemented"},
	{502, "Bad Gateway"},
	{503, "Service Unavailable"},
	{504, "Gateway Timeout"},
	{505, "HTTP Version Not Supported"},
};

const char *http_reason(uint16_t status)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (reasons[i].status == status)
			return reasons[i].reason;
	}
	return "";
}

static char *response_put(char *at, const char *text)
{
	size_t n = strlen(text);

	memcpy(at, text, n);
	return at + n;
}

static char *response_put_number(char *at, uint64_t value)
{
	char digits[20];
	int n = 0;

	do {
		digits[n++] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	while (n > 0)
		*at++ = digits[--n];
	return at;
}

static char *response_put_field(char *at, const char *name, uint64_t value)
{
	return response_put(response_put_number(response_put(at, name), value), "\r\n");
}

static char *response_put_type(char *at, enum http_type type)
{
	static const char *const names[] = {
		[HTTP_JSON] = "Content-Type: application/json\r\n",
		[HTTP_OCTETS] = "Content-Type: application/octet-stream\r\n",
		[HTTP_TEXT] = "Content-Type: text/plain; charset=utf-8\r\n",
		[HTTP_EVENTS] = "Content-Type: text/event-stream\r\nCache-Control: no-cache\r\n",
		[HTTP_OTHER_TYPE] = NULL,
	};

	return names[type] == NULL ? at : response_put(at, names[type]);
}

static char *response_put_body(char *at, const struct http_response *r)
{
	if (r->body == HTTP_LENGTH)
		return response_put_field(at, "Content-Length: ", r->length);
	if (r->body == HTTP_CHUNKED)
		return response_put(at, "Transfer-Encoding: chunked\r\n");
	return at;
}

/* Says what differs from the version's default. */
static char *response_put_connection(char *at, const struct http_response *r)
{
	if (!r->keep_alive)
		return response_put(at, "Connection: close\r\n");
	return r->minor == 0 ? response_put(at, "Connection: keep-alive\r\n") : at;
}

uint32_t http_response_write(const struct http_response *r, char at[HTTP_RESPONSE_MAX])
{
	char *start = at;

	at = response_put_number(response_put(at, "HTTP/1.1 "), r->status);
	at = response_put(response_put(response_put(at, " "), http_reason(r->status)), "\r\n");
	if (r->date != NULL) {
		at = response_put(at, "Date: ");
		memcpy(at, r->date, HTTP_DATE_LENGTH);
		at = response_put(at + HTTP_DATE_LENGTH, "\r\n");
	}
	at = response_put_type(at, (enum http_type)r->type);
	at = response_put_body(at, r);
	if (r->has_json_length)
		at = response_put_field(at, "Inference-Header-Content-Length: ", r->json_length);
	if (r->retry_after_s > 0)
		at = response_put_field(at, "Retry-After: ", r->retry_after_s);
	if (r->allow != NULL)
		at = response_put(response_put(response_put(at, "Allow: "), r->allow), "\r\n");
	if (r->status == 415)
		at = response_put(at, "Accept-Encoding: identity\r\n"); /* RFC 9110, 15.5.16 */
	at = response_put(response_put_connection(at, r), "\r\n");
	return (uint32_t)(at - start);
}

static bool is_leap(uint32_t year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static void response_put_two(char *at, uint64_t value)
{
	at[0] = (char)('0' + value / 10 % 10);
	at[1] = (char)('0' + value % 10);
}

/* Once a second at most: it counts years. */
void http_date_write(uint64_t seconds, char at[HTTP_DATE_LENGTH])
{
	static const char weekdays[] = "ThuFriSatSunMonTueWed";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	static const uint8_t lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	uint64_t days = seconds / 86400, weekday = days % 7;
	uint32_t year = 1970, month = 0, length;

	for (; days >= 365u + is_leap(year); year++)
		days -= 365u + is_leap(year);
	while (days >= (length = lengths[month] + (month == 1 && is_leap(year)))) {
		days -= length;
		month++;
	}
	memcpy(at, "Thu, 01 Jan 1970 00:00:00 GMT", HTTP_DATE_LENGTH);
	memcpy(at, weekdays + 3 * weekday, 3);
	response_put_two(at + 5, days + 1);
	memcpy(at + 8, months + 3 * month, 3);
	response_put_two(at + 12, year / 100);
	response_put_two(at + 14, year % 100);
	response_put_two(at + 17, seconds / 3600 % 24);
	response_put_two(at + 20, seconds / 60 % 60);
	response_put_two(at + 23, seconds % 60);
}
