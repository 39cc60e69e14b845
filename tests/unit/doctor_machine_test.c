/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory, CPUs and lcores of a machine that is files. */
#include "doctor_fixture.h"

TestSuite(doctor_machine, .init = set_up, .fini = tear_down, .timeout = 60);

static void plan_no_hugepages(void)
{
	plan_packet();
	d.plan.hugepages = false;
}

static void plan_packet_alone(void)
{
	plan_packet();
	d.plan.n_ports = 0;
}

static void plan_cpu_9(void)
{
	plan_lb();
	d.plan.cpu[1] = 9;
}

static void plan_cpu_5(void)
{
	plan_lb();
	d.plan.cpu[1] = 5;
}

static void plan_bad(void)
{
	plan_none();
	snprintf(d.plan.error, sizeof(d.plan.error), "lb.yaml:3: ports[0].mtu: 'x' is no MTU");
}

static void plan_connections(void)
{
	plan_no_hugepages();
	d.plan.memory_keys = "tcp.buffer_mb, tcp.connections";
}

static void plan_tcp_defaults(void)
{
	plan_lb();
	d.plan.tcp = (struct plan_tcp){
		.used = true,
		.connections = 65536,
		.buffer_mb = 256,
		.window = 1 << 20,
		.flows = 1 << 20,
		.lcores = 2,
		.memory_mb = 400,
		.needed_mb = 900,
	};
}

static void plan_tcp_few_flows(void)
{
	plan_tcp_defaults();
	d.plan.tcp.connections = 1000000;
	d.plan.tcp.flows = 500000;
}

static void plan_tcp_large_windows(void)
{
	plan_tcp_defaults();
	d.plan.tcp.window = 48 << 20;
}

static void plan_tcp_two_connections(void)
{
	plan_tcp_large_windows();
	d.plan.tcp.connections = 4;
}

static void plan_tcp_little_memory(void)
{
	plan_tcp_defaults();
	d.plan.tcp.set_mb = 512;
}

static void plan_tcp_enough_memory(void)
{
	plan_tcp_defaults();
	d.plan.tcp.set_mb = 900;
}

static const struct row tcp_rows[] = {
	{"no TCP service", check_tcp, plan_lb, {}, DOCTOR_NA, "no service has protocol tcp"},
	{"the defaults", check_tcp, plan_tcp_defaults, {}, DOCTOR_OK, "65536 at a time take 400 MiB"},
	{"bytes of each", check_tcp, plan_tcp_defaults, {}, DOCTOR_OK, "4096 bytes for each"},
	{"more connections than flows",
	 check_tcp,
	 plan_tcp_few_flows,
	 {},
	 DOCTOR_WARNING,
	 "flows: 500000 is less than tcp.connections, 1000000",
	 "flows: 2000000"},
	{"few large windows",
	 check_tcp,
	 plan_tcp_large_windows,
	 {},
	 DOCTOR_WARNING,
	 "which 2 connections fill with a tcp.window of 49152 KiB",
	 "tcp.buffer_mb: 768"},
	{"few connections", check_tcp, plan_tcp_two_connections, {}, DOCTOR_OK, "4 at a time"},
	{"little memory",
	 check_tcp,
	 plan_tcp_little_memory,
	 {},
	 DOCTOR_WARNING,
	 "memory.mb: 512 is less than the 900 MiB",
	 "set it to 900"},
	{"enough memory", check_tcp, plan_tcp_enough_memory, {}, DOCTOR_OK, "65536"},
};

