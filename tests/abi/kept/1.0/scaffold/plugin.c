/* SPDX-License-Identifier: 0BSD
   plugrad_plugin_acme: the device ACME. It works from the first minute: its memory is the host's,
   its kernels are C that the SDK's renderer writes, and the system's compiler makes code of them.
   Put your hardware in where it says FILL; a slot that is left NULL answers UNSUPPORTED. */
#define _GNU_SOURCE
#include <unistd.h>

#include "plugrad/plugin_api/compiler.h"
#include "plugrad/plugin_api/runner.h"
#include "plugrad/sdk/c_host_compiler.h"
#include "plugrad/sdk/c_plugin.h"

#define BUFFER_ALIGN 64u
#define MAGIC "acme binary 1"
#define IDENTITY_BYTES 1024
#define MOST_BUFFERS 256u
#define MOST_GROUPS ((uint64_t)1 << 40)

static struct pgr_plugin {
  const pgr_host_api *host;
} plugin;
struct pgr_device {
  uint64_t used_bytes;
  char cc[256]; /* the compiler */
};
struct pgr_buffer {
  char *data;
  uint64_t size;
};
struct pgr_program {
  pgr_cc_library library; /* a pgr_kernel is the address of a function in it */
};
/* ---- pgr.device ------------------------------------------------------------------------------ */

/* FILL: the memory of your device */
static uint64_t memory_bytes(void) {
  return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGE_SIZE);
}

static pgr_status device_info(pgr_device *device, pgr_device_info *out, pgr_error *error) {
  pgr_device_info own;
  if (!device) return pgr_null(error, "device");
  PGR_INIT(own, DEVICE_INFO);
  own.stable_id = pgr_text("acme-0"); /* FILL: a serial number or bus address */
  own.name = pgr_text("ACME");        /* FILL: the device's name, arch, vendor and driver */
  own.arch = pgr_text("host");
  own.vendor = pgr_text("ACME"), own.driver = pgr_text("0.1.0");
  own.memory_bytes = memory_bytes();
  own.is_software = 1; /* FILL: 0 once it is hardware, and "software": false in manifest.json */
  return pgr_fill(out, &own, error);
}

#define BIT(NAME) (1u << PGR_DTYPE_##NAME)
#define INTS (BIT(I8) | BIT(U8) | BIT(I16) | BIT(U16) | BIT(I32) | BIT(U32) | BIT(I64) | BIT(U64))
#define FLOATS (BIT(F32) | BIT(F64))
#define STORED (BIT(BOOL) | INTS | FLOATS | BIT(F16) | BIT(BF16))

/* FILL: a bit for each op and dtype that your device computes; the host decomposes other ops, and
   the suite tests each claim. */
#define INDEX (BIT(I32) | BIT(I64))
#define NUMBERS (INTS | FLOATS)
#define BITS (BIT(BOOL) | INTS)
#define ALL (BIT(BOOL) | NUMBERS)
static const uint32_t claims[][2] = {
    {PGR_OP_PARAM, STORED},   {PGR_OP_ARRAY, STORED},  {PGR_OP_CONST, STORED},
    {PGR_OP_LOAD, STORED},    {PGR_OP_STORE, STORED},  {PGR_OP_WHERE, STORED},
    {PGR_OP_VECTOR, STORED},  {PGR_OP_LANE, STORED},   {PGR_OP_CAST, STORED},
    {PGR_OP_GROUP_ID, INDEX}, {PGR_OP_LOOP, INDEX},    {PGR_OP_END_LOOP, INDEX},
    {PGR_OP_IF, BIT(BOOL)},   {PGR_OP_END_IF, BIT(BOOL)}, {PGR_OP_ATOMIC_ADD, NUMBERS},
    {PGR_OP_ADD, NUMBERS},    {PGR_OP_SUB, NUMBERS},   {PGR_OP_MUL, NUMBERS},
    {PGR_OP_NEG, NUMBERS},    {PGR_OP_MAX, ALL},       {PGR_OP_CMPLT, ALL},
    {PGR_OP_CMPEQ, ALL},      {PGR_OP_CMPNE, ALL},     {PGR_OP_IDIV, INTS},
    {PGR_OP_MOD, INTS},       {PGR_OP_SHL, INTS},      {PGR_OP_SHR, INTS},
    {PGR_OP_AND, BITS},       {PGR_OP_OR, BITS},       {PGR_OP_XOR, BITS},
    {PGR_OP_RECIP, FLOATS},   {PGR_OP_FDIV, FLOATS},   {PGR_OP_SQRT, FLOATS},
    {PGR_OP_FMA, FLOATS},     {PGR_OP_TRUNC, FLOATS},  {PGR_OP_BITCAST, STORED & ~BIT(BOOL)},
};

