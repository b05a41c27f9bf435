// Layout of an entry: the fields of Plan in order, without those of traces and statistics; lists have
// a length prefix.
#include "engine/plan/plan_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <stdexcept>

#include "base/log.h"
#include "base/storage/disk_cache.h"
#include "base/trace/trace.h"
#include "engine/plan/graph_bytes.h"
#include "rewrite/stage.h"
#include "runtime/device/host_api.h"

namespace plugrad::engine {
namespace {

using schedule::Arena;
using schedule::Plan;
using schedule::PlannedBuffer;
using schedule::Step;

constexpr int kPlanFormat = 4;  // increase when the layout changes

template <class T, class Struct>
concept MaybeConst = std::same_as<std::remove_const_t<T>, Struct>;

// Visits the fields in file order, for reading and writing alike. Structs with padding are visited too:
// equal plans are equal bytes.
void each_field_of(auto& visit, MaybeConst<PlannedBuffer> auto& buffer) {
  visit(buffer.kind);
  visit(buffer.number);
  visit(buffer.dtype);
  visit(buffer.device);
  visit(buffer.elem_count);
  visit(buffer.arena);
  visit(buffer.offset_bytes);
}

void each_field_of(auto& visit, MaybeConst<Arena> auto& arena) {
  visit(arena.device);
  visit(arena.size_bytes);
}

void each_field_of(auto& visit, MaybeConst<Step> auto& step) {
  visit(step.kind);
  visit(step.device);
  visit(step.ast);
  visit(step.buffers);
  visit(step.scalars);
  visit(step.numbers);
}

void each_field_of(auto& visit, MaybeConst<KernelAst> auto& ast) {
  visit(ast.hash[0]);
  visit(ast.hash[1]);
  visit(ast.param_count);
  visit(ast.is_exact);
}

void each_field_of(auto& visit, MaybeConst<Plan> auto& plan) {
  visit(plan.buffers);
  visit(plan.arenas);
  visit(plan.asts);
  visit(plan.steps);
  visit(plan.input_count);
  visit(plan.constants);
  visit(plan.root_buffers);
  visit(plan.donations);
  visit(plan.operations);
  visit(plan.repeated);
}

struct PutPlan {
  ByteWriter bytes;

  template <class T>
  void operator()(const T& value) {
    if constexpr (requires { each_field_of(*this, value); }) {
      each_field_of(*this, value);
    } else {
      static_assert(std::has_unique_object_representations_v<T>, "no padding");
      bytes.put(value);
    }
  }
  void operator()(const std::shared_ptr<const KernelAst>& ast) {
    put_graph(bytes, ast->graph, ast->sink);
    (*this)(*ast);
  }
  template <class T>
  void operator()(const std::vector<T>& list) {
    bytes.put(static_cast<uint32_t>(list.size()));
    for (const T& each : list) (*this)(each);
  }
};

struct GetPlan {
  ByteReader bytes;

  void operator()(auto& value) {
    if constexpr (requires { each_field_of(*this, value); })
      each_field_of(*this, value);
    else
      value = bytes.get<std::remove_reference_t<decltype(value)>>();
  }
  void operator()(std::shared_ptr<const KernelAst>& to) {
    auto ast = std::make_shared<KernelAst>();
    ast->sink = get_graph(bytes, ast->graph);
    (*this)(*ast);
    to = std::move(ast);
  }
  template <class T>
  void operator()(std::vector<T>& list) {
    for (auto left = bytes.get<uint32_t>(); left > 0 && bytes.is_whole(); --left) {
      list.emplace_back();
      (*this)(list.back());
    }
  }
};

bool is_numbered_by_session(const Step& step) {
  return step.kind == Step::Kind::User || step.kind == Step::Kind::Loop;
}

// Whether all numbers in the plan are those of something in it.
bool is_consistent(const Plan& plan) {
  const auto is_buffer = [&](uint32_t number) { return number < plan.buffers.size(); };
  const auto is_right = [&](const Step& step) {
    return !is_numbered_by_session(step) && std::ranges::all_of(step.buffers, is_buffer) &&
           (step.kind != Step::Kind::Kernel || step.ast < plan.asts.size());
  };
  return std::ranges::all_of(plan.steps, is_right) &&
         std::ranges::all_of(plan.root_buffers, is_buffer);
}

Plan plan_in(std::span<const std::byte> entry) {
  Plan plan;
  GetPlan get{ByteReader(entry)};
  get(plan);
  if (!get.bytes.is_whole() || !get.bytes.is_at_end() || !is_consistent(plan))
    throw std::out_of_range("no plan");
  return plan;
}

}  // namespace

std::string plan_key_on_disk(const Hash128& key) {
  if (tracing() || are_stages_observed()) return "";
  return fmt::format("plan {}/core {}/{}", kPlanFormat,
                     runtime::library_identity(runtime::own_file()), key.hex());
}

std::optional<Plan> find_plan(const std::string& key) {
  if (key.empty()) return std::nullopt;
  const auto entry = disk_cache().get(as_bytes(key));
  if (!entry) return std::nullopt;
  try {
    return plan_in(*entry);
  } catch (const std::exception& e) {  // the checksum was right: a faulty writer
    log_line(LogLevel::Info, fmt::format("a cached plan is not usable: {}", e.what()));
    disk_cache().remove(as_bytes(key));
    return std::nullopt;
  }
}

void keep_plan(const std::string& key, const Plan& plan) {
  if (key.empty() || std::ranges::any_of(plan.steps, is_numbered_by_session)) return;
  PutPlan put;
  put(plan);
  disk_cache().put(as_bytes(key), put.bytes.bytes());
}

}  // namespace plugrad::engine
