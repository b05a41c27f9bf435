#include "engine/kernels.h"

#include <cstring>

#include "base/clock.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/thread_pool.h"

namespace plugrad::engine {
namespace {

Hash128 key_of(const KernelRequest& request, const KernelOptions& options) {
  const uint64_t words[] = {request.ast->hash[0], request.ast->hash[1],
                            reinterpret_cast<uintptr_t>(request.device), options.bits()};
  return hash128(std::as_bytes(std::span(words)));
}

std::shared_ptr<ReadyKernel> make_kernel(const KernelRequest& request,
                                         const KernelOptions& options) {
  auto ready = std::make_shared<ReadyKernel>();
  ready->ast = request.ast;
  const uint64_t start_ns = monotonic_ns();
  ready->code = codegen::generate(
      request.ast->graph, request.ast->sink, request.device->caps(),
      {.no_opt = options.no_opt, .fast_math = options.fast_math, .contract = options.contract});
  ready->codegen_ns = monotonic_ns() - start_ns;
  pgr_ir_header header;
  std::memcpy(&header, ready->code.ir.data(), sizeof header);
  ready->param_count = header.param_count;
  ready->kernel =
      request.device->compile(ready->code.ir, ready->code.name, {.contract = options.contract});
  return ready;
}

// DEBUG=3 shows the source, DEBUG=5 the machine code.
void tell(const ReadyKernel& ready) {
  if (!debugging(3)) return;
  std::string text = fmt::format(
      "{} on {}: {}\n{}\n", as_shown(ready.code.colored_name), ready.kernel->device().name(),
      codegen::to_string(ready.code.optimisations), ready.kernel->source());
  if (debugging(5)) text += ready.kernel->disassemble() + "\n";
  debug_write(text);
}

}  // namespace

KernelOptions KernelOptions::from_settings() {
  const Settings& now = settings();
  return {.no_opt = now.noopt, .fast_math = now.fast_math, .contract = now.contract};
}

std::vector<std::shared_ptr<ReadyKernel>> KernelCache::get(std::span<const KernelRequest> requests,
                                                           const KernelOptions& options) {
  std::vector<std::shared_ptr<ReadyKernel>*> slots(requests.size());
  std::vector<size_t> missing;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto [place, is_new] = by_key_.try_emplace(key_of(requests[i], options));
    slots[i] = &place->second;
    if (is_new) missing.push_back(i);
  }
  const auto make = [&](uint64_t i) {
    *slots[missing[i]] = make_kernel(requests[missing[i]], options);
  };
  try {
    // The IR dumps of DEBUG=4 follow each other instead of mixing.
    thread_pool().run_tasks(missing.size(),
                            debugging(4) ? 1u : static_cast<uint32_t>(thread_count()), make);
  } catch (...) {
    std::erase_if(by_key_, [](const auto& entry) { return !entry.second; });
    throw;
  }
  made_ += missing.size();
  for (size_t i : missing) {
    codegen_ns_ += (*slots[i])->codegen_ns;
    tell(**slots[i]);
  }
  std::vector<std::shared_ptr<ReadyKernel>> ready(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) ready[i] = *slots[i];
  return ready;
}

}  // namespace plugrad::engine
