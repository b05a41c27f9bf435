/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for plugins written in C: errors, strings, structs of any size, options and blobs. C89;
   nothing to link; depends on plugin_api alone. */
#ifndef PLUGRAD_SDK_C_PLUGIN_H
#define PLUGRAD_SDK_C_PLUGIN_H

#include <stdlib.h>
#include <string.h>

#include "plugrad/plugin_api/plugin.h"

/* A plugin calls only some of these functions; the attribute silences warnings about the others. */
#define PGR_HELPER static __attribute__((unused))

/* Returns from the enclosing function if the call fails. */
#define PGR_TRY(call)                                     \
  do {                                                    \
    const pgr_status pgr_status_ = (call);                \
    if (pgr_status_ != PGR_STATUS_OK) return pgr_status_; \
  } while (0)

/* The first fields of a statically initialised table:
   `static const pgr_device_api table = {PGR_TABLE(pgr_device_api, DEVICE_API), info, …};` */
#define PGR_TABLE(type, NAME) sizeof(type), PGR_STRUCT_##NAME, NULL

/* Initialises a pgr_string from a string literal. */
#define PGR_TEXT(literal) {literal, sizeof(literal) - 1}

/* A NUL-terminated string as a pgr_string; the bytes must outlive the result. */
PGR_HELPER pgr_string pgr_text(const char* text) {
  pgr_string made;
  made.data = text;
  made.size = text ? strlen(text) : 0;
  return made;
}

PGR_HELPER int pgr_text_is(const pgr_string* text, const char* word) {
  const size_t size = strlen(word);
  if (!text || text->size != size) return 0;
  return size == 0 || (text->data && memcmp(text->data, word, size) == 0);
}

/* Copies a string and appends a NUL; returns 0 if the string does not fit or contains a NUL. */
PGR_HELPER int pgr_copy_text(char* out, size_t capacity, const pgr_string* text) {
  if (!text || !text->data || text->size >= capacity || memchr(text->data, 0, (size_t)text->size))
    return 0;
  memcpy(out, text->data, (size_t)text->size);
  out[text->size] = 0;
  return 1;
}

/* A message under construction in the caller's buffer; truncated at its capacity. */
typedef struct pgr_message_writer {
  char* out;
  uint64_t capacity, size;
} pgr_message_writer;

PGR_HELPER void pgr_write(pgr_message_writer* writer, const char* text, uint64_t size) {
  uint64_t i;
  for (i = 0; text && i < size && writer->size + 1 < writer->capacity; ++i)
    writer->out[writer->size++] = text[i];
}

PGR_HELPER void pgr_write_number(pgr_message_writer* writer, uint64_t number) {
  char digits[20];
  uint64_t at = sizeof digits;
  do {
    digits[--at] = (char)('0' + number % 10);
    number /= 10;
  } while (number);
  pgr_write(writer, digits + at, sizeof digits - at);
}

/* Reports an error. Each '%' in `format` is replaced by the next of the three numbers, each '$' by
   `text`. Returns the status: `return pgr_fail_with(error, …);` */
PGR_HELPER pgr_status pgr_fail_with(pgr_error* error, pgr_status status, const char* format,
                                    const pgr_string* text, uint64_t first, uint64_t second,
                                    uint64_t third) {
  uint64_t numbers[3];
  int used = 0;
  pgr_message_writer writer;
  numbers[0] = first, numbers[1] = second, numbers[2] = third;
  writer.out = NULL;
  writer.capacity = writer.size = 0;
  if (!error) return status;
  if (PGR_HAS_FIELD(pgr_error, error, message_capacity) && error->message) {
    writer.out = error->message;
    writer.capacity = error->message_capacity;
  }
  for (; *format; ++format) {
    if (*format == '%' && used < 3)
      pgr_write_number(&writer, numbers[used++]);
    else if (*format == '$' && text)
      pgr_write(&writer, text->data, text->size);
    else
      pgr_write(&writer, format, 1);
  }
  if (writer.capacity > 0) writer.out[writer.size] = 0;
  if (PGR_HAS_FIELD(pgr_error, error, message_size)) error->message_size = writer.size;
  if (PGR_HAS_FIELD(pgr_error, error, code)) error->code = status;
  if (PGR_HAS_FIELD(pgr_error, error, native_code)) error->native_code = 0;
  return status;
}

