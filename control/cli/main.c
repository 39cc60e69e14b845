/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doorbell <object> <verb>: the table of commands, and the function that runs one of them.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench.h"
#include "cli/cli.h"
#include "cli/reference.h"
#include "cli/size/commands.h"
#include "cli/size/size.h"

#define FILTERS                                                                                    \
	(CLI_BIT(CLI_SERVICE) | CLI_BIT(CLI_WORKER) | CLI_BIT(CLI_CLIENT) | CLI_BIT(CLI_STATE) |   \
	 CLI_BIT(CLI_ZONE) | CLI_BIT(CLI_MIN_BYTES) | CLI_BIT(CLI_MIN_IDLE))
#define WATCH CLI_BIT(CLI_WATCH)
#define AGENT                                                                                      \
	(CLI_BIT(CLI_LB) | CLI_BIT(CLI_DEVICE) | CLI_BIT(CLI_ADDRESS) | CLI_BIT(CLI_MTU) |         \
	 CLI_BIT(CLI_MEMORY_MB) | CLI_BIT(CLI_GPU_MEMORY_MB) | CLI_BIT(CLI_NO_HUGEPAGES) |         \
	 CLI_BIT(CLI_ENGINE) | CLI_BIT(CLI_LB_FABRIC_ADDRESS))

static const struct command {
	const char *object, *verb; /* verb and operand are NULL when there is none */
	const char *operand;       /* names of the operands; optional ones are in brackets */
	cli_run *run;
	uint64_t options;
	const char *help;
	bool alone;       /* does not ask the daemon */
	const char *more; /* operands after the first, at least one; NULL: none */
} commands[] = {
	{"flows", "list", NULL, cli_flows_list,
	 FILTERS | CLI_BIT(CLI_LIMIT) | CLI_BIT(CLI_SORT) | CLI_BIT(CLI_STREAM) | WATCH,
	 "flows and their counters, one per line"},
	{"flows", "show", "CLIENT:PORT[,VIP:PORT]", cli_flows_show, FILTERS | WATCH,
	 "everything about one client's"},
	{"flows", "top", NULL, cli_flows_top,
	 FILTERS | CLI_BIT(CLI_BY) | CLI_BIT(CLI_LIMIT) | WATCH,
	 "the flows with the highest counters"},
	{"flows", "count", NULL, cli_flows_count, FILTERS | CLI_BIT(CLI_BY) | WATCH,
	 "how many are, by service, worker or state"},
	{"workers", "list", NULL, cli_workers_list, WATCH, "the GPUs and how busy they are"},
	{"workers", "show", "NAME", cli_workers_show, WATCH, "everything about one of them"},
	{"workers", "drain", "NAME", cli_workers_drain,
	 CLI_BIT(CLI_NO_WAIT) | CLI_BIT(CLI_TIMEOUT) | CLI_BIT(CLI_ABSENT),
	 "send it nothing new, wait until it has answered all"},
	{"workers", "replace", "OLD", cli_workers_replace,
	 CLI_BIT(CLI_TIMEOUT) | CLI_BIT(CLI_PARTLY), "wait until another one serves, then drain it",
	 .more = "NEW"},
	{"workers", "resume", "NAME", cli_workers_resume, CLI_BIT(CLI_ABSENT),
	 "let a drained worker take requests again"},
	{"workers", "assign", "NAME", cli_workers_assign, 0, "let it serve these services",
	 .more = "SERVICE..."},
	{"workers", "release", "NAME", cli_workers_release, 0,
	 "let it serve them no longer; what it has it answers", .more = "SERVICE..."},
	{"workers", "table", NULL, cli_workers_table, WATCH,
	 "where workers are: host, slot, services"},
	{"workers", "refused", NULL, cli_workers_refused, WATCH,
	 "agents that wanted to register and may not, and why"},
	{"workers", "set", "NAME weight=N", cli_workers_set, CLI_BIT(CLI_ABSENT),
	 "change its share, for policies that use one"},
	{"workers", "settings", NULL, cli_workers_settings, WATCH,
	 "what operators set, also for workers that are not there"},
	{"workers", "forget", "NAME", cli_workers_forget, 0, "undo all that is set for it"},
	{"services", "list", NULL, cli_services_list, WATCH, "what is served"},
	{"services", "show", "NAME", cli_services_show, WATCH, "everything about one of them"},
	{"models", "list", NULL, cli_models_list, WATCH,
	 "what is asked, with its inputs and outputs"},
	{"models", "show", "NAME", cli_models_show, WATCH, "everything about one of them"},
	{"config", "check", "[FILE]", cli_config_check, 0,
	 "is it right? FILE, or what the daemon was started with"},
	{"config", "diff", "[FILE]", cli_config_diff, 0, "what it would change"},
	{"config", "apply", "[FILE]", cli_config_apply, 0, "change it now: all of it, or nothing"},
	{"trace", NULL, NULL, cli_trace,
	 CLI_BIT(CLI_FLOW) | CLI_BIT(CLI_PROTOCOL) | CLI_BIT(CLI_ZONE) | CLI_BIT(CLI_COUNT_N) |
		 CLI_BIT(CLI_FOLLOW),
	 "every step of one flow's requests"},
	{"capture", NULL, NULL, cli_capture,
	 CLI_BIT(CLI_PORT) | CLI_BIT(CLI_FILE) | CLI_BIT(CLI_FILTER) | CLI_BIT(CLI_DIRECTION) |
		 CLI_BIT(CLI_SNAPLEN) | CLI_BIT(CLI_COUNT_N) | CLI_BIT(CLI_FOR_SECONDS),
	 "the packets of a port, for Wireshark"},
	{"log", "show", NULL, cli_log_show, 0, "what is logged, by module"},
	{"log", "level", "[MODULE] LEVEL", cli_log_level, 0,
	 "log more or less from now on: error, warning, notice, info, debug"},
	{"stats", NULL, NULL, cli_stats, CLI_BIT(CLI_ALL) | WATCH, "counters of each lcore, drops"},
	{"top", NULL, NULL, cli_top_status, CLI_BIT(CLI_ONCE) | WATCH,
	 "services, workers and where time goes, live"},
	{"version", NULL, NULL, cli_version, 0, "of this program and of the daemon"},
	{"doctor", "lb", NULL, cli_doctor_lb, CLI_BIT(CLI_CONFIG) | CLI_BIT(CLI_ROOT),
	 "what keeps doorbell-lb from running well here", true},
	{"doctor", "agent", NULL, cli_doctor_agent, AGENT | CLI_BIT(CLI_ROOT),
	 "the same for doorbell-agent, with its options", true},
	{"doctor", NULL, NULL, cli_doctor, CLI_BIT(CLI_ROOT), "look at the machine only", true},
};

