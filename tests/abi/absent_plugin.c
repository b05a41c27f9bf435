/* A plugin in C89, built with the frozen headers, whose hardware is always missing: it loads,
   reports that and offers no device. Proves that a C author needs only the headers. */
#include <string.h>

#include "plugrad/plugin_api/plugin.h"

static pgr_string text(const char* chars) {
  pgr_string made;
  made.data = chars;
  made.size = strlen(chars);
  return made;
}

static pgr_status fail(pgr_error* error, pgr_status status, const char* message) {
  if (error && PGR_HAS_FIELD(pgr_error, error, code)) {
    uint64_t size = strlen(message);
    if (error->message_capacity == 0) size = 0;
    if (size > 0 && size >= error->message_capacity) size = error->message_capacity - 1;
    if (error->message_capacity > 0) {
      memcpy(error->message, message, (size_t)size);
      error->message[size] = 0;
    }
    error->message_size = size;
    error->code = status;
  }
  return status;
}

static pgr_status info(pgr_plugin* plugin, pgr_plugin_info* out, pgr_error* error) {
  pgr_plugin_info own;
  size_t size = out->struct_size < sizeof own ? out->struct_size : sizeof own;
  (void)plugin;
  (void)error;
  PGR_INIT(own, PLUGIN_INFO);
  own.name = text("absent");
  own.device_name = text("ABSENT");
  own.version = text("1");
  own.vendor = text("nobody");
  if (size > sizeof(pgr_struct_header))
    memcpy((char*)out + sizeof(pgr_struct_header), (char*)&own + sizeof(pgr_struct_header),
           size - sizeof(pgr_struct_header));
  return PGR_STATUS_OK;
}

static pgr_status device_count(pgr_plugin* plugin, uint32_t* out_count, pgr_error* error) {
  (void)plugin;
  *out_count = 0;
  fail(error, PGR_STATUS_OK, "no /dev/absent0");
  return PGR_STATUS_OK;
}

static pgr_status device_open(pgr_plugin* plugin, uint32_t index, const pgr_option* options,
                              uint32_t option_count, uint32_t option_stride, pgr_device** out,
                              pgr_error* error) {
  (void)plugin, (void)index, (void)options, (void)option_count, (void)option_stride, (void)out;
  return fail(error, PGR_STATUS_NOT_FOUND, "there are no ABSENT devices");
}

static void device_close(pgr_plugin* plugin, pgr_device* device) {
  (void)plugin, (void)device;
}

static pgr_status query_interface(pgr_plugin* plugin, const pgr_string* name, uint32_t minor,
                                  const void** out_table, pgr_error* error) {
  (void)plugin, (void)name, (void)minor, (void)out_table;
  return fail(error, PGR_STATUS_UNSUPPORTED, "absent offers no interface");
}

PGR_EXPORT pgr_status PGR_PLUGIN_ENTRY(pgr_hello* hello, const pgr_plugin_api** out_api,
                                       pgr_error* error) {
  static pgr_plugin_api api;
  (void)error;
  PGR_HELLO_ANSWER(hello, 0);
  PGR_INIT(api, PLUGIN_API);
  api.info = info;
  api.device_count = device_count;
  api.device_open = device_open;
  api.device_close = device_close;
  api.query_interface = query_interface;
  *out_api = &api;
  return PGR_STATUS_OK;
}