static pgr_status device_caps(pgr_device *device, pgr_device_caps *out, pgr_error *error) {
  pgr_device_caps own;
  size_t i;
  if (!device) return pgr_null(error, "device");
  PGR_INIT(own, DEVICE_CAPS);
  for (i = 0; i < sizeof claims / sizeof *claims; ++i) own.op_dtypes[claims[i][0]] = claims[i][1];
  own.storage_dtypes = STORED, own.denormals = PGR_DENORMALS_PRESERVE;
  for (i = 1; i < PGR_DTYPE_COUNT; ++i) own.vector_lanes[i] = 1;
  own.subgroup_size = own.max_local_total = 1;
  own.threads = 1; /* FILL: groups that run at once */
  for (i = 0; i < 3; ++i) own.max_local_size[i] = 1, own.max_groups[i] = MOST_GROUPS;
  own.private_bytes = 64 << 10;
  own.cache_bytes[0] = 32 << 10; /* FILL: the caches of your device */
  own.cache_line_bytes = 64;
  own.max_buffer_bytes = memory_bytes();
  own.max_params = MOST_BUFFERS, own.buffer_align_bytes = BUFFER_ALIGN;
  own.unified_memory = 1; /* FILL: 0 where the host cannot reach the device's memory */
  return pgr_fill(out, &own, error);
}

static uint64_t used_bytes(pgr_device *device) {
  return __sync_fetch_and_add(&device->used_bytes, 0);
}

static pgr_status device_memory_stats(pgr_device *device, pgr_memory_stats *out, pgr_error *error) {
  pgr_memory_stats own;
  if (!device) return pgr_null(error, "device");
  PGR_INIT(own, MEMORY_STATS);
  own.total_bytes = memory_bytes();
  own.used_bytes = used_bytes(device);
  own.free_bytes = own.total_bytes - own.used_bytes;
  return pgr_fill(out, &own, error);
}

static pgr_status device_synchronize(pgr_device *device, pgr_error *error) {
  if (!device) return pgr_null(error, "device");
  return PGR_STATUS_OK; /* FILL: wait; without pgr.queue all work is already complete */
}

static const pgr_device_api device_table = {
    PGR_TABLE(pgr_device_api, DEVICE_API),
    device_info, device_caps, device_memory_stats,
    NULL, /* FILL: health, whether the device is lost */
    device_synchronize,
};

/* ---- pgr.allocator --------------------------------------------------------------------------- */

static pgr_status allocator_alloc(pgr_device *device, const pgr_alloc_desc *desc, pgr_buffer **out,
                                  pgr_error *error) {
  pgr_alloc_desc own;
  pgr_buffer *buffer;
  void *data = NULL;
  PGR_INIT(own, ALLOC_DESC);
  PGR_TRY(pgr_read(&own, desc, error));
  if (!device || !out) return pgr_null(error, "alloc: device or out");
  if (own.align_bytes & (own.align_bytes - 1))
    return pgr_fail_with(error, PGR_STATUS_INVALID_ARGUMENT, "alignment % is not a power of two",
                         NULL, own.align_bytes, 0, 0);
  if (own.align_bytes < BUFFER_ALIGN) own.align_bytes = BUFFER_ALIGN;
  if (!(buffer = malloc(sizeof *buffer))) return pgr_no_memory(error);
  /* FILL: memory of your device */
  if (own.size_bytes > memory_bytes() - used_bytes(device) ||
      posix_memalign(&data, own.align_bytes, own.size_bytes ? own.size_bytes : 1) != 0) {
    free(buffer);
    return pgr_fail_with(error, PGR_STATUS_OUT_OF_MEMORY, "cannot allocate % bytes aligned to %",
                         NULL, own.size_bytes, own.align_bytes, 0);
  }
  __sync_fetch_and_add(&device->used_bytes, own.size_bytes);
  if (own.flags & PGR_ALLOC_ZERO) memset(data, 0, own.size_bytes);
  buffer->data = data;
  buffer->size = own.size_bytes;
  *out = buffer;
  return PGR_STATUS_OK;
}