bool cli_command_get(size_t i, struct cli_command *out)
{
	const struct command *c = &commands[i];

	if (i >= CLI_COUNT_OF(commands))
		return false;
	*out = (struct cli_command){c->object, c->verb, c->operand, c->more, c->help, c->options};
	return true;
}

/* Commands that read their own options, and their verbs; --json may stand before them. */
static const struct own_command {
	const char *name, *verb, *operand; /* the latter are NULL when there is none */
	int (*run)(int argc, char **argv);
	void (*print_options)(void);
	const char *help;
} own_commands[] = {
	{"bench", NULL, NULL, cli_bench, bench_options_names,
	 "send requests and measure; see bench --help"},
	{"size", NULL, NULL, cli_size, size_options_names,
	 "how many workers a service needs; see size --help"},
	{"size", "reads", NULL, cli_size, size_reads_names,
	 "how fast a GPU reads over a fabric of PCIe"},
	{"size", "calls", "FILE", cli_size, size_calls_names,
	 "what a program takes whose CUDA calls go over a network"},
};

static void cli_print_error(const char *format, va_list ap)
{
	fprintf(stderr, "doorbell: ");
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
}

int cli_error(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	cli_print_error(format, ap);
	va_end(ap);
	return EXIT_FAILURE;
}

int cli_usage_error(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	cli_print_error(format, ap);
	va_end(ap);
	return EXIT_USAGE;
}

int cli_daemon_error(const char *message)
{
	char words[1024];

	return cli_error("%s", cli_words(message, words, sizeof(words)));
}

