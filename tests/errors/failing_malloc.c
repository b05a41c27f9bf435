// Preloaded: makes the FAIL_AT-th allocation of the process fail, once. With FAIL_AT=0 none fails,
// and the number of allocations is written to the file FAIL_COUNT at exit.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* old, size_t size);

static long count;

static int fails(void) {
  static long at = -1;
  if (at < 0) {
    const char* text = getenv("FAIL_AT");
    at = text ? atol(text) : 0;
  }
  if (__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) != at) return 0;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) {
  return fails() ? NULL : __libc_malloc(size);
}
void* calloc(size_t number, size_t size) {
  return fails() ? NULL : __libc_calloc(number, size);
}
void* realloc(void* old, size_t size) {
  return fails() ? NULL : __libc_realloc(old, size);
}

__attribute__((destructor)) static void tell(void) {
  const char* path = getenv("FAIL_COUNT");
  char text[32];
  if (!path) return;
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const int length = snprintf(text, sizeof text, "%ld\n", count);
  if (file < 0 || write(file, text, (size_t)length) != length) _exit(3);
  close(file);
}
__attribute__((constructor)) static void begin(void) {  // commands end by quick_exit()
  if (at_quick_exit(tell) != 0) _exit(3);
}