static void allocator_free(pgr_device *device, pgr_buffer *buffer) {
  if (!buffer) return;
  __sync_fetch_and_sub(&device->used_bytes, buffer->size);
  free(buffer->data);
  free(buffer);
}

static pgr_status allocator_copy_in(pgr_device *device, pgr_queue *queue, pgr_buffer *dst,
                                    uint64_t offset, const void *src, uint64_t size,
                                    pgr_error *error) {
  (void)queue;
  if (!device || !dst || (!src && size > 0)) return pgr_null(error, "copy_in: device, dst or src");
  PGR_TRY(pgr_check_range(dst->size, offset, size, "copy_in: dst", error));
  if (size > 0) memcpy(dst->data + offset, src, size);
  return PGR_STATUS_OK;
}

static pgr_status allocator_copy_out(pgr_device *device, pgr_queue *queue, void *dst,
                                     pgr_buffer *src, uint64_t offset, uint64_t size,
                                     pgr_error *error) {
  (void)queue;
  if (!device || !src || (!dst && size > 0)) return pgr_null(error, "copy_out: device, src or dst");
  PGR_TRY(pgr_check_range(src->size, offset, size, "copy_out: src", error));
  if (size > 0) memcpy(dst, src->data + offset, size);
  return PGR_STATUS_OK;
}

static pgr_status allocator_copy(pgr_device *device, pgr_queue *queue, pgr_buffer *dst,
                                 uint64_t dst_offset, pgr_buffer *src, uint64_t src_offset,
                                 uint64_t size, pgr_error *error) {
  (void)queue;
  if (!device || !dst || !src) return pgr_null(error, "copy: device, dst or src");
  PGR_TRY(pgr_check_range(dst->size, dst_offset, size, "copy: dst", error));
  PGR_TRY(pgr_check_range(src->size, src_offset, size, "copy: src", error));
  if (dst == src && dst_offset < src_offset + size && src_offset < dst_offset + size)
    return pgr_fail(error, PGR_STATUS_INVALID_ARGUMENT, "copy: the ranges overlap");
  memcpy(dst->data + dst_offset, src->data + src_offset, size);
  return PGR_STATUS_OK;
}

static const pgr_allocator_api allocator_table = {
    PGR_TABLE(pgr_allocator_api, ALLOCATOR_API),
    allocator_alloc, allocator_free, allocator_copy_in, allocator_copy_out, allocator_copy,
    NULL,       /* FILL: fill, a pattern into a range */
    NULL, NULL, /* FILL: map, host access without a copy, and unmap */
    NULL,       /* FILL: sub_buffer, a range of a buffer as a buffer */
};

/* ---- pgr.compiler ---------------------------------------------------------------------------- */

static const char *const cc_flags[] = {NULL}; /* FILL: your flags, after those of dialect c */
static const char *cc_of(const pgr_device *device) { return device ? device->cc : PGR_CC_DEFAULT; }

/* FILL: text that changes exactly when the compiler's output for the same input may change. */
static void write_identity(const pgr_device *device, char *out, size_t capacity) {
  strcpy(out, "acme 0.1.0 ");
  pgr_cc_identity(cc_of(device), cc_flags, out + strlen(out), capacity - strlen(out));
}

/* FILL: your compiler in place of pgr_cc_compile. Its input is source from the renderer that
   manifest.json names; without "renderer" it is kernel IR (docs/kernel-ir.md). */
static pgr_status compiler_compile(pgr_device *device, const pgr_compile_desc *desc,
                                   pgr_blob *out_binary, pgr_blob *out_log, pgr_error *error) {
  char identity[IDENTITY_BYTES], *bytes = NULL;
  uint64_t size = 0;
  pgr_compile_desc own;
  PGR_INIT(own, COMPILE_DESC);
  PGR_TRY(pgr_read(&own, desc, error));
  if (!out_binary || !own.input) return pgr_null(error, "compile: the input or out_binary");
  write_identity(device, identity, sizeof identity);
  PGR_TRY(pgr_cc_compile(cc_of(device), &own, cc_flags, sizeof(pgr_binary_header), &bytes, &size,
                         out_log, error));
  pgr_seal_binary(bytes, size, MAGIC, identity);
  return pgr_give_blob(out_binary, bytes, sizeof(pgr_binary_header) + size, error);
}

