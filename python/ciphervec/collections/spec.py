"""Description: what a collection is enters; the description that lies beside its segments leaves,
and back. Key owner's side.

In clear: the index spec, the scheme, the key id, the epoch. Sealed: the names of the filterable
fields, what is known of the function that embeds texts, and the seed of the public masks once the
keys have changed. While they are changing, each key in a form that the other opens.
"""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar, cast

import numpy as np

import ciphervec._native as _native

from .._native import IndexSpec
from ..errors import CorruptData, InvalidInput, PinMismatch, UnsupportedVersion, WrongKey
from ..ingest.arrays import Vectors, count, refuse_unordered, vectors
from ..ingest.metrics import METRICS
from ..ingest.network import DEFAULT, Network, check_network, read_network, stored
from ..ingest.records import field_names
from .embedding.function import SavedFunction
from .keys import Keys, native_for
from .owner import Owner
from .routing.clusters import Clusters
from .stores.store import check_name, corrupt_meta

T = TypeVar("T", bound=str)

FORMAT = 6
"""Format 1 knew the scheme `sealed` alone and did not name it, format 2 no change of keys, format 3
neither incarnations nor authenticated states, format 4 no routing, format 5 no center that was given. Written is the
oldest that says what there is to say."""
Mode: TypeAlias = Literal["sealed", "sealed-query", "sealed-index", "open"]
Precision: TypeAlias = Literal["standard", "small", "wide"]
SchemeName: TypeAlias = Literal["lattice", "paillier", "damgard-jurik", "okamoto-uchiyama", "elgamal"]
MODES: tuple[Mode, ...] = ("sealed", "sealed-query", "sealed-index", "open")
PRECISIONS: tuple[Precision, ...] = ("standard", "small", "wide")
SCHEMES: tuple[SchemeName, ...] = cast("tuple[SchemeName, ...]", _native.SCHEMES)
LATTICE: SchemeName = "lattice"
FORMER_LATTICE = "sealed"
"""What release 0.1 called the scheme `lattice`, and descriptions call it for good."""
MAX_DIMENSION = 16_384
# The settings are sealed as the only record of a segment that never exists.
_SETTINGS_PLACE = bytes(16)
_SETTINGS_ID = "ciphervec collection settings"
_SETTINGS_STEP = 512
"""Settings that name an embedding function are as long as a multiple of this: their length does not say which."""


def chosen(what: str, value: str, known: Iterable[T]) -> T:
    """The one of these names that a text is. Raises InvalidInput naming the ones there are."""
    for one in known:
        if one == value:
            return one
    raise InvalidInput(f"{what} must be one of {', '.join(map(str, known))}; got {value!r}.")


def index_spec(
    name: str,
    dimension: int,
    metric: str,
    mode: str,
    precision: str,
    scheme: str = "lattice",
    bits: int | None = None,
    incarnation: bytes | None = None,
) -> IndexSpec:
    """Check the choices and make the native spec. Raises InvalidInput naming the ones there are."""
    if scheme == FORMER_LATTICE:
        warnings.warn(
            'scheme="sealed" is called scheme="lattice"; the old name goes with the next minor version.',
            DeprecationWarning,
            stacklevel=4,
        )
        scheme = "lattice"
    for what, value, known in (
        ("metric", metric, METRICS),
        ("mode", mode, MODES),
        ("precision", precision, PRECISIONS),
        ("scheme", scheme, SCHEMES),
    ):
        if value not in tuple(known):  # which compares, and asks no list for its hash
            raise InvalidInput(f"{what} must be one of {', '.join(known)}; got {value!r:.100}.")
    dimension = count(dimension, "dimension")
    if dimension > MAX_DIMENSION:
        raise InvalidInput(
            f"dimension must be 1 to {MAX_DIMENSION:,}, got {dimension:,}. Reduce it first, e.g. by PCA."
        )
    length = None if bits is None else count(bits, "bits")
    return IndexSpec(name, dimension, metric, mode, precision, scheme, length, incarnation)


