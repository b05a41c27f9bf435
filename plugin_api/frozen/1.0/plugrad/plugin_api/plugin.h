/* The way in: hello and negotiation, the host's table, the plugin's table, options, devices.
   Marks on each function: [any] any thread at any time; [serial] the caller serialises per handle;
   [init] only between entry and shutdown, from one thread. */
#ifndef PLUGRAD_PLUGIN_API_PLUGIN_H
#define PLUGRAD_PLUGIN_API_PLUGIN_H

#include "plugrad/plugin_api/status.h"

#define PGR_API_MAJOR 1u
#define PGR_API_MINOR 0u /* of this header set; minors only add */

/* Opaque to the other side. */
typedef struct pgr_plugin pgr_plugin; /* made by the plugin in entry */
typedef struct pgr_device pgr_device; /* made by device_open */
typedef struct pgr_host pgr_host;     /* the host's own, handed back in every host call */

/* A key and value; the receiver copies. */
typedef struct pgr_option {
  uint32_t struct_size, struct_id;
  const void *next;
  pgr_string key;
  pgr_string value;
} pgr_option;

/* One option that a plugin accepts, for `plugrad devices` and for checking. */
typedef struct pgr_option_schema {
  uint32_t struct_size, struct_id;
  const void *next;
  pgr_string key;
  pgr_string type; /* "int", "bool", "string" or "a|b|c" */
  pgr_string default_value;
  pgr_string help; /* one sentence */
} pgr_option_schema;

#define PGR_LOG_ERROR 0u
#define PGR_LOG_WARNING 1u
#define PGR_LOG_INFO 2u
#define PGR_LOG_DEBUG 3u

/* One span of a parallel_for: [begin, end). `worker` is below what thread_count gave. */
typedef void (*pgr_span_fn)(void *context, uint64_t begin, uint64_t end, uint32_t worker);

/* All that a plugin may use of its host. Valid from entry until the process ends. */
typedef struct pgr_host_api {
  uint32_t struct_size, struct_id;
  const void *next;
  uint32_t api_major, api_minor; /* of the host */
  pgr_host *host;                /* first argument of every function below */
  /* [any] Writes one message to the host's log. */
  void (*log)(pgr_host *host, uint32_t level, const pgr_string *message);
  /* [any] Host memory; alignment is a power of two. NULL when there is none. free accepts NULL. */
  void *(*alloc)(pgr_host *host, uint64_t size_bytes, uint64_t align_bytes);
  void (*free)(pgr_host *host, void *pointer);
  /* [any] Threads that parallel_for may use at once, the caller included; at least 1. */
  uint32_t (*thread_count)(pgr_host *host);
  /* [any] Cuts [0, count) into consecutive spans of at least min_span (0 reads as 1) and runs them
     on the process's one pool and the calling thread; returns when all have run. May be nested: an
     inner call runs on its caller's thread. fn must not throw. */
  void (*parallel_for)(pgr_host *host, uint64_t count, uint64_t min_span, pgr_span_fn fn, void *context);
  /* [any] The host's disk cache; keys are any bytes. get answers NOT_FOUND, or fills `out` with
     bytes checked for damage. Both may be switched off, and then answer NOT_FOUND and OK. */
  pgr_status (*cache_get)(pgr_host *host, const pgr_string *key, pgr_blob *out, pgr_error *error);
  pgr_status (*cache_put)(pgr_host *host, const pgr_string *key, const void *data, uint64_t size,
                          pgr_error *error);
  /* [any] Opens a library that stands beside the plugin or in the host's library directory, such as
     "plugrad_clang" or "plugrad_render", and gives the interface that it exports under
     `interface_name` ("pgr.compiler", "pgr.renderer") at `interface_minor` or less: a pointer to
     its table, whose functions take a NULL device. The library stays open. */
  pgr_status (*open_component)(pgr_host *host, const pgr_string *library, const pgr_string *interface_name,
                               uint32_t interface_minor, const void **out_table, pgr_error *error);
} pgr_host_api;

/* Who the plugin is. Strings live as long as the plugin. */
typedef struct pgr_plugin_info {
  uint32_t struct_size, struct_id;
  const void *next;
  pgr_string name;        /* "cpu_clang": lower case, digits, underscore */
  pgr_string device_name; /* "CPU": what a user types; upper case, digits, underscore */
  pgr_string version;     /* the plugin's own, for people */
  pgr_string vendor;
  const pgr_option_schema *options;
  uint32_t option_count, option_stride;
} pgr_plugin_info;

