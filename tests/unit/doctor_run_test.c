/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doctor as a whole: a check that crashes or hangs does not stop the others, files may hold any
 * bytes, and its arguments select the checks.
 */
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "doctor_fixture.h"
#include "secure_fixture.h"

TestSuite(doctor_run, .init = set_up, .fini = tear_down, .timeout = 120);

static void crash(struct doctor *of)
{
	doctor_report(of, DOCTOR_OK, "before");
	abort();
}

static void fail(struct doctor *of)
{
	_exit(3);
}

static void hang(struct doctor *of)
{
	doctor_report(of, DOCTOR_OK, "before");
	for (;;)
		pause();
}

static void say_too_much(struct doctor *of)
{
	for (int i = 0; i < 10 * DOCTOR_FINDINGS_MAX; i++)
		doctor_report(of, DOCTOR_OK, "%d", i);
}

static void say_nothing(struct doctor *of)
{
}

static void say_dirt(struct doctor *of)
{
	doctor_report(of, DOCTOR_PROBLEM, "a\x1b[2J\xff\nb%01000d", 1);
	doctor_fix(of, "c\td%01000d", 1);
}

static void run(doctor_check *check)
{
	struct doctor_row row = {"a check", check, DOCTOR_MACHINE, "wait no longer"};

	doctor_run_row(&d, &row);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

Test(doctor_run, a_check_that_crashes_is_a_warning)
{
	run(crash);
	cr_assert_eq(d.n, 1);
	cr_expect_eq(d.finding[0].status, DOCTOR_WARNING);
	cr_expect(strstr(d.finding[0].found, "signal 6"), "%s", d.finding[0].found);
	assert_whole("crash");
	run(fail);
	cr_assert_eq(d.n, 1);
	cr_expect_str_eq(d.finding[0].found, "the check itself ended with status 3");
}

Test(doctor_run, a_check_that_hangs_ends_at_the_limit_with_the_fix_of_its_row)
{
	double start = now();

	d.limit_ms = 1000;
	run(hang);
	cr_expect_geq(now() - start, 1);
	cr_assert_eq(d.n, 1);
	cr_expect_eq(d.finding[0].status, DOCTOR_WARNING);
	cr_expect_str_eq(d.finding[0].found, "no answer within 1 s");
	cr_expect_str_eq(d.finding[0].fix, "wait no longer");
}

Test(doctor_run, findings_are_bounded_and_plain_text)
{
	run(say_too_much);
	cr_expect_eq(d.n, DOCTOR_FINDINGS_MAX);
	run(say_nothing);
	cr_expect_eq(d.n, 1);
	cr_expect_eq(d.finding[0].status, DOCTOR_NA);
	run(say_dirt);
	cr_assert_eq(d.n, 1);
	assert_whole("dirt");
	cr_expect_eq(strncmp(d.finding[0].found, "a?[2J? b000", 11), 0, "%s", d.finding[0].found);
	cr_expect_eq(strlen(d.finding[0].found), DOCTOR_FOUND_MAX - 1);
	cr_expect_eq(strlen(d.finding[0].fix), DOCTOR_FIX_MAX - 1);
}

/* --- garbage ---------------------------------------------------------------------------------- */

static char *huge;

static const char *const garbage[] = {
	NULL, /* not there */
	"",
	"\n\n\n",
	"/",   /* a folder */
	"->.", /* a loop */
	"\xff\xfe\x01\x1b[31m\x7f",
	"-1",
	"99999999999999999999999999999999",
	"0x",
	"0-0-0,,,---",
	"%s%s%s%n",
	": : : :",
	"flags",
	"Max locked memory",
	"NVRM version:",
};

static void all_checks(const char *what)
{
	void (*const plans[])(void) = {plan_none, plan_lb, plan_packet, plan_agent};

	for (size_t p = 0; p < sizeof(plans) / sizeof(plans[0]); p++)
		for (unsigned int i = 0; i < doctor_n_rows; i++) {
			plans[p]();
			d.n = 0;
			doctor_rows[i].check(&d);
			assert_whole(what);
		}
}

Test(doctor_run, no_content_of_a_file_upsets_a_check)
{
	for (size_t g = 0; g < sizeof(garbage) / sizeof(garbage[0]); g++) {
		for (size_t i = 0; i < HEALTHY; i++) {
			struct file file = {healthy[i].path, garbage[g]};

			if (strcmp(healthy[i].text, "/") != 0)
				put(&file);
		}
		all_checks(garbage[g] ? garbage[g] : "nothing");
		heal();
	}
}

Test(doctor_run, large_files_and_pipes_are_read_to_a_bound_only)
{
	double start = now();
	char path[PATH_MAX];

	huge = malloc(2000001);
	memset(huge, '7', 2000000);
	huge[2000000] = '\0';
	for (size_t i = 0; i < HEALTHY; i++) {
		struct file file = {healthy[i].path, i % 2 ? huge : NULL};

		if (strcmp(healthy[i].text, "/") == 0)
			continue;
		put(&file);
		snprintf(path, sizeof(path), "%s%s", root, healthy[i].path);
		if (i % 2 == 0 && mkfifo(path, 0600) != 0)
			cr_expect_eq(errno, ENOENT, "%s: %s", path, strerror(errno));
	}
	all_checks("large");
	cr_expect_lt(now() - start, 30);
	free(huge);
}

Test(doctor_run, one_file_at_a_time_may_be_missing)
{
	for (size_t i = 0; i < HEALTHY; i++) {
		struct file file = {healthy[i].path, NULL};

		put(&file);
		all_checks(healthy[i].path);
		put(&healthy[i]);
	}
}

/* --- from the question to the plan -------------------------------------------------------------
 */

Test(doctor_run, device_strings_are_sorted)
{
	static const struct {
		const char *device;
		enum plan_kind kind;
		const char *interface, *pci;
	} devices[] = {
		{"0000:3b:00.0", PLAN_PCI, "", "0000:3b:00.0"},
		{"3b:00.1,mprq_en=1", PLAN_PCI, "", "0000:3b:00.1"},
		{"net_af_packet0,iface=eth1,qpairs=2", PLAN_AF_PACKET, "eth1", ""},
		{"net_af_xdp1,iface=ens1f0", PLAN_AF_XDP, "ens1f0", ""},
		{"net_af_xdp1", PLAN_AF_XDP, "", ""},
		{"kernel0,iface=eth1", PLAN_KERNEL, "eth1", ""},
		{"net_memif0,role=client", PLAN_VIRTUAL, "", ""},
		{"net_tap0,iface=tap7", PLAN_VIRTUAL, "", ""},
		{"", PLAN_VIRTUAL, "", ""},
	};

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		struct plan_port port = {0};

		plan_device(&port, devices[i].device);
		cr_expect_eq(port.kind, devices[i].kind, "%s", devices[i].device);
		cr_expect_str_eq(port.interface, devices[i].interface);
		cr_expect_str_eq(port.pci, devices[i].pci);
	}
	cr_expect_eq(plan_devarg("net_x,aqpairs=3,qpairs=2", "qpairs", 1), 2);
	cr_expect_eq(plan_devarg("net_x,qpairs=many", "qpairs", 1), 1);
}

