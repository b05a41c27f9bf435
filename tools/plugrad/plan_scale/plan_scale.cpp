// plugrad plan-scale: time and memory of a traced step of training on many devices.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/clock.h"
#include "base/text.h"
#include "command.h"
#include "plan_scale/measure.h"
#include "plan_scale/report.h"
#include "plugrad/error.h"

namespace plugrad::tools {
namespace {

using sharding::AxisSet;

int64_t number_of(const std::string& text, const char* option) {
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    throw UsageError(fmt::format("--{} {}: not a whole number", option, text));
  return number;
}

/// "data+model"; "-" for none.
AxisSet parse_axis_set(const std::string& text, const sharding::Mesh& mesh, const char* option) {
  AxisSet axes = 0;
  if (text == "-") return axes;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('+', begin), text.size());
    const std::string name = text.substr(begin, end - begin);
    const auto axis = std::ranges::find(mesh.axes, name);
    if (axis == mesh.axes.end())
      throw UsageError(fmt::format("--{} {}: the mesh has no axis \"{}\"{}; it has {}; - is none",
                                   option, text, name, did_you_mean(name, mesh.axes),
                                   fmt::join(mesh.axes, ", ")));
    const AxisSet bit = AxisSet{1} << (axis - mesh.axes.begin());
    if ((axes & bit) != 0)
      throw UsageError(fmt::format("--{} {}: the axis {} is named twice", option, text, name));
    axes |= bit;
    begin = end + 1;
  }
  return axes;
}

/// The spec of a group: "model,-".
std::vector<AxisSet> parse_spec(const std::string& text, const sharding::Mesh& mesh, size_t rank) {
  std::vector<AxisSet> dims;
  AxisSet used = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    dims.push_back(parse_axis_set(text.substr(begin, end - begin), mesh, "cut"));
    if ((used & dims.back()) != 0)
      throw UsageError(fmt::format("--cut {}: an axis is named twice", text));
    used |= dims.back();
    begin = end + 1;
  }
  if (dims.size() != rank)
    throw UsageError(fmt::format("--cut {}: {} dimensions, but the parameters have {}", text,
                                 dims.size(), rank));
  return dims;
}

scale::Role parse_role(const std::string& text) {
  for (const scale::Role role : {scale::Role::Parameter, scale::Role::Batch, scale::Role::Other})
    if (text == scale::name_of(role)) return role;
  throw UsageError(fmt::format("--role: {} is not parameter, batch or other{}", text,
                               did_you_mean(text, {"parameter", "batch", "other"})));
}

scale::ProgramOptions program_options(const Parsed& parsed) {
  scale::ProgramOptions options;
  if (parsed.has("plan")) options.plan = number_of(parsed.get<std::string>("plan"), "plan");
  if (parsed.has("batch")) options.batch = number_of(parsed.get<std::string>("batch"), "batch");
  for (const auto& [input, role] : parse_key_values(parsed.get<Arguments>("role"), "role"))
    options.roles[static_cast<size_t>(number_of(input, "role"))] = parse_role(role);
  return options;
}

scale::SearchOptions search_options(const Parsed& parsed, const scale::Program& program,
                                    const sharding::Mesh& mesh) {
  scale::SearchOptions options;
  if (parsed.has("batch-axes"))
    options.batch = parse_axis_set(parsed.get<std::string>("batch-axes"), mesh, "batch-axes");
  if (parsed.has("state-axes"))
    options.state = parse_axis_set(parsed.get<std::string>("state-axes"), mesh, "state-axes");
  for (const auto& [text, spec] : parse_key_values(parsed.get<Arguments>("cut"), "cut")) {
    const auto group = static_cast<size_t>(number_of(text, "cut"));
    if (group >= program.groups.size())
      throw UsageError(fmt::format("--cut {}: the step has {} groups of parameters", text,
                                   program.groups.size()));
    options.groups[group] = parse_spec(spec, mesh, program.groups[group].shape.size());
  }
  options.only_given = parsed.has("given");
  options.most_tries = static_cast<size_t>(number_of(parsed.get<std::string>("tries"), "tries"));
  if (options.most_tries == 0) throw UsageError("--tries is at least 1");
  if (options.only_given && !options.batch) options.batch = 0;
  return options;
}

int list_machines(bool as_json) {
  const std::vector<std::string> names = scale::shipped_machines();
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const std::string& name : names) {
    const scale::Machine machine = scale::read_machine(name);
    if (!as_json) fmt::print("{:<16} {} ({} devices)\n", name, machine.name, machine.devices());
    list.push_back({{"name", name}, {"description", machine.name}, {"devices", machine.devices()}});
  }
  if (as_json) print_json(list);
  return kSuccess;
}

int plan(const Parsed& parsed, const std::string& trace) {
  const uint64_t start_ns = monotonic_ns();
  const scale::Machine machine = scale::read_machine(parsed.get<std::string>("machine"));
  const sharding::Mesh mesh = scale::make_mesh(scale::parse_axes(parsed.get<std::string>("mesh")),
                                               machine.devices(), machine.name);
  const scale::Program program =
      scale::program_of(scale::read_plans(trace), program_options(parsed));
  const scale::SearchOptions options = search_options(parsed, program, mesh);
  scale::Estimator estimator(program, machine);
  const scale::SearchResult result = scale::search(program, machine, mesh, estimator, options);
  const ScaleReport report{program,
                           machine,
                           mesh,
                           result,
                           estimator.is_corrected(),
                           static_cast<double>(monotonic_ns() - start_ns) * 1e-9,
                           static_cast<size_t>(number_of(parsed.get<std::string>("top"), "top"))};
  if (parsed.has("json"))
    print_json(scale_json(report));
  else
    fmt::print("{}", scale_text(report));
  return kSuccess;
}

}  // namespace

int run_plan_scale(const Arguments& arguments) {
  const Syntax syntax = plan_scale_syntax();
  const Parsed parsed = parse(arguments, syntax);
  if (parsed.help) return kSuccess;
  const auto words = parsed.get<Arguments>("trace");
  if (parsed.has("machines")) return list_machines(parsed.has("json"));
  if (parsed.has("measure")) return measure_machine(parsed.get<std::string>("measure"));
  if (words.size() != 1) throw UsageError("name one trace\nusage: " + syntax.usage);
  for (const char* option : {"mesh", "machine"})
    if (!parsed.has(option))
      throw UsageError(fmt::format("--{} is missing\nusage: {}", option, syntax.usage));
  return plan(parsed, words[0]);
}

}  // namespace plugrad::tools