static const struct row memory_rows[] = {
	{"enough hugepages", check_hugepages, plan_lb, {}, DOCTOR_OK, "4000 MiB free"},
	{"too few hugepages",
	 check_hugepages,
	 plan_lb,
	 {{HUGE_2M "/free_hugepages", "100"}},
	 DOCTOR_PROBLEM,
	 "200 MiB free",
	 "vm.nr_hugepages=2204"},
	{"reserved hugepages are not free",
	 check_hugepages,
	 plan_lb,
	 {{HUGE_2M "/resv_hugepages", "1990"}},
	 DOCTOR_PROBLEM,
	 "20 MiB free"},
	{"no hugepages on a machine",
	 check_hugepages,
	 plan_none,
	 {{HUGE_2M "/nr_hugepages", "0"}, {HUGE_2M "/free_hugepages", "0"}},
	 DOCTOR_WARNING,
	 "none free",
	 "vm.nr_hugepages=256"},
	{"a kernel without hugepages",
	 check_hugepages,
	 plan_lb,
	 {{"/sys/kernel/mm/hugepages", NULL}},
	 DOCTOR_PROBLEM,
	 "no hugepages",
	 "memory.hugepages: false"},
	{"hugepages of nonsense",
	 check_hugepages,
	 plan_lb,
	 {{HUGE_2M "/free_hugepages", "many"}},
	 DOCTOR_PROBLEM,
	 "no hugepages"},
	{"hugepages that nobody wants", check_hugepages, plan_no_hugepages, {}, DOCTOR_NA},
	{"an agent needs less",
	 check_hugepages,
	 plan_agent,
	 {{HUGE_2M "/free_hugepages", "64"}},
	 DOCTOR_OK,
	 "128 needed"},
	{"an agent that runs has its pages",
	 check_hugepages,
	 plan_agent,
	 {{HUGE_2M "/free_hugepages", "0"},
	  {"/proc/77/comm", "doorbell-agent\n"},
	  {"/proc/77/cmdline", "doorbell-agent --address 10.9.0.11/24"}},
	 DOCTOR_OK,
	 "that runs has its own"},
	{"another agent runs",
	 check_hugepages,
	 plan_agent,
	 {{HUGE_2M "/free_hugepages", "0"},
	  {"/proc/77/comm", "doorbell-agent\n"},
	  {"/proc/77/cmdline", "doorbell-agent --address 10.9.0.12/24"}},
	 DOCTOR_PROBLEM,
	 "0 MiB free",
	 "--no-hugepages"},
	{"hugepages on the node", check_hugepages_node, plan_lb, {}, DOCTOR_OK, "node 0: 2000"},
	{"hugepages on the other node only",
	 check_hugepages_node,
	 plan_lb,
	 {{NODE(0) "/hugepages/hugepages-2048kB/free_hugepages", "8"}},
	 DOCTOR_WARNING,
	 "node 0, where",
	 "echo 1272 > /sys/devices/system/node/node0/hugepages"},
	{"one node", check_hugepages_node, plan_lb, {{NODE(1), NULL}}, DOCTOR_NA, "one NUMA node"},
	{"no nodes", check_hugepages_node, plan_lb, {{NODE(0), NULL}, {NODE(1), NULL}}, DOCTOR_NA},
	{"memory without hugepages", check_memory, plan_no_hugepages, {}, DOCTOR_OK, "32000 MiB"},
	{"too little memory",
	 check_memory,
	 plan_no_hugepages,
	 {{"/proc/meminfo", "MemAvailable: 102400 kB\n"}},
	 DOCTOR_PROBLEM,
	 "100 MiB available, 512 needed",
	 "lower flows or memory.mb"},
	{"too little memory for connections",
	 check_memory,
	 plan_connections,
	 {{"/proc/meminfo", "MemAvailable: 102400 kB\n"}},
	 DOCTOR_PROBLEM,
	 "100 MiB available, 512 needed",
	 "lower tcp.buffer_mb, tcp.connections or memory.mb"},
	{"memory of nonsense",
	 check_memory,
	 plan_no_hugepages,
	 {{"/proc/meminfo", "MemAvailable: lots\n"}},
	 DOCTOR_WARNING},
	{"memory beside hugepages", check_memory, plan_lb, {}, DOCTOR_NA},
	{"unlimited locks", check_memlock, plan_agent, {}, DOCTOR_OK, "unlimited"},
	{"few locks, but root",
	 check_memlock,
	 plan_agent,
	 {{"/proc/self/limits", LIMITS("65536 65536 bytes")}},
	 DOCTOR_OK,
	 "CAP_IPC_LOCK"},
	{"few locks for RDMA",
	 check_memlock,
	 plan_agent,
	 {{"/proc/self/limits", LIMITS("65536 65536 bytes")},
	  {"/proc/self/status", STATUS("0000000000000000", "0-7")}},
	 DOCTOR_PROBLEM,
	 "64 KiB",
	 "LimitMEMLOCK=infinity"},
	{"few locks, but nobody to take them",
	 check_memlock,
	 plan_packet_alone,
	 {{"/proc/self/limits", LIMITS("65536 65536 bytes")},
	  {"/proc/self/status", STATUS("0000000000000000", "0-7")}},
	 DOCTOR_WARNING},
	{"locks enough",
	 check_memlock,
	 plan_agent,
	 {{"/proc/self/limits", LIMITS("134217728 134217728 bytes")},
	  {"/proc/self/status", STATUS("0000000000000000", "0-7")}},
	 DOCTOR_OK,
	 "131072 KiB"},
	{"no limits", check_memlock, plan_agent, {{"/proc/self/limits", NULL}}, DOCTOR_WARNING},
};

