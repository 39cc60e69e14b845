/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths of KServe's endpoints. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "kserve/route.h"

/* A path that has its exact size, for the sanitizers. */
static uint16_t route_of(const char *path, struct kserve_route *route)
{
	size_t n = strlen(path);
	char *copy = malloc(n > 0 ? n : 1);
	uint16_t status;

	memcpy(copy, path, n);
	status = kserve_route(copy, (uint32_t)n, route);
	free(copy);
	return status;
}

Test(lb_kserve_route, endpoints)
{
	static const struct {
		const char *path;
		enum kserve_endpoint endpoint;
		const char *model, *version, *allow;
	} rows[] = {
		{"/v2", KSERVE_SERVER, "", "", "GET, HEAD"},
		{"/v2/", KSERVE_SERVER, "", "", "GET, HEAD"},
		{"/v2/health/live", KSERVE_LIVE, "", "", "GET, HEAD"},
		{"/v2/health/ready", KSERVE_READY, "", "", "GET, HEAD"},
		{"/v2/models/stats", KSERVE_STATS, "", "", "GET, HEAD"},
		{"/v2/repository/index", KSERVE_REPOSITORY, "", "", "POST"},
		{"/v2/models/m", KSERVE_MODEL, "m", "", "GET, HEAD"},
		{"/v2/models/m/ready", KSERVE_MODEL_READY, "m", "", "GET, HEAD"},
		{"/v2/models/m/config", KSERVE_MODEL_CONFIG, "m", "", "GET, HEAD"},
		{"/v2/models/m/stats", KSERVE_MODEL_STATS, "m", "", "GET, HEAD"},
		{"/v2/models/m/infer", KSERVE_MODEL_INFER, "m", "", "POST"},
		{"/v2/models/m/generate", KSERVE_MODEL_GENERATE, "m", "", "POST"},
		{"/v2/models/m/generate_stream", KSERVE_MODEL_GENERATE_STREAM, "m", "", "POST"},
		{"/v2/models/m/versions/12", KSERVE_MODEL, "m", "12", "GET, HEAD"},
		{"/v2/models/m/versions/1/infer", KSERVE_MODEL_INFER, "m", "1", "POST"},
		{"/v2/models/stats/infer", KSERVE_MODEL_INFER, "stats", "", "POST"},
		{"/v2/models/versions/versions/1", KSERVE_MODEL, "versions", "1", "GET, HEAD"},
		{"/v2/models/a%2Fb%20c/infer", KSERVE_MODEL_INFER, "a/b c", "", "POST"},
		{"/v2/models/r%C3%A9seau", KSERVE_MODEL, "r\xc3\xa9seau", "", "GET, HEAD"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct kserve_route route;

		cr_assert_eq(route_of(rows[i].path, &route), 0, "%s", rows[i].path);
		cr_assert_eq(route.endpoint, rows[i].endpoint, "%s", rows[i].path);
		cr_assert_str_eq(route.model, rows[i].model, "%s", rows[i].path);
		cr_assert_str_eq(route.version, rows[i].version, "%s", rows[i].path);
		cr_assert_str_eq(kserve_route_allow(&route), rows[i].allow, "%s", rows[i].path);
	}
}

static const struct {
	const char *path;
	uint16_t status;
} nowhere[] = {
	{"", 404},
	{"/", 404},
	{"/v1", 404},
	{"/V2", 404},
	{"/v2/health", 404},
	{"/v2/health/ready/", 404},
	{"/v2/models", 404},
	{"/v2/models/", 404},
	{"/v2/models//infer", 404},
	{"/v2/models/m/", 404},
	{"/v2/models/m/infer/", 404},
	{"/v2/models/m/tea", 404},
	{"/v2/models/m/versions", 404},
	{"/v2/models/m/versions/", 404},
	{"/v2/models/m/versions//infer", 404},
	{"/v2/models/m/versions/1/versions/2", 404},
	{"/v2/models/%", 400},
	{"/v2/models/%4", 400},
	{"/v2/models/%zz", 400},
	{"/v2/models/a%00b", 400},
	{"/v2/models/a%0ab", 400},
	{"/v2/models/%ff", 400},
	{"/v2/models/%c3", 400},
	{"/v2/models/%c3/infer", 400},
	{"/v2/models/%ed%a0%80", 400},
	{"/v2/models/m/versions/1234567890123456", 400},
	{"/v2/repository/models/m/load", 501},
	{"/v2/systemsharedmemory/status", 501},
	{"/v2/cudasharedmemory/region/r/register", 501},
	{"/v2/trace/setting", 501},
	{"/v2/models/m/trace/setting", 501},
	{"/v2/logging", 501},
};

Test(lb_kserve_route, paths_that_lead_nowhere)
{
	struct kserve_route route;

	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++)
		cr_assert_eq(route_of(nowhere[i].path, &route), nowhere[i].status, "%s",
			     nowhere[i].path);
}

Test(lb_kserve_route, names_are_bounded)
{
	char path[128] = "/v2/models/";
	struct kserve_route route;

	memset(path + 11, 'm', KSERVE_NAME_MAX - 1);
	cr_assert_eq(route_of(path, &route), 0);
	cr_assert_eq(strlen(route.model), KSERVE_NAME_MAX - 1);
	path[11 + KSERVE_NAME_MAX - 1] = 'm';
	cr_assert_eq(route_of(path, &route), 400);
}
