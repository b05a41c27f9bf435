// Writes every call of a program to a file that `plugrad replay` repeats without the program:
// allocations, copies with their bytes, kernels with their kernel IR and AST, launches.
#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "base/hash.h"
#include "base/log.h"
#include "runtime/checks/layers.h"
#include "runtime/checks/record/live_recordings.h"
#include "runtime/checks/record/recorded_call.h"

namespace plugrad::runtime {
namespace {

using nlohmann::json;

// Contents kept in one file unless the key `mebibytes` says otherwise.
constexpr uint64_t kMostMebibytes = 4096;

class Record final : public Layer {
 public:
  Record(const DeviceTables& inner, const std::string& path, uint64_t most_bytes,
         const std::string& device_name)
      : Layer("record", device_name, inner),
        most_bytes_(most_bytes),
        file_(std::make_shared<RecordingWriter>(path, device_name)) {
    finish_at_exit(file_);
  }

  bool wants_every_launch() const override { return true; }
  void closing() override { file_->finish(); }

  pgr_status alloc(const pgr_alloc_desc* desc, pgr_buffer** out, pgr_error* error) override {
    const pgr_status status = Layer::alloc(desc, out, error);
    if (status != PGR_STATUS_OK) return status;
    file_->write({{"call", "alloc"},
                  {"buffer", add(*out, desc->size_bytes)},
                  {"bytes", desc->size_bytes},
                  {"flags", desc->flags}});
    return status;
  }
  void free(pgr_buffer* buffer) override {
    if (buffer) {
      file_->write({{"call", "free"}, {"buffer", number_of(buffer)}});
      const std::lock_guard lock(mutex_);
      buffers_.erase(buffer);
    }
    Layer::free(buffer);
  }
  pgr_status sub_buffer(pgr_buffer* parent, uint64_t offset, uint64_t size, pgr_buffer** out,
                        pgr_error* error) override {
    const pgr_status status = Layer::sub_buffer(parent, offset, size, out, error);
    if (status == PGR_STATUS_OK)
      file_->write({{"call", "part"},
                    {"buffer", add(*out, size)},
                    {"parent", number_of(parent)},
                    {"offset", offset},
                    {"bytes", size}});
    return status;
  }
  pgr_status copy_in(pgr_queue* queue, pgr_buffer* dst, uint64_t offset, const void* src,
                     uint64_t size, pgr_error* error) override {
    contents("copy_in", dst, offset, {static_cast<const std::byte*>(src), size});
    return Layer::copy_in(queue, dst, offset, src, size, error);
  }
  pgr_status copy_out(pgr_queue* queue, void* dst, pgr_buffer* src, uint64_t offset, uint64_t size,
                      pgr_error* error) override {
    const pgr_status status = Layer::copy_out(queue, dst, src, offset, size, error);
    if (status == PGR_STATUS_OK)
      contents("copy_out", src, offset, {static_cast<const std::byte*>(dst), size});
    return status;
  }
  pgr_status copy(pgr_queue* queue, pgr_buffer* dst, uint64_t dst_offset, pgr_buffer* src,
                  uint64_t src_offset, uint64_t size, pgr_error* error) override {
    file_->write({{"call", "copy"},
                  {"buffer", number_of(dst)},
                  {"offset", dst_offset},
                  {"from", number_of(src)},
                  {"from_offset", src_offset},
                  {"bytes", size}});
    return Layer::copy(queue, dst, dst_offset, src, src_offset, size, error);
  }
  pgr_status fill(pgr_queue* queue, pgr_buffer* dst, uint64_t offset, uint64_t size,
                  const void* pattern, uint64_t pattern_bytes, pgr_error* error) override {
    const auto* from = static_cast<const std::byte*>(pattern);
    file_->write(
        {{"call", "fill"}, {"buffer", number_of(dst)}, {"offset", offset}, {"bytes", size}},
        {from, pattern_bytes});
    return Layer::fill(queue, dst, offset, size, pattern, pattern_bytes, error);
  }
  pgr_status unmap(pgr_buffer* buffer, pgr_error* error) override {
    const pgr_status status = Layer::unmap(buffer, error);
    std::vector<std::byte> now(size_of(buffer));  // the host may have written all of it
    if (status == PGR_STATUS_OK &&
        Layer::copy_out(nullptr, now.data(), buffer, 0, now.size(), error) == PGR_STATUS_OK)
      contents("copy_in", buffer, 0, now);
    return status;
  }
  pgr_status kernel(pgr_program* program, const pgr_string* name, pgr_kernel** out,
                    pgr_error* error) override;
  pgr_status launch(pgr_queue* queue, pgr_kernel* kernel, const pgr_launch_desc* desc,
                    uint64_t* out_time_ns, pgr_error* error) override;

