// The syntax of `plugrad bench`: the command prints help and completions from it, and the program
// parses with it.
#include "bench/names.h"
#include "command.h"

namespace plugrad::tools {
namespace {

constexpr char kBenchUsage[] =
    "plugrad bench [gemm|conv|elementwise|framework|models|halves|networks|variation|cold]… "
    "[--filter "
    "TEXT] "
    "[--threads N] "
    "[--isa native|v4|v3|v2] [--peers NAME…] [--device D] [--option KEY=VALUE…] "
    "[--roofline FILE.svg] [--list] [--json]\n"
    "plugrad bench [SUITE…] --against BUILD [--filter TEXT] [--threads N] [--isa …] [--device D] "
    "[--option KEY=VALUE…] [--json]\n"
    "plugrad bench networks --models DIR|FILE|PACKAGE [--size NAME=N]… [--input "
    "NAME=FILE.npy|NUMBER]… "
    "[--filter TEXT] [--device D] [--list] [--json]\n"
    "plugrad bench cold --models DIR|FILE [--filter TEXT] [--threads N] [--isa …] [--peers NAME…] "
    "[--list] [--json]\n"
    "plugrad bench corpus [--family NAME] [--filter TEXT] [--threads N] [--isa …] [--peers NAME…] "
    "[--results FILE] [--resume] [--model] [--list] [--json]";

}  // namespace

Syntax bench_syntax() {
  namespace po = boost::program_options;
  Syntax syntax{.usage = kBenchUsage,
                .words = "suite",
                .choices = {{"suite",
                             {"gemm", "conv", "elementwise", "framework", "models", "halves",
                              "networks", "variation", "cold", "corpus"}}},
                .paths = {"results", "roofline", "against", "models"}};
  auto text = [] { return po::value<std::string>()->default_value(""); };
  syntax.options.add_options()("device", text(), "device to measure")(
      "option", po::value<Arguments>()->default_value({}, "")->composing(),
      "option of the device's plugin, as isa=x86-64-v3 of CPU's")(
      "isa", text(),
      "level of x86-64 that ours and the peers' code is held to; default: PLUGRAD_CPU_TARGET")(
      "filter", text(), "only the row of this name, or those whose name contains it")(
      "threads", po::value<int>()->default_value(0), "only rows that use so many threads")(
      "peers", po::value<Arguments>()->multitoken(),
      "peers to measure beside; default: all that are installed")(
      "family", text(), "only rows of this family of the corpus")(
      "results", text(), "file that keeps the corpus's results; default: in the cache folder")(
      "model", "predicted beside measured times of the corpus's rows, without peers")(
      "resume", "go on with the corpus where its file of results ends")(
      "against", text(),
      "build tree to compare with, as build/before: each row by both in turns, medians of 9")(
      "roofline", text(), "draw the rows into this SVG file")(
      "models", po::value<std::string>(),
      "with the suite networks: measure the ONNX files below a folder, one file, or those of the "
      "Python package NAME or NAME==VERSION; with cold: a folder or file, with inputs "
      "NAME/INPUT.npy beside NAME.onnx")(
      "size", po::value<Arguments>()->default_value({}, "")->composing(),
      "with --models: NAME=N or INPUT.AXIS=N, a size that models leave open; 1 for the first axis "
      "of an input and 64 for the others without it")(
      "input", po::value<Arguments>()->default_value({}, "")->composing(),
      "with --models: NAME=FILE.npy or NAME=NUMBER, the elements of an input; random without it")(
      "list", "names of the rows, without measuring")(
      "list-peers", "peers that are installed, and how to install the others")("json",
                                                                               "one JSON document");
  for (const char* isa : bench::kIsaNames) syntax.choices["isa"].emplace_back(isa);
  for (const char* peer : bench::kPeerNames) syntax.choices["peers"].emplace_back(peer);
  return syntax;
}

}  // namespace plugrad::tools
