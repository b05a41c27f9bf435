// Random programs as jitted functions: leaves are arguments with new values in each call, and one
// leaf is a captured tensor that the program may assign. Every call, replayed or not, computes the
// program's meaning for the current values. PLUGRAD_TEST_SEED and PLUGRAD_TEST_PROGRAMS as in
// programs_test.cpp.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/settings.h"
#include "plugrad/device.h"
#include "plugrad/error.h"
#include "plugrad/jit.h"
#include "programs/compare.h"
#include "programs/environment.h"
#include "programs/perform.h"

namespace plugrad::programs {
namespace {

constexpr int kCalls = 5;
constexpr uint64_t kJittedSeed = 30001, kJittedPrograms = 60;

bool is_jitted_host_leaf(const Step& step) {
  return step.operation->family == std::string_view("leaf") &&
         std::string_view(step.operation->name).ends_with("leaf");
}

// Reads values, which a recording refuses.
bool reads(const Step& step) {
  return step.operation->name == std::string_view("look");
}

/// A value for a leaf: its seed is the last of its numbers.
Tensor leaf_value(Step step, int call) {
  World world(true);
  step.numbers.back() += call;
  return perform(world, step, nullptr) ? *world.slots.at({step.id, 0}).tensor : Tensor();
}

void put_leaf(World& world, int id, const Tensor& value) {
  const bool real = is_float(value.dtype());
  world.slots[{id, 0}] = {std::make_shared<Tensor>(value), real, real};
}

class JittedProgram {
 public:
  explicit JittedProgram(Program program) : program_(std::move(program)) {
    World world(true);
    for (Step step : program_.steps)
      if (!reads(step) && perform(world, step, nullptr))
        (is_jitted_host_leaf(step) ? leaves_ : steps_).push_back(step);
    const bool has_outside = program_.seed % 2 == 0;
    if (!leaves_.empty()) outside_ = in_world(leaf_value(leaves_[0], 0));
    first_argument_ = has_outside ? 1 : 0;
  }

  std::string fault() {
    if (leaves_.empty()) return {};
    const auto f = jit([this](const std::vector<Tensor>& arguments) { return work(arguments); });
    for (int call = 0; call < kCalls; ++call) {
      World pure(true);
      std::vector<Tensor> arguments;
      const std::vector<std::byte> before = outside_.to_bytes();
      if (first_argument_ == 1)
        put_leaf(pure, leaves_[0].id,
                 Tensor::from_bytes(before, outside_.shape(), outside_.dtype()));
      for (size_t i = first_argument_; i < leaves_.size(); ++i) {
        put_leaf(pure, leaves_[i].id, leaf_value(leaves_[i], call));
        arguments.push_back(in_world(leaf_value(leaves_[i], call)));
      }
      for (Step step : steps_)
        if (!perform(pure, step, nullptr)) return {};  // fits for other values alone
      const auto expected = expected_of(pure);
      const std::vector<Tensor> made = f(arguments);
      size_t i = 0;
      for (const auto& [variable, slot] : pure.slots) {
        const std::string difference = first_difference(made[i], expected[i]);
        if (!difference.empty())
          return fmt::format("call {}, {}: {}", call, name_of(variable), difference);
        ++i;
      }
      if (first_argument_ == 0) continue;
      const std::string difference = first_difference(outside_, expected[0]);
      if (!difference.empty())
        return fmt::format("call {}, the tensor outside: {}", call, difference);
    }
    replayed = f.recordings() > 0;
    return {};
  }

  bool replayed = false;

 private:
  static Tensor in_world(Tensor value) {
    if (is_float(value.dtype())) value.requires_grad_();
    return value;
  }

  std::vector<Tensor> work(const std::vector<Tensor>& arguments) {
    World world(false);
    if (first_argument_ == 1) put_leaf(world, leaves_[0].id, outside_);
    for (size_t i = first_argument_; i < leaves_.size(); ++i)
      put_leaf(world, leaves_[i].id, arguments[i - first_argument_]);
    for (Step step : steps_)
      if (!perform(world, step, nullptr))
        throw std::runtime_error("a step fits in the pure world only");
    std::vector<Tensor> made;
    for (const auto& [variable, slot] : world.slots) made.push_back(*slot.tensor);
    return made;
  }

  Program program_;
  std::vector<Step> leaves_, steps_;
  Tensor outside_;
  size_t first_argument_ = 0;
};

TEST(Jitted, EveryCallComputesWhatTheProgramMeans) {
  const uint64_t first = number_from("PLUGRAD_TEST_SEED", kJittedSeed);
  const uint64_t count = number_from("PLUGRAD_TEST_PROGRAMS", kJittedPrograms);
  const SettingScope scope([](Settings& s) { s.contract = false; });
  uint64_t replayed = 0, refused = 0;
  int failures = 0;
  for (uint64_t seed = first; seed < first + count && failures < 5; ++seed) {
    const Program program = make_program(seed);
    Device::set_default_device(program.device);
    std::string fault;
    try {
      JittedProgram jitted(program);
      fault = jitted.fault();
      replayed += jitted.replayed;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::User && std::strstr(error.what(), "[jit]"))
        ++refused;
      else
        fault = error.what();
    }
    if (fault.empty()) continue;
    ++failures;
    ADD_FAILURE() << fmt::format(
        "PLUGRAD_TEST_SEED={} PLUGRAD_TEST_PROGRAMS=1 repeats this: {}\n{}", seed, fault,
        to_text(program));
  }
  RecordProperty("refused", static_cast<int>(refused));
  if (failures > 0) return;
  EXPECT_GE(4 * replayed, 3 * count) << refused << " were refused";
}

}  // namespace
}  // namespace plugrad::programs
