// Runs the op cases: a test a row, named family/row. Settings of a run, from the environment:
//   PLUGRAD_TEST_OPS_DUMP=folder   writes files for compare_with_torch.py and checks nothing else
//   PLUGRAD_TEST_ONNX=folder       writes ONNX files for tests/python/onnx/exported_files.py, and
//                                  checks what they compute when they are loaded again
//   PLUGRAD_TEST_OPS_WORK=n        skips rows whose graphs have more than n elements, for slow
//   devices
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "ops/runner/check.h"
#include "ops/runner/inputs.h"
#include "ops/runner/work.h"
#include "oracle/reference_options.h"

namespace plugrad::ops {
namespace {

std::vector<Entry>& entries() {
  static std::vector<Entry> list;
  return list;
}

class RowTest : public testing::Test {
 public:
  explicit RowTest(const Entry& entry) : entry_(entry) {}
  void TestBody() override {
    Tensor::manual_seed(7);
    if (const char* folder = std::getenv("PLUGRAD_TEST_OPS_DUMP")) return dump(entry_, folder);
    if (std::getenv("PLUGRAD_TEST_ONNX")) return check_exported(entry_);
    if (too_large()) GTEST_SKIP() << "more than PLUGRAD_TEST_OPS_WORK";
    try {
      check_against_evaluator(entry_);
      if (!HasFatalFailure() && entry_.row.checks.differences) check_differences(entry_);
    } catch (const Error& e) {  // only the evaluator of tensor graphs refuses written kernels
      if (!std::string_view(e.what()).starts_with("[evaluate]")) throw;
      GTEST_SKIP() << "made by a written kernel; PyTorch and the unit tests judge it";
    }
  }

 private:
  bool too_large() const {
    const char* most = std::getenv("PLUGRAD_TEST_OPS_WORK");
    if (!most) return false;
    const In inputs = inputs_of(entry_, input_values(entry_), false);
    return work_of(entry_.row.function(inputs).tensors) > std::atoll(most);
  }
  const Entry& entry_;
};

void register_rows() {
  std::set<std::string> names;
  for (const Entry& entry : all_cases()) {
    if (!names.insert(entry.family + "/" + entry.row.name).second) {
      std::fprintf(stderr, "two rows are named %s/%s\n", entry.family.c_str(),
                   entry.row.name.c_str());
      std::exit(1);
    }
    testing::RegisterTest(entry.family.c_str(), entry.row.name.c_str(), nullptr, nullptr, __FILE__,
                          __LINE__, [&entry]() -> testing::Test* { return new RowTest(entry); });
  }
}

}  // namespace

Family::Family(const char* name, std::vector<Case> rows) {
  for (Case& row : rows) entries().push_back({name, std::move(row)});
}

const std::vector<Entry>& all_cases() {
  return entries();
}

}  // namespace plugrad::ops

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  plugrad::oracle::set_reference_options();
  plugrad::ops::register_rows();
  return RUN_ALL_TESTS();
}