PGR_HELPER pgr_status pgr_fail(pgr_error* error, pgr_status status, const char* message) {
  return pgr_fail_with(error, status, message, NULL, 0, 0, 0);
}

PGR_HELPER pgr_status pgr_no_memory(pgr_error* error) {
  return pgr_fail(error, PGR_STATUS_OUT_OF_HOST_MEMORY, "host memory ran out");
}

PGR_HELPER pgr_status pgr_fail_text(pgr_error* error, pgr_status status, const char* format,
                                    const pgr_string* text) {
  return pgr_fail_with(error, status, format, text, 0, 0, 0);
}

/* `return pgr_null(error, "copy_in: dst");` */
PGR_HELPER pgr_status pgr_null(pgr_error* error, const char* what) {
  const pgr_string text = pgr_text(what);
  return pgr_fail_text(error, PGR_STATUS_INVALID_ARGUMENT, "$ is NULL", &text);
}

/* Walks the chain of extension structs: fails on a required one, ignores the others. */
PGR_HELPER pgr_status pgr_check_chain(const void* argument, pgr_error* error) {
  const pgr_struct_header* at = (const pgr_struct_header*)argument;
  int links;
  for (links = 0; at->struct_size >= sizeof *at && at->next; ++links) {
    at = (const pgr_struct_header*)at->next;
    if (at->struct_id & PGR_STRUCT_MUST_UNDERSTAND)
      return pgr_fail_with(error, PGR_STATUS_INCOMPATIBLE,
                           "extension struct % must be understood, and is unknown", NULL,
                           at->struct_id & ~PGR_STRUCT_MUST_UNDERSTAND, 0, 0);
    if (links > 64) return pgr_fail(error, PGR_STATUS_INVALID_ARGUMENT, "a chain without an end");
  }
  return PGR_STATUS_OK;
}

PGR_HELPER pgr_status pgr_transfer(void* to, const void* from, const void* callers,
                                   pgr_error* error) {
  const uint32_t to_size = ((const pgr_struct_header*)to)->struct_size;
  const uint32_t from_size = ((const pgr_struct_header*)from)->struct_size;
  const uint32_t size = to_size < from_size ? to_size : from_size;
  const pgr_status status = pgr_check_chain(callers, error);
  if (status != PGR_STATUS_OK) return status;
  if (size > sizeof(pgr_struct_header))
    memcpy((char*)to + sizeof(pgr_struct_header), (const char*)from + sizeof(pgr_struct_header),
           size - sizeof(pgr_struct_header));
  return PGR_STATUS_OK;
}

/* Copies `own`, initialised by PGR_INIT, into the caller's struct: the fields that both sides know.
   The caller's size, id and chain are kept. */
PGR_HELPER pgr_status pgr_fill(void* out, const void* own, pgr_error* error) {
  return out ? pgr_transfer(out, own, out, error) : pgr_null(error, "the struct to fill");
}

/* Copies a caller's struct into `own`, initialised by PGR_INIT; fields that the caller lacks stay
   0. */
PGR_HELPER pgr_status pgr_read(void* own, const void* in, pgr_error* error) {
  return in ? pgr_transfer(own, in, in, error) : pgr_null(error, "a struct argument");
}

/* Reads option `index` of an array, using the caller's stride. */
PGR_HELPER pgr_status pgr_read_option(pgr_option* own, const pgr_option* options, uint32_t index,
                                      uint32_t stride, pgr_error* error) {
  PGR_INIT(*own, OPTION);
  if (!options) return pgr_null(error, "the array of options");
  return pgr_read(own, (const char*)options + (size_t)index * stride, error);
}

