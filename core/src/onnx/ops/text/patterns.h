// Regular expressions in attributes. RE2 takes time in proportion to the text, whatever they are.
#pragma once

#include <re2/re2.h>

#include <memory>
#include <string_view>

#include "onnx/import/call.h"

namespace plugrad::onnx {

/// `takes_longest`: the longest match, not the first alternative. Errors: User for a text that is no
/// RE2 pattern.
std::unique_ptr<const RE2> compiled_pattern(Call& call, std::string_view text,
                                            bool takes_longest = false);

}  // namespace plugrad::onnx
