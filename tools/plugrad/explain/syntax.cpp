// The syntax of the commands that plugrad-explain runs: the command prints help and completions from
// it, and the program parses with it.
#include <iterator>

#include "command.h"
#include "command_line/names.h"
#include "explain/examples.h"

namespace plugrad::tools {
namespace {

namespace po = boost::program_options;

constexpr char kExplainUsage[] =
    "plugrad explain (EXAMPLE | FILE.ir | TRACE | --list | --stages) [--why] [--kernel NAME] "
    "[--device D] [--json]";

constexpr char kPlanScaleUsage[] =
    "plugrad plan-scale TRACE --mesh AXIS=SIZE[,…] --machine NAME|FILE [OPTION…]\n"
    "       plugrad plan-scale --machines [--json]\n"
    "       mpirun -n N plugrad plan-scale --measure FILE";

constexpr char kProfileUsage[] =
    "plugrad profile [--json] [--top N] [--compare BEFORE] TRACE\n"
    "       plugrad profile [--json] [--top N] [--compare BEFORE] [-o TRACE] (train | bench | …) "
    "[ARGUMENT…]\n"
    "       plugrad profile [--json] [--top N] [--compare BEFORE] [-o TRACE] -- PROGRAM "
    "[ARGUMENT…]";

constexpr char kViewUsage[] =
    "plugrad view TRACE [OTHER] [-o PAGE.html] [--port P] [--no-open]\n"
    "       plugrad view TRACE --export (chrome|perfetto|speedscope) -o FILE";

}  // namespace

Syntax bisect_syntax() {
  Syntax syntax{.usage =
                    "plugrad bisect FILE [--device D] [--json]\n"
                    "       plugrad bisect [--json] -- PROGRAM [ARGUMENT...]",
                .words = "file",
                .paths = {"file"}};
  syntax.options.add_options()("device", po::value<std::string>()->default_value(""),
                               "device to check it on, such as CPU; default: as DEV says")(
      "json", "one JSON document");
  return syntax;
}

Syntax explain_syntax() {
  Syntax syntax{.usage = kExplainUsage,
                .words = "example",
                .choices = {{"example", example_names()}},
                .paths = {"example"}};
  const auto text = [] { return po::value<std::string>()->default_value(""); };
  syntax.options.add_options()("list", "name the built-in examples")(
      "stages", "the stages of both compilers, what each leaves and what it is for")(
      "why", "the schedule of each kernel beside others, with the time that is predicted of each")(
      "kernel", text(), "only kernels whose name contains this")("json", "one JSON document")(
      "device", text(), "device to compile for");
  return syntax;
}

Syntax plan_scale_syntax() {
  Syntax syntax{.usage = kPlanScaleUsage, .words = "trace", .paths = {"trace", "measure"}};
  const auto text = [] { return po::value<std::string>(); };
  const auto texts = [] { return po::value<Arguments>()->default_value({}, ""); };
  syntax.options.add_options()("mesh", text(), "the mesh, such as data=8,model=4")(
      "machine", text(), "a machine that is shipped, or a file (docs/scale.md)")(
      "machines", "list the machines that are shipped")(
      "measure", text(), "measure this machine under mpirun and write its file")(
      "plan", text(), "number of the plan in the trace; else the one that assigns to most tensors")(
      "batch", text(), "first dimension of the batch; else the size that most inputs share")(
      "role", texts(), "INPUT=parameter, batch or other, in place of what is found")(
      "batch-axes", text(),
      "axes that cut the batch, such as data; - for none; else all are tried")(
      "state-axes", text(), "axes that cut the optimiser's state; else none and all are tried")(
      "cut", texts(), "GROUP=SPEC: how a group of parameters lies, such as 3=model,-")(
      "given", "try these specs alone; what is not given is not cut")(
      "tries", text()->default_value("400"), "most specs that are tried")(
      "top", text()->default_value("8"), "rows of the table")("json", "one JSON document");
  return syntax;
}

Syntax profile_syntax() {
  Syntax syntax{.usage = kProfileUsage,
                .words = "trace",
                .choices = {{"trace", {std::begin(kCommandNames), std::end(kCommandNames)}}},
                .paths = {"trace", "compare", "output"}};
  syntax.options.add_options()("top", po::value<int>()->default_value(20),
                               "kernels to show, those with the most time first")  //
      ("compare", po::value<std::string>(),
       "trace to compare with: each kernel before and after")                             //
      ("output,o", po::value<std::string>(), "file to keep the trace of the program in")  //
      ("json", "one JSON document; the program's output goes to stderr");
  return syntax;
}

Syntax replay_syntax() {
  Syntax syntax{.usage = "plugrad replay FILE [--device D] [--compare OTHER] [--partial] [--json]",
                .words = "file",
                .paths = {"file"}};
  syntax.options.add_options()("device", po::value<std::string>()->default_value(""),
                               "device to repeat it on, such as CPU; default: as DEV says")(
      "compare", po::value<std::string>()->default_value(""),
      "compare every launch with this device, such as REFERENCE")(
      "partial", "repeat what a file that was cut off has")("json", "one JSON document");
  return syntax;
}

Syntax view_syntax() {
  Syntax syntax{.usage = kViewUsage,
                .words = "trace",
                .choices = {{"export", {"chrome", "perfetto", "speedscope"}}},
                .paths = {"trace", "output"}};
  syntax.options.add_options()("output,o", po::value<std::string>(),
                               "file to write; without it, the page is served on 127.0.0.1")  //
      ("port", po::value<uint16_t>(), "port to serve at; default: any free one")              //
      ("no-open", "open no browser, only print the address")                                  //
      ("export", po::value<std::string>(),
       "convert for another viewer: chrome (JSON), perfetto or speedscope");
  return syntax;
}

}  // namespace plugrad::tools