Test(doctor_run, the_sample_configuration_becomes_a_plan)
{
	struct doctor_question q = {.side = DOCTOR_LB, .config = SAMPLE_CONFIG};

	plan_make(&d.plan, &q);
	cr_assert(d.plan.known, "%s", d.plan.error);
	cr_expect_eq(d.plan.n_ports, 2);
	cr_expect_str_eq(d.plan.port[1].pci, "0000:3b:00.1");
	cr_expect_str_eq(d.plan.port[1].mtu_key, "ports[1].mtu");
	cr_expect_eq(d.plan.port[1].mtu, 4200);
	cr_expect(d.plan.port[1].fabric && !d.plan.port[0].fabric);
	cr_expect_eq(d.plan.n_cpus, 2);
	cr_expect_eq(d.plan.agents_port, 4790);
	cr_expect_gt(d.plan.memory_mb, 200);
	cr_expect_str_eq(d.plan.control_socket, "/run/doorbell/control.sock");
	q.config = "/nonexistent.yaml";
	plan_make(&d.plan, &q);
	cr_expect_not(d.plan.known);
	cr_expect(strstr(d.plan.error, "/nonexistent.yaml"), "%s", d.plan.error);
}

Test(doctor_run, an_agents_options_become_a_plan)
{
	struct doctor_question q = {.side = DOCTOR_AGENT,
				    .lb = "[fd00::1]:4790",
				    .device = "net_af_packet0,iface=eth1",
				    .address = "10.9.0.11/24"};
	static const char *const wrong[] = {
		"host", ":4790", "host:", "host:0", "host:65536", "host:47x"};

	plan_make(&d.plan, &q);
	cr_expect(d.plan.known);
	cr_expect_str_eq(d.plan.lb.host, "fd00::1");
	cr_expect_str_eq(d.plan.lb.port_text, "4790");
	cr_expect_eq(d.plan.address.family, 4);
	cr_expect_eq(d.plan.port[0].mtu, 1500);
	cr_expect_eq(d.plan.memory_mb, 128);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		q.lb = wrong[i];
		plan_make(&d.plan, &q);
		cr_expect(strstr(d.plan.error, "--lb: give HOST:PORT"), "%s", wrong[i]);
	}
	q.lb = NULL;
	q.address = "10.9.0";
	plan_make(&d.plan, &q);
	cr_expect_str_eq(d.plan.error, "--address: '10.9.0' is no IP address");
}