json_t *cli_call_rows(struct cli *cli, const char *method, json_t *params, const char *member,
		      struct scan *rows)
{
	char error[512];
	int code;
	json_t *result = control_client_call_rows(cli->client, method, params, member, rows, &code,
						  error, sizeof(error));

	if (result == NULL)
		cli_daemon_error(error);
	return result;
}

json_t *cli_call(struct cli *cli, const char *method, json_t *params)
{
	return cli_call_rows(cli, method, params, NULL, NULL);
}

int cli_print_json(struct cli *cli, const json_t *value)
{
	json_dumpf(value, cli->out, cli->watch ? 0 : JSON_INDENT(2));
	fputc('\n', cli->out);
	return 0;
}

int cli_print_list(struct cli *cli, json_t *result, const char *member,
		   const struct cli_column *column, unsigned int n)
{
	struct cli_table table = {.column = column, .n = n};

	if (result == NULL)
		return 1;
	if (cli->json)
		cli_print_json(cli, result);
	else
		cli_table_print(cli->out, &table, json_object_get(result, member));
	json_decref(result);
	return 0;
}

int cli_print_one(struct cli *cli, json_t *result, const char *member,
		  const struct cli_column *column, unsigned int n)
{
	if (result == NULL)
		return 1;
	if (cli->json)
		cli_print_json(cli, result);
	else
		cli_page_print(cli->out, column, n,
			       member != NULL ? json_object_get(result, member) : result);
	json_decref(result);
	return 0;
}

static void print_help(FILE *out)
{
	fprintf(out, "usage: doorbell [--socket PATH] [--json] <object> <verb> [...]\n"
		     "       doorbell help [<object> [<verb>]]\n\n");
	for (size_t i = 0; i < CLI_COUNT_OF(commands); i++) {
		const struct command *c = &commands[i];
		char words[64];

		snprintf(words, sizeof(words), "%s %s %s %s", c->object,
			 c->verb != NULL ? c->verb : "", c->operand != NULL ? c->operand : "",
			 c->more != NULL ? c->more : "");
		fprintf(out, "  %-28s %s\n", words, c->help);
	}
	for (size_t i = 0; i < CLI_COUNT_OF(own_commands); i++) {
		const struct own_command *c = &own_commands[i];
		char words[64];

		snprintf(words, sizeof(words), "%s %s %s", c->name, c->verb != NULL ? c->verb : "",
			 c->operand != NULL ? c->operand : "");
		fprintf(out, "  %-28s %s\n", words, c->help);
	}
	fprintf(out,
		"\nEach has options of its own: doorbell help <object> <verb>. Many take these:\n"
		"  --watch[=SECONDS]    again every 2 s, or as often as said\n"
		"  --json               for programs; the fields are in doorbell-json(5)\n"
		"  --socket PATH        of doorbell-lb; default $DOORBELL_SOCKET, or\n"
		"                       " CONTROL_SOCKET "\n"
		"\nexamples:\n"
		"  doorbell workers list\n"
		"  doorbell flows top --by requests --limit 10\n"
		"  doorbell workers drain w1\n"
		"  doorbell services list --json\n"
		"  doorbell doctor lb --config /etc/doorbell/doorbell.yaml\n"
		"  doorbell bench --to 10.200.0.100:8500 --rate 20000 --duration 30\n"
		"  doorbell size --rate 20000 --batch-us 200 --each-us 50 --p99-us 5000\n");
}

/* Print one command per line with its options, for the completion script. */
static void print_commands(void)
{
	for (size_t i = 0; i < CLI_COUNT_OF(commands); i++) {
		const struct command *c = &commands[i];

		printf("%s %s %s", c->object, c->verb != NULL ? c->verb : "-",
		       c->operand != NULL ? c->operand : "-");
		for (int o = 0; o < CLI_OPTIONS; o++)
			if (c->options & CLI_BIT(o))
				option_print_name(&cli_options[o]);
		putchar('\n');
	}
	for (size_t i = 0; i < CLI_COUNT_OF(own_commands); i++) {
		const struct own_command *c = &own_commands[i];

		printf("%s %s %s", c->name, c->verb != NULL ? c->verb : "-",
		       c->operand != NULL ? c->operand : "-");
		own_commands[i].print_options();
		putchar('\n');
	}
}

