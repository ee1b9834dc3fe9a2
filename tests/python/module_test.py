"""The Python module against the program: python3 module_test.py KIBITZ [unittest options]."""

import ast
import doctest
import importlib.util
import inspect
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import kibitz
import numpy

ROOT = Path(__file__).resolve().parents[2]
KIBITZ = sys.argv.pop(1)
TINY = "tests/golden/decoder/tiny.pt"


def run(*words):
    done = subprocess.run([KIBITZ, *words], capture_output=True, text=True, check=True)
    return done.stdout


def random_boards(count, seed=1):
    """Positions of random games."""
    rng = random.Random(seed)
    fens = []
    board = kibitz.Board()
    while len(fens) < count:
        moves = board.legal_moves
        if not moves or len(board.move_stack) > 100 or board.ending:
            board = kibitz.Board()
            continue
        fens.append(board.fen())
        board.push(rng.choice(moves))
    return fens


def resident_megabytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class ForeignMove:
    """As python-chess has it."""

    def __init__(self, text):
        self.text = text

    def uci(self):
        return self.text


class ForeignBoard:
    """A board of python-chess as far as the module looks at it."""

    chess960 = False

    def __init__(self, start, moves):
        self.start = start
        self.move_stack = [ForeignMove(move) for move in moves]

    def root(self):
        return ForeignBoard(self.start, [])

    def fen(self):
        board = kibitz.Board(self.start)
        for move in self.move_stack:
            board.push(move)
        return board.fen()