static pgr_status compiler_cache_identity(pgr_device *device, pgr_blob *out, pgr_error *error) {
  char identity[IDENTITY_BYTES];
  if (!out) return pgr_null(error, "cache_identity: out");
  write_identity(device, identity, sizeof identity);
  return pgr_give_text(out, identity, error);
}

static pgr_status compiler_validate(pgr_device *device, const void *binary, uint64_t size,
                                    uint32_t *out, pgr_error *error) {
  char identity[IDENTITY_BYTES];
  pgr_binary_header header;
  if (!out) return pgr_null(error, "validate: out");
  write_identity(device, identity, sizeof identity);
  *out = PGR_BINARY_FOREIGN;
  if (!pgr_open_binary(&header, binary, size, MAGIC)) return PGR_STATUS_OK;
  *out = header.identity == pgr_hash(identity, strlen(identity)) ? PGR_BINARY_GOOD
                                                                 : PGR_BINARY_RECOMPILE;
  return PGR_STATUS_OK;
}

static const pgr_compiler_api compiler_table = {
    PGR_TABLE(pgr_compiler_api, COMPILER_API),
    compiler_compile, compiler_cache_identity, compiler_validate,
    NULL, /* FILL: disassemble, a binary as text */
};

/* ---- pgr.runner ------------------------------------------------------------------------------ */

static pgr_status runner_load(pgr_device *device, const void *binary, uint64_t size,
                              pgr_program **out, pgr_error *error) {
  pgr_binary_header header;
  const char *output = pgr_open_binary(&header, binary, size, MAGIC);
  pgr_program *program;
  pgr_status status;
  if (!device || !out || !binary) return pgr_null(error, "load: device, binary or out");
  if (!output) return pgr_fail(error, PGR_STATUS_BAD_BINARY, "load: no binary of acme, or damaged");
  if (!(program = malloc(sizeof *program))) return pgr_no_memory(error);
  status = pgr_cc_open(&program->library, output, header.bytes, error); /* FILL: your loader */
  if (status == PGR_STATUS_OK) *out = program;
  if (status != PGR_STATUS_OK) free(program);
  return status;
}

static pgr_status runner_kernel(pgr_device *device, pgr_program *program, const pgr_string *name,
                                pgr_kernel **out, pgr_error *error) {
  void *address;
  if (!device || !program || !name || !out) return pgr_null(error, "kernel: an argument");
  address = pgr_cc_symbol(&program->library, name);
  if (!address) return pgr_fail_text(error, PGR_STATUS_NOT_FOUND, "no kernel \"$\"", name);
  *out = address;
  return PGR_STATUS_OK;
}

static pgr_status runner_launch(pgr_device *device, pgr_queue *queue, pgr_kernel *kernel,
                                const pgr_launch_desc *desc, uint64_t *out_time_ns,
                                pgr_error *error) {
  void *addresses[MOST_BUFFERS];
  pgr_launch_desc own;
  uint64_t groups = 0, begin;
  uint32_t i;
  (void)queue;
  if (!device || !kernel) return pgr_null(error, "launch: device or kernel");
  PGR_INIT(own, LAUNCH_DESC);
  PGR_TRY(pgr_read(&own, desc, error));
  PGR_TRY(pgr_count_groups(own.group_count, own.local_size, MOST_GROUPS, &groups, error));
  if (own.buffer_count > MOST_BUFFERS)
    return pgr_fail_with(error, PGR_STATUS_LIMIT_EXCEEDED, "% buffers; % are the most", NULL,
                         own.buffer_count, MOST_BUFFERS, 0);
  if ((own.buffer_count && !own.buffers) || (own.scalar_count && !own.scalars))
    return pgr_null(error, "launch: buffers or scalars");
  for (i = 0; i < own.buffer_count; ++i) {
    if (!own.buffers[i]) return pgr_null(error, "launch: a buffer");
    addresses[i] = own.buffers[i]->data;
  }
  begin = pgr_cc_now_ns();
  pgr_cc_call(kernel, addresses, own.scalars, groups, own.group_count); /* FILL: your launch */
  if (out_time_ns) *out_time_ns = own.timing ? pgr_cc_now_ns() - begin : 0;
  return PGR_STATUS_OK;
}

