// Compiles an LLVM module into an object or PTX.
#pragma once

#include <llvm/IR/Module.h>

#include <string>

#include "clang/compile.h"

namespace plugrad::clang_component {

// Registers LLVM's target for the language; once per process.
void initialize_target(Language language);

// Optimises the module and emits it as an ELF object or as PTX.
std::string emit_code(llvm::Module& module, const CompileOptions& options);

}  // namespace plugrad::clang_component
