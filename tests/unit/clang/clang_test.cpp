// The compiler component: objects, logs, threads, contraction, disassembly, and compile time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <thread>

#include "unit/cpu_clang/stub_host.h"

namespace plugrad::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ClangComponent : public ::testing::Test {
 protected:
  using Options = std::vector<std::pair<std::string, std::string>>;

  pgr_status compile(const std::string& source, const Options& options = {},
                     uint32_t contract = PGR_CONTRACT_OFF) {
    std::vector<pgr_option> list(options.size());
    for (size_t i = 0; i < options.size(); ++i) {
      PGR_INIT(list[i], OPTION);
      list[i].key = sdk::to_pgr(options[i].first);
      list[i].value = sdk::to_pgr(options[i].second);
    }
    pgr_compile_desc desc;
    PGR_INIT(desc, COMPILE_DESC);
    desc.input = source.data();
    desc.input_bytes = source.size();
    desc.name = sdk::to_pgr("E_4");
    desc.options = list.data();
    desc.option_count = static_cast<uint32_t>(list.size());
    desc.option_stride = sizeof(pgr_option);
    desc.contract = contract;
    desc.optimize = 2;
    pgr_blob out, out_log;
    PGR_INIT(out, BLOB);
    PGR_INIT(out_log, BLOB);
    const pgr_status status = compiler_->compile(nullptr, &desc, &out, &out_log, &error_.error);
    object_ = out.data ? take(out) : std::string();
    log_ = out_log.data ? take(out_log) : std::string();
    return status;
  }
  std::string disassembly() {
    pgr_blob text;
    PGR_INIT(text, BLOB);
    EXPECT_EQ(compiler_->disassemble(nullptr, object_.data(), object_.size(), &text, &error_.error),
              PGR_STATUS_OK);
    return take(text);
  }

  const pgr_compiler_api* compiler_ =
      static_cast<const pgr_compiler_api*>(open_component(PLUGRAD_CLANG_LIBRARY, "pgr.compiler"));
  ErrorText error_;
  std::string object_, log_;
};

const char* const kMultiplyAdd = "float k(float a, float b, float c) { return a * b + c; }\n";

TEST_F(ClangComponent, Object_IsElf_AndDisassemblesByName) {
  ASSERT_EQ(compile("int twice(int x) { return x + x; }"), PGR_STATUS_OK);
  EXPECT_THAT(object_, StartsWith("\177ELF"));
  EXPECT_THAT(disassembly(), HasSubstr("twice:"));
  EXPECT_THAT(disassembly(), HasSubstr("ret"));
}

TEST_F(ClangComponent, SameInput_GivesTheSameBytes) {
  ASSERT_EQ(compile(kMultiplyAdd), PGR_STATUS_OK);
  const std::string first = object_;
  ASSERT_EQ(compile(kMultiplyAdd), PGR_STATUS_OK);
  EXPECT_EQ(object_, first);
}

// A thread keeps its target machine from one compilation to the next.
TEST_F(ClangComponent, EarlierCompilationsOfTheThread_ChangeNothing) {
  const Options options[] = {{}, {{"cpu", "x86-64-v3"}}, {{"features", "+avx2,+fma"}}};
  const std::string source = "#pragma STDC FP_CONTRACT ON\n" + std::string(kMultiplyAdd);
  std::vector<std::string> alone, in_turn;
  for (const Options& given : options)
    for (const uint32_t contract : {PGR_CONTRACT_OFF, PGR_CONTRACT_ALLOWED})
      std::thread([&] {
        ASSERT_EQ(compile(source, given, contract), PGR_STATUS_OK);
        alone.push_back(object_);
      }).join();
  for (const Options& given : options)
    for (const uint32_t contract : {PGR_CONTRACT_OFF, PGR_CONTRACT_ALLOWED}) {
      ASSERT_EQ(compile("int f(", given, contract), PGR_STATUS_COMPILE_FAILED);
      ASSERT_EQ(compile(source, given, contract), PGR_STATUS_OK);
      in_turn.push_back(object_);
    }
  EXPECT_TRUE(in_turn == alone);
  EXPECT_NE(alone[2], alone[3]);  // with and without a fused product
}

TEST_F(ClangComponent, WrongSource_FailsWithItsLog) {
  EXPECT_EQ(compile("void k(void) {\n  return missing;\n}"), PGR_STATUS_COMPILE_FAILED);
  EXPECT_THAT(log_, HasSubstr("kernel.c:2:10: error: use of undeclared identifier 'missing'"));
  EXPECT_THAT(error_.text(), HasSubstr("kernel E_4"));
  EXPECT_EQ(compile("#include <math.h>\n"), PGR_STATUS_COMPILE_FAILED);
  EXPECT_THAT(log_, HasSubstr("'math.h' file not found"));
}

TEST_F(ClangComponent, Contraction_NeedsBothTheSourceAndTheOption) {
  const Options fma = {{"features", "+avx2,+fma"}};
  const std::string allowed = std::string("#pragma clang fp contract(fast)\n") + kMultiplyAdd;
  const std::string forbidden = std::string("#pragma clang fp contract(off)\n") + kMultiplyAdd;
  ASSERT_EQ(compile(allowed, fma, PGR_CONTRACT_ALLOWED), PGR_STATUS_OK);
  EXPECT_THAT(disassembly(), HasSubstr("vfmadd"));
  ASSERT_EQ(compile(allowed, fma, PGR_CONTRACT_OFF), PGR_STATUS_OK);
  EXPECT_THAT(disassembly(), Not(HasSubstr("vfmadd")));
  ASSERT_EQ(compile(forbidden, fma, PGR_CONTRACT_ALLOWED), PGR_STATUS_OK);
  EXPECT_THAT(disassembly(), Not(HasSubstr("vfmadd")));
}

