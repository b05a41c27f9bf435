/* A plugin that misbehaves as its file name says: libplugrad_plugin_crash_entry.so crashes in its
   entry. With unknown names it behaves correctly. Macros select variants that a name cannot:
   ZOO_ENTRY, ZOO_SECOND_ENTRY, ZOO_IMPORT, ZOO_NOTE. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fenv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugrad/plugin_api/compiler.h"
#include "plugrad/plugin_api/runner.h"

#define UNUSED(x) (void)(x)

void zoo_throw(void); /* throws a C++ exception */

struct pgr_device {
  uint32_t index;
  char id[32];
};

static char own_name[64], own_device_name[64];

static int is(const char* name) {
  return strcmp(own_name, name) == 0;
}

static pgr_string text(const char* chars) {
  pgr_string made;
  made.data = chars;
  made.size = strlen(chars);
  return made;
}

static pgr_status fail(pgr_error* error, pgr_status code, const char* message) {
  if (error && error->message_capacity > strlen(message)) {
    memcpy(error->message, message, strlen(message));
    error->message_size = strlen(message);
    error->code = code;
  }
  return code;
}

/* libplugrad_plugin_NAME.so -> NAME, and NAME in upper case. */
static void learn_own_name(void) {
  Dl_info info;
  const char* start;
  size_t size, i;
  if (!dladdr((void*)&own_name, &info)) return;
  start = strstr(info.dli_fname, "libplugrad_plugin_");
  if (!start) return;
  start += strlen("libplugrad_plugin_");
  size = strlen(start) - strlen(".so");
  if (size >= sizeof own_name) return;
  memcpy(own_name, start, size);
  for (i = 0; i < size; ++i)
    own_device_name[i] =
        own_name[i] >= 'a' && own_name[i] <= 'z' ? (char)(own_name[i] - 32) : own_name[i];
}

static void crash(void) {
  raise(SIGSEGV);
}

static void misbehave_in(const char* where) {
  char name[64];
  if (is("changes_float")) fesetround(FE_UPWARD);
  snprintf(name, sizeof name, "crash_%s", where);
  if (is(name)) raise(SIGSEGV);
  snprintf(name, sizeof name, "abort_%s", where);
  if (is(name)) abort();
  snprintf(name, sizeof name, "exit_%s", where);
  if (is(name)) exit(0);
  snprintf(name, sizeof name, "hang_%s", where);
  while (is(name)) pause();
  snprintf(name, sizeof name, "throw_%s", where);
  if (is(name)) zoo_throw();
}

__attribute__((constructor)) static void on_load(void) {
  learn_own_name();
  misbehave_in("constructor");
}

/* pgr.device */

static pgr_status device_info(pgr_device* device, pgr_device_info* out, pgr_error* error) {
  misbehave_in("device_info");
  if (device->index == 1) misbehave_in("second_device_info");
  if (is("terminal_message")) return fail(error, PGR_STATUS_IO_ERROR, "red \033[31m and \xff\xfe");
  if (is("endless_message")) {
    fail(error, PGR_STATUS_IO_ERROR, "never ends");
    error->message_size = UINT64_MAX;
    return PGR_STATUS_IO_ERROR;
  }
  out->stable_id = text(is("same_ids") ? "ZOO-same" : is("no_id") ? "" : device->id);
  out->name = text(is("odd_texts") ? "tab\there \033[2J caf\xc3\xa9 \xff" : "Zoo");
  out->arch = text("zoo1");
  out->memory_bytes = 1 << 20;
  if (is("odd_texts")) {
    out->vendor.data = NULL;
    out->vendor.size = 5;
    out->driver.size = UINT64_MAX;
    out->driver.data = "driver";
  }
  return PGR_STATUS_OK;
}

static pgr_status device_caps(pgr_device* device, pgr_device_caps* out, pgr_error* error) {
  static const pgr_tensor_core flat = {.struct_size = sizeof flat,
                                       .struct_id = PGR_STRUCT_TENSOR_CORE,
                                       .n = 16,
                                       .m = 16,
                                       .threads = 32};
  UNUSED(device);
  UNUSED(error);
  misbehave_in("caps");
  out->buffer_align_bytes = is("caps_align_3") ? 3 : 64;
  out->vector_lanes[11] = is("caps_lanes_3") ? 3 : is("caps_lanes_huge") ? 1u << 30 : 8;
  out->denormals = is("caps_unknown_values") ? 99 : 0;
  out->op_dtypes[63] = is("caps_unknown_values") ? 0xffffffffu : 0;
  out->has_local = is("caps_no_group_size");
  out->max_params = is("caps_params_1") ? 1 : is("caps_params_7") ? 7 : is("caps_params_8") ? 8 : 0;
  out->threads = is("caps_unknown_values") ? UINT32_MAX : 1;
  if (is("caps_core_stride_0") || is("caps_core_flat") || is("caps_core_count") ||
      is("caps_core_null")) {
    out->tensor_cores = is("caps_core_null") ? NULL : &flat;
    out->tensor_core_count = is("caps_core_count") ? 1000000000u : 1;
    out->tensor_core_stride = is("caps_core_stride_0") ? 0 : sizeof flat;
  }
  return PGR_STATUS_OK;
}