/* NOT_FOUND for an unknown option; the message lists the known ones, e.g. "cc, flags". */
PGR_HELPER pgr_status pgr_unknown_option(pgr_error* error, const pgr_string* key,
                                         const char* known) {
  char format[256] = "there is no option \"$\"; there is ";
  strncat(format, known, sizeof format - strlen(format) - 1);
  return pgr_fail_text(error, PGR_STATUS_NOT_FOUND, format, key);
}

/* Rejects plugin-wide options, for plugins that have none. */
PGR_HELPER pgr_status pgr_no_options(const pgr_hello* hello, pgr_error* error) {
  pgr_option option;
  if (hello->option_count == 0) return PGR_STATUS_OK;
  PGR_TRY(pgr_read_option(&option, hello->options, 0, hello->option_stride, error));
  return pgr_unknown_option(error, &option.key, "none for the plugin as a whole");
}

/* Accepts a single option and copies its value into `out` if it is present. */
PGR_HELPER pgr_status pgr_only_option(const pgr_option* options, uint32_t count, uint32_t stride,
                                      const char* key, char* out, size_t capacity,
                                      pgr_error* error) {
  uint32_t i;
  for (i = 0; i < count; ++i) {
    pgr_option option;
    PGR_TRY(pgr_read_option(&option, options, i, stride, error));
    if (!pgr_text_is(&option.key, key)) return pgr_unknown_option(error, &option.key, key);
    if (!pgr_copy_text(out, capacity, &option.value))
      return pgr_fail_text(error, PGR_STATUS_INVALID_ARGUMENT, "option $: empty or too long",
                           &option.key);
  }
  return PGR_STATUS_OK;
}

/* The lowest host minor version that these helpers need. A plugin that needs a newer host passes
   its own. */
#define PGR_SDK_LOWEST_MINOR 0u

/* Answers the hello and checks that the host is new enough. An entry function calls this first. */
PGR_HELPER pgr_status pgr_answer(pgr_hello* hello, const pgr_plugin_api** out_api,
                                 uint32_t lowest_host_minor, pgr_error* error) {
  if (!hello || !out_api || !hello->host) return pgr_null(error, "hello, its host or out_api");
  if (!PGR_HAS_FIELD(pgr_hello, hello, canary_hello_offset))
    return pgr_fail(error, PGR_STATUS_INCOMPATIBLE, "the hello is shorter than that of 1.0");
  PGR_TRY(pgr_check_chain(hello, error));
  PGR_HELLO_ANSWER(hello, lowest_host_minor);
  if (hello->host->api_minor < lowest_host_minor)
    return pgr_fail_with(error, PGR_STATUS_NEED_NEWER_HOST, "the host has API minor %, % is needed",
                         NULL, hello->host->api_minor, lowest_host_minor, 0);
  return PGR_STATUS_OK;
}

/* The total number of groups of a launch, for a device with one work-item a group and at most
   `most` groups an axis. */
PGR_HELPER pgr_status pgr_count_groups(const uint64_t* group_count, const uint32_t* local_size,
                                       uint64_t most, uint64_t* out, pgr_error* error) {
  uint64_t groups = 1;
  int axis;
  for (axis = 0; axis < 3; ++axis) {
    const uint64_t count = group_count[axis];
    if (local_size[axis] != 1)
      return pgr_fail_with(error, PGR_STATUS_LIMIT_EXCEEDED, "local_size of axis % is %, not 1",
                           NULL, (uint64_t)axis, local_size[axis], 0);
    if (count > most || (count > 0 && groups > ((uint64_t)1 << 62) / count))
      return pgr_fail_with(error, PGR_STATUS_LIMIT_EXCEEDED, "% groups along axis % are too many",
                           NULL, count, (uint64_t)axis, 0);
    groups *= count;
  }
  *out = groups;
  return PGR_STATUS_OK;
}