/* List the objects, or the verbs of <object>, in <buf>. */
static const char *words_after(const char *object, char *buf, size_t size)
{
	const char *last = "";
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < CLI_COUNT_OF(commands); i++) {
		const struct command *c = &commands[i];
		const char *word = object != NULL ? c->verb : c->object;

		if ((object != NULL && strcmp(c->object, object) != 0) || strcmp(word, last) == 0)
			continue;
		last = word;
		if (at < size)
			at += (size_t)snprintf(
				buf + at, size - at, "%s%s%s%s", at ? ", " : "", word,
				object != NULL && c->operand != NULL ? " " : "",
				object != NULL && c->operand != NULL ? c->operand : "");
	}
	for (size_t i = 0; object == NULL && i < CLI_COUNT_OF(own_commands) && at < size; i++)
		if (own_commands[i].verb == NULL)
			at += (size_t)snprintf(buf + at, size - at, ", %s", own_commands[i].name);
	return buf;
}

/* Returns NULL when none has this name. */
static const struct own_command *own_command(const char *name)
{
	for (size_t i = 0; i < CLI_COUNT_OF(own_commands); i++)
		if (strcmp(own_commands[i].name, name) == 0)
			return &own_commands[i];
	return NULL;
}

/* Find the command that <*words> name and move <*words> behind it. NULL after a usage error. */
static const struct command *find_command(char ***words)
{
	const char *object = (*words)[0], *verb;
	bool known = false;
	char list[256];

	if (object == NULL) {
		print_help(stderr);
		return NULL;
	}
	verb = (*words)[1];
	for (size_t i = 0; i < CLI_COUNT_OF(commands); i++) {
		const struct command *c = &commands[i];

		if (strcmp(c->object, object) != 0)
			continue;
		known = true;
		if (c->verb != NULL && (verb == NULL || strcmp(c->verb, verb) != 0))
			continue;
		*words += c->verb != NULL ? 2 : 1;
		return c;
	}
	if (own_command(object) != NULL)
		cli_usage_error("%s comes before all options; see doorbell %s --help", object,
				object);
	else if (!known)
		cli_usage_error("no object '%s'; objects are: %s", object,
				words_after(NULL, list, sizeof(list)));
	else if (verb != NULL)
		cli_usage_error("%s has no verb '%s'; verbs are: %s", object, verb,
				words_after(object, list, sizeof(list)));
	else
		cli_usage_error("%s: which verb? verbs are: %s", object,
				words_after(object, list, sizeof(list)));
	return NULL;
}

/* The number of operands that are allowed, or with <needed> the number that is required. */
static unsigned int operands(const struct command *c, bool needed)
{
	unsigned int n = 0;

	for (const char *word = c->operand; word != NULL; word = strchr(word, ' ')) {
		word += *word == ' ';
		n += !needed || *word != '[';
	}
	return n;
}

static int check_operands(const struct command *c, const char *verb, char **rest)
{
	unsigned int n = 0;

	while (rest[n] != NULL)
		n++;
	if (n < operands(c, true))
		return n == 0 ? cli_usage_error("%s %s: which one? give its name", c->object, verb)
			      : cli_usage_error("%s %s: give %s", c->object, verb, c->operand);
	if (n > operands(c, false))
		return cli_usage_error("'%s%s%s' does not take '%s'; see doorbell help %s",
				       c->object, c->verb != NULL ? " " : "", verb,
				       rest[operands(c, false)], c->object);
	return 0;
}

static int check_use(const struct command *c, uint64_t given, bool json, char **rest)
{
	const char *verb = c->verb != NULL ? c->verb : "", *blank = c->verb != NULL ? " " : "";

	for (int o = 0; o < CLI_OPTIONS; o++)
		if (given & CLI_BIT(o) & ~c->options)
			return cli_usage_error("--%s does not fit '%s%s%s'; see doorbell help %s",
					       cli_options[o].name, c->object, blank, verb,
					       c->object);
	if (given & CLI_BIT(CLI_STREAM) && (!json || given & (CLI_BIT(CLI_SORT) | WATCH)))
		return cli_usage_error(
			"--stream: give --json with it, and neither --sort nor --watch");
	if (c->more != NULL)
		return rest[0] == NULL
			       ? cli_usage_error("%s %s: which one? give its name", c->object, verb)
		       : rest[1] != NULL ? 0
					 : cli_usage_error("%s %s: give %s after the name",
							   c->object, verb, c->more);
	return check_operands(c, verb, rest);
}

