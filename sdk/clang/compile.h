// Compiles C or CUDA C in memory to an ELF object or PTX in memory, without files, processes or a
// linker.
#pragma once

#include <string>
#include <string_view>

namespace plugrad::clang_component {

enum class Language { C, Cuda };

struct CompileOptions {
  Language language = Language::C;
  std::string target = "x86_64-pc-linux-gnu";
  std::string cpu = "x86-64";
  std::string tune;      // processor to schedule for; empty: same as cpu
  std::string features;  // "+avx2,-sse4a"
  std::string name = "kernel";
  std::string failure_dir = "/tmp";  // folder for the source after an internal failure of Clang
  unsigned vector_bits = 0;  // preferred maximum vector width; 0: Clang's default for the cpu
  unsigned optimize = 2;
  bool contract = false;
};

struct CompileResult {
  bool ok = false;
  std::string object;  // for C an ELF object, for CUDA C the text of PTX
  std::string log;
};

// Thread-safe. Throws StatusError (INTERNAL) if Clang fails internally; the message has the path of
// the saved source.
CompileResult compile_source(std::string_view source, const CompileOptions& options);

// Disassembly of an object, function by function, with addresses relative to the function.
std::string disassemble_object(std::string_view object);

}  // namespace plugrad::clang_component
