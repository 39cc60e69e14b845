#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Train the digit classifier that the mlp plug-in serves, and write its data files.

Writes digits.safetensors (the weights) and digits.bin (every image, its label and which part it
belongs to) beside this script, and prints the accuracy on the held-out part. Needs numpy and
scikit-learn only, which also brings the images: nothing is downloaded.
"""
import argparse
import json
import pathlib
import struct
import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

SEED = 7
HIDDEN = 64
PIXEL_MAX = 16.0
ACCURACY_FLOOR = 0.97  # refuse to write weights that are worse than this


def held_out(count):
    """Every third image is held out: no randomness, so any reader can recompute the split."""
    return np.arange(count) % 3 == 2


def train(images, labels):
    model = MLPClassifier(hidden_layer_sizes=(HIDDEN,), activation="relu", solver="adam",
                          alpha=0.01, learning_rate_init=0.002, batch_size=32, max_iter=1000,
                          tol=1e-6, n_iter_no_change=30, random_state=SEED)
    return model.fit(images / PIXEL_MAX, labels)


def tensors_of(model):
    """The layers as float32 arrays; weights are [out, in], as the plug-in reads them."""
    tensors = {}
    for n, (weight, bias) in enumerate(zip(model.coefs_, model.intercepts_)):
        tensors[f"layers.{n}.weight"] = np.ascontiguousarray(weight.T, dtype="<f4")
        tensors[f"layers.{n}.bias"] = np.ascontiguousarray(bias, dtype="<f4")
    return tensors


def scores_of(tensors, images):
    """What the plug-in computes, in float32: ReLU between layers, none after the last."""
    x = images.astype("<f4") * np.float32(1.0 / PIXEL_MAX)
    layers = len(tensors) // 2
    for n in range(layers):
        x = x @ tensors[f"layers.{n}.weight"].T + tensors[f"layers.{n}.bias"]
        if n + 1 < layers:
            x = np.maximum(x, 0)
    return x


def write_safetensors(path, tensors, metadata):
    """u64 length of the header, the JSON header, then the tensors back to back."""
    header, offset = {"__metadata__": metadata}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + tensor.nbytes]}
        offset += tensor.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors start 8-byte aligned in the file
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            f.write(tensor.tobytes())


def write_digits(path, images, labels, held):
    """Magic, version, count, pixels, classes; then per image its pixels, label and split."""
    with open(path, "wb") as f:
        f.write(b"DBDIGITS" + struct.pack("<4I", 1, len(images), images.shape[1], 10))
        for pixels, label, out in zip(images.astype("u1"), labels, held):
            f.write(pixels.tobytes() + bytes([label, int(out)]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent,
                        help="directory to write to (default: beside this script)")
    out = parser.parse_args().out

    digits = load_digits()
    images, labels = digits.data, digits.target
    held = held_out(len(images))
    tensors = tensors_of(train(images[~held], labels[~held]))

    right = scores_of(tensors, images).argmax(axis=1) == labels
    accuracy = right[held].mean()
    print(f"train:    {right[~held].sum()} of {(~held).sum()} right")
    print(f"held out: {right[held].sum()} of {held.sum()} right, accuracy {accuracy:.4f}")
    if accuracy < ACCURACY_FLOOR:
        sys.exit(f"held-out accuracy is below {ACCURACY_FLOOR}: nothing written")

    write_safetensors(out / "digits.safetensors", tensors,
                      {"format": "doorbell-mlp", "input_scale": repr(1.0 / PIXEL_MAX)})
    write_digits(out / "digits.bin", images, labels, held)


if __name__ == "__main__":
    main()
