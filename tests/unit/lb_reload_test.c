/* SPDX-License-Identifier: BSD-3-Clause */
/* The differences of a new configuration, and which of them a running load balancer can apply. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/config_diff.h"

#define PORTS                                                                                      \
	"ports:\n"                                                                                 \
	"  - {name: c, device: \"net_af_packet0,iface=c0\", roles: [clients]}\n"                   \
	"  - {name: f, device: \"net_af_packet1,iface=f0\", roles: [fabric], address: "            \
	"10.9.0.1/24}\n"                                                                           \
	"lcores: [1, 2]\n"

#define CHAT "  - {name: chat, address: 10.0.0.1, port: 80, model: llama"
#define SEE  "  - {name: see, address: 10.0.0.2, port: 80, model: vit}\n"

static struct lb_config now, file, next;
static char error[512];
static char seen[4096];

static void parse(struct lb_config *config, const char *text)
{
	int ret = lb_config_parse("t.yaml", text, strlen(text), config, error, sizeof(error));

	cr_assert_eq(ret, 0, "%s", error);
}

static void note(void *context, const struct lb_config_change *c)
{
	size_t n = strlen(seen);

	snprintf(seen + n, sizeof(seen) - n, "%s: '%s' -> '%s' %s\n", c->key, c->from, c->to,
		 lb_config_effect_name(c->effect));
}

static const char *diff(const char *from, const char *to)
{
	parse(&now, from);
	parse(&file, to);
	seen[0] = '\0';
	lb_config_diff(&now, &file, note, NULL);
	return seen;
}

static int merge(const char *text)
{
	parse(&file, text);
	return lb_config_merge(&now, &file, &next, error, sizeof(error));
}

/* Makes the merged configuration the running one. */
static void go_on(void)
{
	now = next;
}

static int number_of(const struct lb_config *config, const char *name)
{
	for (unsigned int i = 0; i < config->n_services; i++)
		if (lb_service_serves(&config->service[i]) &&
		    strcmp(config->service[i].name, name) == 0)
			return (int)i;
	return -1;
}

Test(lb_reload, the_same_file_changes_nothing)
{
	cr_expect_str_eq(
		diff(PORTS "services:\n" CHAT "}\n" SEE, PORTS "services:\n" CHAT "}\n" SEE), "");
}

Test(lb_reload, the_order_of_services_does_not_matter)
{
	cr_expect_str_eq(
		diff(PORTS "services:\n" CHAT "}\n" SEE, PORTS "services:\n" SEE CHAT "}\n"), "");
}

Test(lb_reload, a_value_that_is_written_out_is_its_default)
{
	cr_expect_str_eq(diff(PORTS "services:\n" CHAT "}\n",
			      PORTS "services:\n" CHAT ", queue: 1024, framing: datagram}\n"
				    "idle: sleep\nworkers: {timeout_ms: 500}\n"),
			 "");
}