@dataclass(frozen=True)
class Rotation:
    """A change of keys that has begun and not ended."""

    previous_id: str
    """The public name of the keys before."""
    previous: bytes
    """The keys before, encrypted under the present ones."""
    following: bytes | None = None
    """The present keys, encrypted under those before, if both were to work meanwhile."""


@dataclass(frozen=True)
class Description:
    """A collection's fixed choices, and the epoch of its query key."""

    spec: IndexSpec
    key_id: str
    filterable: tuple[str, ...] = ()
    epoch: int = 0
    mask_seed: bytes | None = None
    """The seed of the public masks, where it isn't the one that the keys derive."""
    rotation: Rotation | None = None
    authenticated: bool = False
    """Whether the owner authenticates every state."""
    originals: bool = False
    """Whether vectors are kept as they were put in, beside what is searched."""
    network: Network = DEFAULT
    """What rows are packed for."""
    untagged: tuple[bytes, ...] = ()
    """Segments from before the latest filterable field, whose tags say nothing of it."""
    embedding: SavedFunction | None = None
    """What is known of the function that embeds texts."""
    routing: Clusters | None = None
    """How queries are routed; None: they are not."""
    center: bytes = b""
    """What rows are sealed around where that was given, float32; empty where rows tell it."""

    @classmethod
    def new(
        cls,
        name: str,
        dimension: int,
        metric: str,
        mode: str,
        precision: str,
        filterable: Sequence[str],
        keys: Keys | None,
        scheme: str = "lattice",
        bits: int | None = None,
        originals: bool = True,
        network: Network | None = None,
        embedding: SavedFunction | None = None,
        routing: Clusters | None = None,
        center: Vectors | None = None,
    ) -> Description:
        """Check everything `create_collection` was given. Raises InvalidInput."""
        # One of the same name, dropped before or made elsewhere, has nothing in common with it.
        incarnation = secrets.token_bytes(16)
        spec = index_spec(check_name(name), dimension, metric, mode, precision, scheme, bits, incarnation)
        fields = filterable_names(filterable)
        if routing is not None:
            if not isinstance(routing, Clusters):
                raise InvalidInput(f"routing must be ciphervec.Clusters, got {type(routing).__name__}.")
            routing.check(spec, fields)
        # What is unsealed under hamming is what was put in.
        kept = originals and not METRICS[metric].bits
        key_id = native_for(keys, spec).key_id
        function = _to_save(embedding, mode)
        over = DEFAULT if network is None else check_network(network)
        authenticated = mode != "open"
        return cls(
            spec,
            key_id,
            fields,
            authenticated=authenticated,
            originals=kept,
            network=over,
            embedding=function,
            routing=routing,
            center=b"" if center is None else given_center(center, spec),
        )

    def with_filterable(self, fields: Sequence[str], segments: Iterable[bytes]) -> Description:
        """The same collection with further filterable fields, for which the segments there are now have
        no tags. Raises InvalidInput."""
        self._refuse_former("which would find less than there is")
        following = filterable_names([*self.filterable, *fields])
        return replace(self, filterable=following, untagged=tuple(segments))

    def with_embedding(self, function: SavedFunction | None) -> Description:
        """The same collection, embedded by this function, or by none that is known. Raises InvalidInput."""
        self._refuse_former("which would forget the function")
        return replace(self, embedding=_to_save(function, self.spec.mode))

    def _refuse_former(self, why: str) -> None:
        if self.spec.incarnation is None and not self.authenticated:
            raise InvalidInput(
                f"collection {self.spec.collection!r} was made by release 0.1, {why}. Call upgrade() first."
            )

    def with_epoch(self, epoch: int) -> Description:
        """The same collection under another query key."""
        return replace(self, epoch=epoch)

    def to_bytes(self, owner: Owner) -> bytes:
        """JSON for the store."""
        kept: dict[str, Any] = {"filterable": self.filterable}
        if self.mask_seed is not None:
            kept["mask_seed"] = self.mask_seed.hex()
        if self.authenticated:
            kept["authenticated"] = True
        if self.originals:
            kept["originals"] = True
        if self.network != DEFAULT:
            kept["network"] = stored(self.network)
        if self.untagged:
            kept["untagged"] = [one.hex() for one in self.untagged]
        if self.routing is not None:
            kept["routing"] = self.routing.to_json()
        if self.center:
            kept["center"] = _text(self.center)
        text = json.dumps(kept).encode()
        if self.embedding is not None:
            text = json.dumps({**kept, "embedding_function": self.embedding.to_json()}).encode()
            text += b" " * (-len(text) % _SETTINGS_STEP)
        settings = owner.seal_records(_SETTINGS_PLACE, [_SETTINGS_ID], [text])
        changed = self.mask_seed is not None or self.rotation is not None
        guarded = self.authenticated or self.spec.incarnation is not None
        content: dict[str, Any] = {
            "format": FORMAT if self.center else 5 if self.routing else 4 if guarded else 3 if changed else 2,
            "spec": _text(self.spec.to_bytes()),
            "scheme": self.spec.stored_scheme,
            "key_id": self.key_id,
            "epoch": self.epoch,
            "settings": _text(settings.to_bytes()),
        }
        if self.rotation is not None:
            content["rotation"] = {
                "previous_id": self.rotation.previous_id,
                "previous": _text(self.rotation.previous),
                "following": None if self.rotation.following is None else _text(self.rotation.following),
            }
        return json.dumps(content).encode()

    def owner(self, keys: Keys | None) -> Owner:
        """The owner of a collection so described. `keys` may be the ones before a rotation that is
        under way, where both work. Raises WrongKey, CorruptData."""
        rotation = self.rotation
        if rotation is None:
            owner = self._owner(keys)
            check_key(owner.key_id, self.key_id, self.spec.collection)
            return owner
        given = Owner(keys, self.spec)
        if given.key_id == rotation.previous_id and rotation.following is not None:
            keys = given.open_keys(rotation.following)
            given = Owner(keys, self.spec)
        check_key(given.key_id, self.key_id, self.spec.collection, rotation)
        previous = given.open_keys(rotation.previous)
        return self._owner(keys, previous)

    def _owner(self, keys: Keys | None, previous: Keys | None = None) -> Owner:
        center = np.frombuffer(self.center, np.float32) if self.center else None
        return Owner(
            keys, self.spec, epoch=self.epoch, mask_seed=self.mask_seed, previous=previous, center=center
        )

    @classmethod
    def from_bytes(cls, data: bytes, name: str, keys: Keys | None) -> Description:
        """Read it back, checking the key before anything is opened.

        Raises WrongKey, CorruptData, UnsupportedVersion, or InvalidInput when a sealed collection
        gets no keys.
        """
        try:
            content = json.loads(data)
            found = content["format"]
            if isinstance(found, int) and found > FORMAT:
                raise UnsupportedVersion(
                    f"collection {name!r} has format {found}; this ciphervec reads up to "
                    f"{FORMAT}. Upgrade ciphervec."
                )
            spec = IndexSpec.from_bytes(base64.b64decode(content["spec"], validate=True))
            key_id, epoch = str(content["key_id"]), count(content["epoch"] + 1, "epoch + 1") - 1
            settings = _native.RecordBatch.from_bytes(base64.b64decode(content["settings"], validate=True))
            scheme = FORMER_LATTICE if found == 1 else content["scheme"]
            rotation = _rotation(content.get("rotation"))
            if found not in range(1, FORMAT + 1) or len(settings) != 1 or scheme != spec.stored_scheme:
                raise corrupt_meta(name, f"format {found!r}, scheme {scheme!r}, {len(settings)} settings")
        except (ValueError, KeyError, TypeError) as error:
            raise corrupt_meta(name, error) from error
        if spec.collection != name:
            raise CorruptData(
                f"the folder {name!r} holds the collection {spec.collection!r}; its name is part of what "
                "its keys are bound to. Rename the folder back."
            )
        described = cls(spec, key_id, epoch=epoch, rotation=rotation)
        opened = described.owner(keys).open_record(_SETTINGS_PLACE, settings, 0, _SETTINGS_ID)
        kept = json.loads(opened)
        seed = kept.get("mask_seed")
        return replace(
            described,
            filterable=tuple(kept["filterable"]),
            mask_seed=None if seed is None else bytes.fromhex(seed),
            # An incarnation is part of what the settings are sealed to: the format, in clear, is not.
            authenticated=spec.mode != "open"
            and (spec.incarnation is not None or kept.get("authenticated") is True),
            originals=kept.get("originals") is True,
            network=read_network(kept.get("network")),
            untagged=tuple(map(bytes.fromhex, kept.get("untagged", ()))),
            embedding=SavedFunction.from_json(kept.get("embedding_function")),
            routing=Clusters.from_json(kept.get("routing")),
            center=base64.b64decode(kept.get("center", "")),
        )