 private:
  struct Known {
    uint64_t number = 0, size = 0;
  };
  uint64_t add(pgr_buffer* buffer, uint64_t size) {
    const std::lock_guard lock(mutex_);
    buffers_[buffer] = {++made_, size};
    return made_;
  }
  uint64_t number_of(pgr_buffer* buffer) {
    const std::lock_guard lock(mutex_);
    return buffers_[buffer].number;
  }
  uint64_t size_of(pgr_buffer* buffer) {
    const std::lock_guard lock(mutex_);
    return buffers_[buffer].size;
  }
  void contents(const char* call, pgr_buffer* buffer, uint64_t offset,
                std::span<const std::byte> bytes);

  const uint64_t most_bytes_;
  const std::shared_ptr<RecordingWriter> file_;
  std::mutex mutex_;
  uint64_t made_ = 0, kept_bytes_ = 0, kernels_made_ = 0;
  bool is_full_ = false;
  std::unordered_map<pgr_buffer*, Known> buffers_;
  std::unordered_map<pgr_kernel*, uint64_t> kernels_;
};

// The hash stays where the bytes are left out.
void Record::contents(const char* call, pgr_buffer* buffer, uint64_t offset,
                      std::span<const std::byte> bytes) {
  json facts = {{"call", call},
                {"buffer", number_of(buffer)},
                {"offset", offset},
                {"bytes", bytes.size()},
                {"hash", hash128(bytes).hex()}};
  bool has_room = false, is_first = false;
  {
    const std::lock_guard lock(mutex_);
    has_room = bytes.size() <= most_bytes_ - kept_bytes_;
    if (has_room) kept_bytes_ += bytes.size();
    is_first = !has_room && !std::exchange(is_full_, true);
  }
  if (is_first)
    log_warning(
        "record: {}: the contents of buffers from here on do not fit {} MiB and are left "
        "out; mebibytes=N allows more",
        file_->path(), most_bytes_ >> 20);
  file_->write(facts, has_room ? bytes : std::span<const std::byte>());
}

pgr_status Record::kernel(pgr_program* program, const pgr_string* name, pgr_kernel** out,
                          pgr_error* error) {
  const pgr_status status = Layer::kernel(program, name, out, error);
  if (status != PGR_STATUS_OK) return status;
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    kernels_[*out] = number = ++kernels_made_;
  }
  file_->write({{"call", "kernel"},
                {"kernel", number},
                {"name", std::string(view(*name))},
                {"ast", KernelAstScope::current()}},
               KernelIrScope::current());
  return status;
}

pgr_status Record::launch(pgr_queue* queue, pgr_kernel* kernel, const pgr_launch_desc* desc,
                          uint64_t* out_time_ns, pgr_error* error) {
  std::vector<uint64_t> buffers;
  for (uint32_t i = 0; i < desc->buffer_count; ++i) buffers.push_back(number_of(desc->buffers[i]));
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = kernels_[kernel];
  }
  file_->write({{"call", "launch"},
                {"kernel", number},
                {"buffers", buffers},
                {"scalars", std::vector(desc->scalars, desc->scalars + desc->scalar_count)},
                {"groups", desc->group_count},
                {"local", desc->local_size}});
  return Layer::launch(queue, kernel, desc, out_time_ns, error);
}

}  // namespace

std::string record_value_error(std::string_view key, std::string_view value) {
  if (key == "file") return value.empty() ? "it takes a path" : "";
  const bool digits = value.find_first_not_of("0123456789") == value.npos;
  return !value.empty() && value.size() < 8 && digits ? "" : "it takes a number of MiB";
}

std::unique_ptr<Layer> make_record_layer(const DeviceTables& inner, const LayerChoice& choice,
                                         const std::string& device_name) {
  std::string path = choice.values.at("file");
  // Each device of a program has its own file: F, F.2, …
  if (const uint32_t number = choice.devices->fetch_add(1) + 1; number > 1)
    path += fmt::format(".{}", number);
  const auto most = choice.values.find("mebibytes");
  const uint64_t mebibytes =
      most == choice.values.end() ? kMostMebibytes : std::stoull(most->second);
  return std::make_unique<Record>(inner, path, mebibytes << 20, device_name);
}

}  // namespace plugrad::runtime
