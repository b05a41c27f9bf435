#include "scale/machine.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/check.h"
#include "base/child_process.h"
#include "base/file.h"
#include "base/text.h"
#include "cost/calibration_text.h"

namespace plugrad::tools::scale {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiga = 1e9, kTera = 1e12, kMicro = 1e-6;

/// An object of the file: each key is read once, and none may be left.
class Section {
 public:
  Section(const Json& json, std::string source, std::string path)
      : json_(json), source_(std::move(source)), path_(std::move(path)) {
    if (!json.is_object()) refuse(path_.empty() ? "the file" : path_, "is no object");
  }

  bool has(const char* key) const { return json_.contains(key); }
  double number(const char* key, double scale = 1) { return positive(key, false) * scale; }
  double number_or_zero(const char* key, double scale) { return positive(key, true) * scale; }
  double share(const char* key) {
    const double value = positive(key, false);
    if (value > 1) refuse(name(key), "is more than 1");
    return value;
  }
  double share_or_one(const char* key) { return has(key) ? share(key) : (note(key), 1); }
  uint32_t count(const char* key) {
    const double value = number(key);
    if (value != std::floor(value) || value > 1e6)
      refuse(name(key), "is no whole number up to 1000000");
    return static_cast<uint32_t>(value);
  }
  std::string text(const char* key) {
    if (!member(key).is_string()) refuse(name(key), "is no text");
    return json_[key].get<std::string>();
  }
  Section section(const char* key) { return {member(key), source_, name(key)}; }
  void ignore(const char* key) { note(key); }
  std::vector<std::string> keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : json_.items()) keys.push_back(key);
    return keys;
  }
  [[noreturn]] void refuse(const std::string& what, const std::string& why) const {
    fail(ErrorKind::User, "[plan-scale] {}: {} {}", source_, what, why);
  }
  std::string name(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

  /// Errors: User for keys that nothing has read.
  void finish() const {
    const std::vector<std::string> known(known_.begin(), known_.end());
    for (const std::string& key : keys()) {
      if (known_.contains(key)) continue;
      const std::string nearest = nearest_name(key, known);
      refuse(name(key), nearest.empty()
                            ? fmt::format("is unknown; known are {}", fmt::join(known, ", "))
                            : "is unknown; did you mean " + nearest + "?");
    }
  }

 private:
  void note(const char* key) { known_.insert(key); }
  const Json& member(const char* key) {
    note(key);
    if (!has(key)) refuse(name(key), "is missing");
    return json_[key];
  }
  double positive(const char* key, bool or_zero) {
    const Json& value = member(key);
    const double number = value.is_number() ? value.get<double>() : -1;
    if (!std::isfinite(number) || number < 0 || (number == 0 && !or_zero))
      refuse(name(key), or_zero ? "must be a number from 0 on" : "must be a number above 0");
    return number;
  }

  const Json& json_;
  std::string source_, path_;
  std::set<std::string> known_;
};

Algorithm parse_algorithm(Section& section) {
  const std::string text = section.text("algorithm");
  if (text != "ring" && text != "direct")
    section.refuse(section.name("algorithm"), "is \"" + text + "\", not \"ring\" or \"direct\"");
  return text == "ring" ? Algorithm::Ring : Algorithm::Direct;
}

Link parse_link(Section section) {
  Link link{.bytes_per_second = section.number("gigabytes_per_second", kGiga),
            .latency_seconds = section.number_or_zero("latency_us", kMicro),
            .algorithm = parse_algorithm(section)};
  section.finish();
  return link;
}

Efficiency parse_efficiency(Section section) {
  const Efficiency efficiency{section.share_or_one("matrix"), section.share_or_one("vector"),
                              section.share_or_one("memory")};
  section.finish();
  return efficiency;
}

std::map<DType, double> parse_matrix_rates(Section section) {
  constexpr DType kKnown[] = {DType::F64, DType::F32, DType::F16, DType::BF16};
  std::map<DType, double> rates;
  for (const DType dtype : kKnown) {
    const std::string name(name_of(dtype));
    if (section.has(name.c_str())) rates[dtype] = section.number(name.c_str(), kTera);
    section.ignore(name.c_str());
  }
  section.finish();
  return rates;
}

schedule::Options gpu_planning() {
  pgr_device_caps caps{};
  caps.has_local = 1;
  caps.subgroup_size = 32;
  schedule::Options options;
  options.threads = 128;  // multiprocessors
  options.subgroup = caps.subgroup_size;
  options.machine = cost::table_machine("gpu", caps);
  return options;
}

/// Facts of a CPU for the scheduler; `plugrad plan-scale --measure` writes them.
schedule::Options parse_planning(Section section) {
  schedule::Options options;
  options.threads = section.count("threads");
  options.lanes = section.count("lanes");
  options.cache_bytes = static_cast<uint64_t>(section.number_or_zero("cache_bytes", 1));
  options.scratch_bytes = static_cast<uint64_t>(section.number_or_zero("scratch_bytes", 1));
  options.max_params = section.count("max_params");
  pgr_device_caps caps{};
  caps.threads = options.threads;
  caps.vector_lanes[static_cast<size_t>(DType::F32)] = options.lanes;
  options.machine = cost::table_machine(section.text("arch"), caps);
  Section processor = section.section("processor");
  for (const cost::Field& field : cost::fields())
    field.of(options.machine) = processor.number(field.name.c_str());
  processor.finish();
  if (const std::string problem = cost::problem_of(options.machine); !problem.empty())
    section.refuse(section.name("processor"), "is not possible: " + problem);
  section.finish();
  return options;
}

