#include "explain/file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <set>

#include "base/check.h"
#include "base/file.h"
#include "base/log.h"
#include "engine/kernels/kernel_cache.h"
#include "ir/structural_hash.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verifier.h"
#include "plugrad/sdk/guard.h"
#include "plugrad/sdk/ir_view.h"
#include "runtime/runtime.h"
#include "tuning/calibration/machines.h"

namespace plugrad::tools {
namespace {

using Asts = std::vector<std::shared_ptr<const KernelAst>>;

std::string read_text(const std::string& path) {
  auto bytes = read_file(path);
  require(bytes.has_value(), "[explain] cannot open {}: {}", path, file_error_text(errno));
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

// The verifier's errors are reported as errors of the file.
template <class Check>
void check_file(const std::string& path, Check check) {
  try {
    check();
  } catch (const Error& error) {
    fail(ErrorKind::User, "[explain] {}: {}", path, error.what());
  }
}

// Ops that exist only inside code generation: invalid in its input.
constexpr Op kLowered[] = {Op::Filled,      Op::Array,     Op::GroupId, Op::LocalId, Op::Loop,
                           Op::EndLoop,     Op::If,        Op::EndIf,   Op::Barrier, Op::AsyncCopy,
                           Op::AsyncCommit, Op::AsyncWait, Op::Vector,  Op::Lane,    Op::Wmma};

// Parameters are numbered consecutively and uniquely.
void check_kernel(const std::string& path, const Graph& graph) {
  std::set<int64_t> slots;
  for (Id id = 0; id < graph.size(); ++id) {
    const bool is_lowered = std::ranges::count(kLowered, graph[id].op) > 0;
    const bool is_twice = graph[id].op == Op::Param && !slots.insert(graph.arg_list(id)[0]).second;
    require(!is_lowered, "[explain] {}: {}: the op is of code generation alone", path,
            print_node(graph, id));
    require(!is_twice, "[explain] {}: {}: the slot is there twice", path, print_node(graph, id));
  }
  require(slots.empty() || *slots.rbegin() + 1 == static_cast<int64_t>(slots.size()),
          "[explain] {}: the slots of the parameters are not 0 to {}", path, slots.size() - 1);
}

Asts one_kernel(const std::string& path, Graph graph, Id sink) {
  std::vector<Id> all(graph.size());
  std::iota(all.begin(), all.end(), Id{0});
  check_file(path, [&] { verify(graph, all, Spec::Kernel); });
  check_file(path, [&] { verify_kernel_ast(graph, sink); });
  check_kernel(path, graph);
  auto ast = std::make_shared<KernelAst>();
  NodeHash hash = structural_hash(graph, sink);
  std::copy_n(hash.word, 2, ast->hash);
  for (Id id = 0; id < graph.size(); ++id) ast->param_count += graph[id].op == Op::Param;
  ast->graph = std::move(graph);
  ast->sink = sink;
  return {ast};
}

Asts planned(const std::string& path, Graph graph, const std::vector<Id>& roots,
             runtime::Device& device) {
  std::vector<Id> all(graph.size()), inputs;
  std::iota(all.begin(), all.end(), Id{0});
  // Computes shapes of unused nodes, too.
  check_file(path, [&] { verify(graph, all, Spec::Tensor); });
  for (Id id : all) {
    require(graph[id].op != Op::UserKernel && graph[id].op != Op::Function,
            "[explain] {}: line {} is of a user's function, which a file does not hold", path,
            print_node(graph, id));
    if (graph[id].op == Op::Buffer) inputs.push_back(id);
  }
  // Buffers are numbered by the first element of their list.
  std::sort(inputs.begin(), inputs.end(),
            [&](Id a, Id b) { return graph.arg_list(a)[0] < graph.arg_list(b)[0]; });
  schedule::Options options;
  options.threads = std::max(1u, device.caps().threads);
  options.machine = *tuning::machine_of(device);
  return schedule::make_plan(graph, roots, inputs, 1, options).asts;
}

bool is_block(const std::string& bytes) {
  uint32_t magic = 0;
  if (bytes.size() < sizeof(pgr_ir_header)) return false;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == PGR_IR_MAGIC;
}

// A block of kernel IR as text, and the source that the device's renderer makes of it.
engine::KernelReport explain_block(const std::string& path, const std::string& bytes,
                                   runtime::Device& device) {
  engine::KernelReport report;
  report.device = device.name();
  const auto block = std::as_bytes(std::span(bytes));
  try {
    const sdk::IrView ir = sdk::decode_ir(block);
    report.name = report.colored_name = ir.name();
    report.ast = sdk::print_ir(ir);
    std::copy_n(ir.header().local_size, 3, report.local_size);
  } catch (const sdk::StatusError& error) {
    fail(ErrorKind::User, "[explain] {}: {}", path, error.what());
  }
  debug_write(report.ast + "\n");
  report.source = device.compile(block, report.name)->source();
  debug_write(report.source + "\n");
  return report;
}

}  // namespace

std::shared_ptr<const KernelAst> kernel_of_text(const std::string& path, const std::string& text) {
  Graph graph;
  std::vector<Id> roots;
  check_file(path, [&] { roots = parse(graph, text); });
  require(roots.size() == 1 && graph[roots[0]].op == Op::Sink, "[explain] {}: it is no kernel",
          path);
  return one_kernel(path, std::move(graph), roots[0])[0];
}

std::vector<engine::KernelReport> explain_file(const std::string& path) {
  Graph graph;
  std::vector<Id> roots;
  const std::string text = read_text(path);
  if (is_block(text))
    return {explain_block(path, text, runtime::Registry::instance().default_device())};
  check_file(path, [&] { roots = parse(graph, text); });
  require(!roots.empty(), "[explain] {}: there is no node; see docs/tour.md for the form", path);
  runtime::Device& device = runtime::Registry::instance().default_device();
  bool is_kernel = roots.size() == 1 && graph[roots[0]].op == Op::Sink;
  Asts asts = is_kernel ? one_kernel(path, std::move(graph), roots[0])
                        : planned(path, std::move(graph), roots, device);
  std::vector<engine::KernelRequest> requests;
  for (const auto& ast : asts) requests.push_back({ast, &device});
  engine::KernelCache cache;
  std::vector<engine::KernelReport> reports;
  for (const auto& ready : cache.get(requests, engine::KernelOptions::from_settings()))
    reports.push_back(engine::report_of(*ready));
  return reports;
}

}  // namespace plugrad::tools
