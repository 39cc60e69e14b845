/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of the man page and of the shell's completion, made from the tables. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/reference.h"

const char *cli_command_words(const struct cli_command *c, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s%s", c->object, c->verb != NULL ? " " : "",
		 c->verb != NULL ? c->verb : "");
	return buf;
}

bool cli_list_has(const char *list, char separator, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list; (at = strstr(at, word)) != NULL; at++)
		if ((at == list || at[-1] == separator) && (at[n] == '\0' || at[n] == separator))
			return true;
	return false;
}

/* --- the man page's commands ------------------------------------------------------------------ */

static void print_lower(const char *text, size_t n)
{
	for (size_t i = 0; i < n && text[i]; i++)
		putchar(tolower((unsigned char)text[i]));
}

/* Print "ADDRESS[/PREFIX]" or "[=SECONDS]" as mdoc's arguments. */
static void print_value(const char *value)
{
	size_t n = strcspn(value, "[");

	if (n > 0) {
		printf(" Ar ");
		print_lower(value, n);
	}
	if (value[n] == '[') {
		printf(" Ns Op %c Ns Ar ", value[n + 1]);
		print_lower(value + n + 2, strcspn(value + n + 2, "]"));
	}
}

/* The text for this command, else for its object, else for all commands. */
const char *cli_option_text(int option, const struct cli_command *c)
{
	const char *best = NULL;
	char words[64];
	int quality = 0;

	cli_command_words(c, words, sizeof(words));
	for (size_t i = 0; i < cli_n_option_abouts; i++) {
		const struct cli_option_about *a = &cli_option_abouts[i];
		int fits = a->command == NULL                   ? 1
			   : strcmp(a->command, c->object) == 0 ? 2
			   : strcmp(a->command, words) == 0     ? 3
								: 0;

		if (a->option == option && fits > quality) {
			quality = fits;
			best = a->text;
		}
	}
	return best;
}

/* The options that all commands of an object have; they are listed once, below the commands. */
static uint64_t common_options(const struct cli_topic *topic)
{
	uint64_t common = ~CLI_BIT(CLI_WATCH);
	struct cli_command c;
	unsigned int n = 0;

	for (size_t i = 0; cli_command_get(i, &c); i++) {
		if (strcmp(topic->objects, c.object) != 0)
			continue;
		common &= c.options;
		n++;
	}
	return n > 1 ? common : 0;
}

static void print_options(const struct cli_command *c, uint64_t options)
{
	char form[OPTION_FORM_MAX];

	if (!options)
		return;
	printf(".Bl -tag -width Ds\n");
	for (int o = 0; o < CLI_OPTIONS; o++) {
		const char *text = options & CLI_BIT(o) ? cli_option_text(o, c) : NULL;

		if (text == NULL)
			continue;
		printf(".It Fl -%s", cli_options[o].name);
		print_value(option_form(&cli_options[o], form));
		printf("\n%s", text);
	}
	printf(".El\n");
}

static const char *about(const char *command)
{
	for (size_t i = 0; i < cli_n_abouts; i++)
		if (strcmp(cli_abouts[i].command, command) == 0)
			return cli_abouts[i].text;
	return NULL;
}

/* Print "[MODULE] LEVEL" as mdoc's arguments. */
static void print_operands(const char *operands)
{
	while (*operands) {
		size_t n = strcspn(operands, " ");

		if (*operands == '[')
			printf(" Oo Ar %.*s Oc", (int)n - 2, operands + 1);
		else
			printf(" Ar %.*s", (int)n, operands);
		operands += n + (operands[n] == ' ');
	}
}

static void print_topic(const struct cli_topic *topic)
{
	uint64_t common = common_options(topic);
	struct cli_command c, any = {0};
	char words[64];

	printf(".Ss %s\n%s.Bl -tag -width Ds\n", topic->title,
	       topic->before != NULL ? topic->before : "");
	for (size_t i = 0; cli_command_get(i, &c); i++) {
		const char *text;

		if (!cli_list_has(topic->objects, ' ', c.object))
			continue;
		any = c;
		text = about(cli_command_words(&c, words, sizeof(words)));
		printf(".It Cm %s", words);
		if (c.operand != NULL)
			print_operands(c.operand);
		if (c.more != NULL)
			printf(" Ar %s", c.more);
		if (text != NULL)
			printf("\n%s", text);
		else
			printf("\n%s\n", c.help);
		print_options(&c, c.options & ~common & ~CLI_BIT(CLI_WATCH));
	}
	printf(".El\n");
	if (common) {
		printf(".Pp\n%s", topic->all != NULL ? topic->all : "All take:\n");
		print_options(&any, common);
	}
	if (topic->after != NULL)
		printf(".Pp\n%s", topic->after);
}

static void print_man_commands(void)
{
	struct cli_command c;

	for (size_t i = 0; i < cli_n_topics; i++)
		print_topic(&cli_topics[i]);
	/* a command without a topic is listed all the same */
	for (size_t i = 0; cli_command_get(i, &c); i++) {
		struct cli_topic topic = {.title = c.object, .objects = c.object};
		struct cli_command before;
		bool known = i > 0 && cli_command_get(i - 1, &before) &&
			     strcmp(before.object, c.object) == 0;

		for (size_t t = 0; t < cli_n_topics; t++)
			known |= cli_list_has(cli_topics[t].objects, ' ', c.object);
		if (!known)
			print_topic(&topic);
	}
}

/* --- completion ------------------------------------------------------------------------------- */

static void print_completion_values(void)
{
	for (int o = 0; o < CLI_OPTIONS; o++) {
		const char *words = cli_option_completions[o];

		if (!option_needs_value(&cli_options[o]) || o == CLI_BY || o == CLI_DEVICE)
			continue;
		printf("\t--%s) ", cli_options[o].name);
		if (words == NULL)
			printf("COMPREPLY=() ;;\n");
		else if (strcmp(words, "files") == 0)
			printf("COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n");
		else if (strcmp(words, "workers") == 0 || strcmp(words, "services") == 0)
			printf("COMPREPLY=($(compgen -W \"$(_doorbell_names %s)\" -- \"$cur\")) "
			       ";;\n",
			       words);
		else
			printf("COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")) ;;\n", words);
	}
}

/* The options whose value is a separate word. */
static void print_completion_options(void)
{
	printf("\t\t--socket");
	for (int o = 0; o < CLI_OPTIONS; o++)
		if (option_needs_value(&cli_options[o]))
			printf(" | \\\n\t\t\t--%s", cli_options[o].name);
	printf(")\n");
}

static const struct {
	const char *name;
	void (*print)(void);
} parts[] = {
	{"man-commands", print_man_commands},
	{"completion-values", print_completion_values},
	{"completion-options", print_completion_options},
};

int cli_make(const char *part)
{
	for (size_t i = 0; i < CLI_COUNT_OF(parts); i++) {
		if (strcmp(parts[i].name, part) != 0)
			continue;
		parts[i].print();
		return EXIT_SUCCESS;
	}
	return cli_usage_error("--make: no part '%s'; see control/cli/reference.h", part);
}
