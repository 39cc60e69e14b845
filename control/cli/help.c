/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Help for commands, from the tables that the man page is made of; the daemon's errors in the words
 * of the command line.
 */
#include <ctype.h>
#include <string.h>

#include "cli/reference.h"

/* --- mdoc as plain text ----------------------------------------------------------------------- */

/* Print one word of a macro's line; the names of macros are not printed. */
static void print_word(FILE *out, const char *word, size_t n, bool *dash, bool *blank)
{
	static const char *const macros[] = {"Cm", "Sx", "Sy", "Ar", "Ql", "Pa", "Ev",
					     "Xr", "Op", "Oo", "Oc", "Nm", "Em", "Li",
					     "Dq", "Sq", "Pq", "Dv", "It"};
	bool closes = n == 1 && strchr(".,;:)", word[0]) != NULL;

	if (n == 2 && memcmp(word, "Fl", 2) == 0) {
		*dash = true;
		return;
	}
	if (n == 2 && memcmp(word, "Ns", 2) == 0) {
		*blank = false;
		return;
	}
	for (size_t i = 0; i < CLI_COUNT_OF(macros); i++)
		if (n == 2 && memcmp(word, macros[i], 2) == 0)
			return;
	fprintf(out, "%s%s%.*s", *blank && !closes ? " " : "", *dash && !closes ? "-" : "", (int)n,
		word);
	*dash = false;
	*blank = true;
}

static void print_line(FILE *out, const char *line, size_t n, bool *blank)
{
	bool dash = false;

	if (line[0] != '.') {
		fprintf(out, "%s%.*s", *blank ? " " : "", (int)n, line);
		*blank = true;
		return;
	}
	for (const char *end = line + n, *word = line + 1; word < end;) {
		size_t length = strcspn(word, " \n");

		print_word(out, word, length, &dash, blank);
		word += length + strspn(word + length, " ");
	}
}

/* Print the text up to the first list or display, which are left to the man page. */
static void print_plain(FILE *out, const char *mdoc, const char *indent)
{
	bool blank = false;

	fprintf(out, "%s", indent);
	for (size_t n; *mdoc != '\0'; mdoc += n + (mdoc[n] == '\n')) {
		n = strcspn(mdoc, "\n");
		if (strncmp(mdoc, ".Bl", 3) == 0 || strncmp(mdoc, ".Bd", 3) == 0)
			break;
		if (strncmp(mdoc, ".Pp", 3) == 0) {
			fprintf(out, "\n%s", indent);
			blank = false;
			continue;
		}
		print_line(out, mdoc, n, &blank);
	}
	fputc('\n', out);
}

/* --- help ------------------------------------------------------------------------------------- */

static const char *about(const char *words)
{
	for (size_t i = 0; i < cli_n_abouts; i++)
		if (strcmp(cli_abouts[i].command, words) == 0)
			return cli_abouts[i].text;
	return NULL;
}

static void print_command(FILE *out, const struct cli_command *c)
{
	char words[64], form[OPTION_FORM_MAX];
	const char *text = about(cli_command_words(c, words, sizeof(words)));

	fprintf(out, "usage: doorbell %s%s%s%s%s%s\n", words, c->operand != NULL ? " " : "",
		c->operand != NULL ? c->operand : "", c->more != NULL ? " " : "",
		c->more != NULL ? c->more : "", c->options ? " [options]" : "");
	if (text != NULL)
		print_plain(out, text, "  ");
	else
		fprintf(out, "  %s\n", c->help);
	for (int o = 0; o < CLI_OPTIONS; o++) {
		if (!(c->options & CLI_BIT(o)))
			continue;
		fprintf(out, "  --%s%s%s\n", cli_options[o].name,
			option_needs_value(&cli_options[o]) ? "=" : "",
			option_form(&cli_options[o], form));
		text = cli_option_text(o, c);
		if (text != NULL)
			print_plain(out, text, "      ");
	}
}

unsigned int cli_help_print(FILE *out, const char *object, const char *verb)
{
	struct cli_command c;
	unsigned int n = 0;

	for (size_t i = 0; cli_command_get(i, &c); i++) {
		if (strcmp(c.object, object) != 0 ||
		    (verb != NULL && c.verb != NULL && strcmp(c.verb, verb) != 0))
			continue;
		if (n++ > 0)
			fputc('\n', out);
		print_command(out, &c);
	}
	if (n > 0)
		fprintf(out, "\nAll take --json and --socket PATH; doorbell(1) has more.\n");
	return n;
}

/* --- errors ----------------------------------------------------------------------------------- */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

/*
 * Write "workers.list" as doorbell workers list. Only for commands without operands: "log.level"
 * and others are also keys of the configuration.
 */
static bool put_method(const char *word, size_t n, char *buf, size_t size)
{
	struct cli_command c;
	char method[64];

	for (size_t i = 0; cli_command_get(i, &c); i++) {
		snprintf(method, sizeof(method), "%s.%s", c.object, c.verb != NULL ? c.verb : "");
		if (c.operand != NULL || c.verb == NULL || strlen(method) != n ||
		    memcmp(method, word, n) != 0)
			continue;
		snprintf(buf, size, "'doorbell %s %s'", c.object, c.verb);
		return true;
	}
	return false;
}

/* Write "params.by" as --by, and "params.name", which is no option, as name. */
static bool put_param(const char *word, size_t n, char *buf, size_t size)
{
	static const char prefix[] = "params.";
	const size_t skip = sizeof(prefix) - 1;

	if (n <= skip || memcmp(word, prefix, skip) != 0)
		return false;
	for (int o = 0; o < CLI_OPTIONS; o++) {
		const char *name = cli_options[o].name;
		size_t k = 0;

		if (strlen(name) != n - skip)
			continue;
		while (k < n - skip && (name[k] == '-' ? '_' : name[k]) == word[skip + k])
			k++;
		if (k == n - skip) {
			snprintf(buf, size, "--%s", name);
			return true;
		}
	}
	snprintf(buf, size, "%.*s", (int)(n - skip), word + skip);
	return true;
}

const char *cli_words(const char *message, char *buf, size_t size)
{
	size_t at = 0;

	buf[0] = '\0';
	while (*message != '\0' && at + 1 < size) {
		size_t n = 0;
		char word[96];

		while (is_word(message[n]))
			n++;
		if (n > 0 && (put_method(message, n, word, sizeof(word)) ||
			      put_param(message, n, word, sizeof(word)))) {
			at += (size_t)snprintf(buf + at, size - at, "%s", word);
		} else {
			n += n == 0;
			at += (size_t)snprintf(buf + at, size - at, "%.*s", (int)n, message);
		}
		message += n;
	}
	return buf;
}
