#include "explain/trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "base/check.h"
#include "base/escaping/sanitise_text.h"
#include "base/log.h"
#include "trace/trace.h"

namespace plugrad::tools {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::map<int64_t, std::string>;  // of kernels, by id

// The member, or an empty list: traces of unsharded programs and older ones lack some.
const Json& list(const Json& object, const char* key) {
  static const Json none = Json::array();
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

// Other lines, which may be large, are not parsed: a line begins with its type.
bool may_be_of_plan(std::string_view line) {
  const std::string_view begin = line.substr(0, 20);
  return begin.find("\"plan\"") != begin.npos || begin.find("\"kernel\"") != begin.npos;
}

Json step_of(const Json& line, const Names& kernels) {
  Json step = {{"kind", line.at("kind")}};
  if (const auto kernel = kernels.find(line.at("kernel")); kernel != kernels.end())
    step["kernel"] = kernel->second;
  for (const char* key : {"collective", "start"})
    if (line.contains(key)) step[key] = line[key];
  return step;
}

Json plan_of(const Json& line, const Names& kernels) {
  Json plan = {{"id", line.at("id")},
               {"meshes", list(line, "meshes")},
               {"sharded", list(line, "sharded")},
               {"steps", Json::array()}};
  for (const Json& step : line.at("steps")) plan["steps"].push_back(step_of(step, kernels));
  return plan;
}

std::string shape_text(const Json& shape) {
  return fmt::format("({})", fmt::join(shape.get<std::vector<int64_t>>(), ", "));
}

std::string mesh_text(const Json& mesh) {
  std::vector<std::string> places;
  for (size_t i = 0; i < mesh.at("ranks").size(); ++i) {
    const std::string device = mesh.at("devices").at(i);
    places.push_back(fmt::format("{}rank {}", device.empty() ? "" : device + " of ",
                                 mesh["ranks"][i].get<int64_t>()));
  }
  return fmt::format("mesh {}: {}\n", mesh.at("axes").get<std::string>(), fmt::join(places, ", "));
}

std::string movements_text(const Json& moves) {
  std::string text;
  for (const Json& move : moves)
    text += fmt::format("    {} %{} along {}: {} bytes\n", move.at("kind").get<std::string>(),
                        move.at("value").get<int64_t>(), move.at("along").get<std::string>(),
                        move.at("bytes").get<int64_t>());
  return text;
}

std::string value_text(const Json& value) {
  return movements_text(value.at("before")) +
         fmt::format("  %{} {} {} {} {}\n", value.at("id").get<int64_t>(),
                     value.at("op").get<std::string>(), value.at("dtype").get<std::string>(),
                     shape_text(value.at("shape")), value.at("spec").get<std::string>()) +
         movements_text(value.at("after"));
}

std::string collective_text(const Json& collective) {
  const Json& values = collective.at("values");
  std::vector<std::string> shapes;
  for (const Json& value : values) shapes.push_back(shape_text(value.at("shape")));
  return fmt::format("{} {} bytes{}, ranks {}: {} {}", collective.at("kind").get<std::string>(),
                     collective.at("bytes").get<int64_t>(),
                     values.size() > 1 ? fmt::format(" of {} values", values.size()) : "",
                     fmt::join(collective.at("ranks").get<std::vector<int64_t>>(), " "),
                     collective.at("dtype").get<std::string>(), fmt::join(shapes, ", "));
}

std::string step_text(const Json& step) {
  const std::string kind = step.at("kind");
  if (step.contains("collective")) return "start " + collective_text(step["collective"]);
  if (step.contains("start")) return fmt::format("wait for step {}", step["start"].get<int64_t>());
  return step.contains("kernel") ? kind + " " + step["kernel"].get<std::string>() : kind;
}

std::string plan_text(const Json& plan) {
  const Json& steps = plan.at("steps");
  std::string text = fmt::format("plan {}: {} step{}\n", plan.at("id").get<int64_t>(), steps.size(),
                                 steps.size() == 1 ? "" : "s");
  for (const Json& mesh : plan.at("meshes")) text += mesh_text(mesh);
  for (const Json& value : plan.at("sharded")) text += value_text(value);
  if (!plan.at("sharded").empty() && !steps.empty()) text += "steps\n";
  for (size_t i = 0; i < steps.size(); ++i)
    text += fmt::format("  {:>3} {}\n", i, step_text(steps[i]));
  return text;
}

}  // namespace

Json plans_of_trace(const std::string& path) {
  const std::vector<std::byte> file = trace::read_trace_file(path);
  const trace::Limits limits;
  trace::LineReader lines(file, limits);
  Json plans = Json::array();
  Names kernels;
  uint64_t number = 0;
  for (auto line = lines.next(); line; line = lines.next()) {
    if (++number == 1) trace::parse_header(*line, path);
    if (!may_be_of_plan(*line)) continue;
    try {
      require(trace::fits(*line, limits), "it nests too deep or has too many values");
      const Json json = Json::parse(*line);
      if (json.at("t") == "kernel") kernels[json.at("id")] = json.at("name");
      if (json.at("t") == "plan") plans.push_back(plan_of(json, kernels));
    } catch (const std::exception& e) {
      fail(ErrorKind::User, "[explain] {}: line {} is damaged ({}); record the program again", path,
           number, e.what());
    }
  }
  require(number > 0, "[trace] {} is not a trace, or was cut off before its first line", path);
  if (const std::string why = describe(lines.ending(), number, path); !why.empty())
    log_warning("{}", why);
  return plans;
}

std::string plans_text(const Json& plans) {
  std::string text;
  try {
    for (const Json& plan : plans) text += (text.empty() ? "" : "\n") + plan_text(plan);
  } catch (const nlohmann::json::exception& e) {
    fail(ErrorKind::User, "[explain] a plan is damaged ({}); record the program again", e.what());
  }
  return sanitise_text(text.empty() ? "the program made no plan\n" : text);
}

}  // namespace plugrad::tools
