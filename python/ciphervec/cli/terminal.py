"""The terminal, for every command: how it prints results and errors, asks for passphrases and shows progress, and which
exit code an error has."""

from __future__ import annotations

import codecs
import dataclasses
import enum
import functools
import inspect
import io
import json
import os
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar, get_origin, get_type_hints

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment

import ciphervec._native as _native
import ciphervec.errors as errors

from .wording import reworded

if TYPE_CHECKING:
    from ..collections.keys import Identity, Keys


P = ParamSpec("P")
Kind = TypeVar("Kind")

_OPTIONS: set[type[Any]] = set()


class ExitCode(enum.IntEnum):
    """What a script can branch on."""

    def __new__(cls, value: int, says: str) -> ExitCode:
        member = int.__new__(cls, value)
        member._value_ = value
        return member

    def __init__(self, value: int, says: str) -> None:
        self.says = says

    DONE = 0, "done"
    FAILED = 1, "something ciphervec did not foresee; please report it"
    USAGE = 2, "wrong arguments, or input that can't be used"
    KEY = 3, "wrong key or passphrase"
    MISSING = 4, "no such collection, id or file"
    EXISTS = 5, "the collection, id or file is there already"
    CORRUPT = 6, "damaged data, or data of a newer version"
    STORAGE = 7, "the folder is locked, full, or not writable"
    SERVER = 8, "the server or KMS was not reached, refused the token, or shows another state than it did"
    UNSOUND = 9, "doctor, or the check of an import, found something that has to be mended"


EXIT_CODES = tuple(ExitCode)
_PIPE_CLOSED = 141
"""What a shell says of a program that wrote to a closed pipe."""

# The first class that matches decides; subclasses stand before their bases.
_CODES: list[tuple[type[BaseException], ExitCode]] = [
    (errors.WrongKey, ExitCode.KEY),
    (errors.CollectionNotFound, ExitCode.MISSING),
    (errors.ProgramNotFound, ExitCode.MISSING),
    (errors.TableNotFound, ExitCode.MISSING),
    (errors.UnknownId, ExitCode.MISSING),
    (FileNotFoundError, ExitCode.MISSING),
    (errors.CollectionExists, ExitCode.EXISTS),
    (errors.DuplicateId, ExitCode.EXISTS),
    (FileExistsError, ExitCode.EXISTS),
    (errors.CorruptData, ExitCode.CORRUPT),
    (errors.AuthenticationError, ExitCode.SERVER),
    (errors.ServerError, ExitCode.SERVER),
    (errors.RollbackDetected, ExitCode.SERVER),
    (errors.PinMismatch, ExitCode.SERVER),
    (errors.StoreLocked, ExitCode.STORAGE),
    (errors.StorageError, ExitCode.STORAGE),
    (OSError, ExitCode.STORAGE),
    (errors.CiphervecError, ExitCode.USAGE),
]


class _Console(Console):
    """Prints what writers, publishers and servers chose, as `seen` has it."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for one in super().render(renderable, options):
            yield one if one.control else one._replace(text=seen(one.text))


# Nothing is folded or cut off a terminal: lines are for grep and logs there.
# Neither do two colons of a path or a URI make a picture.
screen = _Console(stderr=False, soft_wrap=not sys.stdout.isatty(), emoji=False)
aside = _Console(stderr=True, soft_wrap=not sys.stderr.isatty(), emoji=False)

Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, and errors as JSON too.")]
KeyFile = Annotated[
    str | None,
    typer.Option(
        "--keys",
        "-k",
        metavar="FILE",
        envvar="CIPHERVEC_KEYS",
        help="The key file that `ciphervec keygen` or `keys wrap` made; URI#FILE refuses a file of another wrapper.",
    ),
]
ExpectedKey = Annotated[
    str | None,
    typer.Option(
        "--key-id",
        envvar="CIPHERVEC_KEY_ID",
        help="Refuse a key file of another key than this one, whose id was noted.",
    ),
]
WrappedBy = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="URI",
        help="Wrap the new file by this instead of a passphrase: awskms://…, gcpkms://…, azurekv://…, vault://…, pkcs11:…, "
        "keyring:… or age:…",
    ),
]
PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        help="Read the passphrase from the first line of this file. Else CIPHERVEC_PASSPHRASE, else the command prompts for it."
    ),
]


def exit_code(error: BaseException) -> ExitCode:
    """The code that stands for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)


def options(kind: type[Kind]) -> type[Kind]:
    """A dataclass whose fields are options: a command that has a parameter of this type has all of them."""
    _OPTIONS.add(kind)
    return kind


