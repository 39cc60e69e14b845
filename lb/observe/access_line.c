/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/access_line.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "json/write.h"

/* RFC 3339, in us: "2026-01-31T08:15:30.000123Z" */
static void line_put_time(struct json_out *o, uint64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	char text[32], all[64];
	struct tm t;

	gmtime_r(&seconds, &t);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &t);
	snprintf(all, sizeof(all), "{\"time\":\"%s.%06uZ\"", text,
		 (unsigned int)(ns % 1000000000 / 1000));
	json_put(o, all);
}

static void line_put_text(struct json_out *o, const char *name, const char *text, uint32_t length)
{
	json_put(o, name);
	json_put_string(o, text, length);
}

/* An empty text says that there is none. */
static void line_put_name(struct json_out *o, const char *name, const char *text)
{
	if (text == NULL || text[0] == '\0') {
		json_put(o, name);
		json_put(o, "null");
	} else {
		line_put_text(o, name, text, (uint32_t)strlen(text));
	}
}

static void line_put_number(struct json_out *o, const char *name, uint64_t value)
{
	json_put(o, name);
	json_put_u64(o, value);
}

static void line_put_times(struct json_out *o, const struct access_record *r)
{
	if (r->had_worker) {
		line_put_number(o, ",\"queue_us\":", r->queue_us);
		line_put_number(o, ",\"worker_us\":", r->worker_us);
	} else {
		json_put(o, ",\"queue_us\":null,\"worker_us\":null");
	}
	line_put_number(o, ",\"total_us\":", r->total_us);
}

uint32_t access_line_write(const struct access_record *r, char *at)
{
	struct json_out o = {at, at + ACCESS_LINE_MAX, false};
	char address[LB_ADDRESS_TEXT];

	line_put_time(&o, r->ns);
	line_put_name(&o, ",\"client\":", lb_address_format(&r->client, address, sizeof(address)));
	line_put_number(&o, ",\"port\":", r->port);
	line_put_name(&o, ",\"service\":", r->service);
	line_put_name(&o, ",\"model\":", r->model);
	json_put(&o, r->is_grpc ? ",\"protocol\":\"grpc\"" : ",\"protocol\":\"http/1.1\"");
	line_put_name(&o, ",\"call\":", r->call);
	line_put_number(&o, ",\"status\":", r->status);
	line_put_number(&o, ",\"bytes_in\":", r->bytes_in);
	line_put_number(&o, ",\"bytes_out\":", r->bytes_out);
	line_put_times(&o, r);
	if (r->has_id)
		line_put_text(&o, ",\"id\":", r->id, r->id_length);
	else
		json_put(&o, ",\"id\":null");
	json_put(&o, "}\n");
	return (uint32_t)(o.at - at);
}