TEST_F(ClangComponent, WrongOptions_AreNamed) {
  EXPECT_EQ(compile("", {{"speed", "9"}}), PGR_STATUS_INVALID_ARGUMENT);
  EXPECT_THAT(error_.text(), HasSubstr("\"speed\""));
  EXPECT_EQ(compile("", {{"language", "fortran"}}), PGR_STATUS_UNSUPPORTED);
  EXPECT_EQ(compile("", {{"target", "z80-unknown"}}), PGR_STATUS_COMPILE_FAILED);
  EXPECT_THAT(log_, HasSubstr("z80-unknown"));
  EXPECT_EQ(compile("", {{"cpu", "pentium99"}}), PGR_STATUS_COMPILE_FAILED);
  EXPECT_THAT(log_, HasSubstr("pentium99"));
}

const char* const kCudaSum =
    "extern \"C\" __attribute__((global)) void k(float *a, const float *b, const float *c) {\n"
    "  const int i = __nvvm_read_ptx_sreg_tid_x();\n"
    "  a[i] = a[i] * b[i] + c[i] / b[i];\n}\n";

TEST_F(ClangComponent, CudaC_BecomesPtxOfTheProcessor) {
  for (const auto& [cpu, features] : {std::pair("sm_80", "+ptx70"), std::pair("sm_90", "+ptx78")}) {
    ASSERT_EQ(compile(kCudaSum, {{"language", "cuda"}, {"cpu", cpu}, {"features", features}}),
              PGR_STATUS_OK)
        << error_.text() << log_;
    EXPECT_THAT(object_, HasSubstr(std::string(".target ") + cpu));
    EXPECT_THAT(object_, HasSubstr(".visible .entry k("));
    EXPECT_THAT(object_, HasSubstr("div.rn.f32"));  // rounded, denormals kept
    EXPECT_THAT(object_, HasSubstr("add.rn.f32"));  // .rn: the driver's assembler fuses nothing
    EXPECT_THAT(object_, HasSubstr("ld.global"));
    EXPECT_EQ(disassembly(), object_);
  }
  EXPECT_EQ(compile(kCudaSum, {{"language", "cuda"}, {"cpu", "sm_1"}}), PGR_STATUS_COMPILE_FAILED);
  EXPECT_THAT(log_, HasSubstr("sm_1"));
  EXPECT_EQ(compile("extern \"C\" void k(", {{"language", "cuda"}, {"cpu", "sm_80"}}),
            PGR_STATUS_COMPILE_FAILED);
  EXPECT_THAT(log_, HasSubstr("kernel.cu:1:"));
}

TEST_F(ClangComponent, ContractionOfCudaC_NeedsBothTheSourceAndTheOption) {
  const Options cuda = {{"language", "cuda"}, {"cpu", "sm_80"}, {"features", "+ptx70"}};
  const std::string allowed = std::string("#pragma clang fp contract(fast)\n") + kCudaSum;
  const std::string forbidden = std::string("#pragma clang fp contract(off)\n") + kCudaSum;
  ASSERT_EQ(compile(allowed, cuda, PGR_CONTRACT_ALLOWED), PGR_STATUS_OK) << log_;
  EXPECT_THAT(object_, HasSubstr("fma.rn.f32"));
  ASSERT_EQ(compile(allowed, cuda, PGR_CONTRACT_OFF), PGR_STATUS_OK);
  EXPECT_THAT(object_, Not(HasSubstr("fma.rn.f32")));
  ASSERT_EQ(compile(forbidden, cuda, PGR_CONTRACT_ALLOWED), PGR_STATUS_OK);
  EXPECT_THAT(object_, Not(HasSubstr("fma.rn.f32")));
}

// A fatal error of LLVM and a crash: the process continues, and the source is saved.
TEST_F(ClangComponent, InternalFailure_NamesTheFileWithTheSource) {
  for (const char* kind : {"llvm_fatal_error", "parser_crash"}) {
    const std::string fatal = "#pragma clang __debug " + std::string(kind) + "\n";
    EXPECT_EQ(compile(fatal, {{"failure_dir", ::testing::TempDir()}}), PGR_STATUS_INTERNAL);
    const std::string path = error_.text().substr(error_.text().rfind(' ') + 1);
    std::ifstream file(path);
    const std::string kept{std::istreambuf_iterator<char>(file), {}};
    EXPECT_THAT(kept, HasSubstr(fatal)) << error_.text();
    std::remove(path.c_str());
    EXPECT_EQ(compile(kMultiplyAdd), PGR_STATUS_OK) << kind << error_.text();
  }
}

TEST_F(ClangComponent, ManyThreads_CompileAtOnce) {
  std::vector<std::thread> threads;
  std::vector<std::string> objects(4);
  for (size_t t = 0; t < objects.size(); ++t)
    threads.emplace_back([&, t] {
      const std::string source = "long k(long x) { return x * 7; }\n";
      pgr_compile_desc desc;
      PGR_INIT(desc, COMPILE_DESC);
      desc.input = source.data();
      desc.input_bytes = source.size();
      desc.optimize = 2;
      for (int round = 0; round < 20; ++round) {
        pgr_blob out;
        PGR_INIT(out, BLOB);
        if (compiler_->compile(nullptr, &desc, &out, nullptr, nullptr) == PGR_STATUS_OK)
          objects[t] = take(out);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(objects[0].empty());
  for (const std::string& object : objects) EXPECT_EQ(object, objects[0]);
}

}  // namespace
}  // namespace plugrad::testing
