/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles C into a loaded library with the system's compiler, for the template's device until it
   has its own compiler. C89 and POSIX; define _GNU_SOURCE before including this header. */
#ifndef PLUGRAD_SDK_C_HOST_COMPILER_H
#define PLUGRAD_SDK_C_HOST_COMPILER_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plugrad/plugin_api/compiler.h"
#include "plugrad/sdk/c_plugin.h"

#define PGR_CC_DEFAULT "/usr/bin/cc"

/* Flags required by dialect c (docs/dialects.md). */
static char* const pgr_cc_flags[] = {
    "-shared",       "-fPIC",           "-w",           "-fno-strict-aliasing", "-fwrapv",
    "-fsigned-char", "-fno-math-errno", "-fno-builtin", "-ffp-contract=off",    "-lm"};
#define PGR_CC_FLAGS (sizeof pgr_cc_flags / sizeof *pgr_cc_flags)
#define PGR_CC_MOST_FLAGS 64 /* maximum additional flags of a caller */

PGR_HELPER size_t pgr_cc_count(const char* const* flags) {
  size_t count = 0;
  while (flags && flags[count]) ++count;
  return count;
}

/* Text that changes with the compiler or its flags: a new compiler is a new file, and reading
   the file's attributes is cheap. `flags`: as for pgr_cc_compile. */
PGR_HELPER void pgr_cc_identity(const char* cc, const char* const* flags, char* out,
                                size_t capacity) {
  struct stat facts;
  int size;
  size_t i;
  memset(&facts, 0, sizeof facts);
  (void)stat(cc, &facts);
  size = snprintf(out, capacity, "%s %ld %ld", cc, (long)facts.st_size, (long)facts.st_mtime);
  for (i = 0; i < PGR_CC_FLAGS && (size_t)size < capacity; ++i)
    size += snprintf(out + size, capacity - (size_t)size, " %s", pgr_cc_flags[i]);
  for (i = 0; i < pgr_cc_count(flags) && (size_t)size < capacity; ++i)
    size += snprintf(out + size, capacity - (size_t)size, " %s", flags[i]);
}

PGR_HELPER int pgr_cc_write(int file, const void* bytes, uint64_t size) {
  const char* at = bytes;
  while (size > 0) {
    const ssize_t written = write(file, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return 0;
    at += written;
    size -= (uint64_t)written;
  }
  return 1;
}

/* The file's bytes after `room` free bytes; NULL if the file cannot be read. */
PGR_HELPER char* pgr_cc_read(const char* path, uint64_t room, uint64_t* out_size) {
  struct stat facts;
  char* bytes = NULL;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file >= 0 && fstat(file, &facts) == 0) bytes = malloc(room + (uint64_t)facts.st_size + 1);
  if (bytes && read(file, bytes + room, (size_t)facts.st_size) == facts.st_size)
    *out_size = (uint64_t)facts.st_size;
  else
    free(bytes), bytes = NULL;
  if (file >= 0) close(file);
  return bytes;
}

/* The files of one compilation. */
struct pgr_cc_job {
  char dir[64], source[96], library[96], log[96], temporary[96], optimize[8];
  int alive; /* closing it makes the remover delete the folder */
  pid_t remover;
};

/* Starts a shell that removes the folder when this process closes job->alive or dies, even if
   killed. The shell has its own session, so that it survives signals to this process's group. */
PGR_HELPER int pgr_cc_start_remover(struct pgr_cc_job* job) {
  static const char script[] = "read end; rm -rf \"$0\"";
  char *argv[5], *env[2];
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  int ends[2], result;
  argv[0] = "/bin/sh", argv[1] = "-c", argv[2] = (char*)script, argv[3] = job->dir, argv[4] = NULL;
  env[0] = "PATH=/usr/bin:/bin", env[1] = NULL;
  if (pipe2(ends, O_CLOEXEC) != 0) return 0;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[0], 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  result = posix_spawn(&job->remover, argv[0], &files, &attributes, argv, env);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  close(ends[0]);
  job->alive = ends[1];
  if (result != 0) close(ends[1]), job->alive = -1;
  return result == 0;
}