static const struct row cpu_rows[] = {
	{"all flags", check_cpu_flags, plan_none, {}, DOCTOR_OK},
	{"no AVX2",
	 check_cpu_flags,
	 plan_none,
	 {{"/proc/cpuinfo", "flags\t: fpu tsc avx bmi1 bmi2 fma f16c movbe abm avx512f_not\n"}},
	 DOCTOR_PROBLEM,
	 "missing: avx2;",
	 "-Dcpu=native"},
	{"another architecture",
	 check_cpu_flags,
	 plan_none,
	 {{"/proc/cpuinfo", "Features : fp asimd crc32\n"}},
	 DOCTOR_NA},
	{"no cpuinfo", check_cpu_flags, plan_none, {{"/proc/cpuinfo", NULL}}, DOCTOR_NA},
	{"fast ICRC", check_cpu_icrc, plan_none, {}, DOCTOR_OK, "VPCLMULQDQ"},
	{"fair ICRC",
	 check_cpu_icrc,
	 plan_none,
	 {{"/proc/cpuinfo", FLAGS "\n"}},
	 DOCTOR_WARNING,
	 "without: vpclmulqdq"},
	{"slow ICRC",
	 check_cpu_icrc,
	 plan_none,
	 {{"/proc/cpuinfo", "flags : fpu\n"}},
	 DOCTOR_WARNING,
	 "without PCLMULQDQ"},
	{"a good clock", check_clock, plan_none, {}, DOCTOR_OK},
	{"another clock",
	 check_clock,
	 plan_none,
	 {{CLOCK "/current_clocksource", "hpet\n"}},
	 DOCTOR_WARNING,
	 "'hpet'",
	 "echo tsc >"},
	{"a TSC that was found bad",
	 check_clock,
	 plan_none,
	 {{CLOCK "/current_clocksource", "hpet\n"}, {CLOCK "/available_clocksource", "hpet\n"}},
	 DOCTOR_WARNING,
	 "not to be trusted",
	 "dmesg"},
	{"a TSC that changes its pace",
	 check_clock,
	 plan_none,
	 {{"/proc/cpuinfo", "flags : constant_tsc\n"}},
	 DOCTOR_WARNING,
	 "missing nonstop_tsc",
	 "+invtsc"},
	{"no clock source", check_clock, plan_none, {{CLOCK, NULL}}, DOCTOR_WARNING},
	{"root", check_privileges, plan_none, {}, DOCTOR_OK},
	{"nobody",
	 check_privileges,
	 plan_packet,
	 {{"/proc/self/status", STATUS("0000000000000000", "0-7")}},
	 DOCTOR_WARNING,
	 "no CAP_NET_RAW and no CAP_NET_ADMIN",
	 "the program itself, with sudo"},
	{"no status", check_privileges, plan_none, {{"/proc/self/status", NULL}}, DOCTOR_WARNING},
	{"a configuration", check_configuration, plan_lb, {}, DOCTOR_OK, "2 ports"},
	{"none", check_configuration, plan_none, {}, DOCTOR_NA},
	{"a wrong one", check_configuration, plan_bad, {}, DOCTOR_PROBLEM, "lb.yaml:3"},
};

