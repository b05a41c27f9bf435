#include "conformance/run_test.h"

#include <chrono>
#include <cmath>

namespace plugrad::conformance {
namespace {

// An empty `function` tests for the table.
template <typename Api>
bool has_slot(const Api* table, std::string_view function) {
  if (!table || function.empty()) return table != nullptr;
  Api own = *table;
  bool found = false;
  each_slot(own, [&](std::string_view name, auto slot) {
    if (name == function) found = offered(slot);
  });
  return found;
}

void judge(const Test& test, Context& context) {
  for (const std::string& need : {test.claim, test.unlocked_by})
    if (!need.empty() && !offers(context.plugin(), need))
      throw Unsupported("the plugin does not offer " + need);
  test.run(context);
}

void set(TestResult& result, Status status, std::string message) {
  result.status = status;
  result.message = std::move(message);
}

}  // namespace

bool offers(Plugin& plugin, std::string_view text) {
  const size_t space = std::min(text.find(' '), text.size());
  const std::string_view name = text.substr(0, space);
  const std::string_view function = text.substr(std::min(space + 1, text.size()));
  if (name == "pgr.plugin") return has_slot(&plugin.api(), function);
  if (name == "pgr.device") return has_slot(plugin.device_api(), function);
  if (name == "pgr.allocator") return has_slot(plugin.allocator_api(), function);
  if (name == "pgr.runner") return has_slot(plugin.runner_api(), function);
  if (name == "pgr.renderer") return has_slot(plugin.renderer_api(), function);
  if (name == "pgr.compiler") return has_slot(plugin.compiler_api(), function);
  if (name == "pgr.queue") return has_slot(plugin.queue_api(), function);
  if (name == "pgr.graph") return has_slot(plugin.graph_api(), function);
  if (name == "pgr.profile") return has_slot(plugin.profile_api(), function);
  throw std::logic_error("the suite knows no interface \"" + std::string(name) + "\"");
}

TestResult run_test(const Test& test, Context& context) {
  using Clock = std::chrono::steady_clock;
  TestResult& result = context.result();
  const auto start = Clock::now();
  try {
    judge(test, context);
  } catch (const Failed& failed) {
    set(result, Status::Fail, failed.what());
  } catch (const Unsupported& unsupported) {
    set(result, Status::Unsupported, unsupported.what());
  } catch (const std::exception& error) {
    set(result, Status::Fail, std::string("an exception came out of a call: ") + error.what());
  } catch (...) {
    set(result, Status::Fail, "an exception of unknown type came out of a call");
  }
  result.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return result;
}

const Test* find_test(std::string_view id) {
  for (const Test& test : all_tests())
    if (test.id == id) return &test;
  return nullptr;
}

void Context::measure(std::string_view metric, double value, std::string_view input) {
  // A NaN is worse than any number, and is kept.
  if (!result_.metric.empty() && (std::isnan(result_.worst) || value <= result_.worst)) return;
  result_.metric = metric;
  result_.worst = value;
  result_.worst_input = input;
}

void Context::about(std::span<const std::byte> kernel_ir) {
  kernel_.assign(kernel_ir.begin(), kernel_ir.end());
  if (surroundings_.about) surroundings_.about(kernel_ir);
}

void expect(bool condition, std::string_view message) {
  if (!condition) throw Failed(std::string(message));
}

}  // namespace plugrad::conformance
