// The rules for nodes in each form of the IR, as one table.
#pragma once

#include <span>

#include "ir/facts.h"

namespace plugrad {

/// Forms of the IR, as bits: an op may belong to several.
enum class Spec : uint8_t {
  Tensor = 1,   ///< shapes and movement; no loops, no memory
  Kernel = 2,   ///< loops, memory and index arithmetic (ir/kernel_ast.h), through all graph passes
                ///< of codegen
  Program = 4,  ///< as Kernel, without Index, Reduce, FloorDiv and FloorMod: valid kernel IR
};

/// Checks every node reachable from `roots`: its op belongs to the spec; sources, dtypes and arg
/// have the form that the op requires; in tensor graphs shapes fit. Errors: Internal, "[verify]
/// PROBLEM: LINE OF THE NODE", naming `stage`.
void verify(Graph& graph, std::span<const Id> roots, Spec spec, const char* stage = "");
inline void verify(Graph& graph, Id root, Spec spec, const char* stage = "") {
  verify(graph, std::span<const Id>(&root, 1), spec, stage);
}

/// The problem of a node with these fields; null if there is none. `shapes` belong to `graph`.
const char* node_problem(Graph& graph, Shapes& shapes, Spec spec, Op op, DType dtype,
                         std::span<const Id> sources, uint64_t arg);
bool belongs(Op op, Spec spec);

/// As verify() with Spec::Kernel, and the rules of ir/kernel_ast.h: Sink over Stores, axis numbers
/// unique, each Reduce range closed once on every path and not open at any Store.
void verify_kernel_ast(Graph& graph, Id sink);

}  // namespace plugrad
