// Random small graphs on every built device against the evaluator: fixed seeds, and a new printed
// one each run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "base/settings.h"
#include "devices/at_hand.h"
#include "e2e/random_graph.h"
#include "ir/text/printer.h"
#include "oracle/evaluator.h"
#include "oracle/reference_options.h"

using namespace plugrad;
using e2e::Known;
using engine::Session;
using engine::StatePtr;

namespace {

constexpr int kGraphs = 60, kOps = 24;

int number_from(const char* variable, int otherwise) {
  const char* given = std::getenv(variable);
  return given ? std::atoi(given) : otherwise;
}

bool agrees(double want, double got, double error) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  return error == 0 ? want == got : std::fabs(want - got) <= 2 * error;
}

std::string first_difference(const oracle::Array& want, const oracle::Array& got, double error) {
  for (size_t i = 0; i < want.size(); ++i) {
    const bool good = is_float(want.dtype) ? agrees(want.real(i), got.real(i), error)
                                           : want.bits[i] == got.bits[i];
    if (!good)
      return fmt::format("element {}: {} expected, {} found (allowed error {})", i, want.real(i),
                         got.real(i), error);
  }
  return {};
}

oracle::Array read_all(Session& session, engine::TensorState& state) {
  const Session::Lock lock(session);
  const auto shape = session.shape(state.node);
  oracle::Array result{session.graph()[state.node].dtype, {shape.begin(), shape.end()}, {}};
  std::vector<std::byte> bytes(static_cast<size_t>(element_count(shape)) * size_of(result.dtype));
  session.read(state, bytes);
  return oracle::from_bytes(result.dtype, result.shape, bytes);
}

void check_graph(const char* device, uint64_t seed) {
  Session& session = Session::current();
  std::vector<Known> roots;
  std::vector<StatePtr> states;
  std::vector<engine::TensorState*> pointers;
  std::string text;
  {
    const Session::Lock lock(session);
    roots = e2e::RandomGraph(session, session.device_number(device), seed)
                .build(number_from("PLUGRAD_TEST_OPS", kOps));
    std::vector<Id> ids;
    for (const Known& root : roots) {
      states.push_back(session.make(root.node));
      pointers.push_back(states.back().get());
      ids.push_back(root.node);
    }
    text = print(session.graph(), ids, Numbering::FromZero);
  }
  std::vector<oracle::Array> wanted;
  for (const StatePtr& state : states) wanted.push_back(oracle::evaluate(*state));
  SCOPED_TRACE(fmt::format("on {}, seed {}\n{}", device, seed, text));
  ASSERT_NO_THROW(session.realize(pointers));
  for (size_t i = 0; i < states.size(); ++i) {
    const auto got = read_all(session, *states[i]);
    EXPECT_EQ(got.shape, wanted[i].shape);
    EXPECT_EQ(first_difference(wanted[i], got, roots[i].error), "") << "root " << i;
  }
}

class RandomGraphs : public testing::TestWithParam<const char*> {
 protected:
  // A reference device with withdrawn claims: the missing ops must be decomposed.
  static void SetUpTestSuite() { oracle::set_reference_options(); }
  SettingScope strict_{[](Settings& s) { s.contract = false; }};
};

TEST_P(RandomGraphs, AgreeWithTheEvaluatorForFixedSeeds) {
  for (uint64_t seed = 1; seed <= kGraphs && !HasFailure(); ++seed) check_graph(GetParam(), seed);
}

TEST_P(RandomGraphs, AgreeWithTheEvaluatorForAGivenSeed) {
  const char* given = std::getenv("PLUGRAD_TEST_SEED");
  if (given == nullptr)
    GTEST_SKIP() << "PLUGRAD_TEST_SEED names one, PLUGRAD_TEST_COUNT how many from it on";
  const uint64_t first = std::strtoull(given, nullptr, 10);
  const auto count = static_cast<uint64_t>(number_from("PLUGRAD_TEST_COUNT", 1));
  for (uint64_t i = 0; i < count && !HasFailure(); ++i) check_graph(GetParam(), first + i);
}

TEST_P(RandomGraphs, AgreeWithoutOptimisations) {
  const SettingScope plain([](Settings& s) { s.noopt = true; });
  for (uint64_t seed = 1; seed <= kGraphs / 3 && !HasFailure(); ++seed)
    check_graph(GetParam(), seed);
}

// Few graphs: drivers' compilers are slow.
TEST(OtherDevices, AgreeWithTheEvaluatorForAFewSeeds) {
  const SettingScope strict([](Settings& s) { s.contract = false; });
  for (const std::string& device : devices_at_hand()) {
    if (device == "CPU:0" || device == "REFERENCE:0") continue;  // tested above with more seeds
    for (uint64_t seed = 1; seed <= kGraphs / 10; ++seed) check_graph(device.c_str(), seed);
  }
}

INSTANTIATE_TEST_SUITE_P(Device, RandomGraphs, testing::Values("CPU", "REFERENCE"),
                         [](const auto& device) { return std::string(device.param); });

}  // namespace
