/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "cli.h"

json_t *cli_member(const json_t *object, const char *path)
{
	const char *dot = strchr(path, '.');

	if (!dot)
		return json_object_get(object, path);
	return cli_member(json_object_getn(object, path, (size_t)(dot - path)), dot + 1);
}

/* Characters of UTF-8 text, taking each as one column wide. */
static unsigned int text_width(const char *s)
{
	unsigned int n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void pad(FILE *out, unsigned int n)
{
	fprintf(out, "%*s", (int)n, "");
}

/* Text to the left, numbers to the right; no blanks at the end of a line. */
static void print_cell(FILE *out, const struct cli_table *table, unsigned int i, const char *text)
{
	unsigned int width = text_width(text);
	unsigned int gap = table->width[i] > width ? table->width[i] - width : 0;
	bool left = table->column[i].format == CLI_TEXT;

	if (!left)
		pad(out, gap);
	fputs(text, out);
	if (i + 1 == table->n) {
		fputc('\n', out);
		return;
	}
	pad(out, (left ? gap : 0) + 2);
}

static void measure(struct cli_table *table, const json_t *rows)
{
	char text[CLI_VALUE_MAX];

	for (unsigned int i = 0; i < table->n; i++) {
		const struct cli_column *column = &table->column[i];
		unsigned int width = text_width(column->title);

		for (size_t row = 0; row < json_array_size(rows); row++) {
			const json_t *value = cli_member(json_array_get(rows, row), column->key);
			unsigned int n = text_width(
				cli_format_value(column->format, value, text, sizeof(text)));

			width = n > width ? n : width;
		}
		if (width > table->width[i])
			table->width[i] = width;
	}
}

void cli_table_print(FILE *out, struct cli_table *table, const json_t *rows)
{
	char text[CLI_VALUE_MAX];

	measure(table, rows);
	if (!table->titled)
		for (unsigned int i = 0; i < table->n; i++)
			print_cell(out, table, i, table->column[i].title);
	table->titled = true;
	for (size_t row = 0; row < json_array_size(rows); row++) {
		for (unsigned int i = 0; i < table->n; i++) {
			const struct cli_column *column = &table->column[i];
			const json_t *value = cli_member(json_array_get(rows, row), column->key);

			print_cell(out, table, i,
				   cli_format_value(column->format, value, text, sizeof(text)));
		}
	}
}

void cli_page_print(FILE *out, const struct cli_column *column, unsigned int n,
		    const json_t *object)
{
	unsigned int width = 0;
	char text[CLI_VALUE_MAX];

	for (unsigned int i = 0; i < n; i++)
		if (text_width(column[i].title) > width)
			width = text_width(column[i].title);
	for (unsigned int i = 0; i < n; i++) {
		fputs(column[i].title, out);
		pad(out, width - text_width(column[i].title) + 2);
		fprintf(out, "%s\n",
			cli_format_value(column[i].format, cli_member(object, column[i].key), text,
					 sizeof(text)));
	}
}
