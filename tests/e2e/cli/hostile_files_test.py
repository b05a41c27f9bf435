"""Hostile files at the paths that the command reads and writes: each request ends with one
message."""
import os
import pathlib
import resource
import subprocess
import tempfile
import unittest

BINARY = os.environ["PLUGRAD_BINARY"]
HUGE = 1 << 42


def run(*arguments, limit=60, **environment):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=limit,
                          env={**os.environ, **environment})


def small_files():
    """The template's first files can be written, its source cannot."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


class Read(unittest.TestCase):
    def lay(self, folder):
        pipe, huge = os.path.join(folder, "pipe"), os.path.join(folder, "huge")
        os.mkfifo(pipe)
        with open(huge, "wb") as file:
            file.truncate(HUGE)
        return pipe, huge, "/dev/zero", folder

    def test_what_is_no_file_of_a_likely_size_is_refused_at_once(self):
        requests = (["explain"], ["tune", "import"], ["conformance", "--verify-report"],
                    ["conformance", "--device", "REFERENCE", "--waivers"], ["conformance", "--device", "REFERENCE", "--replay"],
                    ["conformance", "--plugin"])
        with tempfile.TemporaryDirectory() as folder:
            for path in self.lay(folder):
                for request in requests:
                    done = run(*request, path, PLUGRAD_SEARCH_DB=folder + "/search.db")
                    self.assertIn(done.returncode, (1, 2), (request, path, done.stderr))
                    self.assertIn(path, done.stderr)
                    self.assertNotIn("bad_alloc", done.stderr)


# Kernels with one variable size each.
KERNELS = (
    "%0 = buffer f32 [0, 1, {}]\n%1 = neg f32 %0\n",
    "%0 = buffer f32 [0, 1, {}, 4611686018427387904]\n%1 = neg f32 %0\n",
    "%0 = buffer f32 [{}, 1, 4]\n%1 = neg f32 %0\n",
    "%0 = buffer f32 [0, {}, 4]\n%1 = neg f32 %0\n",
    "%0 = iota i64 #{}\n%1 = neg i64 %0\n",
    "%0 = buffer f32 [0, 1, 1]\n%1 = expand f32 %0 [{}]\n%2 = reduce f32 %1 [add, 0]\n",
    "%0 = buffer f32 [0, 1, 4]\n%1 = pad f32 %0 [{}, 1]\n%2 = neg f32 %1\n",
    "%0 = buffer f32 [0, 1, 4]\n%1 = shrink f32 %0 [0, {}]\n%2 = neg f32 %1\n",
    "%0 = buffer f32 [0, 1, 4]\n%1 = reshape f32 %0 [{}, 4]\n%2 = neg f32 %1\n",
    "%0 = buffer f32 [0, 1, 4]\n%1 = permute f32 %0 [{}]\n%2 = buffer f32 [1, 1, 4]\n%3 = neg f32 %2\n",
    "%0 = buffer f32 [0, 1, 4]\n%1 = reduce f32 %0 [add, {}]\n",
    "%0 = buffer f32 [0]\n%1 = neg f32 %0\n",
    "%0 = const index 0\n%1 = const index {}\n%2 = range index %1 axis=0 kind=loop\n%3 = param f32 [0, 0, 4, 6]\n"
    "%4 = const f32 1\n%5 = store void %3, %2, %4\n%6 = sink void %5\n",
    "%1 = const index 4\n%2 = range index %1 axis=0 kind=loop\n%3 = param f32 [0, 0, {}, 6]\n"
    "%4 = const f32 1\n%5 = store void %3, %2, %4\n%6 = sink void %5\n",
    "%1 = const index 4\n%2 = range index %1 axis=0 kind=loop\n%3 = param f32 [{}, 0, 4, 6]\n"
    "%4 = const f32 1\n%5 = store void %3, %2, %4\n%6 = sink void %5\n",
    "%1 = const index 4\n%2 = range index %1 axis=0 kind=loop\n%3 = param f32 [0]\n"
    "%4 = const f32 1\n%5 = store void %3, %2, %4\n%6 = sink void %5\n",
)


class Kernels(unittest.TestCase):
    def test_no_size_of_a_file_of_ir_ends_the_process(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kernel.ir")
            for kernel in KERNELS:
                for size in ("-1", str(1 << 31), str(1 << 50), str(1 << 62), str((1 << 63) - 1), str(1 << 63)):
                    pathlib.Path(path).write_text(kernel.format(size))
                    done = run("explain", path, PLUGRAD_CACHE_DIR="", XDG_CACHE_HOME=folder)
                    what = (kernel.format(size), done.returncode, done.stderr)
                    self.assertIn(done.returncode, (0, 1), what)
                    self.assertNotIn("bad_alloc", done.stderr, what)
                    self.assertNotIn("std::", done.stderr, what)
                    if done.returncode == 1:
                        self.assertIn("kernel.ir", done.stderr, what)


    def test_parameters_of_a_kernel_are_numbered_without_a_gap(self):
        text = ("%1 = const index 4\n%2 = range index %1 axis=0 kind=loop\n%3 = param f32 [{}, 0, 4, 6]\n{}"
                "%4 = const f32 1\n%5 = store void %3, %2, %4\n%6 = sink void %5\n")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kernel.ir")
            for kernel, said in ((text.format(0, ""), ""), (text.format(5, ""), "the slots of the parameters are not 0 to 0"),
                                 (text.format(0, "%7 = param f32 [0, 0, 8, 5]\n"), "the slot is there twice"),
                                 (text.format(0, "%7 = barrier void\n"), "the op is of code generation alone")):
                pathlib.Path(path).write_text(kernel)
                done = run("explain", path)
                self.assertEqual(done.returncode, 1 if said else 0, (kernel, done.stderr))
                self.assertIn(said, done.stderr)


class NewPlugin(unittest.TestCase):
    def test_a_disk_that_is_full_leaves_no_part_of_a_project(self):
        with tempfile.TemporaryDirectory() as folder:
            there = os.path.join(folder, "there")
            os.mkdir(there)
            for path in (os.path.join(folder, "made"), there):
                done = subprocess.run([BINARY, "new-plugin", "acme", "--dir", path], capture_output=True, text=True,
                                      timeout=250, preexec_fn=small_files)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn("File too large", done.stderr)
            self.assertEqual((os.listdir(folder), os.listdir(there)), (["there"], []))

    def test_a_link_to_an_empty_folder_is_followed(self):
        with tempfile.TemporaryDirectory() as folder:
            target, link = os.path.join(folder, "target"), os.path.join(folder, "link")
            os.mkdir(target)
            os.symlink("target", link)
            self.assertEqual(run("new-plugin", "acme", "--dir", link).returncode, 0)
            self.assertTrue(os.path.islink(link))
            self.assertIn("acme", "".join(os.listdir(target)) + pathlib.Path(target, "CMakeLists.txt").read_text())

    def test_what_is_no_folder_is_refused_and_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe")
            os.mkfifo(pipe)
            for path in (pipe, "/dev/full"):
                done = run("new-plugin", "acme", "--dir", path)
                self.assertEqual(done.returncode, 1)
                self.assertIn(path, done.stderr)
            self.assertTrue(pathlib.Path(pipe).is_fifo())


if __name__ == "__main__":
    unittest.main()