PGR_HELPER void pgr_release_blob(pgr_blob* blob) {
  if (!blob) return;
  free(blob->owner);
  blob->owner = NULL;
  blob->data = NULL;
  blob->size = 0;
}

/* Transfers `bytes`, allocated by malloc, to the caller, who releases them. Frees them on failure
   or if `out` is NULL. */
PGR_HELPER pgr_status pgr_give_blob(pgr_blob* out, void* bytes, uint64_t size, pgr_error* error) {
  pgr_blob own;
  pgr_status status = PGR_STATUS_OK;
  PGR_INIT(own, BLOB);
  own.data = bytes;
  own.size = size;
  own.release = pgr_release_blob;
  own.owner = bytes;
  /* A caller whose struct has no `owner` field could never release the blob. */
  if (out && !PGR_HAS_FIELD(pgr_blob, out, owner))
    status = pgr_fail(error, PGR_STATUS_INVALID_ARGUMENT, "the blob to fill is too short");
  else if (out)
    status = pgr_fill(out, &own, error);
  if (!out || status != PGR_STATUS_OK) free(bytes);
  return status;
}

/* Copies the NUL-terminated `text` into a blob. */
PGR_HELPER pgr_status pgr_give_text(pgr_blob* out, const char* text, pgr_error* error) {
  const size_t size = strlen(text);
  char* copy = (char*)malloc(size + 1);
  if (!copy) return pgr_no_memory(error);
  memcpy(copy, text, size);
  return pgr_give_blob(out, copy, size, error);
}

/* Checks that [offset, offset + size) lies in a buffer of `total` bytes. */
PGR_HELPER pgr_status pgr_check_range(uint64_t total, uint64_t offset, uint64_t size,
                                      const char* what, pgr_error* error) {
  const pgr_string name = pgr_text(what);
  if (offset <= total && size <= total - offset) return PGR_STATUS_OK;
  return pgr_fail_with(error, PGR_STATUS_INVALID_ARGUMENT, "$: % bytes at % of a buffer of %",
                       &name, size, offset, total);
}

/* FNV-1a: detects damage, not tampering. */
PGR_HELPER uint64_t pgr_hash(const void* bytes, uint64_t size) {
  const unsigned char* at = (const unsigned char*)bytes;
  uint64_t hash = ((uint64_t)0xcbf29ce4u << 32) | 0x84222325u;
  while (size--) hash = (hash ^ *at++) * (((uint64_t)1 << 40) | 0x1b3u);
  return hash;
}

/* Header in front of a compiler's output in a binary; identifies damaged and foreign binaries. */
typedef struct pgr_binary_header {
  uint64_t magic, bytes, hash, identity;
} pgr_binary_header;

/* Writes the header in front of `bytes` bytes of output. `magic` is any text that the plugin
   chooses. */
PGR_HELPER void pgr_seal_binary(char* binary, uint64_t bytes, const char* magic,
                                const char* identity) {
  pgr_binary_header header;
  header.magic = pgr_hash(magic, strlen(magic));
  header.bytes = bytes;
  header.hash = pgr_hash(binary + sizeof header, bytes);
  header.identity = pgr_hash(identity, strlen(identity));
  memcpy(binary, &header, sizeof header);
}

/* The compiler's output in a sealed binary; NULL if the binary is foreign or damaged. */
PGR_HELPER const char* pgr_open_binary(pgr_binary_header* out, const void* binary, uint64_t size,
                                       const char* magic) {
  const char* output = (const char*)binary + sizeof *out;
  if (!binary || size < sizeof *out) return NULL;
  memcpy(out, binary, sizeof *out);
  if (out->magic != pgr_hash(magic, strlen(magic))) return NULL;
  if (out->bytes != size - sizeof *out || out->hash != pgr_hash(output, out->bytes)) return NULL;
  return output;
}

#endif