def command(function: Callable[P, None]) -> Callable[P, None]:
    """Turn the errors ciphervec raises on purpose, and those of files, into a message and an exit
    code. A parameter of a type of `options` stands for these."""
    signature = inspect.signature(function, eval_str=True)
    typed = {one.name: one.annotation for one in signature.parameters.values()}
    groups = {name: kind for name, kind in typed.items() if isinstance(kind, type) and kind in _OPTIONS}

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        # A shell leaves `~` alone in `--keys=~/my.key`, and who starts this without a shell has none.
        kwargs.update({name: _at_home(value) for name, value in kwargs.items()})
        for name, kind in groups.items():
            given = {one.name: kwargs.pop(one.name) for one in _options_of(kind) if one.name in kwargs}
            kwargs.setdefault(name, kind(**given))
        try:
            with _notes():
                function(*args, **kwargs)
        except BrokenPipeError:
            # Who reads has enough, as `head` does. Nothing more is to be written, nor said at the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(_PIPE_CLOSED) from None
        except (errors.CiphervecError, OSError) as error:
            code = exit_code(error)
            if kwargs.get("as_json") is True:
                content = {
                    "type": type(error).__name__,
                    "message": reworded(str(error)),
                    "exit_code": int(code),
                }
                print_json({"error": content})
            else:
                say_aside("error:", "bold red", str(error))
            raise typer.Exit(int(code)) from None

    asked = [
        parameter
        for one in signature.parameters.values()
        for parameter in ([one] if one.name not in groups else _options_of(groups[one.name]))
    ]
    # What typer reads.
    guarded.__signature__ = signature.replace(parameters=asked)  # type: ignore[attr-defined]
    guarded.__annotations__ = {one.name: one.annotation for one in asked}
    return guarded


def _options_of(kind: type[Any]) -> list[inspect.Parameter]:
    """The fields of a dataclass that are options."""
    hints = get_type_hints(kind, include_extras=True)
    fields = [one for one in dataclasses.fields(kind) if get_origin(hints[one.name]) is Annotated]
    keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [
        inspect.Parameter(one.name, keyword, default=one.default, annotation=hints[one.name])
        for one in fields
    ]


def say_next(step: str) -> None:
    """What to type next, in one line however narrow the terminal, so that it can be copied."""
    screen.print(f"next: {step}", style="dim", markup=False, highlight=False, soft_wrap=True)


def say_aside(kind: str, style: str, message: str) -> None:
    """Print a message of this kind on standard error: in lines for a terminal, else in one, which grep finds."""
    aside.print(kind, style=style, end=" ")
    aside.print(reworded(message), markup=False, highlight=False)


def seen(text: str) -> str:
    """Rows, names of files and words of services as a terminal may have them: what moves its cursor, or turns or hides text, is
    escaped. Joiners, which words of some scripts have, are not."""
    return "".join(one if _is_seen(one) else one.encode("unicode_escape").decode() for one in text)


def _is_seen(one: str) -> bool:
    return one in "\n\t\u200c\u200d" or unicodedata.category(one) not in ("Cc", "Cf")


def _at_home(value: Any) -> Any:
    from ..ingest.files import at_home

    if isinstance(value, list | tuple):
        return type(value)([_at_home(one) for one in value])
    return Path(at_home(value)) if isinstance(value, Path) else value


