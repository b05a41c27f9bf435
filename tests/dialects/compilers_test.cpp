// Kernels rendered in dialects c and c_gcc, compiled by GCC and Clang for several processors and
// compared bitwise with the interpreter. Foreign processors run under QEMU.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "dialects/kernels.h"
#include "unit/base/temporary_directory.h"
#include "unit/cpu_clang/stub_host.h"

namespace plugrad::testing {
namespace {

// The flags required by docs/dialects.md, with an optimisation level at which they matter.
constexpr char kFlags[] = " -O2 -fwrapv -fno-strict-aliasing -ffp-contract=off -fno-math-errno ";

struct Compiler {
  const char* name;
  const char* command;  // the first word is the required program
  const char* runner;   // an emulator, "" for none; nullptr: compiled only
  bool has_vectors, has_f16;
  const char* dialect = "c";
};
constexpr Compiler kCompilers[] = {
    {"gcc_x86_64", "gcc", "", false, true},
    {"gcc_aarch64", "aarch64-linux-gnu-gcc -static", "qemu-aarch64-static", false, true},
    {"gcc_riscv64", "riscv64-linux-gnu-gcc -static", "qemu-riscv64-static", false, false},
    {"gcc_riscv32", "riscv64-unknown-elf-gcc -march=rv32gc -mabi=ilp32d", nullptr, false, false},
    {"clang_x86_64", "clang-19", "", true, true},
    {"clang_aarch64", "clang-19 --target=aarch64-linux-gnu -static", "qemu-aarch64-static", true,
     true},
    {"clang_riscv64", "clang-19 --target=riscv64-linux-gnu -march=rv64gc_zfhmin -static",
     "qemu-riscv64-static -cpu rv64,Zfhmin=true", true, true},
    {"clang_riscv32", "clang-19 --target=riscv32-unknown-elf -march=rv32gc_zfhmin -mabi=ilp32d",
     nullptr, true, true},
    {"gcc_vectors_x86_64", "gcc", "", true, true, "c_gcc"},
    {"gcc_vectors_native", "gcc -march=native", "", true, true, "c_gcc"},
    {"gcc_vectors_aarch64", "aarch64-linux-gnu-gcc -static", "qemu-aarch64-static", true, true,
     "c_gcc"},
    {"gcc_vectors_riscv64", "riscv64-linux-gnu-gcc -static", "qemu-riscv64-static", true, false,
     "c_gcc"},
    {"gcc_vectors_riscv32", "riscv64-unknown-elf-gcc -march=rv32gc -mabi=ilp32d", nullptr, true,
     false, "c_gcc"},
    {"clang_of_gcc_vectors_x86_64", "clang-19", "", true, true, "c_gcc"},
};

std::string first_word(const std::string& text) {
  return text.substr(0, text.find(' '));
}

bool is_installed(const std::string& command) {
  return std::system(("command -v " + first_word(command) + " > /dev/null").c_str()) == 0;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string render(const std::vector<std::byte>& block, const char* dialect) {
  static const auto* renderer =
      static_cast<const pgr_renderer_api*>(open_component(PLUGRAD_RENDER_LIBRARY, "pgr.renderer"));
  pgr_render_desc desc;
  PGR_INIT(desc, RENDER_DESC);
  desc.ir = block.data();
  desc.ir_bytes = block.size();
  pgr_option option;
  PGR_INIT(option, OPTION);
  option.key = sdk::to_pgr("dialect");
  option.value = sdk::to_pgr(dialect);
  desc.options = &option;
  desc.option_count = 1;
  desc.option_stride = sizeof(pgr_option);
  pgr_blob out;
  PGR_INIT(out, BLOB);
  ErrorText error;
  if (renderer->render(nullptr, &desc, &out, &error.error) != PGR_STATUS_OK)
    throw std::runtime_error(error.text());
  return take(out);
}

class DialectCompilers : public ::testing::TestWithParam<Compiler> {
 protected:
  void SetUp() override {
    const Compiler& compiler = GetParam();
    if (!is_installed(compiler.command))
      GTEST_SKIP() << first_word(compiler.command) << " is not installed (tools/setup --all)";
    if (compiler.runner && *compiler.runner && !is_installed(compiler.runner))
      GTEST_SKIP() << first_word(compiler.runner) << " is not installed (tools/setup --all)";
    kernels_ = make_kernels(compiler.has_vectors ? 32 : 1, compiler.has_f16);
  }

  std::string path(const std::string& name) const { return folder_ / name; }

  // Exit status of a shell command; its output is in log_.
  int shell(const std::string& command) {
    const int status = std::system((command + " > " + path("log") + " 2>&1").c_str());
    log_ = command + "\n" + read_file(path("log"));
    return status;
  }

  // Each kernel in its own file: helper functions have the same names in all.
  std::string write_sources() {
    std::string files, declared, listed;
    for (size_t i = 0; i < kernels_.size(); ++i) {
      const std::string number = std::to_string(i), name = "k" + number;
      std::ofstream(path(name + ".c")) << "#define k " << name << "\n"
                                       << render(kernels_[i].block, GetParam().dialect);
      files += " " + path(name + ".c");
      declared += "void " + name + "();\n";
      listed += "(void *)" + name + ",\n";
    }
    std::ofstream(path("table.c")) << declared << "void *const kernels[] = {\n"
                                   << listed << "};\n"
                                   << "const unsigned kernel_count = " << kernels_.size() << ";\n";
    return files;
  }

  void write_input() {
    std::ofstream file(path("input"), std::ios::binary);
    const auto number = [&](uint64_t value) {
      file.write(reinterpret_cast<const char*>(&value), sizeof value);
    };
    for (const KernelCase& kernel : kernels_) {
      number(kernel.groups);
      number(kernel.scalars.size());
      number(kernel.contents.size());
      for (uint64_t scalar : kernel.scalars) number(scalar);
      for (const auto& bytes : kernel.contents) {
        number(bytes.size());
        file.write(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<std::streamsize>(bytes.size()));
      }
    }
  }

  void compare_output() {
    const std::string output = read_file(path("output"));
    size_t at = 0;
    for (size_t i = 0; i < kernels_.size(); ++i) {
      const Contents want = interpret(kernels_[i]);
      for (size_t p = 0; p < want.size(); ++p) {
        ASSERT_LE(at + want[p].size(), output.size());
        EXPECT_EQ(difference(kernels_[i].dtypes[p], want[p], output.data() + at), "")
            << kernels_[i].name << ", parameter " << p << "\n"
            << render(kernels_[i].block, GetParam().dialect);
        at += want[p].size();
      }
    }
    EXPECT_EQ(at, output.size());
  }

  TemporaryDirectory folder_;
  std::vector<KernelCase> kernels_;
  std::string log_;
};

TEST_P(DialectCompilers, ComputesWhatTheInterpreterDoes) {
  const Compiler& compiler = GetParam();
  const std::string files = write_sources(), command = compiler.command + std::string(kFlags);
  if (!compiler.runner) {
    ASSERT_EQ(shell("cd " + folder_.path() + " && " + command + "-ffreestanding -w -c" + files), 0)
        << log_;
    return;
  }
  ASSERT_EQ(shell(command + "-w" + files + " " + path("table.c") + " " PLUGRAD_RUN_KERNELS " -o " +
                  path("run") + " -lm"),
            0)
      << log_;
  write_input();
  ASSERT_EQ(shell(std::string(compiler.runner) + " " + path("run") + " " + path("input") + " " +
                  path("output")),
            0)
      << log_;
  compare_output();
}

// GCC would treat Clang's vector types as scalars and compute wrong values.
TEST(DialectC, OfSeveralLanes_IsRefusedByGcc) {
  if (!is_installed("gcc")) GTEST_SKIP() << "gcc is not installed (tools/setup --all)";
  const TemporaryDirectory folder;
  const std::string source = folder / "k.c", log = folder / "log";
  std::ofstream(source) << render(make_kernels(32, true).front().block, "c");
  const std::string command = std::string("gcc") + kFlags + "-w -c " + source;
  EXPECT_NE(std::system((command + " -o " + (folder / "k.o") + " 2> " + log).c_str()), 0);
  EXPECT_NE(read_file(log).find("f32x8 of another size: dialect c_gcc is for GCC"),
            std::string::npos)
      << read_file(log);
}

INSTANTIATE_TEST_SUITE_P(On, DialectCompilers, ::testing::ValuesIn(kCompilers),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace plugrad::testing
