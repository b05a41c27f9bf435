// Traces say why plans were made.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "devices/traced_program.h"
#include "plugrad/source_scope.h"
#include "plugrad/tensor.h"

using namespace plugrad;
using nlohmann::json;

namespace {

TEST(TraceOfCauses, EachPlanThatIsMadeHasItsCauseAndLine) {
  const Traced traced = trace_of([] {
    const Tensor x = Tensor::ones({3, 4}, DType::F32, "CPU").contiguous().realize();
    const auto work = [&](const Tensor& given, double k, uint32_t line) {
      const SourceScope scope("train.cpp", line, "scale");
      (given * k).sin().realize();
    };
    work(x, 0.25, 1);
    work(x, 0.5, 2);
    work(x, 0.75, 3);
    work(x.cast(DType::F64).realize(), 0.75, 4);
    return json::object();
  });
  std::map<uint32_t, json> operations;
  for (const json& each : traced.lines.at("operation")) operations[each["id"]] = each;
  std::vector<std::string> rows;
  int64_t kernels = 0;
  for (const json& miss : traced.lines.at("miss")) {
    const json& operation = operations.at(miss["operation"]);
    if (operation["file"] != "train.cpp") continue;
    rows.push_back(fmt::format("{} {} {}", operation["line"].get<int>(),
                               miss["cause"].get<std::string>(), miss["text"].get<std::string>()));
    kernels += miss["kernels"].get<int64_t>();
    EXPECT_GT(miss["compile_ns"], 0);
  }
  EXPECT_THAT(rows,
              testing::ElementsAre("1 first of its kind ", "2 number a number is 0.5, was 0.25",
                                   "4 dtype the dtype of an operand is f64, was f32"));
  EXPECT_EQ(kernels, 3);
}

}  // namespace
