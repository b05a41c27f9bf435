// plugrad explain: prints the compilation of a tensor program, stage by stage.
#include <fmt/ranges.h>

#include <filesystem>
#include <functional>

#include "base/check.h"
#include "base/log.h"
#include "base/settings.h"
#include "codegen/codegen.h"
#include "command.h"
#include "engine/kernels/kernel_cache.h"
#include "engine/session.h"
#include "explain/examples.h"
#include "explain/file.h"
#include "explain/trace.h"
#include "explain/why.h"
#include "plugrad/sharding.h"
#include "runtime/registry.h"
#include "schedule/schedule.h"
#include "tensor/handles.h"

namespace plugrad::tools {
namespace {

using Json = nlohmann::ordered_json;
// The program to explain, prepared so that only `kernels` is traced.
struct Explanation {
  std::string name;
  std::function<std::vector<engine::KernelReport>(engine::PlanWork&)> kernels;
  std::string sharding = {};  // of its sharded results; empty: none
};

Json to_json(const Explanation& explained, const std::vector<engine::KernelReport>& kernels,
             const engine::PlanWork& work, bool why) {
  Json document = {{"name", explained.name},
                   {"work", {{"executed", work.executed}, {"graph", work.graph}}},
                   {"kernels", Json::array()}};
  if (!explained.sharding.empty()) document["sharding"] = explained.sharding;
  for (const engine::KernelReport& kernel : kernels) {
    // The ABI counts groups; the usual term for groups times local size is global size.
    Json global = Json::array();
    for (int axis = 0; axis < 3; ++axis)
      global.push_back(kernel.group_count[axis] * kernel.local_size[axis]);
    document["kernels"].push_back({{"name", kernel.name},
                                   {"device", kernel.device},
                                   {"optimisations", kernel.optimisations},
                                   {"ast", kernel.ast},
                                   {"source", kernel.source},
                                   {"global_size", global},
                                   {"local_size", kernel.local_size},
                                   {"flops", kernel.flops},
                                   {"work", kernel.work},
                                   {"bytes", kernel.bytes}});
    if (why) document["kernels"].back()["why"] = choice_json(kernel);
  }
  return document;
}

void print_summary(const std::string& name, const std::vector<engine::KernelReport>& kernels,
                   const engine::PlanWork& work) {
  fmt::print("\n{}: {} kernel{}", name, kernels.size(), kernels.size() == 1 ? "" : "s");
  if (work.graph > 0)
    fmt::print(", work {}, {:.2f} of the graph's {}", work.executed,
               static_cast<double>(work.executed) / static_cast<double>(work.graph), work.graph);
  fmt::print("\n");
  for (const engine::KernelReport& kernel : kernels)
    fmt::print("  {:<32} {:>12} flops {:>12} work {:>12} bytes  groups {} {} {}  {}\n", kernel.name,
               kernel.flops, kernel.work, kernel.bytes, kernel.group_count[0],
               kernel.group_count[1], kernel.group_count[2], kernel.optimisations);
}

void list_examples(bool json) {
  Json names = Json::array();
  for (const Example& example : explain_examples())
    if (json)
      names.push_back({{"name", example.name}, {"meaning", example.meaning}});
    else
      fmt::print("{:<14}{}\n", example.name, example.meaning);
  if (json) print_json(names);
}

Explanation make_explanation(const std::string& word) {
  if (word.ends_with(".ir"))
    return {word, [word](engine::PlanWork&) { return explain_file(word); }};
  const Example* example = find_example(word);
  if (!example)
    throw UsageError(fmt::format(
        "there is no example and no file {}{}\nplugrad explain --list names the examples", word,
        did_you_mean(word, example_names())));
  const std::vector<Tensor> outputs = example->make();
  std::string sharding;
  for (const Tensor& output : outputs) sharding += describe_sharding(output);
  return {example->name,
          [outputs](engine::PlanWork& work) {
            std::vector<engine::TensorState*> states;
            states.reserve(outputs.size());
            for (const Tensor& output : outputs) states.push_back(tensor::state_of(output).get());
            return engine::Session::current().kernels_of(states, &work);
          },
          std::move(sharding)};
}

// A recorded program: a file that is no textual IR, unless an example has its name.
bool is_trace(const std::string& word) {
  std::error_code unknown;
  return !word.ends_with(".ir") && !find_example(word) &&
         std::filesystem::is_regular_file(word, unknown);
}

void explain_trace(const std::string& path, const Parsed& parsed) {
  for (const char* option : {"why", "kernel", "device"})
    if (parsed.has(option) &&
        (std::string_view(option) == "why" || !parsed.get<std::string>(option).empty()))
      throw UsageError(
          fmt::format("--{} is of an example or a file of IR, not of a trace", option));
  const Json plans = plans_of_trace(path);
  if (parsed.has("json"))
    print_json({{"name", path}, {"plans", plans}});
  else
    fmt::print("{}", plans_text(plans));
}

// Keeps the kernels whose generated or planned name contains the text. Errors: User if there are
// none.
void keep_kernels(std::vector<engine::KernelReport>& kernels, const std::string& text) {
  Arguments names;
  for (const engine::KernelReport& kernel : kernels) names.push_back(kernel.name);
  std::erase_if(kernels, [&](const engine::KernelReport& kernel) {
    return kernel.name.find(text) == std::string::npos;
  });
  require(!kernels.empty(), "[explain] there is no kernel \"{}\"; there are {}", text,
          fmt::join(names, ", "));
}

void to_stdout(std::string_view text, void*) {
  fmt::print("{}", text);
}

// Prints every stage, down to machine code, while kernels are compiled.
template <class Make>
auto showing_stages(const Make& make) {
  set_log_sink(to_stdout, nullptr);
  SettingScope scope([](Settings& s) { s.debug = 5; });
  return make();
}

// Only the code generation of these kernels.
void show_kernels(const std::vector<engine::KernelReport>& kernels) {
  std::vector<engine::KernelRequest> requests;
  for (const engine::KernelReport& kernel : kernels)
    if (kernel.planned)
      requests.push_back(
          {kernel.planned, &runtime::Registry::instance().find_device(kernel.device)});
  engine::KernelCache cache;
  showing_stages([&] { return cache.get(requests, engine::KernelOptions::from_settings()); });
}

// The stage tables of both compilers.
void list_stages(bool json) {
  Json document = Json::object();
  for (const auto& [compiler, stages] :
       {std::pair("schedule", schedule::stages()), std::pair("codegen", codegen::stages())}) {
    if (!json) fmt::print("{}\n", compiler);
    for (const StageInfo& stage : stages)
      if (json)
        document[compiler].push_back(
            {{"name", stage.name}, {"form", name_of(stage.form)}, {"meaning", stage.meaning}});
      else
        fmt::print("  {:<22}{:<14}{}\n", stage.name, name_of(stage.form), stage.meaning);
  }
  if (json) print_json(document);
}

}  // namespace

int run_explain(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, explain_syntax());
  if (parsed.help) return kSuccess;
  if (parsed.has("list")) return list_examples(parsed.has("json")), kSuccess;
  if (parsed.has("stages")) return list_stages(parsed.has("json")), kSuccess;
  auto words = parsed.get<Arguments>("example");
  if (words.size() != 1)
    throw UsageError(fmt::format("name one example or file\nusage: {}", explain_syntax().usage));
  if (is_trace(words[0])) return explain_trace(words[0], parsed), kSuccess;
  choose_device(parsed.get<std::string>("device"));
  change_settings([](Settings& s) { s.tune = false; });  // the schedules of kernels that run long

  const bool json = parsed.has("json"), why = parsed.has("why");
  const std::string wanted = parsed.get<std::string>("kernel");
  Explanation explanation = make_explanation(words[0]);
  const bool stages = !json && !why;
  if (!json && !explanation.sharding.empty()) fmt::print("{}\n", explanation.sharding);
  engine::PlanWork work;
  const auto make = [&] { return explanation.kernels(work); };
  std::vector<engine::KernelReport> kernels =
      stages && wanted.empty() ? showing_stages(make) : make();
  if (!wanted.empty()) keep_kernels(kernels, wanted);
  if (stages && !wanted.empty()) show_kernels(kernels);
  if (json)
    print_json(to_json(explanation, kernels, work, why));
  else if (why)
    print_choices(kernels);
  else
    print_summary(explanation.name, kernels, work);
  return kSuccess;
}

}  // namespace plugrad::tools