/* pgr.allocator, pgr.runner: never called by these tests */

static pgr_status alloc_buffer(pgr_device* d, const pgr_alloc_desc* desc, pgr_buffer** out,
                               pgr_error* error) {
  UNUSED(d), UNUSED(desc), UNUSED(out);
  return fail(error, PGR_STATUS_OUT_OF_MEMORY, "the zoo has no memory");
}
static void free_buffer(pgr_device* d, pgr_buffer* b) {
  UNUSED(d), UNUSED(b);
}
static pgr_status copy_in(pgr_device* d, pgr_queue* q, pgr_buffer* b, uint64_t at, const void* from,
                          uint64_t n, pgr_error* e) {
  UNUSED(d), UNUSED(q), UNUSED(b), UNUSED(at), UNUSED(from), UNUSED(n), UNUSED(e);
  return PGR_STATUS_INTERNAL;
}
static pgr_status copy_out(pgr_device* d, pgr_queue* q, void* to, pgr_buffer* b, uint64_t at,
                           uint64_t n, pgr_error* e) {
  UNUSED(d), UNUSED(q), UNUSED(b), UNUSED(at), UNUSED(to), UNUSED(n), UNUSED(e);
  return PGR_STATUS_INTERNAL;
}
static pgr_status load(pgr_device* d, const void* binary, uint64_t size, pgr_program** out,
                       pgr_error* e) {
  UNUSED(d), UNUSED(binary), UNUSED(size), UNUSED(out), UNUSED(e);
  return PGR_STATUS_BAD_BINARY;
}
static pgr_status find_kernel(pgr_device* d, pgr_program* p, const pgr_string* name,
                              pgr_kernel** out, pgr_error* e) {
  UNUSED(d), UNUSED(p), UNUSED(name), UNUSED(out), UNUSED(e);
  return PGR_STATUS_NOT_FOUND;
}
static pgr_status launch(pgr_device* d, pgr_queue* q, pgr_kernel* k, const pgr_launch_desc* desc,
                         uint64_t* time_ns, pgr_error* e) {
  UNUSED(d), UNUSED(q), UNUSED(k), UNUSED(desc), UNUSED(time_ns), UNUSED(e);
  return PGR_STATUS_LAUNCH_FAILED;
}
static void unload(pgr_device* d, pgr_program* p) {
  UNUSED(d), UNUSED(p);
}

/* the plugin's table */

static pgr_status plugin_info(pgr_plugin* plugin, pgr_plugin_info* out, pgr_error* error) {
  UNUSED(plugin);
  misbehave_in("info");
  if (is("info_fails")) return fail(error, PGR_STATUS_IO_ERROR, "its licence file is missing");
  out->name = text(own_name);
  out->device_name = text(is("other_name") ? "NOBODY" : own_device_name);
  out->version = text("1\xff\x1b[0m");
  out->vendor.data = NULL;
  out->vendor.size = 17;
  if (is("info_null_name")) out->device_name.data = NULL;
  if (is("info_huge_name")) out->device_name.size = UINT64_MAX;
  if (is("info_wild_name")) out->device_name.data = (const char*)8;
  return PGR_STATUS_OK;
}

static pgr_status device_count(pgr_plugin* plugin, uint32_t* out, pgr_error* error) {
  UNUSED(plugin);
  misbehave_in("count");
  if (is("count_fails")) return fail(error, PGR_STATUS_DEVICE_LOST, "the bus is gone");
  if (is("count_unknown_code")) return 4711;
  if (is("no_devices")) fail(error, PGR_STATUS_OK, "no /dev/zoo0");
  *out = is("no_devices") ? 0 : is("count_huge") ? 4000000000u : is("ten_thousand") ? 10000 : 2;
  return PGR_STATUS_OK;
}

static pgr_status device_open(pgr_plugin* plugin, uint32_t index, const pgr_option* options,
                              uint32_t option_count, uint32_t option_stride, pgr_device** out,
                              pgr_error* error) {
  pgr_device* device;
  UNUSED(plugin), UNUSED(options), UNUSED(option_count), UNUSED(option_stride);
  misbehave_in("open");
  if (is("open_fails")) return fail(error, PGR_STATUS_PERMISSION_DENIED, "/dev/zoo0 is locked");
  if (is("open_unknown_code")) return fail(error, -5, "it is complicated");
  if (is("open_gives_nothing")) return PGR_STATUS_OK;
  device = calloc(1, sizeof *device);
  if (!device) return PGR_STATUS_OUT_OF_HOST_MEMORY;
  device->index = index;
  snprintf(device->id, sizeof device->id, "ZOO-%05u",
           (unsigned)(is("unsorted") ? 9 - index : index));
  *out = device;
  return PGR_STATUS_OK;
}

