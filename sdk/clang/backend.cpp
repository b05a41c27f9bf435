#include "clang/backend.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Operator.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <mutex>

#include "plugrad/sdk/guard.h"

namespace plugrad::clang_component {
namespace {

using llvm::CodeGenOptLevel;

std::unique_ptr<llvm::TargetMachine> make_machine(const CompileOptions& options) {
  std::string problem;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(options.target, problem);
  sdk::require(target != nullptr, PGR_STATUS_UNSUPPORTED, "target: " + problem);
  const CodeGenOptLevel level = options.optimize == 0   ? CodeGenOptLevel::None
                                : options.optimize == 1 ? CodeGenOptLevel::Less
                                                        : CodeGenOptLevel::Default;
  llvm::TargetOptions target_options;
  target_options.AllowFPOpFusion =
      options.contract ? llvm::FPOpFusion::Standard : llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(options.target, options.cpu, options.features, target_options,
                                  llvm::Reloc::PIC_, llvm::CodeModel::Small, level));
}

// The source may allow contraction by pragma; the option has the last word.
void forbid_contraction(llvm::Module& module) {
  for (llvm::Function& function : module)
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& inst : block)
        if (llvm::isa<llvm::FPMathOperator>(inst)) inst.setHasAllowContract(false);
}

// Kernels say themselves what is a vector, so the vectorisers would only cost time.
void optimise(llvm::Module& module, llvm::TargetMachine& machine, unsigned level) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.LoopInterleaving = false;
  tuning.SLPVectorization = false;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  const llvm::OptimizationLevel levels[] = {
      llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1, llvm::OptimizationLevel::O2,
      llvm::OptimizationLevel::O3};
  llvm::ModulePassManager passes =
      level == 0 ? builder.buildO0DefaultPipeline(levels[0])
                 : builder.buildPerModuleDefaultPipeline(levels[std::min(level, 3u)]);
  passes.run(module, modules);
}

}  // namespace

void initialize_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86Disassembler();
  });
}

std::string emit_object(llvm::Module& module, const CompileOptions& options) {
  const std::unique_ptr<llvm::TargetMachine> machine = make_machine(options);
  module.setDataLayout(machine->createDataLayout());
  if (!options.contract) forbid_contraction(module);
  optimise(module, *machine, options.optimize);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager emitter;
  sdk::require(!machine->addPassesToEmitFile(emitter, stream, nullptr,
                                             llvm::CodeGenFileType::ObjectFile, true),
               PGR_STATUS_INTERNAL, "LLVM cannot write objects for " + options.target);
  emitter.run(module);
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace plugrad::clang_component
