/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of the access log. */
#include <criterion/criterion.h>
#include <string.h>

#include "observe/access_line.h"

static struct access_record record_of(const char *client)
{
	struct access_record r = {.ns = UINT64_C(1769847330000123999),
				  .bytes_in = 412,
				  .bytes_out = 302,
				  .total_us = 230,
				  .queue_us = 3,
				  .worker_us = 210,
				  .port = 40112,
				  .status = 200,
				  .had_worker = true,
				  .has_id = true,
				  .id_length = 5,
				  .call = "infer",
				  .service = "kserve",
				  .model = "mlp",
				  .id = "seven"};

	cr_assert_eq(lb_address_parse(client, &r.client), 0);
	return r;
}

static const char *line_of(const struct access_record *r)
{
	static char text[ACCESS_LINE_MAX + 1];
	uint32_t n = access_line_write(r, text);

	cr_assert(n <= ACCESS_LINE_MAX);
	text[n] = '\0';
	return text;
}

Test(lb_access_line, says_where_the_time_of_a_request_went)
{
	struct access_record r = record_of("10.200.0.2");

	cr_assert_str_eq(line_of(&r),
			 "{\"time\":\"2026-01-31T08:15:30.000123Z\",\"client\":\"10.200.0.2\","
			 "\"port\":40112,\"service\":\"kserve\",\"model\":\"mlp\","
			 "\"protocol\":\"http/1.1\",\"call\":\"infer\",\"status\":200,"
			 "\"bytes_in\":412,\"bytes_out\":302,\"queue_us\":3,\"worker_us\":210,"
			 "\"total_us\":230,\"id\":\"seven\"}\n");
}

Test(lb_access_line, what_is_not_known_is_null)
{
	struct access_record r = record_of("2001:db8::7");

	r.had_worker = r.has_id = false;
	r.call = NULL;
	r.model[0] = '\0';
	r.is_grpc = true;
	r.status = 12;
	cr_assert_str_eq(line_of(&r),
			 "{\"time\":\"2026-01-31T08:15:30.000123Z\",\"client\":\"2001:db8::7\","
			 "\"port\":40112,\"service\":\"kserve\",\"model\":null,"
			 "\"protocol\":\"grpc\",\"call\":null,\"status\":12,"
			 "\"bytes_in\":412,\"bytes_out\":302,\"queue_us\":null,\"worker_us\":null,"
			 "\"total_us\":230,\"id\":null}\n");
}

/* A client chooses its id: no byte of it ends the line, or the string. */
Test(lb_access_line, ids_are_escaped)
{
	struct access_record r = record_of("10.200.0.2");
	const char *line;

	memcpy(r.id, "\n\"\xff\\", 4);
	r.id_length = 4;
	line = line_of(&r);
	cr_assert_not_null(strstr(line, "\"id\":\"\\n\\\"\xef\xbf\xbd\\\\\"}\n"), "%s", line);
}

Test(lb_access_line, the_longest_line_has_room)
{
	struct access_record r = record_of("2001:db8:1111:2222:3333:4444:5555:6666");
	size_t n;

	r.bytes_in = r.bytes_out = r.total_us = r.queue_us = r.worker_us = UINT64_MAX;
	r.id_length = sizeof(r.id);
	memset(r.id, 1, sizeof(r.id));
	memset(r.service, 1, sizeof(r.service) - 1);
	memset(r.model, 1, sizeof(r.model) - 1);
	n = strlen(line_of(&r));
	cr_assert_eq(strcmp(line_of(&r) + n - 3, "\"}\n"), 0);
	cr_assert(n > 6 * (sizeof(r.id) + sizeof(r.service) + sizeof(r.model) - 2));
}
