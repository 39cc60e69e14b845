/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of doorbell-agent: options with rules of their own. The table itself is tested
 * by runtime_option_table_test.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <criterion/redirect.h>

#include "agent.h"
#include "runtime/log_line.h"

#define NEEDED "--lb 10.0.0.1:4790 --device d --model echo "
#define ALL    NEEDED "--address 10.9.0.11/24 "

static struct agent_options o;

static int parse(const char *line)
{
	static char copy[2048];
	char *words[64] = {"doorbell-agent"};
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *at = strtok(copy, " "); at != NULL; at = strtok(NULL, " "))
		words[argc++] = at;
	return agent_options_parse(argc, words, &o);
}

Test(agent_options, turns_are_for_CPUs, .init = cr_redirect_stderr)
{
	cr_assert_eq(parse(ALL "--turns /tmp/device0"), 2);
	cr_assert_eq(parse(ALL "--turns /tmp/device0 --gpu none"), 0);
	cr_assert_str_eq(o.turns, "/tmp/device0");
}

Test(agent_options, values_of_their_own_kind)
{
	cr_assert_eq(parse(ALL "--gateway 10.9.0.1 --name w.1 --gpu 0,2 --label a=b --label c= "
			       "--congestion-control off"),
		     0);
	cr_assert_eq(o.address.family, 4);
	cr_assert_eq(o.prefix, 24);
	cr_assert_eq(o.gateway.family, 4);
	cr_assert_str_eq(o.name, "w.1");
	cr_assert_str_eq(o.gpus, "0,2");
	cr_assert_eq(o.n_labels, 2);
	cr_assert_str_eq(o.label[1], "c=");
	cr_assert(!o.dcqcn && o.hugepages && o.processes && o.batch_sizes && !o.verbs);
	cr_assert_eq(parse(NEEDED "--address fd00::11/64 --engine verbs "
				  "--no-hugepages --one-process --no-batch-sizes --log-level error "
				  "--log-format json"),
		     0);
	cr_assert_eq(o.address.family, 6);
	cr_assert(o.dcqcn && !o.hugepages && !o.processes && !o.batch_sizes && o.verbs);
	cr_assert_eq(o.log_level, 0);
	cr_assert_eq(o.log_format, LOG_FORMAT_JSON);
}

Test(agent_options, a_number_stands_in_the_place_of_every_mark)
{
	char *text = agent_number_fill("net_memif{n},id={n},role=client", 12);

	cr_expect_str_eq(text, "net_memif12,id=12,role=client");
	free(text);
	text = agent_number_fill("plain", 3);
	cr_expect_str_eq(text, "plain");
	free(text);
	cr_assert_eq(parse(NEEDED "--workers 2 --address 10.201.{n}.11/24"), 0);
	cr_expect_str_eq(o.address_marked, "10.201.{n}.11/24");
	cr_expect_eq(o.prefix, 24);
	/* As for a worker: its own address comes last. */
	cr_assert_eq(
		parse(NEEDED "--address 10.201.{n}.11/24 --workers 1 --address 10.201.1.11/24"), 0);
	cr_expect_null(o.address_marked);
}

Test(agent_options, mistakes_name_the_fix, .init = cr_redirect_stderr)
{
	static const char *const bad[][2] = {
		{NEEDED "--address 10.9.0.11",
		 "--address: '10.9.0.11' has no prefix length; write 10.201.0.11/24"},
		{NEEDED "--address 10.9.0/24",
		 "--address: '10.9.0/24' does not begin with an IP address"},
		{NEEDED "--address 10.9.0.11/33",
		 "--address: '10.9.0.11/33' has no prefix length from "
		 "1 to 32 (IPv4) or from 1 to 128 (IPv6)"},
		{NEEDED "--address fd00::1/0",
		 "--address: 'fd00::1/0' has no prefix length from 1 to 32 "
		 "(IPv4) or from 1 to 128 (IPv6)"},
		{NEEDED, "--address is required (see --help)"},
		{ALL "--gateway 10.9.0.1.1", "--gateway: '10.9.0.1.1' is no IP address"},
		{ALL "--gateway fd00::1", "--gateway and --address must both be IPv4 or both IPv6"},
		{ALL "--name a/b", "--name: 'a/b' may have letters, digits, '.', '_' and '-' only"},
		{ALL "--gpu 0;1",
		 "--gpu: '0;1' is neither auto, all, none, nor numbers of GPUs like 0,2"},
		{ALL "--gpu ,",
		 "--gpu: ',' is neither auto, all, none, nor numbers of GPUs like 0,2"},
		{ALL "--gpu 0,,1",
		 "--gpu: '0,,1' is neither auto, all, none, nor numbers of GPUs like 0,2"},
		{ALL "--gpu 1,",
		 "--gpu: '1,' is neither auto, all, none, nor numbers of GPUs like 0,2"},
		{NEEDED "--address 10.9.0.11/+24",
		 "--address: '10.9.0.11/+24' has no prefix length from "
		 "1 to 32 (IPv4) or from 1 to 128 (IPv6)"},
		{NEEDED "--address 224.0.0.1/24",
		 "--address: '224.0.0.1/24' is no unicast address; write 10.201.0.11/24"},
		{NEEDED "--address 0.0.0.0/24",
		 "--address: '0.0.0.0/24' is no unicast address; write 10.201.0.11/24"},
		{NEEDED "--address ff02::1/64",
		 "--address: 'ff02::1/64' is no unicast address; write 10.201.0.11/24"},
		{NEEDED "--address ::/64",
		 "--address: '::/64' is no unicast address; write 10.201.0.11/24"},
		{NEEDED "--address 10.9.{n}.11/24",
		 "--address 10.9.{n}.11/24: {n} is the number of one of several workers that have "
		 "a process each; write the address"},
		{NEEDED "--workers 2 --address 10.9.{n}{n}.11.1/24",
		 "--address: '10.9.{n}{n}.11.1/24' does not begin with an IP address"},
		{ALL "--queues 17", "--queues: '17' is not a number from 1 to 16"},
		{ALL "--tls-ca c --tls-key k", "--tls-certificate is missing; TLS by certificates "
					       "needs --tls-certificate, --tls-key and --tls-ca"},
		{ALL "--label =x", "--label: '=x' is not KEY=VALUE; write host=rack2-7"},
		{ALL "--workers 2 --gpu 0",
		 "--workers is for CPUs, and --gpu makes a worker of each "
		 "GPU; give one of them"},
		{ALL "--traffic-class 106",
		 "--traffic-class is for RDMA devices (--engine verbs); leave it out"},
		{ALL "--proxy", "--proxy is for RDMA devices (--engine verbs); leave it out"},
		{ALL "--engine verbs --gateway 10.9.0.1",
		 "--gateway is for the software RNIC (--engine soft); leave it out"},
		{ALL "--engine verbs --queues 2",
		 "--queues is for the software RNIC (--engine soft); leave it out"},
		{ALL "--engine verbs --congestion-control off",
		 "--congestion-control is for the software RNIC (--engine soft); leave it out"},
		{ALL "--slots 100", "--slots: '100' is not a power of two from 2 to 32768"},
		{ALL "--log-level loud",
		 "--log-level: 'loud' is none of error, warning, notice, info, debug"},
	};
	char expected[4096] = "";

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		size_t n = strlen(expected);

		cr_assert_eq(parse(bad[i][0]), 2, "%s", bad[i][0]);
		snprintf(expected + n, sizeof(expected) - n, "doorbell-agent: %s\n", bad[i][1]);
	}
	fflush(stderr);
	cr_assert_stderr_eq_str(expected);
}