PGR_HELPER int pgr_cc_start(struct pgr_cc_job* job, const pgr_compile_desc* desc) {
  int file, ok;
  strcpy(job->dir, "/tmp/plugrad-cc-XXXXXX");
  job->alive = -1;
  if (!mkdtemp(job->dir)) return 0;
  if (!pgr_cc_start_remover(job)) return rmdir(job->dir), 0;
  sprintf(job->source, "%s/kernel.c", job->dir);
  sprintf(job->library, "%s/kernel.so", job->dir);
  sprintf(job->log, "%s/log", job->dir);
  sprintf(job->temporary, "TMPDIR=%s", job->dir);
  sprintf(job->optimize, "-O%u", (unsigned)(desc->optimize < 3 ? desc->optimize : 3));
  /* The folder is new and private: it contains no file or link that could be overwritten. */
  file = open(job->source, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ok = file >= 0 && pgr_cc_write(file, desc->input, desc->input_bytes);
  if (file >= 0) close(file);
  return ok;
}

PGR_HELPER void pgr_cc_end(const struct pgr_cc_job* job) {
  if (job->alive < 0) return;
  close(job->alive);
  while (waitpid(job->remover, NULL, 0) < 0 && errno == EINTR) continue;
}

/* 0 on success, errno if cc cannot be run, or -1 if it reports an error. */
PGR_HELPER int pgr_cc_run(const char* cc, const char* const* flags, struct pgr_cc_job* job) {
  char *argv[PGR_CC_FLAGS + PGR_CC_MOST_FLAGS + 6], *env[4];
  const size_t flag_count = pgr_cc_count(flags);
  posix_spawn_file_actions_t files;
  pid_t child;
  int result, ended = 0;
  memset(argv, 0, sizeof argv);
  memset(env, 0, sizeof env);
  argv[0] = (char*)cc;
  argv[1] = job->optimize;
  argv[2] = job->source;
  argv[3] = "-o";
  argv[4] = job->library;
  memcpy(argv + 5, pgr_cc_flags, sizeof pgr_cc_flags);
  if (flag_count > 0) memcpy(argv + 5 + PGR_CC_FLAGS, flags, flag_count * sizeof *flags);
  env[0] = "PATH=/usr/local/bin:/usr/bin:/bin";
  env[1] = "LC_ALL=C";
  env[2] = job->temporary;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, job->log, O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  result = posix_spawn(&child, cc, &files, NULL, argv, env);
  posix_spawn_file_actions_destroy(&files);
  if (result != 0) return result;
  while (waitpid(child, &ended, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(ended) && WEXITSTATUS(ended) == 0 ? 0 : -1;
}

/* Compiles C text with cc; returns the library after `room` free bytes, allocated by malloc.
   `flags` follow pgr_cc_flags: NULL-terminated, at most PGR_CC_MOST_FLAGS; NULL for none.
   The log goes to out_log, which may be NULL. */
PGR_HELPER pgr_status pgr_cc_compile(const char* cc, const pgr_compile_desc* desc,
                                     const char* const* flags, uint64_t room, char** out,
                                     uint64_t* out_size, pgr_blob* out_log, pgr_error* error) {
  struct pgr_cc_job job;
  const pgr_string name = pgr_text(cc);
  pgr_status status = PGR_STATUS_OK;
  uint64_t log_size = 0;
  char* log;
  int result;
  if (pgr_cc_count(flags) > PGR_CC_MOST_FLAGS)
    return pgr_fail(error, PGR_STATUS_INVALID_ARGUMENT, "compile: too many flags");
  if (!pgr_cc_start(&job, desc)) {
    pgr_cc_end(&job);
    return pgr_fail(error, PGR_STATUS_IO_ERROR, "compile: cannot write to /tmp");
  }
  result = pgr_cc_run(cc, flags, &job);
  log = pgr_cc_read(job.log, 0, &log_size);
  if (log) pgr_give_blob(out_log, log, log_size, NULL);
  if (result > 0)
    status = pgr_fail_text(error, PGR_STATUS_IO_ERROR,
                           "cannot run $: install a C compiler, or set the option cc", &name);
  else if (result < 0)
    status = pgr_fail_text(error, PGR_STATUS_COMPILE_FAILED, "cc refused kernel $; see the log",
                           &desc->name);
  else if (!(*out = pgr_cc_read(job.library, room, out_size)))
    status = pgr_fail(error, PGR_STATUS_IO_ERROR, "compile: cannot read the output of cc");
  pgr_cc_end(&job);
  return status;
}

/* A library loaded from its bytes. */
typedef struct pgr_cc_library {
  void* handle;
  char path[32];
} pgr_cc_library;

PGR_HELPER pgr_status pgr_cc_open(pgr_cc_library* out, const char* bytes, uint64_t size,
                                  pgr_error* error) {
  int file, ok;
  strcpy(out->path, "/tmp/plugrad-cc-XXXXXX");
  file = mkostemp(out->path, O_CLOEXEC);
  ok = file >= 0 && pgr_cc_write(file, bytes, size);
  out->handle = ok ? dlopen(out->path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (file >= 0) {
    close(file);
    unlink(out->path);
  }
  if (out->handle) return PGR_STATUS_OK;
  return pgr_fail(error, PGR_STATUS_IO_ERROR, "load: cannot write to or load from /tmp");
}

/* A function of the library; NULL if it has none of that name. */
PGR_HELPER void* pgr_cc_symbol(const pgr_cc_library* library, const pgr_string* name) {
  char chars[256];
  Dl_info found;
  void* address;
  if (!pgr_copy_text(chars, sizeof chars, name)) return NULL;
  address = dlsym(library->handle, chars);
  /* dlsym also searches the library's dependencies. */
  if (!address || !dladdr(address, &found) || strcmp(found.dli_fname, library->path) != 0)
    return NULL;
  return address;
}

/* Runs all groups of a kernel. In the SDK's C dialect a kernel is a function that runs groups
   [begin, end) of a launch of `counts` groups along the three axes; a kernel of one axis
   ignores `counts`. */
PGR_HELPER void pgr_cc_call(void* address, void* const* buffers, const uint64_t* scalars,
                            uint64_t groups, const uint64_t* counts) {
  void (*function)(void* const* buffers, const uint64_t* scalars, uint64_t begin, uint64_t end,
                   const uint64_t* counts);
  memcpy(&function, &address, sizeof function);
  function(buffers, scalars, 0, groups, counts);
}

PGR_HELPER uint64_t pgr_cc_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