Device parse_device(Section section) {
  Device device{.name = section.text("name"),
                .memory_bytes = section.number("memory_gigabytes", kGiga),
                .memory_rate = section.number("memory_gigabytes_per_second", kGiga),
                .vector_rate = section.number("vector_teraflops", kTera),
                .launch_seconds = section.number_or_zero("launch_us", kMicro)};
  if (section.has("matrix_teraflops"))
    device.matrix_rate = parse_matrix_rates(section.section("matrix_teraflops"));
  section.ignore("matrix_teraflops");
  if (section.has("efficiency"))
    device.efficiency = parse_efficiency(section.section("efficiency"));
  section.ignore("efficiency");
  device.is_gpu = !section.has("cpu");
  device.planning = device.is_gpu ? gpu_planning() : parse_planning(section.section("cpu"));
  section.ignore("cpu");
  section.finish();
  return device;
}

std::string machines_folder() {
  return program_beside("../share/plugrad/machines");
}

/// Errors: User with the line and column at which the text ceases to be JSON.
Json parse_json(std::string_view text, const std::string& source) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    // Counted here, since the library says column 0 of a number at the end of a line.
    const std::string_view read = text.substr(0, error.byte), what = error.what();
    const std::string_view before = read.substr(0, read.empty() ? 0 : read.size() - 1);
    fail(ErrorKind::User, "[plan-scale] {} is no JSON at line {}, column {}: {}", source,
         std::ranges::count(before, '\n') + 1, before.size() - (before.rfind('\n') + 1) + 1,
         what.substr(what.find(": ") + 2));
  }
}

}  // namespace

Machine parse_machine(std::string_view text, const std::string& source) {
  const Json json = parse_json(text, source);
  Section section(json, source, "");
  Machine machine;
  machine.name = section.text("name");
  section.ignore("sources");  // for readers
  machine.device = parse_device(section.section("device"));
  machine.nodes = section.count("nodes");
  machine.devices_per_node = section.count("devices_per_node");
  if (machine.devices_per_node > 1) machine.link = parse_link(section.section("link"));
  if (machine.nodes > 1) machine.network = parse_link(section.section("network"));
  section.ignore("link");
  section.ignore("network");
  if (section.has("all_at_work")) {
    Section shared = section.section("all_at_work");
    machine.shared_compute = shared.share("compute");
    machine.shared_memory = shared.share("memory");
    shared.finish();
  }
  section.ignore("all_at_work");
  section.finish();
  return machine;
}

namespace {

Json link_json(const Link& link) {
  return {{"gigabytes_per_second", link.bytes_per_second / kGiga},
          {"latency_us", link.latency_seconds / kMicro},
          {"algorithm", link.algorithm == Algorithm::Ring ? "ring" : "direct"}};
}

Json planning_json(const schedule::Options& options, std::string_view arch) {
  Json processor;
  cost::Machine machine = options.machine;
  for (const cost::Field& field : cost::fields()) processor[field.name] = field.of(machine);
  return {{"arch", arch},
          {"threads", options.threads},
          {"lanes", options.lanes},
          {"cache_bytes", options.cache_bytes},
          {"scratch_bytes", options.scratch_bytes},
          {"max_params", options.max_params},
          {"processor", std::move(processor)}};
}

}  // namespace

std::string to_json(const Machine& machine, std::string_view arch) {
  const Device& from = machine.device;
  Json device = {{"name", from.name},
                 {"memory_gigabytes", from.memory_bytes / kGiga},
                 {"memory_gigabytes_per_second", from.memory_rate / kGiga},
                 {"vector_teraflops", from.vector_rate / kTera},
                 {"launch_us", from.launch_seconds / kMicro}};
  for (const auto& [dtype, rate] : from.matrix_rate)
    device["matrix_teraflops"][std::string(name_of(dtype))] = rate / kTera;
  device["efficiency"] = {{"matrix", from.efficiency.matrix},
                          {"vector", from.efficiency.vector},
                          {"memory", from.efficiency.memory}};
  if (!from.is_gpu) device["cpu"] = planning_json(from.planning, arch);
  Json json = {{"name", machine.name},
               {"device", std::move(device)},
               {"nodes", machine.nodes},
               {"devices_per_node", machine.devices_per_node}};
  if (machine.devices_per_node > 1) json["link"] = link_json(machine.link);
  if (machine.nodes > 1) json["network"] = link_json(machine.network);
  json["all_at_work"] = {{"compute", machine.shared_compute}, {"memory", machine.shared_memory}};
  return json.dump(2) + "\n";
}

std::vector<std::string> shipped_machines() {
  std::vector<std::string> names;
  for (const std::string& file :
       names_in_folder(machines_folder()).value_or(std::vector<std::string>()))
    if (file.ends_with(".json")) names.push_back(file.substr(0, file.size() - 5));
  return names;
}

Machine read_machine(const std::string& given) {
  const bool is_path = given.find('/') != std::string::npos || given.ends_with(".json");
  if (!is_path) {
    const std::vector<std::string> names = shipped_machines();
    const std::string nearest = nearest_name(given, names);
    require(
        std::ranges::find(names, given) != names.end(),
        "[plan-scale] there is no machine {}; {}shipped are {}; a file is named with its folder "
        "or as *.json",
        given, nearest.empty() ? "" : fmt::format("did you mean {}? ", nearest),
        fmt::join(names, ", "));
  }
  const std::string path = is_path ? given : machines_folder() + "/" + given + ".json";
  const auto bytes = read_file(path, 1 << 20);
  require(bytes.has_value(), "[plan-scale] the machine file {} cannot be read: {}", path,
          file_error_text(errno));
  return parse_machine({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, path);
}

}  // namespace plugrad::tools::scale
