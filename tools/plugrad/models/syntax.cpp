// The syntax of `plugrad run` and `plugrad inspect`: the command prints help and completions from it,
// and plugrad-models parses with it.
#include "command.h"

namespace plugrad::tools {
namespace {

namespace po = boost::program_options;

constexpr char kInspectUsage[] =
    "plugrad inspect FILE.onnx [--size NAME=N|INPUT.AXIS=N]… [--input NAME=FILE.npy|NUMBER]… "
    "[--device D] [--json]";

constexpr char kRunUsage[] =
    "plugrad run FILE.onnx [--input NAME=FILE.npy|NUMBER]… [--size NAME=N]… "
    "[--bounds NAME=LOW..HIGH]… [--output NAME=FILE.npy]… [--device D] [--repeat N] [--check] "
    "[--profile] [--json]";

}  // namespace

Syntax inspect_syntax() {
  Syntax syntax{.usage = kInspectUsage, .words = "file", .paths = {"file"}};
  syntax.options.add_options()("size", po::value<Arguments>()->composing(),
                               "NAME=N or INPUT.AXIS=N, a size that the model leaves open; without "
                               "it 1 for the first axis of "
                               "an input and 64 for the others")(
      "input", po::value<Arguments>()->composing(),
      "NAME=FILE.npy or NAME=NUMBER, the elements of an input, on which shapes may depend; without "
      "it zeros")("device", po::value<std::string>(),
                  "where it would run, such as CPU; default: as DEV says")("json",
                                                                           "one JSON document");
  return syntax;
}

Syntax run_syntax() {
  Syntax syntax{.usage = kRunUsage, .words = "file", .paths = {"file"}};
  syntax.options.add_options()("input", po::value<Arguments>()->composing(),
                               "NAME=FILE.npy or NAME=NUMBER, the values of an input; without it "
                               "random ones, integers 0 or 1")(
      "size", po::value<Arguments>()->composing(),
      "NAME=N or INPUT.AXIS=N, a size that the model leaves open; without it 1 for the first axis "
      "of "
      "an input and 64 for the others")(
      "bounds", po::value<Arguments>()->composing(),
      "NAME=LOW..HIGH or INPUT.AXIS=LOW..HIGH, the values of such a size that one recording "
      "serves")("output", po::value<Arguments>()->composing(),
                "NAME=FILE.npy, where to write an output")("device", po::value<std::string>(),
                                                           "such as CPU; default: as DEV says")(
      "repeat", po::value<int64_t>(), "calls after the first, which are timed")(
      "profile", "then print where the time went, as `plugrad profile run` does")(
      "check", "compare the outputs with those of ONNX Runtime, in the onnxruntime of python3")(
      "json", "one JSON document");
  return syntax;
}

}  // namespace plugrad::tools
