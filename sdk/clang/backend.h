// The LLVM half: module to object or PTX.
#pragma once

#include <llvm/IR/Module.h>

#include <string>

#include "clang/compile.h"

namespace plugrad::clang_component {

// Registers what LLVM needs for the machines that the language is compiled for; once a process.
void initialize_target(Language language);

// Optimises the module and writes it as an ELF object, or as PTX.
std::string emit_code(llvm::Module& module, const CompileOptions& options);

}  // namespace plugrad::clang_component
