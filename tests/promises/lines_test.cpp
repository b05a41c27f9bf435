// Operations of a trace have the lines of any program, wherever its files are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "plugrad/tensor.h"
#include "unit/base/temporary_directory.h"
#include "unit/base/trace_lines.h"

using namespace plugrad;

namespace {

#line 100 "/application/core/src/model.cpp"
float sum_of_a_program() {
  const Tensor x = Tensor::full({16}, 0.5f, DType::F32, "CPU");
  return (x + x).sum().item<float>();
}

}  // namespace
#line 27 "lines_test.cpp"

TEST(Trace, AProgramMayHaveDirectoriesNamedAsThoseOfTheLibrary) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  const pid_t child = fork();
  if (child == 0) {
    setenv("PLUGRAD_TRACE", path.c_str(), 1);  // nothing has read the settings yet
    std::exit(sum_of_a_program() == 16 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  auto lines = trace_lines(path);
  ASSERT_GE(lines["operation"].size(), 3u);
  for (const auto& operation : lines["operation"]) {
    EXPECT_EQ(operation["file"], "/application/core/src/model.cpp") << operation;
    EXPECT_GE(operation["line"], 100);
  }
}
