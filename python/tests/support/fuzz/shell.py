"""The command line beside a dictionary: random commands over random files. What is well formed is read as it is; of what
is damaged no command says more than a line and an exit code."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from program import Program

from . import files, values
from .model import Model, RefusedError, Row, condition
from .runner import Scene

D = 8
FORESEEN = {0, 2, 3, 4, 5, 6, 7}


class ShellScene(Scene):
    """A collection in a folder that only the program opens."""

    weights: ClassVar = {
        "import_": 4,
        "add": 6,
        "damaged": 10,
        "get": 4,
        "delete": 3,
        "query": 4,
        "trip": 3,
        "nonsense": 8,
        "look": 1,
        "optimize": 1,
        "snapshot": 1,
    }

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        self.program = Program(folder, CIPHERVEC_KEYS="my.key")
        self.program("keygen", "my.key", "--no-passphrase")
        self.model = Model()
        self.mode = random.Random(seed).choice(["sealed", "sealed-index"])
        self.program("create", "db", "rows", "--dim", D, "--mode", self.mode)
        self.made = 0

    def _run(self, *words: object, code: int | None = 0) -> Any:
        self.note("ciphervec", *[f"{word}"[:200] for word in words], f"-> {code}")
        done = self.program(*words, code=code)
        assert done.returncode in FORESEEN, (done.returncode, done.stderr)
        if done.returncode:
            assert done.stderr.strip() or "error" in done.stdout, "no word about what is wrong"
            assert "Traceback" not in done.stdout + done.stderr
        return done

    def _rows(self, chance: random.Random, most: int = 5) -> files.Rows:
        names = list(
            dict.fromkeys(
                stored for _, stored in (values.name(chance, False) for _ in range(chance.randrange(1, most)))
            )
        )
        if chance.random() < 0.5:
            names = list(dict.fromkeys(number for number in (chance.randrange(30) for _ in names)))
        else:
            names = [name for name in names if name != "x" * 65_535] or ["a"]
        rows: files.Rows = []
        for name in names:
            vector = np.array(
                [chance.randrange(1, 33) / 8 * chance.choice([1, -1]) for _ in range(D)], np.float32
            )
            about = values.metadata(chance, False)[1]
            rows.append((name, Row(vector, about, values.document(chance, False)[1])))
        return rows

    def _file(self, chance: random.Random) -> tuple[Path, files.Rows]:
        self.made += 1
        stem = chance.choice(["rows", "two words", "caf\u00e9", "-dash"])
        path = self.folder / f"{stem}{self.made}{chance.choice(files.FORMATS)}"
        rows = files.write(chance, path, self._rows(chance))
        self.note("file", path.name, [(name, row.metadata, row.document) for name, row in rows])
        return path, rows

    def _typed(self, rows: files.Rows, path: Path) -> files.Rows:
        """With the ids that words become beside what is there."""
        if path.suffix not in (".csv",):
            return rows
        there = self.model.rows
        if there and all(isinstance(name, str) for name in there):
            return [(str(name), row) for name, row in rows]
        if any(isinstance(name, str) for name, _ in rows):
            return rows
        return [(str(name) if name not in there and str(name) in there else name, row) for name, row in rows]

    def add(self, chance: random.Random) -> None:
        path, rows = self._file(chance)
        upsert = chance.random() < 0.6
        if path.suffix == ".npy":
            return
        rows = self._typed(rows, path)
        after = Model()
        after.rows = dict(self.model.rows)
        code = 0
        try:
            after.put("upsert" if upsert else "add", [name for name, _ in rows], [row for _, row in rows])
        except RefusedError:
            code = 5
        verb = chance.choice(["add", "import"])
        self._run(verb, *(["--upsert"] if upsert else []), "--", "db", "rows", path.name, code=code)
        if not code:
            self.model = after

    def import_(self, chance: random.Random) -> None:
        """Into a collection that is not there yet."""
        path, rows = self._file(chance)
        name = f"made{self.made}"
        self._run("import", "--mode", "sealed-index", "--", "db", name, path.name)
        found = self._stored(name)
        if path.suffix == ".npy":
            assert len(found) == len(rows)
            return
        self._same(found, dict(rows))
        self._run("drop", "db", name, "--yes")

    def damaged(self, chance: random.Random) -> None:
        path, _ = self._file(chance)
        others = [one for one in self.folder.iterdir() if one.suffix in files.FORMATS]
        for _ in range(chance.choice([1, 1, 2])):
            files.damage(chance, path, others)
        if chance.random() < 0.1:
            path = path.rename(path.with_suffix(chance.choice([*files.FORMATS, ".json", "", ".CSV"])))
        options = chance.choice(
            [
                [],
                [],
                ["--types", "n=int"],
                ["--vector-columns", "v*"],
                ["--leave-out", "n"],
                ["--id-type", "int"],
                ["--id-column", "n"],
            ]
        )
        verb = chance.choice(["add", "query", "import", "writer"])
        self.note("damaged", path.name, path.read_bytes()[:300])
        before = {name: self._stored(name) for name in self._names()}
        if verb == "writer":
            self._run(
                "add", "db", "rows", *options, "--ids", path.name, "--", self._file(chance)[0].name, code=None
            )
        elif verb == "query":
            self._run("query", "db", "rows", "--audience", "owner", "--json", "--", path.name, code=None)
        else:
            done = self._run(verb, *options, "--", "db", "rows", path.name, code=None)
            if done.returncode == 0:
                self.model.rows = self._stored("rows")
                return
        if verb == "writer":
            self.model.rows = self._stored("rows")
            return
        assert repr({name: self._stored(name) for name in self._names()}) == repr(before)

    def _names(self) -> list[str]:
        return self._run("list", "db").stdout.split()

    def _stored(self, name: str) -> dict[Any, Row]:
        lines = self._run("export", "db", name, "-").stdout.split("\n")[:-1]
        found = [json.loads(line) for line in lines]
        return {
            one["id"]: Row(np.array(one["embedding"], np.float32), one.get("metadata"), one.get("document"))
            for one in found
        }

    def _same(self, found: dict[Any, Row], wanted: dict[Any, Row]) -> None:
        assert set(found) == set(wanted) and {type(one) for one in found} <= {int, str}, (
            list(found),
            list(wanted),
        )
        for name, row in wanted.items():
            assert np.array_equal(found[name].vector, row.vector), (name, found[name].vector, row.vector)
            assert values.identical(found[name].metadata, row.metadata), (
                name,
                found[name].metadata,
                row.metadata,
            )
            assert values.identical(found[name].document, row.document), (
                name,
                found[name].document,
                row.document,
            )

    def get(self, chance: random.Random) -> None:
        names = chance.sample(list(self.model.rows), min(len(self.model.rows), chance.randrange(3)))
        names = [name for name in names if not (isinstance(name, str) and ("\0" in name or len(name) > 999))]
        _, plain = condition(chance)
        where = plain if chance.random() < 0.5 else None
        if where is values.REFUSED:
            self._run(
                "get",
                "db",
                "rows",
                "--where",
                chance.choice(["{", "null", "[]", '{"a": {"$like": 1}}', "NaN", '{"a": NaN}', '"x"', ""]),
                code=2,
            )
            return
        words = [
            name
            if isinstance(name, int)
            else json.dumps(name, ensure_ascii=False)
            if self._numbered(name)
            else name
            for name in names
        ]
        done = self._run(
            "get",
            "db",
            "rows",
            "--json",
            *(["--where", json.dumps(where)] if where is not None else []),
            "--",
            *words,
        )
        passing = self.model.passing(where)
        wanted = [name for name in names if name in passing] if names else passing
        found = json.loads(done.stdout)
        assert sorted(map(repr, found["ids"])) == sorted(map(repr, wanted))
        for name, about, text in zip(found["ids"], found["metadatas"], found["documents"], strict=True):
            row = self.model.rows[name]
            assert values.identical(about, row.metadata) and values.identical(text, row.document)
        shown = self._run("get", "db", "rows", "--", *words)
        assert "\x1b" not in shown.stdout

    @staticmethod
    def _numbered(name: Any) -> bool:
        return isinstance(name, str) and (name.lstrip("-").isdecimal() or name[:1] == '"')

    def delete(self, chance: random.Random) -> None:
        names = [
            name
            for name in self.model.rows
            if not (isinstance(name, str) and ("\0" in name or len(name) > 999))
        ]
        if len(names) < 3:
            return
        name = chance.choice(names)
        word = name if isinstance(name, int) else f'"{name}"' if self._numbered(name) else name
        self._run("delete", "db", "rows", "--", word)
        del self.model.rows[name]
        self._run("delete", "db", "rows", "--", "not there", code=4)

    def query(self, chance: random.Random) -> None:
        if not self.model.rows:
            return
        rows = self._rows(chance)
        path = self.folder / f"asked{self.made}{chance.choice(files.FORMATS)}"
        rows = files.write(chance, path, rows)
        done = self._run("query", "db", "rows", path.name, "-n", 1, "--json", "--audience", "owner")
        found = json.loads(done.stdout)
        table = np.stack([row.vector for row in self.model.rows.values()]).astype(float)
        table /= np.linalg.norm(table, axis=1, keepdims=True)
        for (_, row), scores in zip(rows, found["scores"], strict=True):
            best = float((table @ (row.vector / np.linalg.norm(row.vector))).max())
            assert abs(scores[0] - best) < 5e-4, (scores[0], best)
        self._run("query", "db", "rows", "--vector", json.dumps(rows[0][1].vector.tolist()), "-n", 1)

    def trip(self, chance: random.Random) -> None:
        """What `export` writes, `import` reads as the same rows."""
        self.made += 1
        self._run("export", "db", "rows", f"out{self.made}.jsonl")
        if self.model.rows:
            self._run("import", f"copy{self.made}", "rows", f"out{self.made}.jsonl", "--mode", "sealed-index")
            lines = self._run("export", f"copy{self.made}", "rows", "-").stdout.split("\n")[:-1]
            found = {
                one["id"]: Row(
                    np.array(one["embedding"], np.float32), one.get("metadata"), one.get("document")
                )
                for one in map(json.loads, lines)
            }
            self._same(found, self.model.rows)

    def nonsense(self, chance: random.Random) -> None:
        """Words that mean nothing, or what is not there."""
        odd = [
            "",
            "-1",
            "nan",
            "{",
            "\u65e5",
            "x" * 300,
            "../up",
            "/",
            "db",
            "rows",
            "9" * 30,
            "--",
            "1.5",
            "[1,2",
            "[[1]]",
            "[]",
            '["a"]',
            "[1,2,3,4,5,6,7,1e999]",
            "null",
            "http://127.0.0.1:1",
            "my.key",
            "nowhere.csv",
            ".",
            "\udcff",
            "*",
            "NaN",
            "true",
        ]
        word = chance.choice(odd)
        commands: list[list[Any]] = [
            ["create", "db", word, "--dim", chance.choice([4, 0, -1, word, "4.0", 10**9])],
            ["create", word or "db", "made", "--dim", 4, "--mode", word],
            ["create", "db", "made", "--dim", 4, "--metric", word],
            ["query", "db", "rows", "--vector", word],
            ["query", "db", "rows", word],
            ["query", "db", "rows", "--vector", "[1,2,3,4,5,6,7,8]", "-n", word],
            ["query", "db", "rows", "--vector", "[1,2,3,4,5,6,7,8]", "--within", word],
            ["query", "db", "rows", "--vector", "[1,2,3,4,5,6,7,8]", "--where", word],
            ["query", "db", "rows", "--vector", "[1,2,3,4,5,6,7,8]", "--audience", word],
            ["get", "db", word],
            ["get", word, "rows"],
            ["get", "db", "rows", "--limit", word],
            ["get", "db", "rows", "--offset", word],
            ["get", "db", "rows", "--where", word],
            ["get", "db", "rows", "--id-type", word, "5"],
            ["delete", "db", "rows", "--where", word or "{"],
            ["add", "db", "rows", word],
            ["import", "db", "made", word],
            ["export", "db", "rows", word],
            ["info", "db", word],
            ["info", word],
            ["verify", word],
            ["list", word],
            ["keygen", word],
            ["snapshot", "db", "rows", word or "my.key"],
            ["restore", "db", "rows", word],
            ["checkpoint", "db", word],
            ["checkpoint", "db", "rows", "--expect", word],
            ["optimize", "db", "rows", "--network", word],
            ["get", "db", "rows", "--keys", word],
            ["add", "db", "rows", "my.key"],
            ["writer", "card", "db", "rows", word],
            ["plan", "--rows", word, "--dim", "768"],
            ["keys", "phrase", word],
            ["doctor", word],
            [word, "db"],
        ]
        chosen = [str(one) for one in chance.choice(commands)]
        if word.startswith("http") or "\udcff" in word:
            return
        done = self.program(*chosen, code=None)
        self.note("ciphervec", *chosen, f"-> {done.returncode}")
        assert done.returncode in FORESEEN | {8, 9}, (done.returncode, done.stderr)
        assert done.returncode == 0 or (done.stderr + done.stdout).strip(), "no word about what is wrong"
        left = [name for name in self._names() if name != "rows"]
        for name in left:
            self._run("drop", "db", name, "--yes")

    def look(self, chance: random.Random) -> None:
        self._run("verify", "db")
        told = json.loads(self._run("info", "db", "rows", "--json").stdout)
        assert told["rows"] == len(self.model.rows), told

    def optimize(self, chance: random.Random) -> None:
        self._run("optimize", "db", "rows")

    def snapshot(self, chance: random.Random) -> None:
        self.made += 1
        self._run("snapshot", "db", "rows", f"copies{self.made}")
        self._run("drop", "db", "rows", "--yes")
        self._run("restore", "db", "rows", f"copies{self.made}")

    def settle(self) -> None:
        self._same(self._stored("rows"), self.model.rows)