/* True when the command is of use without the daemon, too. */
static bool may_be_alone(const struct cli *cli, const struct command *c)
{
	return c->alone || (c->run == cli_config_check && cli->name != NULL);
}

static int run_command(struct cli *cli, const struct command *c)
{
	char error[512];
	int rc;

	cli->out = stdout;
	if (!c->alone) {
		cli->client = control_client_connect(cli->socket, error, sizeof(error));
		if (cli->client == NULL && !may_be_alone(cli, c))
			return cli_error(
				"%s%s", error,
				c->run == cli_config_check
					? "; a file is checked without it: doorbell config "
					  "check FILE, or doorbell-lb --config FILE --check"
					: "");
	}
	rc = cli->watch ? cli_watch(cli, c->run) : c->run(cli);
	control_client_close(cli->client);
	if (fflush(stdout) != 0 || ferror(stdout))
		return cli_error("cannot write: %s", strerror(errno));
	return rc;
}

/*
 * Run the command that argv[1] names, or argv[2] behind --json. -1: it has no options of its own.
 */
static int run_own(int argc, char **argv)
{
	int at = argc > 2 && strcmp(argv[1], "--json") == 0 ? 2 : 1;
	const struct own_command *own = at < argc ? own_command(argv[at]) : NULL;

	if (own == NULL)
		return -1;
	if (at == 2) {
		argv[2] = argv[1];
		argv[1] = argv[0];
	}
	return own->run(argc - 1, argv + 1);
}

/* Treat "help bench" as "bench --help". -1: the command has no options of its own. */
static int help_own(const char *name)
{
	for (size_t i = 0; i < CLI_COUNT_OF(own_commands); i++)
		if (strcmp(name, own_commands[i].name) == 0)
			return own_commands[i].run(
				2, (char *[]){(char *)(uintptr_t)name, "--help", NULL});
	return -1;
}

/* Print the help of the command that the words name; without words, the list of all commands. */
static int print_help_of(char **words)
{
	char list[256];

	if (words[0] == NULL) {
		print_help(stdout);
		return EXIT_SUCCESS;
	}
	if (cli_help_print(stdout, words[0], words[1]) > 0)
		return EXIT_SUCCESS;
	if (cli_help_print(stderr, words[0], NULL) > 0)
		return cli_usage_error("%s has no verb '%s'; verbs are: %s", words[0], words[1],
				       words_after(words[0], list, sizeof(list)));
	return cli_usage_error("no object '%s'; objects are: %s", words[0],
			       words_after(NULL, list, sizeof(list)));
}

const char *cli_default_socket(void)
{
	const char *path = getenv("DOORBELL_SOCKET");

	return path != NULL && *path ? path : CONTROL_SOCKET;
}

int main(int argc, char **argv)
{
	struct cli cli = {.socket = cli_default_socket()};
	const struct command *c;
	uint64_t given = 0;
	bool help = argc > 1 && strcmp(argv[1], "help") == 0;
	int rc;

	if (help) {
		argv[1] = argv[0];
		argc--;
		argv++;
	}
	rc = help && argc > 1 ? help_own(argv[1]) : run_own(argc, argv);
	if (rc >= 0)
		return rc;
	if (options_parse(&cli_option_table, argc, argv, &cli, &given) != 0)
		return EXIT_USAGE;
	argv++;
	if (help || cli.help)
		return print_help_of(argv);
	if (cli.version)
		return printf("doorbell " DOORBELL_VERSION "\n") < 0;
	if (cli.commands) {
		print_commands();
		return EXIT_SUCCESS;
	}
	if (cli.make != NULL)
		return cli_make(cli.make);
	c = find_command(&argv);
	if (c == NULL)
		return EXIT_USAGE;
	rc = check_use(c, given, cli.json, argv);
	if (rc != 0)
		return rc;
	cli.name = argv[0];
	cli.value = argv[0] != NULL ? argv[1] : NULL;
	cli.more = argv[0] != NULL ? argv + 1 : NULL;
	return run_command(&cli, c);
}
