// The checks of a row, each in a separate file or function.
#pragma once

#include <string>

#include "ops/case.h"

namespace plugrad::ops {

/// Values and gradients that the default device computes against the evaluator's, on one graph.
void check_against_evaluator(const Entry& entry);

/// Gradients in f64 along random directions against central differences: every element of every
/// input takes part.
void check_differences(const Entry& entry);

/// Writes inputs, outputs and gradients, computed on the default device, for
/// compare_with_torch.py: <folder>/<family>.<name>.bin and a line of <folder>/index.jsonl.
void dump(const Entry& entry, const std::string& folder);

/// Values of the row's ONNX file, loaded again, against those of the function; the file stays in
/// the folder that PLUGRAD_TEST_ONNX names. Skipped if ONNX has no form for a part.
void check_exported(const Entry& entry);

}  // namespace plugrad::ops
