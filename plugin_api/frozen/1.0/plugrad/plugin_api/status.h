/* Codes, strings, the first fields of every struct, and how a message comes back. */
#ifndef PLUGRAD_PLUGIN_API_STATUS_H
#define PLUGRAD_PLUGIN_API_STATUS_H

#include <stddef.h>
#include <stdint.h>

/* Functions have the calling convention of the platform's C ABI; 64-bit little-endian only. */

/* Every call answers with one of these. Append-only; a reader takes an unknown code as INTERNAL.
   X(NAME, number, meaning) */
/* clang-format off */
#define PGR_STATUSES(X) \
  X(OK,                0,  "success") \
  X(INTERNAL,          1,  "a bug in the plugin, or a code the reader does not know") \
  X(INVALID_ARGUMENT,  2,  "an argument is outside what the function documents") \
  X(UNSUPPORTED,       3,  "the plugin does not offer this") \
  X(OUT_OF_MEMORY,     4,  "device memory ran out") \
  X(OUT_OF_HOST_MEMORY, 5, "host memory ran out") \
  X(DEVICE_LOST,       6,  "the device is gone; every handle of it can only be destroyed") \
  X(NOT_FOUND,         7,  "no such device, kernel, option or interface") \
  X(COMPILE_FAILED,    8,  "the compiler refused the source; the log says why") \
  X(BAD_BINARY,        9,  "not a binary of this compiler, or damaged") \
  X(INCOMPATIBLE,      10, "versions or structures do not fit; the message says what would") \
  X(NEED_NEWER_HOST,   11, "the plugin needs a newer host; not an error of either") \
  X(BUSY,              12, "in use; try again later") \
  X(TIMED_OUT,         13, "the wait ended before the event") \
  X(IO_ERROR,          14, "a file or another system object could not be read or written") \
  X(CANCELLED,         15, "stopped on request") \
  X(LAUNCH_FAILED,     16, "the kernel could not be started, or did not finish") \
  X(PERMISSION_DENIED, 17, "the system refused access") \
  X(LIMIT_EXCEEDED,    18, "larger than a documented limit of the device") \
  X(NOT_READY,         19, "work is still under way")
/* clang-format on */
#define PGR_STATUS_ENUM_(NAME, number, meaning) PGR_STATUS_##NAME = number,
enum pgr_status_number { PGR_STATUSES(PGR_STATUS_ENUM_) PGR_STATUS_COUNT = 20 };
#undef PGR_STATUS_ENUM_
typedef int32_t pgr_status;

/* UTF-8, `size` bytes, not terminated. Lives for the call; the receiver copies. Fixed for ever. */
typedef struct pgr_string {
  const char *data;
  uint64_t size;
} pgr_string;

/* How every other struct begins. Readers read at most struct_size bytes; who fills a caller's
   struct writes at most min(caller's size, own size). */
typedef struct pgr_struct_header {
  uint32_t struct_size; /* sizeof the struct as compiled */
  uint32_t struct_id;   /* PGR_STRUCT_* */
  const void *next;     /* extension struct, itself beginning with this header, or NULL */
} pgr_struct_header;

/* Ids of all structs. X(NAME, type, number). Append-only. */
/* clang-format off */
#define PGR_STRUCTS(X) \
  X(ERROR,              pgr_error,              1)  \
  X(HOST_API,           pgr_host_api,           2)  \
  X(HELLO,              pgr_hello,              3)  \
  X(PLUGIN_API,         pgr_plugin_api,         4)  \
  X(PLUGIN_INFO,        pgr_plugin_info,        5)  \
  X(OPTION,             pgr_option,             6)  \
  X(OPTION_SCHEMA,      pgr_option_schema,      7)  \
  X(DEVICE_API,         pgr_device_api,         8)  \
  X(DEVICE_INFO,        pgr_device_info,        9)  \
  X(DEVICE_CAPS,        pgr_device_caps,        10) \
  X(TENSOR_CORE,        pgr_tensor_core,        11) \
  X(MEMORY_STATS,       pgr_memory_stats,       12) \
  X(ALLOCATOR_API,      pgr_allocator_api,      13) \
  X(ALLOC_DESC,         pgr_alloc_desc,         14) \
  X(RENDERER_API,       pgr_renderer_api,       15) \
  X(RENDER_DESC,        pgr_render_desc,        16) \
  X(COMPILER_API,       pgr_compiler_api,       17) \
  X(COMPILE_DESC,       pgr_compile_desc,       18) \
  X(RUNNER_API,         pgr_runner_api,         19) \
  X(LAUNCH_DESC,        pgr_launch_desc,        20) \
  X(KERNEL_LIMITS,      pgr_kernel_limits,      21) \
  X(QUEUE_API,          pgr_queue_api,          22) \
  X(GRAPH_API,          pgr_graph_api,          23) \
  X(GRAPH_NODE,         pgr_graph_node,         24) \
  X(BLOB,               pgr_blob,               25) \
  X(PROFILE_API,        pgr_profile_api,        26) \
  X(COUNTER,            pgr_counter,            27)
/* clang-format on */
#define PGR_STRUCT_ENUM_(NAME, type, number) PGR_STRUCT_##NAME = number,
enum pgr_struct_number { PGR_STRUCTS(PGR_STRUCT_ENUM_) PGR_STRUCT_RESERVED_ = 0x7fffffff };
#undef PGR_STRUCT_ENUM_

/* Set in the struct_id of a chained struct: who does not know the struct answers INCOMPATIBLE.
   Without it an unknown struct in a chain is skipped. */
#define PGR_STRUCT_MUST_UNDERSTAND 0x40000000u

/* Stamps a struct's first fields; all other bytes become 0. */
#define PGR_INIT(variable, NAME)                                         \
  do {                                                                   \
    unsigned char *pgr_bytes_ = (unsigned char *)&(variable);            \
    size_t pgr_i_;                                                       \
    for (pgr_i_ = 0; pgr_i_ < sizeof(variable); ++pgr_i_) pgr_bytes_[pgr_i_] = 0; \
    (variable).struct_size = (uint32_t)sizeof(variable);                 \
    (variable).struct_id = PGR_STRUCT_##NAME;                            \
  } while (0)

/* Whether the reader of `pointer` may touch `field`: it lies within the size its maker stamped. */
#define PGR_HAS_FIELD(type, pointer, field) \
  ((pointer)->struct_size >= offsetof(type, field) + sizeof((pointer)->field))

/* Where a failed call writes its reason. The caller owns both the struct and the buffer; the callee
   writes at most message_capacity bytes, ends them with 0 when there is room, and sets message_size
   to the length without the 0. May be NULL in any call. */
typedef struct pgr_error {
  uint32_t struct_size, struct_id;
  const void *next;
  char *message;
  uint64_t message_capacity;
  uint64_t message_size;
  int32_t code;       /* the same code as returned */
  int32_t native_code; /* the vendor API's own code, or 0 */
} pgr_error;

/* Bytes owned by the callee until `release` is called with the same blob; release may be NULL for
   static bytes. Used wherever a call returns something of unknown size. */
typedef struct pgr_blob {
  uint32_t struct_size, struct_id;
  const void *next;
  const void *data;
  uint64_t size;
  void (*release)(struct pgr_blob *blob); /* accepts a blob that is already released; any thread */
  void *owner;                            /* the callee's own */
} pgr_blob;

#endif