static void device_close(pgr_plugin* plugin, pgr_device* device) {
  UNUSED(plugin);
  free(device);
}

static pgr_status query_interface(pgr_plugin* plugin, const pgr_string* name, uint32_t minor,
                                  const void** out, pgr_error* error) {
  static pgr_device_api device;
  static pgr_allocator_api allocator;
  static pgr_runner_api runner;
  UNUSED(plugin), UNUSED(minor);
  misbehave_in("query");
  PGR_INIT(device, DEVICE_API);
  device.info = device_info;
  device.caps = device_caps;
  PGR_INIT(allocator, ALLOCATOR_API);
  allocator.alloc = alloc_buffer;
  allocator.free = free_buffer;
  allocator.copy_in = copy_in;
  allocator.copy_out = copy_out;
  PGR_INIT(runner, RUNNER_API);
  runner.load = load;
  runner.kernel = find_kernel;
  runner.launch = is("runner_slot_null") ? NULL : launch;
  runner.unload = unload;
  if (is("query_fails")) return fail(error, PGR_STATUS_INTERNAL, "out of order");
  *out = NULL;
  if (name->size == 10 && !memcmp(name->data, "pgr.device", 10)) *out = &device;
  if (name->size == 13 && !memcmp(name->data, "pgr.allocator", 13) && !is("no_allocator"))
    *out = &allocator;
  if (name->size == 10 && !memcmp(name->data, "pgr.runner", 10)) {
    if (is("runner_null")) return PGR_STATUS_OK;
    *out = is("runner_other_id") ? (const void*)&allocator : &runner;
    if (is("runner_misaligned")) *out = (const char*)&runner + 4;
    if (is("runner_size_0")) runner.struct_size = 0;
    if (is("runner_short")) runner.struct_size = offsetof(pgr_runner_api, launch);
  }
  return *out ? PGR_STATUS_OK : fail(error, PGR_STATUS_UNSUPPORTED, "not offered");
}

static const pgr_plugin_api* make_table(void) {
  static pgr_plugin_api table;
  PGR_INIT(table, PLUGIN_API);
  table.info = is("slots_null") ? NULL : plugin_info;
  table.device_count = device_count;
  table.device_open = is("open_null") || is("slots_null") ? NULL : device_open;
  table.device_close = device_close;
  table.query_interface = query_interface;
  if (is("table_short")) table.struct_size = offsetof(pgr_plugin_api, device_count);
  if (is("table_size_0")) table.struct_size = 0;
  if (is("table_size_odd")) table.struct_size = offsetof(pgr_plugin_api, device_count) + 3;
  if (is("table_size_huge")) table.struct_size = UINT32_MAX;
  if (is("table_other_id")) table.struct_id = PGR_STRUCT_HELLO;
  if (is("table_misaligned")) return (const pgr_plugin_api*)((const char*)&table + 1);
  return is("table_null") ? NULL : &table;
}

static pgr_status enter(pgr_hello* hello, const pgr_plugin_api** out, pgr_error* error) {
  misbehave_in("entry");
  if (is("crash_at_exit")) atexit(crash);
  if (is("entry_fails")) return fail(error, PGR_STATUS_IO_ERROR, "its firmware file is missing");
  if (is("entry_unknown_code")) return 987654;
  if (!is("no_answer")) PGR_HELLO_ANSWER(hello, 0);
  if (is("newer_host")) hello->need_host_minor = 77;
  if (is("newer_host_ok")) hello->need_host_minor = UINT32_MAX;
  if (is("canary_hello")) hello->canary_hello_offset = 12;
  if (is("canary_error")) hello->canary_error_size = 8;
  if (is("prints")) puts("hello from the zoo");
  *out = make_table();
  return is("newer_host") ? PGR_STATUS_NEED_NEWER_HOST : PGR_STATUS_OK;
}

#ifdef ZOO_ENTRY
PGR_EXPORT pgr_status ZOO_ENTRY(pgr_hello* hello, const pgr_plugin_api** out, pgr_error* error) {
  return enter(hello, out, error);
}
#endif
#ifdef ZOO_SECOND_ENTRY
PGR_EXPORT pgr_status ZOO_SECOND_ENTRY(pgr_hello* hello, const pgr_plugin_api** out,
                                       pgr_error* error) {
  return enter(hello, out, error);
}
#endif
#ifndef ZOO_ENTRY
PGR_EXPORT pgr_status zoo_other_symbol(pgr_hello* hello, const pgr_plugin_api** out,
                                       pgr_error* error) {
  return enter(hello, out, error);
}
#endif
#ifdef ZOO_IMPORT
extern int zoo_is_nowhere(void);
PGR_EXPORT int zoo_importer(void) {
  return zoo_is_nowhere();
}
#endif
#ifdef ZOO_NOTE
__extension__ PGR_PLUGIN_NOTE(
    "{\"name\": \"noted\", \"device_name\": \"NOTED\", \"version\": \"7\",\n"
    " \"abi\": {\"major\": 1, \"minor_low\": 0, \"minor_high\": 0}}");
#endif
