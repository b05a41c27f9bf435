"""Tests `plugrad view`: the page, the server, and exports."""
import base64
import gzip
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import unittest
import zlib

import trace_file

BINARY = os.environ["PLUGRAD_BINARY"]
TEMPLATE = """<!doctype html><meta name="trace-0-title" content=""><meta name="trace-1-title" content="">
<script type="application/octet-stream" id="trace-0"></script><script type="application/octet-stream" id="trace-1"></script>
"""


class Case(unittest.TestCase):
    """A copy of the command and its companion beside a small page with the viewer's places for traces, and a folder."""

    @classmethod
    def setUpClass(cls):
        cls.prefix = tempfile.TemporaryDirectory()
        cls.command = os.path.join(cls.prefix.name, "bin/plugrad")
        os.makedirs(os.path.join(cls.prefix.name, "bin"))
        for suffix in ("", "-explain"):
            try:
                os.link(BINARY + suffix, cls.command + suffix)
            except OSError:
                shutil.copy(BINARY + suffix, cls.command + suffix)
        cls.template = pathlib.Path(cls.prefix.name, "share/plugrad/viewer.html")
        cls.template.parent.mkdir(parents=True)
        cls.template.write_text(TEMPLATE)

    @classmethod
    def tearDownClass(cls):
        cls.prefix.cleanup()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.trace = trace_file.write(self.folder / "trace", trace_file.example())

    def environment(self, **changes):
        kept = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION")}
        return {**kept, **changes}

    def run_command(self, *arguments, **environment):
        return subprocess.run([self.command, *arguments], capture_output=True, text=True, timeout=250, cwd=self.folder,
                              env=self.environment(**environment))

    def lines_of(self, page, number=0):
        data = re.search(rf'<script type="application/octet-stream" id="trace-{number}">([^<]*)</script>', page)[1]
        unpacker = zlib.decompressobj(31)
        text = unpacker.decompress(base64.b64decode(data, validate=True))
        self.assertTrue(unpacker.eof and not unpacker.unused_data)  # one member
        return text.decode().splitlines()


