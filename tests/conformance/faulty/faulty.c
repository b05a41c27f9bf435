/* A plugin with the fault that its option "fault" names. Otherwise it forwards the tables of the
   reference plugin, with some functions replaced. */
#include "faulty.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugrad/plugin_api/compiler.h"
#include "plugrad/plugin_api/runner.h"

static char device_fault[64];
static const pgr_plugin_api* own;
static pgr_plugin_api plugin_table;
static const pgr_runner_api* own_runner;
static pgr_runner_api runner_table;
static const pgr_allocator_api* own_allocator;
enum { MOST_XOR_KERNELS = 64 };
static const void *xor_program, *xor_kernels[MOST_XOR_KERNELS];
static uint32_t xor_kernel_count;

static void read_fault(const pgr_option* options, uint32_t count, uint32_t stride, char* fault) {
  uint32_t i;
  fault[0] = '\0';
  for (i = 0; i < count; ++i) {
    const pgr_option* option = (const pgr_option*)((const char*)options + i * (size_t)stride);
    if (option->value.size < 64) {
      memcpy(fault, option->value.data, option->value.size);
      fault[option->value.size] = '\0';
    }
  }
}

__attribute__((noinline)) static void crash_here(void) {
  int* volatile nowhere = (int*)8;
  *nowhere = 1;
}

void happen(const char* fault, const char* place) {
  const size_t length = strlen(place);
  const char* what;
  if (strncmp(fault, place, length) != 0 || fault[length] != '-') return;
  what = fault + length + 1;
  if (strcmp(what, "crash") == 0) crash_here();
  if (strcmp(what, "abort") == 0) abort();
  if (strcmp(what, "exit") == 0) exit(3);
  if (strcmp(what, "throw") == 0) throw_something();
  if (strcmp(what, "hang") == 0)
    for (;;) usleep(1000);
  if (strcmp(what, "print") == 0) {
    fprintf(stderr, "printed by a plugin\n");
    abort();
  }
  if (strcmp(what, "say") == 0) printf("said by a plugin\n");
  if (strcmp(what, "driver_says") == 0) faulty_driver_says();
}

/* The reference plugin's binary is the kernel IR block itself. */
static pgr_status load(pgr_device* device, const void* binary, uint64_t size, pgr_program** out,
                       pgr_error* error) {
  const pgr_ir_header* header = binary;
  uint32_t i;
  const pgr_status status = own_runner->load(device, binary, size, out, error);
  if (status != PGR_STATUS_OK) return status;
  if (xor_program == *out) xor_program = NULL;
  for (i = 0; i < header->inst_count; ++i) {
    const char* inst = (const char*)binary + header->inst_offset + i * (size_t)header->inst_stride;
    if (((const pgr_ir_inst*)inst)->op == PGR_OP_XOR) xor_program = *out;
  }
  return status;
}

static pgr_status kernel(pgr_device* device, pgr_program* program, const pgr_string* name,
                         pgr_kernel** out, pgr_error* error) {
  const pgr_status status = own_runner->kernel(device, program, name, out, error);
  uint32_t i;
  if (status != PGR_STATUS_OK) return status;
  for (i = 0; i < xor_kernel_count; ++i) /* an unloaded kernel may have had this address */
    if (xor_kernels[i] == *out) xor_kernels[i] = NULL;
  if (program == xor_program && xor_kernel_count < MOST_XOR_KERNELS)
    xor_kernels[xor_kernel_count++] = *out;
  return status;
}

static int has_xor(const void* handle) {
  uint32_t i;
  for (i = 0; i < xor_kernel_count; ++i)
    if (xor_kernels[i] == handle) return 1;
  return 0;
}

/* Byte `offset` of the last buffer. */
static void spoil_byte(pgr_device* device, const pgr_launch_desc* desc, int64_t offset) {
  unsigned char* memory = NULL;
  pgr_buffer* buffer = desc->buffers[desc->buffer_count - 1];
  if (own_allocator->map(device, buffer, (void**)&memory, NULL) != PGR_STATUS_OK) return;
  memory[offset] ^= 0x40;
  own_allocator->unmap(device, buffer, NULL);
}

static pgr_status launch(pgr_device* device, pgr_queue* queue, pgr_kernel* handle,
                         const pgr_launch_desc* desc, uint64_t* out_time_ns, pgr_error* error) {
  pgr_status status;
  happen(device_fault, "launch");
  status = own_runner->launch(device, queue, handle, desc, out_time_ns, error);
  if (desc->buffer_count == 0) return status;
  if (strcmp(device_fault, "before") == 0) spoil_byte(device, desc, -1);
  if (strcmp(device_fault, "xor") == 0 && has_xor(handle)) spoil_byte(device, desc, 0);
  return status;
}

/* The host refuses a plugin with another device name than its manifest's. */
static pgr_status info(pgr_plugin* plugin, pgr_plugin_info* out, pgr_error* error) {
  const pgr_status status = own->info(plugin, out, error);
  if (status == PGR_STATUS_OK) {
    out->device_name.data = "FAULTY";
    out->device_name.size = 6;
  }
  return status;
}

static pgr_status device_open(pgr_plugin* plugin, uint32_t index, const pgr_option* options,
                              uint32_t option_count, uint32_t option_stride, pgr_device** out,
                              pgr_error* error) {
  read_fault(options, option_count, option_stride, device_fault);
  happen(device_fault, "open");
  return own->device_open(plugin, index, NULL, 0, option_stride, out, error);
}

static pgr_status query_interface(pgr_plugin* plugin, const pgr_string* name, uint32_t minor,
                                  const void** out_table, pgr_error* error) {
  const pgr_status status = own->query_interface(plugin, name, minor, out_table, error);
  if (status != PGR_STATUS_OK) return status;
  if (name->size == 13 && memcmp(name->data, "pgr.allocator", 13) == 0) own_allocator = *out_table;
  if (name->size == 10 && memcmp(name->data, "pgr.runner", 10) == 0) {
    own_runner = *out_table;
    runner_table = *own_runner;
    runner_table.load = load;
    runner_table.kernel = kernel;
    runner_table.launch = launch;
    *out_table = &runner_table;
  }
  return PGR_STATUS_OK;
}

static pgr_status enter_reference(pgr_hello* hello, pgr_error* error) {
  pgr_plugin_entry_fn entry;
  void* library = dlopen(REFERENCE_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  void* symbol = library ? dlsym(library, PGR_PLUGIN_ENTRY_NAME) : NULL;
  if (!symbol) return PGR_STATUS_INTERNAL;
  memcpy(&entry, &symbol, sizeof entry);
  hello->option_count = 0;
  return entry(hello, &own, error);
}

PGR_EXPORT pgr_status PGR_PLUGIN_ENTRY(pgr_hello* hello, const pgr_plugin_api** out_api,
                                       pgr_error* error) {
  char fault[64];
  pgr_status status;
  read_fault(hello->options, hello->option_count, hello->option_stride, fault);
  happen(fault, "entry");
  status = enter_reference(hello, error);
  if (status != PGR_STATUS_OK) return status;
  plugin_table = *own;
  plugin_table.info = info;
  plugin_table.device_open = device_open;
  plugin_table.query_interface = query_interface;
  *out_api = &plugin_table;
  return PGR_STATUS_OK;
}
