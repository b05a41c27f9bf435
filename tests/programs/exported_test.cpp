// Random programs as ONNX files: leaves are inputs, one leaf is a constant of the file, and the
// loaded file computes the program's meaning. Gradients are left out. PLUGRAD_TEST_SEED and
// PLUGRAD_TEST_PROGRAMS as in programs_test.cpp; PLUGRAD_TEST_ONNX as in exported/round_trip.h.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/settings.h"
#include "exported/round_trip.h"
#include "plugrad/device.h"
#include "plugrad/error.h"
#include "programs/compare.h"
#include "programs/environment.h"
#include "programs/perform.h"

namespace plugrad::programs {
namespace {

constexpr uint64_t kSeed = 40001, kExportedPrograms = 60;

bool is_host_leaf(const Step& step) {
  return step.operation->family == std::string_view("leaf") &&
         std::string_view(step.operation->name).ends_with("leaf");
}

class ExportedProgram {
 public:
  explicit ExportedProgram(const Program& program) : seed_(program.seed) {
    World world(true);
    for (Step step : program.steps) {
      if (step.operation->family == std::string_view("gradient")) continue;
      if (!perform(world, step, nullptr)) continue;
      if (!is_host_leaf(step)) {
        steps_.push_back(step);
        continue;
      }
      leaves_.push_back(step.id);
      values_.push_back(value_of(step));
    }
  }

  std::string fault(const exported::Folder& folder) const {
    World pure(true);
    for (size_t i = 0; i < leaves_.size(); ++i) put(pure, i, values_[i]);
    for (Step step : steps_)
      if (!perform(pure, step, nullptr)) return "a step no longer fits";
    const auto expected = expected_of(pure);
    const std::vector<Tensor> inputs(values_.begin() + 1, values_.end());
    const std::string name = fmt::format("program_{}", seed_);
    const auto work = [&](const std::vector<Tensor>& given) { return results(given); };
    const std::vector<Tensor> made = folder.round_trip(name, work, inputs);
    std::vector<Tensor> direct;
    std::vector<std::vector<double>> errors;
    size_t i = 0;
    for (const auto& [variable, slot] : pure.slots) {
      const std::string difference = first_difference(made[i], expected[i]);
      if (!difference.empty()) return fmt::format("{}: {}", name_of(variable), difference);
      direct.push_back(*slot.tensor);
      errors.emplace_back(static_cast<size_t>(slot.tensor->numel()));
      for (size_t k = 0; k < errors.back().size(); ++k)
        errors.back()[k] = 4 * expected[i].error_of(k);  // of two results, each twice
      ++i;
    }
    folder.keep(name, inputs, direct, errors);
    return {};
  }

 private:
  static Tensor value_of(Step step) {
    World world(true);
    perform(world, step, nullptr);
    return *world.slots.at({step.id, 0}).tensor;
  }

  void put(World& world, size_t number, const Tensor& value) const {
    world.slots[{leaves_[number], 0}] = {std::make_shared<Tensor>(value), false, false};
  }

  // The first leaf is not an input.
  std::vector<Tensor> results(const std::vector<Tensor>& inputs) const {
    World world(true);
    put(world, 0, values_[0]);
    for (size_t i = 0; i < inputs.size(); ++i) put(world, i + 1, inputs[i]);
    for (Step step : steps_)
      if (!perform(world, step, nullptr))
        throw std::runtime_error(
            fmt::format("v{} ({}) no longer fits", step.id, step.operation->name));
    std::vector<Tensor> made;
    for (const auto& [variable, slot] : world.slots) made.push_back(*slot.tensor);
    return made;
  }

  uint64_t seed_;
  std::vector<int> leaves_;
  std::vector<Tensor> values_;
  std::vector<Step> steps_;
};

TEST(Exported, FilesComputeWhatTheProgramMeans) {
  const uint64_t first = number_from("PLUGRAD_TEST_SEED", kSeed);
  const uint64_t count = number_from("PLUGRAD_TEST_PROGRAMS", kExportedPrograms);
  const SettingScope scope([](Settings& s) { s.contract = false; });
  const exported::Folder folder;
  uint64_t refused = 0;
  int failures = 0;
  for (uint64_t seed = first; seed < first + count && failures < 5; ++seed) {
    const Program program = make_program(seed);
    Device::set_default_device("CPU");
    std::string fault;
    try {
      fault = ExportedProgram(program).fault(folder);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Unsupported) fault = error.what();
      ++refused;
    }
    if (fault.empty()) continue;
    ++failures;
    ADD_FAILURE() << fmt::format(
        "PLUGRAD_TEST_SEED={} PLUGRAD_TEST_PROGRAMS=1 repeats this: {}\n{}", seed, fault,
        to_text(program));
  }
  std::printf("%llu of %llu programs have a part that ONNX cannot express\n",
              static_cast<unsigned long long>(refused), static_cast<unsigned long long>(count));
}

}  // namespace
}  // namespace plugrad::programs