@contextmanager
def _notes() -> Iterator[None]:
    """Print a warning as a note: of the line of code that it is about a reader here has none."""

    def note(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, UserWarning):
            say_aside("note:", "bold yellow", str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = note
        yield


def any_console() -> None:
    """Let output be written wherever it goes: what a console's encoding doesn't have is escaped, and no error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_json(value: object) -> None:
    """One line of JSON per call, numbers and text as they are; escaped as JSON has it where the console's encoding is
    not UTF-8."""
    try:
        unicode = codecs.lookup(sys.stdout.encoding or "ascii").name == "utf-8"
    except LookupError:
        unicode = False
    sys.stdout.write(json.dumps(value, ensure_ascii=not unicode) + "\n")


def version(asked: bool) -> None:
    """For `--version`."""
    if asked:
        screen.print(f"ciphervec {_native.__version__}, {_native.backend()} back-end", highlight=False)
        raise typer.Exit


def passphrase(file: Path | None, prompt: str, *, confirm: bool = False) -> str:
    """From a file, from the environment, or from the keyboard. Never from an argument, which others
    can see."""
    if file is not None:
        from ..ingest.files import read_text

        lines = read_text(file).splitlines()
        return lines[0] if lines else ""
    given = os.environ.get("CIPHERVEC_PASSPHRASE")
    if given is not None:
        return given
    if not sys.stdin.isatty():
        raise errors.InvalidInput(
            "a passphrase is needed and there is no keyboard to ask at. Set CIPHERVEC_PASSPHRASE or give "
            "--passphrase-file."
        )
    typed: str = typer.prompt(prompt, hide_input=True, confirmation_prompt=confirm, err=True)
    return typed


@options
@dataclass(frozen=True)
class KeyOptions:
    """Which key file, and what opens it."""

    keys: KeyFile = None
    key_id: ExpectedKey = None
    passphrase_file: PassphraseFile = None

    def load(self) -> Keys | None:
        """The keys; None when none was named."""
        return load_keys(self.keys, self.passphrase_file, self.key_id)

    def person_or_keys(self) -> Keys | Identity | None:
        """The same, or the identity of a member of collections, where the file holds one."""
        return load_holder(self.keys, self.passphrase_file, self.key_id)


NO_KEYS = KeyOptions()


def load_keys(source: str | None, passphrase_file: Path | None, key_id: str | None = None) -> Keys | None:
    """The keys of a file, or of URI#FILE; None when none was named, which mode `open` can do with."""
    from ..collections.keys import Identity  # numpy is slow to import, and most commands have no keys

    found = load_holder(source, passphrase_file, key_id)
    if isinstance(found, Identity):
        raise errors.InvalidInput(
            f"{source} holds the identity of {found.name}, and this takes keys. Make them with: ciphervec keygen"
        )
    return found


def load_holder(
    source: str | None, passphrase_file: Path | None, key_id: str | None = None
) -> Keys | Identity | None:
    """The keys of a file, or of URI#FILE, or the identity in it; None when none was named."""
    from ..collections.keys import Identity, Keys

    if source is None:
        return None
    path, uri = key_file(source)
    if not path.exists():
        raise FileNotFoundError(f"there is no key file {path}. Make one with: ciphervec keygen {path}")
    # Nobody is asked in vain: a file in clear opens without, and one that is wrapped names its wrapper. But who gives
    # the passphrase of a file expects it to have one.
    given = None
    label = None if uri is not None else _native.key_file_label(str(path))
    if passphrase_file is not None or (label is not None and label[0] == "passphrase"):
        given = passphrase(passphrase_file, f"Passphrase of {path}")
    if label is not None and label[1] == "person":
        if key_id is not None:
            raise errors.InvalidInput(
                f"{path} holds an identity, to which keys are sealed: leave --key-id out."
            )
        return Identity.load(path, given)
    return Keys.load(source, given, key_id=key_id)


def key_file(source: str) -> tuple[Path, str | None]:
    """The path in what `--keys` was given, and the URI in front of it where it is URI#FILE."""
    from ..collections.wrapping import named_file

    path, uri = named_file(source)
    return Path(path), uri


def existing(path: Path, what: str) -> Path:
    """The path, or FileNotFoundError, which has an exit code of its own."""
    if not path.exists():
        raise FileNotFoundError(f"there is no {what} {path}.")
    return path


class Steps:
    """A line of a progress bar: called with (done, total)."""

    def __init__(self, bar: Progress, what: str) -> None:
        self._bar = bar
        self._what = what
        self._task: TaskID | None = None

    def __call__(self, done: int, total: int) -> None:
        if self._task is None:  # it appears with its first step
            self._task = self._bar.add_task(self._what, total=total)
        self._bar.update(self._task, completed=done, total=total)

    def then(self, what: str) -> Steps:
        """Another line below, for what follows."""
        return Steps(self._bar, what)


@contextmanager
def progress(what: str, total: int, *, quiet: bool) -> Iterator[Steps]:
    """A bar on standard error, where it is out of the way of results; gone when the work is
    done."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=aside,
        transient=True,
        disable=quiet or not aside.is_terminal,
    )
    with bar:
        steps = Steps(bar, what)
        steps(0, total)
        yield steps


def size(count: float) -> str:
    """Bytes as people say them."""
    for unit, divisor in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= divisor:
            return f"{count / divisor:,.1f} {unit}"
    return f"{count:.0f} bytes"


def shown(id: str | int) -> str:
    """An id in a table, as a command takes it: a text that would be taken for a number stands in quotes."""
    from .ids import in_quotes

    return f'"{id}"' if in_quotes(id) else plain(id)


def plain(value: Any) -> str:
    """A metadata value or document in one line of a table."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split())
