// docs/onnx-operators.md: the operators of ONNX that plugrad has, and the test cases of ONNX that it
// does not pass.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "onnx/import/call.h"

namespace plugrad::onnx {
namespace {

constexpr char kHead[] =
    "# Operators of ONNX files\n\n"
    "Written by `tools/update-onnx-operators` from the tables of `core/src/onnx/ops` and from "
    "`tests/python/onnx/failing_cases.tsv`; a test compares them. [onnx.md](onnx.md) says how "
    "models "
    "are run.\n\n"
    "| domain | number | operators |\n|---|---|---|\n";

std::string rows_of_operators() {
  std::map<std::string, std::pair<int, std::string>> by_domain;
  for (const auto& [key, row] : all_operators()) {
    auto& [count, names] = by_domain[key.first.empty() ? "ai.onnx" : std::string(key.first)];
    names += (count++ == 0 ? "" : ", ") + std::string(key.second);
  }
  std::string text;
  for (const auto& [domain, operators] : by_domain)
    text +=
        "| " + domain + " | " + std::to_string(operators.first) + " | " + operators.second + " |\n";
  return text;
}

std::string rows_of_cases() {
  std::ifstream file(PLUGRAD_SOURCE_DIR "/tests/python/onnx/failing_cases.tsv");
  std::map<std::string, std::string> by_reason;
  for (std::string name, reason; std::getline(file, name, '\t') && std::getline(file, reason);)
    by_reason[reason] += (by_reason[reason].empty() ? "" : ", ") + name;
  std::string text;
  for (const auto& [reason, names] : by_reason) text += "| " + reason + " | " + names + " |\n";
  return text;
}

TEST(OnnxOperatorsPage, lists_operators_and_cases_that_do_not_pass) {
  const std::string path = PLUGRAD_SOURCE_DIR "/docs/onnx-operators.md";
  const std::string text = kHead + rows_of_operators() +
                           "\n## Node cases that do not pass\n\nOf the package onnx 1.23.2, on all "
                           "devices.\n\n| reason | cases |\n|---|---|\n" +
                           rows_of_cases();
  if (std::getenv("UPDATE_ONNX_OPERATORS") != nullptr) std::ofstream(path) << text;
  std::stringstream file;
  file << std::ifstream(path).rdbuf();
  EXPECT_TRUE(file.str() == text)
      << "docs/onnx-operators.md differs from the tables; run tools/update-onnx-operators";
}

}  // namespace
}  // namespace plugrad::onnx
