// The LLVM half: module to object.
#pragma once

#include <llvm/IR/Module.h>

#include <string>

#include "clang/compile.h"

namespace plugrad::clang_component {

// Registers what LLVM needs for the machines we compile for; once a process.
void initialize_targets();

// Optimises the module and writes it as an ELF object.
std::string emit_object(llvm::Module& module, const CompileOptions& options);

}  // namespace plugrad::clang_component
