#include "engine/kernels/user_kernels.h"

#include <algorithm>

#include "base/check.h"
#include "engine/kernels/kernel_cache.h"

namespace plugrad::engine {
namespace {

void append(std::string& key, const void* data, size_t size) {
  key.append(reinterpret_cast<const char*>(&size), sizeof size);
  key.append(static_cast<const char*>(data), size);
}

std::string device_names(const UserKernelCode& kernel) {
  std::string names;
  for (const auto& source : kernel.sources) names += (names.empty() ? "" : ", ") + source.device;
  return names.empty() ? "none" : names;
}

void set_launch(ReadyKernel& ready, const UserKernelCode& kernel) {
  ready.code.name = ready.code.colored_name = kernel.name;
  std::ranges::copy(kernel.group_count, ready.code.group_count);
  std::ranges::copy(kernel.local_size, ready.code.local_size);
  ready.code.estimates.bytes = kernel.bytes;
  ready.param_count = kernel.param_count;
}

}  // namespace

Hash128 UserKernelCode::hash() const {
  std::string key;
  append(key, name.data(), name.size());
  for (const Source& source : sources) {
    append(key, source.device.data(), source.device.size());
    append(key, source.text.data(), source.text.size());
  }
  append(key, ir.data(), ir.size());
  if (ast) append(key, ast->hash, sizeof ast->hash);
  append(key, group_count, sizeof group_count);
  append(key, local_size, sizeof local_size);
  append(key, &param_count, sizeof param_count);
  append(key, &bytes, sizeof bytes);
  return hash128(std::as_bytes(std::span(key)));
}

uint32_t UserKernelTable::add(UserKernelCode kernel) {
  const Hash128 hash = kernel.hash();
  if (const auto known = by_hash_.find(hash); known != by_hash_.end()) return known->second;
  kernels_.push_back(std::make_shared<const UserKernelCode>(std::move(kernel)));
  const auto number = static_cast<uint32_t>(kernels_.size() - 1);
  by_hash_.emplace(hash, number);
  return number;
}

std::shared_ptr<ReadyKernel> make_user_kernel(const UserKernelCode& kernel, runtime::Device& device,
                                              const KernelOptions& options) {
  const runtime::CompileOptions how = {.contract = options.contract};
  auto ready = std::make_shared<ReadyKernel>();
  const auto own =
      std::ranges::find(kernel.sources, device.plugin_name(), &UserKernelCode::Source::device);
  if (own != kernel.sources.end()) {
    set_launch(*ready, kernel);
    ready->kernel = device.compile_source(own->text, kernel.name, how);
    return ready;
  }
  require(!kernel.ir.empty(),
          "[{}] the kernel runs on {}, for which there is no source (given for: {}); give one, or "
          "kernel IR or an AST, which every device runs",
          kernel.name, device.name(), device_names(kernel));
  set_launch(*ready, kernel);
  ready->code.ir = kernel.ir;
  ready->kernel = device.compile(kernel.ir, kernel.name, how);
  return ready;
}

}  // namespace plugrad::engine
