/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "pool.h"
#include "runtime/clock.h"
#include "runtime/detached.h"

/*
 * Bytes of the largest file; SETTINGS_MAX names with SETTINGS_PINS_MAX assignments each take less.
 */
#define BYTES_MAX (4u << 20)
/* The longest time that the control thread, which supervises workers, waits for the disk. */
#define WAIT_MS 1000

struct reading {
	const char *path;
	struct worker_settings *settings;
	char *error;
	size_t size;
};

static int state_file_fail(char *error, size_t size, int code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static int state_file_fail(char *error, size_t size, int code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error, size, format, arguments);
	va_end(arguments);
	return code;
}

/* --- reading -------------------------------------------------------------------------------- */

#define REMEDY                                                                                     \
	"; repair it, or move it away to start without operators' settings (drains, weights, "     \
	"assignments)"

static int bad_member(const struct reading *r, size_t row, const char *what)
{
	return state_file_fail(r->error, r->size, -EINVAL, "%s: workers[%zu].%s" REMEDY, r->path,
			       row, what);
}

static int read_pins(const struct reading *r, size_t row, const char *name, const char *key,
		     const json_t *services, enum assign_pin pin)
{
	char what[64];
	size_t i;
	json_t *service;

	snprintf(what, sizeof(what), "%s is not an array of services' names", key);
	if (!json_is_array(services))
		return bad_member(r, row, what);
	json_array_foreach ((json_t *)services, i, service) {
		const char *text = json_string_value(service);

		if (text == NULL || !workers_name_is_valid(text))
			return bad_member(r, row, what);
		if (workers_settings_pinned(r->settings, name, text) != ASSIGN_AUTO)
			return bad_member(r, row, "assigned or released names a service twice");
		if (workers_settings_pin(r->settings, name, text, pin) < 0)
			return bad_member(r, row, "assigned or released has too many services");
	}
	return 0;
}

static int read_member(const struct reading *r, size_t row, const char *name, const char *key,
		       const json_t *value)
{
	json_int_t weight = json_integer_value(value);
	int ret = 0;

	if (strcmp(key, "name") == 0 || strcmp(key, "successor") == 0 || strcmp(key, "partly") == 0)
		return 0;
	if (strcmp(key, "assigned") == 0)
		return read_pins(r, row, name, key, value, ASSIGN_IN);
	if (strcmp(key, "released") == 0)
		return read_pins(r, row, name, key, value, ASSIGN_OUT);
	if (strcmp(key, "drain") == 0) {
		if (!json_is_boolean(value))
			return bad_member(r, row, "drain is neither true nor false");
		ret = workers_settings_drain(r->settings, name, json_is_true(value));
	} else if (strcmp(key, "weight") == 0) {
		if (!json_is_integer(value) || weight < 1 || weight > WORKER_WEIGHT_MAX)
			return bad_member(r, row, "weight is not an integer from 1 to 256");
		ret = workers_settings_weight(r->settings, name, (uint32_t)weight);
	} else {
		return bad_member(r, row, "name has keys that this version does not know");
	}
	return ret < 0 ? bad_member(r, row, "name is one more than the file may have") : 0;
}

/* After the other members: a successor belongs to a drain, and partly to a successor. */
static int read_successor(const struct reading *r, size_t row, const char *name,
			  const json_t *worker)
{
	const struct worker_setting *setting = workers_settings_find(r->settings, name);
	const json_t *value = json_object_get(worker, "successor");
	const json_t *partly = json_object_get(worker, "partly");
	const char *successor = json_string_value(value);

	if (partly != NULL && (!json_is_boolean(partly) || value == NULL))
		return bad_member(r, row, "partly is not true or false beside a successor");
	if (value == NULL)
		return 0;
	if (successor == NULL || !workers_name_is_valid(successor) || strcmp(successor, name) == 0)
		return bad_member(r, row, "successor is not the name of another worker");
	if (setting == NULL || !setting->drain)
		return bad_member(r, row, "successor needs drain: true beside it");
	/* There is a row already, so there is room for it. */
	workers_settings_drain(r->settings, name, false);
	return workers_settings_replace(r->settings, name, successor, json_is_true(partly)) < 0
		       ? bad_member(r, row, "name is one more than the file may have")
		       : 0;
}

static int read_worker(const struct reading *r, size_t row, const json_t *worker)
{
	const char *name = json_string_value(json_object_get(worker, "name"));
	const char *key;
	json_t *value;

	if (name == NULL || !workers_name_is_valid(name))
		return bad_member(r, row, "name is missing, or no worker can have it");
	if (workers_settings_find(r->settings, name) != NULL)
		return bad_member(r, row, "name is there twice");
	json_object_foreach ((json_t *)worker, key, value) {
		int ret = read_member(r, row, name, key, value);

		if (ret < 0)
			return ret;
	}
	return read_successor(r, row, name, worker);
}