static void runner_unload(pgr_device *device, pgr_program *program) {
  (void)device;
  if (!program) return;
  dlclose(program->library.handle);
  free(program);
}

static const pgr_runner_api runner_table = {
    PGR_TABLE(pgr_runner_api, RUNNER_API),
    runner_load, runner_kernel,
    NULL, /* FILL: limits, registers and memory of a kernel */
    runner_launch, runner_unload,
};

/* ---- the plugin ------------------------------------------------------------------------------ */

static pgr_status plugin_info(pgr_plugin *self, pgr_plugin_info *out, pgr_error *error) {
  static const pgr_option_schema options[] = { /* FILL: options for users of your device */
      {PGR_TABLE(pgr_option_schema, OPTION_SCHEMA), PGR_TEXT("cc"), PGR_TEXT("string"),
       PGR_TEXT(PGR_CC_DEFAULT), PGR_TEXT("path of the C compiler")}};
  pgr_plugin_info own;
  (void)self;
  PGR_INIT(own, PLUGIN_INFO);
  own.name = pgr_text("acme");
  own.device_name = pgr_text("ACME");
  own.version = pgr_text("0.1.0");
  own.vendor = pgr_text("ACME");
  own.options = options;
  own.option_count = sizeof options / sizeof *options;
  own.option_stride = sizeof *options;
  return pgr_fill(out, &own, error);
}

static pgr_status plugin_device_count(pgr_plugin *self, uint32_t *out, pgr_error *error) {
  (void)self;
  if (!out) return pgr_null(error, "device_count: out_count");
  *out = 1; /* FILL: the number of devices; 0 if hardware or driver is missing */
  return PGR_STATUS_OK;
}

static pgr_status plugin_device_open(pgr_plugin *self, uint32_t index, const pgr_option *options,
                                     uint32_t option_count, uint32_t option_stride,
                                     pgr_device **out, pgr_error *error) {
  pgr_device *device;
  char cc[sizeof device->cc] = PGR_CC_DEFAULT;
  (void)self;
  if (!out) return pgr_null(error, "device_open: out");
  if (index != 0)
    return pgr_fail_with(error, PGR_STATUS_NOT_FOUND, "no device %; there is 0", NULL, index, 0, 0);
  PGR_TRY(pgr_only_option(options, option_count, option_stride, "cc", cc, sizeof cc, error));
  if (!(device = malloc(sizeof *device))) return pgr_no_memory(error);
  device->used_bytes = 0;
  strcpy(device->cc, cc);
  *out = device;
  return PGR_STATUS_OK;
}

static void plugin_device_close(pgr_plugin *self, pgr_device *device) {
  (void)self;
  free(device);
}

static pgr_status plugin_query_interface(pgr_plugin *self, const pgr_string *name, uint32_t minor,
                                         const void **out, pgr_error *error) {
  const void *table = NULL;
  (void)self, (void)minor;
  if (!name || !out) return pgr_null(error, "query_interface: name or out_table");
  if (pgr_text_is(name, "pgr.device")) table = &device_table;
  if (pgr_text_is(name, "pgr.allocator")) table = &allocator_table;
  if (pgr_text_is(name, "pgr.compiler")) table = &compiler_table;
  if (pgr_text_is(name, "pgr.runner")) table = &runner_table;
  /* FILL: pgr.queue, pgr.graph and pgr.profile, if you support them (docs/write-a-plugin.md) */
  if (!table) return pgr_fail_text(error, PGR_STATUS_UNSUPPORTED, "acme has no \"$\"", name);
  return *out = table, PGR_STATUS_OK;
}

static const pgr_plugin_api plugin_table = {
    PGR_TABLE(pgr_plugin_api, PLUGIN_API),
    &plugin, plugin_info, plugin_device_count, plugin_device_open, plugin_device_close,
    plugin_query_interface,
    NULL, /* FILL: shutdown, called after the last device is closed */
};

PGR_EXPORT pgr_status PGR_PLUGIN_ENTRY(pgr_hello *hello, const pgr_plugin_api **out_api,
                                       pgr_error *error) {
  PGR_TRY(pgr_answer(hello, out_api, PGR_SDK_LOWEST_MINOR, error));
  PGR_TRY(pgr_no_options(hello, error)); /* FILL: plugin-wide options */
  plugin.host = hello->host;
  return *out_api = &plugin_table, PGR_STATUS_OK;
}
