#include "toolchain.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "nvrtc.h"
#include "plugin.h"

namespace plugrad::cuda {
namespace {

// Increment when flags change, to invalidate cached binaries.
constexpr const char* kRevision = "1";

// Architectures that Clang supports, with the first PTX version of each, which old drivers accept.
// Newer GPUs run code for the last architecture.
struct ClangTarget {
  unsigned compute_capability;
  const char* feature;
};
constexpr ClangTarget kClangTargets[] = {
    {60, "+ptx70"}, {61, "+ptx70"}, {62, "+ptx70"}, {70, "+ptx70"}, {72, "+ptx70"}, {75, "+ptx70"},
    {80, "+ptx70"}, {86, "+ptx71"}, {87, "+ptx74"}, {89, "+ptx78"}, {90, "+ptx78"},
};

const ClangTarget& clang_target(unsigned compute_capability) {
  const ClangTarget* best = nullptr;
  for (const ClangTarget& target : kClangTargets)
    if (target.compute_capability <= compute_capability) best = &target;
  sdk::require(best != nullptr, PGR_STATUS_UNSUPPORTED,
               "compute capability " + std::to_string(compute_capability / 10) + "." +
                   std::to_string(compute_capability % 10) + " is below 6.0");
  return *best;
}

// nullptr selects Clang, also if NVRTC no longer supports an old GPU.
const Nvrtc* find_nvrtc(const ToolchainChoice& choice, unsigned compute_capability) {
  using Compiler = ToolchainChoice::Compiler;
  if (choice.compiler == Compiler::Clang) return nullptr;
  std::string reason;
  const Nvrtc* nvrtc = Nvrtc::open(choice.nvrtc_path, reason);
  const bool is_needed = choice.compiler != Compiler::Auto || !choice.nvrtc_path.empty();
  sdk::require(nvrtc || !is_needed, PGR_STATUS_NOT_FOUND,
               "NVRTC cannot be opened: " + reason +
                   "; install the CUDA toolkit's libnvrtc, or leave the option compiler at auto");
  if (nvrtc && !is_needed && nvrtc->target_for(compute_capability) == 0) return nullptr;
  return nvrtc;
}

// Machine code if NVRTC supports this exact architecture; otherwise PTX for the driver's compiler.
bool makes_ptx(const ToolchainChoice& choice, int target, unsigned compute_capability) {
  return choice.compiler == ToolchainChoice::Compiler::NvrtcPtx ||
         target != static_cast<int>(compute_capability);
}

std::string nvrtc_arch(const Nvrtc& nvrtc, const ToolchainChoice& choice,
                       unsigned compute_capability) {
  const int target = nvrtc.target_for(compute_capability);
  sdk::require(target != 0, PGR_STATUS_UNSUPPORTED,
               "NVRTC " + nvrtc.version() + " has no architecture for compute capability " +
                   std::to_string(compute_capability));
  return (makes_ptx(choice, target, compute_capability) ? "compute_" : "sm_") +
         std::to_string(target);
}

void compile_by_nvrtc(const Nvrtc& nvrtc, const ToolchainChoice& choice, const CompileJob& job,
                      CompiledCode& out) {
  const std::string arch = nvrtc_arch(nvrtc, choice, job.compute_capability);
  std::vector<std::string> options = {"--gpu-architecture=" + arch,
                                      "--std=c++17",
                                      "--fmad=false",  // the source decides on contraction
                                      "--ftz=false",
                                      "--prec-div=true",
                                      "--prec-sqrt=true",
                                      "--disable-warnings"};
  if (job.contract) options.push_back("--define-macro=PLUGRAD_CONTRACT");
  out.is_ptx = arch.starts_with("compute_");
  const bool ok = nvrtc.compile(std::string(job.source), std::string(job.name), options, out.is_ptx,
                                out.code, out.log);
  sdk::require(
      ok, PGR_STATUS_COMPILE_FAILED,
      "kernel " + std::string(job.name) + ": NVRTC: " + out.log.substr(0, out.log.find('\n')));
}

void compile_by_clang(pgr_plugin& plugin, const CompileJob& job, CompiledCode& out) {
  const auto& clang = *static_cast<const pgr_compiler_api*>(
      open_component(plugin, "plugrad_clang", "pgr.compiler"));
  const ClangTarget& target = clang_target(job.compute_capability);
  const std::string cpu = "sm_" + std::to_string(target.compute_capability);
  const pgr_option options[] = {make_option("language", "cuda"), make_option("cpu", cpu),
                                make_option("features", target.feature)};
  pgr_compile_desc desc;
  PGR_INIT(desc, COMPILE_DESC);
  desc.input = job.source.data();
  desc.input_bytes = job.source.size();
  desc.name = sdk::to_pgr(job.name);
  desc.options = options;
  desc.option_count = std::size(options);
  desc.option_stride = sizeof options[0];
  desc.contract = job.contract ? PGR_CONTRACT_ALLOWED : PGR_CONTRACT_OFF;
  desc.optimize = job.optimize;
  char message[512];
  pgr_error error;
  PGR_INIT(error, ERROR);
  error.message = message;
  error.message_capacity = sizeof message;
  pgr_blob code, log;
  PGR_INIT(code, BLOB);
  PGR_INIT(log, BLOB);
  const pgr_status status = clang.compile(nullptr, &desc, &code, &log, &error);
  out.is_ptx = true;
  out.log = take(log);
  sdk::require(status == PGR_STATUS_OK, status,
               std::string_view(message, std::min<uint64_t>(error.message_size, sizeof message)));
  out.code = take(code);
}

}  // namespace

bool read_option(ToolchainChoice& choice, std::string_view key, std::string_view value) {
  using Compiler = ToolchainChoice::Compiler;
  if (key == "nvrtc") choice.nvrtc_path = value;
  if (key != "compiler") return key == "nvrtc";
  constexpr std::pair<std::string_view, Compiler> kValues[] = {{"auto", Compiler::Auto},
                                                               {"nvrtc", Compiler::Nvrtc},
                                                               {"nvrtc_ptx", Compiler::NvrtcPtx},
                                                               {"clang", Compiler::Clang}};
  const auto* found = std::find_if(std::begin(kValues), std::end(kValues),
                                   [&](const auto& pair) { return pair.first == value; });
  sdk::require(found != std::end(kValues), PGR_STATUS_INVALID_ARGUMENT,
               "option compiler: \"" + std::string(value) +
                   "\" is none of auto, nvrtc, nvrtc_ptx and clang");
  choice.compiler = found->second;
  return true;
}

void compile(pgr_plugin& plugin, const ToolchainChoice& choice, const CompileJob& job,
             CompiledCode& out) {
  if (const Nvrtc* nvrtc = find_nvrtc(choice, job.compute_capability))
    compile_by_nvrtc(*nvrtc, choice, job, out);
  else
    compile_by_clang(plugin, job, out);
}

std::string toolchain_text(const ToolchainChoice& choice, unsigned compute_capability) {
  const std::string revision = std::string("cuda ") + kRevision + " ";
  if (const Nvrtc* nvrtc = find_nvrtc(choice, compute_capability))
    return revision + "NVRTC " + nvrtc->version() + " " +
           nvrtc_arch(*nvrtc, choice, compute_capability);
  const ClangTarget& target = clang_target(compute_capability);
  return revision + "Clang " PLUGRAD_COMPILER_VERSION " sm_" +
         std::to_string(target.compute_capability) + " " + target.feature;
}

const void* open_component(pgr_plugin& plugin, std::string_view library,
                           std::string_view interface_name) {
  char message[512];
  pgr_error error;
  PGR_INIT(error, ERROR);
  error.message = message;
  error.message_capacity = sizeof message;
  const pgr_string library_name = sdk::to_pgr(library), name = sdk::to_pgr(interface_name);
  const void* table = nullptr;
  const pgr_status status = plugin.host->open_component(plugin.host->host, &library_name, &name,
                                                        PGR_API_MINOR, &table, &error);
  sdk::require(status == PGR_STATUS_OK, status,
               "cannot open component " + std::string(library) + ": " +
                   std::string(message, std::min<uint64_t>(error.message_size, sizeof message)));
  return table;
}

pgr_option make_option(std::string_view key, std::string_view value) {
  pgr_option option;
  PGR_INIT(option, OPTION);
  option.key = sdk::to_pgr(key);
  option.value = sdk::to_pgr(value);
  return option;
}

std::string take(pgr_blob& blob) {
  if (!blob.data) return {};
  std::string bytes(static_cast<const char*>(blob.data), blob.size);
  if (blob.release) blob.release(&blob);
  return bytes;
}

}  // namespace plugrad::cuda
