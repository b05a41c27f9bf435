// Parses source into an LLVM module.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <memory>

#include "clang/compile.h"

namespace plugrad::clang_component {

// Returns nullptr if the source has errors; `log` receives them.
std::unique_ptr<llvm::Module> parse_source(std::string_view source, const CompileOptions& options,
                                           llvm::LLVMContext& context, std::string& log);

}  // namespace plugrad::clang_component