/* The plugin's table. Mandatory: info, device_count, device_open, device_close, query_interface. */
typedef struct pgr_plugin_api {
  uint32_t struct_size, struct_id;
  const void *next;
  pgr_plugin *plugin; /* first argument of every function below */
  /* [any] Fills `out`. */
  pgr_status (*info)(pgr_plugin *plugin, pgr_plugin_info *out, pgr_error *error);
  /* [init] Devices present, sorted by stable identity. 0 where hardware or driver is absent; then
     the error's message may say what is missing although the status is OK. Creates no context. */
  pgr_status (*device_count)(pgr_plugin *plugin, uint32_t *out_count, pgr_error *error);
  /* [any] Opens device `index`; each call makes a handle of its own. */
  pgr_status (*device_open)(pgr_plugin *plugin, uint32_t index, const pgr_option *options,
                            uint32_t option_count, uint32_t option_stride, pgr_device **out,
                            pgr_error *error);
  /* [serial] Closes; everything made from the device must be gone. Accepts NULL, never fails. */
  void (*device_close)(pgr_plugin *plugin, pgr_device *device);
  /* [any] A table by name: "pgr.device", "pgr.allocator", "pgr.runner" (mandatory), "pgr.renderer",
     "pgr.compiler", "pgr.queue", "pgr.graph", "pgr.profile" and "com.vendor.x"; else UNSUPPORTED.
     The table lives as long as the plugin; it may be longer than `minor` knows: see struct_size. */
  pgr_status (*query_interface)(pgr_plugin *plugin, const pgr_string *name, uint32_t minor,
                                const void **out_table, pgr_error *error);
  /* [init] Explicit end, after every device is closed. Not called at process exit. May be NULL. */
  void (*shutdown)(pgr_plugin *plugin);
} pgr_plugin_api;

/* What both sides tell each other in entry. The host fills its half, the plugin answers below. */
typedef struct pgr_hello {
  uint32_t struct_size, struct_id;
  const void *next;
  const pgr_host_api *host;
  pgr_string plugin_path;       /* absolute path of the library being opened */
  const pgr_option *options;    /* plugin-wide options */
  uint32_t option_count, option_stride;
  /* The plugin's answer: stamped by PGR_HELLO_ANSWER, never typed. */
  uint32_t plugin_minor;        /* header minor the plugin was built with */
  uint32_t need_host_minor;     /* lowest host minor it can work with */
  uint32_t canary_error_size;   /* sizeof(pgr_error) as the plugin sees it */
  uint32_t canary_hello_offset; /* offsetof(pgr_hello, plugin_minor) as the plugin sees it */
} pgr_hello;
#define PGR_HELLO_ANSWER(hello_pointer, lowest_host_minor)                                        \
  do {                                                                                            \
    (hello_pointer)->plugin_minor = PGR_API_MINOR;                                                \
    (hello_pointer)->need_host_minor = (lowest_host_minor);                                       \
    (hello_pointer)->canary_error_size = (uint32_t)sizeof(pgr_error);                             \
    (hello_pointer)->canary_hello_offset = (uint32_t)offsetof(pgr_hello, plugin_minor);           \
  } while (0)

/* The one exported symbol; the major is in its name. Called once a process. On
   OK *out_api points at the plugin's table, which lives until the process ends. NEED_NEWER_HOST
   where host->api_minor is below need_host_minor. */
typedef pgr_status (*pgr_plugin_entry_fn)(pgr_hello *hello, const pgr_plugin_api **out_api,
                                          pgr_error *error);
#define PGR_PLUGIN_ENTRY pgr_plugin_entry_v1
#define PGR_PLUGIN_ENTRY_NAME "pgr_plugin_entry_v1"

/* [any] A component (renderer, compiler) exports it; one call at a time, tables stay valid. */
typedef pgr_status (*pgr_component_entry_fn)(const pgr_host_api *host, const pgr_string *interface_name,
                                             uint32_t interface_minor, const void **out_table,
                                             pgr_error *error);
#define PGR_COMPONENT_ENTRY_NAME "pgr_component_entry_v1"

/* The manifest inside the library: an ELF note of this name and type, which a host reads without
   opening the library. Stands once, in one source file, and holds the same JSON as the file beside
   the library: PGR_PLUGIN_NOTE("{...}"). The package's CMake function plugrad_add_plugin writes it
   from manifest.json. */
#define PGR_NOTE_NAME "plugrad"
#define PGR_NOTE_TYPE 0x4d475250u /* "PRGM" */
#if defined(__GNUC__)
#define PGR_PLUGIN_NOTE(json)                                                                  \
  static const struct {                                                                        \
    uint32_t name_bytes, text_bytes, type;                                                     \
    char name[8];                                                                              \
    char text[sizeof(json)];                                                                   \
  } pgr_plugin_note __attribute__((section(".note.plugrad"), used, aligned(4))) = {            \
      sizeof(PGR_NOTE_NAME), sizeof(json), PGR_NOTE_TYPE, PGR_NOTE_NAME, json}
#endif

#if defined(__GNUC__)
#define PGR_EXPORT __attribute__((visibility("default")))
#else
#define PGR_EXPORT
#endif

#endif
