"""Named arrays in a file of the safetensors format, and weights that torch wrote there.

    8 bytes: the length of the header, little-endian
    header:  JSON, {name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [from, to]}, ...}
             and "__metadata__": {text: text}
    data:    the arrays by rows, one after the other

Nothing in it is code: what is read is checked, never run. A file appears whole or not at all, since
it is written beside its place and then renamed; files from here carry a checksum.
"""

import json
import os
import zlib
from math import prod
from pathlib import Path

import numpy as np

from .._types import TYPES
from .attention import MultiHeadAttention
from .conv import Convolution
from .dense import Dense
from .layer import Parameter
from .norm import LayerNorm
from .recurrent import LSTM

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
          "I8": "|i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
          "BF16": TYPES["b"].dtype if TYPES["b"].is_known else "<u2"}
NAMES = {np.dtype(d): name for name, d in DTYPES.items() if d != "<u2" or name == "U16"}


class CorruptFile(ValueError):
    """A file that is not what `save` writes, or not all of it."""


def save(path, arrays, metadata=None):
    """Write {name: array} and a {text: text} of metadata. An old file at `path` stays until the
    new one is on disk."""
    for name, x in arrays.items():
        if not hasattr(x, "dtype"):
            raise TypeError(f"save: {name} must be an array, got {type(x).__name__}")
    host = {name: np.ascontiguousarray(x.get() if hasattr(x, "get") else x).reshape(x.shape)
            for name, x in arrays.items()}
    header, at = {}, 0
    for name, x in host.items():
        if x.dtype not in NAMES:
            raise TypeError(f"save: {name} must be an array of numbers, got {x.dtype}")
        if name == "__metadata__":
            raise ValueError("save: the name __metadata__ is the format's own")
        header[name] = {"dtype": NAMES[x.dtype], "shape": list(x.shape),
                        "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    data, metadata = b"".join(x.tobytes() for x in host.values()), dict(metadata or {})
    metadata["crc32"] = _checksum(header, metadata, data)
    text = json.dumps(header | {"__metadata__": metadata}).encode()
    text += b" " * (-len(text) % 8)  # data aligned
    path = Path(path)
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(beside, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text + data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _checksum(header, metadata, data):
    """Of all that a file says, in hexadecimal."""
    said = json.dumps([header, {k: v for k, v in metadata.items() if k != "crc32"}])
    return f"{zlib.crc32(data, zlib.crc32(said.encode())):08x}"


def load(path):
    """({name: array}, metadata) of a file; CorruptFile, which says what is wrong, unless it is
    whole. BF16 comes as float32 where no package brings bfloat16."""
    data = Path(path).read_bytes()

    def corrupt(why):
        raise CorruptFile(f"{path}: not a whole safetensors file: {why}")

    start = 8 + int.from_bytes(data[:8], "little")
    if len(data) < 8 or start > len(data):
        corrupt(f"a header to byte {start} in {len(data)} bytes")
    try:
        header = json.loads(data[8:start], object_pairs_hook=_once)
        metadata = dict(header.pop("__metadata__", {}))
        entries = {name: _entry(e["dtype"], e["shape"], e["data_offsets"])
                   for name, e in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as wrong:
        corrupt(f"its header: {type(wrong).__name__} {wrong}")
    at, arrays = 0, {}
    for name, (dtype, shape, begin, end) in sorted(entries.items(), key=lambda e: e[1][2:]):
        if begin != at or end - begin != prod(shape) * np.dtype(dtype).itemsize:
            corrupt(f"{name} {shape} from {begin} to {end}")
        if start + end > len(data):
            corrupt(f"{name} ends at byte {start + end} of {len(data)}")
        try:
            x = np.frombuffer(data[start + begin:start + end], dtype).reshape(shape)
        except (ValueError, OverflowError) as wrong:
            corrupt(f"{name} {shape}: {wrong}")
        unknown = header[name]["dtype"] == "BF16" and x.dtype.kind == "u"
        at, arrays[name] = end, _widened(x) if unknown else x.copy()
    if start + at != len(data):
        corrupt(f"{len(data) - start - at} bytes behind the last array")
    if "crc32" in metadata and metadata["crc32"] != _checksum(header, metadata, data[start:]):
        corrupt("its checksum is another")
    return {name: arrays[name] for name in header}, metadata


def _once(pairs):
    """A JSON object whose names are all different."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a name twice")
    return dict(pairs)


def _entry(dtype, shape, data_offsets):
    """(dtype, shape, from, to) of what the header says of an array."""
    begin, end = map(_count, data_offsets)
    return DTYPES[dtype], tuple(map(_count, shape)), begin, end


def _count(n):
    if type(n) is not int or n < 0:
        raise ValueError(f"{n!r} is no size")
    return n


def _widened(x):
    """bfloat16 is the upper half of a float32."""
    return (x.astype("u4") << 16).view("f4")


# -- torch


def load_torch(model, arrays):
    """Take the weights of a torch `state_dict` that names layers as `model` does.

    Dense, Conv1d, Conv2d, LSTM, MultiHeadAttention and LayerNorm are known, each under its path
    in the model (a torch.nn.Sequential numbers as Sequential does). Layers without parameters are
    passed over; names left over, missing or of another shape raise ValueError.
    """
    if not isinstance(arrays, dict) or not all(hasattr(x, "dtype") for x in arrays.values()):
        raise TypeError("load_torch: arrays must be {name: array}, as load(path)[0] is, got "
                        f"{type(arrays).__name__}")
    left, values = dict(arrays), {}
    for path, layer in _owners(model):
        read = next((f for kind, f in FROM_TORCH.items() if isinstance(layer, kind)), None)
        if read is None:
            raise ValueError(f"load_torch: no rule for {path or 'the model'}, a {layer!r}")
        prefix = f"{path}." if path else ""
        for name, x in read(layer, lambda n: _taken(left, prefix + n)).items():
            values[prefix + name] = x
    if left:
        raise ValueError(f"load_torch: unknown to the model: {sorted(left)}")
    own = dict(model.walk())
    model.load({name: np.asarray(x, own[name].value.dtype) for name, x in values.items()})


def _owners(layer, path=""):
    """(path, layer) of those that torch has one of and that hold parameters."""
    if isinstance(layer, tuple(FROM_TORCH)) or any(isinstance(p, Parameter)
                                                   for _, p in layer.parts()):
        yield path, layer
    else:
        for name, part in layer.parts():
            yield from _owners(part, f"{path}.{name}" if path else name)


def _taken(left, name):
    if name not in left:
        raise ValueError(f"load_torch: {name} is missing")
    return left.pop(name)


def _dense(layer, take):
    """torch: y = x W^T + b."""
    own = {"weight": take("weight").T}
    return own | ({"bias": take("bias")} if layer.bias else {})


def _as_it_is(layer, take):
    return {name: take(name) for name, _ in layer.parts()}


def _lstm(layer, take):
    """torch: gates i f g o by rows, and two biases, of which only the sum counts."""
    own = {}
    for name, at in layer.torch_names():
        def gates(kind):
            x = take(f"{kind}_{at}")
            if len(x) != 4 * layer.n:
                raise ValueError(f"load_torch: {kind}_{at} must have {4 * layer.n} rows for "
                                 f"{layer!r}, got {x.shape}")
            i, f, g, o = np.split(x, 4)
            return np.concatenate([i, f, o, g]).T
        own[f"{name}.W"], own[f"{name}.U"] = gates("weight_ih"), gates("weight_hh")
        own[f"{name}.b"] = gates("bias_ih") + gates("bias_hh")
    return own


def _attention(layer, take):
    """torch: query, key and value by rows of one matrix."""
    own = {"weight": take("in_proj_weight").T, "output.weight": take("out_proj.weight").T}
    if layer.bias:
        own |= {"bias": take("in_proj_bias"), "output.bias": take("out_proj.bias")}
    return own


FROM_TORCH = {Dense: _dense, Convolution: _as_it_is, LayerNorm: _as_it_is, LSTM: _lstm,
              MultiHeadAttention: _attention}
