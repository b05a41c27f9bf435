// plugrad calibrate: measures a device's machine parameters and stores them.
#include "tuning/calibration/calibrate.h"

#include <fmt/format.h>

#include "base/escaping/sanitise_text.h"
#include "base/file.h"
#include "command.h"
#include "cost/calibration_text.h"
#include "plugrad/error.h"
#include "runtime/runtime.h"
#include "tuning/calibration/machines.h"

namespace plugrad::tools {
namespace {

const char* source_of(runtime::Device& device) {
  if (tuning::is_calibrated(device)) return "calibration";
  return cost::name_of(cost::class_of(device.info().arch, device.caps()));
}

// Grouped by unit: registers and lanes are not rates.
void print_machine(runtime::Device& device, const cost::Machine& m) {
  fmt::print("{}",
             sanitise_text(fmt::format("device       {}\n", tuning::machine_identity(device))));
  fmt::print("from         {}\n", tuning::is_calibrated(device)
                                      ? "a calibration"
                                      : fmt::format("the table, {}", source_of(device)));
  fmt::print(
      "arithmetic   {:.2f} multiply-adds a cycle of {} lanes, {:.1f} cycles each; {} registers\n",
      m.multiply_adds, m.lanes, m.latency, m.registers);
  fmt::print("access       {:.2f} loads and {:.2f} stores a cycle\n", m.loads, m.stores);
  fmt::print("clock        {:.2f} GHz; waking {} threads takes {:.0f} cycles\n",
             m.cycles_a_second * 1e-9, m.threads, m.wake_cycles);
  const char* const names[] = {"L1", "L2", "L3", "memory"};
  for (size_t i = 0; i < m.levels.size(); ++i) {
    const std::string size =
        i < 3 ? fmt::format("{:.0f} KiB", m.levels[i].bytes / 1024) : std::string();
    fmt::print("{:<12} {:<10} {:.1f} bytes a cycle for one thread, {:.1f} for all\n", names[i],
               size, m.levels[i].one, m.levels[i].all);
  }
}

void print_figures(runtime::Device& device, cost::Machine m) {
  nlohmann::ordered_json figures;
  for (const cost::Field& field : cost::fields()) figures[field.name] = field.of(m);
  print_json({{"device", tuning::machine_identity(device)},
              {"path", tuning::calibration_path(device)},
              {"source", source_of(device)},
              {"figures", figures}});
}

// A measurement disturbed by other programs fails, and the previous table remains in use.
int measure(runtime::Device& device) {
  std::string problem;
  const auto machine = tuning::calibrate(device, problem);
  if (!machine) {
    fmt::print(stderr, "plugrad: {} is not calibrated, the table is used: {}\n", device.name(),
               sanitise_text(problem));
    return kFailure;
  }
  if (const int error = tuning::keep_calibration(device, *machine)) {
    fmt::print(stderr, "plugrad: the calibration cannot be kept in {}: {}\n",
               sanitise_text(tuning::calibration_path(device)), file_error_text(error));
    return kFailure;
  }
  return kSuccess;
}

}  // namespace

Syntax calibrate_syntax() {
  Syntax syntax{.usage = "plugrad calibrate [--device DEVICE] [--show | --forget] [--json]"};
  syntax.options.add_options()("device", boost::program_options::value<std::string>(),
                               "device to measure; otherwise the default one");
  syntax.options.add_options()("show", "measure nothing; print what is known");
  syntax.options.add_options()("forget", "measure nothing; remove what was measured");
  syntax.options.add_options()("json", "one JSON document");
  return syntax;
}

int run_calibrate(const Arguments& arguments) {
  const Syntax syntax = calibrate_syntax();
  const Parsed parsed = parse(arguments, syntax);
  if (parsed.help) return kSuccess;
  if (parsed.has("show") && parsed.has("forget"))
    throw UsageError("say --show or --forget\nusage: " + syntax.usage);
  if (parsed.has("device")) choose_device(parsed.get<std::string>("device"));
  runtime::Device& device = runtime::Registry::instance().default_device();
  int result = kSuccess;
  if (parsed.has("forget"))
    tuning::forget_calibration(device);
  else if (!parsed.has("show"))
    result = measure(device);
  const auto machine = tuning::machine_of(device);
  if (parsed.has("json"))
    print_figures(device, *machine);
  else
    print_machine(device, *machine);
  return result;
}

}  // namespace plugrad::tools
