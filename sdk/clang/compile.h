// C or CUDA C in memory to an ELF object or PTX in memory: no file, no process, no linker.
#pragma once

#include <string>
#include <string_view>

namespace plugrad::clang_component {

enum class Language { C, Cuda };

struct CompileOptions {
  Language language = Language::C;
  std::string target = "x86_64-pc-linux-gnu";
  std::string cpu = "x86-64";
  std::string tune;      // processor to schedule for; empty: as cpu
  std::string features;  // "+avx2,-sse4a"
  std::string name = "kernel";
  std::string failure_dir = "/tmp";  // where the source goes if Clang itself fails
  unsigned vector_bits = 0;          // widest vector to prefer; 0: Clang's choice for the cpu
  unsigned optimize = 2;
  bool contract = false;
};

struct CompileResult {
  bool ok = false;
  std::string object;  // of C an ELF object, of CUDA C the text of PTX
  std::string log;
};

// Any thread. Throws StatusError (INTERNAL) when Clang fails internally; the message names the file
// that holds the source.
CompileResult compile_source(std::string_view source, const CompileOptions& options);

// Text of an object's code, one function after the other, with addresses from the function's start.
std::string disassemble_object(std::string_view object);

}  // namespace plugrad::clang_component