class ModuleTest(unittest.TestCase):
    def test_the_page_runs(self):
        found = doctest.testfile(str(ROOT / "docs/PYTHON.md"), module_relative=False, globs={"KIBITZ": KIBITZ})
        self.assertGreater(found.attempted, 40)
        self.assertEqual(found.failed, 0)

    def test_think_writes_the_tokens_of_the_command_line(self):
        decoder = kibitz.player(TINY)
        for fen in random_boards(60)[::15]:
            for options in ({}, {"max_variations": 2, "legal": True}, {"thinking_temperature": 1.0, "seed": 7}):
                words = [f"--{key.replace('_', '-')}" + ("" if value is True else f"={value}") for key, value in options.items()]
                told = json.loads(run("decoder", "think", "--model", TINY, "--fen", fen, "--json", *words))
                *events, end = decoder.think(fen, **options)
                self.assertEqual(list(end["tokens"]), told["token_ids"])
                self.assertEqual([event["id"] for event in events if event["type"] == "token"], told["token_ids"])
                self.assertEqual(end["move"], told["move"])

    def test_a_stopped_thought_leaves_the_player_usable(self):
        decoder = kibitz.player(TINY)
        thought = decoder.think()
        next(thought)
        thought.close()
        del thought
        self.assertIn(decoder.move(), kibitz.Board().legal_moves)

    def test_policy_is_that_of_the_command_line(self):
        policy = kibitz.player("models/policy-small")
        for fen in random_boards(30)[::10]:
            told = json.loads(run("policy", "predict", "--model", "models/policy-small", "--fen", fen, "--json", "--show", "300"))
            likely = policy.policy(fen)
            self.assertEqual(set(likely), {move["move"] for move in told["moves"]})
            for move in told["moves"]:
                self.assertAlmostEqual(likely[move["move"]], move["probability"], places=5)

    def test_batches_take_no_longer_than_the_command_line(self):
        fens = random_boards(10_000)
        with tempfile.NamedTemporaryFile("w", suffix=".fen") as file:
            file.write("\n".join(fens) + "\n")
            file.flush()
            before = os.times()
            lines = run("policy", "predict", "--model", "models/policy-small", "--fens", file.name, "--show", "1")
            after = os.times()
        program = after.children_user + after.children_system - before.children_user - before.children_system
        start = time.process_time()
        policy = kibitz.player("models/policy-small")
        rows = policy.policy(fens)
        module = time.process_time() - start
        print(f"10,000 positions: module {module:.2f} s of processor time, program {program:.2f} s, ratio {module / program:.2f}")
        self.assertEqual(rows.shape, (10_000, 1968))
        for row, line, fen in list(zip(rows, lines.splitlines(), fens))[::97]:
            best = json.loads(line)["moves"][0]
            self.assertAlmostEqual(float(row.max()), best["probability"], places=5)
        self.assertLess(module, 1.5 * program)

    def test_other_threads_run_during_a_batch(self):
        policy = kibitz.player("models/policy-small")
        fens = random_boards(2000)
        counted = [0]
        done = threading.Event()

        def count():
            while not done.is_set():
                counted[0] += 1
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        start = time.monotonic()
        policy.policy(fens)
        seconds = time.monotonic() - start
        done.set()
        thread.join()
        self.assertGreater(counted[0], 20 * seconds)

    def test_calls_do_not_leak(self):
        chooser = kibitz.player("random")
        policy = kibitz.player("tests/golden/policy/models/mlp_1968")
        board = kibitz.Board()

        def calls(count):
            for i in range(count):
                copy = kibitz.Board(board.fen())
                copy.push("e4")
                len(copy.legal_moves)
                kibitz.tokens(copy)
                chooser.move(copy, seed=i)
                policy.policy(copy)
                try:
                    copy.push("e4")
                except ValueError:
                    pass

        calls(2000)
        before = resident_megabytes()
        calls(20_000)  # Six calls into the extension each.
        grown = resident_megabytes() - before
        print(f"memory grown by {grown:.2f} MB over 120,000 calls")
        self.assertLess(grown, 5)

    def test_thoughts_do_not_leak(self):
        decoder = kibitz.player(TINY)
        for _ in range(20):
            list(decoder.think(max_variations=1, max_depth=1))
        before = resident_megabytes()
        for _ in range(200):
            list(decoder.think(max_variations=1, max_depth=1))
        self.assertLess(resident_megabytes() - before, 5)

    def test_boards_of_other_libraries(self):
        moves = ["e2e4", "c7c5", "g1f3"]
        foreign = ForeignBoard(kibitz.Board().fen(), moves)
        self.assertEqual(kibitz.Board(foreign).move_stack, moves)
        own = kibitz.Board()
        for move in moves:
            own.push(ForeignMove(move))
        self.assertEqual(kibitz.Board(foreign), own)
        policy = kibitz.player("models/policy-small")
        self.assertEqual(policy.move(foreign), policy.move(own))
        self.assertTrue((policy.policy([foreign, own])[0] == policy.policy([own])[0]).all())

    def test_bad_input_says_what_is_wrong(self):
        with self.assertRaisesRegex(ValueError, "not a FEN at all"):
            kibitz.Board("not a FEN at all")
        with self.assertRaisesRegex(ValueError, "expected a FEN"):
            kibitz.Board(17)
        with self.assertRaises(ValueError):
            kibitz.Board().push("e2e5")
        with self.assertRaises(IndexError):
            kibitz.Board().pop()
        with self.assertRaisesRegex((ValueError, kibitz.Error), "nothing"):
            kibitz.player("nothing-of-this-name")
        with self.assertRaisesRegex(ValueError, "temprature"):
            kibitz.player("models/policy-small", temprature=1)
        with self.assertRaisesRegex(kibitz.Error, "no-such-folder"):
            kibitz.PolicyData("no-such-folder")

    def test_stubs_and_docstrings_cover_the_module(self):
        tree = ast.parse((ROOT / "python/kibitz/__init__.pyi").read_text())
        stubs = {}
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                stubs[node.name] = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            elif isinstance(node, ast.FunctionDef):
                stubs[node.name] = set()
        for name in kibitz.__all__:
            value = getattr(kibitz, name)
            if not callable(value):
                continue
            self.assertIn(name, stubs)
            self.assertTrue(inspect.getdoc(value), name)
            if not inspect.isclass(value) or issubclass(value, Exception):
                continue
            for member in vars(value):
                if member.startswith("_"):
                    continue
                self.assertIn(member, stubs[name], f"{name}.{member}")
                self.assertTrue(inspect.getdoc(getattr(value, member)), f"{name}.{member}")

    @unittest.skipUnless(importlib.util.find_spec("pip"), "python3-pip is not installed; run 'make setup'")
    def test_pip_installs_the_checkout(self):
        with tempfile.TemporaryDirectory() as folder:
            ready = Path(kibitz.__file__).resolve().parents[2]
            done = subprocess.run(
                [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--target", folder, str(ROOT)],
                env={**os.environ, "KIBITZ_BUILD_DIR": str(ready)}, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            code = "import kibitz; print(kibitz.__file__, kibitz.player('policy-small').move())"
            told = subprocess.run([sys.executable, "-c", code], cwd=folder, env={**os.environ, "PYTHONPATH": folder},
                                  capture_output=True, text=True)
            self.assertEqual(told.returncode, 0, told.stderr)
            self.assertTrue(told.stdout.startswith(folder), told.stdout)


if __name__ == "__main__":
    os.chdir(ROOT)
    unittest.main()
