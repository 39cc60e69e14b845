/* SPDX-License-Identifier: BSD-3-Clause */
/* doctor: prints the findings of the checks in doctor/. */
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "protocol/control.h"
#include "cli/doctor/doctor.h"

#define NAME_WIDTH 24

static const struct {
	const char *text, *json, *count;
} statuses[] = {
	[DOCTOR_OK] = {"ok", "ok", "ok"},
	[DOCTOR_NA] = {"n/a", "not applicable", "not_applicable"},
	[DOCTOR_WARNING] = {"warning", "warning", "warnings"},
	[DOCTOR_PROBLEM] = {"problem", "problem", "problems"},
};

struct report {
	struct cli *cli;
	json_t *checks;
	unsigned int n[CLI_COUNT_OF(statuses)];
};

static void say(const char *name, const struct doctor_finding *f, void *context)
{
	struct report *report = context;

	report->n[f->status]++;
	if (report->cli->json) {
		json_array_append_new(report->checks,
				      json_pack("{s:s, s:s, s:s, s:s*}", "name", name, "status",
						statuses[f->status].json, "found", f->found, "fix",
						f->fix[0] ? f->fix : NULL));
		return;
	}
	fprintf(report->cli->out, "%-8s %-*s %s%s%s\n", statuses[f->status].text, NAME_WIDTH, name,
		f->found, f->fix[0] ? "; fix: " : "", f->fix);
	/* the next check may take long */
	fflush(report->cli->out);
}

static void sum_up(struct report *report)
{
	json_t *result;

	if (!report->cli->json) {
		fprintf(report->cli->out, "\n%u ok, %u warnings, %u problems, %u not applicable\n",
			report->n[DOCTOR_OK], report->n[DOCTOR_WARNING], report->n[DOCTOR_PROBLEM],
			report->n[DOCTOR_NA]);
		return;
	}
	result = json_pack("{s:O}", "checks", report->checks);
	for (size_t i = 0; i < CLI_COUNT_OF(statuses); i++)
		json_object_set_new(result, statuses[i].count, json_integer(report->n[i]));
	cli_print_json(report->cli, result);
	json_decref(result);
}

static int examine(struct cli *cli, enum doctor_side side)
{
	struct report report = {.cli = cli, .checks = json_array()};
	struct doctor_question question = {
		.side = side,
		.root = cli->root,
		.config = cli->config,
		.lb = cli->lb,
		.device = cli->device,
		.address = cli->address,
		.engine = cli->engine,
		.lb_fabric_address = cli->lb_fabric_address,
		.mtu = (uint32_t)cli->mtu,
		.memory_mb = (uint32_t)cli->memory_mb,
		.gpu_memory_mb = (uint32_t)cli->gpu_memory_mb,
		.no_hugepages = cli->no_hugepages,
	};
	struct stat folder;
	int ret;

	if (cli->root != NULL && (stat(cli->root, &folder) != 0 || !S_ISDIR(folder.st_mode))) {
		json_decref(report.checks);
		return cli_usage_error("--root: '%s' is no folder", cli->root);
	}
	if (strcmp(cli->socket, CONTROL_SOCKET) != 0)
		question.socket = cli->socket;
	ret = doctor_run(&question, say, &report);
	if (ret == 0)
		sum_up(&report);
	json_decref(report.checks);
	if (ret < 0)
		return cli_error("cannot look: %s", strerror(-ret));
	return report.n[DOCTOR_PROBLEM] > 0;
}

int cli_doctor(struct cli *cli)
{
	return examine(cli, DOCTOR_MACHINE);
}

int cli_doctor_lb(struct cli *cli)
{
	return examine(cli, DOCTOR_LB);
}

int cli_doctor_agent(struct cli *cli)
{
	return examine(cli, DOCTOR_AGENT);
}
