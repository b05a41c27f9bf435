"""Tests tools/update-conformance-reports: its output for a report, and the errors that --check
finds in a table."""
import pathlib
import runpy
import unittest

TOOL = runpy.run_path(str(pathlib.Path(__file__).resolve().parents[2] / "tools/update-conformance-reports"))
PAGE = "before\n<!-- judged: begin -->\n<!-- judged: end -->\nbehind\n"
SIZES = {"L0": 2, "L1": 3, "L2": 0, "L3": 0, "perf": 0}


def report(device, *tests):
    return {"device": device, "driver": "d 1", "suite_version": "1.0-a",
            "tests": [{"level": level, "status": status} for level, status in tests]}


def row_of(device="CPU: X", last="unsupported"):
    tests = [("L0", "pass"), ("L0", "pass"), ("L1", "pass"), ("L1", "pass"), ("L1", last)]
    return TOOL["row"](report(device, *tests), "silicon", "2026-01-02")


class Table(unittest.TestCase):
    def breaches(self, page, suite="1.0-a", sizes=None):
        return TOOL["page_breaches"](page, suite, sizes or SIZES)

    def test_a_row_has_what_was_judged_and_the_counts_of_each_level(self):
        self.assertEqual(row_of(), ["CPU: X", "d 1", "silicon", "2026-01-02", "1.0-a", "2 / 0 / 0", "2 / 0 / 1",
                                    "0 / 0 / 0", "0 / 0 / 0", "0 / 0 / 0"])
        self.assertEqual(row_of(last="crash")[6], "2 / 1 / 0")
        self.assertEqual(row_of(last="waived")[6], "2 / 1 / 0 (1 waived)")

    def test_a_new_row_replaces_that_of_its_device_alone(self):
        page = TOOL["updated"](PAGE, [row_of("VULKAN: V"), row_of()])
        self.assertLess(page.index("CPU: X"), page.index("VULKAN: V"))
        renewed = TOOL["updated"](page, [row_of("CPU: Y")])
        self.assertEqual(renewed, page.replace("CPU: X", "CPU: Y"))
        self.assertTrue(renewed.startswith("before\n") and renewed.endswith("behind\n"))

    def test_check_takes_what_the_tool_wrote(self):
        self.assertEqual(self.breaches(TOOL["updated"](PAGE, [row_of(), row_of("OPENCL: O", "waived")])), [])

    def test_check_names_the_command_where_a_row_is_of_another_suite(self):
        found = self.breaches(TOOL["updated"](PAGE, [row_of()]), suite="1.0-b")
        self.assertEqual(found, ["CPU was judged by suite 1.0-a; this is 1.0-b: tools/update-conformance-reports CPU"])

    def test_check_finds_wrong_sums_failures_and_edits(self):
        page = TOOL["updated"](PAGE, [row_of()])
        self.assertIn("does not add up", self.breaches(page.replace("2 / 0 / 1", "3 / 0 / 1"))[0])
        self.assertIn("1 failures", self.breaches(TOOL["updated"](PAGE, [row_of(last="fail")]))[0])
        self.assertIn("not as the tool writes it", self.breaches(page.replace("| CPU", "|  CPU"))[0])
        self.assertIn("10", self.breaches(page.replace(" | 2 / 0 / 1", ""))[0])


if __name__ == "__main__":
    unittest.main()
