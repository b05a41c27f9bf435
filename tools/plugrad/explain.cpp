// plugrad explain: what becomes of a tensor program, stage by stage.
#include <fmt/format.h>

#include "base/log.h"
#include "base/settings.h"
#include "command.h"
#include "engine/session.h"
#include "explain_examples.h"

namespace plugrad::tools {
namespace {

using Json = nlohmann::ordered_json;
constexpr char kUsage[] = "plugrad explain (EXAMPLE | FILE.ir | --list) [--device D] [--json]";

Json to_json(const std::string& name, const std::vector<engine::KernelReport>& kernels) {
  Json document = {{"name", name}, {"kernels", Json::array()}};
  for (const engine::KernelReport& kernel : kernels) {
    // The ABI counts groups; the field's word for groups times their size is the global size.
    Json global = Json::array();
    for (int axis = 0; axis < 3; ++axis) global.push_back(kernel.group_count[axis] * kernel.local_size[axis]);
    document["kernels"].push_back({{"name", kernel.name},
                                   {"device", kernel.device},
                                   {"optimisations", kernel.optimisations},
                                   {"ast", kernel.ast},
                                   {"source", kernel.source},
                                   {"global_size", global},
                                   {"local_size", kernel.local_size},
                                   {"flops", kernel.flops},
                                   {"bytes", kernel.bytes}});
  }
  return document;
}

void print_kernel(const engine::KernelReport& kernel) {
  fmt::print("\n{} on {}: {} flops, {} bytes\n", kernel.colored_name, kernel.device, kernel.flops, kernel.bytes);
  fmt::print("groups {} {} {}, group size {} {} {}, optimisations: {}\n", kernel.group_count[0], kernel.group_count[1],
             kernel.group_count[2], kernel.local_size[0], kernel.local_size[1], kernel.local_size[2],
             kernel.optimisations.empty() ? "none" : kernel.optimisations);
  if (!kernel.ast.empty()) fmt::print("\n{}\n", kernel.ast);
  if (!kernel.source.empty()) fmt::print("\n{}\n", kernel.source);
}

void list_examples() {
  for (const Example& example : explain_examples()) fmt::print("{:<14}{}\n", example.name, example.meaning);
}

std::vector<engine::KernelReport> explain_example(const Example& example) {
  std::vector<Tensor> outputs = example.make();
  std::vector<engine::TensorState*> states;
  for (const Tensor& output : outputs) states.push_back(output.state().get());
  return engine::Session::current().kernels_of(states);
}

void to_stdout(std::string_view text, void*) { fmt::print("{}", text); }

}  // namespace

int run_explain(const Arguments& arguments) {
  namespace po = boost::program_options;
  po::options_description options("Options");
  options.add_options()("list", "name the built-in examples")("json", "one JSON document")(
      "device", po::value<std::string>()->default_value(""), "device to compile for");
  Parsed parsed = parse(arguments, kUsage, options, "example");
  if (parsed.help) return kSuccess;
  if (parsed.has("list")) return list_examples(), kSuccess;
  auto words = parsed.get<Arguments>("example");
  if (words.size() != 1) throw UsageError(fmt::format("name one example or file\nusage: {}", kUsage));
  choose_device(parsed.get<std::string>("device"));

  const Example* example = find_example(words[0]);
  if (!example) throw UsageError(fmt::format("there is no example {}; plugrad explain --list names them", words[0]));
  // The stages print themselves at this level, which is DEBUG=4.
  bool json = parsed.has("json");
  if (!json) set_log_sink(to_stdout, nullptr);
  SettingScope scope([&](Settings& s) {
    if (!json) s.debug = std::max(s.debug, 4);
  });
  std::vector<engine::KernelReport> kernels = explain_example(*example);
  if (json)
    print_json(to_json(example->name, kernels), true);
  else
    for (const engine::KernelReport& kernel : kernels) print_kernel(kernel);
  return kSuccess;
}

}  // namespace plugrad::tools
