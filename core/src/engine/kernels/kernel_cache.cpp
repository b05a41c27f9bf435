#include "engine/kernels/kernel_cache.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/binding.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/thread_pool.h"
#include "base/trace/trace.h"
#include "engine/disabled_names.h"
#include "engine/kernels/compile_progress.h"
#include "engine/kernels/program_cache.h"
#include "engine/refine/promotion.h"
#include "ir/text/printer.h"
#include "rewrite/stage.h"
#include "runtime/checks/layers.h"
#include "tuning/calibration/machines.h"
#include "tuning/ir_params.h"
#include "tuning/kernel_schedule.h"

namespace plugrad::engine {
namespace {

Hash128 key_of(const KernelRequest& request, const KernelOptions& options) {
  const Hash128 user = request.user ? request.user->hash() : Hash128{};
  const uint64_t* ast = request.ast ? request.ast->hash : nullptr;
  const uint64_t words[] = {ast ? ast[0] : 0,
                            ast ? ast[1] : 0,
                            user.high,
                            user.low,
                            reinterpret_cast<uintptr_t>(request.device),
                            options.bits(),
                            options.lists,
                            cost::hash_of(*tuning::machine_of(*request.device))};
  return hash128(std::as_bytes(std::span(words)));
}

bool contracts(const KernelRequest& request, const KernelOptions& options) {
  return options.contract && request.device->caps().contract_supported &&
         !(request.ast && request.ast->is_exact);
}

}  // namespace

codegen::Options codegen_options(const KernelRequest& request, const KernelOptions& options) {
  return {.no_opt = options.no_opt,
          .fast_math = options.fast_math,
          .contract = contracts(request, options),
          .tf32 = options.tf32,
          .name = request.user ? std::string_view(request.user->name) : std::string_view(),
          .machine = tuning::machine_of(*request.device)};
}

namespace {

using Tuned = std::optional<codegen::KernelSchedule>;

codegen::KernelCode generate_code(const KernelRequest& request, const KernelOptions& options,
                                  const Tuned& tuned) {
  try {
    codegen::Options now = codegen_options(request, options);
    now.frugal = options.frugal;
    if (tuned) {
      now.schedule = &*tuned;
      now.no_opt = false;
    }
    return codegen::generate(request.ast->graph, request.ast->sink, request.device->caps(), now);
  } catch (const Error& e) {  // codegen knows capabilities but not the device's name
    if (e.kind() != ErrorKind::Unsupported) throw;
    fail(e.kind(), "{} (device {})", e.what(), request.device->name());
  }
}

std::string key_on_disk(const KernelRequest& request, const KernelOptions& options,
                        const Tuned& tuned) {
  const std::string settings_text =
      fmt::format("options {:x} list {} name {} machine {:x}", options.bits(),
                  tuned ? codegen::to_string(*tuned) : "of the heuristic",
                  (request.user ? request.user->name : std::string()) +
                      (settings().disable.empty() ? "" : " without " + settings().disable),
                  cost::hash_of(*tuning::machine_of(*request.device)));
  return program_key(request.ast->hash, settings_text, *request.device);
}

// Null if the code does not pay.
std::shared_ptr<ReadyKernel> make_kernel(const KernelRequest& request, const KernelOptions& options,
                                         const Tuned& tuned, const KernelCache::Pays& pays = {}) {
  if (!request.ast) return make_user_kernel(*request.user, *request.device, options);
  auto ready = std::make_shared<ReadyKernel>();
  ready->ast = request.ast;
  KernelOptions full = options;
  full.frugal = false;
  std::string key = key_on_disk(request, full, tuned);
  const bool may_be_frugal = options.frugal && !tuned;
  std::optional<Program> known;
  if (!are_stages_observed()) {
    known = find_program(key);
    if (!known && may_be_frugal) known = find_program(key_on_disk(request, options, tuned));
  }
  if (known) {
    ready->code = std::move(known->code);
  } else {
    const uint64_t start_ns = monotonic_ns();
    ready->code = generate_code(request, options, tuned);
    ready->codegen_ns = monotonic_ns() - start_ns;
    if (tracing()) trace::span(trace::Category::Codegen, ready->code.name, start_ns);
    if (pays && !pays(ready->code)) return nullptr;
  }
  ready->param_count = tuning::params_in(ready->code.ir).buffer_count;
  const std::function<std::string()> ast_text = [&request] {
    return print(request.ast->graph, request.ast->sink, Numbering::FromZero);
  };
  const runtime::KernelAstScope ast_scope(ast_text);
  ready->kernel = request.device->compile(ready->code.ir, ready->code.name,
                                          {.contract = contracts(request, options),
                                           .source = known ? known->source : std::string_view()});
  if (ready->code.is_frugal) {
    key = key_on_disk(request, options, tuned);
    ready->promotion = std::make_shared<Promotion>(request, options, ready->code.seconds);
  }
  if (!known) keep_program(key, {ready->code, ready->kernel->source()});
  return ready;
}

// An estimate in bytes: a loaded CPU program occupies at least a few pages.
uint64_t size_of_kernel(const ReadyKernel& ready) {
  constexpr uint64_t kLoaded = 16 << 10;
  return kLoaded + ready.code.ir.size() + ready.kernel->source().size() +
         (ready.ast ? ready.ast->graph.size_bytes() : 0);
}

// DEBUG=3 shows the source, DEBUG=5 the machine code.
void report(const ReadyKernel& ready) {
  if (!debugging(3)) return;
  std::string planned;  // the kernel's name for PLUGRAD_OPTIMISATIONS
  if (ready.ast)
    planned = ", planned as " + codegen::describe(ready.ast->graph, ready.ast->sink).name;
  std::string text = fmt::format("{} on {}{}: {}\n{}\n", as_shown(ready.code.colored_name),
                                 ready.kernel->device().name(), planned,
                                 codegen::to_string(ready.code.schedule), ready.kernel->source());
  if (debugging(5)) text += ready.kernel->disassemble() + "\n";
  debug_write(text);
}

// E.g. "OPENCL:0, CPU:0", for messages.
std::string devices_of(std::span<const KernelRequest> requests, std::span<const size_t> some) {
  std::vector<std::string> names;
  for (size_t i : some) names.push_back(requests[i].device->name());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

bool may_refine() {
  const Settings& now = settings();
  return now.tune && !now.deterministic && !now.noopt && now.beam == 0 && now.optimisations.empty();
}

KernelOptions KernelOptions::from_settings() {
  const Settings& now = settings();
  require_known_names(now.disable);
  const std::string lists = now.optimisations + '\n' + now.disable;
  return {.no_opt = now.noopt,
          .fast_math = now.fast_math,
          // The order of a sum's terms decides which product is fused.
          .contract = now.contract && !now.deterministic,
          .tf32 = now.tf32,
          .deterministic = now.deterministic,
          .frugal = may_refine(),
          .beam = now.deterministic ? 0 : static_cast<uint32_t>(now.beam),
          .lists = lists.size() == 1 ? 0 : hash64(as_bytes(lists))};
}

std::vector<std::string> render(std::span<const KernelRequest> requests,
                                const KernelOptions& options) {
  std::unordered_map<Hash128, size_t, Hash128Hasher> numbers;
  std::vector<const KernelRequest*> distinct;
  for (const KernelRequest& request : requests)
    if (request.ast && numbers.try_emplace(key_of(request, options), distinct.size()).second)
      distinct.push_back(&request);
  std::vector<std::string> sources(distinct.size());
  thread_pool().run_tasks(distinct.size(), static_cast<uint32_t>(thread_count()), [&](uint64_t i) {
    sources[i] = distinct[i]->device->render(generate_code(*distinct[i], options, std::nullopt).ir);
  });
  return sources;
}

std::vector<std::shared_ptr<ReadyKernel>> KernelCache::get(std::span<const KernelRequest> requests,
                                                           const KernelOptions& options) {
  std::vector<std::shared_ptr<ReadyKernel>> ready(requests.size());
  std::vector<Hash128> keys;
  std::unordered_map<Hash128, size_t, Hash128Hasher> first;  // by key: the request that is compiled
  std::vector<size_t> missing;
  for (size_t i = 0; i < requests.size(); ++i) {
    const uint64_t start_ns = tracing() ? monotonic_ns() : 0;
    keys.push_back(key_of(requests[i], options));
    if (const auto* known = recent_.find(keys[i])) {
      ready[i] = *known;
      if (start_ns != 0) trace::span(trace::Category::Compile, ready[i]->code.name, start_ns, 2);
    } else if (first.try_emplace(keys[i], i).second) {
      missing.push_back(i);
    }
  }
  std::vector<Tuned> tuned(missing.size());  // sequential: a search needs the whole machine
  for (size_t i = 0; i < missing.size(); ++i) {
    const KernelRequest& request = requests[missing[i]];
    poll_interruption();
    if (request.schedule)
      tuned[i] = *request.schedule;
    else if (request.ast)
      tuned[i] =
          tuning::tuned_schedule(*request.ast, *request.device, codegen_options(request, options));
  }
  // With DEBUG=4 one thread, so that IR dumps do not interleave.
  const uint32_t threads = debugging(4) ? 1u : static_cast<uint32_t>(thread_count());
  std::mutex failing;
  failed_.reset();
  {
    CompileProgress progress(missing.size(), devices_of(requests, missing));
    thread_pool().run_tasks(missing.size(), threads, [&](uint64_t i) {
      poll_interruption();
      try {
        ready[missing[i]] = make_kernel(requests[missing[i]], options, tuned[i]);
      } catch (...) {
        const std::lock_guard lock(failing);
        if (!failed_) failed_ = missing[i];
        throw;
      }
      progress.count();
    });
  }
  made_ += missing.size();
  for (size_t i : missing) {
    codegen_ns_ += ready[i]->codegen_ns;
    recent_.insert(keys[i], ready[i], size_of_kernel(*ready[i]));
    report(*ready[i]);
  }
  for (size_t i = 0; i < requests.size(); ++i)
    if (!ready[i]) ready[i] = ready[first.at(keys[i])];
  return ready;
}

std::shared_ptr<ReadyKernel> KernelCache::make(const KernelRequest& request,
                                               const KernelOptions& options,
                                               const codegen::KernelSchedule& list) {
  return make_kernel(request, options, list);
}

std::shared_ptr<ReadyKernel> KernelCache::make_full(const KernelRequest& request,
                                                    KernelOptions options, const Pays& pays) {
  options.frugal = false;
  return make_kernel(request, options, std::nullopt, pays);
}

void KernelCache::replace(const KernelRequest& request, const KernelOptions& options,
                          std::shared_ptr<ReadyKernel> better) {
  const size_t bytes = size_of_kernel(*better);
  recent_.insert(key_of(request, options), std::move(better), bytes);
}

}  // namespace plugrad::engine
