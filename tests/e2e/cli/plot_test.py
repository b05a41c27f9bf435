"""Tests train --plot: the files, the curve on a terminal, bad paths."""
import html.parser
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import tempfile
import unittest
import xml.dom.minidom

from data_sets_test import write_idx_set

BINARY = os.environ["PLUGRAD_BINARY"]
STEPS = 6
ON_TERMINAL = {"LC_ALL": "", "LC_CTYPE": "", "TERM": "xterm"}


def train(*arguments, data="fashion_mnist", **options):
    return subprocess.run([BINARY, "train", data, "--model", "small", *map(str, arguments)], stdout=subprocess.PIPE,
                          text=True, timeout=250, **{"stderr": subprocess.PIPE, **options})


def train_on_terminal(folder, **environment):
    """The standard error of a training whose stderr is a terminal of 100 columns."""
    master, slave = pty.openpty()
    subprocess.run(["stty", "columns", "100"], stdin=slave, check=True)
    done = train("--batch", 16, "--steps", STEPS, "--data", folder, "--json", stderr=slave,
                 env={**os.environ, **ON_TERMINAL, **environment})
    os.close(slave)
    shown = b""
    try:
        while part := os.read(master, 65536):
            shown += part
    except OSError:  # the end
        pass
    os.close(master)
    return done, shown.decode()


def points(path):
    """The points of an SVG path of lines."""
    return [tuple(map(float, pair)) for pair in re.findall(r"[ML]([\d.-]+) ([\d.-]+)", path)]


class Page(html.parser.HTMLParser):
    """Collects tags and texts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.lines, self.texts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag == "path" and ("class", "line") in attributes:
            self.lines.append(dict(attributes)["d"])

    def handle_data(self, data):
        self.texts.append(data)


class Plot(unittest.TestCase):
    @unittest.skipUnless(os.environ.get("PLUGRAD_DATA"), "PLUGRAD_DATA is not set")
    def test_mnist_leaves_a_page_and_an_image_with_a_point_for_each_step(self):
        with tempfile.TemporaryDirectory() as name:
            page_path, image_path = pathlib.Path(name, "a.html"), pathlib.Path(name, "a.svg")
            plain = json.loads(train("--steps", STEPS, "--json", data="mnist").stdout)
            self.assertNotIn("plot", plain)
            for path in (page_path, image_path):
                done = train("--steps", STEPS, "--plot", path, "--json", data="mnist")
                self.assertEqual(done.returncode, 0, done.stderr)
                result = json.loads(done.stdout)
                self.assertEqual(result["plot"], str(path))
                self.assertEqual(set(result) - {"plot"}, set(plain))
                self.assertAlmostEqual(result["loss"], plain["loss"], places=3)
                self.assertAlmostEqual(result["test_accuracy"], plain["test_accuracy"], places=2)
            self.assertEqual(len(os.listdir(name)), 2)

            page = Page(page_path.read_text())
            self.assertEqual(page.tags.count("svg"), 3)
            self.assertNotIn("script", page.tags)
            self.assertEqual([len(points(line)) for line in page.lines], [STEPS] * 3)
            self.assertIn(f"finished: step {STEPS} of {STEPS}", " ".join(page.texts))
            self.assertIn("mnist small on ", " ".join(page.texts))

            image = xml.dom.minidom.parse(str(image_path))
            lines = [p.getAttribute("d") for p in image.getElementsByTagName("path") if p.getAttribute("class") == "line"]
            self.assertEqual([len(points(line)) for line in lines], [STEPS] * 3)
            loss = points(lines[0])
            self.assertEqual([x for x, _ in loss], [round(64 + 388 * step / STEPS, 1) for step in range(1, STEPS + 1)])
            self.assertLess(loss[0][1], loss[-1][1])  # the loss falls; y grows downwards
            self.assertEqual(len(image.getElementsByTagName("circle")), 1)  # the accuracy of the test
            for tag in ("title", "desc"):
                self.assertEqual(len(image.getElementsByTagName(tag)), 4)  # of the image and its three parts

    def test_paths_that_cannot_be_written_end_it_before_the_training(self):
        with tempfile.TemporaryDirectory() as name:
            write_idx_set(pathlib.Path(name, "fashion-mnist"))
            pathlib.Path(name, "folder.svg").mkdir()
            for path, code, reason in (("a.png", 2, "must end in .svg or .html"), ("a", 2, "must end in"),
                                       ("missing/a.svg", 1, "cannot be written: No such file or directory"),
                                       ("folder.svg", 1, "cannot be written: Is a directory")):
                done = train("--data", name, "--plot", f"{name}/{path}")
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(f"{name}/{path}", done.stderr)
                self.assertIn(reason, done.stderr)
                self.assertNotIn("train  1/", done.stderr)
            # Without a data set that could be loaded: the path is checked before it.
            for option in ("--plot", "--save"):
                done = train("--data", f"{name}/folder.svg", option, f"{name}/missing/a.svg")
                self.assertIn(f"{option} {name}/missing/a.svg cannot be written", done.stderr)

    def test_an_interrupted_training_leaves_a_static_page(self):
        with tempfile.TemporaryDirectory() as name:
            write_idx_set(pathlib.Path(name, "fashion-mnist"))
            page = pathlib.Path(name, "a.html")
            child = subprocess.Popen([BINARY, "train", "fashion_mnist", "--model", "small", "--batch", "16", "--steps",
                                      "1000000", "--data", name, "--plot", page], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while not re.match("train +[1-9]", child.stderr.readline()):  # of the first step
                self.assertIsNone(child.poll())
            self.assertIn("location.reload()", page.read_text())
            child.send_signal(signal.SIGINT)
            child.communicate(timeout=250)
            self.assertEqual(child.returncode, 130)
            self.assertIn(" of 1000000", page.read_text())
            self.assertIn("stopped: step ", page.read_text())
            self.assertNotIn("location.reload()", page.read_text())


class Terminal(unittest.TestCase):
    def test_the_line_shows_the_curve_of_the_loss_if_the_terminal_can(self):
        with tempfile.TemporaryDirectory() as name:
            write_idx_set(pathlib.Path(name, "fashion-mnist"))
            done, shown = train_on_terminal(name, LANG="C.UTF-8")
            self.assertEqual(done.returncode, 0, shown)
            last = [line for line in shown.split("\r") if f" {STEPS}/{STEPS} [" in line][-1]
            bar = re.search(r"\[(.*?)\]", last)[1]
            self.assertEqual(len(bar), 24, last)
            self.assertRegex(bar, "^[\u2581-\u2588]+$")
            self.assertEqual((bar[0], bar[-1]), ("\u2588", "\u2581"))  # every label is 0: the loss falls
            self.assertIn("loss 0", last)

            for locale in ({"LANG": "C"}, {"LANG": "C.UTF-8", "LC_ALL": "C"}):
                _, shown = train_on_terminal(name, **locale)
                self.assertTrue(shown.isascii(), shown)
                self.assertIn("[========================]", shown)

    def test_elsewhere_the_lines_are_plain(self):
        with tempfile.TemporaryDirectory() as name:
            write_idx_set(pathlib.Path(name, "fashion-mnist"))
            done = train("--batch", 16, "--steps", STEPS, "--data", name, env={**os.environ, "LC_ALL": "C.UTF-8"})
            self.assertTrue(done.stderr.isascii(), done.stderr)
            self.assertRegex(done.stderr, rf"train  {STEPS}/{STEPS}  loss 0\.\d+  \d+ images/s  in 0:0\d\n")


if __name__ == "__main__":
    unittest.main()