Test(lb_reload, every_kind_of_value_is_shown_as_the_file_has_it)
{
	cr_expect_str_eq(
		diff(PORTS "services:\n" CHAT "}\n" SEE,
		     "ports:\n"
		     "  - {name: c, device: \"net_af_packet0,iface=c1\", roles: [clients, fabric],"
		     " trusted: true, address: 10.8.0.1/16, gateway: 10.8.0.2, mtu: 4000}\n"
		     "lcores: [1, 3]\n"
		     "services:\n" CHAT ", queue: 7, policy: maglev, affinity: flow, payload_crc: "
		     "true, max_request: 1472, max_reply: 1472}\n"
		     "  - {name: new, address: \"2001:db8::1\", port: 81, model: m}\n"
		     "control: {agents: \"[::]:99\", socket: /x, state_file: off, http: off}\n"
		     "log: {level: debug, format: json}\n"),
		"ports[0].device: 'net_af_packet0,iface=c0' -> 'net_af_packet0,iface=c1' restart\n"
		"ports[0].roles: 'clients' -> 'clients, fabric' restart\n"
		"ports[0].trusted: 'false' -> 'true' restart\n"
		"ports[0].mtu: '1500' -> '4000' restart\n"
		"ports[0].address: '' -> '10.8.0.1/16' restart\n"
		"ports[0].gateway: '' -> '10.8.0.2' restart\n"
		"ports: '2 entries' -> '1 entries' restart\n"
		"lcores[1]: '2' -> '3' restart\n"
		"control.socket: '/run/doorbell/control.sock' -> '/x' restart\n"
		"control.agents: '0.0.0.0:4790' -> '[::]:99' restart\n"
		"control.state_file: '/var/lib/doorbell/state.json' -> 'off' restart\n"
		"control.http: '127.0.0.1:9180' -> 'off' restart\n"
		"log.level: 'info' -> 'debug' live\n"
		"log.format: 'text' -> 'json' live\n"
		"services[see]: '10.0.0.2 udp port 80, model vit' -> '' live\n"
		"services[chat].policy: 'least-outstanding' -> 'maglev' live\n"
		"services[chat].affinity: 'request' -> 'flow' live\n"
		"services[chat].queue: '1024' -> '7' live\n"
		"services[chat].payload_crc: 'false' -> 'true' live\n"
		"services[new]: '' -> '2001:db8::1 udp port 81, model m' live\n");
}

Test(lb_reload, sticky_flows_and_their_bound_come_and_go_live)
{
	cr_expect_str_eq(diff(PORTS "services:\n" CHAT ", affinity: flow}\n", PORTS
			      "services:\n" CHAT ", affinity: sticky, sticky_load_percent: 0}\n"),
			 "services[chat].affinity: 'flow' -> 'sticky' live\n"
			 "services[chat].sticky_load_percent: '125' -> '0' live\n");
}

Test(lb_reload, no_kind_of_value_is_told_by_its_first_field_alone)
{
	cr_expect_str_eq(diff(PORTS "services:\n" CHAT "}\ncontrol: {http: \"127.0.0.1:1\"}\n",
			      PORTS "services:\n" CHAT "}\ncontrol: {http: \"127.0.0.1:2\"}\n"),
			 "control.http: '127.0.0.1:1' -> '127.0.0.1:2' restart\n");
}

Test(lb_reload, what_needs_a_restart_is_refused_by_name_and_nothing_is_merged)
{
	parse(&now, PORTS "services:\n" CHAT "}\n");
	memset(&next, 0x5a, sizeof(next));
	cr_expect_eq(merge(PORTS "services:\n" CHAT ", queue: 5}\nflows: 128\n"), -EBUSY);
	cr_expect_str_eq(error, "flows changed from '1048576' to '128': needs a restart, nothing "
				"was applied; restart doorbell-lb, or undo it");
	cr_expect_eq(next.n_services, 0x5a5a5a5a);
}

Test(lb_reload, several_that_need_a_restart_are_all_named)
{
	parse(&now, PORTS "services:\n" CHAT "}\n");
	cr_expect_eq(merge(PORTS "services:\n" CHAT "}\nflows: 128\nidle: poll\n"), -EBUSY);
	cr_expect_str_eq(error, "idle changed from 'sleep' to 'poll'; flows changed from "
				"'1048576' to '128': need a restart, nothing was applied; restart "
				"doorbell-lb, or undo them");
}

Test(lb_reload, so_many_refusals_that_they_do_not_fit_are_cut)
{
	char text[4096], small[40];

	parse(&now, PORTS "services:\n" CHAT "}\n");
	snprintf(text, sizeof(text), "%s",
		 PORTS "services:\n" CHAT
		       "}\nflows: 128\nidle: poll\nmemory: {mb: 999, hugepages: false}\n");
	parse(&file, text);
	cr_expect_eq(lb_config_merge(&now, &file, &next, small, sizeof(small)), -EBUSY);
	cr_expect_eq(strlen(small), sizeof(small) - 1);
}