static int read_root(const struct reading *r, const json_t *root)
{
	const json_t *version = json_object_get(root, "version");
	const json_t *workers = json_object_get(root, "workers");
	size_t i;
	json_t *worker;

	if (json_is_integer(version) && json_integer_value(version) > STATE_FILE_VERSION)
		return state_file_fail(
			r->error, r->size, -EINVAL,
			"%s: has version %lld, and this doorbell-lb reads version %d; install "
			"the newer doorbell-lb again, or move the file away to start without "
			"operators' settings (drains, weights, assignments)",
			r->path, (long long)json_integer_value(version), STATE_FILE_VERSION);
	if (!json_is_integer(version) || json_integer_value(version) < 1 ||
	    !json_is_array(workers) || json_object_size(root) != 2)
		return state_file_fail(r->error, r->size, -EINVAL,
				       "%s: is not an object with version and workers" REMEDY,
				       r->path);
	json_array_foreach ((json_t *)workers, i, worker) {
		int ret = read_worker(r, i, worker);

		if (ret < 0)
			return ret;
	}
	return 0;
}

static int read_stream(const struct reading *r, FILE *stream)
{
	json_error_t where;
	json_t *root = json_loadf(stream, JSON_REJECT_DUPLICATES, &where);
	int ret;

	if (root == NULL)
		return state_file_fail(r->error, r->size, -EINVAL, "%s:%d: is not JSON: %s" REMEDY,
				       r->path, where.line, where.text);
	ret = read_root(r, root);
	json_decref(root);
	return ret;
}

static void state_file_note(struct state_file *f, const struct stat *st)
{
	f->exists = true;
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	f->changed = st->st_mtim;
}

int state_file_load(struct state_file *f, struct worker_settings *settings, char *error,
		    size_t error_size)
{
	struct reading r = {f->path, settings, error, error_size};
	/* O_NONBLOCK: a FIFO must not keep the daemon from starting */
	int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret;
	struct stat st;
	FILE *stream;

	f->exists = false;
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0) {
		ret = -errno;
		state_file_fail(
			error, error_size, 0,
			"%s: cannot be read: %s; make it readable, or set control.state_file",
			f->path, strerror(-ret));
		if (fd >= 0)
			close(fd);
		return ret;
	}
	stream = S_ISREG(st.st_mode) && st.st_size <= BYTES_MAX ? fdopen(fd, "r") : NULL;
	if (stream == NULL) {
		close(fd);
		return state_file_fail(error, error_size, -EINVAL,
				       "%s: is not a file of at most %u bytes" REMEDY, f->path,
				       BYTES_MAX);
	}
	state_file_note(f, &st);
	ret = read_stream(&r, stream);
	fclose(stream);
	return ret;
}

/* -EPERM when a user other than root and this process' own could change the file. */
static int check_owner(const char *path, char *error, size_t size)
{
	unsigned int us = geteuid();
	struct stat st;

	if (stat(path, &st) < 0)
		return 0;
	if (st.st_uid != 0 && st.st_uid != us)
		return state_file_fail(
			error, size, -EPERM,
			"%s: belongs to user %u, neither to root nor to this process' user %u: its "
			"owner decides what workers get; chown %u %s",
			path, st.st_uid, us, us, path);
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return state_file_fail(error, size, -EPERM,
				       "%s: others may write it; chmod go-w %s", path, path);
	return 0;
}

/* -errno when the file's folder, or the parent it would be made in, is not writable. */
static int check_folder(const char *path, char *error, size_t size)
{
	char copy[PATH_MAX];
	const char *folder;

	snprintf(copy, sizeof(copy), "%s", path);
	folder = dirname(copy);
	if (access(folder, F_OK) < 0 && errno == ENOENT)
		folder = dirname(copy);
	if (access(folder, W_OK | X_OK) == 0)
		return 0;
	return state_file_fail(
		error, size, -errno,
		"%s: cannot be written: %s: %s, so every drain, weight and assignment would be "
		"refused; make its folder writable, or set control.state_file",
		path, folder, strerror(errno));
}

int state_file_check(const char *path, unsigned int *n, char *error, size_t error_size)
{
	struct worker_settings *settings = workers_settings_create();
	struct state_file f = {.path = path};
	int ret;

	if (settings == NULL)
		return state_file_fail(error, error_size, -ENOMEM,
				       "no memory to read %s; try again", path);
	ret = state_file_load(&f, settings, error, error_size);
	*n = workers_settings_count(settings);
	workers_settings_destroy(settings);
	if (ret == 0)
		ret = check_owner(path, error, error_size);
	return ret < 0 ? ret : check_folder(path, error, error_size);
}

/* --- writing -------------------------------------------------------------------------------- */