class Page(Case):
    def test_the_page_holds_all_lines_of_the_trace(self):
        done = self.run_command("view", self.trace, "-o", "page.html")
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", "wrote page.html\n"))
        page = (self.folder / "page.html").read_text()
        self.assertEqual(self.lines_of(page), gzip.open(self.trace, "rt").read().splitlines())
        self.assertIn(f'<meta name="trace-0-title" content="{self.trace}">', page)
        self.assertEqual(re.sub(r"(?<=trace-0\">)[^<]+", "", page).replace(self.trace, ""), TEMPLATE)

    def test_two_traces_are_in_one_page(self):
        name = "<b>&\"'.trace"
        trace_file.write(self.folder / name, [trace_file.header(program="</script><script>alert(1)</script>")])
        done = self.run_command("view", self.trace, name, "--output=page.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (self.folder / "page.html").read_text()
        self.assertEqual(json.loads(self.lines_of(page, 1)[0])["program"], "</script><script>alert(1)</script>")
        self.assertIn('<meta name="trace-1-title" content="&lt;b&gt;&amp;&quot;&#39;.trace">', page)
        self.assertNotIn("alert", page)

    def test_a_build_without_the_page_says_what_is_missing(self):
        self.template.rename(str(self.template) + ".away")
        try:
            done = self.run_command("view", self.trace, "-o", "page.html")
        finally:
            pathlib.Path(str(self.template) + ".away").rename(self.template)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("Node.js", done.stderr)
        self.assertIn("viewer.html", done.stderr)
        self.assertFalse((self.folder / "page.html").exists())

    def test_a_page_of_another_version_is_refused(self):
        for text in ("", TEMPLATE.replace("trace-0-title", "x"), TEMPLATE * 2):
            self.template.write_text(text)
            done = self.run_command("view", self.trace, "-o", "page.html")
            self.template.write_text(TEMPLATE)
            self.assertEqual(done.returncode, 1)
            self.assertIn("another version", done.stderr)

    def test_a_page_that_cannot_be_written_is_told(self):
        done = self.run_command("view", self.trace, "-o", "missing/page.html")
        self.assertEqual(done.returncode, 1)
        self.assertIn("missing/page.html cannot be written", done.stderr)

    def test_usage(self):
        for arguments in (["view"], ["view", "a", "b", "c"], ["view", self.trace, "--export", "chrome"],
                          ["view", self.trace, "--export", "chorme", "-o", "x"], ["view", self.trace, "-o", "x", "--port", "1"],
                          ["view", self.trace, self.trace, "--export", "chrome", "-o", "x"], ["view", self.trace, "--port", "70000"]):
            done = self.run_command(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn("usage: plugrad view", done.stderr)


class BadTraces(Case):
    def refused(self, content, said):
        path = self.folder / "bad"
        path.write_bytes(content)
        for arguments in (["view", "bad", "-o", "page"], ["view", "bad", "--export", "chrome", "-o", "page"], ["profile", "bad"]):
            done = self.run_command(*arguments)
            self.assertEqual((done.returncode, done.stdout), (1, ""), (arguments, done.stderr))
            self.assertIn(said, done.stderr)
            self.assertIn("bad", done.stderr)
            self.assertFalse((self.folder / "page").exists())

    def test_what_is_no_trace_is_refused(self):
        self.refused(b"", "is empty")
        self.refused(b"%PDF-1.4", "not a gzip file")
        self.refused(b"\x1f\x8b", "cut off before its first line")
        self.refused(gzip.compress(b"hello\n"), "is no header")
        self.refused(gzip.compress(b'{"t":"device"}\n'), "is no header")
        self.refused(gzip.compress(b"[" * 100000 + b"\n"), "is no header")
        self.refused(trace_file.pack([trace_file.header(version=2)]), "is a trace of version 2")
        self.refused(trace_file.pack([trace_file.header(version="1")]), "version 0")

    def test_missing_files_and_folders_are_told(self):
        for path in ("missing", "."):
            done = self.run_command("view", path, "-o", "page")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{path} cannot be read", done.stderr)

    def read(self, content):
        """Lines in the page and launches in the profile, and the warning of both."""
        (self.folder / "bad").write_bytes(content)
        viewed = self.run_command("view", "bad", "-o", "page.html")
        profiled = self.run_command("profile", "bad", "--json")
        self.assertEqual((viewed.returncode, profiled.returncode), (0, 0), viewed.stderr + profiled.stderr)
        document = json.loads(profiled.stdout)
        self.assertFalse(document["complete"])
        lines = self.lines_of((self.folder / "page.html").read_text())
        return len(lines), sum(k["launches"] for k in document["kernels"]), viewed.stderr + profiled.stderr

    def test_the_readable_part_of_a_cut_trace_is_used(self):
        whole = trace_file.pack(trace_file.example())
        for size in range(len(trace_file.pack([trace_file.header()], 1)) + 100, len(whole), 37):
            lines, launches, said = self.read(whole[:size])
            self.assertIn("bad", said)
            self.assertIn(launches, (0, 4))
            self.assertGreaterEqual(lines, 1)
        without_end = self.read(trace_file.pack(trace_file.example()[:-1]))
        self.assertEqual(without_end[:2], (19, 4))
        self.assertIn("still runs", without_end[2])

    def test_lines_before_damage_are_used(self):
        lines = trace_file.example()
        for bad in (b"{", b"[" * 1000, b"\xff\xfe", b"[" + b"0," * (20 << 20) + b"0]"):
            shown, launches, said = self.read(trace_file.pack(lines[:16] + [bad] + lines[16:]))
            self.assertEqual((shown, launches), (16, 4), bad[:40])
            self.assertIn("damaged", said)

    def test_damage_within_a_member_ends_the_trace(self):
        content = bytearray(trace_file.pack(trace_file.example()))
        content[-4:] = b"\0\0\0\0"  # the size of the last member
        self.assertIn("is damaged after line", self.read(bytes(content))[2])
        self.assertIn("is damaged after line 20", self.read(trace_file.pack(trace_file.example()) + b"more")[2])

    def test_events_that_do_not_fit_the_format_are_damage(self):
        lines = trace_file.example()
        block = trace_file.events("copy", track=[2], direction=[0], bytes=[1], start=[0], duration=[1])
        for change in ({"count": 2}, {"count": -1}, {"columns": 1}, {"columns": {**block["columns"], "bytes": [-1]}},
                       {"columns": {**block["columns"], "start": [2**63]}}, {"columns": {**block["columns"], "duration": [2**62]}},
                       {"columns": {**block["columns"], "duration": ["1"]}}, {"columns": {**block["columns"], "direction": [4]}}):
            (self.folder / "bad").write_bytes(trace_file.pack(lines[:-1] + [{**block, **change}]))
            done = self.run_command("profile", "bad", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("line 20 is damaged", done.stderr, change)
            self.assertEqual([c["count"] for c in json.loads(done.stdout)["copies"]], [1, 1])

    def test_unknown_types_keys_and_ids_are_skipped(self):
        lines = trace_file.example()
        more = [{"t": "weather", "rain": True}, trace_file.events("noise", start=[1]),
                trace_file.events("launch", track=[99], kernel=[99], start=[0], duration=[7], submit=[0], plan=[9], step=[9], more=[1])]
        path = trace_file.write(self.folder / "more", lines[:-1] + more + lines[-1:])
        document = json.loads(self.run_command("profile", path, "--json").stdout)
        self.assertTrue(document["complete"])
        self.assertEqual([k["launches"] for k in document["kernels"] if k["name"] == "unknown kernel"], [1])
        for kind in ("chrome", "perfetto", "speedscope"):
            self.assertEqual(self.run_command("view", path, "--export", kind, "-o", "out").returncode, 0)

    def test_a_small_file_of_a_huge_text_takes_little_memory(self):
        bomb = gzip.compress(json.dumps(trace_file.header()).encode() + b"\n" + b" " * (200 << 20))
        lines, launches, said = self.read(bomb)
        self.assertEqual((lines, launches), (1, 0))
        self.assertIn("too large", said)


class Server(Case):
    def serve(self, *arguments, **environment):
        process = subprocess.Popen([self.command, "view", self.trace, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, cwd=self.folder, env=self.environment(**environment))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        lines = []
        while not lines or lines[-1] not in ("Ctrl-C ends\n", ""):
            lines.append(process.stdout.readline())
        return process, lines

    def ask(self, port, path, host=None, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=250)
        connection.request(method, path, headers={"Host": host or f"127.0.0.1:{port}"})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body.decode()

    def test_one_page_is_served_to_who_knows_the_token(self):
        process, lines = self.serve("--no-open")
        port, path = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/[0-9a-f]{32}/)\n", lines[0]).groups()
        port = int(port)
        status, page = self.ask(port, path)
        self.assertEqual(status, 200)
        self.assertEqual(len(self.lines_of(page)), 20)
        self.assertEqual(self.ask(port, path, f"localhost:{port}"), (200, page))
        for wrong in ("/", path[:-1], path + "x", "/" + "0" * 32 + "/", "/favicon.ico", "/../../etc/passwd"):
            self.assertEqual(self.ask(port, wrong), (404, ""), wrong)
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.2:{port}"):
            self.assertEqual(self.ask(port, path, host), (403, ""), host)
        for method in ("POST", "PUT", "OPTIONS", "DELETE"):
            self.assertEqual(self.ask(port, path, method=method), (403, ""), method)
        idle = socket.create_connection(("127.0.0.1", port))  # blocks nobody
        for rubbish in (b"\0" * 100, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 10000, b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(rubbish)
        self.assertEqual(self.ask(port, path)[0], 200)
        idle.close()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 0)
        self.assertEqual(process.stderr.read(), "")

    def test_nothing_listens_beyond_loopback(self):
        process, lines = self.serve("--no-open")
        port = int(re.search(r":(\d+)/", lines[0])[1])
        listening = set()
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            for line in pathlib.Path(table).read_text().splitlines()[1:]:
                address, state = line.split()[1], line.split()[3]
                if state == "0A" and int(address.split(":")[1], 16) == port:
                    listening.add(address.split(":")[0])
        self.assertEqual(listening, {"%08X" % struct.unpack("=I", socket.inet_aton("127.0.0.1"))})

    def test_a_taken_port_is_told(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            done = self.run_command("view", self.trace, "--no-open", "--port", str(port))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"127.0.0.1:{port} cannot be listened on: Address already in use", done.stderr)
        self.assertIn("--port", done.stderr)

    def test_a_port_can_be_named(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        _, lines = self.serve("--no-open", "--port", str(port))
        self.assertTrue(lines[0].startswith(f"http://127.0.0.1:{port}/"), lines)

    def test_over_ssh_the_way_to_forward_is_printed(self):
        _, lines = self.serve(SSH_CONNECTION="10.0.0.1 5555 10.0.0.2 22", USER="ada")
        port = re.search(r":(\d+)/", lines[0])[1]
        self.assertIn(f"  ssh -N -L {port}:127.0.0.1:{port} ada@10.0.0.2\n", lines)
        _, lines = self.serve(SSH_CONNECTION="10.0.0.1 5555 10.0.0.2 2222", USER="ada")
        self.assertIn("-p 2222 ada@10.0.0.2", "".join(lines))

    def browser(self, text):
        folder = self.folder / "path"
        folder.mkdir(exist_ok=True)
        program = folder / "xdg-open"
        program.write_text("#!/bin/sh\n" + text)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return f"{folder}:{os.environ['PATH']}"

    def test_a_browser_is_opened_where_a_display_is(self):
        opened = self.folder / "opened"
        path = self.browser(f'echo "$1" > {opened}.part && mv {opened}.part {opened}\n')
        process, lines = self.serve(DISPLAY=":0", PATH=path)
        for _ in range(200):
            if opened.exists():
                break
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                pass
        self.assertEqual(opened.read_text(), lines[0])
        opened.unlink()
        _, lines = self.serve("--no-open", DISPLAY=":0", PATH=path)
        self.assertIn("open the address in a browser on this machine\n", lines)
        self.assertFalse(opened.exists())

    def test_a_missing_browser_leaves_the_address(self):
        if shutil.which("xdg-open"):
            self.skipTest("there is xdg-open")
        _, lines = self.serve(WAYLAND_DISPLAY="wayland-0")
        self.assertTrue(lines[0].startswith("http://127.0.0.1:"))
        self.assertIn("xdg-open is missing: open the address in a browser\n", lines)


def fields(data):
    """(field, value) of a message of the protobuf wire format: an integer or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    out = []
    while at < len(data):
        key = varint()
        value = varint()
        if key & 7 == 2:
            at, value = at + value, data[at:at + value]
        elif key & 7 != 0:
            raise ValueError(f"wire type {key & 7}")
        out.append((key >> 3, value))
    return out


class Exports(Case):
    def exported(self, kind, lines=None):
        path = trace_file.write(self.folder / "exported", lines) if lines else self.trace
        done = self.run_command("view", path, "--export", kind, "-o", "out")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return (self.folder / "out").read_bytes()

    def test_chrome(self):
        document = json.loads(self.exported("chrome"))
        events = document["traceEvents"]
        names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        slices = [e for e in events if e["ph"] == "X"]
        launches = [(processes[e["pid"]], names[e["pid"], e["tid"]], e["name"], e["ts"], e["dur"]) for e in slices if e["cat"] == "launch"]
        self.assertEqual(launches, [("CUDA:0", "queue", "product", 2, 1), ("CUDA:0", "queue", "product", 3, 1),
                                    ("CUDA:0", "queue", "sum", 4, 0.5), ("CUDA:0", "queue", "tiny", 4.5, 0.05)])
        [first, *_] = [e for e in slices if e["cat"] == "launch"]
        self.assertEqual(first["args"], {"queued_us": 0.1, "operations": "matmul, add", "source": "/src/net.cpp:12"})
        self.assertEqual([(e["name"], e["args"]["bytes"]) for e in slices if e["cat"] == "copy"],
                         [("copy host to device", 4096), ("copy device to host", 1024)])
        self.assertEqual([(e["name"], e["cat"], processes[e["pid"]]) for e in slices if e["cat"] in ("wait", "compile", "plan", "run")],
                         [("product", "compile", "step"), ("step", "plan", "step"), ("step", "run", "step"), ("wait for CUDA:0", "wait", "step")])
        self.assertEqual([e["args"]["used"] for e in events if e["ph"] == "C"], [1 << 20, 3 << 20, 1 << 20])

    def test_speedscope(self):
        document = json.loads(self.exported("speedscope"))
        frames = document["shared"]["frames"]
        profiles = {p["name"]: p for p in document["profiles"]}
        self.assertEqual(sorted(profiles), ["CUDA:0 queue", "CUDA:0 transfers", "main"])
        for profile in profiles.values():
            time, stack = profile["startValue"], []
            for event in profile["events"]:
                self.assertGreaterEqual(event["at"], time)
                time = event["at"]
                if event["type"] == "O":
                    stack.append(event["frame"])
                else:
                    self.assertEqual(stack.pop(), event["frame"])
            self.assertEqual(stack, [])
            self.assertLessEqual(time, profile["endValue"])
        first = profiles["CUDA:0 queue"]["events"][:6]
        self.assertEqual([frames[e["frame"]]["name"] for e in first],
                         ["main (main.cpp:3)", "matmul, add", "product", "product", "matmul, add", "main (main.cpp:3)"])
        self.assertEqual(frames[first[1]["frame"]], {"name": "matmul, add", "file": "/src/net.cpp", "line": 12})
        self.assertEqual((first[2]["at"], first[3]["at"]), (2000, 3000))

    def test_perfetto(self):
        packets = [fields(value) for field, value in fields(self.exported("perfetto")) if field == 1]
        self.assertEqual([dict(p)[13] for p in packets[:2]], [1, 2])
        tracks, names, categories, locations = {}, {}, {}, {}
        for packet in map(dict, packets):
            if 60 in packet:
                track = dict(fields(packet[60]))
                tracks[track[1]] = (track.get(2, b"").decode(), track.get(5))
            for field, value in fields(packet.get(12, b"")):
                entry = dict(fields(value))
                table = {1: categories, 2: names, 4: locations}.get(field)
                if table is not None:
                    table[entry[1]] = entry[2].decode() + (f":{entry[4]}" if field == 4 else "")
        events = [(dict(p)[8], fields(dict(p)[11])) for p in packets if 11 in dict(p)]
        begun = [(time, names[dict(e)[10]], categories[dict(e)[3]], tracks[dict(e)[11]][0], locations.get(dict(e).get(34)))
                 for time, e in events if dict(e)[9] == 1]
        self.assertEqual([b for b in begun if b[2] == "launch"],
                         [(3000, "product", "launch", "queue", "/src/net.cpp:12"), (4000, "product", "launch", "queue", "/src/net.cpp:12"),
                          (5000, "sum", "launch", "queue", "/src/net.cpp:13"), (5500, "tiny", "launch", "queue", None)])
        self.assertEqual(len(begun), 10)
        self.assertEqual(sum(dict(e)[9] == 2 for _, e in events), 10)
        counters = [(tracks[dict(e)[11]][0], dict(e)[30]) for _, e in events if dict(e)[9] == 4]
        self.assertEqual([v for name, v in counters if name == "memory in use"], [1 << 20, 3 << 20, 1 << 20])
        queue = next(uuid for uuid, (name, _) in tracks.items() if name == "queue")
        self.assertEqual(tracks[tracks[queue][1]][0], "CUDA:0")

    def test_slices_that_overlap_without_nesting_get_lanes(self):
        lines = trace_file.example()
        lines[15] = trace_file.events("launch", track=[1, 1, 1], kernel=[1, 2, 3], start=[0, 50, 60], duration=[100, 100, 20], submit=[0] * 3)
        document = json.loads(self.exported("speedscope", lines))
        self.assertEqual([(p["name"], len(p["events"])) for p in document["profiles"] if "queue" in p["name"]],
                         [("CUDA:0 queue", 8), ("CUDA:0 queue (2)", 4)])

    def test_a_huge_name_is_not_repeated_with_each_event(self):
        lines = trace_file.example()
        for line in lines:
            if line.get("t") in ("kernel", "operation"):
                line["name"] = "ä" * 1_000_000
        for kind in ("chrome", "perfetto", "speedscope"):
            self.assertLess(len(self.exported(kind, lines)), 30_000)

    def test_hostile_names_stay_text(self):
        name = '"}],\\\u0000\n</script>\u2028\x1b[31m'
        lines = [trace_file.header(program=name), {"t": "device", "id": 1, "name": name}, {"t": "track", "id": 1, "kind": "queue", "device": 1, "name": name},
                 {"t": "kernel", "id": 1, "device": 1, "name": name, "operations": []},
                 trace_file.events("launch", track=[1], kernel=[1], start=[0], duration=[9], submit=[0]), trace_file.example()[-1]]
        events = json.loads(self.exported("chrome", lines))["traceEvents"]
        self.assertEqual([e["name"] for e in events if e["ph"] == "X"], [name])
        self.assertIn(name, [f["name"] for f in json.loads(self.exported("speedscope", lines))["shared"]["frames"]])
        self.assertIn(name.encode(), self.exported("perfetto", lines))
        printed = self.run_command("profile", "exported").stdout
        self.assertNotIn("\x1b", printed)
        self.assertNotIn("\0", printed)


if __name__ == "__main__":
    unittest.main()
