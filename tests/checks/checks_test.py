"""Tests the checks: violations are reported, and correct code is not."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/check"))
sys.dont_write_bytecode = True
import docs  # noqa: E402
import layers  # noqa: E402
import licences  # noqa: E402
import portable  # noqa: E402
import sizes  # noqa: E402
import surface  # noqa: E402
import unity  # noqa: E402


class Layers(unittest.TestCase):
    def test_arrows_point_down(self):
        self.assertIsNone(layers.core_breach("rewrite", "ir/graph.h"))
        self.assertIsNone(layers.core_breach("nn", "base/check.h"))
        self.assertIn("must not enter", layers.core_breach("ir", "rewrite/rule.h"))
        self.assertIn("must not enter", layers.core_breach("schedule", "codegen/codegen.h"))
        self.assertIn("must not enter", layers.core_breach("codegen", "runtime/buffer.h"))
        self.assertIn("must not enter", layers.core_breach("runtime", "ir/graph.h"))
        self.assertIn("must not enter", layers.core_breach("nn", "onnx/import/call.h"))
        self.assertIn("must not enter", layers.core_breach("nn", "plugrad/onnx.h"))
        self.assertIsNone(layers.core_breach("onnx", "engine/session.h"))

    def test_core_includes_no_sdk_and_no_device_library(self):
        for header in ("plugrad/sdk/guard.h", "llvm/IR/Module.h", "clang/AST/Decl.h", "CL/cl.h", "cuda.h"):
            self.assertIsNotNone(layers.core_breach("runtime", header), header)

    def test_codegen_knows_the_narrow_part_of_plugin_api(self):
        self.assertIsNone(layers.core_breach("codegen", "plugrad/plugin_api/kernel_ir.h"))
        self.assertIsNotNone(layers.core_breach("codegen", "plugrad/plugin_api/runner.h"))
        self.assertIsNone(layers.core_breach("runtime", "plugrad/plugin_api/runner.h"))

    def test_outside_rooms(self):
        self.assertIsNotNone(layers.outside_breach("plugins", "plugrad/tensor.h"))
        self.assertIsNotNone(layers.outside_breach("sdk", "ir/graph.h"))
        self.assertIsNotNone(layers.outside_breach("tests", "plugins/cpu_clang/loader.h"))
        self.assertIsNotNone(layers.outside_breach("tools", "clang/Frontend/CompilerInstance.h"))
        self.assertIsNone(layers.outside_breach("plugins", "plugrad/sdk/guard.h"))

    def test_public_headers_hide_the_rooms_and_the_plugin_api(self):
        def breaches(text):
            return len(list(layers.public_breaches("core/include/plugrad/x.h", text)))
        self.assertEqual(breaches('#include "plugrad/dtype.h"\n// engine::Session makes it'), 0)
        self.assertEqual(breaches('#include "plugrad/plugin_api/kernel_ir.h"'), 1)
        self.assertEqual(breaches('#include "engine/session.h"'), 1)
        self.assertEqual(breaches("namespace engine {\nstruct TensorState;\n}"), 1)
        self.assertEqual(breaches("std::shared_ptr<engine::TensorState> state_;"), 1)


class Surface(unittest.TestCase):
    HEADER = """
    namespace plugrad {
    class Tensor {
     public:
      Tensor(int value) : value_(value) {}
      Tensor exp() const;  ///< Tensor comment() const;
      Tensor power() const { return exp(); }
      int64_t size() const;
      Tensor operator-() const;
     private:
      Tensor hidden() const;
      std::function<Tensor(int)> field_;
    };
    struct Layer {
      Tensor operator()(const Tensor& x) const;
    };
    Tensor join(const std::vector<Tensor>& all);
    }"""

    def test_public_functions_of_tensors_are_found(self):
        self.assertEqual(surface.public_functions(self.HEADER),
                         {("Tensor", "exp"), ("Tensor", "operator-"), ("", "Layer"), ("", "join")})

    def breaches(self, cases, reasons):
        return [b.split(" ", 1)[0] for b in surface.breaches_of(
            surface.public_functions(self.HEADER), cases, surface.exemptions(reasons))]

    def test_each_needs_a_case_or_a_reason(self):
        cases = "x.exp(); (-x); Layer(3)(x); join({x});"
        self.assertEqual(self.breaches(cases, ""), [])
        self.assertEqual(self.breaches(cases.replace("x.exp()", ""), ""), ["Tensor::exp"])
        self.assertEqual(self.breaches(cases.replace("join(", "x.join("), ""), ["join"])
        self.assertEqual(self.breaches(cases.replace("(-x)", "y - x"), ""), ["Tensor::operator-"])
        self.assertEqual(self.breaches(cases.replace("Layer", "Other"), "Layer: a reason"), [])

    def test_a_reason_names_a_function_without_a_case(self):
        cases = "x.exp(); (-x); Layer(3)(x); join({x});"
        self.assertEqual(self.breaches(cases, "join: it has a case"), ["join"])
        self.assertEqual(self.breaches(cases, "gone: there is none"), [surface.EXEMPT + ":"])

    def test_internal_symbols_are_in_no_public_header(self):
        text = "PLUGRAD_INTERNAL Tensor join(std::vector<Tensor> parts);"
        self.assertEqual(len(list(surface.internal_breaches("x.h", text))), 1)
        self.assertEqual(list(surface.internal_breaches("x.h", self.HEADER)), [])


class Sizes(unittest.TestCase):
    def lengths(self, text):
        return [length for _, length in sizes.functions(text)]

    def test_function_bodies_are_counted_and_scopes_are_not(self):
        text = "namespace a {\nclass B {\n  int f() {\n    return 1;\n  }\n};\n}\nint g(int x) { return x; }\n"
        self.assertEqual(self.lengths(text), [3, 1])

    def test_braces_in_literals_and_comments_do_not_count(self):
        self.assertEqual(self.lengths('void f() {\n  puts("}{"); // }\n  char c = \'}\';\n}\n'), [4])

    def test_control_flow_inside_a_function_belongs_to_it(self):
        self.assertEqual(self.lengths("void f() {\n  for (;;) {\n    if (x) {\n    }\n  }\n}\n"), [6])


class Folders(unittest.TestCase):
    def breaches(self, folder, count):
        paths = [pathlib.Path(folder) / f"{number}.cpp" for number in range(count)]
        return list(sizes.folder_breaches(paths + [pathlib.Path("README.md")]))

    def test_at_most_25_files_directly_in_a_folder(self):
        self.assertEqual(self.breaches("core/src/base", 25), [])
        self.assertEqual(self.breaches("core/src/base", 26), [
            "core/src/base: 26 files; at most 25: put them into folders by subject"])

    def test_files_of_folders_within_do_not_count(self):
        paths = [pathlib.Path(f"bench/{part}/{number}.cpp") for part in "abc" for number in range(20)]
        self.assertEqual(list(sizes.folder_breaches(paths)), [])

    def test_exempt_folders(self):
        self.assertEqual(self.breaches("docs/decisions", 100), [])
        for folder, reason in sizes.FOLDERS_EXEMPT.items():
            self.assertTrue((sizes.tree.ROOT / folder).is_dir(), folder)
            self.assertTrue(reason)


class Portable(unittest.TestCase):
    def test_machine_paths(self):
        slash = "/"
        self.assertTrue(portable.MACHINE_PATH.search(f"in {slash}home{slash}someone"))
        self.assertFalse(portable.MACHINE_PATH.search("docs/root/x and $HOME/work"))


class Licences(unittest.TestCase):
    def test_the_first_line_names_the_licence(self):
        self.assertEqual(licences.licence_of(f"/* {licences.TAG}0BSD\n   text */"), "0BSD")
        self.assertIsNone(licences.licence_of(f"// text\n// {licences.TAG}0BSD\n"))

    def test_who_must_name_one(self):
        self.assertEqual(licences.expected(pathlib.Path("sdk/include/plugrad/sdk/entry.h")), "Apache-2.0")
        self.assertEqual(licences.expected(pathlib.Path("sdk/template/c/plugin.c")), "0BSD")
        self.assertIsNone(licences.expected(pathlib.Path("sdk/template/c/manifest.json")))
        self.assertIsNone(licences.expected(pathlib.Path("plugin_api/include/plugrad/plugin_api/queue.h")))


class Docs(unittest.TestCase):
    def test_links(self):
        self.assertEqual(docs.LINK.findall("see [a](docs/a.md#part) and [b](b.md)"), ["docs/a.md", "b.md"])

    def breaches(self, block):
        example = "#include <a>\nint main() {\n  int x = 1;\n\n  use(x);  // twice\n}"
        return len(list(docs.example_breaches("page.md", f"text\n```cpp\n{block}\n```\n", {example})))

    def test_cpp_blocks_are_parts_of_examples(self):
        self.assertEqual(self.breaches("int x = 1;\n\nuse(x);  // twice"), 0)
        self.assertEqual(self.breaches("int x = 1;\nuse(x);  // twice"), 1)
        self.assertEqual(self.breaches("use(x);"), 1)
        self.assertEqual(self.breaches("int x = 1;"), 0)

    def test_a_block_with_main_is_a_whole_example(self):
        self.assertEqual(self.breaches("#include <a>\nint main() {\n  int x = 1;\n\n  use(x);  // twice\n}"), 0)
        self.assertEqual(self.breaches("int main() {\n  int x = 1;\n\n  use(x);  // twice\n}"), 1)

    def test_spans_of_sources_and_page_are_the_same(self):
        page = "| `plan` | 0 plan | time |\n| `work` | 6 pool | time |\n"
        plan, work = 'const trace::Scope span(trace::Category::Plan, "plan");', 'trace::span(\n  Category::Pool, "work", start);'
        self.assertEqual(list(docs.span_breaches(page, [plan, work])), [])
        self.assertEqual(len(list(docs.span_breaches(page, [plan]))), 1)
        self.assertEqual(len(list(docs.span_breaches(page, [plan, work, plan.replace('"plan"', '"lookup"')]))), 1)


class Unity(unittest.TestCase):
    FILES = {
        "a.cpp": "namespace r {\nnamespace {\nusing Ids = int;\nenum { kFirst, kSecond = 3 };\nint f(int x) { return x; }\n}\n}\n",
        "b.cpp": "namespace r {\nnamespace {\nusing Ids = int;\nconstexpr int kSecond = 2, kCount[] = {1};\n}\nint g() { return 1; }\n}\n",
        "c.cpp": "namespace r {\nnamespace {\nusing Ids = long;\n}\n}\n",
        "a.h": "namespace r {\ninline int f(long x) { return 0; }\n}\n",
        "using.cpp": "namespace r::in {\nusing other::Thing;\n}\n",
        "thing.h": "namespace r {\nstruct Thing {};\n}\n",
        "other.h": "namespace other {\nstruct Thing {};\n}\n",
        "outside.cpp": "using namespace r;\nnamespace {\nconstexpr int kThird = 3;\n}\n",
        "inside.cpp": "namespace r {\nnamespace {\nconstexpr int kThird = 3;\n}\n}\n",
        "third.h": "namespace r {\ninline constexpr int kOne = 1, kThird = 4;\n}\n",
        "separators.cpp": "namespace r {\nnamespace {\nint most() { return 2'000'000'000; }  // protobuf's\nint f() { return 1; }\n}\n}\n",
        "attribute.cpp": "namespace r {\nnamespace {\nvoid h() {}\n[[noreturn]] int f() { throw 1; }\n}\n}\n",
        "sibling.h": "namespace r::beside {\nint g();\nint f();\n}\n",
    }

    def breaches(self, *names):
        return list(unity.breaches(list(map(pathlib.PurePath, names)), lambda path: self.FILES[str(path)]))

    def test_names_of_two_files_clash(self):
        self.assertEqual(["kSecond is declared in the anonymous namespaces of a.cpp, b.cpp"], self.breaches("a.cpp", "b.cpp"))

    def test_equal_aliases_do_not_clash_others_do(self):
        self.assertEqual([], self.breaches("b.cpp"))
        self.assertIn("Ids is declared", self.breaches("b.cpp", "c.cpp")[0])

    def test_a_name_of_a_header_is_not_hidden(self):
        self.assertEqual(["f is declared in an anonymous namespace of a.cpp and in a.h"], self.breaches("a.cpp", "a.h"))
        self.assertEqual(["kThird is declared in an anonymous namespace of inside.cpp and in third.h"],
                         self.breaches("inside.cpp", "third.h"))
        self.assertEqual([], self.breaches("a.cpp", "sibling.h"))

    def test_separators_of_digits_are_no_quotes(self):
        self.assertEqual(["f is declared in the anonymous namespaces of a.cpp, separators.cpp"],
                         self.breaches("a.cpp", "separators.cpp"))

    def test_an_attribute_begins_a_declaration(self):
        self.assertEqual(["f is declared in the anonymous namespaces of a.cpp, attribute.cpp"],
                         self.breaches("a.cpp", "attribute.cpp"))

    def test_a_using_declaration_may_hide_an_outer_name(self):
        self.assertEqual(1, len(self.breaches("using.cpp", "thing.h")))
        self.assertEqual([], self.breaches("using.cpp", "other.h"))

    def test_a_using_directive_joins_two_namespaces(self):
        self.assertEqual(["kThird is declared in the anonymous namespaces of outside.cpp, inside.cpp"],
                         self.breaches("outside.cpp", "inside.cpp"))
        self.assertEqual(1, len(self.breaches("outside.cpp", "third.h")))


if __name__ == "__main__":
    unittest.main()