/* --- all of it -------------------------------------------------------------------------------- */

struct seen {
	unsigned int n, problems, ports;
};

static void see(const char *name, const struct doctor_finding *finding, void *context)
{
	struct seen *seen = context;

	seen->n++;
	seen->problems += finding->status == DOCTOR_PROBLEM;
	seen->ports += strncmp(name, "port ", 5) == 0 && strcmp(name, "port for agents") != 0;
}

Test(doctor_run, a_healthy_machine_has_no_problems)
{
	struct doctor_question q = {.side = DOCTOR_MACHINE, .root = root, .socket = "/nonexistent"};
	struct seen seen = {0};

	cr_assert_eq(doctor_run(&q, see, &seen), 0);
	cr_expect_gt(seen.n, 10);
	cr_expect_eq(seen.problems, 0);
	cr_expect_eq(seen.ports, 0, "ports, but none were named");
	q.side = DOCTOR_AGENT;
	q.engine = "verbs";
	q.device = "mlx5_0";
	q.address = "10.9.0.11/24";
	q.mtu = 4200;
	memset(&seen, 0, sizeof(seen));
	cr_assert_eq(doctor_run(&q, see, &seen), 0);
	cr_expect_eq(seen.problems, 0);
}

Test(doctor_run, a_daemon_that_says_nothing_does_not_keep_us)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", root);
	cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	plan_none();
	strcpy(d.plan.control_socket, address.sun_path);
	run(check_control);
	cr_expect_eq(d.finding[0].status, DOCTOR_NA, "%s", d.finding[0].found);
	cr_assert_eq(listen(fd, 1), 0);
	d.limit_ms = 1000;
	run(check_control);
	cr_expect_str_eq(d.finding[0].found, "no answer within 1 s");
	close(fd);
}

/* Returns the finding for a plan with these files. */
static const struct doctor_finding *trust(const char *certificate, const char *token,
					  const char *strangers)
{
	d.n = 0;
	snprintf(d.plan.tls_certificate, sizeof(d.plan.tls_certificate), "%s", certificate);
	snprintf(d.plan.token_file, sizeof(d.plan.token_file), "%s", token);
	snprintf(d.plan.strangers, sizeof(d.plan.strangers), "%s", strangers);
	check_trust(&d);
	cr_assert_eq(d.n, 1);
	return &d.finding[0];
}

