"""Programs that must not compile: the first error states the fix in one line.

compile_errors.py COMPILER INCLUDE_FOLDER…"""
import re
import subprocess
import sys

PROGRAMS = [
    ("a condition on a Tensor", "Tensor a; if (a > 0.5) return 1;", "a Tensor is no bool: for `if (a > 0)` write (a > 0).item<bool>()"),
    ("negation of a Tensor as a condition", "Tensor a; while (a) return 1;", "a Tensor is no bool"),
    ("a module without its fields", "struct Net { nn::Linear l{1, 1}; }; nn::parameters(Net());", "write PLUGRAD_FIELDS("),
    ("a field without its fields",
     "struct Inner { Tensor w; }; struct Net { Inner inner; PLUGRAD_FIELDS(inner) }; nn::save(Net(), \"f\");", "write PLUGRAD_FIELDS("),
    ("a jitted function that returns a number",
     "jit([](const Tensor& x) { return x.item<float>(); })(Tensor::ones({}));", "a number would be that of the recorded call for ever"),
    ("a jitted function with a number among its results",
     "jit([](const Tensor& x) { return std::pair(x, 1.0f); })(Tensor::ones({}));", "a number would be that of the recorded call for ever"),
    ("a jitted function that returns a list of numbers",
     "jit([](const Tensor& x) { return x.to_vector<float>(); })(Tensor::ones({}));", "a number would be that of the recorded call for ever"),
    ("a jitted function that takes a pointer",
     "int* p = nullptr; jit([](const Tensor& x, int*) { return x; })(Tensor::ones({}), p);", "arguments of a jitted function are tensors"),
    ("a copy that would share its tensors", "struct Net { Tensor w; }; nn::clone(Net());", "a copy of this would share its tensors"),
    ("a jitted function with other arguments",
     "jit([](const Tensor& x, const Tensor& y) { return x + y; })(Tensor::ones({}));", "the jitted function does not take these arguments"),
    ("a jitted function with a wrong body",
     "jit([](const Tensor& x) { return x.no_such_function(); })(Tensor::ones({}));", "no_such_function"),
    ("a layer that is none", "nn::Sequential net(nn::Linear(1, 1), 3);", "a layer of nn::Sequential takes one Tensor and returns one"),
]
GOOD = """nn::Sequential net(nn::Linear(2, 2), gelu, [](const Tensor& x) { return x + 1; });
  const Tensor y = net(Tensor::from({1, 2.5}));
  const auto step = jit([](const Tensor& x, std::optional<float>) { return std::tuple(x, std::vector{x}); });
  std::vector<nn::Linear> layers; layers.emplace_back(2, 2);
  nn::parameters(nn::clone(layers)); step(y, std::optional<float>()); return y.defined() ? 0 : 1;"""


def errors_of(compiler, folders, body):
    program = f'#include "plugrad/plugrad.h"\nusing namespace plugrad;\nint main() {{\n  {body}\n}}\n'
    done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", *(f"-I{f}" for f in folders), "-"],
                          input=program, capture_output=True, text=True)
    return re.findall(r"error: (.*)", done.stderr)


def main(compiler, *folders):
    wrong = []
    if errors_of(compiler, folders, GOOD):
        wrong.append(f"the right program: {errors_of(compiler, folders, GOOD)}")
    for name, body, expected in PROGRAMS:
        errors = errors_of(compiler, folders, body)
        if not errors or expected not in errors[0]:
            wrong.append(f"{name}: the first error is {errors[:1]}, without \"{expected}\"")
        if len(errors) > (2 if "body" in name else 1):
            wrong.append(f"{name}: {len(errors)} errors where one says it: {errors}")
    sys.exit("\n".join(wrong) or 0)


main(*sys.argv[1:])
