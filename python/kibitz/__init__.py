"""Kibitz from Python: boards, players, thoughts, training data and runs. docs/PYTHON.md is a tour."""

import json as _json
import os as _os
from pathlib import Path as _Path

import numpy as _np

_here = _Path(__file__).resolve()
# The models that ship: of the wheel, of an installation, of the checkout around a build folder.
for _place in (_here.parent / "share", *(p / "share" / "kibitz" for p in _here.parents), *_here.parents[2:]):
    if (_place / "models" / "policy-small").is_dir():
        _os.environ.setdefault("KIBITZ_SHARE", str(_place))
        break

from ._kibitz import (  # noqa: E402
    MOVES,
    TOKENS,
    Board,
    Error,
    Player,
    Thought,
    __version__,
    board_of_tokens,
    player,
    tokens,
)
from . import _kibitz as _extension

__all__ = [
    "MOVES", "TOKENS", "Board", "Error", "Pack", "Player", "PolicyData", "Thought", "board_of_tokens", "metrics", "player",
    "tokens",
]


def _map(path):
    """A .npy file as an array over its pages: nothing is read or copied until it is looked at."""
    return _np.load(path, mmap_mode="r")


class PolicyData:
    """A data set of 'kibitz policy precompute', memory-mapped."""

    def __init__(self, folder):
        """Opens the folder. Lengths are checked; 'kibitz policy verify' checks the content."""
        self.folder = _os.fspath(folder)
        self._files = _extension._PolicyFiles(self.folder)
        if not self._files.packed:
            raise ValueError(f"{self.folder}: planes, not packed rows; numpy.load reads its arrays as they are")

    def _array(self, split, part):
        return _map(f"{self.folder}/{split}_{part}.npy")

    def positions(self, split="train"):
        """Positions of 28 bytes: occupied, pieces, state, en_passant, analyses (docs/FORMATS.md)."""
        return self._array(split, "positions")

    def analyses(self, split="train"):
        """Engine lines of 12 bytes, those of a position together: knodes, score, move, depth_mate."""
        return self._array(split, "analyses")

    def index(self, split="train"):
        """Where the analyses of every 32nd position begin."""
        return self._array(split, "index")

    def sample(self, index, split="train", temperature=50.0):
        """A position as Board, and its soft label as a dict from move to probability."""
        return self._files.sample(split, index, temperature)


class Pack:
    """A pack of 'kibitz 2048 pack', memory-mapped."""

    def __init__(self, folder):
        """Opens the folder."""
        self.folder = _os.fspath(folder)
        files = _extension._PackFiles(self.folder)
        self.runs = files.runs
        self.valuation_types = files.valuation_types

    @property
    def steps(self):
        """The rows of all games as one structured array; of a sharded pack a list of arrays."""
        whole = _Path(self.folder) / "steps.npy"
        if whole.exists():
            return _map(whole)
        return [_map(shard) for shard in sorted(_Path(self.folder).glob("steps-*.npy"))]


def metrics(run, kind=None):
    """The metrics of a training run as a list of dicts; kind 'train' or 'val' for those alone."""
    path = _Path(run)
    if path.is_dir():
        path = path / "metrics.jsonl"
    rows = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if not line.endswith("\n"):
                break  # Being written.
            row = _json.loads(line)
            if kind is None or row.get("kind") == kind:
                rows.append(row)
    return rows
