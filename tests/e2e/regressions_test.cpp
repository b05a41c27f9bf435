// Small graphs that some device once computed wrongly or not at all, as textual IR. Findings of the
// random graphs are added here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/settings.h"
#include "engine/session.h"
#include "ir/text/parser.h"
#include "oracle/evaluator.h"

using namespace plugrad;
using engine::Session;
using engine::StatePtr;

namespace {

constexpr const char* kRegressions[] = {
    // The load of %0 is removed: the kernel has fewer parameters than the plan provides.
    "%0 = buffer i16 [0, 1, 9]\n%1 = sub i16 %0, %0\nreturn %1",
    "%0 = buffer u64 [0, 1, 3]\n%1 = neg u64 %0\n%2 = pad u64 %1 [0, 1]\n%3 = reduce u64 %2 [max, "
    "0]\n"
    "%4 = xor u64 %3, %3\nreturn %4",
    // A rule with right side 0 was a null function.
    "%0 = buffer u32 [0, 1, 4]\n%1 = xor u32 %0, %0\nreturn %1",
    "%0 = buffer u8 [0, 1, 9]\n%1 = floormod u8 %0, %0\nreturn %1",
    // One part of the reduced lanes is constant.
    "%0 = buffer f32 [0, 1, 3, 2]\n%1 = sub f32 %0, %0\n%2 = sub f32 %0, %1\n%3 = pad f32 %2 [0, "
    "0, 2, 2]\n"
    "%4 = reduce f32 %3 [max, 0, 1]\nreturn %4",
    // Halves are computed in f32 and rounded after every op.
    "%0 = buffer bf16 [0, 1, 5, 3]\n%1 = add bf16 %0, %0\n%2 = mul bf16 %1, %0\nreturn %2",
    "%0 = buffer f16 [0, 1, 6]\n%1 = mul f16 %0, %0\n%2 = sqrt f16 %1\n%3 = add f16 %2, %0\nreturn "
    "%3",
    // The compiler turned the saturating cast into a call of fmaxf.
    "%0 = buffer f16 [0, 1, 1, 1, 3]\n%1 = cast u32 %0\n%2 = neg u32 %1\n%3 = expand u32 %2 [5, 4, "
    "3]\nreturn %3",
    // Vectors of bool in C.
    "%0 = buffer bool [0, 1, 6, 5]\n%1 = xor bool %0, %0\n%2 = and bool %0, %1\nreturn %2, %1",
};

// Quarters, wrapped or rounded to the dtype.
std::vector<std::byte> values_for(DType dtype, size_t count) {
  oracle::Array array{dtype, {}, {}};
  for (size_t i = 0; i < count; ++i) {
    const auto quarters = static_cast<int64_t>(i * 7 % 33) - 16;
    array.bits.push_back(is_float(dtype) ? bits_of(0.25 * static_cast<double>(quarters), dtype)
                                         : bits_of(quarters, dtype));
  }
  return oracle::to_bytes(array);
}

// Imports `text` into the session's graph, with buffers of fresh values.
std::vector<StatePtr> import(Session& session, const char* text, uint32_t device) {
  Graph parsed;
  const std::vector<Id> roots = parse(parsed, text);
  Graph& graph = session.graph();
  std::vector<Id> now(parsed.size());
  for (Id id = 0; id < parsed.size(); ++id) {
    const Node& node = parsed[id];
    const bool has_list = op_info(node.op).arg == ArgKind::List;
    if (node.op == Op::Buffer) {
      const auto shape = parsed.arg_list(id).subspan(2);
      now[id] =
          session.store_host(shape, node.dtype, device,
                             values_for(node.dtype, static_cast<size_t>(element_count(shape))));
      continue;
    }
    std::vector<Id> sources;
    for (Id source : parsed.sources(id)) sources.push_back(now[source]);
    now[id] = graph.add(node.op, node.dtype, sources,
                        has_list ? graph.list(parsed.arg_list(id)) : node.arg);
  }
  std::vector<StatePtr> states;
  for (Id root : roots) states.push_back(session.make(now[root]));
  return states;
}

class Regressions : public testing::TestWithParam<const char*> {};

TEST_P(Regressions, AgreeWithTheEvaluator) {
  Session& session = Session::current();
  const SettingScope strict([](Settings& s) { s.contract = false; });
  for (const char* text : kRegressions) {
    SCOPED_TRACE(text);
    const Session::Lock lock(session);
    for (const StatePtr& state : import(session, text, session.device_number(GetParam()))) {
      const oracle::Array want = oracle::evaluate(*state);
      std::vector<std::byte> got(oracle::to_bytes(want).size());
      ASSERT_NO_THROW(session.read(*state, got));
      EXPECT_EQ(oracle::from_bytes(want.dtype, want.shape, got).bits, want.bits);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Device, Regressions, testing::Values("CPU", "REFERENCE"),
                         [](const auto& device) { return std::string(device.param); });

}  // namespace