Test(lb_reload, services_keep_their_numbers_whatever_the_order)
{
	parse(&now, PORTS "services:\n" CHAT "}\n" SEE);
	cr_assert_eq(merge(PORTS "services:\n" SEE CHAT ", queue: 9}\n"), 0, "%s", error);
	cr_expect_eq(next.n_services, 2);
	cr_expect_eq(number_of(&next, "chat"), 0);
	cr_expect_eq(next.service[0].queue, 9);
	cr_expect_eq(number_of(&next, "see"), 1);
}

Test(lb_reload, a_removed_service_leaves_and_keeps_its_number_meanwhile)
{
	parse(&now, PORTS "services:\n" CHAT "}\n" SEE);
	cr_assert_eq(merge(PORTS "services:\n" SEE
				 "  - {name: n, address: 10.0.0.1, port: 80, model: m}\n"),
		     0, "%s", error);
	cr_expect_eq(next.n_services, 3);
	cr_expect(next.service[0].leaving);
	cr_expect_str_eq(next.service[0].name, "chat");
	cr_expect_eq(number_of(&next, "n"), 2);
}

Test(lb_reload, a_service_that_comes_back_while_it_leaves_gets_its_number_again)
{
	parse(&now, PORTS "services:\n" CHAT "}\n" SEE);
	cr_assert_eq(merge(PORTS "services:\n" SEE), 0, "%s", error);
	go_on();
	cr_assert_eq(merge(PORTS "services:\n" SEE CHAT "}\n"), 0, "%s", error);
	cr_expect_eq(number_of(&next, "chat"), 0);
	cr_expect_eq(next.n_services, 2);
}

Test(lb_reload, a_service_at_another_address_is_another_service)
{
	parse(&now, PORTS "services:\n" CHAT "}\n");
	cr_assert_eq(merge(PORTS "services:\n"
				 "  - {name: chat, address: 10.0.0.7, port: 80, model: llama}\n"),
		     0, "%s", error);
	cr_expect(next.service[0].leaving);
	cr_expect_eq(number_of(&next, "chat"), 1);
	/* and back again */
	go_on();
	cr_assert_eq(merge(PORTS "services:\n" CHAT "}\n"), 0, "%s", error);
	cr_expect_eq(number_of(&next, "chat"), 0);
	cr_expect(next.service[1].leaving);
}

Test(lb_reload, a_free_place_between_others_is_taken_first)
{
	parse(&now, PORTS "services:\n" CHAT "}\n" SEE);
	memset(&now.service[0], 0, sizeof(now.service[0]));
	cr_assert_eq(merge(PORTS "services:\n" SEE CHAT "}\n"), 0, "%s", error);
	cr_expect_eq(number_of(&next, "chat"), 0);
	cr_expect_eq(number_of(&next, "see"), 1);
	cr_expect_eq(next.n_services, 2);
}

Test(lb_reload, more_services_than_there_are_places_are_refused_until_others_have_left)
{
	parse(&now, PORTS "services:\n" CHAT "}\n");
	now.n_services = LB_SERVICES_MAX;
	for (unsigned int i = 1; i < LB_SERVICES_MAX; i++) {
		now.service[i] = now.service[0];
		snprintf(now.service[i].name, LB_NAME_MAX, "old%u", i);
		now.service[i].leaving = true;
	}
	cr_expect_eq(merge(PORTS "services:\n" SEE CHAT "}\n"), -EAGAIN);
	cr_expect(strstr(error, "services[see]: all 256 places are taken") != NULL, "%s", error);
}

Test(lb_reload, only_what_is_live_is_copied)
{
	parse(&now, PORTS "services:\n" CHAT "}\n");
	parse(&file, PORTS "services:\n" CHAT "}\n" SEE
			   "workers: {timeout_ms: 250}\nlog_level: error\nflows: 999\n");
	lb_config_copy_live(&file, &now);
	cr_expect_eq(now.worker_timeout_ms, 250);
	cr_expect_str_eq(now.log_level, "error");
	cr_expect_eq(now.flows, 1048576);
	cr_expect_eq(now.n_services, 1);
}
