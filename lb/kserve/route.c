/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "json/utf8.h"
#include "kserve/route.h"

#define GET  1
#define POST 2

struct route_row {
	const char *path;
	uint8_t endpoint; /* enum kserve_endpoint */
	uint8_t methods;
};

static const struct route_row route_fixed[] = {
	{"/v2", KSERVE_SERVER, GET},
	{"/v2/", KSERVE_SERVER, GET},
	{"/v2/health/live", KSERVE_LIVE, GET},
	{"/v2/health/ready", KSERVE_READY, GET},
	{"/v2/models/stats", KSERVE_STATS, GET},
	{"/v2/repository/index", KSERVE_REPOSITORY, POST},
	{"/v2/logging", KSERVE_UNSUPPORTED, GET | POST},
	{"/v2/trace/setting", KSERVE_UNSUPPORTED, GET | POST},
};

/* Behind a model's name, and its version if there is one. */
static const struct route_row route_of_models[] = {
	{"/infer", KSERVE_MODEL_INFER, POST},
	{"", KSERVE_MODEL, GET},
	{"/ready", KSERVE_MODEL_READY, GET},
	{"/config", KSERVE_MODEL_CONFIG, GET},
	{"/stats", KSERVE_MODEL_STATS, GET},
	{"/generate", KSERVE_MODEL_GENERATE, POST},
	{"/generate_stream", KSERVE_MODEL_GENERATE_STREAM, POST},
	{"/trace/setting", KSERVE_UNSUPPORTED, GET | POST},
};

/* Whole families that need a disk or a host in common with the client. */
static const char *const route_unsupported[] = {
	"/v2/repository/models/",
	"/v2/systemsharedmemory/",
	"/v2/cudasharedmemory/",
};

static bool route_begins(const char *path, uint32_t length, const char *prefix)
{
	uint32_t n = (uint32_t)strlen(prefix);

	return length >= n && memcmp(path, prefix, n) == 0;
}

static uint16_t route_take(const struct route_row *rows, size_t n, const char *path,
			   uint32_t length, struct kserve_route *route)
{
	for (size_t i = 0; i < n; i++) {
		if (strlen(rows[i].path) != length || memcmp(rows[i].path, path, length) != 0)
			continue;
		route->endpoint = (enum kserve_endpoint)rows[i].endpoint;
		route->is_get = (rows[i].methods & GET) != 0;
		route->is_post = (rows[i].methods & POST) != 0;
		return route->endpoint == KSERVE_UNSUPPORTED ? 501 : 0;
	}
	return 404;
}

static int route_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Takes a byte of a name, decoded if it is escaped. -1: a bad escape, or a control character. */
static int route_byte(const char **at, const char *end)
{
	int c = (uint8_t) * (*at)++;

	if (c == '%') {
		int high = end - *at < 2 ? -1 : route_hex((*at)[0]);
		int low = high < 0 ? -1 : route_hex((*at)[1]);

		if (low < 0)
			return -1;
		c = high << 4 | low;
		*at += 2;
	}
	return c < 0x20 || c == 0x7f ? -1 : c;
}

/* Decodes the segment at *path into <name>, and leaves *path at the slash behind it. Returns 0, or
 * the status to refuse with. */
static uint16_t route_name(const char **path, const char *end, char *name, uint32_t room)
{
	struct utf8 utf8 = {0};
	uint32_t n = 0;

	while (*path < end && **path != '/') {
		int c = route_byte(path, end);
		bool valid = c >= 0 && n < room - 1;

		if (utf8.left > 0)
			valid = valid && utf8_next(&utf8, (uint8_t)c);
		else if (c >= 0x80)
			valid = valid && utf8_begin(&utf8, (uint8_t)c);
		if (!valid)
			return 400;
		name[n++] = (char)c;
	}
	name[n] = '\0';
	if (utf8.left > 0)
		return 400;
	return n == 0 ? 404 : 0;
}

static uint16_t route_of_model(const char *path, const char *end, struct kserve_route *route)
{
	static const char versions[] = "/versions/";
	uint16_t status = route_name(&path, end, route->model, sizeof(route->model));

	if (status == 0 && route_begins(path, (uint32_t)(end - path), versions)) {
		path += sizeof(versions) - 1;
		status = route_name(&path, end, route->version, sizeof(route->version));
	}
	if (status != 0)
		return status;
	return route_take(route_of_models, sizeof(route_of_models) / sizeof(route_of_models[0]),
			  path, (uint32_t)(end - path), route);
}

uint16_t kserve_route(const char *path, uint32_t length, struct kserve_route *route)
{
	static const char models[] = "/v2/models/";
	uint16_t status;

	*route = (struct kserve_route){.endpoint = KSERVE_NOWHERE};
	status = route_take(route_fixed, sizeof(route_fixed) / sizeof(route_fixed[0]), path, length,
			    route);
	if (status != 404)
		return status;
	if (route_begins(path, length, models))
		return route_of_model(path + sizeof(models) - 1, path + length, route);
	for (size_t i = 0; i < sizeof(route_unsupported) / sizeof(route_unsupported[0]); i++) {
		if (route_begins(path, length, route_unsupported[i]))
			return 501;
	}
	return 404;
}

const char *kserve_endpoint_name(enum kserve_endpoint endpoint)
{
	static const char *const names[] = {
		[KSERVE_NOWHERE] = NULL,
		[KSERVE_SERVER] = "server",
		[KSERVE_LIVE] = "live",
		[KSERVE_READY] = "ready",
		[KSERVE_STATS] = "all_stats",
		[KSERVE_REPOSITORY] = "index",
		[KSERVE_MODEL] = "model",
		[KSERVE_MODEL_READY] = "model_ready",
		[KSERVE_MODEL_CONFIG] = "config",
		[KSERVE_MODEL_STATS] = "stats",
		[KSERVE_MODEL_INFER] = "infer",
		[KSERVE_MODEL_GENERATE] = "generate",
		[KSERVE_MODEL_GENERATE_STREAM] = "generate_stream",
		[KSERVE_UNSUPPORTED] = NULL,
	};

	return names[endpoint];
}

const char *kserve_route_allow(const struct kserve_route *route)
{
	if (route->is_get && route->is_post)
		return "GET, HEAD, POST";
	return route->is_post ? "POST" : "GET, HEAD";
}