Test(doctor_run, what_agents_prove_is_looked_at)
{
	char path[] = "/tmp/doorbell-token-XXXXXX";
	int fd = mkstemp(path); /* 0600 */

	cr_assert_geq(fd, 0);
	dprintf(fd, "%s\n", "6a1e0f3b5c7d29488fe0b1a2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f6");
	close(fd);
	cr_expect_eq(trust("", path, "")->status, DOCTOR_OK);
	unlink(path);
	cr_expect_eq(trust("", path, "")->status, DOCTOR_PROBLEM);
	cr_expect_not_null(strstr(d.finding[0].found, path), "%s", d.finding[0].found);
	cr_expect_eq(trust("/none.pem", "", "")->status, DOCTOR_PROBLEM);
	cr_expect_eq(trust("", "", "control.agents: whoever")->status, DOCTOR_PROBLEM);
	cr_expect_eq(trust("", "", "")->status, DOCTOR_NA);
}

/* Returns the finding for a service with these files. */
static const struct doctor_finding *certificate(const char *path, const char *key)
{
	d.n = 0;
	d.plan.n_secured = 1;
	strcpy(d.plan.secured[0].service, "echo");
	snprintf(d.plan.secured[0].certificate, LB_FILE_MAX, "%s", path);
	snprintf(d.plan.secured[0].key, LB_FILE_MAX, "%s", key);
	check_certificates(&d);
	cr_assert_eq(d.n, 1);
	return &d.finding[0];
}

Test(doctor_run, certificates_of_services_are_looked_at)
{
	struct secure_fixture files;
	struct secure_party good, soon, old;

	secure_fixture_start(&files);
	good = secure_party_create(&files, NULL, "service", NULL, 30);
	soon = secure_party_create(&files, NULL, "service", NULL, 3);
	old = secure_party_create(&files, NULL, "service", NULL, -1);
	check_certificates(&d);
	cr_expect_eq(d.finding[0].status, DOCTOR_NA);
	cr_expect_eq(certificate(good.certificate_path, good.key_path)->status, DOCTOR_OK);
	cr_expect_eq(certificate(soon.certificate_path, soon.key_path)->status, DOCTOR_WARNING);
	cr_expect_eq(certificate(old.certificate_path, old.key_path)->status, DOCTOR_PROBLEM);
	cr_expect_not_null(strstr(d.finding[0].found, "has ended"), "%s", d.finding[0].found);
	cr_expect_eq(certificate(good.certificate_path, "/none.key")->status, DOCTOR_PROBLEM);
	cr_expect_not_null(strstr(d.finding[0].found, "services[echo].tls: cannot open the key "
						      "/none.key"),
			   "%s", d.finding[0].found);
	secure_party_free(&good);
	secure_party_free(&soon);
	secure_party_free(&old);
	secure_fixture_stop(&files);
}

Test(doctor_run, what_operators_set_is_looked_at)
{
	char path[] = "/tmp/doorbell-state-XXXXXX";
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	dprintf(fd, "{\"version\": 1, \"workers\": [{\"name\": \"w1\", \"drain\": true}]}\n");
	close(fd);
	plan_none();
	d.n = 0;
	check_state_file(&d);
	cr_expect_eq(d.finding[0].status, DOCTOR_NA, "none is configured");
	snprintf(d.plan.state_file, sizeof(d.plan.state_file), "%s", path);
	d.n = 0;
	check_state_file(&d);
	cr_expect_eq(d.finding[0].status, DOCTOR_OK, "%s", d.finding[0].found);
	cr_expect_not_null(strstr(d.finding[0].found, "settings of 1 worker"), "%s",
			   d.finding[0].found);
	cr_assert_eq(truncate(path, 20), 0);
	d.n = 0;
	check_state_file(&d);
	cr_expect_eq(d.finding[0].status, DOCTOR_PROBLEM);
	cr_expect_not_null(strstr(d.finding[0].found, path), "%s", d.finding[0].found);
	cr_expect_not_null(strstr(d.finding[0].found, ":1: is not JSON"), "%s", d.finding[0].found);
	cr_expect_not_null(strstr(d.finding[0].fix, "repair it, or move it away"), "%s",
			   d.finding[0].fix);
	unlink(path);
}