static json_t *pins_json(const struct worker_setting *setting, enum assign_pin pin)
{
	json_t *names = json_array();

	for (unsigned int i = 0; i < setting->n_pins; i++)
		if (setting->pin[i].pin == pin)
			json_array_append_new(names, json_string(setting->pin[i].service));
	return names;
}

static void add_pins(json_t *worker, const char *key, json_t *names)
{
	if (json_array_size(names) > 0)
		json_object_set(worker, key, names);
	json_decref(names);
}

static json_t *worker_json(const struct worker_setting *setting)
{
	json_t *worker = json_pack("{s:s}", "name", setting->name);

	if (setting->drain)
		json_object_set_new(worker, "drain", json_true());
	if (setting->successor[0] != '\0')
		json_object_set_new(worker, "successor", json_string(setting->successor));
	if (setting->partly)
		json_object_set_new(worker, "partly", json_true());
	if (setting->weight != 0)
		json_object_set_new(worker, "weight", json_integer(setting->weight));
	add_pins(worker, "assigned", pins_json(setting, ASSIGN_IN));
	add_pins(worker, "released", pins_json(setting, ASSIGN_OUT));
	return worker;
}

/* The file's text, which the caller frees; NULL when memory is short. */
static char *make_text(const struct worker_settings *settings)
{
	json_t *workers = json_array(), *root;
	int version = 1;
	char *text;

	for (unsigned int i = 0; i < workers_settings_count(settings); i++) {
		const struct worker_setting *setting = workers_settings_at(settings, i);

		if (setting->successor[0] != '\0')
			version = STATE_FILE_VERSION;
		json_array_append_new(workers, worker_json(setting));
	}
	root = json_pack("{s:i, s:o}", "version", version, "workers", workers);
	/* entries may be missing when memory is short: never write an incomplete file */
	if (json_array_size(workers) != workers_settings_count(settings)) {
		json_decref(root);
		return NULL;
	}
	text = json_dumps(root, JSON_INDENT(1));
	json_decref(root);
	return text;
}

static int state_file_write_all(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		ssize_t n = write(fd, text, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		left -= (size_t)n;
	}
	return 0;
}

/* Write and sync the file that is to replace the old one. */
static int write_beside(const char *path, const char *text, struct stat *st)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640), ret;

	if (fd < 0)
		return -errno;
	ret = state_file_write_all(fd, text);
	if (ret == 0 && state_file_write_all(fd, "\n") < 0)
		ret = -errno;
	if (ret == 0 && (fsync(fd) < 0 || fstat(fd, st) < 0))
		ret = -errno;
	if (close(fd) < 0 && ret == 0)
		ret = -errno;
	if (ret < 0)
		unlink(path);
	return ret;
}

/* Open the folder of <path>; make it if it is missing. Its descriptor, or -errno. */
static int open_folder(const char *path)
{
	char copy[PATH_MAX];
	const char *folder;
	int fd;

	snprintf(copy, sizeof(copy), "%s", path);
	folder = dirname(copy);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && mkdir(folder, 0750) == 0)
		fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* True when the file is as this process left it, or was removed: it may be written again. */
static bool state_file_is_unchanged(const struct state_file *f)
{
	struct stat st;

	if (stat(f->path, &st) < 0)
		return true;
	return f->exists && st.st_dev == f->dev && st.st_ino == f->ino &&
	       st.st_mtim.tv_sec == f->changed.tv_sec && st.st_mtim.tv_nsec == f->changed.tv_nsec;
}

/*
 * One change on its way to the disk. A thread of its own writes it: a disk or a file server that
 * does not answer must not stop the control thread, which supervises workers. The last user frees
 * it.
 */
struct state_write {
	unsigned int users;     /* atomic */
	struct state_file file; /* the thread's; the control thread's once <over> */
	char path[PATH_MAX];
	char *text;
	int ret;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t ended;
	bool over, given_up, renaming;
};

