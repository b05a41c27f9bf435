// Finds the ONNX files that `plugrad conformance --models` names.
#pragma once

#include <string>
#include <vector>

namespace plugrad::tools {

struct FoundModel {
  std::string path, id;  ///< id: its path below the folder, with dots: "magika.models.model"
};

/// A folder with .onnx files at any depth, one file, or NAME or NAME==VERSION of a Python package,
/// whose models are written to `scratch`: the installed package, else pip downloads it. Sorted.
/// Errors: User if there is none.
std::vector<FoundModel> find_models(const std::string& given, const std::string& scratch);

}  // namespace plugrad::tools