def given_center(center: Vectors, spec: IndexSpec) -> bytes:
    """What `create_collection(center=)` was given, checked. Raises InvalidInput."""
    if not METRICS[spec.metric].centred or spec.mode == "open":
        raise InvalidInput(
            f"center is for metric='l2' in sealed modes, whose distances it leaves as they are; got metric={spec.metric!r}, "
            f"mode={spec.mode!r}. Leave it out."
        )
    rows = vectors(center, spec.dimension, spec.metric, what="center")
    if len(rows) != 1:
        raise InvalidInput(f"center must be one vector, shape ({spec.dimension},), got {len(rows)} of them.")
    return rows.astype("<f4").tobytes()


def refuse_open(data: bytes, name: str) -> None:
    """Raise PinMismatch for the description of a collection in mode `open`, which anybody could have written."""
    with contextlib.suppress(ValueError, KeyError, TypeError, CorruptData):  # told when it is read
        spec = IndexSpec.from_bytes(base64.b64decode(json.loads(data)["spec"], validate=True))
        if spec.mode == "open":
            raise open_refused(f"the collection {name!r}")


def open_refused(what: str) -> PinMismatch:
    """What is told whoever has keys and is shown something in mode `open`."""
    return PinMismatch(
        f"{what} shows mode 'open': nothing in it is sealed, and whoever keeps it can put such a one under any name. Keys were "
        "given, so it was to be sealed. If it is meant to be open, pass allow_open=True, or open it without keys."
    )


