// `plugrad bench networks --models`: calls of networks from ONNX files.
#pragma once

#include <string>

#include "bench/suites.h"
#include "models/inputs.h"

namespace plugrad::tools {

struct OnnxChoice {
  std::string models;  ///< folder, file or package, as find_models() takes it
  std::string filter;  ///< a part of names
  Names sizes, inputs;
  bool is_listed = false;  ///< only reports names
};

/// Reports the milliseconds of a call of each model on the default device, with results on the host;
/// the peer is the same network on CPU, in turns, unless CPU is the default device. Returns false if
/// a model could not run; the reason goes to stderr. Errors: User if there is no model.
bool measure_onnx_files(const OnnxChoice& choice, const bench::Report& report);

}  // namespace plugrad::tools