static void write_put(struct state_write *w)
{
	if (__atomic_sub_fetch(&w->users, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	pthread_cond_destroy(&w->ended);
	pthread_mutex_destroy(&w->lock);
	free(w->text);
	free(w);
}

/* True when the file may be replaced: not if the change was already reported as failed. */
static bool begin_rename(struct state_write *w)
{
	pthread_mutex_lock(&w->lock);
	w->renaming = !w->given_up;
	pthread_mutex_unlock(&w->lock);
	return w->renaming;
}

static int write_replace(struct state_write *w)
{
	int folder = open_folder(w->path), ret;
	char beside[PATH_MAX + 8];
	struct stat st;

	if (folder < 0)
		return folder;
	snprintf(beside, sizeof(beside), "%s.new", w->path);
	ret = write_beside(beside, w->text, &st);
	if (ret == 0 && !begin_rename(w))
		ret = -ECANCELED;
	if (ret == 0 && rename(beside, w->path) < 0)
		ret = -errno;
	if (ret < 0) {
		unlink(beside);
	} else {
		state_file_note(&w->file, &st);
		/* after this error a power failure decides which of the two files is there */
		if (fsync(folder) < 0)
			ret = -errno;
	}
	close(folder);
	return ret;
}

static void *write_out(void *argument)
{
	struct state_write *w = argument;
	int ret = state_file_is_unchanged(&w->file) ? write_replace(w) : -ESTALE;

	pthread_mutex_lock(&w->lock);
	w->ret = ret;
	w->over = true;
	pthread_cond_signal(&w->ended);
	pthread_mutex_unlock(&w->lock);
	write_put(w);
	return NULL;
}

/* Start the thread that writes. 0 or -errno. */
static int write_start(struct state_write *w)
{
	int ret;

	__atomic_add_fetch(&w->users, 1, __ATOMIC_RELAXED);
	ret = detached_start(write_out, w);
	if (ret != 0)
		write_put(w);
	return ret;
}

/* Takes ownership of <text>. NULL when memory is short. */
static struct state_write *write_create(const struct state_file *f, char *text)
{
	struct state_write *w = text == NULL ? NULL : calloc(1, sizeof(*w));
	pthread_condattr_t attributes;

	if (w == NULL) {
		free(text);
		return NULL;
	}
	w->users = 1;
	w->text = text;
	snprintf(w->path, sizeof(w->path), "%s", f->path);
	w->file = *f;
	w->file.path = w->path;
	w->file.writing = NULL;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&w->ended, &attributes);
	pthread_condattr_destroy(&attributes);
	return w;
}

/*
 * Wait up to <ms> for the write to end, then give it up. True when the write is over. <renaming>:
 * it can no longer be given up.
 */
static bool write_await(struct state_write *w, unsigned int ms, bool *renaming)
{
	struct timespec until = clock_after_ms(CLOCK_MONOTONIC, ms);
	int ret = 0;
	bool over;

	pthread_mutex_lock(&w->lock);
	while (!w->over && ret == 0)
		ret = pthread_cond_timedwait(&w->ended, &w->lock, &until);
	w->given_up = true;
	over = w->over;
	*renaming = w->renaming;
	pthread_mutex_unlock(&w->lock);
	return over;
}

/* Take over the state in which a finished change left the file. Returns the change's result. */
static int write_take_result(struct state_file *f, struct state_write *w)
{
	int ret = w->ret;

	f->exists = w->file.exists;
	f->dev = w->file.dev;
	f->ino = w->file.ino;
	f->changed = w->file.changed;
	f->writing = NULL;
	write_put(w);
	return ret;
}

/* True while the previous change is still on its way. */
static bool state_file_is_busy(struct state_file *f)
{
	bool renaming;

	if (f->writing == NULL)
		return false;
	if (!write_await(f->writing, 0, &renaming))
		return true;
	write_take_result(f, f->writing);
	return false;
}

static int state_file_write_text(struct state_file *f, char *text)
{
	struct state_write *w = write_create(f, text);
	int ret = w == NULL ? -ENOMEM : write_start(w);
	bool renaming;

	if (ret < 0) {
		if (w != NULL)
			write_put(w);
		return ret;
	}
	if (write_await(w, WAIT_MS, &renaming))
		return write_take_result(f, w);
	f->writing = w;
	return renaming ? -EINPROGRESS : -ETIMEDOUT;
}

int state_file_save(struct state_file *f, const struct worker_settings *settings, char *error,
		    size_t error_size)
{
	int ret = state_file_is_busy(f) ? -EBUSY : state_file_write_text(f, make_text(settings));

	switch (ret) {
	case 0:
		return 0;
	case -ESTALE:
		return state_file_fail(
			error, error_size, ret,
			"%s: another program has changed it since it was read, so nothing was "
			"set; is it another load balancer's control.state_file, too? Restart "
			"doorbell-lb to use what is in it",
			f->path);
	case -EBUSY:
	case -ETIMEDOUT:
	case -EINPROGRESS:
		return state_file_fail(
			error, error_size, ret,
			"%s: its disk did not answer within %d ms; nothing was set%s: repair the "
			"disk, or restart doorbell-lb with another control.state_file",
			f->path, WAIT_MS,
			ret == -EINPROGRESS ? ", but it may be after a restart" : "");
	case -ENOSPC:
	case -EDQUOT:
		return state_file_fail(
			error, error_size, ret,
			"%s: cannot be written: %s; nothing was set, as it would not outlive "
			"the load balancer: make room there, or set control.state_file",
			f->path, strerror(-ret));
	default:
		return state_file_fail(
			error, error_size, ret,
			"%s: cannot be written: %s; nothing was set, as it would not outlive "
			"the load balancer: make its folder writable, or set control.state_file",
			f->path, strerror(-ret));
	}
}