def filterable_names(filterable: Iterable[str], what: str = "filterable") -> tuple[str, ...]:
    """Names of filterable fields, which keep their order, checked. Raises InvalidInput."""
    refuse_unordered(filterable, what)
    fields = tuple(field_names(filterable, what))
    if len(set(fields)) != len(fields):
        raise InvalidInput(f"filterable names a field twice: {', '.join(fields)}.")
    return fields


def _to_save(function: SavedFunction | None, mode: str) -> SavedFunction | None:
    """In mode `open` whoever keeps the bytes reads them: the name does."""
    return function if function is None or mode != "open" else replace(function, config={})


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _rotation(content: Any) -> Rotation | None:
    if content is None:
        return None
    following = content["following"]
    return Rotation(
        str(content["previous_id"]),
        base64.b64decode(content["previous"], validate=True),
        None if following is None else base64.b64decode(following, validate=True),
    )


def check_key(given: str, expected: str, name: str, rotation: Rotation | None = None) -> None:
    """Raise WrongKey unless the key ids agree."""
    if rotation is not None and given == rotation.previous_id:
        raise WrongKey(
            f"{name!r} is being given new keys: from {given} to {expected}, and {given} alone opens only what has not been "
            "sealed again. Use the key file of the new keys, which open both, and call rotate_keys with them to finish."
        )
    if given != expected:
        raise WrongKey(
            f"{name!r} is sealed under key {expected}, but the key given is {given}. "
            "Load the key file it was made with."
        )
