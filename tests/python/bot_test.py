"""Stands in for lichess-bot's engine wrapper: the same command line, options and clocks, against random moves.

python3 bot_test.py KIBITZ [unittest options]; needs the Python module (docs/PYTHON.md)."""

import os
import random
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import kibitz

ROOT = Path(__file__).resolve().parents[2]
KIBITZ = Path(sys.argv.pop(1)).resolve()
FOLDER = ROOT / "examples" / "lichess-bot"


def read_config():
    """The nested 'key: value' lines of config.yml, which is all the YAML that ours uses."""
    tree, levels = {}, [(-1, {})]
    levels[0] = (-1, tree)
    for line in (FOLDER / "config.yml").read_text().splitlines():
        text = line.split("#")[0].rstrip() if not line.strip().startswith("#") else ""
        if not text.strip() or text.strip().startswith("- "):
            continue
        depth = len(text) - len(text.lstrip())
        key, _, value = text.strip().partition(":")
        while levels[-1][0] >= depth:
            levels.pop()
        value = value.strip().strip('"')
        levels[-1][1][key] = value if value else {}
        if not value:
            levels.append((depth, levels[-1][1][key]))
    return tree


class Engine:
    """What python-chess does for lichess-bot: starts the engine and refuses options it does not declare."""

    def __init__(self, config, overrides=None):
        options = {**config["engine"]["engine_options"], **(overrides or {})}
        command = [str(FOLDER / config["engine"]["name"])] + [f"--{key}={value}" for key, value in options.items()]
        path = tempfile.TemporaryDirectory()
        os.symlink(KIBITZ, Path(path.name) / "kibitz")
        self.path = path
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        env={**os.environ, "PATH": f"{path.name}:{os.environ['PATH']}",
                                             "KIBITZ_SHARE": str(ROOT)})
        self.send("uci")
        declared = set()
        for line in self.until("uciok"):
            if line.startswith("option name "):
                declared.add(line[len("option name "):].split(" type ")[0])
        for name, value in config["engine"]["uci_options"].items():
            if name not in declared:
                self.close()
                raise ValueError(f"the engine has no option {name}")
            self.send(f"setoption name {name} value {value}")
        self.send("ucinewgame")
        self.send("isready")
        self.until("readyok")

    def send(self, line):
        self.process.stdin.write(line + "\n")

    def until(self, word):
        lines = []
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("the engine ended")
            lines.append(line.strip())
            if lines[-1].split()[:1] == [word]:
                return lines

    def play(self, board, go):
        self.send(f"position fen {board.start_fen()} moves {' '.join(board.move_stack)}".strip())
        self.send(f"go {go}")
        return self.until("bestmove")[-1].split()

    def close(self):
        self.send("quit")
        code = self.process.wait(10)
        self.process.stdin.close()
        self.process.stdout.close()
        self.path.cleanup()
        return code


class BotTest(unittest.TestCase):
    def play_game(self, base, increment, seed, overrides=None, ponder=False, max_moves=60):
        config = read_config()
        overhead = int(config["move_overhead"])
        engine = Engine(config, overrides)
        rng = random.Random(seed)
        board = kibitz.Board()
        clock = base * 1000.0
        longest = 0.0
        expected = None
        while not board.ending and len(board.move_stack) < 2 * max_moves:
            if len(board.move_stack) % 2 == seed % 2:  # Ours.
                told = max(1, int(clock) - overhead)
                go = f"wtime {told} btime {told} winc {increment * 1000} binc {increment * 1000}"
                if len(board.move_stack) < 2:
                    go = "movetime 10000"
                start = time.monotonic()
                if expected is not None and board.move_stack and board.move_stack[-1] == expected:
                    engine.send("ponderhit")
                    words = engine.until("bestmove")[-1].split()
                else:
                    if expected is not None:
                        engine.send("stop")
                        engine.until("bestmove")
                    words = engine.play(board, go)
                expected = None
                taken = (time.monotonic() - start) * 1000
                longest = max(longest, taken)
                clock -= taken
                self.assertGreater(clock, 0, "lost on time")
                clock += increment * 1000
                self.assertIn(words[1], board.legal_moves)
                board.push(words[1])
                if ponder and len(words) > 3 and not board.ending:
                    guess = board.copy()
                    guess.push(words[3])
                    if not guess.ending:
                        expected = words[3]
                        engine.send(f"position fen {board.start_fen()} moves {' '.join(board.move_stack)} {expected}")
                        engine.send(f"go ponder wtime {int(clock)} btime {int(clock)} winc 0 binc 0")
            else:
                board.push(rng.choice(board.legal_moves))
        if expected is not None:
            engine.send("stop")
            engine.until("bestmove")
        self.assertEqual(engine.close(), 0)
        print(f"{base}+{increment} {overrides or ''}: {board.result} {board.ending or 'cut'}, {len(board.move_stack)} plies, "
              f"slowest move {longest:.0f} ms, clock left {clock / 1000:.1f} s\n  {' '.join(board.move_stack)}")
        return board

    def test_blitz_with_increment(self):
        for seed in range(2):
            self.play_game(180, 2, seed)

    def test_bullet_without_increment(self):
        self.play_game(30, 0, 1)

    def test_a_decoder_that_thinks(self):
        self.play_game(60, 1, 0, {"model": str(ROOT / "tests/golden/decoder/tiny.pt")}, max_moves=20)

    def test_a_search_that_ponders(self):
        self.play_game(30, 1, 1, {"model": "search:policy-small?nodes=100"}, ponder=True, max_moves=20)

    def test_an_unknown_option_is_refused(self):
        config = read_config()
        config["engine"]["uci_options"]["NoSuchOption"] = 1
        with self.assertRaisesRegex(ValueError, "NoSuchOption"):
            Engine(config)


if __name__ == "__main__":
    unittest.main()
