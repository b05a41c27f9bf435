#include "clang/backend.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Operator.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <algorithm>
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
  // For processors, code of level 2 is as fast as that of level 1 and takes longer to make.
  const bool is_less = options.optimize == 1 || options.language != Language::Cuda;
  const CodeGenOptLevel level = options.optimize == 0 ? CodeGenOptLevel::None
                                : is_less             ? CodeGenOptLevel::Less
                                                      : CodeGenOptLevel::Default;
  llvm::TargetOptions target_options;
  target_options.AllowFPOpFusion =
      options.contract ? llvm::FPOpFusion::Standard : llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(options.target, options.cpu, options.features, target_options,
                                  llvm::Reloc::PIC_, llvm::CodeModel::Small, level));
}

// The machine of the thread's last compilation: making one takes 0.3 ms, a fourth of the time for
// an empty kernel (Intel Xeon, LLVM 19). A compilation that fails keeps its machine from others.
struct KeptMachine {
  std::string key;
  std::unique_ptr<llvm::TargetMachine> machine;
};
thread_local KeptMachine kept;

std::string key_of(const CompileOptions& options) {
  return options.target + ' ' + options.cpu + ' ' + options.features + ' ' +
         std::to_string(options.optimize) + (options.contract ? " contract" : "");
}

std::unique_ptr<llvm::TargetMachine> take_machine(const CompileOptions& options) {
  if (kept.machine && kept.key == key_of(options)) return std::move(kept.machine);
  return make_machine(options);
}

// A pragma in the source may allow contraction; the compile option overrides it.
void forbid_contraction(llvm::Module& module) {
  for (llvm::Function& function : module)
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& inst : block)
        if (llvm::isa<llvm::FPMathOperator>(inst)) inst.setHasAllowContract(false);
}

// Analysis managers that refer to each other.
struct Analyses {
  explicit Analyses(llvm::PassBuilder& builder) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(calls);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, calls, modules);
  }
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
};

bool has_arrays(const llvm::Function& function) {
  return std::ranges::any_of(function.getEntryBlock(), [](const llvm::Instruction& inst) {
    return llvm::isa<llvm::AllocaInst>(inst);
  });
}

// Passes for functions with arrays of their own, which become registers if the loops around their
// elements are unrolled. Other kernels are unrolled as far as their schedule says.
struct ArrayPasses : llvm::PassInfoMixin<ArrayPasses> {
  explicit ArrayPasses(llvm::FunctionPassManager given) : passes(std::move(given)) {}
  llvm::FunctionPassManager passes;
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    return has_arrays(function) ? passes.run(function, analyses) : llvm::PreservedAnalyses::all();
  }
};

// For GPUs, loop counters are simplified first.
llvm::FunctionPassManager unrolling_passes(Language language) {
  llvm::FunctionPassManager passes;
  llvm::LoopPassManager unroll;
  if (language == Language::Cuda) unroll.addPass(llvm::IndVarSimplifyPass());
  unroll.addPass(llvm::LoopFullUnrollPass(2));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(unroll), false));
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  return passes;
}

// Stores of kernels are dead only in arrays of their own.
llvm::FunctionPassManager store_passes() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::DSEPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
  return passes;
}

// A minimal pass pipeline: plugrad has already simplified, unrolled and vectorised the kernel, and
// LLVM's default pipeline spends most of its time on that. Clang's selections of vectors become
// minima and maxima only in the second round of EarlyCSE and InstCombine.
llvm::ModulePassManager kernel_passes(Language language) {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  llvm::LoopPassManager hoist;
  hoist.addPass(llvm::LoopRotatePass());
  hoist.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(hoist), true));
  if (language == Language::Cuda)
    passes.addPass(unrolling_passes(language));
  else
    passes.addPass(ArrayPasses(unrolling_passes(language)));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(ArrayPasses(store_passes()));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  if (language == Language::Cuda) passes.addPass(llvm::LoopUnrollPass());
  passes.addPass(llvm::ADCEPass());
  llvm::ModulePassManager all;
  all.addPass(llvm::AlwaysInlinerPass());
  all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  return all;
}

// LLVM narrows a comparison of floats cast from f16 to a comparison of f16, and scalarises vectors
// of f16 if the processor lacks f16 comparisons: one conversion and one branch per lane. This pass
// restores the comparison of floats.
void compare_as_floats(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (function.hasFnAttribute("target-features") &&
        function.getFnAttribute("target-features").getValueAsString().contains("+avx512fp16"))
      continue;
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& inst : block) {
        auto* compare = llvm::dyn_cast<llvm::FCmpInst>(&inst);
        if (!compare) continue;
        llvm::Type* type = compare->getOperand(0)->getType();
        if (!type->isVectorTy() || !type->getScalarType()->isHalfTy()) continue;
        llvm::IRBuilder<> builder(compare);
        llvm::Type* wide = type->getWithNewType(builder.getFloatTy());
        for (unsigned i : {0u, 1u})
          compare->setOperand(i, builder.CreateFPExt(compare->getOperand(i), wide));
      }
  }
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine, const CompileOptions& options) {
  llvm::PassBuilder builder(&machine);
  Analyses analyses(builder);
  llvm::ModulePassManager passes = options.optimize == 0
                                       ? builder.buildO0DefaultPipeline(llvm::OptimizationLevel::O0)
                                       : kernel_passes(options.language);
  passes.run(module, analyses.modules);
}

}  // namespace

void initialize_target(Language language) {
  static std::once_flag x86, nvptx;
  if (language == Language::Cuda)
    return std::call_once(nvptx, [] {
      LLVMInitializeNVPTXTargetInfo();
      LLVMInitializeNVPTXTarget();
      LLVMInitializeNVPTXTargetMC();
      LLVMInitializeNVPTXAsmPrinter();
    });
  std::call_once(x86, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86Disassembler();
  });
}

std::string emit_code(llvm::Module& module, const CompileOptions& options) {
  std::unique_ptr<llvm::TargetMachine> machine = take_machine(options);
  module.setDataLayout(machine->createDataLayout());
  if (!options.contract) forbid_contraction(module);
  optimise(module, *machine, options);
  if (options.language != Language::Cuda) compare_as_floats(module);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager emitter;
  const auto kind = options.language == Language::Cuda ? llvm::CodeGenFileType::AssemblyFile
                                                       : llvm::CodeGenFileType::ObjectFile;
  sdk::require(!machine->addPassesToEmitFile(emitter, stream, nullptr, kind, true),
               PGR_STATUS_INTERNAL, "LLVM cannot write code for " + options.target);
  emitter.run(module);
  kept = {key_of(options), std::move(machine)};
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace plugrad::clang_component