static const struct row lcore_rows[] = {
	{"lcores there", check_lcores, plan_lb, {}, DOCTOR_OK, "1,2"},
	{"an lcore that is not there",
	 check_lcores,
	 plan_cpu_9,
	 {},
	 DOCTOR_PROBLEM,
	 "lcores[1]: CPU 9 is not there",
	 "choose from 0-7"},
	{"an lcore that is not allowed",
	 check_lcores,
	 plan_lb,
	 {{"/proc/self/status", STATUS("0", "0-1,4-7")}},
	 DOCTOR_PROBLEM,
	 "CPU 2 is not allowed",
	 "choose from 0-1,4-7;"},
	{"lcores take all",
	 check_lcores,
	 plan_lb,
	 {{"/proc/self/status", STATUS("0", "1-2")}},
	 DOCTOR_WARNING,
	 "all 2 CPUs"},
	{"CPUs of nonsense", check_lcores, plan_lb, {{CPUS "/online", "x-y\n"}}, DOCTOR_WARNING},
	{"CPUs beyond all", check_lcores, plan_lb, {{CPUS "/online", "0-99999"}}, DOCTOR_WARNING},
	{"no lcores", check_lcores, plan_none, {}, DOCTOR_NA},
	{"isolated", check_lcores_isolated, plan_lb, {}, DOCTOR_OK},
	{"one is not isolated",
	 check_lcores_isolated,
	 plan_lb,
	 {{CPUS "/isolated", "1,3\n"}},
	 DOCTOR_WARNING,
	 "CPU 2 shared",
	 "isolcpus=managed_irq,domain,1,2 nohz_full=1,2"},
	{"the tick is not off",
	 check_lcores_isolated,
	 plan_lb,
	 {{CPUS "/nohz_full", "  (null)\n"}},
	 DOCTOR_WARNING,
	 "CPU 1,2 shared"},
	{"no file on isolation",
	 check_lcores_isolated,
	 plan_lb,
	 {{CPUS "/isolated", NULL}, {CPUS "/nohz_full", NULL}},
	 DOCTOR_WARNING},
	{"own cores", check_lcores_smt, plan_lb, {}, DOCTOR_OK},
	{"two threads of one core",
	 check_lcores_smt,
	 plan_lb,
	 {{CPU(1) "/topology/thread_siblings_list", "1-2\n"}},
	 DOCTOR_WARNING,
	 "CPUs 1 and 2",
	 "another core for 2"},
	{"siblings of nonsense",
	 check_lcores_smt,
	 plan_lb,
	 {{CPU(1) "/topology/thread_siblings_list", "1-2-3,,\n"}},
	 DOCTOR_OK},
	{"near", check_lcores_node, plan_lb, {}, DOCTOR_OK},
	{"far",
	 check_lcores_node,
	 plan_cpu_5,
	 {},
	 DOCTOR_WARNING,
	 "port0 is on NUMA node 0, CPU 5 is not",
	 "choose from CPUs 0-3"},
	{"no NUMA",
	 check_lcores_node,
	 plan_lb,
	 {{MLX "/numa_node", "-1\n"}, {INTEL "/numa_node", NULL}},
	 DOCTOR_NA},
};

Test(doctor_machine, says_whether_there_are_pages_and_the_right_to_lock_them)
{
	CHECK_ROWS(memory_rows);
}

Test(doctor_machine, says_whether_the_limits_of_tcp_fit_each_other)
{
	CHECK_ROWS(tcp_rows);
}

Test(doctor_machine, says_what_the_cpu_its_clock_and_the_caller_lack)
{
	CHECK_ROWS(cpu_rows);
}

Test(doctor_machine, says_which_lcores_are_missing_shared_or_far)
{
	CHECK_ROWS(lcore_rows);
}

Test(doctor_machine, understands_lists_of_cpus)
{
	static const struct {
		const char *text;
		bool good;
		unsigned int n, has;
	} lists[] = {
		{"0", true, 1, 0},    {"0-3,8", true, 5, 8},     {"", true, 0, 0},
		{"3-1", false, 0, 0}, {"1,", true, 1, 1},        {"1-", false, 0, 0},
		{"-1", false, 0, 0},  {"0-1023", true, 1024, 9}, {"0-1024", false, 0, 0},
		{"1 2", false, 0, 0}, {"2,2-3", true, 2, 3},     {"99999999999999999999", false},
	};
	static struct doctor_cpus cpus;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		bool good = doctor_cpus_parse(&cpus, lists[i].text);

		cr_expect_eq(good, lists[i].good, "'%s'", lists[i].text);
		cr_expect(!good || cpus.n == lists[i].n, "'%s': %u", lists[i].text, cpus.n);
		cr_expect(!good || cpus.n == 0 || cpus.has[lists[i].has], "'%s'", lists[i].text);
	}
}
