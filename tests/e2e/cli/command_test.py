"""Tests version, help, manual, completion and name suggestions of the command."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

BINARY = os.environ["PLUGRAD_BINARY"]


def run(*arguments, **environment):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=250,
                          env={**os.environ, **environment})


def listed_commands():
    return re.findall(r"^  ([a-z][\w-]*)  ", run("--help").stdout, re.M)


def listed_options(command):
    return set(re.findall(r"^  (?:-\w \[ )?(--[\w-]+)", run("help", command).stdout, re.M))


class Version(unittest.TestCase):
    def test_version_abi_and_build_as_text_and_json(self):
        root = pathlib.Path(__file__).resolve().parents[3]
        version = re.search(r"project\(plugrad VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text())[1]
        text = run("--version")
        self.assertEqual((text.returncode, text.stderr), (0, ""))
        self.assertRegex(text.stdout, rf"^plugrad {re.escape(version)}\nplugin ABI \d+\.\d+\nbuild \S+, (GCC|Clang) ")
        told = json.loads(run("--version", "--json").stdout)
        self.assertEqual(list(told), ["version", "abi", "build", "compiler", "arch"])
        self.assertEqual(told["version"], version)
        self.assertIn(f"plugin ABI {told['abi']}\n", text.stdout)
        self.assertEqual(run("--version", "--jsn").returncode, 2)


class Help(unittest.TestCase):
    def test_help_of_a_command_is_its_help(self):
        self.assertEqual(len(listed_commands()), 19)
        for command in listed_commands():
            done = run("help", command)
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)
            self.assertEqual(done.stdout, run(command, "--help").stdout)
            self.assertTrue(done.stdout.startswith(f"usage: plugrad {command}"), done.stdout)
        self.assertEqual(run("help").stdout, run("--help").stdout)
        self.assertEqual(run("help", "fly").returncode, 2)


class Companions(unittest.TestCase):
    def test_a_missing_one_is_named_with_its_target(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(BINARY, folder)
            for command, target in (("explain", "plugrad_explain_tool"), ("run", "plugrad_models_tool"),
                                    ("run --profile", "plugrad_explain_tool"), ("bench", "plugrad_bench_tool"),
                                    ("conformance", "plugrad_conformance_tool")):
                done = subprocess.run([alone, *command.split(), "x"], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
                self.assertIn(f"No such file or directory; build the target {target}", done.stderr)
            helped = subprocess.run([alone, "help", "explain"], capture_output=True, text=True)
            self.assertEqual((helped.returncode, helped.stdout), (0, run("help", "explain").stdout))


class DidYouMean(unittest.TestCase):
    def test_the_nearest_name_is_told(self):
        for arguments, meant in ((["trian", "mnist"], "train"), (["help", "devcies"], "devices"),
                                 (["devices", "--jsn"], "--json"), (["train", "mnist", "--modle", "cnn"], "--model"),
                                 (["train", "mnits"], "mnist"), (["train", "cifar"], "cifar10"),
                                 (["data", "fashion-mnist"], "fashion_mnist"),
                                 (["train", "mnist", "--model", "smal"], "small"), (["cache", "stast"], "stats"),
                                 (["tune", "shwo"], "show"), (["tune", "exprt", "file"], "export"),
                                 (["explain", "matmull"], "matmul"), (["new-plugin", "x", "--lang", "ccpp"], "cpp"),
                                 (["completion", "bsh"], "bash"),
                                 (["conformance", "--device", "CPU", "--level", "prf"], "perf")):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), (arguments, done.stderr))
            self.assertIn(f"did you mean {meant}?", done.stderr)
        if "PLUGRAD_BUILD_BENCH=ON" not in run("bench", "gem").stderr:
            self.assertIn("did you mean gemm?", run("bench", "gem").stderr)
            self.assertIn("did you mean openblas?", run("bench", "gemm", "--peers", "openblass").stderr)

    def test_what_is_near_nothing_is_not_advised(self):
        self.assertNotIn("did you mean", run("fly").stderr)


class Manual(unittest.TestCase):
    def test_it_names_every_command_and_option(self):
        page = run("man").stdout.replace("\\-", "-")
        sections = dict(re.findall(r"^\.SS (\S+)\n(.*?)(?=^\.S[SH] )", page, re.M | re.S))
        self.assertEqual(list(sections), listed_commands())
        for command, text in sections.items():
            self.assertEqual(set(re.findall(r"^\\fB(--[\w-]+)", text, re.M)), listed_options(command), command)

    @unittest.skipUnless(shutil.which("man"), "there is no man")
    def test_man_reads_it_without_a_warning(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "plugrad.1")
            path.write_text(run("man").stdout)
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(path)],
                                  capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Completion(unittest.TestCase):
    def complete(self, *words, folder="."):
        """Completions of bash for the last word; "=" is a separate word, as in bash."""
        script = ('source <("$0" completion bash) && COMP_WORDS=("$@") && COMP_CWORD=$(($# - 1)) && _plugrad && '
                  'printf "%s\\n" "${COMPREPLY[@]}" && complete -p plugrad >&2')
        done = subprocess.run(["bash", "--norc", "-c", script, BINARY, *words], capture_output=True, text=True, cwd=folder)
        self.assertEqual((done.returncode, done.stderr), (0, "complete -F _plugrad plugrad\n"))
        return done.stdout.split("\n")[:-1] if done.stdout != "\n" else []

    def test_bash_offers_commands_options_and_values(self):
        self.assertEqual(self.complete("plugrad", "t"), ["train", "tune"])
        self.assertLessEqual({*listed_commands(), "help", "--version"}, set(self.complete("plugrad", "")))
        self.assertEqual(self.complete("plugrad", "help", "dev"), ["devices"])
        self.assertEqual(self.complete("plugrad", "train", "--s"), ["--steps", "--seed", "--save"])
        self.assertEqual(self.complete("plugrad", "train", ""), ["mnist", "fashion_mnist", "cifar10"])
        self.assertEqual(self.complete("plugrad", "train", "mnist", "--model", ""), ["cnn", "small"])
        self.assertEqual(self.complete("plugrad", "train", "mnist", "--model", "=", "s"), ["small"])
        self.assertEqual(self.complete("plugrad", "train", "mnist", "--model", "="), ["cnn", "small"])
        self.assertEqual(self.complete("plugrad", "train", "mnist", "--steps", ""), [])
        self.assertEqual(self.complete("plugrad", "conformance", "--level", "L"), ["L0", "L1", "L2", "L3"])
        for command in listed_commands():
            self.assertEqual(set(self.complete("plugrad", command, "--")), listed_options(command))

    def test_bash_offers_files_whose_names_have_spaces(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "my net.safetensors").touch()
            pathlib.Path(folder, "other").touch()
            self.assertEqual(self.complete("plugrad", "train", "mnist", "--load", "my", folder=folder), ["my net.safetensors"])
            self.assertEqual(self.complete("plugrad", "explain", "o", folder=folder), ["other"])

    def test_other_shells_read_their_scripts(self):
        for shell, flag in (("bash", "-n"), ("zsh", "-n"), ("fish", "-n")):
            script = run("completion", shell).stdout
            for command in listed_commands():
                for option in listed_options(command):
                    self.assertIn(f"-l {option[2:]} " if shell == "fish" else option, script)
            if shutil.which(shell):
                done = subprocess.run([shell, flag], input=script, capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    @unittest.skipUnless(shutil.which("fish"), "there is no fish")
    def test_fish_offers_them(self):
        ask = 'complete -C "plugrad tra"; complete -C "plugrad train --model "'
        done = subprocess.run(["fish", "--no-config", "-c", f"'{BINARY}' completion fish | source; {ask}"],
                              capture_output=True, text=True)
        self.assertEqual([line.split("\t")[0] for line in done.stdout.splitlines()], ["train", "cnn", "small"])


class OneJsonStyle(unittest.TestCase):
    def test_json_is_one_document_on_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            settings = {"PLUGRAD_CACHE_DIR": folder, "PLUGRAD_SEARCH_DB": folder + "/search.db"}
            for arguments in (["--version"], ["cache", "stats"], ["cache", "clear"], ["calibrate", "--show"], ["devices"], ["tune", "show"],
                              ["tune", "export", folder + "/out"], ["tune", "import", folder + "/out"],
                              ["explain", "--list"], ["explain", "relu"], ["data", "cifar10", "--where"],
                              ["new-plugin", "acme", "--dir", folder + "/acme"], ["conformance", "--list"]):
                done = run(*arguments, "--json", **settings)
                self.assertEqual(done.returncode, 0, (arguments, done.stderr))
                self.assertEqual(done.stdout.count("\n"), 1, arguments)
                document = json.loads(done.stdout)
                for part in document if isinstance(document, list) else [document]:
                    for name in part:
                        self.assertRegex(name, "^[a-z][a-z0-9_]*$")


class Tune(unittest.TestCase):
    def test_show_says_when_there_is_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/search.db"
            done = run("tune", "show", PLUGRAD_SEARCH_DB=path)
            self.assertEqual((done.returncode, done.stdout),
                             (0, f"no search has found anything yet: {path} is not there; BEAM=2 before a program searches\n"))
            empty = json.loads(run("tune", "show", "--json", PLUGRAD_SEARCH_DB=path).stdout)
            self.assertEqual(empty, {"path": path, "records": []})


if __name__ == "__main__":
    unittest.main()
