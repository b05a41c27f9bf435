#include "plugrad/sdk/guard.h"

#include <memory>
#include <new>

namespace plugrad::sdk {
namespace {

void release_string(pgr_blob* blob) {
  if (!blob) return;
  delete static_cast<std::string*>(blob->owner);
  blob->owner = nullptr;
  blob->data = nullptr;
  blob->size = 0;
}

void write_message(pgr_error* error, std::string_view message) {
  if (!PGR_HAS_FIELD(pgr_error, error, message_capacity)) return;
  size_t size = 0;
  if (error->message && error->message_capacity > 0) {
    size = std::min<size_t>(message.size(), error->message_capacity - 1);
    std::memcpy(error->message, message.data(), size);
    error->message[size] = '\0';
  }
  if (PGR_HAS_FIELD(pgr_error, error, message_size)) error->message_size = size;
}

}  // namespace

void require(bool condition, pgr_status status, std::string_view message) {
  if (!condition) throw StatusError(status, std::string(message));
}

pgr_status report(pgr_error* error, pgr_status status, std::string_view message,
                  int32_t native_code) noexcept {
  if (!error) return status;
  write_message(error, message);
  if (PGR_HAS_FIELD(pgr_error, error, code)) error->code = status;
  if (PGR_HAS_FIELD(pgr_error, error, native_code)) error->native_code = native_code;
  return status;
}

pgr_status report_current_exception(pgr_error* error) noexcept {
  try {
    throw;
  } catch (const StatusError& e) {
    return report(error, e.status(), e.what(), e.native_code());
  } catch (const std::bad_alloc&) {
    return report(error, PGR_STATUS_OUT_OF_HOST_MEMORY, "host memory ran out");
  } catch (const std::exception& e) {
    return report(error, PGR_STATUS_INTERNAL, e.what());
  } catch (...) {
    return report(error, PGR_STATUS_INTERNAL, "an exception of unknown type");
  }
}

void check_chain(const void* next) {
  while (next) {
    const auto* header = static_cast<const pgr_struct_header*>(next);
    require(!(header->struct_id & PGR_STRUCT_MUST_UNDERSTAND), PGR_STATUS_INCOMPATIBLE,
            "extension struct " + std::to_string(header->struct_id & ~PGR_STRUCT_MUST_UNDERSTAND) +
                " must be understood, and is unknown");
    next = header->next;
  }
}

void give_blob(pgr_blob* out, std::string bytes) {
  if (!out) return;
  auto owner = std::make_unique<std::string>(std::move(bytes));
  pgr_blob blob{};
  blob.data = owner->data();
  blob.size = owner->size();
  blob.release = release_string;
  blob.owner = owner.get();
  // A caller whose struct has no `owner` field could never release the blob.
  require(PGR_HAS_FIELD(pgr_blob, out, owner), PGR_STATUS_INVALID_ARGUMENT,
          "the blob to fill is shorter than pgr_blob of plugin_api 1.0");
  fill(out, blob);
  static_cast<void>(owner.release());
}

}  // namespace plugrad::sdk
